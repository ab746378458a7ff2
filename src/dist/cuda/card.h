/* card.h: which GPU each rank of a job has */
#ifndef DIST_CUDA_CARD_H
#define DIST_CUDA_CARD_H

#include "device/device.h"
#include "dist/link.h"

typedef struct Card {
	char host[64];
	unsigned char gpu[16];           /* its UUID */
	int present;                     /* is it a GPU? */
} Card;

/* in the order of ranks; the caller frees it. All ranks call it */
Card       *card_gather(Link *link, const Device *device);
/* NULL, if each rank has a GPU of its own; else what is wrong, the same on all
 * ranks */
const char *card_conflict(const Card *cards, int ranks);
/* NULL, if each rank sees the GPUs of all others, reaches their memory, and may
 * use more than one connection to its own; else why not, the same on all ranks,
 * which all call it */
const char *card_unreached(Link *link, const Card *cards);
/* the host waits for all ranks */
void        card_meet(Link *link, const char *doing);

#endif
