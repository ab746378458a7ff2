"""backend: setuptools' build backend; it asks for PyTorch if there is none

python3 backend.py: prints the version of the PyTorch that there is
"""
import os
import re
import subprocess
import sys

from setuptools import build_meta
from setuptools.build_meta import *

ASK = """import importlib.util, os
spec = importlib.util.find_spec("torch")
print(os.path.dirname(spec.origin) if spec else "")"""


def torch_folder():
	"""of the PyTorch in this environment, or else outside of pip's; or \"\""""
	for options in ([], ["-E"]):
		asked = subprocess.run([sys.executable, *options, "-c", ASK], cwd="/",
			check=True, capture_output=True, text=True)
		if asked.stdout.strip():
			return asked.stdout.strip()
	return ""


def torch_version():
	"""of that PyTorch; "": there is none"""
	if not torch_folder():
		return ""
	path = os.path.join(torch_folder(), "version.py")
	with open(path, encoding="utf-8") as file:
		return re.search(r"__version__ = '(.*)'", file.read())[1]


def get_requires_for_build_wheel(config_settings=None):
	needs = build_meta.get_requires_for_build_wheel(config_settings)
	return needs if torch_folder() else needs + ["torch>=2.9"]


if __name__ == "__main__":
	print(torch_version())
