#include "profile/snapshot.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/grow.h"

// push numbers and texts
enum { TEXTS = 64 };

typedef struct Stack {
	const RangePath *range;
	const char *what;
	uint32_t memo;
} Stack;

typedef struct Pickle {
	FILE *f;
	const char *texts[TEXTS];       /* remembered under their indices */
	int ntexts;
	Stack *stacks;                  /* remembered under stack.memo */
	uint32_t nstacks;
} Pickle;

// push opcodes with their operands
/* the n lowest bytes of x, little-endian */
static void push_bytes(Pickle *p, uint64_t x, int n)
{
	for (int i = 0; i < n; i++)
		putc(i < 8 ? (int)(x >> 8 * i & 255) : 0, p->f);
}

static void push_number(Pickle *p, uint64_t x)
{
	putc(0x8a, p->f);               /* LONG1: a length, and as many bytes */
	putc(9, p->f);                  /* the ninth is the sign */
	push_bytes(p, x, 9);
}

static void memo_put(Pickle *p, uint32_t memo)
{
	putc('r', p->f);                /* LONG_BINPUT */
	push_bytes(p, memo, 4);
}

static void memo_get(Pickle *p, uint32_t memo)
{
	putc('j', p->f);                /* LONG_BINGET */
	push_bytes(p, memo, 4);
}

static void push_new_text(Pickle *p, const char *text)
{
	putc('X', p->f);                /* BINUNICODE */
	push_bytes(p, strlen(text), 4);
	fputs(text, p->f);
}

// push a text, or the number under which it is kept
/* pushes one of the few texts that every event has */
static void push_text(Pickle *p, const char *text)
{
	int i = 0;
	while (i < p->ntexts && strcmp(p->texts[i], text) != 0)
		i++;
	if (i < p->ntexts) {
		memo_get(p, (uint32_t)i);
		return;
	}
	push_new_text(p, text);
	if (i < TEXTS) {
		p->texts[p->ntexts++] = text;
		memo_put(p, (uint32_t)i);
	}
}

static void push_entry(Pickle *p, const char *key, uint64_t value)
{
	push_text(p, key);
	push_number(p, value);
}

// push the stack of an event
static void push_frame(Pickle *p, const char *name, const char *file)
{
	fputs("}(", p->f);              /* EMPTY_DICT MARK ... SETITEMS */
	push_text(p, "name");
	push_new_text(p, name);
	push_text(p, "filename");
	push_text(p, file);
	push_entry(p, "line", 0);
	putc('u', p->f);
}

static void push_stack(Pickle *p, const RangePath *range, const char *what)
{
	for (uint32_t i = p->nstacks; i-- > 0;)
		if (p->stacks[i].range == range && p->stacks[i].what == what) {
			memo_get(p, p->stacks[i].memo);
			return;
		}
	fputs("](", p->f);              /* EMPTY_LIST MARK ... APPENDS */
	push_frame(p, what, "tensor");
	for (const RangePath *at = range; at && at->outer; at = at->outer)
		push_frame(p, at->name, "range");
	putc('e', p->f);
	p->stacks = grow(p->stacks, p->nstacks, sizeof *p->stacks);
	p->stacks[p->nstacks] = (Stack){ range, what, TEXTS + p->nstacks };
	memo_put(p, p->stacks[p->nstacks++].memo);
}

// write segments and the trace
static void push_block(void *pickle, const DeviceBlock *b)
{
	Pickle *p = pickle;
	uint64_t used = b->used ? b->nbytes : 0;
	// push the segment's numbers
	fputs("}(", p->f);
	push_entry(p, "device", 0);
	push_entry(p, "address", (uint64_t)(uintptr_t)b->at);
	push_entry(p, "total_size", b->nbytes);
	push_entry(p, "allocated_size", used);
	push_entry(p, "active_size", used);
	push_entry(p, "requested_size", used);
	push_entry(p, "stream", 0);
	push_text(p, "segment_type");
	push_text(p, "large");
	push_text(p, "blocks");
	// push the one block of the segment
	fputs("](}(", p->f);
	push_entry(p, "address", (uint64_t)(uintptr_t)b->at);
	push_entry(p, "size", b->nbytes);
	push_entry(p, "requested_size", b->nbytes);
	push_text(p, "state");
	push_text(p, b->used ? "active_allocated" : "inactive");
	push_text(p, "frames");
	push_stack(p, NULL, b->what);
	fputs("ueu", p->f);             /* the block, the list of it, the segment */
}

// write segments and the trace
static void push_event(Pickle *p, const Device *d, const MemoryEvent *e)
{
	fputs("}(", p->f);
	push_text(p, "action");
	push_text(p, e->nbytes > 0 ? "alloc" : "free_completed");
	push_entry(p, "addr", (uint64_t)(uintptr_t)e->address);
	push_entry(p, "size", (uint64_t)(e->nbytes > 0 ? e->nbytes : -e->nbytes));
	push_entry(p, "stream", 0);
	push_entry(p, "time_us", (uint64_t)((e->ms + d->start_ms) * 1e3));
	push_text(p, "frames");
	push_stack(p, e->range, e->what);
	putc('u', p->f);
}

#define PICKLE_BEGINS "\x80\x02}("      /* PROTO 2, EMPTY_DICT MARK ... */

// write the whole snapshot
bool snapshot_recognised(FILE *f)
{
	return file_begins(f, PICKLE_BEGINS "X\x08");
}

void snapshot_write(const Device *d, const char *path)
{
	Pickle p = { .f = file_begin(path) };
	fputs(PICKLE_BEGINS, p.f);
	push_text(&p, "segments");
	fputs("](", p.f);
	device_blocks(d, push_block, &p);
	putc('e', p.f);
	push_text(&p, "device_traces");
	fputs("](](", p.f);             /* the traces of all devices: of one */
	for (size_t i = 0; i < d->nlog; i++)
		push_event(&p, d, &d->log[i]);
	fputs("ee", p.f);
	push_text(&p, "allocator_settings");
	fputs("}u.", p.f);              /* ... SETITEMS STOP */
	file_end(p.f, path);
	free(p.stacks);
}
