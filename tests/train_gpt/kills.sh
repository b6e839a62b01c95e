#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A process of a training is killed at a system call of a save, commit or removal of a checkpoint: at the first call of each
# kind, at the second, and so on. Afterwards every checkpoint that is listed is whole, and a training continues from the
# newest with the bits of one that was never killed.
#
#   kills.sh PROGRAM HOCKET_CHECKPOINT INCLUDE_FOLDER KILLS
#
# Without strace, or where a process may not be traced, it is skipped with exit status 77.
set -euo pipefail
program=$1 tool=$2 include=$3 kills=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for command in "command -v strace" "strace -f -o /dev/null true"; do
  $command >/dev/null 2>&1 || { echo "skipped: '$command' fails, so that no process can be killed at a system call"; exit 77; }
done
find "$include/hocket/core" -name '*.hpp' | LC_ALL=C sort | xargs cat >"$folder/text"
steps=6
train() {  # options...
  "${traced[@]}" "$program" --text "$folder/text" --steps $steps --sequences 4 --layers 2 --width 16 --context 8 \
    --out "$folder" --exact --losses "$folder/losses" "$@" >"$folder/log" 2>&1
}
fail() { echo "$*" >&2; cat "$folder/log" >&2; exit 1; }

traced=()
train || fail "the training fails"
mv "$folder/losses" "$folder/whole"

done_kills=0
kill_at() {  # system call, its number
  rm -rf "$folder/kept"
  traced=(strace -f -qq -o /dev/null -e "trace=$1" -e "inject=$1:signal=KILL:when=$2")
  ! { train --dp 2 --zero 1 --checkpoint "$folder/kept" --checkpoint-every 1; } 2>/dev/null || return 1  # Bash reports kills
  traced=()
  mkdir -p "$folder/kept"
  local newest
  newest=$("$tool" list "$folder/kept" 2>/dev/null | awk 'NR == 2 { print $2 }' || true)
  [ -z "$newest" ] || "$tool" verify "$folder/kept" >"$folder/log" 2>&1 || fail "$1, call $2: a checkpoint is damaged"
  if [ "${newest:-0}" = $steps ]; then
    :  # it ended after its last checkpoint
  elif [ -n "$newest" ]; then
    train --resume "$folder/kept" || fail "$1, call $2: the training does not continue"
    grep -q "continues after step $newest of" "$folder/log" || fail "$1, call $2: it does not continue after step $newest"
    cmp -s <(tail -n $((steps - newest)) "$folder/whole") <(tail -n +2 "$folder/losses") ||
      fail "$1, call $2: the steps after step $newest differ"
  else
    ! train --resume "$folder/kept" || fail "$1, call $2: it continues without a checkpoint"
    grep -q "no checkpoint in" "$folder/log" || fail "$1, call $2: the error does not match"
  fi
  done_kills=$((done_kills + 1))
}

# The files of programs and libraries are opened before those of a checkpoint: these calls are skipped.
traced=(strace -ff -qq -o "$folder/opened" -e trace=openat)
train --dp 2 --zero 1 --checkpoint "$folder/kept" --checkpoint-every 1 || fail "the training fails"
others=$(grep -n -m 1 "$folder/kept" "$folder"/opened.* | cut -d : -f 2 | sort -n | head -n 1)

calls=(pwrite64 fsync renameat2 rename mkdir getdents64 unlink rmdir ftruncate openat)
declare -A is_over=()
for ((number = 1; done_kills < kills && ${#is_over[@]} < ${#calls[@]}; ++number)); do
  for call in "${calls[@]}"; do
    [ -z "${is_over[$call]:-}" ] && [ $done_kills -lt "$kills" ] || continue
    at=$number
    [ $call != openat ] || at=$((others + number - 1))
    kill_at $call $at || is_over[$call]=yes
  done
done
echo "$done_kills kills: every checkpoint is whole, and the training continues with the same bits"
[ $done_kills -ge "$kills" ] || { echo "fewer than $kills system calls: nothing was killed at the others" >&2; exit 1; }
