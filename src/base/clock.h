/* clock.h: the host's clock */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

/* never goes back; its zero means nothing */
double clock_ms(void);

/* Milliseconds that are left to wait. Between two looks at most twice
 * LOOK_MS pass, so that a machine or process that stood still has not waited. */
typedef struct Patience {
	double left_ms, seen_ms;         /* seen_ms: when it was looked at */
} Patience;

enum { LOOK_MS = 250 };

Patience patience_of(double ms);         /* INFINITY: for ever */
double patience_left(Patience *p);       /* a look; 0: it is over */
/* a look; how long to poll until the next one, in ms, at least 1 */
int patience_poll_ms(Patience *p);

#endif
