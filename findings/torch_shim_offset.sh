#!/usr/bin/env bash
# torch_shim_offset.sh: torch 2.11.0, aoti_torch__reinterpret_tensor of the C shim
#
# The C functions of torch/csrc/inductor/aoti_torch/c/shim.h are what an operator
# may call that is to run under other versions of PyTorch.  One of them gives a
# tensor other sizes and strides, and takes an argument that the header calls
# storage_offset.  In torch.as_strided and in Tensor.set_ an argument of this name
# is the offset in the storage.  Here it is added to the tensor's own, so whoever
# passes what aoti_torch_get_storage_offset returned reads from twice as far, past
# the end for a view of the last elements.
#
# Seen, of a view that begins at element 10 of twenty:
#     aoti_torch_get_storage_offset: 10
#     reinterpreted with storage_offset 0: offset 10, first element 10
#     reinterpreted with storage_offset 5: offset 15, first element 15
#     torch.as_strided with storage_offset 5: offset 5, first element 5
#
# Downloads about 3 GB into a temporary folder.
set -euo pipefail
. "$(dirname "$0")/torch"
cat >"$work/offset.py" <<'END'
import ctypes
import os
import sys
import torch

shim = ctypes.CDLL(os.path.join(torch.__path__[0], "lib", "libtorch_cpu.so"))
i64, i32, handle = ctypes.c_int64, ctypes.c_int32, ctypes.c_void_p

def made(name, *arguments, result=handle):
	x = result()
	if getattr(shim, "aoti_torch_" + name)(*arguments, ctypes.byref(x)):
		sys.exit(f"{name} failed")
	return x

numbers = torch.arange(20, dtype=torch.float32)
one, size = (i64 * 1)(1), (i64 * 1)(5)
def reinterpreted(offset):
	view = made("create_tensor_from_blob", ctypes.c_void_p(numbers.data_ptr()),
		i64(1), size, one, i64(10), i32(shim.aoti_torch_dtype_float32()),
		i32(shim.aoti_torch_device_type_cpu()), i32(0))
	own = made("get_storage_offset", view, result=i64).value
	seen = made("_reinterpret_tensor", view, i64(1), size, one, i64(offset))
	first = ctypes.cast(made("get_data_ptr", seen), ctypes.POINTER(ctypes.c_float))
	return own, made("get_storage_offset", seen, result=i64).value, first[0]

print("aoti_torch_get_storage_offset:", reinterpreted(0)[0])
right = True
for offset, expected in (0, (10, 10, 10)), (5, (10, 15, 15)):
	own, now, first = reinterpreted(offset)
	print(f"reinterpreted with storage_offset {offset}: offset {now}, "
		f"first element {first:g}")
	right &= (own, now, first) == expected
x = torch.as_strided(numbers[10:], (5,), (1,), storage_offset=5)
print(f"torch.as_strided with storage_offset 5: offset {x.storage_offset()}, "
	f"first element {x[0]:g}")
sys.exit(not right or x.storage_offset() != 5)
END
"$work/venv/bin/python" "$work/offset.py"
echo 'torch behaves as described'
