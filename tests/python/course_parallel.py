"""course_adapters: what the course's tests of data parallelism and of sharding
call; in the place of its tests/adapters.py"""
from ddp import DDP, DDPBucketed
from fsdp import FSDP
from sharded_optimizer import ShardedOptimizer


def get_ddp_individual_parameters(module):
	return DDP(module)


def ddp_individual_parameters_on_after_backward(ddp_model, optimizer):
	ddp_model.finish_gradient_synchronization()


def get_ddp_bucketed(module, bucket_size_mb):
	return DDPBucketed(module, bucket_size_mb)


def ddp_bucketed_on_train_batch_start(ddp_model, optimizer):
	pass                                     # nothing waits from the last step


def ddp_bucketed_on_after_backward(ddp_model, optimizer):
	ddp_model.finish_gradient_synchronization()


def get_ddp(module):
	return DDP(module)


def ddp_on_after_backward(ddp_model, optimizer):
	ddp_model.finish_gradient_synchronization()


def get_sharded_optimizer(params, optimizer_cls, **settings):
	return ShardedOptimizer(params, optimizer_cls, **settings)


def get_fsdp(module, compute_dtype=None):
	return FSDP(module, compute_dtype)


def fsdp_on_after_backward(fsdp_model, optimizer):
	fsdp_model.finish_gradient_synchronization()


def fsdp_gather_full_params(fsdp_model):
	return fsdp_model.gather_full_params()
