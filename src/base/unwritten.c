#include "base/unwritten.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"

void (*unwritten_in_case)(const char *message);

void unwritten(const char *function, const char *problem)
{
	const char *path = getenv("UNWRITTEN_LOG");
	FILE *log = path ? fopen(path, "a") : NULL;
	char message[200];
	snprintf(message, sizeof message, "not yet written: %s (problem %s)",
		function, problem);
	if (log) {
		fprintf(log, "%s\n", message);
		fclose(log);
	}
	if (unwritten_in_case)
		unwritten_in_case(message);
	die("%s", message);
}
