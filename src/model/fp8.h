/* fp8.h: the linear layers of the blocks in FP8, under a policy that says so */
#ifndef MODEL_FP8_H
#define MODEL_FP8_H

#include "model/parameters.h"
#include "ops/fp8_types.h"

typedef struct Fp8Settings {
	Fp8Scaling scaling;
	Type gradient;                   /* of gradients of results: E4M3 or E5M2 */
} Fp8Settings;

#define FP8_GRADIENTS_OF(FIRST, NEXT) \
	FIRST(FP8_GRADIENT_E5M2, "e5m2") NEXT(FP8_GRADIENT_E4M3, "e4m3")
#define FP8_GRADIENTS CHOICES(FP8_GRADIENTS_OF)
enum { CHOICE_IDS(FP8_GRADIENTS_OF) };

// declare the state of layers in FP8
enum { FP8_X, FP8_W, FP8_DY, FP8_SITES, FP8_WINDOW = 16 };

typedef struct Fp8State {
	Fp8Settings settings;
	/* by the first parameter of a layer: its weights; X turned, which a forward
	 * pass leaves if `keeps`; the form of dY that one more matmul will read */
	Fp8Matrix *straight, *turned, *kept, *rest;
	bool keeps;
	bool *fresh;                     /* the codes are those of the weights */
	Fp8Cast *updates;                /* what updates write */
	bool updated;                    /* some have written codes */
	/* of a delayed maximum, at.NULL without: the maxima to scale by (sites),
	 * those of the steps before (FP8_WINDOW, sites), those of this step (ranks,
	 * sites) */
	Array maxima, history, seen;
	size_t sites;
	int rank, ranks;
	bool shared;                     /* seen is a trainer's memory */
	bool ready;                      /* maxima are those of earlier steps */
} Fp8State;

// declare the functions on layers in FP8
/* NULL unless the policy says FP8; exits 2 where FP8 cannot be had: a model that
 * is split over ranks, operations that are recorded by the JIT */
Fp8State *fp8_new(const Model *m);
void fp8_free(Model *m);
/* drops what a pass has left */
void fp8_clear(Model *m);
/* before the first pass, and before a trainer takes the model */
void fp8_set(Model *m, Fp8Settings settings);
/* is this a layer in FP8? */
bool fp8_multiplies(const Model *m, ParamSpan W);

/* what a matmul reads, in bf16, or how it is computed (Fp8Cast) */
typedef struct Fp8Input {
	Array x;
	Fp8Source source;
	Array ab;
} Fp8Input;
/* as the functions of linear.h; w: in the format of matmuls (bf16) */
void fp8_forward(Model *m, Array Y, Fp8Input x, Array w, ParamSpan W, size_t N);
void fp8_backward_input(Model *m, Array dX, double beta, Fp8Input dy,
	ParamSpan W, size_t N);
/* dy is not read if fp8_backward_input came first, nor x if it was kept */
void fp8_weight_gradient(Model *m, Array dW, Fp8Input dy, Fp8Input x,
	ParamSpan W, double beta, size_t N);
/* does fp8_forward keep X turned from now on? No, until this is called */
void fp8_keep(Model *m, bool keep);
bool fp8_kept(const Model *m, ParamSpan W);

// after a step, and with other ranks
/* has the model maxima of earlier steps, or will it have them? */
bool fp8_delays(const Model *m);
/* queues the step's end: its maxima go to the history. Nothing without delay */
void fp8_advance(Model *m);
/* maxima of this step are kept as row `rank` of seen (ranks, sites), the caller's
 * memory, of zeros; ranks 1, seen.at NULL: in the model's own again */
void fp8_share(Model *m, Array seen, int rank, int ranks);
/* after something else has written the history */
void fp8_history_changed(Model *m);

// declare how weights and their codes keep together
/* parameter i is the first, or follows the last, of a weight whose update may
 * write codes */
bool fp8_divides(const Model *m, int i);
/* what an update of the weight that begins with parameter i has to write, for
 * fp8_adamw; NULL: nothing */
const Fp8Cast *fp8_update(const Model *m, int i);
/* after updates that wrote what fp8_update asked for */
void fp8_updated(Model *m);
/* after any other change of weights or scales */
void fp8_weights_changed(Model *m);
/* frees the codes of weights, for a plan that keeps none */
void fp8_drop_weights(Model *m);
#endif
