#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A training that ended by the failure of a rank continues from its last checkpoint, also on other meshes: with --exact,
# with the bits of an uninterrupted training. Incomplete checkpoints, and those of other models, are refused; of a damaged
# one, the checkpoint before is used.
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
  # An incomplete checkpoint of a killed process, and a folder that is not a checkpoint.
  mkdir -p "$folder"/kept/{step-5.0.1,step-notes}
  touch "$folder"/kept/{step-5.0.1/shard-0-of-4.safetensors,step-notes/mine}
  writers='--dp 2 --tp 2 --zero 1'
  [ $loss_scale = 0 ] || writers='--dp 4 --hybrid 2 --zero 2'
  read -ra mesh <<<"$writers"
  ! train --loss-scale $loss_scale "${mesh[@]}" --checkpoint "$folder/kept" --checkpoint-every 3 --fail-in-step 8 ||
    complain "a rank failed: the exit status is 0"
  [ "$(cat "$folder/kept/latest")" = step-6.0.1 ] || complain "the latest checkpoint is not that of step 6"
  [ "$(ls "$folder/kept" | xargs)" = "latest lock step-3.0.1 step-6.0.1 step-notes" ] || complain "unexpected checkpoints: $(ls "$folder/kept")"
  [ "$(ls "$folder/kept/step-6.0.1" | xargs)" = "manifest.json shard-0-of-4.safetensors shard-1-of-4.safetensors shard-2-of-4.safetensors shard-3-of-4.safetensors" ] ||
    complain "not four shards: $(ls "$folder/kept/step-6.0.1")"
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

# Whether the loss is scaled belongs to the training.
! train --resume "$folder/kept" || complain "it continues without the loss scale"
grep -q -e "whose loss is scaled: pass --loss-scale" "$folder/log" || { complain "the error does not match"; cat "$folder/log"; }

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

# The training fails in step 10, after checkpoints of steps 3 (of one rank), 6 and 9 (of two).
[ "$(cd "$folder/kept" && ls -d step-* | xargs)" = "step-3.0.1 step-6.0.1 step-9.0.1" ] || complain "unexpected checkpoints: $(ls "$folder/kept")"
whole=$folder/kept/step-9.0.1
cp -r "$whole" "$folder/copy"
damaged() {  # file, command that damages it, expected texts...
  local file=$1 command=$2
  shift 2
  (cd "$whole" && eval "$command")
  train --precision bfloat16 --dp 2 --resume "$folder/kept" || { complain "$command: it does not continue"; cat "$folder/log"; }
  grep -q "continues after step 6" "$folder/log" || complain "$command: it does not take the checkpoint before"
  cmp -s <(tail -n 6 "$folder/whole") <(tail -n +2 "$folder/losses") || complain "$command: the steps after the one before differ"
  for words in "not used: .*$file" "$@"; do
    grep -q -e "$words" "$folder/log" || { complain "$command: the error does not match: $words"; cat "$folder/log"; }
  done
  rm -r "$whole"
  cp -r "$folder/copy" "$whole"
}
shard=shard-1-of-2.safetensors
damaged $shard "truncate -s 5000 $shard"
damaged $shard "rm $shard"
damaged $shard "head -c 400 /dev/zero | tr '\0' '\377' | dd of=$shard bs=1 seek=\$((\$(stat -c %s $shard) / 2)) conv=notrunc status=none"
damaged manifest.json "truncate -s 300 manifest.json"
damaged manifest.json "sed -i s/optimizer.steps/optimizer.stepz/ manifest.json"
damaged manifest.json "cp ../step-6.0.1/manifest.json ." "another checkpoint: step-6.0.1"
# A file that only people read.
echo nonsense >"$folder/kept/latest"
train --precision bfloat16 --resume "$folder/kept" || complain "the file latest is damaged: it does not continue"
# All checkpoints are damaged.
cp -r "$folder/kept" "$folder/damaged"
for each in "$folder"/damaged/step-*/shard-0-*; do truncate -s 100 "$each"; done
refused "all checkpoints are damaged" --resume "$folder/damaged" --precision bfloat16

# Two ranks have different folders, as on two hosts with own disks: rank 0 chooses, and rank 1 does not find its files.
mkdir "$folder/own"
cp -r "$folder/kept/step-6.0.1" "$folder/own"
for rank in 0 1; do
  folders=("$folder/kept" "$folder/own")
  HOCKET_RANKS=2 HOCKET_RANK=$rank HOCKET_STORE="dir://$folder/store" timeout 60 "$program" --text "$folder/text" --dp 2 \
    --steps $steps --sequences 24 --width $width --context 16 --out "$folder" --exact --precision bfloat16 \
    --losses "$folder/losses" --resume "${folders[$rank]}" >"$folder/log.$rank" 2>&1 &
done
for _ in 0 1; do wait -n || complain "different folders on two ranks: it does not continue: $(cat "$folder"/log.[01])"; done
grep -q "not used: .*rank 1: .*own/step-9.0.1" "$folder/log.0" || { complain "rank 0 does not report rank 1's files"; cat "$folder/log.0"; }
cmp -s <(tail -n 6 "$folder/whole") <(tail -n +2 "$folder/losses") || complain "different folders: the steps after step 6 differ"
echo "invalid checkpoints: refused, and the one before used where there is one"
exit $failed
