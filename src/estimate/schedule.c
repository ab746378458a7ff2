#include "estimate/schedule.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/grow.h"

// add tasks, and add up a queue
int schedule_add(QueueSchedule *s, int queue, double ms, int after, int also)
{
	assert(after < s->n && also < s->n && ms >= 0);
	s->tasks = grow(s->tasks, s->n, sizeof *s->tasks);
	s->tasks[s->n] = (QueueTask){ queue, ms, { after, also }, NAN, NAN };
	return s->n++;
}

double schedule_sum(const QueueSchedule *s, int queue)
{
	double sum = 0;
	for (int i = 0; i < s->n; i++)
		sum += s->tasks[i].queue == queue ? s->tasks[i].ms : 0;
	return sum;
}

void schedule_free(QueueSchedule *s)
{
	free(s->tasks);
	*s = (QueueSchedule){ 0 };
}

// advance to the next event
typedef struct QueueHead { int task; double left; bool runs; } QueueHead;

static bool ended(const QueueSchedule *s, int task)
{
	return task < 0 || !isnan(s->tasks[task].end_ms);
}

/* the queue's next task, number `from` or later; task is s->n if there is
 * none */
static QueueHead head_from(const QueueSchedule *s, int queue, int from)
{
	while (from < s->n && s->tasks[from].queue != queue)
		from++;
	return (QueueHead){ from, from < s->n ? s->tasks[from].ms : 0, false };
}

/* decides which heads run now, and returns how many */
static int start_tasks(QueueSchedule *s, QueueHead *heads, double now)
{
	int n = 0;
	for (int q = 0; q < SCHEDULE_QUEUES; q++) {
		QueueTask *t = &s->tasks[heads[q].task];
		heads[q].runs = heads[q].task < s->n && ended(s, t->after[0])
			&& ended(s, t->after[1]);
		if (heads[q].runs && isnan(t->start_ms))
			t->start_ms = now;
		n += heads[q].runs;
	}
	return n;
}

// run a schedule
double schedule_run(QueueSchedule *s, QueueStretch stretch)
{
	QueueHead heads[SCHEDULE_QUEUES];
	double now = 0;
	for (int i = 0; i < s->n; i++)
		s->tasks[i].start_ms = s->tasks[i].end_ms = NAN;
	for (int q = 0; q < SCHEDULE_QUEUES; q++)
		heads[q] = head_from(s, q, 0);
	for (int running; (running = start_tasks(s, heads, now)) > 0;) {
		bool computes = heads[COMPUTE_QUEUE].runs, both = computes && running > 1;
		double rate[SCHEDULE_QUEUES], dt = INFINITY;
		// find each queue's rate and the time to the next event
		for (int q = 0; q < SCHEDULE_QUEUES; q++) {
			rate[q] = !both ? 1 : q == COMPUTE_QUEUE ? 1 / stretch.compute
				: 1 / stretch.comm;
			if (heads[q].runs)
				dt = fmin(dt, heads[q].left / rate[q]);
		}
		// advance the queues by that time
		now += dt;
		for (int q = 0; q < SCHEDULE_QUEUES; q++) {
			QueueHead *h = &heads[q];
			if (!h->runs)
				continue;
			bool done = h->left / rate[q] <= dt * (1 + 1e-12);
			h->left -= dt * rate[q];
			if (done) {
				s->tasks[h->task].end_ms = now;
				*h = head_from(s, q, h->task + 1);
			}
		}
	}
	return now;
}
