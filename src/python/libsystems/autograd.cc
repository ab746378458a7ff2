/* autograd.cc: the gradients of attention and RMSNorm as nodes of autograd, for
 * the version of PyTorch against which this is compiled */
#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/library.h>

namespace {

using namespace torch::autograd;
using at::Tensor;
using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Keys = c10::DispatchKeySet;

// find an operator of this library
template <class F> c10::TypedOperatorHandle<F> find(const char *name)
{
	return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<F>();
}

using Attend = Two (const Tensor &, const Tensor &, const Tensor &, int64_t,
	double);
using AttendBackward = Three (const Tensor &, const Tensor &, const Tensor &,
	const Tensor &, const Tensor &, const Tensor &, int64_t, double, bool);
using AttendPacked = Two (const Tensor &, const Tensor &, const Tensor &,
	const Tensor &, const Tensor &, int64_t, int64_t, int64_t, double);
using AttendPackedBackward = Three (const Tensor &, const Tensor &,
	const Tensor &, const Tensor &, const Tensor &, const Tensor &,
	const Tensor &, const Tensor &, int64_t, int64_t, int64_t, double, bool);
using Norm = Two (const Tensor &, const Tensor &, double);
using NormBackwards = Two (const Tensor &, const Tensor &, const Tensor &,
	const Tensor &, double);

/* calls the kernels below autograd */
template <class F, class... X> auto below(const c10::TypedOperatorHandle<F> &op,
	Keys keys, const X &...x)
{
	at::AutoDispatchBelowADInplaceOrView guard;
	return op.redispatch(keys & c10::after_autograd_keyset, x...);
}

// make a node, unless nothing needs it
template <class N> auto new_node()
{
	if constexpr (std::is_same_v<decltype(Edge::function), std::shared_ptr<Node>>)
		return std::shared_ptr<N>(new N(), [](N *node) { deleteNode(node); });
	else
		return c10::make_intrusive<N>();
}

template <class N, class... X> auto node_for(const X &...inputs)
{
	decltype(new_node<N>()) node;
	TORCH_CHECK_NOT_IMPLEMENTED(!(isFwGradDefined(inputs) || ...),
		"libsystems: derivatives in forward mode are not supported");
	if (!compute_requires_grad(inputs...))
		return node;
	node = new_node<N>();
	node->set_next_edges(collect_next_edges(inputs...));
	return node;
}

// say that there is no second derivative
struct NoSecond : Error {
	NoSecond() : Error("libsystems: second derivatives are not supported") { }
};

// differentiate attention
struct LibsystemsAttentionBackward : Node {
	SavedVariable q, k, v, o, l;
	int64_t mask;
	double scale;

	/* of results that have their history */
	void save(const Tensor &q, const Tensor &k, const Tensor &v, const Tensor &o,
		const Tensor &l, int64_t mask, double scale)
	{
		this->q = SavedVariable(q, false);
		this->k = SavedVariable(k, false);
		this->v = SavedVariable(v, false);
		this->o = SavedVariable(o, true);
		this->l = SavedVariable(l, false);
		this->mask = mask;
		this->scale = scale;
	}

	variable_list apply(variable_list &&gradients) override
	{
		static const auto op = find<AttendBackward>(
			"libsystems::attention_backward");
		if (!gradients[0].defined())
			return variable_list(3);
		auto [dq, dk, dv] = op.call(gradients[0], q.unpack(), k.unpack(),
			v.unpack(), o.unpack(getptr()), l.unpack(), mask, scale,
			at::globalContext().deterministicAlgorithms());
		return variable_list{ dq, dk, dv };
	}
	void release_variables() override
	{
		for (SavedVariable *x : { &q, &k, &v, &o, &l })
			x->reset_data();
	}
	std::string name() const override { return "LibsystemsAttentionBackward"; }
};

Two attention(Keys keys, const Tensor &q, const Tensor &k, const Tensor &v,
	int64_t mask, double scale)
{
	static const auto op = find<Attend>("libsystems::attention");
	auto node = node_for<LibsystemsAttentionBackward>(q, k, v);
	auto [o, l] = below(op, keys, q, k, v, mask, scale);
	if (node) {
		set_history(o, node);
		node->save(q, k, v, o, l, mask, scale);
	}
	return { o, l };
}

Three attention_backward(Keys keys, const Tensor &d_o, const Tensor &q,
	const Tensor &k, const Tensor &v, const Tensor &o, const Tensor &l,
	int64_t mask, double scale, bool deterministic)
{
	static const auto op = find<AttendBackward>("libsystems::attention_backward");
	auto node = node_for<NoSecond>(d_o, q, k, v, o, l);
	auto [dq, dk, dv] = below(op, keys, d_o, q, k, v, o, l, mask, scale,
		deterministic);
	for (const Tensor &x : { dq, dk, dv })
		if (node)
			set_history(x, node);
	return { dq, dk, dv };
}

// differentiate attention of packed sequences
struct LibsystemsPackedAttentionBackward : LibsystemsAttentionBackward {
	SavedVariable starts_q, starts_k;
	int64_t max_q, max_k;

	variable_list apply(variable_list &&gradients) override
	{
		static const auto op = find<AttendPackedBackward>(
			"libsystems::packed_attention_backward");
		if (!gradients[0].defined())
			return variable_list(3);
		auto [dq, dk, dv] = op.call(gradients[0], q.unpack(), k.unpack(),
			v.unpack(), o.unpack(getptr()), l.unpack(), starts_q.unpack(),
			starts_k.unpack(), max_q, max_k, mask, scale,
			at::globalContext().deterministicAlgorithms());
		return variable_list{ dq, dk, dv };
	}
	void release_variables() override
	{
		LibsystemsAttentionBackward::release_variables();
		starts_q.reset_data();
		starts_k.reset_data();
	}
	std::string name() const override
	{
		return "LibsystemsPackedAttentionBackward";
	}
};

Two packed_attention(Keys keys, const Tensor &q, const Tensor &k,
	const Tensor &v, const Tensor &starts_q, const Tensor &starts_k,
	int64_t max_q, int64_t max_k, int64_t mask, double scale)
{
	static const auto op = find<AttendPacked>("libsystems::packed_attention");
	auto node = node_for<LibsystemsPackedAttentionBackward>(q, k, v);
	auto [o, l] = below(op, keys, q, k, v, starts_q, starts_k, max_q, max_k, mask,
		scale);
	if (node) {
		set_history(o, node);
		node->save(q, k, v, o, l, mask, scale);
		node->starts_q = SavedVariable(starts_q, false);
		node->starts_k = SavedVariable(starts_k, false);
		node->max_q = max_q;
		node->max_k = max_k;
	}
	return { o, l };
}

Three packed_attention_backward(Keys keys, const Tensor &d_o, const Tensor &q,
	const Tensor &k, const Tensor &v, const Tensor &o, const Tensor &l,
	const Tensor &starts_q, const Tensor &starts_k, int64_t max_q, int64_t max_k,
	int64_t mask, double scale, bool deterministic)
{
	static const auto op = find<AttendPackedBackward>(
		"libsystems::packed_attention_backward");
	auto node = node_for<NoSecond>(d_o, q, k, v, o, l);
	auto [dq, dk, dv] = below(op, keys, d_o, q, k, v, o, l, starts_q, starts_k,
		max_q, max_k, mask, scale, deterministic);
	for (const Tensor &x : { dq, dk, dv })
		if (node)
			set_history(x, node);
	return { dq, dk, dv };
}

// differentiate the norm
struct LibsystemsRmsNormBackward : Node {
	SavedVariable x, g, rho;
	double eps;

	variable_list apply(variable_list &&gradients) override
	{
		static const auto op = find<NormBackwards>(
			"libsystems::rms_norm_backward");
		if (!gradients[0].defined())
			return variable_list(2);
		auto [dx, dg] = op.call(gradients[0], x.unpack(), g.unpack(),
			rho.unpack(), eps);
		return { dx, dg };
	}
	void release_variables() override
	{
		for (SavedVariable *saved : { &x, &g, &rho })
			saved->reset_data();
	}
	std::string name() const override { return "LibsystemsRmsNormBackward"; }
};

Two norm(Keys keys, const Tensor &x, const Tensor &g, double eps)
{
	static const auto op = find<Norm>("libsystems::rms_norm");
	auto node = node_for<LibsystemsRmsNormBackward>(x, g);
	auto [y, rho] = below(op, keys, x, g, eps);
	if (node) {
		set_history(y, node);
		node->x = SavedVariable(x, false);
		node->g = SavedVariable(g, false);
		node->rho = SavedVariable(rho, false);
		node->eps = eps;
	}
	return { y, rho };
}

Two norm_backward(Keys keys, const Tensor &dy, const Tensor &x, const Tensor &g,
	const Tensor &rho, double eps)
{
	static const auto op = find<NormBackwards>("libsystems::rms_norm_backward");
	auto node = node_for<NoSecond>(dy, x, g, rho);
	auto [dx, dg] = below(op, keys, dy, x, g, rho, eps);
	for (const Tensor &d : { dx, dg })
		if (node)
			set_history(d, node);
	return { dx, dg };
}

}

TORCH_LIBRARY_IMPL(libsystems, Autograd, m)
{
	m.impl("attention", TORCH_FN(attention));
	m.impl("attention_backward", TORCH_FN(attention_backward));
	m.impl("packed_attention", TORCH_FN(packed_attention));
	m.impl("packed_attention_backward", TORCH_FN(packed_attention_backward));
	m.impl("rms_norm", TORCH_FN(norm));
	m.impl("rms_norm_backward", TORCH_FN(norm_backward));
}
