"""course_adapters: what the course's tests call, of all editions; in the place of
their tests/adapters.py"""
from libsystems.ddp import DDP, DDPBucketed
from flash_attention import FlashAttention
from libsystems.fsdp import FSDP
from rmsnorm import RMSNorm
from rmsnorm import rmsnorm_backward_g as rmsnorm_backward_g_pytorch
from rmsnorm import rmsnorm_backward_x as rmsnorm_backward_x_pytorch
from libsystems.sharded_optimizer import ShardedOptimizer


# name attention and RMSNorm as the course does
def get_flashattention_autograd_function_pytorch():
	return FlashAttention


def get_flashattention_autograd_function_triton():
	return FlashAttention


def get_rmsnorm_autograd_function_pytorch():
	return RMSNorm


def get_rmsnorm_autograd_function_triton():
	return RMSNorm


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
