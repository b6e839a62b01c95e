#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Python's package safetensors opens every shard of checkpoints of several meshes, with the values of a conversion to one file.
#
#   safetensors.sh PROGRAM HOCKET_CHECKPOINT INCLUDE_FOLDER PYTHON
#
# PYTHON is an interpreter that has the package, if there is one. Exit status: 77 without the package.
set -euo pipefail
program=$1 tool=$2 include=$3 python=$4
here=$(cd "$(dirname "$0")" && pwd)
for each in "$python" python3; do
  if "$each" -c 'import numpy, safetensors' 2>/dev/null; then found=$each; break; fi
done
if [ -z "${found:-}" ]; then
  echo "skipped: no Python with the packages safetensors and numpy"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
find "$include" -name '*.hpp' | LC_ALL=C sort | xargs cat >"$folder/text"

read_shards() {  # of the checkpoint at the end of a training in $folder/kept
  local at
  at=$(cat "$folder/kept/latest")
  rm -f "$folder/whole.safetensors"
  "$tool" convert "$folder/kept" --at "$at" --file "$folder/whole.safetensors" >/dev/null
  "$found" "$here/read_shards.py" "$folder/whole.safetensors" "$folder/kept/$at"/*.safetensors
}

for mesh in '' '--dp 3 --zero 3' '--tp 2 --pp 2 --microbatches 3' '--dp 2 --tp 2 --zero 1' '--dp 4 --hybrid 2 --zero 2'; do
  rm -rf "$folder/kept"
  read -ra options <<<"$mesh"
  "$program" --text "$folder/text" --steps 3 --sequences 24 --width 32 --context 16 --out "$folder" --checkpoint "$folder/kept" \
    --checkpoint-every 3 "${options[@]}" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
  read_shards || { echo "mesh: $mesh" >&2; exit 1; }
done

# A value that differs must be noticed.
shard=$(ls "$folder/kept/$(cat "$folder/kept/latest")"/shard-0-*)
header=$(od -An -t u8 -N 8 "$shard")
printf '\x7f' | dd of="$shard" bs=1 seek=$((8 + header + 101)) conv=notrunc status=none
if "$found" "$here/read_shards.py" "$folder/whole.safetensors" "$shard" >"$folder/log" 2>&1; then
  echo "a changed value was not noticed" >&2
  exit 1
fi
grep -q 'other values than the whole tensor' "$folder/log"
