# torch.sh: sourced by tests of PyTorch through the package, where it is
. tests/base/check.sh
site=$PWD/${BUILD:-build}/site
export PYTHONPATH=$site:$PWD/tests/python PYTHONDONTWRITEBYTECODE=1
# inputs and compiled programs are small: waiting threads would only be in the way
export OMP_NUM_THREADS=2 TORCHINDUCTOR_COMPILE_THREADS=1
[ -d "$site/libsystems" ] || exit 77
has_gpus() { # NUMBER: are there so many GPUs for PyTorch?
	python3 -c 'import sys, torch
sys.exit(torch.cuda.device_count() < int(sys.argv[1]))' "$1"
}
