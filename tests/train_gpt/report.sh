#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Opens the report of a training in a headless browser: it loads without an error and without the network, and its
# pictures are not empty; also after a training that failed. Exits with 77 if there is no Chromium.
#
#   report.sh PROGRAM INCLUDE_FOLDER
set -euo pipefail
program=$1 include=$2
for browser in chromium chromium-browser google-chrome ""; do
  command -v "$browser" >/dev/null && break
done
[ -n "$browser" ] || { echo "skipped: no Chromium here (apt-get install chromium)"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
find "$include" -name '*.hpp' | LC_ALL=C sort | xargs cat >"$folder/text"
failed=0
complain() { echo "$*" >&2; failed=1; }

check_report() {  # options...
  "$program" --text "$folder/text" --dp 2 --pp 2 --microbatches 4 --context 16 --out "$folder" "$@" >"$folder/log"
  outside=$(grep -o '[a-z]*://[^" <>]*' "$folder/report.html" | grep -v '^http://www.w3.org/2000/svg$' || true)
  [ -z "$outside" ] || complain "the report loads $outside"

  # A script in the page prints the sizes of its pictures.
  cat "$folder/report.html" - >"$folder/asked.html" <<'SCRIPT'
<script>
  window.onload = () => {
    for (const picture of document.querySelectorAll('body > svg')) {
      const box = picture.getBBox();
      const shapes = picture.querySelectorAll('rect, line, polyline, circle, path').length;
      const line = document.createElement('p');
      line.textContent = `picture: ${Math.round(box.width)} ${Math.round(box.height)} ${shapes} shapes`;
      document.body.append(line);
    }
  };
</script>
SCRIPT
  timeout 60 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$folder/profile" \
    --enable-logging=stderr --virtual-time-budget=5000 --dump-dom "file://$folder/asked.html" >"$folder/dom" 2>"$folder/console" ||
    complain "the browser failed: $(tail -n 5 "$folder/console")"
  ! grep CONSOLE "$folder/console" || complain "the page has errors"
  pictures=$(grep -o 'picture: [0-9 ]* shapes<' "$folder/dom" || true)
  [ "$(grep -c . <<<"$pictures")" = 3 ] || complain "not three pictures: $pictures"
  while read -r _ width height shapes _; do
    if [ "${width:-0}" -lt 300 ] || [ "${height:-0}" -lt 50 ] || [ "${shapes:-0}" -lt 8 ]; then
      complain "a picture is empty: $width by $height, $shapes shapes"
    fi
  done <<<"$pictures"
  echo "$*: $(xargs <<<"$pictures")"
}

check_report --steps 24
! grep -q 'not finite' "$folder/loss.svg" || complain "a finite loss is reported as not finite"
# The curve omits losses that are not finite, and states this.
check_report --steps 20 --learning-rate 1e30
! grep -E '"[^"]*\b(nan|inf)\b[^"]*"' "$folder/loss.svg" || complain "coordinates are not numbers"
grep -Eq 'not shown: the loss of [0-9]+ of 20 steps is not finite' "$folder/loss.svg" || complain "the curve does not state the omitted losses"
grep -q '<circle' "$folder/loss.svg" || complain "the step before the omitted ones is not shown"
grep -q 'held-out text, at the end: not finite' "$folder/loss.svg" || complain "the loss on held-out text is not reported as not finite"
exit $failed
