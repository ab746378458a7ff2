#define _GNU_SOURCE
#include "dist/cuda/card.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "device/cuda/cuda.h"
#include "dist/ring.h"

static void fill_card(Card *card, const Device *d)
{
	const char *host = getenv("NCCL_HOSTID");
	int ordinal;
	struct cudaDeviceProp properties;
	gethostname(card->host, sizeof card->host - 1);
	if (host)
		strncpy(card->host, host, sizeof card->host - 1);
	if (strcmp(d->backend->name, "cuda") != 0)
		return;
	cuda_queue(d->state, COMM);
	CUDA(cudaGetDevice(&ordinal));
	CUDA(cudaGetDeviceProperties(&properties, ordinal));
	memcpy(card->gpu, &properties.uuid, sizeof card->gpu);
	card->present = 1;
}

Card *card_gather(Link *link, const Device *d)
{
	Card *cards = need(calloc(link->ranks, sizeof *cards));
	fill_card(&cards[link->rank], d);
	link->number = 0, link->doing = "comparing GPUs";
	link_gather(link, cards, sizeof *cards);
	return cards;
}

const char *card_conflict(const Card *cards, int ranks)
{
	for (int a = 0; a < ranks; a++) {
		if (!cards[a].present)
			return "a rank has no GPU";
		for (int b = 0; b < a; b++)
			if (strcmp(cards[a].host, cards[b].host) == 0
				&& memcmp(cards[a].gpu, cards[b].gpu, 16) == 0)
				return "two ranks share one GPU";
	}
	return NULL;
}

void card_meet(Link *link, const char *doing)
{
	char *all = need(calloc(link->ranks, 1));
	link->number = 0, link->doing = doing;
	link_gather(link, all, 1);
	free(all);
}
