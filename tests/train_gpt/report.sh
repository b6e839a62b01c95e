#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Opens the report of a training in a headless browser: it loads without an error and without the network, and its
# pictures are not empty; also after a training that failed. At 1280 and 390 pixels, light and dark: the page does not
# scroll sideways, pictures are not cut, and texts are readable. Exits with 77 if there is no Chromium.
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
  # Not in text, because the report shows what the model has written.
  outside=$(grep -oE "((src|href)=|url\\(|import +)[\"']?[a-z]+://[^\"' <>]*" "$folder/report.html" || true)
  [ -z "$outside" ] || complain "the report loads $outside"

  # A page shows the report at two widths, and prints what it finds there.
  cat >"$folder/asked.html" <<'SCRIPT'
<!DOCTYPE html>
<meta name="color-scheme" content="light dark">
<iframe src="report.html" style="border:0;width:1280px;height:800px"></iframe>
<iframe src="report.html" style="border:0;width:390px;height:800px"></iframe>
<script>
  const say = (text) => {
    const line = document.createElement('p');
    line.textContent = text;
    document.body.append(line);
  };
  // Contrast as the Web Content Accessibility Guidelines define it.
  const luminance = (colour) => {
    const [red, green, blue] = colour.match(/[0-9.]+/g).map((part) => {
      const value = part / 255;
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const look = (frame) => {
    const page = frame.contentDocument, style = (of) => frame.contentWindow.getComputedStyle(of);
    const at = `at ${frame.clientWidth}`, root = page.scrollingElement;
    const behind = style(page.body).backgroundColor;
    say(`page: ${luminance(behind) < 0.2 ? 'dark' : 'light'} ${at}`);
    if (root.scrollWidth > frame.clientWidth) say(`wrong: the page is ${root.scrollWidth} pixels wide ${at}`);
    for (const words of page.querySelectorAll('h1, h2, p, td, pre')) {
      const own = words.matches('pre') ? style(words).backgroundColor : behind;
      if (contrast(style(words).color, own) < 4.5) say(`wrong: hard to read ${at}: ${words.textContent.slice(0, 40)}`);
    }
    for (const picture of page.querySelectorAll('figure > svg')) {
      const box = picture.getBBox(), all = picture.viewBox.baseVal;
      const shapes = picture.querySelectorAll('rect, line, polyline, circle, path').length;
      say(`picture: ${Math.round(box.width)} ${Math.round(box.height)} ${shapes} shapes`);
      const paper = style(picture.querySelector('.page')).fill;
      if ((luminance(paper) < 0.2) !== (luminance(behind) < 0.2)) say(`wrong: a picture has other colours ${at}`);
      for (const words of picture.querySelectorAll('text')) {
        if (words.closest('.action')) continue;  // on a bar
        if (contrast(style(words).fill, paper) < 4.5) say(`wrong: hard to read ${at}: ${words.textContent}`);
      }
      if (box.x < 0 || box.y < 0 || box.width > all.width || box.height > all.height) {
        say(`wrong: a picture is cut ${at}: ${box.x} ${box.y} ${box.width} ${box.height}, not ${all.width} ${all.height}`);
      }
    }
  };
  window.onload = () => document.querySelectorAll('iframe').forEach(look);
</script>
SCRIPT
  for scheme in dark light; do
    # Chromium numbers the preferences: 0 is dark, 1 is light. A page in a file may read no other one by default.
    timeout 60 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$folder/profile" \
      --blink-settings=preferredColorScheme=$([ $scheme = dark ] && echo 0 || echo 1) --allow-file-access-from-files \
      --enable-logging=stderr --virtual-time-budget=5000 --dump-dom "file://$folder/asked.html" >"$folder/dom" 2>"$folder/console" ||
      complain "the browser failed: $(tail -n 5 "$folder/console")"
    ! grep CONSOLE "$folder/console" || complain "the page has errors"
    ! grep -o '>wrong: [^<]*' "$folder/dom" || complain "the $scheme page has errors"
    [ "$(grep -o '>page: [^<]*' "$folder/dom" | xargs)" = ">page: $scheme at 1280 >page: $scheme at 390" ] ||
      complain "not $scheme at both widths: $(grep -o '>page: [^<]*' "$folder/dom")"
    pictures=$(grep -o 'picture: [0-9 ]* shapes<' "$folder/dom" || true)
    [ "$(grep -c . <<<"$pictures")" = 16 ] || complain "not eight pictures at each of two widths: $pictures"
    while read -r _ width height shapes _; do
      if [ "${width:-0}" -lt 300 ] || [ "${height:-0}" -lt 50 ] || [ "${shapes:-0}" -lt 8 ]; then
        complain "a picture is empty: $width by $height, $shapes shapes"
      fi
    done <<<"$pictures"
  done
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
