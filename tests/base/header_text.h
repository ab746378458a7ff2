/* header_text.h: the text of a header, entry by entry */
#ifndef TESTS_HEADER_TEXT_H
#define TESTS_HEADER_TEXT_H

#include <stddef.h>

#define E(NAME, DTYPE, COUNT, FROM, TO, MORE) "\"" NAME "\":{\"dtype\":" DTYPE \
	",\"shape\":[" COUNT "],\"data_offsets\":[" FROM "," TO "]" MORE "}"
#define T(NAME, COUNT, FROM, TO) E(NAME, "\"U8\"", COUNT, FROM, TO, "")
#define TYPED(DTYPE, COUNT, TO) \
	"{" E("a", "\"" DTYPE "\"", COUNT, "0", TO, "") "}"
#define FIELD(TEXT) "{" E("a", "\"U8\"", "1", "0", "1", "," TEXT) "}"
#define META(PAIRS) "\"__metadata__\":{" PAIRS "}"
#define HEADER(TEXT, DATA, STATUS) \
	{ TEXT, sizeof TEXT - 1, DATA, STATUS, STATUS }
#define STRICTER(TEXT, DATA) { TEXT, sizeof TEXT - 1, DATA, 2, 0 }
#define NAMED(NAME, STATUS) HEADER("{" T(NAME, "1", "0", "1") "}", 1, STATUS)
#define FIVE(X) X X X X X

typedef struct TriedHeader {
	const char *text;
	size_t nbytes, data_nbytes;
	int status, reference;
} TriedHeader;

#endif
