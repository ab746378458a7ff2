/* schedule.h: queues of tasks that run beside one another, simulated exactly */
#ifndef MODEL_SCHEDULE_H
#define MODEL_SCHEDULE_H

/* COMM_QUEUE: collectives of data parallelism; TENSOR_QUEUE: those for which
 * computing waits */
enum { COMPUTE_QUEUE, COMM_QUEUE, TENSOR_QUEUE, SCHEDULE_QUEUES };
enum { MOST_AFTER = 2 };

typedef struct QueueTask {
	int queue;
	double ms;                       /* alone */
	int after[MOST_AFTER];           /* earlier tasks, or -1 */
	double start_ms, end_ms;         /* found by schedule_run */
} QueueTask;

typedef struct QueueSchedule {
	QueueTask *tasks;
	int n;
} QueueSchedule;

/* by which factor a task takes longer while the other side is busy: computing
 * beside any other queue, and any other queue beside computing; at least 1 */
typedef struct QueueStretch {
	double compute, comm;
} QueueStretch;

/* a queue's tasks run in the order in which they are added. after, also: tasks
 * that were added before, or -1. Returns the task's number */
int    schedule_add(QueueSchedule *s, int queue, double ms, int after, int also);
/* returns when the last task ends, ms from the start */
double schedule_run(QueueSchedule *s, QueueStretch stretch);
/* the sum of the tasks of a queue, alone */
double schedule_sum(const QueueSchedule *s, int queue);
void   schedule_free(QueueSchedule *s);

#endif
