#include "cases/collective_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

CollectiveWish collective_wish = { .dtype = -1, .runs = 10 };

// choose configurations and sizes
bool collective_in_job(void)
{
	int rank, ranks;
	return link_launched(&rank, &ranks);
}

bool collective_wanted(const char *transport, Type type, long ranks)
{
	const CollectiveWish *w = &collective_wish;
	return (w->transport == NULL || strcmp(w->transport, transport) == 0)
		&& (w->dtype < 0 || w->dtype == (int)type)
		&& (w->ranks == 0 || w->ranks == ranks);
}

// read a list of sizes
static int parse_sizes(long *sizes, const char *list)
{
	enum { LEAST = 4 };
	const long most = 1L << 36;
	int n = 0;
	char *end = NULL;
	for (const char *at = list; n == 0 || *at++; at = end) {
		long size = strtol(at, &end, 10);
		if (end == at || (*end && *end != ',') || size < LEAST || size > most
				|| n == MOST_SIZES)
			usage_error("option --bytes: '%s' is not a list of up to %d "
				"integers in %d..%ld, commas between", list, MOST_SIZES, LEAST,
				most);
		sizes[n++] = size;
		if (*end == '\0')
			break;
	}
	return n;
}

// list the sizes of a table
/* sets the sizes of --bytes as they were given; else ours, ascending, of at most
 * so many bytes each; returns how many */
static int collective_sizes(long sizes[MOST_SIZES], double most)
{
	static const double all[] = { 512e3, 1e6, 3e6, 10e6, 30e6, 50e6, 100e6, 300e6,
		500e6, 1e9 };
	if (collective_wish.bytes)
		return parse_sizes(sizes, collective_wish.bytes);
	int n = 0;
	if (!harness_on_gpu() && !collective_wish.full && most > 10e6)
		most = 10e6;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (all[i] <= most)
			sizes[n++] = (long)all[i];
	return n;
}

// refuse a plan without rows
void collective_expect(int n)
{
	long sizes[MOST_SIZES];
	collective_sizes(sizes, 1e9);
	if (n == 0)
		usage_error("no row has this transport, format and number of ranks "
			"here");
}

// run a configuration
void collective_run(Row *row, int collective, const char *transport, Type type,
	double most)
{
	long sizes[MOST_SIZES];
	int nsizes = collective_sizes(sizes, most);
	Device *device = harness_device();
	Comm *comm = harness_comm(row, device, &(CommSettings){
		.transport = transport, .limit_s = 120 });
	if (strcmp(comm_transport(comm), transport) != 0)
		die("the transport is %s, not %s", comm_transport(comm), transport);
	collective_rows(row, &(CollectiveCase){ .comm = comm, .device = device,
		.collective = collective, .type = type,
		.runs = (int)collective_wish.runs,
		.salt = (uint64_t)harness_seed << 32 }, sizes, nsizes);
	comm_close(&comm);
	device_close(&device);
}

// describe a configuration to a peer
PeerCase collective_peer_case(const char *device, Type type, long ranks,
	double most, long sizes[MOST_SIZES])
{
	enum { LIMIT_S = 240 };
	int n = collective_sizes(sizes, most);
	return (PeerCase){ .device = device, .dtype = type_names[type],
		.ranks = ranks, .runs = collective_wish.runs, .limit_s = LIMIT_S,
		.sizes = sizes, .nsizes = n };
}
