/* schedule.h: queues of tasks that run beside one another, simulated exactly */
#ifndef ESTIMATE_SCHEDULE_H
#define ESTIMATE_SCHEDULE_H

/* COMM_QUEUE: collectives of data parallelism; TENSOR_QUEUE: those for which
 * computing waits */
enum { COMPUTE_QUEUE, COMM_QUEUE, TENSOR_QUEUE, SCHEDULE_QUEUES };
enum { MOST_AFTER = 2 };

typedef struct QueueTask {
	int queue;
	double ms;                       /* duration with nothing beside it */
	int after[MOST_AFTER];           /* tasks to wait for, or -1 */
	double start_ms, end_ms;         /* found by schedule_run */
} QueueTask;

typedef struct QueueSchedule {
	QueueTask *tasks;
	int n;
} QueueSchedule;

/* the factors, at least 1, by which tasks take longer beside others:
 * computing while any other queue is busy, and any other queue while
 * computing is busy */
typedef struct QueueStretch {
	double compute, comm;
} QueueStretch;

/* adds a task to a queue, which runs its tasks in the order in which they
 * are added. after, also: earlier tasks to wait for, or -1. Returns the
 * task's number */
int    schedule_add(QueueSchedule *s, int queue, double ms, int after, int also);
/* runs all tasks and returns when the last one ends, in ms from the start */
double schedule_run(QueueSchedule *s, QueueStretch stretch);
/* the sum of ms over the tasks of a queue */
double schedule_sum(const QueueSchedule *s, int queue);
void   schedule_free(QueueSchedule *s);

#endif
