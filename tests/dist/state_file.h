/* state_file.h: runs tests in a folder with one file, which is left alone */
#ifndef TESTS_STATE_FILE_H
#define TESTS_STATE_FILE_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/test_state.XXXXXX";
static char path[64];

static inline int make_state_folder(void **state)
{
	if (mkdtemp(folder) == NULL)
		return 1;
	snprintf(path, sizeof path, "%s/state.safetensors", folder);
	return 0;
}

static inline int remove_state_folder(void **state)
{
	remove(path);
	return rmdir(folder);
}

#endif
