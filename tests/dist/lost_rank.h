/* lost_rank.h: ranks train until one is lost, and the others end */
#ifndef TESTS_LOST_RANK_H
#define TESTS_LOST_RANK_H

#include "tests/dist/strategies.h"

// train until something happens
static inline void train(const Place *p)
{
	const StrategyFault *f = p->context;
	bool faulty = p->rank == f->rank;
	TrainedRank t;
	Device *d;
	Comm *c = join(p, f->device, &(CommSettings){ .transport = f->transport,
		.limit_s = f->limit_s }, &d);
	build(&t, d, c, f->strategy);
	if (faulty && f->happens)
		happen_after(f->happens, f->after_us);
	for (int step = 0;; step++) {
		Batch b = batch_random(B, shape.context, shape.vocab, step);
		if (faulty && !f->happens && step == ASTRAY)
			go_astray(&t);
		double loss = timed_step(t.m, t.o, &b, MODE_TRAIN).loss;
		if (faulty && !f->happens && step == ASTRAY && t.ddp)
			t.m->hooks = real_hooks;
		if (!f->happens)
			comm_sum(c, loss);
		batch_free(&b);
	}
}

// all ranks end, and one names the fault
static inline bool names_operation(const char *said)
{
	static const char *const others[] = { "gather ", "sum ", "maximum ",
		"barrier ", "comparison of orders " };
	bool found = false;
	for (int i = 0; i < NCOLLECTIVES; i++)
		found |= strstr(said, collective_names[i]) != NULL;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		found |= strstr(said, others[i]) != NULL;
	return found;
}

/* the faulty rank ends with `status`, the others with 1 */
static inline void expect_end(StrategyFault *f, int status, const char *want,
	double limit_ms)
{
	Ended ended[MOST];
	bool named = false;
	double start_ms = clock_ms();
	run_ranks(f->ranks, ended, train, f);
	// check how each rank ends
	for (int r = 0; r < f->ranks; r++) {
		const char *said = ended[r].said;
		if (ended[r].status != (r == f->rank ? status : 1))
			fail_msg("%s: rank %d ends with %d: %s", names[f->strategy], r,
				ended[r].status, said);
		if (r == f->rank && status != 1)
			continue;
		check_line(names[f->strategy], said, r);
		named |= strstr(said, want) && names_operation(said);
	}
	if (!named)
		fail_msg("%s: nobody says '%s' and where: '%s'", names[f->strategy],
			want, ended[!f->rank].said);
	assert_true(clock_ms() - start_ms < limit_ms);
}

// all ranks end, and one names the fault
/* draws which rank it is, and when it happens */
static inline void lose_rank(StrategyFault f, int most_us, int status,
	const char *want, double limit_ms)
{
	uint64_t bits = random_bits((uint64_t)clock_ms(), 0, f.strategy);
	char words[64];
	f.rank = (int)(bits % f.ranks);
	f.after_us = 1 + (int)(bits >> 33) % most_us;
	snprintf(words, sizeof words, want, f.rank);
	expect_end(&f, status, words, limit_ms);
}

#endif
