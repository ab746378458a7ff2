/* folder.h: a folder of a test's own, and a file in it */
#ifndef TESTS_FOLDER_H
#define TESTS_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/base/program.h"

static char folder[] = "/tmp/test.XXXXXX", path[32];

static inline int make_folder(void **state)
{
	if (mkdtemp(folder) == NULL)
		return 1;
	snprintf(path, sizeof path, "%s/file", folder);
	return 0;
}

// clear the folder of a test away
static inline int remove_folder(void **state)
{
	char command[64];
	snprintf(command, sizeof command, "rm -r %s", folder);
	return system(command);
}

/* the last case, in the place of remove_folder */
static inline void no_other_file_is_left(void **state)
{
	remove(path);
	assert_int_equal(rmdir(folder), 0);
}

#endif
