/* collectives over a link: sums, bits, shards, odd sizes */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/random.h"
#include "dist/ring.h"
#include "tests/base/program.h"
#include "tests/dist/ranks.h"

static const size_t sizes[] = { 0, 1, 2, 3, 5, 1023, 1025, 100003 };
enum { NSIZES = sizeof sizes / sizeof *sizes };

typedef void Algorithm(Link *link, void *x, size_t n, Type type, void *scratch);

// make, compare and gather what ranks hold
static Link *meet(const Place *p)
{
	Link *link = link_tcp(p->rank, p->ranks, &p->meeting, 20);
	link->doing = "a test";
	return link;
}

/* whole: small whole numbers, whose sums are exact in either type */
static float element(Type type, bool whole, int rank, size_t i)
{
	float x = whole ? (float)(random_bits(3, (uint64_t)rank, i) % 31) - 15
		: (float)random_normal(4, (uint64_t)rank, i);
	return round_to(type, x);
}

static void *make(Type type, bool whole, int rank, size_t n)
{
	char *x = need(malloc((n + 1) * 4));
	for (size_t i = 0; i < n; i++)
		pack_array(type, x + i * type_size(type),
			&(real){ element(type, whole, rank, i) }, 1);
	return x;
}

static float at(Type type, const void *x, size_t i)
{
	real value;
	unpack_array(type, &value, (const char *)x + i * type_size(type), 1);
	return value;
}

/* never too little, and poisoned */
static void *scratch_for(size_t n)
{
	size_t nbytes = (2 * n + MOST) * 4;
	return memset(need(malloc(nbytes)), 0xff, nbytes);
}

static void expect(const Link *link, const char *what, size_t n, size_t i,
	float got, float want)
{
	if (!(got == want))
		die("%s of %zu elements, rank %d of %d: element %zu is %g, not %g", what,
			n, link->rank, link->ranks, i, got, want);
}

// test: sums of whole numbers are exact
static float sum_in_order(Type type, bool whole, int ranks, size_t i)
{
	float sum = element(type, whole, 0, i);
	for (int r = 1; r < ranks; r++)
		sum += element(type, whole, r, i);
	return round_to(type, sum);
}

static void try_sums(Link *link, const char *what, Algorithm *all_reduce,
	size_t n, Type type, bool whole)
{
	void *x = make(type, whole, link->rank, n), *scratch = scratch_for(n);
	link->number++;
	all_reduce(link, x, n, type, scratch);
	for (size_t i = 0; i < n; i++)
		expect(link, what, n, i, at(type, x, i),
			sum_in_order(type, whole, link->ranks, i));
	free(x);
	free(scratch);
}

static void add_whole_numbers(const Place *p)
{
	Link *link = meet(p);
	// try each algorithm on each size and type
	for (int i = 0; i < NSIZES; i++)
		for (Type type = FP32; type <= BF16; type++) {
			try_sums(link, "ring", link_all_reduce, sizes[i], type, true);
			try_sums(link, "owner", owner_all_reduce, sizes[i], type, true);
			try_sums(link, "alternate", alternate_ring_link, sizes[i], type,
				true);
		}
	try_sums(link, "ring", link_all_reduce, 1000003, FP32, true);
	link_close(&link);
}

static void whole_numbers_add_exactly(void **state)
{
	all_well(add_whole_numbers, NULL);
}

// test: the owner's sums are those in the order of ranks
static void add_as_owners(const Place *p)
{
	Link *link = meet(p);
	for (int i = 0; i < NSIZES; i++)
		for (Type type = FP32; type <= BF16; type++)
			try_sums(link, "owner", owner_all_reduce, sizes[i], type, false);
	link_close(&link);
}

static void owners_add_in_order(void **state)
{
	all_well(add_as_owners, NULL);
}

static void compare_bits(const Place *p)
{
	static Algorithm *const algorithms[] = { link_all_reduce,
		owner_all_reduce };
	Link *link = meet(p);
	size_t n = 10007;
	for (Type type = FP32; type <= BF16; type++)
		for (int k = 0; k < 2; k++) {
			// compare the bytes of this rank's sum with the others'
			size_t nbytes = n * type_size(type);
			void *x = make(type, false, p->rank, n), *scratch = scratch_for(n);
			char *all = need(malloc(nbytes * p->ranks));
			link->number++;
			algorithms[k](link, x, n, type, scratch);
			memcpy(all + p->rank * nbytes, x, nbytes);
			link_gather(link, all, nbytes);
			for (int r = 0; r < p->ranks; r++)
				if (memcmp(all + r * nbytes, x, nbytes) != 0)
					die("algorithm %d: other bits on rank %d", k, r);
			free(all);
			free(scratch);
			free(x);
		}
	link_close(&link);
}

static void ranks_have_equal_bits(void **state)
{
	all_well(compare_bits, NULL);
}

// test: shards, gathering and broadcasts
static void try_scatter(Link *link, Algorithm *reduce_scatter, size_t n,
	Type type)
{
	void *x = make(type, true, link->rank, n), *scratch = scratch_for(n);
	link->number++;
	reduce_scatter(link, x, n, type, scratch);
	for (size_t i = shard_begin(n, link->rank, link->ranks);
		i < shard_begin(n, link->rank + 1, link->ranks); i++)
		expect(link, "shard", n, i, at(type, x, i),
			sum_in_order(type, true, link->ranks, i));
	free(x);
	free(scratch);
}

/* what is to come from others is NaN */
static void try_copies(Link *link, size_t n, Type type, int root)
{
	void *x = make(type, true, link->rank, n);
	size_t size = type_size(type);
	// gather shards into an array of NaN
	size_t begin = shard_begin(n, link->rank, link->ranks),
		end = shard_begin(n, link->rank + 1, link->ranks);
	memset(x, 0xff, begin * size);
	memset((char *)x + end * size, 0xff, (n - end) * size);
	link->number++;
	link_all_gather(link, x, n, type);
	for (size_t i = 0, r = 0; i < n; i++) {
		while (i >= shard_begin(n, (int)r + 1, link->ranks))
			r++;
		expect(link, "gather", n, i, at(type, x, i),
			element(type, true, (int)r, i));
	}
	free(x);
	// broadcast into an array of NaN
	x = make(type, true, link->rank, n);
	if (link->rank != root)
		memset(x, 0xff, n * size);
	link->number++;
	link_broadcast(link, x, n * size, root);
	for (size_t i = 0; i < n; i++)
		expect(link, "broadcast", n, i, at(type, x, i),
			element(type, true, root, i));
	free(x);
}

// test: shards, gathering and broadcasts
static void scatter_and_copy(const Place *p)
{
	Link *link = meet(p);
	for (int i = 0; i < NSIZES; i++)
		for (Type type = FP32; type <= BF16; type++) {
			try_scatter(link, link_reduce_scatter, sizes[i], type);
			try_scatter(link, owner_reduce_scatter, sizes[i], type);
			for (int root = 0; root < p->ranks; root++)
				try_copies(link, sizes[i], type, root);
		}
	try_copies(link, 1000003, FP32, p->ranks - 1);
	link_close(&link);
}

static void shards_and_copies(void **state)
{
	all_well(scatter_and_copy, NULL);
}

// test: names of hosts
static bool has_ipv6(void)
{
	struct sockaddr_in6 here = { .sin6_family = AF_INET6,
		.sin6_addr = in6addr_loopback };
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	bool can = fd >= 0
		&& bind(fd, (struct sockaddr *)&here, sizeof here) == 0;
	close(fd);
	return can;
}

static void meet_by_names(const Place *p)
{
	static const char *const names[] = { "localhost", "127.0.1.1",
		"000000000000000000000000000000000000000000000000000000000000177.0.0.1",
		"::1" };
	Meeting m = { .port = *(const int *)p->context, .listener = -1 };
	bool plain = p->rank == 3 && !has_ipv6();
	strcpy(m.host, names[plain ? 0 : p->rank]);
	Link *link = link_tcp(p->rank, p->ranks, &m, 20);
	try_copies(link, 1000, FP32, p->ranks - 1);
	link_close(&link);
}

static void names_of_one_host_lead_to_it(void **state)
{
	Meeting m = meeting_here();
	meeting_close(&m);
	all_well(meet_by_names, &m.port);
}

static void play_two_hosts(const Place *p)
{
	static char name[70];
	memset(name, 'h', sizeof name - 2);
	name[sizeof name - 2] = p->rank % 2 ? '1' : '2';
	setenv("DIST_HOST", name, 1);
	Link *link = meet(p);
	if (link->local_rank != p->rank / 2
		|| link->local_ranks != (p->ranks + !(p->rank % 2)) / 2)
		die("rank %d of %d is local rank %d of %d", p->rank, p->ranks,
			link->local_rank, link->local_ranks);
	link_close(&link);
}

static void hosts_are_told_apart(void **state)
{
	all_well(play_two_hosts, NULL);
}

TESTS(
	cmocka_unit_test(whole_numbers_add_exactly),
	cmocka_unit_test(owners_add_in_order),
	cmocka_unit_test(ranks_have_equal_bits),
	cmocka_unit_test(shards_and_copies),
	cmocka_unit_test(names_of_one_host_lead_to_it),
	cmocka_unit_test(hosts_are_told_apart))
