/* key.h: the columns of a table that name a configuration */
#ifndef BENCH_KEY_H
#define BENCH_KEY_H

#include <stdbool.h>
#include <stddef.h>

typedef enum { KEY_TEXT, KEY_CHOICE, KEY_INT, KEY_REAL, KEY_BOOL } KeyKind;
/* a column that names a configuration: a field of its struct */
typedef struct Key {
	const char *name;         /* of the field; NULL ends a list of keys */
	KeyKind kind;
	size_t at;                /* offset of the field, in bytes */
	const char *form;         /* "fp32|bf16" for a choice, "%.3g" for a real */
} Key;

/* KEY(Config, context), KEY(Config, precision, PRECISIONS), KEY(Config, h, "%g").
 * By type: a text; the index of a choice (an int or an enumeration); an integer
 * (long); a real; a bool, which reads yes or no */
#define KEY(config, field, ...) { #field, _Generic(((config *)0)->field, \
	const char *: KEY_TEXT, int: KEY_CHOICE, unsigned: KEY_CHOICE,       \
	long: KEY_INT, double: KEY_REAL, bool: KEY_BOOL),                    \
	offsetof(config, field), "" __VA_ARGS__ }

/* the key cells of a configuration, with tabs between them; the caller frees
 * them */
char *key_cells(const Key *keys, const void *config);

#endif
