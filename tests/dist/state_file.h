/* state_file.h: a file in a folder of its own, where nothing else is left */
#ifndef TESTS_STATE_FILE_H
#define TESTS_STATE_FILE_H

#include <unistd.h>

#include "tests/base/folder.h"

static char path[64];

static inline int name_state_file(void **state)
{
	int failed = make_folder(state);
	snprintf(path, sizeof path, "%s/state.safetensors", folder);
	return failed;
}

/* the last test */
static inline void no_other_file_is_left(void **state)
{
	remove(path);
	assert_int_equal(rmdir(folder), 0);
}

#endif
