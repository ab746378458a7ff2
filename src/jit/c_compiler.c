#define _GNU_SOURCE
#include "jit/compiler.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/process.h"
#include "jit/source.h"
#include "ops/cpu/cpu.h"

extern char **environ;

#ifndef C_COMPILER
#define C_COMPILER "cc"
#endif
const char *c_compiler_command = C_COMPILER;

static const char options[] =
	"-std=c11 -O3 -march=native -ffp-contract=off -fno-math-errno "
	"-fno-trapping-math -fPIC -shared";

// run a program
/* an open file in memory that holds the text, positioned at its start */
static int memory_file(const char *text)
{
	int fd = memfd_create("jit", MFD_CLOEXEC);
	size_t n = text ? strlen(text) : 0;
	if (fd < 0 || write(fd, text ? text : "", n) != (ssize_t)n
		|| lseek(fd, 0, SEEK_SET) != 0)
		die("no memory for a source: %s", strerror(errno));
	return fd;
}

/* all bytes of the file, followed by a zero; at is NULL if it cannot be read */
static Bytes read_all(int fd)
{
	Bytes b = { NULL, 0 };
	off_t n = lseek(fd, 0, SEEK_END);
	if (n < 0)
		return b;
	b.at = need(malloc((size_t)n + 1));
	for (ssize_t got = 1; got > 0 && b.n < (size_t)n; b.n += (size_t)got)
		if ((got = pread(fd, b.at + b.n, (size_t)n - b.n, (off_t)b.n)) < 0)
			got = 0;
	b.at[b.n] = '\0';
	return b;
}

// run a command of the shell
/* runs the command with `input` on its standard input and returns what it
 * prints, which the caller frees; *status is not 0 if it fails */
static char *run_command(const char *command, const char *input, int *status)
{
	char *const arguments[] = { "sh", "-c", (char *)command, NULL };
	posix_spawn_file_actions_t files;
	int in = memory_file(input), out = memory_file(NULL);
	pid_t child;
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, in, 0);
	posix_spawn_file_actions_adddup2(&files, out, 1);
	posix_spawn_file_actions_adddup2(&files, out, 2);
	*status = posix_spawn(&child, "/bin/sh", &files, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&files);
	if (*status == 0)
		while (waitpid(child, status, 0) < 0 && errno == EINTR)
			;
	char *said = (char *)read_all(out).at;
	close(in);
	close(out);
	return said;
}

static char *run_compiler(const char *arguments, const char *input, int *status)
{
	char *command;
	if (asprintf(&command, "exec %s %s", c_compiler_command, arguments) < 0)
		die("out of host memory");
	char *said = run_command(command, input, status);
	free(command);
	return said;
}

// identify the C compiler
static char *cc_identify(const Device *d, const char **why)
{
	int status;
	static char missing[300];
	char *said = run_compiler("--version", NULL, &status), *identity;
	if (said)
		said[strcspn(said, "\n")] = '\0';
	if (said == NULL || status != 0) {
		free(said);
		snprintf(missing, sizeof missing, "there is no C compiler (%s)",
			c_compiler_command);
		*why = missing;
		return NULL;
	}
	const char *machine = d->backend->describe(d->state);
	if (asprintf(&identity, "%s; %s; %.*s", said, options,
		(int)strcspn(machine, ","), machine) < 0)   /* without its threads */
		die("out of host memory");
	free(said);
	return identity;
}

// compile C
static void cc_write(FILE *f, const KernelPlan *p)
{
	source_c_prelude(f);
	source_c(f, p, "fused");
}

static Bytes cc_compile(const Device *d, const char *source, char **complaint)
{
	char *folder = process_folder("jit"), *path, *arguments;
	Bytes b = { NULL, 0 };
	int status;
	if (asprintf(&path, "%s/kernel.so", folder) < 0)
		die("out of host memory");
	char *out = process_word(path);
	if (asprintf(&arguments, "%s -o %s -x c - -lm", options, out) < 0)
		die("out of host memory");
	*complaint = run_compiler(arguments, source, &status);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (status == 0 && fd >= 0)
		b = read_all(fd);
	if (fd >= 0)
		close(fd);
	unlink(path);
	rmdir(folder);
	char *const used[] = { folder, path, out, arguments };
	for (size_t i = 0; i < sizeof used / sizeof *used; i++)
		free(used[i]);
	if (b.at) {
		free(*complaint);
		*complaint = NULL;
	}
	return b;
}

// load a shared object
typedef void KernelFunction(size_t first, size_t last, size_t rows,
	size_t slabs,
	void *const *at, const double *numbers, float (*round)(int, float));

typedef struct SharedObject {
	void *library;
	KernelFunction *run;
	int fd;
} SharedObject;

static void *cc_load(Bytes b)
{
	char path[64];
	int fd = memfd_create("kernel", MFD_CLOEXEC);
	if (fd < 0 || write(fd, b.at, b.n) != (ssize_t)b.n)
		die("no memory for a kernel: %s", strerror(errno));
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	SharedObject l = { .library = dlopen(path, RTLD_NOW | RTLD_LOCAL),
		.fd = fd };
	if (l.library)
		*(void **)&l.run = dlsym(l.library, "fused");
	if (l.run == NULL) {
		if (l.library)
			dlclose(l.library);
		close(fd);
		return NULL;
	}
	SharedObject *kept = need(malloc(sizeof *kept));
	*kept = l;
	return kept;
}

static void cc_unload(void *kernel)
{
	dlclose(((SharedObject *)kernel)->library);
	close(((SharedObject *)kernel)->fd);
	free(kernel);
}

// run a compiled function
static float round_as(int type, float x)
{
	return round_to((Type)type, x);
}

static void cc_launch(Device *d, void *kernel, const KernelPlan *p,
	void *const *at,
	const double *numbers)
{
	KernelFunction *run = ((SharedObject *)kernel)->run;
	size_t slabs = p->columns ? row_slabs(p->rows, p->C) : 0;
	size_t all = p->shape == FLAT ? p->g.n : p->columns ? slabs : p->rows;
	size_t parts = (size_t)omp_get_max_threads();
	#pragma omp parallel for schedule(static)
	for (size_t k = 0; k < parts; k++)
		run(k * all / parts, (k + 1) * all / parts, p->rows, slabs, at, numbers,
			round_as);
}

static void cc_add_slabs(Device *d, Array y, void *partial, size_t slabs,
	size_t C)
{
	cpu_add_slabs(y, partial, slabs, C);
}

const Compiler c_compiler = { cc_identify, cc_write, cc_compile, cc_load,
	cc_unload, cc_launch, cc_add_slabs };
