#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Runs the program like a user, on four processes: after SECONDS of training, its loss on held-out text is below that of
# a bigram model of the same text, and it has written a curve, a report and a sample. The text is the library.
#
#   learns.sh PROGRAM INCLUDE_FOLDER SECONDS
set -euo pipefail
program=$1 include=$2 seconds=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
find "$include" -name '*.hpp' | LC_ALL=C sort | xargs cat >"$folder/text"

"$program" --text "$folder/text" --dp 2 --pp 2 --zero 1 --microbatches 4 --seconds "$seconds" --out "$folder" --must-learn | tee "$folder/log"
grep -q 'The model beats the bigram model' "$folder/log"
grep -q 'gradients dp partial sum, then dp shard, states dp shard' "$folder/log"
grep -q 'Generated text' "$folder/log"
grep -q '</svg>' "$folder/loss.svg"
grep -q '</html>' "$folder/report.html"
[ "$(grep -c '</svg>' "$folder/report.html")" -ge 3 ] || { echo "the report lacks pictures" >&2; exit 1; }
