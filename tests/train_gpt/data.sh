#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Training on files of tokens: with --exact, all meshes have the same losses, also if they continue from each other's
# checkpoints; files are mixed by weights; files and checkpoints that do not fit are refused.
#
#   data.sh PROGRAM INCLUDE_FOLDER
set -euo pipefail
program=$1 include=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
find "$include/hocket/core" -name '*.hpp' | LC_ALL=C sort | xargs cat >"$folder/text"
tokens() { perl -0777 -ne 'print pack("v*", unpack("C*", $_))'; }
head -c 4000 "$folder/text" | tokens >"$folder/small.bin"
head -c 20000 "$folder/text" | tokens >"$folder/large.bin"
failed=0
complain() { echo "$*" >&2; failed=1; }
steps=10
train() {  # options...
  "$program" --text "$folder/text" --steps $steps --sequences 24 --layers 2 --width 16 --context 16 --out "$folder" --exact \
    --losses "$folder/losses" --data "$folder/small.bin=3" "$folder/large.bin" "$@" >"$folder/log" 2>&1
}

train || { cat "$folder/log"; exit 1; }
mv "$folder/losses" "$folder/whole"
for mesh in '--dp 2 --tp 2' '--dp 3 --zero 3' '--pp 2 --microbatches 3' '--dp 2 --accumulate 3'; do
  read -ra options <<<"$mesh"
  train "${options[@]}" || { cat "$folder/log"; failed=1; continue; }
  cmp -s "$folder/whole" "$folder/losses" || complain "$mesh: the losses differ"
done
echo "five meshes have the same losses"

! train --dp 2 --checkpoint "$folder/kept" --checkpoint-every 4 --fail-in-step 7 || complain "no failure"
train --dp 3 --resume "$folder/kept" || cat "$folder/log"
cmp -s <(tail -n 6 "$folder/whole") <(tail -n +2 "$folder/losses") || complain "after a restart, the losses differ"
echo "a restart on another mesh continues with the same sequences"

"$program" --text "$folder/text" --steps $steps --sequences 24 --layers 2 --width 16 --context 16 --out "$folder" --exact \
  --losses "$folder/losses" >"$folder/log" 2>&1
! cmp -s "$folder/whole" "$folder/losses" || complain "the text and the files lead to equal losses"

refused() {  # expected text, options...
  local words=$1
  shift
  ! "$program" --text "$folder/text" --steps $steps --sequences 24 --layers 2 --width 16 --context 16 --out "$folder" "$@" \
    >"$folder/log" 2>&1 || complain "$*: not refused"
  grep -q -e "$words" "$folder/log" || { complain "$*: the error does not match: $words"; cat "$folder/log"; }
}
printf 'odd' >"$folder/odd.bin"
printf '\x01\x00\x02\x00' >"$folder/short.bin"
perl -e 'print pack("v*", (300) x 1000)' >"$folder/wide.bin"
for ranks in 1 2; do
  refused "'$folder/none.bin'" --dp $ranks --data "$folder/none.bin"
  refused "'$folder/odd.bin'" --dp $ranks --data "$folder/odd.bin"
  refused "'$folder/short.bin' has 2 tokens of 16 bits, fewer than a sequence" --dp $ranks --data "$folder/short.bin"
  refused "'$folder/wide.bin': sample [0-9]* has the token 300" --dp $ranks --data "$folder/wide.bin"
  refused "must be a weight, such as" --dp $ranks --data "$folder/small.bin=0"
done
refused "a training with other data: " --exact --resume "$folder/kept" --data "$folder/small.bin" "$folder/large.bin"
refused "a training with other data: " --exact --resume "$folder/kept"
echo "files and checkpoints that do not fit are refused"
exit $failed
