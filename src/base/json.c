#include "base/json.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { DEEPEST = 127 };

// scan the tokens of JSON
_Noreturn void json_damaged(const Json *f, size_t at,
	const char *expected)
{
	usage_error("%s: offset %zu: expected %s", f->path, at, expected);
}

/* the character at f->at behind blanks, not taken; zero at the header's end */
char json_peek(Json *f)
{
	while (f->at < f->end && strchr(" \t\r\n", f->map[f->at]) && f->map[f->at])
		f->at++;
	return f->at < f->end ? f->map[f->at] : '\0';
}

/* takes the character c; anything else is damage */
void json_expect(Json *f, char c)
{
	char text[] = { '\'', c, '\'', '\0' };
	if (json_peek(f) != c)
		json_damaged(f, f->at, text);
	f->at++;
}

/* takes the next character if it is c; returns whether it was */
bool json_accept(Json *f, char c)
{
	bool found = json_peek(f) == c;
	f->at += found;
	return found;
}

/* how many of the n bytes at s its first character has; 0: it is not UTF-8 */
static size_t utf8_length(const unsigned char *s, size_t n)
{
	size_t length = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2
		: s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
	if (length > n)
		return 0;
	for (size_t i = 1; i < length; i++)
		if (s[i] >> 6 != 2)
			return 0;
	/* no surrogates, nothing longer than needed, nothing above 0x10ffff */
	bool wrong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f)
		|| (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f);
	return wrong ? 0 : length;
}

// scan an escape
static uint32_t scan_four_digits(Json *f)
{
	uint32_t code = 0;
	for (int i = 0; i < 4; i++, f->at++) {
		const char *digits = "0123456789abcdef0123456789ABCDEF", *digit = NULL;
		if (f->at < f->end && f->map[f->at])
			digit = strchr(digits, f->map[f->at]);
		if (digit == NULL)
			json_damaged(f, f->at, "a hexadecimal digit");
		code = code * 16 + (uint32_t)(digit - digits) % 16;
	}
	return code;
}

/* the character of a \u escape, whose u has been taken */
static uint32_t scan_code(Json *f)
{
	size_t at = f->at - 2;
	uint32_t high = scan_four_digits(f), low = 0;
	if (high < 0xd800 || high > 0xdfff)
		return high;
	if (high < 0xdc00 && f->end - f->at > 2 && f->map[f->at] == '\\'
		&& f->map[f->at + 1] == 'u') {
		f->at += 2;
		low = scan_four_digits(f);
	}
	if (low < 0xdc00 || low > 0xdfff)
		json_damaged(f, at, "a pair of surrogates");
	return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

/* the character of the escape at f->at, which is taken */
static uint32_t scan_escape(Json *f)
{
	static const char letters[] = "\"\\/bfnrtu", meant[] = "\"\\/\b\f\n\r\t";
	const char *letter = NULL;
	f->at++;
	if (f->at < f->end && f->map[f->at])
		letter = strchr(letters, f->map[f->at]);
	if (letter == NULL)
		json_damaged(f, f->at, "one of \"\\/bfnrtu behind a backslash");
	f->at++;
	return *letter == 'u' ? scan_code(f) : (uint32_t)meant[letter - letters];
}

/* writes the character to s and returns how many bytes it takes */
static size_t put_utf8(char *s, uint32_t code)
{
	size_t n = code > 0 && code < 0x80 ? 1 : code < 0x800 ? 2
		: code < 0x10000 ? 3 : 4;
	static const unsigned char marks[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	for (size_t i = n; i-- > 1; code >>= 6)
		s[i] = (char)(0x80 | (code & 0x3f));
	s[0] = (char)(marks[n] | code);
	return n;
}

// scan a string
/* how many bytes stand before the quote that ends the string at f->at */
static size_t string_length(const Json *f)
{
	size_t n = 0;
	while (f->at + n < f->end && f->map[f->at + n] != '"')
		n += f->map[f->at + n] == '\\' ? 2 : 1;
	if (f->at + n >= f->end)
		json_damaged(f, f->end, "the end of a string");
	return n;
}

/* the string at f->at as UTF-8, which the caller frees */
char *json_string(Json *f)
{
	json_expect(f, '"');
	char *s = need(malloc(string_length(f) + 1)), *to = s;
	while (f->map[f->at] != '"') {
		if (f->map[f->at] == '\\') {
			to += put_utf8(to, scan_escape(f));
			continue;
		}
		size_t n = utf8_length((const unsigned char *)f->map + f->at,
			f->end - f->at);
		if (n == 0 || (unsigned char)f->map[f->at] < ' ')
			json_damaged(f, f->at, "a plain character in UTF-8");
		memcpy(to, f->map + f->at, n);
		to += n, f->at += n;
	}
	*to = '\0';
	f->at++;
	return s;
}

// scan a size
size_t json_size(Json *f)
{
	size_t value = 0;
	char c = json_peek(f);
	if (c < '0' || c > '9' || (c == '0' && f->at + 1 < f->end
		&& f->map[f->at + 1] >= '0' && f->map[f->at + 1] <= '9'))
		json_damaged(f, f->at, "a number");
	for (; f->at < f->end && f->map[f->at] >= '0' && f->map[f->at] <= '9';
		f->at++)
		if (__builtin_mul_overflow(value, 10, &value)
			|| __builtin_add_overflow(value, f->map[f->at] - '0', &value))
			json_damaged(f, f->at, "a number below 2^64");
	return value;
}

// skip a value of any kind
static bool skip_digits(Json *f)
{
	size_t from = f->at;
	while (f->at < f->end && f->map[f->at] >= '0' && f->map[f->at] <= '9')
		f->at++;
	return f->at > from;
}

/* takes the character at f->at, blanks not skipped, if it is one of these */
static bool take_one_of(Json *f, const char *these)
{
	bool found = f->at < f->end && f->map[f->at]
		&& strchr(these, f->map[f->at]);
	f->at += found;
	return found;
}

static void skip_number(Json *f)
{
	size_t at = f->at;
	take_one_of(f, "-");
	bool whole = take_one_of(f, "0") || skip_digits(f),
		fraction = !take_one_of(f, ".") || skip_digits(f);
	if (take_one_of(f, "eE")) {
		take_one_of(f, "+-");
		fraction &= skip_digits(f);
	}
	if (!whole || !fraction || f->at == f->end
		|| !memchr(" \t\r\n,]}", f->map[f->at], 7)
		|| !isfinite(strtod(f->map + at, NULL)))
		json_damaged(f, at, "a value");
}

/* the rest of a list or an object, whose bracket has been taken */
static void json_skip_members(Json *f, char end, int depth)
{
	if (depth > DEEPEST)
		json_damaged(f, f->at, "fewer lists inside lists");
	if (json_accept(f, end))
		return;
	do {
		if (end == '}') {
			free(json_string(f));
			json_expect(f, ':');
		}
		json_skip(f, depth);
	} while (json_accept(f, ','));
	json_expect(f, end);
}

/* depth: how many lists and objects the value stands in */
void json_skip(Json *f, int depth)
{
	static const char *const words[] = { "true", "false", "null" };
	char c = json_peek(f);
	for (int i = 0; i < 3; i++)
		if (f->end - f->at >= strlen(words[i])
			&& memcmp(f->map + f->at, words[i], strlen(words[i])) == 0) {
			f->at += strlen(words[i]);
			return;
		}
	if (c == '"')
		free(json_string(f));
	else if (json_accept(f, '[') || json_accept(f, '{'))
		json_skip_members(f, c == '[' ? ']' : '}', depth + 1);
	else
		skip_number(f);
}
