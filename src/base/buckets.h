/* buckets.h: parts of a buffer, cut into buckets of neighbours */
#ifndef BASE_BUCKETS_H
#define BASE_BUCKETS_H

#include <stdbool.h>

/* most: elements of a bucket; the rest is zero before the first part */
typedef struct BucketCutter {
	double most, end;                /* end: of the open bucket */
	bool open;
} BucketCutter;

/* takes the parts from the last to the first, each below the one before: does
 * this one, of count elements from offset on, begin a bucket? If not it joins the
 * open one, which then reaches from offset to end */
static inline bool bucket_begins(BucketCutter *c, double offset, double count)
{
	bool joins = c->open && c->end - offset <= c->most;
	if (!joins)
		c->end = offset + count;
	c->open = true;
	return !joins;
}

#endif
