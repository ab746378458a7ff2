"""setup.py: the library by make, and the operators against PyTorch's headers"""
import glob
import os
import re
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

from backend import torch_folder, torch_version  # noqa: E402

TORCH = re.sub(r"\W", "_", torch_version())
BUILD = os.path.join(ROOT, "build", "python", TORCH)

# read the version of the library
if not os.path.exists(os.path.join(ROOT, "Makefile")):
	sys.exit("libsystems is built inside a clone of its repository: the library "
		"is compiled there by make")


def version():
	with open(os.path.join(ROOT, "src/ops/library.h"), encoding="utf-8") as file:
		number = int(re.search(r"LIBSYSTEMS_VERSION (\d+)", file.read())[1])
	return f"{number // 10000}.{number // 100 % 100}.{number % 100}"

# build the library beside the operators
class Build(build_ext):
	def run(self):
		torch = torch_folder()
		include = os.path.join(torch, "include")
		if not os.path.exists(os.path.join(include, "torch/csrc/stable/ops.h")):
			sys.exit("libsystems: PyTorch 2.9 or newer is needed, with its "
				f"headers; found: {torch or 'none'}")
		self.include_dirs = [include, os.path.join(ROOT, "src"),
			os.path.join(include, "torch/csrc/api/include")]
		self.library_dirs = [os.path.join(torch, "lib")]
		subprocess.run(["make", "-C", ROOT, "package"], check=True)
		super().run()
		shutil.copytree(os.path.join(ROOT, "build/package"),
			os.path.join(self.build_lib, "libsystems"), dirs_exist_ok=True)

# describe the package
def extension(name, source, **more):
	return Extension("libsystems._" + name, ["libsystems/" + source],
		depends=glob.glob(os.path.join(ROOT, "src/ops/*.h"))
			+ glob.glob(os.path.join(HERE, "libsystems/*.h")),
		libraries=["torch_cpu", "c10"], py_limited_api=True,
		extra_compile_args=["-std=c++20", "-O2", "-fvisibility=hidden"], **more)


os.makedirs(BUILD, exist_ok=True)
setup(version=version(), packages=["libsystems"],
	package_data={"libsystems": ["py.typed"]}, include_package_data=False,
	ext_modules=[extension("operators", "operators.cc",
		define_macros=[("TORCH_TARGET_VERSION", "0x0209000000000000ULL")]),
		extension("autograd_" + TORCH, "autograd.cc", optional=True)],
	cmdclass={"build_ext": Build},
	options={"egg_info": {"egg_base": BUILD}, "build": {"build_base": BUILD},
		"bdist": {"bdist_base": BUILD},
		"bdist_wheel": {"py_limited_api": "cp310"}})
