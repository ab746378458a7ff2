/* a model in parts on several GPUs */
#include "tests/dist/parts.h"

static void try_gpus(int ranks, int copies)
{
	static const Shape shapes[] = { { 31, 6, 12, 10, 3, 5, 4, 10000 },
		{ 96, 24, 64, 128, 2, 4, 16, 10000 } };
	for (int i = 0; i < 4; i++) {
		Parts p = { .ranks = ranks, .copies = copies, .shape = shapes[i % 2],
			.B = 4, .T = shapes[i % 2].context, .sgd = true, .passes = 1 + i / 2,
			.steps = 4, .recompute = i / 2, .gpus = true, .tolerance = 0x1p-14,
			.replayed = i < 2, .keep_norms = i == 1 || i == 3 };
		compare_job(&p);
	}
}

static void parts_on_gpus_train_as_one_does(void **state)
{
	if (!have_gpus(2))
		skip();
	try_gpus(2, 1);
	if (have_gpus(3))
		try_gpus(3, 1);
	if (have_gpus(4)) {
		try_gpus(4, 1);
		try_gpus(2, 2);
	}
}

TESTS(cmocka_unit_test(parts_on_gpus_train_as_one_does))
