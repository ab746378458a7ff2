/* options.h: one table drives parsing, --help and the error messages */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

typedef enum { OPT_FLAG, OPT_INT, OPT_REAL, OPT_TEXT, OPT_CHOICE } OptionKind;

typedef struct Option {
	const char *name;  /* "context", given as --context N; NULL ends the table */
	OptionKind kind;
	/* points to a bool, long, double, const char * or int (the index of a
	 * choice; -1: none chosen), in the order of OptionKind; what it holds
	 * before parsing is the default */
	void *value;
	/* OPT_CHOICE: all choices, as "fp32|bf16"; OPT_INT: the accepted range, as
	 * "1..65536"; else a word for the value in --help */
	const char *expects;
	const char *help;
} Option;

/* Parses argv and stores the values. Accepts --name value and --name=value, and
 * integers with K, M or G for powers of 1024. --help prints the table: exit 0.
 * An unknown option: exit 2. Moves the positional arguments behind the options
 * and returns the index of the first. Calls check_output_at_exit. */
int options_parse(const Option *options, int argc, char **argv,
	const char *about);

/* the index of name in a list like "fp32|bf16|fp16"; -1 if it is not there */
int options_choice(const char *choices, const char *name);

#endif
