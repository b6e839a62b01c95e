#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The end of a training that fails: a process is killed, a gradient is not finite, a mesh is invalid. All processes end
# within a few seconds and report the cause; no incomplete file, no process and no segment is left behind.
#
#   ends.sh PROGRAM INCLUDE_FOLDER
set -euo pipefail
program=$1 include=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
find "$include" -name '*.hpp' | LC_ALL=C sort | xargs cat >"$folder/text"
failed=0
complain() { echo "$*" >&2; failed=1; }
segments() { find /dev/shm -maxdepth 1 -type f | sort; }
mesh=(--dp 2 --pp 2 --zero 1 --microbatches 4)

# The last started rank is killed while it trains. Incomplete files of an earlier training are removed too.
before=$(segments)
mkdir -p "$folder/killed"
touch "$folder/killed/loss.svg.part" "$folder/killed/report.html.part"
"$program" --text "$folder/text" "${mesh[@]}" --seconds 1000 --out "$folder/killed" --checkpoint "$folder/killed" \
  --checkpoint-every 1000000 >"$folder/log" 2>&1 &
launcher=$!
for _ in $(seq 300); do
  grep -q '^step' "$folder/log" && break
  sleep 0.1
done
victim=$(pgrep -P "$launcher" | tail -n 1)
kill -9 "$victim"
begin=$(date +%s%N)
status=0
wait "$launcher" || status=$?
took=$((($(date +%s%N) - begin) / 1000000))
[ "$status" != 0 ] || complain "a killed rank: the exit status is 0"
[ "$took" -lt 4000 ] || complain "a killed rank: the others took $took ms to end"
[ "$(grep -c 'peer lost' "$folder/log")" -ge 1 ] || { complain "a killed rank: no rank reports it"; cat "$folder/log"; }
left=$(comm -13 <(echo "$before") <(segments))
[ -z "$left" ] || complain "a killed rank: segments remain in /dev/shm: $left"
! pgrep -f "$folder/text" >/dev/null || complain "a killed rank: processes remain"
[ -z "$(find "$folder/killed" -type f)" ] || complain "a killed rank: files remain: $(find "$folder/killed" -type f)"
echo "killed: all ended within $took ms"

# A learning rate with which gradients overflow.
status=0
"$program" --text "$folder/text" "${mesh[@]}" --learning-rate 1e30 --stop-on-nan --out "$folder/nan" >"$folder/log" 2>&1 ||
  status=$?
[ "$status" != 0 ] || complain "a gradient that is not finite: the exit status is 0"
[ "$(grep -c 'the gradient is not finite' "$folder/log")" = 4 ] || { complain "not all ranks report the cause"; cat "$folder/log"; }
echo "not finite: $(grep -m 1 -o 'step [0-9]*: the gradient is not finite' "$folder/log"), on all ranks"

# A layer throws on one rank of eight: all ranks end in that step with its error.
status=0
begin=$(date +%s%N)
"$program" --text "$folder/text" --dp 2 --tp 2 --pp 2 --context 16 --fail-in-step 3 --out "$folder/thrown" >"$folder/log" 2>&1 ||
  status=$?
took=$((($(date +%s%N) - begin) / 1000000))
[ "$status" != 0 ] || complain "an exception in a layer: the exit status is 0"
[ "$(grep -c 'train_gpt: .*as requested by --fail-in-step' "$folder/log")" = 8 ] ||
  { complain "an exception in a layer: not all ranks report it"; cat "$folder/log"; }
[ "$took" -lt 30000 ] || complain "an exception in a layer: the others took $took ms to end"
[ -z "$(find "$folder/thrown" -type f)" ] || complain "an exception in a layer: files remain"
left=$(comm -13 <(echo "$before") <(segments))
[ -z "$left" ] || complain "an exception in a layer: segments remain in /dev/shm: $left"
echo "thrown: all eight ranks report the cause"

# One rank can't write its checkpoint, or the report: all ranks report this before they train.
for what in '--out /proc/nothing' "--out $folder/unused --checkpoint /proc/nothing"; do
  read -ra options <<<"$what"
  status=0
  "$program" --text "$folder/text" "${mesh[@]}" "${options[@]}" >"$folder/log" 2>&1 || status=$?
  [ "$status" != 0 ] || complain "$what: the exit status is 0"
  [ "$(grep -c "train_gpt: .*cannot write into the folder '/proc/nothing'" "$folder/log")" = 4 ] ||
    { complain "$what: not all ranks report it"; cat "$folder/log"; }
  ! grep -q '^step' "$folder/log" || complain "$what: it trained before the error"
done
echo "two folders that can't be written into: all ranks report this before they train"

# Options that are refused before the training starts.
refused() {  # expected text, options...
  local words=$1
  shift
  status=0
  "$program" --text "${text:-$folder/text}" --out "$folder/refused" "$@" >"$folder/log" 2>&1 || status=$?
  [ "$status" != 0 ] || complain "$*: not refused"
  grep -q -e "$words" "$folder/log" || { complain "$*: the error does not match: $words"; cat "$folder/log"; }
  [ ! -e "$folder/refused" ] || complain "$*: the training was started"
}
refused 'integer of at least 0' --seed -1
refused 'starts at most .*; use a launcher' --dp 64 --pp 64
refused 'at most --pp 4' --pp 5
refused 'at most --tp 4' --tp 8
refused 'nearest valid value is --sequences 33' --dp 3 --sequences 32
refused 'even number of elements.*the nearest valid value is --width 32' --width 30 --heads 4
refused 'the nearest valid value is --width 66' --heads 3
refused 'at most --pp 2 with --stages-per-rank 2' --pp 3 --schedule interleaved --stages-per-rank 2
refused 'or --schedule interleaved' --stages-per-rank 2
refused 'omit one' --exact --tp 2 --sequence-parallel
refused 'bits: use --wire float' --exact --wire bfloat16
printf 'zero=1\nmicrobatch=4\n' >"$folder/config"
refused 'microbatch' --config "$folder/config"
refused 'at least 1' --loss-scale 0.1
refused 'at most 2^127' --loss-scale 2e38
refused 'number above 0' --learning-rate nan
refused 'number above 0' --seconds nan
text=/nowhere refused "cannot read the text '/nowhere': No such file or directory; pass a regular file"
# Each rank reads these files for itself, so they must be files that can be read more than once.
mkfifo "$folder/unread"
: >"$folder/empty"
for ranks in 1 2; do
  text=$folder/unread refused "the text '$folder/unread': it is a pipe, not a regular file; pass a regular file" --dp $ranks
  text=/dev/zero refused "the text '/dev/zero': it is a device, not a regular file" --dp $ranks
  text=$folder refused "the text '$folder': it is a folder, not a regular file" --dp $ranks
  text=$folder/empty refused "the text '$folder/empty': it is empty" --dp $ranks
  refused "the options '$folder/unread': it is a pipe, not a regular file" --config "$folder/unread" --dp $ranks
  refused "the options '/dev/zero': it is a device, not a regular file" --config /dev/zero --dp $ranks
  refused "the options '$folder/empty': it is empty" --config "$folder/empty" --dp $ranks
done
head -c 100 "$folder/text" >"$folder/short"
text=$folder/short refused "the text '$folder/short' is too short" --dp 2
refused "no checkpoint in '/nowhere'" --resume /nowhere
refused "'$folder' is a folder" --losses "$folder"

# With the suggestion and the other options unchanged, only the text is wrong, which is checked last.
replaced() {  # expected text, suggestion, options...
  local words=$1 suggestion=$2
  shift 2
  refused "$words.*$suggestion\([ ,]\|$\)" "$@"
  local rest=()
  while [ $# -gt 0 ]; do
    case " $suggestion " in *" $1 "*) ;; *) rest+=("$1" "$2") ;; esac
    shift 2
  done
  read -ra suggestion <<<"${suggestion/ and / }"
  text=/nowhere refused "cannot read the text '/nowhere'" "${rest[@]}" "${suggestion[@]}"
}
replaced 'nearest valid value is' '--microbatches 6' --pp 4 --schedule interleaved --sequences 6
replaced 'in rounds of equal size' '--microbatches 6' --pp 2 --schedule interleaved --stages-per-rank 2 --microbatches 5 --sequences 30
replaced 'at least as many microbatches' '--microbatches 4 and --sequences 8' --dp 2 --pp 4 --schedule interleaved --sequences 6
replaced 'one stage per rank' '--schedule breadth_first' --pp 2 --stages-per-rank 2
replaced 'nearest valid value is' '--sequences 1025000' --microbatches 1000 --dp 5 --accumulate 5 --sequences 1048576
replaced 'nearest valid value is' '--hybrid 3' --dp 6 --hybrid 4 --zero 1 --sequences 48
replaced 'for the shards of --zero' '--zero 1' --dp 4 --hybrid 2
replaced 'nearest valid value is' '--width 65532' --width 65535 --heads 3
replaced 'more stages than' '--stages-per-rank 2' --layers 4 --pp 2 --stages-per-rank 8 --schedule breadth_first
replaced 'more stages than' '--pp 4 and --stages-per-rank 1' --pp 64 --stages-per-rank 64 --schedule breadth_first
echo "forty-three invalid meshes, options and files: refused, with the nearest valid ones"

# Ranks that have read different input: all report it before they train.
head -c 40000 "$folder/text" >"$folder/40000"
head -c 39999 "$folder/text" >"$folder/39999"
{ cat "$folder/39999"; printf '\1'; } >"$folder/changed"
printf 'layers=2\n' >"$folder/two"
printf 'layers=3\n' >"$folder/three"
differ() {  # expected text, options of rank 0, options of rank 1
  local words=$1 options rank
  rm -rf "$folder/store" "$folder"/log.[01]
  for rank in 0 1; do
    read -ra options <<<"${@:rank + 2:1}"
    HOCKET_RANKS=2 HOCKET_RANK=$rank HOCKET_STORE="dir://$folder/store" timeout 60 \
      "$program" --dp 2 --out "$folder/differ" "${options[@]}" >"$folder/log.$rank" 2>&1 &
  done
  for _ in 0 1; do ! wait -n || complain "$*: the exit status is 0"; done
  [ "$(cat "$folder"/log.[01] | grep -c -e "train_gpt: .*$words")" = 2 ] ||
    { complain "$*: not both ranks report it"; cat "$folder"/log.[01]; }
  [ ! -e "$folder/differ" ] || complain "$*: the training was started"
}
differ 'differs between ranks: rank 0 has read 40000 bytes, .*, rank 1 39999 bytes' "--text $folder/40000" "--text $folder/39999"
differ 'differs between ranks: rank 0 has read 40000 bytes, .*, rank 1 40000 bytes' "--text $folder/40000" "--text $folder/changed"
differ 'the list of options differs between ranks' "--text $folder/40000 --config $folder/two" "--text $folder/40000 --config $folder/three"
differ 'the list of options differs between ranks' "--text $folder/40000" "--text $folder/40000 --seed 2"
echo "four inputs that differ between ranks: both ranks report this before they train"

# Losses are written into a pipe or a link without replacing it.
mkfifo "$folder/pipe"
ln -s "$folder/linked" "$folder/link"
cat "$folder/pipe" >"$folder/read" &
for losses in pipe link; do
  "$program" --text "$folder/text" --steps 2 --width 16 --context 16 --out "$folder" --losses "$folder/$losses" \
    >"$folder/log" 2>&1 || { complain "--losses $losses: failed"; cat "$folder/log"; }
done
[ -p "$folder/pipe" ] || complain "a pipe was replaced"
timeout 10 tail --pid=$! -f /dev/null || { complain "a pipe was not written to"; kill $!; }
[ -L "$folder/link" ] && cmp "$folder/linked" "$folder/read" || complain "a link was replaced, or differs from the pipe"
echo "losses were written into a pipe, and into the target of a link"
exit $failed
