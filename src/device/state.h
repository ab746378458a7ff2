/* state.h: a device, its counters and settings */
#ifndef DEVICE_STATE_H
#define DEVICE_STATE_H

#include "device/backend.h"
#include "device/deferral.h"
#include "device/memory_event.h"

/* memory that takes the place of the pool, see device_lend */
typedef struct Loan {
	bool lent;
	char *at;
	size_t nbytes, used;
} Loan;

typedef struct Device {
	const Backend *backend;
	void *state;                                         /* the backend's */
	/* bytes that may be reserved: those that the backend had when the device
	 * was opened, unless a program sets less */
	size_t limit;
	/* bytes in use, by category */
	size_t active[NCATEGORIES], peak[NCATEGORIES];
	size_t total, total_peak;                            /* over all categories */
	/* bytes of all blocks of the pool, in use or free, and of what libraries
	 * have allocated */
	size_t reserved;
	/* ms that the host has spent on opening the device, in the backend's alloc,
	 * on having libraries choose algorithms, and in calls that load
	 * libraries */
	double open_ms, alloc_ms, choice_ms, library_ms;
	void (*on_oom)(size_t need, size_t have, const char *what);
	/* events while recording; those for which the log had no room */
	MemoryEvent *log;
	size_t nlog, unlogged;
	/* blocks, in use and free */
	struct Pool *pool;
	Loan loan;
	/* the objects of device_keep, the oldest first */
	struct KeptObject *kept;
	int nkept;
	// declare what watches and steers the work
	RangePath outside, *range;
	/* a watcher, told where a range begins (its name) and ends (NULL); NULL: there
	 * is none */
	void (*watch)(void *watcher, const char *name);
	void *watcher;
	/* a watcher, told before (begins) and behind each wait of the compute queue for
	 * the other one; NULL: there is none */
	void (*watch_wait)(void *watcher, bool begins);
	void *wait_watcher;
	bool recording;
	/* work is being captured; graphs that exist */
	bool capturing;
	int graphs;
	/* multiprocessors of a GPU that matmuls queued from now on leave free */
	int spare_sms;
	/* algorithms of a GPU's matmuls; what the list lacks is timed and added.
	 * NULL: those that the library proposes first. Set before the first matmul */
	struct GemmChoices *gemms;
	Deferral *deferral;                /* NULL: all work has been queued */
	/* operations in place of the backend's; NULL: the backend's */
	const struct Ops *ops;
	double start_ms;
} Device;

#endif
