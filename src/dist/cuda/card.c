#define _GNU_SOURCE
#include "dist/cuda/card.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "device/cuda/cuda.h"
#include "dist/ring.h"

// fill in this rank's card
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

// gather the cards of all ranks
Card *card_gather(Link *link, const Device *d)
{
	Card *cards = need(calloc(link->ranks, sizeof *cards));
	fill_card(&cards[link->rank], d);
	link->number = 0, link->doing = "comparing GPUs";
	link_gather(link, cards, sizeof *cards);
	return cards;
}

// find two ranks on one GPU
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

// wait for all ranks over the link
void card_meet(Link *link, const char *doing)
{
	char *all = need(calloc(link->ranks, 1));
	link->number = 0, link->doing = doing;
	link_gather(link, all, 1);
	free(all);
}

// do the ranks reach each other's GPUs?
/* how a rank's GPU is reached: fully; not visible to this process; visible, with
 * memory out of reach; or through one connection alone */
typedef enum { REACHED, UNSEEN, APART, ONE_CONNECTION } Reach;

static Reach reach_card(const Card *card, int own)
{
	int count = 0, reached = 0;
	CUDA(cudaGetDeviceCount(&count));
	for (int i = 0; i < count; i++) {
		struct cudaDeviceProp properties;
		CUDA(cudaGetDeviceProperties(&properties, i));
		if (memcmp(&properties.uuid, card->gpu, sizeof card->gpu) != 0)
			continue;
		CUDA(cudaDeviceCanAccessPeer(&reached, own, i));
		return reached ? REACHED : APART;
	}
	return UNSEEN;
}

// reach the GPUs of all ranks
static Reach reach_all(const Card *cards, int rank, int ranks)
{
	const char *connections = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
	Reach found = REACHED;
	int own;
	CUDA(cudaGetDevice(&own));
	for (int r = 0; r < ranks && found == REACHED; r++)
		if (r != rank)
			found = reach_card(&cards[r], own);
	if (connections && strcmp(connections, "1") == 0)
		found = ONE_CONNECTION;
	return found;
}

// compare what the ranks have reached
const char *card_unreached(Link *link, const Card *cards)
{
	static const char *const texts[] = { [REACHED] = NULL,
		[UNSEEN] = "a rank does not see the GPU of another "
			"(CUDA_VISIBLE_DEVICES)",
		[APART] = "a GPU does not reach the memory of another",
		[ONE_CONNECTION] = "CUDA_DEVICE_MAX_CONNECTIONS is 1" };
	int32_t worst = 0, *found = need(calloc(link->ranks, sizeof *found));
	found[link->rank] = reach_all(cards, link->rank, link->ranks);
	link->number = 0, link->doing = "comparing GPUs";
	link_gather(link, found, sizeof *found);
	for (int r = 0; r < link->ranks; r++)
		worst = found[r] > worst ? found[r] : worst;
	free(found);
	return texts[worst];
}
