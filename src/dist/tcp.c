/* a link over TCP, for ranks of one kind of processor */
#define _GNU_SOURCE
#include "dist/link.h"

#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

typedef struct Tcp {
	Link link;
	int *sockets;                    /* to each rank; -1: itself */
} Tcp;

/* what a rank says of itself when it connects: to rank 0 first, and rank 0
 * passes it on to all, with the rank's address; "": that of rank 0 */
typedef struct RankHello {
	uint32_t magic;
	int32_t rank, ranks, port;       /* port: where the rank listens */
	char address[64], host[256];
} RankHello;

enum { HELLO = 0x6c6c6568, RETRY_MS = 20, PATIENCE_MS = 2000 };

// wait for sockets, listen and connect
static bool wait_ready(int fd, short events, Patience *p)
{
	struct pollfd f = { fd, events, 0 };
	int n;
	do
		n = poll(&f, 1, patience_poll_ms(p));
	while ((n == 0 && patience_left(p) > 0) || (n < 0 && errno == EINTR));
	return n > 0;
}

/* moves all n bytes. false: the other end is closed, or the time is over */
static bool transfer_all(int fd, void *at, size_t n, bool out, Patience *p)
{
	for (size_t done = 0; done < n;) {
		char *rest = (char *)at + done;
		ssize_t k = out ? send(fd, rest, n - done, MSG_NOSIGNAL)
			: recv(fd, rest, n - done, 0);
		if (k > 0)
			done += (size_t)k;
		else if (k == 0 || (errno != EAGAIN && errno != EINTR))
			return false;
		else if (!wait_ready(fd, out ? POLLOUT : POLLIN, p))
			return false;
	}
	return true;
}

static void disable_nagle(int fd)
{
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
}

typedef union SocketAddress {
	struct sockaddr_in6 v6;          /* the largest: { 0 } clears all */
	struct sockaddr_in v4;
	struct sockaddr any;
} SocketAddress;

/* returns a listening socket; -1, with errno: there is none */
static int try_listen(const SocketAddress *place, socklen_t size)
{
	int fd = socket(place->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK
		| SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){ 0 }, sizeof(int));
	if (bind(fd, &place->any, size) == 0 && listen(fd, SOMAXCONN) == 0)
		return fd;
	int error = errno;
	close(fd);
	errno = error;
	return -1;
}

static int expect_listener(int fd, int rank, int port)
{
	if (fd < 0)
		die("rank %d: cannot listen at port %d: %s", rank, port,
			strerror(errno));
	return fd;
}

static int listen_everywhere(int rank, int port)
{
	SocketAddress all = { .v6 = { .sin6_family = AF_INET6,
		.sin6_port = htons((uint16_t)port), .sin6_addr = in6addr_any } },
		all_v4 = { .v4 = { .sin_family = AF_INET,
			.sin_port = htons((uint16_t)port) } };
	int fd = try_listen(&all, sizeof all.v6);
	if (fd < 0 && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL))
		fd = try_listen(&all_v4, sizeof all_v4.v4);
	return expect_listener(fd, rank, port);
}

static int listen_here(int rank)
{
	SocketAddress here = { .v4 = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };
	return expect_listener(try_listen(&here, sizeof here.v4), rank, 0);
}

typedef struct Ends { SocketAddress own, peer; } Ends;

/* an end that is not connected is all zeros */
static Ends ends_of(int fd)
{
	Ends e = { { { 0 } }, { { 0 } } };
	getsockname(fd, &e.own.any, &(socklen_t){ sizeof e.own });
	getpeername(fd, &e.peer.any, &(socklen_t){ sizeof e.peer });
	return e;
}

static int port_of(int fd)
{
	return ntohs(ends_of(fd).own.v4.sin_port);
}

/* returns a connected socket; -1, with errno: it cannot be reached now */
static int try_connect(const struct addrinfo *place, Patience *p)
{
	int fd = socket(place->ai_family, SOCK_STREAM | SOCK_NONBLOCK
		| SOCK_CLOEXEC, 0), error = 0;
	if (fd < 0)
		return -1;
	if (connect(fd, place->ai_addr, place->ai_addrlen) != 0)
		error = errno;
	if (error == EINPROGRESS && wait_ready(fd, POLLOUT, p))
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &error,
			&(socklen_t){ sizeof error });
	// refuse a connection of the socket to itself
	Ends ends = ends_of(fd);
	if (error == 0 && memcmp(&ends.own, &ends.peer, sizeof ends.own) == 0)
		error = ECONNREFUSED;
	if (error == 0) {
		disable_nagle(fd);
		return fd;
	}
	close(fd);
	errno = error;
	return -1;
}

// wait for sockets, listen and connect
static struct addrinfo *find_host(const char *name, int port)
{
	char number[8];
	struct addrinfo *found, ask = { .ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM };
	snprintf(number, sizeof number, "%d", port);
	return getaddrinfo(name, number, &ask, &found) == 0 ? found : NULL;
}

static int connect_to(int rank, int other, const char *host, int port,
	Patience *p)
{
	struct addrinfo *places = find_host(host, port), *at = places;
	int fd;
	if (places == NULL)
		die("rank %d: there is no host '%s'", rank, host);
	for (;;) {
		Patience one = patience_of(fmin(PATIENCE_MS, patience_left(p)));
		if ((fd = try_connect(at, &one)) >= 0)
			break;
		if (patience_left(p) == 0)
			die("rank %d: cannot reach rank %d at %s, port %d: %s", rank, other,
				host, port, strerror(errno));
		at = at->ai_next ? at->ai_next : places;
		if (at == places)
			usleep(RETRY_MS * 1000);
	}
	freeaddrinfo(places);
	return fd;
}

static int accept_one(int listener, Patience *p)
{
	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			disable_nagle(fd);
			return fd;
		}
		if (patience_left(p) == 0 || !wait_ready(listener, POLLIN, p))
			return -1;
	}
}

// let the ranks meet at the first
static void name_missing(const RankHello *table, int ranks, int limit_s)
{
	char list[128] = "";
	size_t n = 0;
	int missing = 0;
	for (int r = 0; r < ranks; r++)
		if (table[r].magic != HELLO && missing++ < 16)
			n += (size_t)snprintf(list + n, sizeof list - n, " %d", r);
	die("rank 0: after %d s %d of %d ranks are missing:%s%s", limit_s, missing,
		ranks, list, missing > 16 ? " ..." : "");
}

static void check_hello(const RankHello *h, const RankHello *table, int ranks)
{
	if (h->ranks != ranks)
		die("rank 0: rank %d was told of %d ranks, this one of %d", h->rank,
			h->ranks, ranks);
	if (h->rank <= 0 || h->rank >= ranks || table[h->rank].magic == HELLO)
		die("rank 0: %s says that it is rank %d of %d%s", h->host, h->rank,
			ranks, h->rank > 0 && h->rank < ranks ? ", as another did" : "");
}

static void write_address(char *text, size_t room, const SocketAddress *place)
{
	static const char prefix[] = "::ffff:";
	size_t n = strlen(prefix);
	*text = '\0';
	getnameinfo(&place->any, sizeof *place, text, (socklen_t)room, NULL, 0,
		NI_NUMERICHOST);
	if (strncmp(text, prefix, n) == 0)
		memmove(text, text + n, strlen(text + n) + 1);
}

static void note_address(RankHello *h, int fd)
{
	char own[sizeof h->address];
	Ends ends = ends_of(fd);
	write_address(own, sizeof own, &ends.own);
	write_address(h->address, sizeof h->address, &ends.peer);
	if (strcmp(own, h->address) == 0 || strncmp(h->address, "127.", 4) == 0)
		*h->address = '\0';
}

static void accept_ranks(Tcp *t, RankHello *table, int listener, int limit_s)
{
	Patience p = patience_of(limit_s * 1e3);
	for (int come = 1; come < t->link.ranks;) {
		RankHello h;
		int fd = accept_one(listener, &p);
		if (fd < 0)
			name_missing(table, t->link.ranks, limit_s);
		// pass over a connection that sends no hello
		Patience one = patience_of(PATIENCE_MS);
		if (!transfer_all(fd, &h, sizeof h, false, &one)
			|| h.magic != HELLO) {
			close(fd);
			continue;
		}
		h.host[sizeof h.host - 1] = '\0';
		note_address(&h, fd);
		check_hello(&h, table, t->link.ranks);
		table[h.rank] = h;
		t->sockets[h.rank] = fd;
		come++;
	}
	for (int r = 1; r < t->link.ranks; r++)
		transfer_all(t->sockets[r], table, t->link.ranks * sizeof *table, true,
			&p);
}

// let the ranks meet at the first
static int join_rank_0(Tcp *t, RankHello *table, RankHello h, const Meeting *m,
	int limit_s)
{
	Patience p = patience_of(limit_s * 1e3);
	int fd = connect_to(h.rank, 0, m->host, m->port, &p),
		listener = m->listener >= 0 ? listen_here(h.rank)
			: listen_everywhere(h.rank, 0);
	h.port = port_of(listener);
	if (!transfer_all(fd, &h, sizeof h, true, &p)
		|| !transfer_all(fd, table, h.ranks * sizeof *table, false, &p))
		die("rank %d: rank 0 at %s, port %d, %s", h.rank, m->host, m->port,
			patience_left(&p) > 0 ? "has ended while the ranks met"
			: "does not answer: ranks are missing");
	t->sockets[0] = fd;
	return listener;
}

// connect each rank with each
static void connect_all(Tcp *t, const RankHello *table, int listener,
	const Meeting *m, int limit_s)
{
	Patience p = patience_of(limit_s * 1e3);
	int rank = t->link.rank;
	int32_t other = rank;
	for (int r = 1; r < rank; r++) {
		t->sockets[r] = connect_to(rank, r, *table[r].address
			? table[r].address : m->host, table[r].port, &p);
		transfer_all(t->sockets[r], &other, sizeof other, true, &p);
	}
	// accept the ranks above
	for (int missing = t->link.ranks - 1 - rank; missing > 0;) {
		int fd = accept_one(listener, &p);
		if (fd < 0)
			die("rank %d: after %d s %d of the ranks above it have not connected",
				rank, limit_s, missing);
		Patience one = patience_of(PATIENCE_MS);
		if (!transfer_all(fd, &other, sizeof other, false, &one)
			|| other <= rank || other >= t->link.ranks
			|| t->sockets[other] >= 0) {
			close(fd);
			continue;
		}
		t->sockets[other] = fd;
		missing--;
	}
}

// exchange messages over two sockets
typedef struct MessageHeader {
	uint32_t magic, unused;
	uint64_t number, nbytes;
	char doing[72];
} MessageHeader;

enum { MESSAGE = 0x7373656d };

/* one direction; done counts the header too */
typedef struct MessageFlow {
	int fd, peer;
	bool out;
	MessageHeader header;
	char *data;
	size_t nbytes, done;
} MessageFlow;

static bool flow_done(const MessageFlow *f)
{
	return f->nbytes == 0 || f->done == sizeof f->header + f->nbytes;
}

static MessageHeader own_header(const Link *link, size_t nbytes)
{
	MessageHeader h = { MESSAGE, 0, link->number, nbytes, "a message" };
	if (link->doing)
		snprintf(h.doing, sizeof h.doing, "%s", link->doing);
	return h;
}

static void check_header(const Link *link, const MessageFlow *f)
{
	const MessageHeader *h = &f->header, own = own_header(link, f->nbytes);
	if (h->magic != MESSAGE)
		die_at_once("rank %d: what rank %d sends in %s is no message",
			link->rank, f->peer, own.doing);
	if (h->number != own.number || strcmp(h->doing, own.doing) != 0)
		die_at_once("rank %d: rank %d is in %.*s, this one in %s", link->rank,
			f->peer, (int)sizeof h->doing, h->doing, own.doing);
	if (h->nbytes != own.nbytes)
		die_at_once("rank %d: rank %d sends %llu bytes, not %zu, in %s",
			link->rank, f->peer, (unsigned long long)h->nbytes, f->nbytes,
			own.doing);
}

/* moves what can be moved without waiting. false: nothing can be moved now */
static bool transfer_some(const Link *link, MessageFlow *f)
{
	// describe what is left of header and data
	struct iovec parts[2];
	size_t head = sizeof f->header, skip = f->done > head ? f->done - head : 0;
	int n = 0;
	if (f->done < head)
		parts[n++] = (struct iovec){ (char *)&f->header + f->done,
			head - f->done };
	parts[n++] = (struct iovec){ f->data + skip, f->nbytes - skip };
	struct msghdr m = { .msg_iov = parts, .msg_iovlen = (size_t)n };
	ssize_t k = f->out ? sendmsg(f->fd, &m, MSG_NOSIGNAL)
		: recvmsg(f->fd, &m, 0);
	if (k < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (k <= 0)
		die_at_once("rank %d: lost rank %d in %s", link->rank, f->peer,
			own_header(link, 0).doing);
	bool first = f->done < head;
	f->done += (size_t)k;
	if (!f->out && first && f->done >= head)
		check_header(link, f);
	return true;
}

// exchange messages over two sockets
static void tcp_exchange(Link *link, int to, const void *out, size_t nout,
	int from, void *in, size_t nin)
{
	Tcp *t = (Tcp *)link;
	MessageFlow send = { t->sockets[to], to, true, own_header(link, nout),
		(char *)out, nout, 0 };
	MessageFlow receive = { .fd = t->sockets[from], .peer = from, .data = in,
		.nbytes = nin };
	while (!flow_done(&send) || !flow_done(&receive)) {
		bool moved = !flow_done(&send) && transfer_some(link, &send);
		if (!flow_done(&receive) && transfer_some(link, &receive))
			moved = true;
		if (moved)
			continue;
		struct pollfd p[2] = {
			{ flow_done(&send) ? -1 : send.fd, POLLOUT, 0 },
			{ flow_done(&receive) ? -1 : receive.fd, POLLIN, 0 } };
		poll(p, 2, -1);
	}
}

// open and close a link over TCP
Meeting meeting_here(void)
{
	Meeting m = { "127.0.0.1", 0, -1 };
	m.listener = listen_here(0);
	m.port = port_of(m.listener);
	return m;
}

void meeting_close(Meeting *m)
{
	if (m->listener >= 0)
		close(m->listener);
	m->listener = -1;
}

static void count_local(Link *link, const RankHello *table)
{
	link->local_rank = link->local_ranks = 0;
	for (int r = 0; r < link->ranks; r++)
		if (strcmp(table[r].host, table[link->rank].host) == 0) {
			link->local_rank += r < link->rank;
			link->local_ranks++;
		}
}

static bool tcp_lost(const Link *link, int rank)
{
	struct pollfd p = { ((const Tcp *)link)->sockets[rank], POLLRDHUP, 0 };
	return poll(&p, 1, 0) > 0 && p.revents != 0;
}

static void tcp_close(Link *link)
{
	Tcp *t = (Tcp *)link;
	for (int r = 0; r < link->ranks; r++)
		if (t->sockets[r] >= 0)
			close(t->sockets[r]);
	free(t->sockets);
	free(t);
}

static RankHello own_hello(int rank, int ranks)
{
	RankHello h = { .magic = HELLO, .rank = rank, .ranks = ranks };
	const char *name = getenv("DIST_HOST");
	if (name)
		snprintf(h.host, sizeof h.host, "%s", name);
	else
		gethostname(h.host, sizeof h.host - 1);
	return h;
}

Link *link_tcp(int rank, int ranks, const Meeting *meeting, int limit_s)
{
	Tcp *t = need(calloc(1, sizeof *t));
	RankHello *table = need(calloc((size_t)ranks, sizeof *table));
	t->link = (Link){ .name = "tcp", .rank = rank, .ranks = ranks,
		.exchange = tcp_exchange, .lost = tcp_lost, .close = tcp_close };
	t->sockets = need(malloc(ranks * sizeof *t->sockets));
	for (int r = 0; r < ranks; r++)
		t->sockets[r] = -1;
	table[rank] = own_hello(rank, ranks);
	// meet the other ranks and connect to them
	int listener;
	if (rank == 0) {
		listener = meeting->listener >= 0 ? meeting->listener
			: listen_everywhere(0, meeting->port);
		accept_ranks(t, table, listener, limit_s);
	} else {
		if (meeting->listener >= 0)
			close(meeting->listener);
		listener = join_rank_0(t, table, table[rank], meeting, limit_s);
		connect_all(t, table, listener, meeting, limit_s);
	}
	close(listener);
	count_local(&t->link, table);
	free(table);
	return &t->link;
}
