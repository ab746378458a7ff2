/* tensor_json.h: the header of a tensor file as JSON, for its reader alone. What
 * is not as expected ends the program, with its offset */
#ifndef BASE_TENSOR_JSON_H
#define BASE_TENSOR_JSON_H

#include "base/safetensors.h"

// define an open tensor file
enum { MOST_DIMENSIONS = 8, DEEPEST = 127, LONGEST_HEADER = 100000000 };

typedef struct TensorEntry {
	TensorView view;
	size_t begin, end;         /* offsets of its data in the data */
	size_t at;                 /* offset of its name in the file */
} TensorEntry;

typedef struct MetaPair {
	char *key, *value;
	size_t at;
} MetaPair;

struct TensorFile {
	const char *path;
	const char *map;           /* the whole file */
	/* at: offset of the byte that the parser of the header reads next; end: of
	 * the first byte behind the header */
	size_t nbytes, at, end;
	int ntensors, nmeta;
	TensorEntry *tensors, **by_name; /* in the order of the file; sorted */
	MetaPair *meta;                /* sorted by key */
};

// declare the scanner of JSON
_Noreturn void json_damaged(const TensorFile *f, size_t at, const char *expected);
/* the next character behind blanks, not taken; zero at the header's end */
char  json_peek(TensorFile *f);
/* takes the character c; anything else is damage */
void  json_expect(TensorFile *f, char c);
/* takes the next character if it is c; returns whether it was */
bool  json_accept(TensorFile *f, char c);
/* a string that the caller frees, in UTF-8; U+0000 as the bytes C0 80 */
char *json_string(TensorFile *f);
void  json_shape(TensorFile *f, TensorView *t);
void  json_offsets(TensorFile *f, size_t offsets[2]);
/* steps over a value of any kind, which is inside `depth` others */
void  json_skip(TensorFile *f, int depth);

#endif
