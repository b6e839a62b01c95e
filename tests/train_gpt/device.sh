#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Training with gradients that are accumulated in device memory gives the same losses and norms as on the host, at every
# ZeRO stage. The device is emulated in host memory by a library with the names of CUDA's driver. Without a driver, or
# with gradients that are not floats, the program names the right options.
#
#   device.sh PROGRAM INCLUDE_FOLDER FOLDER_OF_THE_LIBRARY
set -euo pipefail
program=$1 include=$2 library=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
find "$include" -name '*.hpp' | LC_ALL=C sort | xargs cat >"$folder/text"
failed=0
complain() { echo "$*" >&2; failed=1; }
train() {  # losses, options...
  local losses=$1
  shift
  LD_LIBRARY_PATH=$library "$program" --text "$folder/text" --steps 6 --sequences 12 --width 40 --context 16 \
    --out "$folder" --losses "$folder/$losses" "$@" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
}

for mesh in '--dp 3 --zero 0' '--dp 3 --zero 1' '--dp 3 --zero 2 --accumulate 2' '--dp 3 --zero 3' \
  '--dp 4 --hybrid 2 --zero 2' '--dp 2 --pp 2 --microbatches 3 --precision bfloat16'; do
  read -ra options <<<"$mesh"
  train host "${options[@]}"
  train device "${options[@]}" --device cuda
  grep -q 'from GPU memory' "$folder/log" || complain "$mesh: the output does not mention the device"
  paste <(tail -n +2 "$folder/host" | cut -d" " -f1-3) <(tail -n +2 "$folder/device" | cut -d" " -f1-3) |
    awk 'function far(a, b) { return (a > b ? a - b : b - a) > 1e-5 * (a > 0 ? a : -a) }
         { lines++ } $1 != $4 || far($2, $5) || far($3, $6) { bad++; print }
         END { exit lines < 6 || bad > 0 }' || complain "$mesh: losses or norms differ"
done

refused() {  # words, options...
  local words=$1
  shift
  ! "$program" --text "$folder/text" --device cuda --out "$folder" "$@" >"$folder/log" 2>&1 || complain "$*: not refused"
  grep -q -e "$words" "$folder/log" || complain "$*: another error: $(cat "$folder/log")"
}
CUDA_VISIBLE_DEVICES='' refused 'no CUDA here: .*or add gradients on the host: --device cpu'
refused 'as floats: omit --exact' --exact
refused 'as floats: omit --wire bfloat16' --wire bfloat16
exit $failed
