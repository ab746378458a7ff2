"""libsystems: attention, RMSNorm, and containers for data parallelism

    O = libsystems.flash_attention(q, k, v, causal=True)
    y = libsystems.rms_norm(x, weight)
    model = libsystems.DistributedDataParallel(model)

`python -m libsystems` says which build this is, and checks it.
"""
from .containers import (DistributedDataParallel, FullyShardedDataParallel,
	ShardedOptimizer)
from .functions import flash_attention, flash_attention_varlen, rms_norm
from .shared import version as _version

__all__ = ["DistributedDataParallel", "FullyShardedDataParallel",
	"ShardedOptimizer", "flash_attention", "flash_attention_varlen", "rms_norm"]


def __getattr__(name: str) -> str:
	if name == "__version__":
		return _version()
	raise AttributeError(f"module 'libsystems' has no attribute {name!r}")
