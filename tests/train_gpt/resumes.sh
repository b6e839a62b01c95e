#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A training that ended by the failure of a rank continues from its last checkpoint, also on other meshes: with --exact,
# with the bits of an uninterrupted training. Incomplete checkpoints, and those of other models, are refused.
#
#   resumes.sh PROGRAM INCLUDE_FOLDER
set -euo pipefail
program=$1 include=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
find "$include" -name '*.hpp' | LC_ALL=C sort | xargs cat >"$folder/text"
failed=0
complain() { echo "$*" >&2; failed=1; }
steps=12 width=32
train() {  # options...
  "$program" --text "$folder/text" --steps $steps --sequences 24 --width $width --context 16 --out "$folder" --exact \
    --losses "$folder/losses" "$@" >"$folder/log" 2>&1
}

for loss_scale in 0 1024; do
  rm -rf "$folder/kept"
  train --loss-scale $loss_scale || { cat "$folder/log"; exit 1; }
  mv "$folder/losses" "$folder/whole"
  # An incomplete checkpoint of a killed process, and folders that are not checkpoints.
  mkdir -p "$folder"/kept/{step-5,step-6,step-notes}
  touch "$folder"/kept/{step-5/rank-0.part,step-6/rank-9.part,step-notes/mine}
  writers='--dp 2 --tp 2 --zero 1'
  [ $loss_scale = 0 ] || writers='--dp 4 --hybrid 2 --zero 2'
  read -ra mesh <<<"$writers"
  ! train --loss-scale $loss_scale "${mesh[@]}" --checkpoint "$folder/kept" --checkpoint-every 3 --fail-in-step 8 ||
    complain "a rank failed: the exit status is 0"
  [[ "$(cat "$folder/kept/latest")" =~ ^"step-6 crc32c "[0-9a-f]{8}$ ]] || complain "the latest checkpoint is not that of step 6"
  [ "$(ls "$folder/kept" | xargs)" = "latest step-6 step-notes" ] || complain "unexpected checkpoints: $(ls "$folder/kept")"
  [ "$(ls "$folder/kept/step-6" | xargs)" = "rank-0 rank-1 rank-2 rank-3" ] || complain "not four parts: $(ls "$folder/kept/step-6")"
  [ -e "$folder/kept/step-notes/mine" ] || complain "a folder that is not a checkpoint was removed"
  for mesh in '--dp 2 --tp 2 --zero 1' '--dp 3 --zero 3' '--pp 2 --zero 0 --microbatches 3' '--dp 2 --pp 2 --zero 2' '--dp 6 --hybrid 3 --zero 3' ''; do
    read -ra mesh <<<"$mesh"
    train --loss-scale $loss_scale --resume "$folder/kept" "${mesh[@]}" || { cat "$folder/log"; failed=1; continue; }
    if cmp -s <(tail -n 6 "$folder/whole") <(tail -n +2 "$folder/losses"); then
      echo "loss scale $loss_scale, from $writers on ${mesh[*]:-one process}: all bits of the remaining steps are equal"
    else
      complain "${mesh[*]}: the steps after a checkpoint differ: $(diff <(tail -n 6 "$folder/whole") <(tail -n +2 "$folder/losses") | head -n 4)"
    fi
  done
done

# Incomplete checkpoints of killed ranks are removed at the end of a training, also if it fails.
mkdir "$folder/kept/step-9"
touch "$folder"/kept/step-9/rank-{0,1.part}
! train --loss-scale 1 --dp 2 --checkpoint "$folder/kept" --resume "$folder/kept" --checkpoint-every 20 --fail-in-step 8 ||
  complain "no failure"
grep -q -e "requested by --fail-in-step" "$folder/log" || { complain "an unexpected failure"; cat "$folder/log"; }
! train --resume "$folder/kept" || complain "it continues without the loss scale"
grep -q -e "whose loss is scaled: pass --loss-scale" "$folder/log" || { complain "the error does not match"; cat "$folder/log"; }
[ "$(ls "$folder/kept" | xargs)" = "latest step-6 step-notes" ] || complain "unexpected checkpoints: $(ls "$folder/kept")"

# Resumes twice, with parameters narrower than the optimizer's copy.
rm -r "$folder/kept"
train --precision bfloat16
mv "$folder/losses" "$folder/whole"
! train --precision bfloat16 --checkpoint "$folder/kept" --checkpoint-every 3 --fail-in-step 4 || complain "no failure"
! train --precision bfloat16 --dp 2 --zero 3 --checkpoint "$folder/kept" --checkpoint-every 3 --resume "$folder/kept" --fail-in-step 10 ||
  complain "no failure"
train --precision bfloat16 --pp 2 --resume "$folder/kept" || cat "$folder/log"
cmp -s <(tail -n 3 "$folder/whole") <(tail -n +2 "$folder/losses") || complain "bfloat16, resumed twice: the steps differ"

refused() {  # expected text, options...
  local words=$1
  shift
  ! train "$@" || complain "$*: not refused"
  grep -q -e "$words" "$folder/log" || { complain "$*: the error does not match: $words"; cat "$folder/log"; }
}
refused 'no checkpoint in' --resume "$folder/nothing"
width=64
refused 'not --width 64: pass' --resume "$folder/kept" --precision bfloat16
width=32 steps=9
refused 'has 9 steps already' --resume "$folder/kept" --precision bfloat16
steps=12
refused 'not --seed 2: pass' --resume "$folder/kept" --precision bfloat16 --seed 2
refused 'not --precision float: pass' --resume "$folder/kept"
refused 'not scaled: omit --loss-scale' --resume "$folder/kept" --precision bfloat16 --loss-scale 1024
refused 'already: add --resume' --checkpoint "$folder/kept"
part=$folder/kept/step-9/rank-1
cp "$part" "$folder/part"
head -c 5000 "$folder/part" >"$part"
refused "rank-1': the file is truncated" --resume "$folder/kept" --precision bfloat16
rm "$part"
refused "rank-1': the file can't be read" --resume "$folder/kept" --precision bfloat16
# Complete parts of different checkpoints.
! train --precision bfloat16 --dp 2 --zero 3 --checkpoint "$folder/earlier" --checkpoint-every 3 --fail-in-step 5 || complain "no failure"
cp "$folder/earlier/step-3/rank-1" "$part"
refused "rank-1': its number of steps is 3, that of rank-0 9" --resume "$folder/kept" --precision bfloat16
while read -r change; do
  LC_ALL=C sed "2,3{$change}" "$folder/part" >"$part"
  refused "rank-1': the file is damaged between byte 0 and byte" --resume "$folder/kept" --precision bfloat16
done <<'CHANGES'
s/^ranks.2$/ranks\x203/
s/^steps.9.9/steps\x209\x208/
s/^steps.9.9.0$/steps\x209\x209\x201/
s/^ranks.2$/&\nscale\x208\x201\x200\x200/
CHANGES
cp "$folder/part" "$part"
dd if=/dev/zero of="$part" bs=1 seek=9000 count=400 conv=notrunc status=none
refused "rank-1': the file is damaged between byte .* restore the file from a copy" --resume "$folder/kept" --precision bfloat16
for ranks in 2 3; do
  refused "rank-1': the file is damaged between byte" --resume "$folder/kept" --precision bfloat16 --dp $ranks
done
cp "$folder/part" "$part"
cp "$folder/kept/latest" "$folder/latest"
for content in 'step-9' 'step-3 crc32c 00000000'; do
  echo "$content" >"$folder/kept/latest"
  refused "kept/latest': the file " --resume "$folder/kept" --precision bfloat16
  [ -e "$part" ] || complain "a damaged name of the latest checkpoint: the checkpoint was removed"
done
cp "$folder/latest" "$folder/kept/latest"
# Two ranks find different checkpoints under one name, as on two hosts with own disks.
for rank in 0 1; do
  folders=("$folder/kept" "$folder/earlier")
  HOCKET_RANKS=2 HOCKET_RANK=$rank HOCKET_STORE="dir://$folder/store" timeout 60 "$program" --text "$folder/text" --dp 2 \
    --steps $steps --sequences 24 --width $width --context 16 --out "$folder" --exact --precision bfloat16 \
    --resume "${folders[$rank]}" >"$folder/log.$rank" 2>&1 &
done
for _ in 0 1; do ! wait -n || complain "different checkpoints on two ranks: the exit status is 0"; done
[ "$(cat "$folder"/log.[01] | grep -c 'differs between ranks: rank 0 has read 9 steps, .*, rank 1 3 steps')" = 2 ] ||
  { complain "different checkpoints on two ranks: not both report it"; cat "$folder"/log.[01]; }
train --precision bfloat16 --resume "$folder/kept" || complain "the restored checkpoint is refused: $(cat "$folder/log")"
echo "nineteen invalid checkpoints: refused"
exit $failed
