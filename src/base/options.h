/* options.h: one table drives parsing, --help and the error messages */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

typedef enum { OPT_FLAG, OPT_INT, OPT_REAL, OPT_TEXT, OPT_CHOICE } OptionKind;

typedef struct Option {
	/* "context", given as --context N; NULL ends the table */
	const char *name;
	OptionKind kind;
	/* bool, long, double, const char *, int (a choice's index, -1: none); the
	 * default */
	void *value;
	/* OPT_CHOICE: "fp32|bf16"; OPT_INT: "1..65536"; else a word for --help */
	const char *expects;
	const char *help;
} Option;

/* Accepts --name value and --name=value, integers with K, M or G. --help prints
 * the table and exits 0;
 * anything else that is not in the table exits 2. Moves the positional
 * arguments behind the options, in their order, and returns the index of the
 * first. Output that cannot be written is an error from now on */
int options_parse(const Option *options, int argc, char **argv,
	const char *about);

/* position of name in "fp32|bf16|fp16", or -1 */
int options_choice(const char *choices, const char *name);

#endif
