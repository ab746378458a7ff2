#include "base/prefetch.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/grow.h"

// make and free a prefetcher
static void empty_slots(Prefetcher *p)
{
	for (int i = 0; i <= p->ahead; i++)
		p->holds[i] = -1;
}

Prefetcher prefetcher_new(int ahead, void (*fetch)(void *self, int thing),
	void *self)
{
	Prefetcher p = { .ahead = ahead, .current = -1, .fetch = fetch,
		.self = self, .holds = need(malloc((ahead + 1) * sizeof *p.holds)) };
	empty_slots(&p);
	return p;
}

void prefetcher_free(Prefetcher *p)
{
	free(p->holds);
	free(p->order);
	*p = (Prefetcher){ 0 };
}

int prefetcher_slot(const Prefetcher *p, int thing)
{
	return thing % (p->ahead + 1);
}

// fetch what comes next
static bool slot_needed_earlier(const Prefetcher *p, int i)
{
	int slot = prefetcher_slot(p, p->order[i]);
	for (int j = p->at; j < i; j++)
		if (prefetcher_slot(p, p->order[j]) == slot
			&& p->order[j] != p->order[i])
			return true;
	return p->current >= 0 && p->current != p->order[i]
		&& prefetcher_slot(p, p->current) == slot;
}

static void fetch_into_slot(Prefetcher *p, int thing)
{
	int *holds = &p->holds[prefetcher_slot(p, thing)];
	if (*holds == thing)
		return;
	p->fetch(p->self, thing);
	*holds = thing;
}

static void fetch_ahead(Prefetcher *p, int most)
{
	for (int i = p->at; i < p->norder && i < p->at + most; i++) {
		if (slot_needed_earlier(p, i))
			break;
		fetch_into_slot(p, p->order[i]);
	}
}

// expect a thing
void prefetcher_expect(Prefetcher *p, int i, int thing)
{
	p->order = grow(p->order, i, sizeof *p->order);
	p->order[i] = thing;
	p->norder = i + 1;
}

// visit a thing
void prefetcher_visit(Prefetcher *p, int thing)
{
	if (thing != p->current) {
		if (p->at == p->norder || p->order[p->at] != thing)
			prefetcher_expect(p, p->at, thing);
		p->at++;
		p->current = thing;
	}
	fetch_into_slot(p, thing);
	fetch_ahead(p, p->ahead);
}

// begin passes
void prefetcher_begin_pass(Prefetcher *p)
{
	p->at = 0;
	p->current = -1;
}

void prefetcher_renew(Prefetcher *p)
{
	empty_slots(p);
	prefetcher_begin_pass(p);
	fetch_ahead(p, p->ahead + 1);
}
