# torch.sh: sourced by tests of PyTorch through libsystems.so
. tests/base/check.sh
export LIBSYSTEMS=$PWD/${BUILD:-build}/libsystems.so
export PYTHONPATH=$PWD/src/python:$PWD/tests/python PYTHONDONTWRITEBYTECODE=1
[ -f "$LIBSYSTEMS" ] || exit 77         # there is none with SANITIZE=1
python3 -c 'import torch' 2>/dev/null || exit 77
