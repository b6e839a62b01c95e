#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Trains 50 steps with the same batches on meshes of processes. Losses must agree to 1e-5 relative; with --exact, and
# for all ZeRO stages of one mesh, all bits of losses and gradient norms must be equal; with --exact also for all levels
# of vector instructions. The text is the library.
#
#   meshes.sh PROGRAM INCLUDE_FOLDER          some meshes, and other options
#   meshes.sh PROGRAM INCLUDE_FOLDER --all    all of dp 1 to 4, tp 1 and 2, pp 1, 2 and 4, up to 8 processes, at all
#                                             stages, in 1, 2 and 4 microbatches, and more options: takes more than
#                                             ten minutes on two cores
set -euo pipefail
program=$1 include=$2 which=${3:-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
find "$include" -name '*.hpp' | LC_ALL=C sort | xargs cat >"$folder/text"

# "dp tp pp zero microbatches"; all are compared with the first.
meshes() {
  if [ "$which" != --all ]; then
    printf '%s\n' '1 1 1 0 1' '3 1 1 3 1' '1 1 4 0 4' '2 1 2 1 2' '2 2 1 2 1' '2 2 2 3 2'
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
width=32
common=(--steps 50 --sequences 48 --context 16 --seconds 10000 --out "$folder")
steps=${common[1]}

failed=0
train() {  # name, options...
  local name=$1
  shift
  "$program" --text "$folder/text" "${common[@]}" --width $width --losses "$folder/$name" "$@" >"$folder/log" 2>&1 || { echo "$* failed:"; cat "$folder/log"; exit 1; }
  [ "$(wc -l <"$folder/$name")" = $((steps + 1)) ] || { echo "$*: not $steps steps"; cat "$folder/log"; exit 1; }
  grep -q '^rank 0 stores \([0-9]*\) bytes, the formula gives \1$' "$folder/log" ||
    { echo "$*: the memory differs from the formula"; tail -n 1 "$folder/log"; failed=1; }
  grep -q '^\([0-9]*\) of \1 ranks store what the formula gives$' "$folder/log" ||
    { echo "$*: the memory of a rank differs from the formula"; failed=1; }
  awk '
    $1 == "mesh:" { ranks = $2 }
    $1 == "memory:" { listed = 1; next }
    listed && $1 == "rank" && $2 + 0 == named { ++named; next }
    listed && $1 == "each" && $4 == named { named = $6 + 1; next }
    { listed = 0 }
    END { exit !(ranks > 0 && named == ranks) }' "$folder/log" ||
    { echo "$*: the plan does not name the memory of each rank:"; grep -A 9 '^memory' "$folder/log"; failed=1; }
  # The formula does not contain small sums of norms and counts; skipped steps gather no parameters.
  sed -n 's/^rank 0 moved .* all ranks \([0-9.]*\) MB, by the formulas \([0-9.]*\) MB$/\1 \2/p' "$folder/log" | awk '
    { near = $1 >= 0.98 * $2 - 0.001 && $1 <= 1.02 * $2 + 0.08 } END { exit !near }' ||
    { echo "$*: the bytes sent differ from the formulas:"; grep '^rank 0 moved' "$folder/log" || true; failed=1; }
}

# Checks that losses without --exact are within TOLERANCE of the first ones.
check_rounded() {  # tolerance, options...
  local tolerance=$1
  shift
  train rounded "$@"
  paste -d ' ' "$folder/rounded.first" "$folder/rounded" | awk -v of="$*" -v tolerance="$tolerance" '
    function difference(a, b) { return (a > b ? a - b : b - a) / (b > 0 ? b : -b) }
    NR > 1 { worst = difference($2, $7) > worst ? difference($2, $7) : worst }
    END { printf "%s: losses differ by at most %.1e relative, of %s\n", of, worst, tolerance; exit !(worst <= tolerance) }' ||
    failed=1
}

# Checks that losses and norms with --exact have the bits of those in FIRST.
check_exact() {  # first, options...
  local first=$1
  shift
  train exact "$@" --exact
  if cmp -s "$folder/$first" "$folder/exact"; then
    echo "$*: with --exact, all bits are equal"
  else
    echo "$*: with --exact, bits DIFFER:"
    diff "$folder/$first" "$folder/exact" | head -n 6 || true
    failed=1
  fi
}

first=""
while read -r dp tp pp zero microbatches; do
  options=(--dp "$dp" --tp "$tp" --pp "$pp" --zero "$zero" --microbatches "$microbatches")
  if [ -z "$first" ]; then
    first="${options[*]}"
    train rounded.first "${options[@]}"
    train exact.first "${options[@]}" --exact
    continue
  fi
  check_rounded 1e-5 "${options[@]}"
  check_exact exact.first "${options[@]}"
done < <(meshes)

check_rounded 1e-5 --tp 3 --pp 2 --sequence-parallel --zero 1
others=('--dp 2 --accumulate 3 --microbatches 2 --zero 3' '--dp 4 --hybrid 2 --accumulate 3 --zero 2'
  '--dp 4 --hybrid 2 --tp 2 --zero 3' '--pp 2 --schedule interleaved --stages-per-rank 2 --microbatches 4'
  '--dp 2 --pp 2 --schedule breadth_first --stages-per-rank 2 --microbatches 3')
# "width options..."
staged=('32 --dp 3 --pp 2 --microbatches 2')
if [ "$which" = --all ]; then
  check_rounded 1e-5 --dp 2 --tp 2 --sequence-parallel --microbatches 3
  others+=('--dp 2 --accumulate 2 --zero 1' '--dp 4 --hybrid 2 --zero 1' '--dp 6 --hybrid 2 --zero 2' '--dp 3 --hybrid 1 --zero 3'
    '--dp 2 --schedule interleaved --stages-per-rank 2 --microbatches 3')
  staged+=('128 --dp 4')
fi
for options in "${others[@]}"; do
  read -ra options <<<"$options"
  check_rounded 1e-5 "${options[@]}"
  check_exact exact.first "${options[@]}"
done

# All levels of instructions give the same bits. Machines that lack one use the highest that they have.
for level in generic avx2; do
  printf '%s instructions, ' $level
  HOCKET_INSTRUCTIONS=$level check_exact exact.first --dp 2
done

# On one mesh, all stages add in the same order, even if the sizes of buckets lead to different algorithms. What each start
# would measure is fixed, because a start that measures other costs may choose other algorithms, which round otherwise.
export HOCKET_CONSTANTS=built_in
for HOCKET_KERNEL_COPIES in 0 1; do
  export HOCKET_KERNEL_COPIES
  for options in "${staged[@]}"; do
    read -ra options <<<"$options"
    width=${options[0]} options=("${options[@]:1}")
    train staged.first "${options[@]}"
    for zero in 1 2 3; do
      train staged "${options[@]}" --zero $zero
      cmp -s "$folder/staged.first" "$folder/staged" || { echo "${options[*]}: bits of --zero $zero DIFFER from those of --zero 0"; failed=1; }
    done
  done
done
unset HOCKET_CONSTANTS HOCKET_KERNEL_COPIES
width=32

# bfloat16 has 8 bits: losses are close, but not equal.
check_rounded 1e-3 --dp 2 --wire bfloat16
! cmp -s "$folder/rounded.first" "$folder/rounded" || { echo "--wire bfloat16 does not round"; failed=1; }
check_rounded 1e-2 --dp 2 --zero 3 --precision bfloat16
train narrow.first --precision bfloat16 --exact
check_exact narrow.first --precision bfloat16 --dp 2 --tp 2 --zero 3

# A scale that overflows at first: all ranks skip steps until it is small enough, the same steps on all meshes.
train scaled.first --loss-scale 1e38 --exact
skipped=$(sed -n 's/^loss scale:.* \([0-9]*\) of [0-9]* steps skipped.*/\1/p' "$folder/log")
[ "${skipped:-0}" -gt 0 ] || { echo "--loss-scale 1e38: no step was skipped"; failed=1; }
for options in '--dp 2 --zero 2' '--tp 2' '--pp 2 --microbatches 2'; do
  read -ra options <<<"$options"
  check_exact scaled.first --loss-scale 1e38 "${options[@]}"
  grep -q " $skipped of $steps steps skipped" "$folder/log" || { echo "${options[*]}: not $skipped steps skipped"; failed=1; }
done
exit $failed
