#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the site in build/docs/site, for `./dev docs`: the reference by Doxygen, then the pages by MkDocs, then the checks.

    build.py [--no-check] [--serve [PORT]]
"""

import argparse
import functools
import hashlib
import http.server
import os
import re
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import filter  # noqa: E402: docs/site/filter.py

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build/docs"
PROGRAMS = BUILD / "venv/bin"


def fail(text):
    sys.exit(f"dev: {text}")


def step(text, action):
    print(f"\n==> {text}", flush=True)
    begin = time.monotonic()
    action()
    print(f"    {time.monotonic() - begin:.0f} s", flush=True)


def run(*command, **more):
    return subprocess.run([str(each) for each in command], cwd=ROOT, **more)


def install():
    """A virtual environment with the pinned packages, anew when the list of them has changed."""
    requirements = HERE / "requirements.txt"
    mark = BUILD / "venv" / hashlib.sha256(requirements.read_bytes()).hexdigest()
    if mark.exists():
        return
    venv.create(BUILD / "venv", clear=True, with_pip=True)
    if run(PROGRAMS / "pip", "install", "--quiet", "--disable-pip-version-check", "-r", requirements).returncode:
        fail("pip could not install the packages of docs/site/requirements.txt; this needs a network")
    mark.touch()


def theme():
    """The header of pages, their layout, and their styles."""
    code = "import doxygen_awesome_css, os; print(os.path.dirname(doxygen_awesome_css.__file__))"
    folder = Path(run(PROGRAMS / "python", "-c", code, check=True, capture_output=True, text=True).stdout.strip())
    header, layout = BUILD / "header.html", BUILD / "layout.xml"
    run(PROGRAMS / "doxygen", "-w", "html", header, BUILD / "footer.html", BUILD / "unused.css", check=True)
    run(PROGRAMS / "doxygen", "-l", layout, check=True, stdout=subprocess.DEVNULL)
    loads = '<script type="text/javascript" src="$relpath^reference.js"></script>\n'
    loads += '<link rel="icon" href="$relpath^../assets/images/favicon.png"/>\n'
    header.write_text(header.read_text().replace("</head>", loads + "</head>"))
    pages = '<tab type="user" url="../index.html" title="Documentation"/>'
    text = re.sub(r"(<navindex>)", rf"\1\n    {pages}", layout.read_text(), count=1)
    # The search finds members; lists of all members of all classes are long, and of no use.
    hidden = r'(<tab type="(?:classmembers|namespacemembers|globals|classindex|hierarchy)" visible=)"yes"'
    layout.write_text(re.sub(hidden, r'\1"no"', text))
    styles = [folder / "doxygen-awesome.css", HERE / "reference.css"]
    return header, layout, styles


def filtered_headers():
    """Filters all headers at once, as starting Python for each takes longer than Doxygen. Doxygen's command to read one."""
    if missing := filter.missing_paths(ROOT / "include/hocket"):
        fail(f"docs/site/filter.py lists headers that do not exist: {', '.join(missing)}")
    undocumented = []
    for path in (ROOT / "include").rglob("*.*pp"), (ROOT / "include").rglob("*.cuh"):
        for header in path:
            copy = BUILD / "filtered" / header.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            text = header.read_text()
            copy.write_text("\n".join(filter.filtered(str(header), text)))
            undocumented += [f"{header.relative_to(ROOT)}: {name}" for name in filter.undocumented_types(str(header), text)]
    if undocumented:
        fail("each public name needs a docstring:\n" + "\n".join(undocumented))
    script = BUILD / "filtered.sh"
    script.write_text(f"""case $1 in {ROOT}/include/*) exec cat "{BUILD}/filtered${{1#{ROOT}}}" ;; *) exec cat "$1" ;; esac\n""")
    return f"sh {script}"


def reference():
    shutil.rmtree(BUILD / "doxygen", ignore_errors=True)
    shutil.rmtree(BUILD / "filtered", ignore_errors=True)
    (BUILD / "doxygen").mkdir(parents=True)
    header, layout, styles = theme()

    def paths(names):
        return " ".join(f'"{name}"' for name in names)

    (BUILD / "Doxyfile").write_text(f"""@INCLUDE = docs/site/Doxyfile
OUTPUT_DIRECTORY = build/docs/doxygen
INPUT_FILTER = "{filtered_headers()}"
HTML_HEADER = "{header}"
LAYOUT_FILE = "{layout}"
HTML_EXTRA_STYLESHEET = {paths(styles)}
HTML_EXTRA_FILES = docs/site/reference.js
WARN_LOGFILE = build/docs/doxygen.log
""")
    (BUILD / "doxygen.log").unlink(missing_ok=True)
    status = run("nice", PROGRAMS / "doxygen", BUILD / "Doxyfile").returncode
    warnings = (BUILD / "doxygen.log").read_text().replace(f"{ROOT}/", "").splitlines()
    for line in warnings[:40]:
        print(line)
    count = sum(": warning: " in line or ": error: " in line for line in warnings)
    print(f"    {count} warnings, in build/docs/doxygen.log")
    # Doxygen also writes the hidden lists, and a list for crawlers; both have dead links.
    for name in ("doxygen_crawl", "functions*", "namespacemembers*", "globals*", "hierarchy"):
        for page in (BUILD / "doxygen/reference").glob(name + ".html"):
            page.unlink()
    front = BUILD / "doxygen/reference/index.html"
    front.write_text(re.sub(r'<a href="doxygen_crawl.html"[^>]*>[^<]*</a>', "", front.read_text()))
    if status:
        fail("doxygen failed: each public name needs a docstring")


def pages():
    staged = BUILD / "pages"
    shutil.rmtree(staged, ignore_errors=True)
    names = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
    names += [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs/pictures").rglob("*")]
    for name in names:
        if name.is_file():
            copy = staged / name.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(name, copy)
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    # Not with --quiet: what is not printed does not count for `strict` either.
    done = run("nice", PROGRAMS / "mkdocs", "build", "-f", HERE / "mkdocs.yml", env=environment, capture_output=True, text=True)
    if done.returncode:
        fail("mkdocs failed:\n" + re.sub(r"(?m)^INFO .*\n", "", done.stdout + done.stderr))


def check():
    if run("nice", sys.executable, HERE / "check_site.py").returncode:
        fail("the site has errors, see above")


def serve(port):
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=BUILD / "site")
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        print(f"\n==> serving http://127.0.0.1:{server.server_port}/ until you press Ctrl-C", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass


def main():
    parser = argparse.ArgumentParser(prog="./dev docs")
    parser.add_argument("--no-check", action="store_true", help="only build")
    parser.add_argument("--serve", nargs="?", type=int, const=8000, metavar="PORT", help="build, then serve (8000)")
    arguments = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    step("installing MkDocs and Doxygen in build/docs/venv", install)
    step("building the reference by Doxygen, about 1 minute", reference)
    step("building the pages by MkDocs", pages)
    if not arguments.no_check:
        step("checking links, names and layout", check)
    print(f"\n==> open build/docs/site/index.html, or run ./dev docs --serve")
    if arguments.serve is not None:
        serve(arguments.serve)


if __name__ == "__main__":
    main()
