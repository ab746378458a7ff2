"""shared: the C library, which lies beside this file"""
import ctypes
import functools
import os

HERE = os.path.dirname(os.path.abspath(__file__))


def path():
	return os.path.join(HERE, "libsystems.so")


@functools.cache
def library():
	shared = ctypes.CDLL(path())
	shared.libsystems_compiler.restype = ctypes.c_char_p
	shared.libsystems_gpus.restype = ctypes.c_char_p
	return shared


def version() -> str:
	number = library().libsystems_version()
	return f"{number // 10000}.{number // 100 % 100}.{number % 100}"
