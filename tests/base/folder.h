/* folder.h: a folder of a test's own, made before its cases and removed after */
#ifndef TESTS_FOLDER_H
#define TESTS_FOLDER_H

#include <stdio.h>
#include <stdlib.h>

static char folder[] = "/tmp/test.XXXXXX";

static inline int make_folder(void **state)
{
	return mkdtemp(folder) == NULL;
}

static inline int remove_folder(void **state)
{
	char command[64];
	snprintf(command, sizeof command, "rm -r %s", folder);
	return system(command);
}

#endif
