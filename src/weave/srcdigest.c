#define _GNU_SOURCE
/* srcdigest.c: the digest of a program's code, comments and blanks apart */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_FILES = 4096, MAX_INCLUDES = 64 };

typedef struct File {
	char *path;                     /* "src/ops/ops.h" */
	char *text;                     /* with spliced lines joined */
	char *include[MAX_INCLUDES];    /* quoted includes, in order */
	int nincludes;
	uint64_t hash;
	bool chosen;                    /* belongs to the program */
} File;

static File file[MAX_FILES];
static int nfiles;
static _Noreturn void fail(const char *what, const char *name)
{
	fprintf(stderr, "srcdigest: %s: %s\n", name, what);
	exit(2);
}

static void *need(void *p)
{
	if (p == NULL)
		fail("out of memory", "malloc");
	return p;
}
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'
		|| is_digit(c) || (unsigned char)c >= 0x80;
}

static size_t word_length(const char *p)
{
	bool number = !is_word(*p) || is_digit(*p);
	size_t n = 1;
	while (is_word(p[n]) || (number && (p[n] == '.' || (strchr("+-", p[n])
			&& p[n] != '\0' && strchr("eEpP", p[n - 1])))))
		n++;
	return n;
}
static size_t quoted_length(const char *p)
{
	size_t n = 1;
	while (p[n] != '\0' && p[n] != '\n' && p[n] != p[0])
		n += p[n] == '\\' && p[n + 1] != '\0' ? 2 : 1;
	return p[n] == p[0] ? n + 1 : n;
}
static size_t punctuator_length(const char *p)
{
	static const char *const longer[] = { "...", ">>=", ">>", "->", "++",
		"--", "<=", ">=", "==", "!=", "&&", "||", "*=", "/=", "%=",
		"<<=", "<<", "+=", "-=", "&=", "^=", "|=", "##", "::" };
	for (size_t i = 0; i < sizeof longer / sizeof *longer; i++)
		if (strncmp(p, longer[i], strlen(longer[i])) == 0)
			return strlen(longer[i]);
	return 1;
}

static size_t token_length(const char *p)
{
	if (*p == '\0')
		return 0;
	if (is_word(*p) || (*p == '.' && is_digit(p[1])))
		return word_length(p);
	if (*p == '"' || *p == '\'')
		return quoted_length(p);
	return punctuator_length(p);
}
typedef struct Token {
	const char *at;
	size_t length;          /* 0 at the end of the text */
	bool blank, newline;    /* stood before it */
} Token;

static const char *skip_comment(const char *p)
{
	if (p[1] == '/')
		return p + strcspn(p, "\n");
	const char *end = strstr(p + 2, "*/");
	return end ? end + 2 : p + strlen(p);
}
static Token next_token(const char *p)
{
	Token token = { p, 0, false, false };
	for (;;) {
		if (p[0] == '/' && (p[1] == '/' || p[1] == '*'))
			p = skip_comment(p);
		else if (*p != '\0' && strchr(" \t\n\r\f\v", *p))
			token.newline |= *p++ == '\n';
		else
			break;
		token.blank = true;
	}
	token.at = p;
	token.length = token_length(p);
	return token;
}
static const uint64_t hash_start = UINT64_C(0xcbf29ce484222325);

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
	for (const unsigned char *p = bytes; n > 0; n--)
		hash = (hash ^ *p++) * UINT64_C(0x100000001b3);
	return hash;
}

static bool token_is(Token token, const char *text)
{
	return token.length == strlen(text)
		&& strncmp(token.at, text, token.length) == 0;
}
static void scan(File *f)
{
	int place = -1;    /* in a preprocessor line: 0 at the #, 1, ...; or -1 */
	bool include = false, define = false, first = true;
	f->hash = hash_bytes(hash_start, f->path, strlen(f->path) + 1);
	for (Token t = next_token(f->text); t.length > 0;
			t = next_token(t.at + t.length)) {
		bool starts = first || t.newline;
		first = false;
		if (starts && place >= 0)
			f->hash = hash_bytes(f->hash, "\n", 1);
		if (starts)
			place = *t.at == '#' ? 0 : -1;
		else if (place >= 0)
			place++;
		if (place == 1) {
			include = token_is(t, "include");
			define = token_is(t, "define");
		}
		if (include && place == 2 && *t.at == '"')
			{
				if (f->nincludes == MAX_INCLUDES)
					fail("includes too many files", f->path);
				f->include[f->nincludes++] = need(strndup(t.at + 1, t.length - 2));
			}
		if (define && place == 3 && !t.blank)
			f->hash = hash_bytes(f->hash, "(", 1);
		f->hash = hash_bytes(f->hash, t.at, t.length);
		f->hash = hash_bytes(f->hash, "\n", 1);
	}
}
static char *read_text(const char *path)
{
	FILE *in = fopen(path, "r");
	struct stat info;
	if (in == NULL || fstat(fileno(in), &info) != 0)
		fail(strerror(errno), path);
	char *text = need(calloc(1, (size_t)info.st_size + 1));
	size_t n = fread(text, 1, (size_t)info.st_size, in), kept = 0;
	fclose(in);
	for (size_t i = 0; i < n; i++)
		if (text[i] == '\\' && text[i + 1] == '\n')
			i++;
		else
			text[kept++] = text[i];
	text[kept] = '\0';
	return text;
}
static bool has_suffix(const char *path, const char *suffix)
{
	size_t n = strlen(path), m = strlen(suffix);
	return n > m && strcmp(path + n - m, suffix) == 0;
}

static bool is_code(const char *path)
{
	return has_suffix(path, ".c") || has_suffix(path, ".cu");
}

static bool is_header(const char *path)
{
	return has_suffix(path, ".h") || has_suffix(path, ".cuh");
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const File *)a)->path, ((const File *)b)->path);
}
static void read_folder(const char *folder)
{
	DIR *dir = opendir(folder);
	if (dir == NULL)
		fail(strerror(errno), folder);
	for (struct dirent *entry; (entry = readdir(dir)) != NULL; ) {
		char path[4096];
		struct stat info;
		snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
		if (entry->d_name[0] == '.' || stat(path, &info) != 0)
			continue;
		if (S_ISDIR(info.st_mode))
			read_folder(path);
		else if (is_code(path) || is_header(path))
			{
				if (nfiles == MAX_FILES)
					fail("too many files", folder);
				File new = { .path = need(strdup(path)), .text = read_text(path) };
				file[nfiles++] = new;
			}
	}
	closedir(dir);
}
static File *find_file(const char *path)
{
	for (int i = 0; i < nfiles; i++)
		if (strcmp(file[i].path, path) == 0)
			return &file[i];
	return NULL;
}

static File *find_include(const File *from, const char *name)
{
	char path[4096];
	int folder = (int)(strrchr(from->path, '/') - from->path);
	snprintf(path, sizeof path, "%.*s/%s", folder, from->path, name);
	File *beside = find_file(path);
	if (beside)
		return beside;
	snprintf(path, sizeof path, "src/%s", name);
	return find_file(path);
}
static bool is_below(const File *f, const char *folder)
{
	return strncmp(f->path, folder, strlen(folder)) == 0;
}

static bool is_program(const File *f)
{
	if (!is_below(f, "src/experiments/") || !has_suffix(f->path, ".c"))
		return false;
	char header[4096];
	snprintf(header, sizeof header, "%s", f->path);
	header[strlen(header) - 1] = 'h';
	return find_file(header) == NULL;
}
static bool counts_for(const char *backend, const File *f)
{
	return strcmp(backend, "cuda") == 0 || !strstr(f->path, "/cuda/");
}

static bool implements_chosen(const File *f)
{
	if (!is_code(f->path) || f->nincludes == 0)
		return false;
	if (is_program(f) || is_below(f, "src/weave/"))
		return false;
	const File *header = find_include(f, f->include[0]);
	return header && header->chosen;
}
static void choose_files(File *program, const char *backend)
{
	for (int i = 0; i < nfiles; i++)
		file[i].chosen = &file[i] == program;
	for (bool grown = true; grown; ) {
		grown = false;
		for (File *f = file; f < file + nfiles; f++) {
			if (!f->chosen && counts_for(backend, f)
					&& implements_chosen(f))
				f->chosen = grown = true;
			for (int i = 0; f->chosen && i < f->nincludes; i++) {
				File *h = find_include(f, f->include[i]);
				if (h && !h->chosen && counts_for(backend, h))
					h->chosen = grown = true;
			}
		}
	}
}
static unsigned long long digest(void)
{
	uint64_t hash = hash_start;
	for (File *f = file; f < file + nfiles; f++)
		if (f->chosen)
			hash = hash_bytes(hash, &f->hash, sizeof f->hash);
	return hash;
}

static void print_all(const char *backend)
{
	for (File *f = file; f < file + nfiles; f++) {
		if (!is_program(f))
			continue;
		const char *name = strrchr(f->path, '/') + 1;
		choose_files(f, backend);
		printf("%.*s.%s %016llx\n", (int)strlen(name) - 2, name,
			backend, digest());
	}
}
static void print_one(const char *name, const char *backend, bool list)
{
	char path[4096];
	snprintf(path, sizeof path, "src/experiments/%s.c", name);
	File *program = find_file(path);
	if (program == NULL || !is_program(program))
		fail("no such program in src/experiments", name);
	choose_files(program, backend);
	if (!list)
		printf("%016llx\n", digest());
	for (File *f = file; list && f < file + nfiles; f++)
		if (f->chosen)
			puts(f->path);
}
int main(int argc, char **argv)
{
	const char *option = argc > 1 && argv[1][0] == '-' ? argv[1] : "";
	bool list = !strcmp(option, "--files"), all = !strcmp(option, "--all");
	if (argc != 3 + list || (*option && !list && !all))
		fail("expected [--files] PROGRAM BACKEND or --all BACKEND", "usage");
	const char *backend = argv[argc - 1];
	if (strcmp(backend, "cpu") && strcmp(backend, "cuda"))
		fail("unknown backend, expected cpu or cuda", backend);
	read_folder("src");
	qsort(file, (size_t)nfiles, sizeof *file, by_path);
	for (int i = 0; i < nfiles; i++)
		scan(&file[i]);
	if (all)
		print_all(backend);
	else
		print_one(argv[argc - 2], backend, list);
	if (fflush(stdout) != 0 || ferror(stdout))
		fail("cannot be written", "standard output");
	return 0;
}
