#define _GNU_SOURCE
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

char *file_partial(const char *path)
{
	char *name;
	if (asprintf(&name, "%s.partial", path) < 0)
		die("out of host memory");
	return name;
}

static bool is_named(int fd, const char *name)
{
	struct stat opened, named;
	return fstat(fd, &opened) == 0 && stat(name, &named) == 0
		&& opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

FILE *file_begin(const char *path)
{
	char *name = file_partial(path);
	int fd;
	for (;;) {
		fd = open(name, O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666);
		if (fd < 0)
			usage_error("cannot write %s: %s", path, strerror(errno));
		if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
			usage_error("cannot write %s: another program is writing it", path);
		if (is_named(fd, name))
			break;
		close(fd);
	}
	if (ftruncate(fd, 0) != 0)
		usage_error("cannot write %s: %s", name, strerror(errno));
	free(name);
	return need(fdopen(fd, "w"));
}
void file_end(FILE *f, const char *path)
{
	char *name = file_partial(path);
	bool bad = fflush(f) != 0 || ferror(f) || rename(name, path) != 0;
	int error = errno;
	if (bad)
		remove(name);
	if (fclose(f) != 0 || bad)
		die("cannot write %s: %s", path, strerror(error));
	free(name);
}
static void make_folders(const char *path)
{
	char *p = need(strdup(path));
	for (char *slash = strchr(p + 1, '/'); slash;
		slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(p, 0777) != 0 && errno != EEXIST)
			usage_error("cannot make folder %s: %s", p, strerror(errno));
		*slash = '/';
	}
	free(p);
}

bool file_begins(FILE *f, const char *text)
{
	while (*text && getc(f) == (unsigned char)*text)
		text++;
	return *text == '\0';
}

static void spare_others(const char *path, bool (*is_ours)(FILE *f))
{
	FILE *f = fopen(path, "r");
	if (f == NULL)
		usage_error("cannot read %s, which is there: %s", path,
			strerror(errno));
	bool empty = getc(f) == EOF;
	rewind(f);
	if (!empty && !is_ours(f))
		usage_error("cannot write %s: it holds something else (--force replaces "
			"it)", path);
	fclose(f);
}

void file_try(const char *path, bool (*is_ours)(FILE *f), bool force)
{
	struct stat s;
	make_folders(path);
	bool exists = stat(path, &s) == 0;
	if (!exists && errno != ENOENT)
		usage_error("cannot write %s: %s", path, strerror(errno));
	if (exists && !S_ISREG(s.st_mode))
		usage_error("cannot write %s: it is not a regular file", path);
	if (exists && !force && is_ours)
		spare_others(path, is_ours);
	fclose(file_begin(path));
	char *name = file_partial(path);
	remove(name);
	free(name);
}
