# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""read_shards.py WHOLE SHARD...: reads the shards of a checkpoint by the package safetensors.

Each part must have the values that WHOLE, one file of the whole tensors, has at the elements that its name states, such as
`weights[0:2,4:8]`; the parts must have each element of each tensor.
"""

import re
import sys

import numpy
from safetensors.numpy import load_file

checksums = "hocket.crc32c_of_blocks"

whole = load_file(sys.argv[1])
found = {name: numpy.zeros(tensor.shape, bool) for name, tensor in whole.items()}
for shard in sys.argv[2:]:
    parts = load_file(shard)
    parts.pop(checksums)
    for part, values in parts.items():
        name, rectangle = re.fullmatch(r"(.*?)(?:\[([\d:,]+)\])?", part).groups()
        ranges = [each.split(":") for each in rectangle.split(",")] if rectangle else []
        where = tuple(slice(int(begin), int(end)) for begin, end in ranges)
        expected = whole[name][where]
        if values.dtype != expected.dtype or values.shape != expected.shape or values.tobytes() != expected.tobytes():
            sys.exit(f"{shard}: '{part}' has other values than the whole tensor")
        found[name][where] = True
for name, elements in found.items():
    if not elements.all():
        sys.exit(f"no shard has {elements.size - elements.sum()} of {elements.size} elements of '{name}'")
if not found or len(sys.argv) < 3:
    sys.exit("nothing was compared")
print(f"{len(found)} tensors in {len(sys.argv) - 2} shards: equal")
