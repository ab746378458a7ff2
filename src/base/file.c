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
/* returns how many bytes of the path stand before the first new folder's end;
 * 0: no folder is new. *error: why a folder cannot be made, or 0 */
static size_t make_folders(const char *path, int *error)
{
	char *p = need(strdup(path));
	size_t first = 0;
	*error = 0;
	for (char *slash = strchr(p + 1, '/'); slash && *error == 0;
		slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(p, 0777) == 0)
			first = first ? first : (size_t)(slash - p);
		else if (errno != EEXIST)
			*error = errno;
		*slash = '/';
	}
	free(p);
	return first;
}

/* first: as make_folders returned it */
_Noreturn static void refuse_path(const char *path, size_t first,
	const char *why)
{
	char *p = need(strdup(path)), *slash;
	while (first > 0 && (slash = strrchr(p, '/')) && slash >= p + first) {
		*slash = '\0';
		rmdir(p);
	}
	usage_error("cannot write %s: %s", path, why);
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
	int error;
	size_t first = make_folders(path, &error);
	bool exists = error == 0 && stat(path, &s) == 0;
	if (error == 0 && !exists && errno != ENOENT)
		error = errno;
	if (error)
		refuse_path(path, first, strerror(error));
	if (exists && !S_ISREG(s.st_mode))
		refuse_path(path, first, "it is not a regular file");
	if (exists && !force && is_ours)
		refuse_foreign_file(path, is_ours);
	FILE *f = file_start(path);
	if (f == NULL)
		refuse_path(path, first, file_reason(errno));
	char *name = file_partial(path);
	remove(name);                       /* while the lock is held */
	free(name);
	fclose(f);
}
