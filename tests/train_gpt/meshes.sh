#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Trains the same batches on meshes of processes. Losses must agree to 1e-4 relative; with --exact every bit of losses
# and gradient norms must be the same. The text is the library itself.
#
#   meshes.sh PROGRAM INCLUDE_FOLDER          some meshes, 12 steps
#   meshes.sh PROGRAM INCLUDE_FOLDER --all    all of dp 1 to 4, tp 1 and 2, pp 1, 2 and 4, up to 8 processes, at all
#                                             stages, in 1, 2 and 4 microbatches, 50 steps: takes hours
set -euo pipefail
program=$1 include=$2 which=${3:-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
find "$include" -name '*.hpp' | LC_ALL=C sort | xargs cat >"$folder/text"

# "dp tp pp zero microbatches"; the first is what all others are compared with.
meshes() {
  if [ "$which" != --all ]; then
    printf '%s\n' '1 1 1 0 1' '1 1 1 0 4' '2 1 1 1 2' '3 1 1 3 1' '1 2 1 0 1' '1 1 4 0 4' '2 1 2 1 2' '2 2 1 2 1' '2 2 2 3 2'
    return
  fi
  local dp tp pp zero microbatches
  for microbatches in 1 2 4; do
    for dp in 1 2 3 4; do for tp in 1 2; do for pp in 1 2 4; do for zero in 0 1 2 3; do
      [ $((dp * tp * pp)) -le 8 ] && echo "$dp $tp $pp $zero $microbatches"
    done; done; done; done
  done
  return 0
}
[ "$which" = --all ] && steps=50 || steps=12

failed=0
train() {  # name, options...
  local name=$1
  shift
  "$program" --text "$folder/text" --steps $steps --sequences 48 --context 32 --seconds 10000 --out "$folder" --losses "$folder/$name" "$@" \
    >"$folder/log" 2>&1 || { echo "$* failed:"; cat "$folder/log"; exit 1; }
  [ "$(wc -l <"$folder/$name")" = $((steps + 1)) ] || { echo "$*: not $steps steps"; cat "$folder/log"; exit 1; }
  grep -q '^rank 0 keeps \([0-9]*\) bytes, by the formula \1$' "$folder/log" ||
    { echo "$*: the memory is not that of the formula"; tail -n 1 "$folder/log"; failed=1; }
}

first=""
while read -r dp tp pp zero microbatches; do
  options=(--dp "$dp" --tp "$tp" --pp "$pp" --zero "$zero" --microbatches "$microbatches")
  train rounded "${options[@]}"
  train exact "${options[@]}" --exact
  if [ -z "$first" ]; then
    first="${options[*]}"
    mv "$folder/rounded" "$folder/rounded.first"
    mv "$folder/exact" "$folder/exact.first"
    continue
  fi
  paste -d ' ' "$folder/rounded.first" "$folder/rounded" | awk -v of="${options[*]}" '
    function difference(a, b) { return (a > b ? a - b : b - a) / (b > 0 ? b : -b) }
    NR > 1 { worst = difference($2, $7) > worst ? difference($2, $7) : worst }
    END { printf "%s: losses differ by at most %.1e relative", of, worst; exit !(worst <= 1e-4) }' || failed=1
  if cmp -s "$folder/exact.first" "$folder/exact"; then
    echo "; with --exact no bit does"
  else
    echo "; with --exact they DIFFER:"
    diff "$folder/exact.first" "$folder/exact" | head -n 6 || true
    failed=1
  fi
done < <(meshes)
exit $failed
