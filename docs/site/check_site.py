#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the site in build/docs/site: links, the search index of the reference, and the pages in a browser.

- Each link leads to a file of the site, and to an anchor in it. Links to other sites are not followed.
- Each public name of Doxygen's tag file is in the search index of the reference.
- In Chromium, if it is installed: no page of the Markdown, and none of some pages of the reference, reports an error or
  is wider than the window.
"""

import functools
import html.parser
import http.server
import json
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build/docs/site"
TAG_FILE = ROOT / "build/docs/hocket.tag"
WIDTHS = (1280, 390)
SAMPLE = 40  # pages of the reference that the browser opens


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.anchors, self.links = {"", "top"}, []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)
            elif name in ("href", "src") and value is not None:
                self.links.append(value)


def check_links():
    pages = {path: Page(path) for path in sorted(SITE.rglob("*.html"))}
    errors, count = [], 0
    for path, page in pages.items():
        if path.name == "404.html":
            continue  # its links are absolute
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            target = path
            if parts.path:
                target = Path(os.path.normpath(path.parent / urllib.parse.unquote(parts.path)))
                if target.is_dir():
                    target = target / "index.html"
            if not target.exists():
                errors.append(f"{path.relative_to(SITE)}: no file for {link}")
            elif target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].anchors:
                if not parts.fragment.startswith("__"):
                    errors.append(f"{path.relative_to(SITE)}: no anchor for {link}")
    print(f"    {len(pages)} pages, {count} links in the site, {len(errors)} dead", flush=True)
    return errors


def public_names():
    """Names outside of namespaces `detail`, as they are searched for: without what they are in."""
    names = set()
    for compound in ElementTree.parse(TAG_FILE).getroot().iter("compound"):
        whole = compound.findtext("name") or ""
        if compound.get("kind") in ("class", "struct", "concept", "namespace"):
            names.add(re.sub(r"\s*<.*", "", whole).split("::")[-1].strip())
        if compound.get("kind") in ("class", "struct", "namespace", "file", "group"):
            names.update(member.findtext("name") for member in compound.iter("member"))
    return {name if "operator" in name else name.split("::")[-1] for name in names if name}


def check_names():
    indexed = set()
    for path in (SITE / "reference/search").glob("all_*.js"):
        indexed.update(html.unescape(name) for name in re.findall(r"^\s*\['[^']*',\['((?:[^'\\]|\\.)*)'",
                                                                  path.read_text(encoding="utf-8"), re.MULTILINE))
    indexed = {re.sub(r"\s*[<(].*", "", name.replace("\\'", "'")).split("::")[-1].strip() if "operator" not in name else name
               for name in indexed}
    operators = {re.sub(r"\s", "", name) for name in indexed if "operator" in name}
    names = public_names()
    missing = [name for name in sorted(names)
               if name not in indexed and re.sub(r"\s", "", name) not in operators
               and re.sub(r"\s*<.*", "", name) not in indexed]
    print(f"    {len(names)} public names, {len(missing)} not in the search index", flush=True)
    few = ["the tag file has hardly any public names: are headers read?"] if len(names) < 100 else []
    return few + [f"the search of the reference does not find {name}" for name in missing]


class Browser:
    """Chromium, by the DevTools protocol over a pipe: messages of JSON that end with a zero byte."""

    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory(prefix="hocket-site-", ignore_cleanup_errors=True)
        to_browser, self.output = os.pipe()
        self.input, from_browser = os.pipe()

        def take_pipes():  # the browser reads from 3 and writes to 4; the ends may have these numbers already
            reading, writing = os.dup(to_browser), os.dup(from_browser)
            high = [os.dup2(reading, 63), os.dup2(writing, 64)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False,
            preexec_fn=take_pipes)
        os.close(to_browser)
        os.close(from_browser)
        self.pending, self.number, self.errors, self.loaded, self.session = b"", 0, [], False, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def receive(self, deadline):
        while b"\0" not in self.pending:
            if not select.select([self.input], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("Chromium does not answer")
            more = os.read(self.input, 1 << 16)
            if not more:
                raise OSError("Chromium has exited")
            self.pending += more
        message, self.pending = self.pending.split(b"\0", 1)
        message = json.loads(message)
        method, values = message.get("method"), message.get("params", {})
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Runtime.exceptionThrown":
            details = values["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and values["type"] in ("error", "assert"):
            self.errors.append(" ".join(str(each.get("value", each.get("description"))) for each in values["args"]))
        elif method == "Log.entryAdded" and values["entry"]["level"] == "error":
            self.errors.append(f"{values['entry']['text']} {values['entry'].get('url', '')}")
        return message

    def call(self, method, **values):
        self.number += 1
        message = {"id": self.number, "method": method, "params": values}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.output, data):]
        deadline = time.monotonic() + 60
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise OSError(f"{method}: {answer['error']}")
                return answer["result"]

    def resize(self, width):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)

    def open(self, address):
        self.errors, self.loaded = [], False
        self.call("Page.navigate", url=address)
        deadline = time.monotonic() + 60
        while not self.loaded:
            self.receive(deadline)

    def excess(self):
        """By how many pixels the page is wider than the window."""
        # What is done after the page was loaded: two frames and a timer later the layout is final.
        wide = self.call("Runtime.evaluate", awaitPromise=True, returnByValue=True, expression="""
            new Promise(done => setTimeout(() => requestAnimationFrame(() => {
              const boxes = [document.scrollingElement, document.getElementById('doc-content')].filter(box => box);
              done(Math.max(...boxes.map(box => box.scrollWidth - box.clientWidth)));
            }), 50))""")
        return wide["result"]["value"]

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.profile.cleanup()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def pages_to_open():
    pages = [path for path in sorted(SITE.rglob("index.html")) if "reference" not in path.parts]
    reference = sorted((SITE / "reference").glob("*.html"))
    fixed = [path for path in reference if path.name.startswith(("index.", "topics.", "annotated.", "files.", "group__"))]
    others = [path for path in reference if path not in fixed]
    return pages, fixed + others[:: max(1, len(others) // SAMPLE)]


def check_in_browser():
    program = next((found for found in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if found), None)
    if program is None:
        print("    the pages are not opened in a browser: Chromium is not installed", flush=True)
        return []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(QuietHandler, directory=SITE))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser, found = Browser(program), []
    try:
        pages, reference = pages_to_open()
        for path in pages + reference:
            name = path.relative_to(SITE).as_posix()
            browser.resize(WIDTHS[0])
            browser.open(f"http://127.0.0.1:{server.server_port}/{name}")
            for width in WIDTHS:
                browser.resize(width)
                wide = browser.excess()
                if wide > 0:
                    found.append(f"{name} is {wide} pixels wider than a window of {width}")
            found += [f"{name}: {text}" for text in browser.errors]
    finally:
        browser.close()
        server.shutdown()
    print(f"    {len(pages)} pages and {len(reference)} of the reference opened at {WIDTHS[0]} and {WIDTHS[1]} pixels, "
          f"{len(found)} errors", flush=True)
    return found


def main():
    errors = []
    for check in (check_links, check_names, check_in_browser):
        begin = time.monotonic()
        errors += check()
        print(f"    {check.__name__}: {time.monotonic() - begin:.0f} s", flush=True)
    for text in errors[:100]:
        print(f"error: {text}")
    if len(errors) > 100:
        print(f"and {len(errors) - 100} more")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
