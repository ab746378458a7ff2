/* folder.h: a folder of a test's own, and a file in it */
#ifndef TESTS_FOLDER_H
#define TESTS_FOLDER_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/process.h"
#include "tests/base/program.h"

static char folder[32], path[48], *folder_name;

static inline int make_folder(void **state)
{
	folder_name = process_folder("test");
	int fd = open(folder_name, O_RDONLY | O_DIRECTORY);
	snprintf(folder, sizeof folder, "/proc/self/fd/%d", fd);
	snprintf(path, sizeof path, "%s/file", folder);
	return fd < 0;
}

// clear the folder of a test away
static inline int remove_folder(void **state)
{
	setenv("FOLDER", folder_name, 1);
	free(folder_name);
	return system("rm -r \"$FOLDER\"");
}

/* the last case, in the place of remove_folder */
static inline void no_other_file_is_left(void **state)
{
	remove(path);
	assert_int_equal(rmdir(folder_name), 0);
	free(folder_name);
}

#endif
