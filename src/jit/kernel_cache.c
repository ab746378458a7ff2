#define _GNU_SOURCE
#include "jit/kernel_cache.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/grow.h"

// the head of a cached kernel
typedef struct CacheHeader {
	char magic[16];
	/* lengths of the parts that follow; checksum of header and parts */
	uint64_t identity, source, bytes, sum;
} CacheHeader;

static const char magic[16] = "fused kernel 1";

static CacheHeader cache_header(const char *identity, const char *source,
	Bytes b)
{
	CacheHeader h = { .identity = strlen(identity), .source = strlen(source),
		.bytes = b.n };
	memcpy(h.magic, magic, sizeof magic);
	h.sum = hash_bytes(HASH_START, &h, offsetof(CacheHeader, sum));
	h.sum = hash_bytes(h.sum, identity, h.identity);
	h.sum = hash_bytes(h.sum, source, h.source);
	h.sum = hash_bytes(h.sum, b.at, b.n);
	return h;
}

// name the file of a cached kernel
static char *cache_path(const char *folder, const char *identity,
	const char *source, const char *suffix)
{
	uint64_t hash = hash_bytes(HASH_START, identity, strlen(identity) + 1);
	char *path;
	hash = hash_bytes(hash, source, strlen(source));
	if (asprintf(&path, "%s/%016" PRIx64 "%s", folder, hash, suffix) < 0)
		die("out of host memory");
	return path;
}

// read a cached kernel
/* the next n bytes and a zero; NULL if the file has fewer */
static char *read_text(FILE *f, uint64_t n)
{
	char *text = need(malloc(n + 1));
	text[n] = '\0';
	if (fread(text, 1, n, f) == n)
		return text;
	free(text);
	return NULL;
}

// read and check an entry
static Bytes read_entry(FILE *f, const char *identity, const char *source)
{
	CacheHeader h, want;
	struct stat s;
	Bytes b = { NULL, 0 };
	char *i = NULL, *text = NULL;
	if (fread(&h, sizeof h, 1, f) != 1 || fstat(fileno(f), &s) != 0
		|| h.identity != strlen(identity) || h.source != strlen(source)
		|| h.bytes != (uint64_t)s.st_size - sizeof h - h.identity - h.source)
		return b;
	if ((i = read_text(f, h.identity)) && strcmp(i, identity) == 0
		&& (text = read_text(f, h.source)) && strcmp(text, source) == 0)
		b = (Bytes){ (unsigned char *)read_text(f, h.bytes), h.bytes };
	free(i);
	free(text);
	if (b.at == NULL)
		return b;
	want = cache_header(identity, source, b);
	if (memcmp(&h, &want, sizeof h) != 0) {
		free(b.at);
		b.at = NULL;
	}
	return b;
}

Bytes cache_read(const char *folder, const char *identity, const char *source)
{
	char *path = cache_path(folder, identity, source, ".kernel");
	FILE *f = fopen(path, "re");
	Bytes b = { NULL, 0 };
	free(path);
	if (f == NULL)
		return b;
	b = read_entry(f, identity, source);
	fclose(f);
	return b;
}

// write a cached kernel
bool cache_write(const char *folder, const char *identity, const char *source,
	Bytes b)
{
	char suffix[64];
	CacheHeader h = cache_header(identity, source, b);
	snprintf(suffix, sizeof suffix, ".%ld.partial", (long)getpid());
	char *path = cache_path(folder, identity, source, ".kernel"),
		*partial = cache_path(folder, identity, source, suffix);
	mkdir(folder, 0777);
	FILE *f = fopen(partial, "we");
	bool done = false;
	if (f) {
		fwrite(&h, sizeof h, 1, f);
		fwrite(identity, 1, h.identity, f);
		fwrite(source, 1, h.source, f);
		fwrite(b.at, 1, b.n, f);
		bool bad = ferror(f);
		done = fclose(f) == 0 && !bad && rename(partial, path) == 0;
		if (!done)
			unlink(partial);
	}
	free(path);
	free(partial);
	return done;
}

// remove cached kernels
void cache_remove(const char *folder)
{
	DIR *files = opendir(folder);
	char path[4096];
	for (struct dirent *f; files && (f = readdir(files));)
		if (strstr(f->d_name, ".kernel") || strstr(f->d_name, ".partial")) {
			snprintf(path, sizeof path, "%s/%s", folder, f->d_name);
			unlink(path);
		}
	if (files)
		closedir(files);
	rmdir(folder);
}
