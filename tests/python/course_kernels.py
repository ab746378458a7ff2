"""course_adapters: what the course's tests of RMSNorm call; in the place of its
tests/adapters.py"""
from rmsnorm import RMSNorm
from rmsnorm import rmsnorm_backward_g as rmsnorm_backward_g_pytorch
from rmsnorm import rmsnorm_backward_x as rmsnorm_backward_x_pytorch


def get_rmsnorm_autograd_function_pytorch():
	return RMSNorm


get_rmsnorm_autograd_function_triton = get_rmsnorm_autograd_function_pytorch
