"""backend: setuptools' build backend; it asks for PyTorch if there is none"""
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


def get_requires_for_build_wheel(config_settings=None):
	needs = build_meta.get_requires_for_build_wheel(config_settings)
	return needs if torch_folder() else needs + ["torch>=2.9"]
