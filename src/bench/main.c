/* main.c: the main function of every program that is an experiment */
#include "bench/harness.h"

int main(int argc, char **argv)
{
	return harness_main(&experiment, argc, argv);
}
