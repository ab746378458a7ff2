/* a listener hears the hooks that it wants, and nothing else */
#include "model/hooks.h"
#include "tests/base/program.h"

enum { KINDS = AFTER_UPDATE + 1 };
static HookCall heard;
static int calls;

static void hear(void *self, const HookCall *call)
{
	assert_true(self == &calls);
	heard = *call;
	calls++;
}

static const HookCall made[KINDS] = { { BEFORE_UNIT, 3, 1, true },
	{ AFTER_UNIT, 4, 1, false }, { GRADIENT_READY, 5, 6, true },
	{ .kind = BEFORE_UPDATE }, { .kind = AFTER_UPDATE } };

static void wanted_calls_are_heard_as_they_are_made(void **state)
{
	HookListener listener = { &calls, hear };
	for (int set = 0; set < 1 << KINDS; set++) {
		bool wanted[KINDS];
		for (int k = 0; k < KINDS; k++)
			wanted[k] = set >> k & 1;
		Hooks h = hooks_heard_by(&listener, wanted);
		for (int k = 0; k < KINDS; k++) {
			calls = 0;
			hooks_call(&h, &made[k]);
			assert_int_equal(calls, wanted[k]);
			assert_int_equal(hooks_have(&h, k), wanted[k]);
			assert_true(!wanted[k] || (heard.kind == made[k].kind
				&& heard.first == made[k].first
				&& heard.count == made[k].count
				&& heard.backward == made[k].backward));
		}
	}
}

TESTS(
	cmocka_unit_test(wanted_calls_are_heard_as_they_are_made))
