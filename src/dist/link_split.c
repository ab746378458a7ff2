/* a link of some of the ranks of another link */
#include <stdlib.h>

#include "base/error.h"
#include "dist/ring.h"

/* a link of some of the ranks of `whole` */
typedef struct SplitLink {
	Link link;
	Link *whole;
	int *ranks;                      /* their numbers in the whole */
} SplitLink;

// pass messages on to the whole link
static void part_exchange(Link *link, int to, const void *out, size_t nout,
	int from, void *in, size_t nin)
{
	SplitLink *p = (SplitLink *)link;
	p->whole->number = link->number;
	p->whole->doing = link->doing;
	p->whole->exchange(p->whole, p->ranks[to], out, nout, p->ranks[from], in,
		nin);
	p->whole->doing = NULL;
}

static bool part_lost(const Link *link, int rank)
{
	const SplitLink *p = (const SplitLink *)link;
	return p->whole->lost(p->whole, p->ranks[rank]);
}

static void part_close(Link *link)
{
	SplitLink *p = (SplitLink *)link;
	free(p->ranks);
	free(p);
}

// split a link by colour
Link *link_split(Link *whole, int colour)
{
	int *colours = need(malloc(whole->ranks * sizeof *colours));
	SplitLink *p = need(calloc(1, sizeof *p));
	p->link = (Link){ .name = "part", .exchange = part_exchange,
		.lost = whole->lost ? part_lost : NULL, .close = part_close };
	p->whole = whole;
	p->ranks = need(malloc(whole->ranks * sizeof *p->ranks));
	colours[whole->rank] = colour;
	link_gather(whole, colours, sizeof *colours);
	for (int r = 0; r < whole->ranks; r++)
		if (colours[r] == colour) {
			p->link.rank += r < whole->rank;
			p->ranks[p->link.ranks++] = r;
		}
	// find which ranks of the part are on this host
	bool together = whole->local_ranks == whole->ranks;
	p->link.local_rank = together ? p->link.rank : 0;
	p->link.local_ranks = together ? p->link.ranks : 1;
	free(colours);
	return &p->link;
}
