/* program.h: cmocka, and programs that run a list of its tests */
#ifndef TESTS_PROGRAM_H
#define TESTS_PROGRAM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

// names that cmocka 2 has taken back or taken
#undef assert_in_range
#undef assert_not_in_range
#undef assert_in_set
#undef assert_not_in_set
#undef stop
#pragma GCC poison assert_in_range assert_not_in_range assert_in_set
#pragma GCC poison assert_not_in_set stop

#define TESTS(...) TESTS_BETWEEN(NULL, NULL, __VA_ARGS__)
/* begin(state) runs before the first test and end(state) after the last; either
 * may be NULL */
#define TESTS_BETWEEN(begin, end, ...)                             \
	int main(void)                                             \
	{                                                          \
		const struct CMUnitTest tests[] = { __VA_ARGS__ }; \
		return cmocka_run_group_tests(tests, begin, end);  \
	}

#endif
