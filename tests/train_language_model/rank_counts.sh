#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Trains for 50 steps on 1, 2, 3 and 4 processes with the same batch. Losses and gradient norms must agree to 1e-5
# relative; with --exact every bit must be the same. The text is the library itself.
#
#   rank_counts.sh PROGRAM INCLUDE_FOLDER
set -euo pipefail
program=$1 include=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
find "$include" -name '*.hpp' | LC_ALL=C sort | xargs cat >"$folder/text"
[ "$(wc -c <"$folder/text")" -ge 300000 ] || { echo "the text is shorter than 300 KB" >&2; exit 1; }

train() {  # processes name [--exact]
  local processes=$1 name=$2
  shift 2
  "$program" --text "$folder/text" --steps 50 --processes "$processes" --out "$folder" \
    --losses "$folder/$name" "$@" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
  [ "$(wc -l <"$folder/$name")" = 51 ] || { echo "$name: not 50 steps"; cat "$folder/log"; exit 1; }
}

for processes in 1 2 3 4; do
  train $processes rounded.$processes
  train $processes exact.$processes --exact
done

failed=0
for processes in 2 3 4; do
  paste -d ' ' "$folder/rounded.1" "$folder/rounded.$processes" | awk -v n=$processes '
    function difference(a, b) { return (a > b ? a - b : b - a) / (b > 0 ? b : -b) }
    NR > 1 {
      worst_loss = difference($2, $7) > worst_loss ? difference($2, $7) : worst_loss
      worst_norm = difference($3, $8) > worst_norm ? difference($3, $8) : worst_norm
    }
    END {
      printf "1 and %d processes: losses differ by at most %.1e relative, gradient norms by %.1e\n", n, worst_loss, worst_norm
      exit !(worst_loss <= 1e-5)
    }' || failed=1
  if cmp -s "$folder/exact.1" "$folder/exact.$processes"; then
    echo "1 and $processes processes: exact losses and norms are the same, bit for bit"
  else
    echo "1 and $processes processes: exact losses or norms DIFFER:"
    diff "$folder/exact.1" "$folder/exact.$processes" | head -n 6 || true
    failed=1
  fi
done
exit $failed
