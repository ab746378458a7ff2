# torch.sh: sourced by tests of PyTorch through the package, where it is
. tests/base/check.sh
site=$PWD/${BUILD:-build}/site
export PYTHONPATH=$site:$PWD/tests/python PYTHONDONTWRITEBYTECODE=1
# inputs and compiled programs are small: waiting threads would only be in the way
export OMP_NUM_THREADS=2 TORCHINDUCTOR_COMPILE_THREADS=1
[ -d "$site/libsystems" ] || exit 77
on_gpu() { # is there a GPU for PyTorch?
	python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'
}
