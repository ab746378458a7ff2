/* json.h: a scanner of JSON in memory. What is not as expected ends the program,
 * with the name of the file and the offset */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>

typedef struct Json {
	const char *path;          /* of the file, for messages */
	const char *map;
	size_t at, end;            /* offsets of the byte to be read next, and behind
	                            * the last one */
} Json;

_Noreturn void json_damaged(const Json *f, size_t at, const char *expected);
/* the next character behind blanks, not taken; zero at the end */
char   json_peek(Json *f);
/* takes the character c; anything else is damage */
void   json_expect(Json *f, char c);
/* takes the next character if it is c; returns whether it was */
bool   json_accept(Json *f, char c);
/* a string that the caller frees, in UTF-8; U+0000 as the bytes C0 80 */
char  *json_string(Json *f);
size_t json_size(Json *f);
/* steps over a value of any kind, which is inside `depth` others */
void   json_skip(Json *f, int depth);

#endif
