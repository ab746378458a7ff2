/* headers.h: headers that are nearly right, how many bytes stand behind each,
 * and the exit status of a reader: ours, and the reference's */
#ifndef TESTS_HEADERS_H
#define TESTS_HEADERS_H

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

static const struct {
	const char *text;
	size_t nbytes, data_nbytes;
	int status, reference;
} headers[] = {
	HEADER("{}", 0, 0), HEADER("{}", 1, 2), HEADER("{}  ", 0, 0),
	HEADER("{" T("a", "4", "0", "4") "}", 4, 0),
	HEADER("{" T("a", "", "0", "1") "," T("b", "0", "1", "1") "}", 1, 0),
	HEADER("{" T("b", "1", "1", "2") "," T("a", "1", "0", "1") "}", 2, 0),
	HEADER("{" T("a", "4", "0", "4") "}", 5, 2),           /* left over */
	HEADER("{" T("a", "4", "0", "4") "}", 3, 2),
	HEADER("{" T("a", "4", "1", "5") "}", 5, 2),           /* a hole */
	HEADER("{" T("a", "1", "0", "1") "," T("b", "1", "2", "3") "}", 3, 2),
	HEADER("{" T("a", "2", "0", "2") "," T("b", "2", "1", "3") "}", 3, 2),
	HEADER("{" T("a", "2", "0", "2") "," T("b", "2", "0", "2") "}", 2, 2),
	HEADER("{" T("a", "1", "1", "0") "}", 1, 2),
	HEADER("{" T("a", "1", "0", "1") "," T("a", "1", "1", "2") "}", 2, 2),
	STRICTER("{" T("a", "1", "0", "1") "," T("a", "1", "0", "1") "}", 1),
	STRICTER("{" T("a", "1", "0", "1") "," T("\\u0061", "1", "0", "1") "}", 1),
	// headers with metadata, and with fields that are wrong
	HEADER("{" META("\"k\":\"v\"") "}", 0, 0),
	STRICTER("{" META("\"k\":\"v\",\"k\":\"w\"") "}", 0),
	HEADER("{" META("") "," META("") "}", 0, 2),
	HEADER("{" META("") ",\"\\u005f_metadata__\":{}}", 0, 2),
	HEADER("{\"__metadata__\":null}", 0, 0),
	HEADER("{\"__metadata__\":nul}", 0, 2),
	HEADER("{\"__metadata__\":null,\"__metadata__\":null}", 0, 2),
	HEADER("{\"__metadata__\":[]}", 0, 2),
	HEADER("{" META("\"k\":1") "}", 0, 2), HEADER("{" META("\"k\":null") "}", 0, 2),
	HEADER("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],"
		"\"data_offsets\":[0,1]}}", 1, 2),
	HEADER("{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, 2),
	HEADER("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1, 2),
	HEADER("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,1]}}",
		1, 2),
	HEADER("{\"a\":{\"dtype\":\"U8\",\"shape\":null,\"data_offsets\":[0,1]}}", 1, 2),
	HEADER("{\"a\":null}", 0, 2),
	STRICTER("{\"a\":[\"U8\",[1],[0,1]]}", 1),
	STRICTER("{" E("a", "{\"U8\":null}", "1", "0", "1", "") "}", 1),
	STRICTER(" {}", 0), HEADER("{}\0", 0, 2), HEADER("{}\n\t\r ", 0, 0),
	HEADER("{},", 0, 2), HEADER("{" T("a", "1", "0", "1") ",}", 1, 2),
	HEADER("{", 0, 2), HEADER("", 0, 2), HEADER("[]", 0, 2),
	// headers with numbers and shapes
	HEADER("{" T("a", "01", "0", "1") "}", 1, 2),
	HEADER("{" T("a", "+1", "0", "1") "}", 1, 2),
	HEADER("{" T("a", "1.0", "0", "1") "}", 1, 2),
	HEADER("{" T("a", "1e0", "0", "1") "}", 1, 2),
	HEADER("{" T("a", "-0", "0", "0") "}", 0, 2),
	HEADER("{" T("a", "1,", "0", "1") "}", 1, 2),
	HEADER("{" T("a", " 1\n,\t1\r", "0", "1") "}", 1, 0),
	HEADER("{" T("a", "4294967296,4294967296", "0", "0") "}", 0, 2),
	HEADER("{" T("a", "4294967296,4294967296,0", "0", "0") "}", 0, 2),
	HEADER("{" T("a", "0,4294967296,4294967296", "0", "0") "}", 0, 0),
	HEADER("{" T("a", "0,18446744073709551615", "0", "0") "}", 0, 0),
	HEADER("{" T("a", "0,18446744073709551616", "0", "0") "}", 0, 2),
	HEADER("{" T("a", "1,1,1,1,1,1,1,2", "0", "2") "}", 2, 0),
	HEADER("{" T("a", "1,1,1,1,1,1,1,1,2", "0", "2") "}", 2, 0),
	HEADER("{" T("a", "1,1,1,1,1,1,1,1,2", "0", "1") "}", 1, 2),
	HEADER("{" T("a", FIVE(FIVE(FIVE("1,"))) "1", "0", "1") "}", 1, 0),
	// headers with strings
	NAMED("caf\303\251", 0), NAMED("caf\\u00E9", 0), NAMED("", 0), NAMED("\177", 0),
	NAMED("a\\u0041", 0), NAMED("\\\"\\\\\\/\\b\\f\\n\\r\\t", 0),
	NAMED("a\\u0000b", 0), NAMED("\\uffff", 0), NAMED("\\ud7ff\\ue000", 0),
	NAMED("\\ud83d\\ude00", 0), NAMED("\\uD83D\\uDE00", 0),
	NAMED("\\ud83d", 2), NAMED("\\ude00", 2), NAMED("\\ude00\\ud83d", 2),
	NAMED("\\ud83d\\u0041", 2), NAMED("\\ud83dude00", 2), NAMED("\\ud83d\\n", 2),
	NAMED("\\ud83d\\ud83d\\ude00", 2), NAMED("\\u00g1", 2), NAMED("\\u41", 2),
	NAMED("\\U0041", 2), NAMED("\\x41", 2), NAMED("\\a", 2), NAMED("\\0", 2),
	NAMED("\\", 2), NAMED("a\377", 2), NAMED("\300\257", 2), NAMED("\300\200", 2),
	NAMED("\355\240\200", 2), NAMED("\360\237\230\200", 0), NAMED("a\303", 2),
	NAMED("\364\220\200\200", 2), NAMED("a\0b", 2), NAMED("a\tb", 2),
	NAMED("a\\\0", 2), HEADER("{\"a", 0, 2), HEADER("{\"a\\", 0, 2),
	HEADER("{\"a\\u00", 0, 2), HEADER("{\"a\\ud83d\\u", 0, 2),
	HEADER("{" META("\"a\":\"\\ud83d\\ude00\"") "}", 0, 0),
	HEADER("{" META("\"a\":\"\\ud83d\"") "}", 0, 2),
	HEADER("{\"a\":{\"dtyp\\u0065\":\"\\u00558\",\"shape\":[1],"
		"\"data_offsets\":[0,1]}}", 1, 0),
	// headers with types, and with fields of other programs
	HEADER(TYPED("BOOL", "8", "8"), 8, 0), HEADER(TYPED("I8", "8", "8"), 8, 0),
	HEADER(TYPED("F8_E4M3", "8", "8"), 8, 0),
	HEADER(TYPED("F8_E5M2", "8", "8"), 8, 0),
	HEADER(TYPED("F8_E8M0", "8", "8"), 8, 0),
	HEADER(TYPED("F8_E4M3FNUZ", "8", "8"), 8, 0),
	HEADER(TYPED("F8_E5M2FNUZ", "8", "8"), 8, 0),
	HEADER(TYPED("I16", "8", "16"), 16, 0), HEADER(TYPED("U16", "8", "16"), 16, 0),
	HEADER(TYPED("F16", "8", "16"), 16, 0), HEADER(TYPED("BF16", "8", "16"), 16, 0),
	HEADER(TYPED("I32", "8", "32"), 32, 0), HEADER(TYPED("U32", "8", "32"), 32, 0),
	HEADER(TYPED("F32", "8", "32"), 32, 0), HEADER(TYPED("C64", "8", "64"), 64, 0),
	HEADER(TYPED("I64", "8", "64"), 64, 0), HEADER(TYPED("U64", "8", "64"), 64, 0),
	HEADER(TYPED("F64", "8", "64"), 64, 0), HEADER(TYPED("F64", "8", "32"), 32, 2),
	HEADER(TYPED("F4", "8", "4"), 4, 0), HEADER(TYPED("F4", "7", "4"), 4, 2),
	HEADER(TYPED("F4", "1", "1"), 1, 2), HEADER(TYPED("F4", "0", "0"), 0, 0),
	HEADER(TYPED("F6_E2M3", "4", "3"), 3, 0),
	HEADER(TYPED("F6_E2M3", "4", "4"), 4, 2),
	HEADER(TYPED("F6_E3M2", "8", "6"), 6, 0),
	HEADER(TYPED("F6_E3M2", "5", "4"), 4, 2),
	HEADER(TYPED("U7", "8", "7"), 7, 2), HEADER(TYPED("u8", "8", "8"), 8, 2),
	HEADER(TYPED("", "0", "0"), 0, 2), HEADER(TYPED("U8 ", "8", "8"), 8, 2),
	HEADER(TYPED("F8_E4M3FNUZ1", "8", "8"), 8, 2),
	HEADER(TYPED("F8_E4M3FN", "8", "8"), 8, 2),
	HEADER(TYPED("C128", "1", "16"), 16, 2),
	HEADER(TYPED("C32", "8", "32"), 32, 2), HEADER(TYPED("U4", "8", "4"), 4, 2),
	// headers with fields of other programs
	HEADER(FIELD("\"x\":[1,{\"a\":null,\"b\":[true,false,-1.5e+3,\"y\\n\"]},[],{}]"),
		1, 0),
	HEADER(FIELD("\"x\":-0,\"x\":0.5E-2,\"y\":1e308"), 1, 0),
	HEADER(FIELD("\"x\":1e999"), 1, 2), HEADER(FIELD("\"x\":01"), 1, 2),
	HEADER(FIELD("\"x\":1."), 1, 2), HEADER(FIELD("\"x\":.5"), 1, 2),
	HEADER(FIELD("\"x\":1e"), 1, 2), HEADER(FIELD("\"x\":-"), 1, 2),
	HEADER(FIELD("\"x\":0x10"), 1, 2), HEADER(FIELD("\"x\":nan"), 1, 2),
	HEADER(FIELD("\"x\":nulls"), 1, 2), HEADER(FIELD("\"x\":"), 1, 2),
	HEADER(FIELD("\"x\":[1,]"), 1, 2), HEADER(FIELD("\"x\":[1 2]"), 1, 2),
	HEADER(FIELD("\"x\":{1:2}"), 1, 2), HEADER(FIELD("\"x\":[}"), 1, 2),
	HEADER(FIELD("\"x\":\"\\ud83d\""), 1, 2), HEADER(FIELD("x:1"), 1, 2),
	HEADER(FIELD("\"x\":" FIVE(FIVE(FIVE("["))) FIVE(FIVE(FIVE("]")))), 1, 0),
	HEADER(FIELD("\"x\":" FIVE(FIVE(FIVE("["))) "{}" FIVE(FIVE(FIVE("]")))), 1, 2),
};

#endif
