/* prefetch.h: things that are fetched into a few slots before they are visited */
#ifndef BASE_PREFETCH_H
#define BASE_PREFETCH_H

typedef struct Prefetcher {
	int ahead;                       /* things that are fetched in advance */
	int *holds;                      /* (ahead + 1) of slots; -1: nothing */
	/* order[0..norder) are the things as a pass visits them, as far as is known;
	 * order[at - 1] is current; -1: no thing is */
	int *order, norder, at, current;
	void (*fetch)(void *self, int thing);    /* into its slot */
	void *self;
} Prefetcher;

Prefetcher prefetcher_new(int ahead, void (*fetch)(void *self, int thing),
	void *self);
void       prefetcher_free(Prefetcher *p);
int        prefetcher_slot(const Prefetcher *p, int thing);
/* visit number i of a pass is expected to be this one, and none after it; 0 <= i
 * <= norder */
void       prefetcher_expect(Prefetcher *p, int i, int thing);
void       prefetcher_begin_pass(Prefetcher *p);
/* fetches the thing, unless its slot has it, and then those that come next */
void       prefetcher_visit(Prefetcher *p, int thing);
/* what slots have is out of date: fetches the first things of the next pass */
void       prefetcher_renew(Prefetcher *p);

#endif
