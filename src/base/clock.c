#define _GNU_SOURCE
#include "base/clock.h"

#include <time.h>

double clock_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

// wait without counting standstills
Patience patience_of(double ms)
{
	return (Patience){ ms, clock_ms() };
}

double patience_left(Patience *p)
{
	double now = clock_ms(), passed = now - p->seen_ms;
	p->seen_ms = now;
	p->left_ms -= passed < 2 * LOOK_MS ? passed : 2 * LOOK_MS;
	if (p->left_ms < 0)
		p->left_ms = 0;
	return p->left_ms;
}

int patience_poll_ms(Patience *p)
{
	double left = patience_left(p);
	return left < LOOK_MS ? (int)left + 1 : LOOK_MS;
}
