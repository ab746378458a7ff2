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

// read a file
char *file_read(const char *path, size_t *n)
{
	char *text = NULL;
	size_t capacity = 0;
	FILE *f = fopen(path, "r");
	if (f == NULL && errno == ENOENT)
		return NULL;
	ssize_t length = f ? getdelim(&text, &capacity, '\0', f) : 0;
	if (f == NULL || ferror(f))
		usage_error("cannot read %s: %s", path, strerror(errno));
	fclose(f);
	*n = length < 0 ? 0 : length;
	if (*n == 0)
		*(text = need(realloc(text, 1))) = '\0';
	return text;
}

// write a file beside another, then rename it
char *file_partial(const char *path)
{
	char *name;
	if (asprintf(&name, "%s.partial", path) < 0)
		die("out of host memory");
	return name;
}

static bool is_still_named(int fd, const char *name)
{
	struct stat opened, named;
	return fstat(fd, &opened) == 0 && stat(name, &named) == 0
		&& opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/* closes fd; returns -1 with errno set to error, as a failed open does */
static int close_with_errno(int fd, int error)
{
	close(fd);
	errno = error;
	return -1;
}

bool file_lock(int fd)
{
	static bool told;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return true;
	if (errno == EWOULDBLOCK)
		return false;
	if (!__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
		fprintf(stderr, "%s: no file can be locked here (%s); let no other "
			"program write the same one\n", program_name, strerror(errno));
	return true;
}

static int open_locked(const char *name)
{
	for (;;) {
		int fd = open(name, O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666);
		if (fd < 0)
			return -1;
		if (!file_lock(fd))
			return close_with_errno(fd, EWOULDBLOCK);
		if (is_still_named(fd, name))
			return ftruncate(fd, 0) != 0 ? close_with_errno(fd, errno) : fd;
		close(fd);
	}
}

FILE *file_start(const char *path)
{
	char *name = file_partial(path);
	int fd = open_locked(name), error = errno;
	free(name);
	errno = error;
	return fd < 0 ? NULL : need(fdopen(fd, "w"));
}

const char *file_reason(int error)
{
	return error == EWOULDBLOCK ? "another program is writing it"
		: strerror(error);
}

FILE *file_begin(const char *path)
{
	FILE *f = file_start(path);
	if (f == NULL)
		usage_error("cannot write %s: %s", path, file_reason(errno));
	return f;
}

int file_finish(FILE *f, const char *path)
{
	char *name = file_partial(path);
	bool bad = fflush(f) != 0 || ferror(f) || rename(name, path) != 0;
	int error = !bad ? 0 : errno ? errno : EIO;
	if (bad)
		remove(name);
	free(name);
	return fclose(f) != 0 && !bad ? errno : error;
}

void file_end(FILE *f, const char *path)
{
	int error = file_finish(f, path);
	if (error)
		die("cannot write %s: %s", path, file_reason(error));
}

// try to write a file, and spare those of others
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

// recognise our own kind of file
bool file_begins(FILE *f, const char *text)
{
	while (*text && getc(f) == (unsigned char)*text)
		text++;
	return *text == '\0';
}

static void refuse_foreign_file(const char *path, bool (*is_ours)(FILE *f))
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

// try a path before the work
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
		refuse_foreign_file(path, is_ours);
	FILE *f = file_begin(path);
	char *name = file_partial(path);
	remove(name);                       /* while the lock is held */
	free(name);
	fclose(f);
}
