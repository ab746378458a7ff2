/* the simulation of queues against small steps of time, and schedules by hand */
#include <math.h>
#include <stdbool.h>
#include <time.h>

#include "base/random.h"
#include "estimate/schedule.h"
#include "tests/base/program.h"

static const QueueStretch none = { 1, 1 };
static uint64_t seed, drawn;

static double uniform(void)
{
	return random_uniform(seed, 7, drawn++);
}

static bool close_to(double a, double b)
{
	return fabs(a - b) <= 1e-9 * (1 + fabs(b));
}

// schedules by hand
static void one_queue_adds_up(void **state)
{
	QueueSchedule s = { 0 };
	assert_true(schedule_run(&s, none) == 0);
	double sum = 0;
	for (int i = 0; i < 100; i++) {
		double ms = i % 7 ? uniform() : 0;
		schedule_add(&s, COMM_QUEUE, ms, i - 1, -1);
		sum += ms;
	}
	assert_true(close_to(schedule_run(&s, (QueueStretch){ 3, 5 }), sum));
	assert_true(close_to(schedule_sum(&s, COMM_QUEUE), sum));
	assert_true(schedule_sum(&s, COMPUTE_QUEUE) == 0);
	schedule_free(&s);
}

// test queues that run side by side and stretch
static void queues_run_side_by_side(void **state)
{
	QueueSchedule s = { 0 };
	int a = schedule_add(&s, COMPUTE_QUEUE, 2, -1, -1),
		b = schedule_add(&s, COMM_QUEUE, 5, a, -1),
		c = schedule_add(&s, COMPUTE_QUEUE, 1, -1, -1),
		d = schedule_add(&s, COMPUTE_QUEUE, 4, b, -1);
	assert_true(schedule_run(&s, none) == 11);
	assert_true(s.tasks[a].start_ms == 0 && s.tasks[a].end_ms == 2);
	assert_true(s.tasks[b].start_ms == 2 && s.tasks[b].end_ms == 7);
	assert_true(s.tasks[c].start_ms == 2 && s.tasks[c].end_ms == 3);
	assert_true(s.tasks[d].start_ms == 7 && s.tasks[d].end_ms == 11);
	schedule_free(&s);
}

static void each_stretches_the_other(void **state)
{
	QueueSchedule s = { 0 };
	schedule_add(&s, COMPUTE_QUEUE, 6, -1, -1);
	schedule_add(&s, COMM_QUEUE, 4, -1, -1);
	assert_true(close_to(schedule_run(&s, (QueueStretch){ 1.5, 2 }),
		8 + 6 - 8 / 1.5));
	assert_true(close_to(s.tasks[1].end_ms, 8));
	schedule_free(&s);
}

/* two queues that send do not stretch each other */
static void tensor_queue_stretches_too(void **state)
{
	QueueSchedule s = { 0 };
	schedule_add(&s, TENSOR_QUEUE, 3, -1, -1);
	schedule_add(&s, COMM_QUEUE, 3, -1, -1);
	assert_true(schedule_run(&s, (QueueStretch){ 1.5, 2 }) == 3);
	schedule_add(&s, COMPUTE_QUEUE, 4, -1, -1);
	assert_true(close_to(schedule_run(&s, (QueueStretch){ 1.5, 2 }), 6));
	schedule_free(&s);
}

// test equal buckets by formula
static void equal_buckets_by_formula(void **state)
{
	for (int trial = 0; trial < 50; trial++) {
		QueueSchedule s = { 0 };
		int n = 1 + (int)(20 * uniform());
		double a = 0.1 + uniform(), b = 0.1 + uniform();
		for (int i = 0; i < n; i++) {
			int task = schedule_add(&s, COMPUTE_QUEUE, a, -1, -1);
			schedule_add(&s, COMM_QUEUE, b, task, -1);
		}
		assert_true(close_to(schedule_run(&s, none), b <= a ? n * a + b
			: a + n * b));
		schedule_free(&s);
	}
}

// simulate in small steps
enum { TASKS = 24 };

/* returns when the last task ends, in steps of dt */
static double in_small_steps(const QueueSchedule *s, QueueStretch stretch,
	double dt)
{
	double left[TASKS], now = 0;
	int open = s->n;
	for (int i = 0; i < s->n; i++)
		left[i] = s->tasks[i].ms;
	for (; open > 0; now += dt) {
		int run[SCHEDULE_QUEUES] = { -1, -1, -1 };
		for (int i = s->n - 1; i >= 0; i--)
			if (left[i] > 0)
				run[s->tasks[i].queue] = i;
		for (int q = 0; q < SCHEDULE_QUEUES; q++)
			for (int k = 0; k < MOST_AFTER && run[q] >= 0; k++) {
				int after = s->tasks[run[q]].after[k];
				if (after >= 0 && left[after] > 0)
					run[q] = -1;
			}
		bool computes = run[COMPUTE_QUEUE] >= 0,
			sends = run[COMM_QUEUE] >= 0 || run[TENSOR_QUEUE] >= 0;
		for (int q = 0; q < SCHEDULE_QUEUES; q++) {
			double slow = !computes || !sends ? 1 : q == COMPUTE_QUEUE
				? stretch.compute : stretch.comm;
			if (run[q] >= 0 && (left[run[q]] -= dt / slow) <= 0)
				open--;
		}
	}
	return now;
}

// compare random tasks with small steps
static void random_tasks_in_small_steps(void **state)
{
	const double dt = 1e-4;
	for (int trial = 0; trial < 20; trial++) {
		QueueSchedule s = { 0 };
		QueueStretch stretch = { 1 + uniform(), 1 + uniform() };
		for (int i = 0; i < TASKS; i++)
			schedule_add(&s, (int)(SCHEDULE_QUEUES * uniform()),
				0.01 + uniform(), (int)(i * uniform()) - 1,
				(int)(i * uniform()) - 1);
		double wanted = in_small_steps(&s, stretch, dt),
			got = schedule_run(&s, stretch);
		if (!(fabs(got - wanted) <= TASKS * 2 * dt))
			fail_msg("seed %lu, trial %d: %g, in small steps %g",
				(unsigned long)seed, trial, got, wanted);
		schedule_free(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_queue_adds_up),
		cmocka_unit_test(queues_run_side_by_side),
		cmocka_unit_test(each_stretches_the_other),
		cmocka_unit_test(tensor_queue_stretches_too),
		cmocka_unit_test(equal_buckets_by_formula),
		cmocka_unit_test(random_tasks_in_small_steps),
	};
	seed = (uint64_t)time(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
