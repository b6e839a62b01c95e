#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# What a training shows while it runs: a log of each rank, events for TensorBoard, and an endpoint for Prometheus if the
# program has it. jq and promtool check them where they are installed.
#
#   metrics.sh PROGRAM INCLUDE_FOLDER PROMETHEUS
#
# PROMETHEUS: 1 if the program was built with prometheus-cpp.
set -euo pipefail
program=$1 include=$2 has_prometheus=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
find "$include/hocket/core" -name '*.hpp' | LC_ALL=C sort | xargs cat >"$folder/text"
failed=0
complain() { echo "$*" >&2; failed=1; }
command=("$program" --text "$folder/text" --sequences 8 --layers 2 --width 16 --context 16 --out "$folder" --dp 2)
train() {  # options...
  "${command[@]}" "$@" >"$folder/log" 2>&1
}

train --steps 12 --checkpoint "$folder/kept" --log "$folder/logs" --tensorboard "$folder/board" || { cat "$folder/log"; exit 1; }
for rank in 0 1; do
  for event in start progress end; do
    grep -q "\"rank\":$rank,.*\"event\":\"$event\"" "$folder/logs/rank-$rank.jsonl" || complain "rank $rank has no record of its $event"
  done
  grep '"event":"end"' "$folder/logs/rank-$rank.jsonl" | grep '"nodes":2' | grep -q '"hocket_steps":12' ||
    complain "rank $rank: the last record does not have 2 nodes and 12 steps: $(tail -n 1 "$folder/logs/rank-$rank.jsonl")"
  if command -v jq >/dev/null; then
    jq -e -s 'all(.time > 0) and (last.metrics.loss | type == "number")' "$folder/logs/rank-$rank.jsonl" >/dev/null ||
      complain "rank $rank: jq does not accept the log"
  fi
done
[ "$(ls "$folder/board" | grep -c '^events.out.tfevents')" = 1 ] || complain "not one file of events"
for tag in loss learning_rate gradient_norm communication_seconds/use=gradients schedule hocket_collective_bytes/collective=all_reduce \
  hocket_sent_bytes/peer=1 hocket_exposed_seconds hocket_memory_bytes/account=gradients hocket_restarts; do
  grep -q -a -F "$tag" "$folder"/board/events* || complain "the events have no $tag"
done
# A training that continues has a second file of events, and continues the logs.
train --steps 16 --resume "$folder/kept" --log "$folder/logs" --tensorboard "$folder/board" || cat "$folder/log"
[ "$(ls "$folder/board" | grep -c '^events.out.tfevents')" = 2 ] || complain "not two files of events"
[ "$(grep -c '"event":"start"' "$folder/logs/rank-0.jsonl")" = 2 ] || complain "the log does not have both starts"
for title in Throughput "Learning rate" "Norm of the gradient" "Exposed communication" "Waits between pipeline stages"; do
  grep -q "$title" "$folder/report.html" || complain "the report has no curve: $title"
done
echo "logs, events and curves have what the training measured"

if [ "$has_prometheus" = 1 ]; then
  port=$((20000 + $$ % 20000))
  "${command[@]}" --steps 100000 --seconds 20 --prometheus "127.0.0.1:$port" >"$folder/log" 2>&1 &
  launcher=$!
  found=""
  shows_all_ranks() {
    local rank
    for rank in 0 1; do grep -q "^hocket_steps_total{rank=\"$rank\"} [1-9]" <<<"$found" || return 1; done
  }
  for _ in $(seq 150); do
    found=$( (exec 3<>"/dev/tcp/127.0.0.1/$port" && printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3 && cat <&3) 2>/dev/null || true)
    ! shows_all_ranks || break
    sleep 0.1
  done
  shows_all_ranks || { complain "the endpoint does not show the steps of both ranks"; cat "$folder/log"; }
  if command -v promtool >/dev/null; then
    sed '1,/^\r$/d' <<<"$found" | promtool check metrics || complain "promtool does not accept the metrics"
  fi
  kill "$launcher"
  wait "$launcher" 2>/dev/null || true
  rm -rf "/dev/shm/train_gpt-$(id -u)-$port"
  echo "Prometheus can read both ranks at one port"
else
  ! train --steps 2 --prometheus 127.0.0.1:1 || complain "--prometheus without prometheus-cpp is not refused"
  grep -q 'built without prometheus-cpp' "$folder/log" || complain "the error does not match"
fi
exit $failed
