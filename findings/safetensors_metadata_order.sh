#!/usr/bin/env bash
# safetensors_metadata_order.sh: safetensors 0.8.0, the Python package
#
# The same tensors with the same metadata give files of other bytes each time
# that they are saved, also within one process.  Tensors are sorted by type and
# name before they are written; metadata are kept in a hash table with a random
# seed, and written in the order of the table.  With one key the bytes are always
# the same.  So the checksums of two checkpoints do not say whether two runs
# agree; their tensors and metadata have to be compared.
#
# Seen (the second number is another one in each run, 50 or a little less):
#     1 key: 1 different file out of 50
#     8 keys: 50 different files out of 50
#     all of them hold equal tensors and equal metadata
#
# Downloads about 20 MB into a temporary folder.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check \
	safetensors==0.8.0 numpy==2.2.6
"$work/venv/bin/python" - "$work" <<'END'
import sys
import numpy
from safetensors import safe_open
from safetensors.numpy import save_file
tensors = {"b": numpy.arange(3.0), "a": numpy.ones((2, 2), numpy.float32)}

def different_files(keys):
    metadata = {f"key {i}": str(i) for i in range(keys)}
    seen = set()
    for i in range(50):
        path = f"{sys.argv[1]}/saved.safetensors"
        save_file(tensors, path, metadata)
        with open(path, "rb") as file:
            seen.add(file.read())
        with safe_open(path, framework="np") as file:
            assert file.metadata() == metadata
            for name in tensors:
                assert (file.get_tensor(name) == tensors[name]).all()
    return len(seen)

one, many = different_files(1), different_files(8)
print(f"1 key: {one} different file out of 50")
print(f"8 keys: {many} different files out of 50")
print("all of them hold equal tensors and equal metadata")
sys.exit(one != 1 or many < 2)
END
echo 'safetensors behaves as described'
