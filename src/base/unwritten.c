#include "base/unwritten.h"

#include <stdio.h>

#include "base/error.h"

void (*unwritten_in_case)(const char *message);

void unwritten(const char *function, const char *problem)
{
	char message[200];
	snprintf(message, sizeof message, "not yet written: %s (problem %s)",
		function, problem);
	if (unwritten_in_case)
		unwritten_in_case(message);
	die("%s", message);
}
