"""containers: modules and optimizers that are divided among ranks"""
from typing import Optional

import torch

from .ddp import DDPBucketed
from .fsdp import FSDP
from .sharded_optimizer import ShardedOptimizer

__all__ = ["DistributedDataParallel", "FullyShardedDataParallel",
	"ShardedOptimizer"]


class DistributedDataParallel(DDPBucketed):
	"""A module of which each rank has a copy; gradients become means over ranks.

	The job is that of torch.distributed's process group, or of the variables
	RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Weights and buffers become
	those of rank 0. After the backward pass, finish_gradient_synchronization()
	waits for the sums, which travel in buckets of at most bucket_cap_mb
	megabytes; None: in one. Raises TypeError for parameters of a type that is
	not supported, ValueError where nothing is to be trained, RuntimeError
	where the ranks do not come together.
	"""
	def __init__(self, module: torch.nn.Module,
			bucket_cap_mb: Optional[float] = 25):
		super().__init__(module, bucket_cap_mb)


class FullyShardedDataParallel(FSDP):
	"""A module whose weights are divided among the ranks, a range to each.

	Weights of layers are gathered when they are needed, in compute_dtype if it
	is given, and gradients are summed to the ranges. After the backward pass,
	finish_gradient_synchronization(); the optimizer sees the ranges. The job
	and the errors are those of DistributedDataParallel.
	"""
	def __init__(self, module: torch.nn.Module,
			compute_dtype: Optional[torch.dtype] = None):
		super().__init__(module, compute_dtype)
