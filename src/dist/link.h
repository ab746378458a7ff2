/* link.h: messages between the ranks of a job, in the memory of hosts */
#ifndef DIST_LINK_H
#define DIST_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// declare a link
typedef struct Link {
	const char *name;                /* "tcp", "mpi", "part" (link_split) */
	int rank, ranks;
	/* place among the ranks on this host. In a part of a job of several hosts
	 * each rank counts as alone: 0 of 1 */
	int local_rank, local_ranks;
	/* number and name of the collective that messages belong to, alike on all
	 * ranks; set by whoever calls exchange */
	uint64_t number;
	const char *doing;
	/* sends nout bytes to rank `to` while it receives nin bytes from rank
	 * `from`, which may be the same; 0 bytes are no message. Ends the program,
	 * naming the rank and what it was doing, when the other rank is lost, or
	 * sends another number of bytes or for another collective */
	void (*exchange)(struct Link *link, int to, const void *out, size_t nout,
		int from, void *in, size_t nin);
	/* has the rank closed its end, or ended? Any thread may ask at any time.
	 * NULL: nobody can tell */
	bool (*lost)(const struct Link *link, int rank);
	void (*close)(struct Link *link);
} Link;

// declare where ranks meet
/* the meeting place of the ranks: rank 0 listens, the others know the port */
typedef struct Meeting {
	char host[256];                  /* of rank 0: a name or an address */
	int port;
	int listener;                    /* a listening socket; -1: rank 0 makes it */
} Meeting;

/* a meeting on this host, at a free port; the ranks are forked afterwards */
Meeting meeting_here(void);
/* closes the listener, in a process that is no rank */
void    meeting_close(Meeting *m);

// declare how links are opened and split
/* waits at most limit_s seconds for the ranks to meet, and as long again until
 * they are connected; ends the program, naming those missing */
Link   *link_tcp(int rank, int ranks, const Meeting *meeting, int limit_s);
/* the link of the job that mpirun or srun started; NULL: this process is in
 * none. All ranks call it. MPI ends when the last of its links is closed */
Link   *link_mpi(void);
/* did mpirun or srun start this process, as one of several? Sets its rank and
 * how many ranks there are */
bool    link_launched(int *rank, int *ranks);
void    link_close(Link **link);
/* a link of the ranks that give the same colour, in their order. All ranks of
 * the whole call it, and it stays the caller's, to be closed after the parts.
 * What the parts of a whole send takes turns, as collectives of one queue do */
Link   *link_split(Link *whole, int colour);

#endif
