#include "cases/bounds.h"

#include <math.h>

#include "base/error.h"

// find the best mesh
static Ffn layout(const BoundSetting *s, size_t X, size_t Y)
{
	return (Ffn){ s->B, s->D, s->F, .gated = true, .X = X, .Y = Y,
		.sharded = true };
}

/* real numbers of FSDP and of TP ranks */
typedef struct RealMesh {
	double X, Y;
} RealMesh;

/* (1 + x)(1 + y): x and y each up to its own bound, or sharing it */
static RealMesh best_mesh(double x, double y, bool overlapped)
{
	if (overlapped)
		return (RealMesh){ 1 + x, 1 + y };
	RealMesh m = { (1 + x + x / y) / 2, (1 + y + y / x) / 2 };
	if (m.X < 1)
		m = (RealMesh){ 1, 1 + y };
	if (m.Y < 1)
		m = (RealMesh){ 1 + x, 1 };
	return m;
}

// try points and meshes
enum { SAMPLES = 1 << 20 };

/* the most devices on the boundary, by trying many points of it */
static double try_boundary(double x, double y, bool overlapped)
{
	double most = 0;
	for (int i = 0; i <= SAMPLES; i++) {
		double u = (double)i / SAMPLES,
			Y = 1 + y * (overlapped ? 1 : 1 - u);
		most = fmax(most, (1 + u * x) * Y);
	}
	return most;
}

// try all meshes of whole numbers
/* the largest mesh of whole numbers that is compute-bound, by trying all */
static Ffn try_meshes(const BoundSetting *s, RealMesh bound, bool overlapped)
{
	Ffn best = layout(s, 1, 1);
	for (size_t X = 1; X <= bound.X + 1; X++)
		for (size_t Y = 1; ; Y++) {
			Ffn f = layout(s, X, Y);
			if (!compute_bound(s, ffn_cost(&f, FORWARD), overlapped))
				break;
			if (X * Y > best.X * best.Y)
				best = f;
		}
	return best;
}

// run one bound of two axes
typedef struct MeshBoundConfig {
	Hardware machine;
	int axes;
	long percent;
} MeshBoundConfig;
#define AXES_OF(FIRST, NEXT) \
	FIRST(OVERLAPPED, "overlapped") NEXT(SUMMED, "summed")
enum { CHOICE_IDS(AXES_OF) };
static const Key bound_keys[] = { KEY(Hardware, hardware),
	KEY(MeshBoundConfig, axes, CHOICES(AXES_OF)), { 0 } };

static void plan_bounds(Plan *plan)
{
	Hardware machines[MACHINES];
	for (int i = 0, n = bounds_machines(machines); i < n; i++)
		for (int axes = OVERLAPPED; axes <= SUMMED; axes++)
			plan_add(plan, &(MeshBoundConfig){ machines[i], axes, 0 });
}

// find the best mesh of a machine
static void run_bound(Row *row, const void *config)
{
	const MeshBoundConfig *c = config;
	const BoundSetting s = bounds_setting(row, &c->machine);
	bool overlapped = c->axes == OVERLAPPED;
	double x = s.B * s.W / s.C, y = 1.5 * s.F * s.W / s.C;
	RealMesh m = best_mesh(x, y, overlapped), most = { 1 + x, 1 + y };
	double N = m.X * m.Y, tried = try_boundary(x, y, overlapped);
	if (tried > N * (1 + 1e-12) || tried < N * (1 - 1e-9))
		die("at most %g devices were found by trying, not %g", tried, N);
	Ffn f = try_meshes(&s, most, overlapped);
	FfnCost cost = ffn_cost(&f, FORWARD);
	if (f.X * f.Y > N * (1 + 1e-12))
		die("a mesh of %zu x %zu goes beyond the bound %g", f.X, f.Y, N);
	row_set(row, "bound", "%.6g", N);
	row_set(row, "bound_X", "%.5g", m.X);
	row_set(row, "bound_Y", "%.5g", m.Y);
	row_set(row, "N", "%zu", f.X * f.Y);
	row_set(row, "X", "%zu", f.X);
	row_set(row, "Y", "%zu", f.Y);
	row_set(row, "compute_ms", "%.6g", compute_time(&s, cost) * 1e3);
	row_set(row, "send_ms", "%.6g", send_time(&s, cost, overlapped) * 1e3);
}

// trace the region
/* the edge of the region in which a forward pass is compute-bound */
static const Key region_keys[] = { KEY(Hardware, hardware),
	KEY(MeshBoundConfig, percent), { 0 } };

static void plan_region(Plan *plan)
{
	Hardware machines[MACHINES];
	for (int i = 0, n = bounds_machines(machines); i < n; i++)
		for (long percent = 0; percent <= 100; percent += 5)
			plan_add(plan, &(MeshBoundConfig){ machines[i], 0, percent });
}

static void run_region(Row *row, const void *config)
{
	const MeshBoundConfig *c = config;
	const BoundSetting s = bounds_setting(row, &c->machine);
	double x = s.B * s.W / s.C, y = 1.5 * s.F * s.W / s.C,
		u = c->percent / 100.0;
	row_set(row, "X", "%.6g", 1 + u * x);
	row_set(row, "Y_overlapped", "%.6g", 1 + y);
	row_set(row, "Y_summed", "%.6g", 1 + y * (1 - u));
	RealMesh a = best_mesh(x, y, true), b = best_mesh(x, y, false);
	row_set(row, "Y_of_most_overlapped", "%.6g", a.X * a.Y / (1 + u * x));
	row_set(row, "Y_of_most_summed", "%.6g", b.X * b.Y / (1 + u * x));
}

// describe the meshes to the harness
static void plan_schedules(Plan *plan)
{
	static const long meshes[][2] = { { 1, 1 }, { 2, 2 }, { 4, 2 }, { 2, 4 },
		{ 3, 5 }, { 5, 3 }, { 4, 3 } };
	schedule_plan(plan, meshes, sizeof meshes / sizeof *meshes);
}

static void run_schedule(Row *row, const void *config)
{
	schedule_row(row, config, true);
}

// name the sweeps of meshes
const Experiment experiment = {
	.about = "how many devices FSDP and tensor parallelism together keep busy",
	.options = bounds_options, .cpu_scale = CLUSTER_SCALE, .cpu_only = true,
	.sweeps = SWEEPS(
		{ "bounds", bound_keys, plan_bounds, run_bound },
		{ "region", region_keys, plan_region, run_region },
		{ "schedule", schedule_keys, plan_schedules, run_schedule }),
};
