"""course_adapters: what the course's tests call, of all editions; in the place of
their tests/adapters.py"""
import torch
from libsystems import operators, rms_norm
from libsystems.ddp import DDP, DDPBucketed
from libsystems.fsdp import FSDP
from libsystems.sharded_optimizer import ShardedOptimizer


# name attention and RMSNorm as the course does
class FlashAttention(torch.autograd.Function):
	@staticmethod
	def forward(q, k, v, is_causal=False):
		return operators.attention(q, k, v, int(is_causal), 0.)

	@staticmethod
	def setup_context(ctx, inputs, output):
		*arrays, is_causal = inputs
		operators.keep_attention(ctx, (*arrays, int(is_causal), 0.), output)

	@staticmethod
	def backward(ctx, d_o, d_l):
		return operators.differentiate_attention(ctx, d_o, d_l)[:4]


class FirstOf:
	"""apply returns O alone"""
	apply = staticmethod(lambda *inputs: FlashAttention.apply(*inputs)[0])


class RMSNorm:
	apply = staticmethod(rms_norm)


def rmsnorm_backward(dy, x, g):
	"""dx, dg"""
	y, rho = operators.norm(x, g, 1e-5)
	return operators.norm_backward(dy, x, g, rho, 1e-5)


def get_flashattention_autograd_function_pytorch():
	return FirstOf


def get_rmsnorm_autograd_function_pytorch():
	return RMSNorm


get_flashattention_autograd_function_triton = \
	get_flashattention_autograd_function_pytorch
get_rmsnorm_autograd_function_triton = get_rmsnorm_autograd_function_pytorch


def rmsnorm_backward_x_pytorch(dy, x, g):
	return rmsnorm_backward(dy, x, g)[0]


def rmsnorm_backward_g_pytorch(dy, x, g):
	return rmsnorm_backward(dy, x, g)[1]


# name data parallelism as the course does
def get_ddp_individual_parameters(module):
	return DDP(module)


def ddp_individual_parameters_on_after_backward(ddp_model, optimizer):
	ddp_model.finish_gradient_synchronization()


def get_ddp_bucketed(module, bucket_size_mb):
	return DDPBucketed(module, bucket_size_mb)


def ddp_bucketed_on_train_batch_start(ddp_model, optimizer):
	pass                                     # nothing waits from the last step


ddp_bucketed_on_after_backward = ddp_individual_parameters_on_after_backward
get_ddp = get_ddp_individual_parameters
ddp_on_after_backward = ddp_individual_parameters_on_after_backward


# name sharding as the course does
def get_sharded_optimizer(params, optimizer_cls, **settings):
	return ShardedOptimizer(params, optimizer_cls, **settings)


def get_fsdp(module, compute_dtype=None):
	return FSDP(module, compute_dtype)


def fsdp_on_after_backward(fsdp_model, optimizer):
	fsdp_model.finish_gradient_synchronization()


def fsdp_gather_full_params(fsdp_model):
	return fsdp_model.gather_full_params()
