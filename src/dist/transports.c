#include "dist/transports.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

// name the collectives
const char *const collective_names[NCOLLECTIVES] = { CHOICE_NAMES(COMM_OPS_OF) };

// write what an operation is
void operation_text(char text[OPERATION_TEXT], const CommOp *op, int rank)
{
	bool message = op->kind == SEND || op->kind == RECEIVE;
	double mb = 1e-6 * (double)(op->n * type_size(op->x.type));
	int from = op->kind == SEND ? rank : op->peer;
	int n = snprintf(text, OPERATION_TEXT, "%s %llu (%s %d, %.3g MB)",
		message ? "message" : collective_names[op->kind],
		(unsigned long long)(op->number & ~MESSAGES), op->what, op->index, mb);
	if (op->kind >= BROADCAST && n < OPERATION_TEXT)
		n += snprintf(text + n, OPERATION_TEXT - n, " from rank %d", from);
	if (message && n < OPERATION_TEXT)
		snprintf(text + n, OPERATION_TEXT - n, " to rank %d",
			op->kind == SEND ? op->peer : rank);
}

// collect the transports in an array
const char *const transport_names[] = { CHOICE_NAMES(TRANSPORTS_OF) };

static const Transport *const transports[] = {
#ifdef HAVE_MPI
	&mpi_transport,
#endif
	&ring_transport, &owner_transport, &alternate_transport,
#ifdef HAVE_NCCL
	&nccl_transport, &symmetric_transport,
#endif
#ifdef HAVE_CUDA
	&push_transport,
#endif
};
enum { NTRANSPORTS = sizeof transports / sizeof *transports };

// find a transport by its name
static const Transport *find_transport(const char *name)
{
	for (int i = 0; i < NTRANSPORTS; i++)
		if (strcmp(transports[i]->name, name) == 0)
			return transports[i];
	return NULL;
}

// choose a transport
static const Transport *choose_dry(const Device *device,
	const CommSettings *settings)
{
	const char *name = settings->transport;
	bool any = name == NULL || strcmp(name, "auto") == 0,
		pushes = any ? settings->pushes : strcmp(name, "push") == 0;
	return pushes && strcmp(device->backend->name, "cuda") == 0
		? &dry_push_transport : &dry_transport;
}

const Transport *transport_choose(const Link *link, const Device *device,
	const CommSettings *settings)
{
	if (device->backend->dry)
		return choose_dry(device, settings);
	const char *const best[] = { settings->pushes ? "push" : "symmetric",
		"symmetric", "ring" }, *name = settings->transport;
	for (int i = 0; i < 3 && (name == NULL || strcmp(name, "auto") == 0); i++) {
		const Transport *t = find_transport(best[i]);
		if (t && !t->why_unavailable(link, device))
			return t;
	}
	const Transport *t = find_transport(name);
	const char *why = t ? t->why_unavailable(link, device)
		: "this build has none";
	if (why)
		die("rank %d: no transport '%s': %s", link->rank, name, why);
	return t;
}

// list the libraries of the transports
const char *transport_libraries(void)
{
	static char text[256];
	const char *(*last)(void) = NULL;
	size_t n = 0;
	for (int i = 0; i < NTRANSPORTS; i++) {
		if (transports[i]->library && transports[i]->library != last)
			n += snprintf(text + n, sizeof text - n, "%s%s", n ? "; " : "",
				transports[i]->library());
		last = transports[i]->library;
		assert(n < sizeof text);
	}
	return text;
}
