# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a model by LightGBM, with the ranks connected by hocket and by LightGBM's own sockets, for
`./dev compare --lightgbm`. The program bench/peers/lightgbm.cpp measures one number of ranks."""

import datetime
import json
import subprocess
import sys
from pathlib import Path

import machine
import peers
import report

REQUIREMENTS = ("lightgbm==4.6.0",)  # lightgbm.cpp has the same version
BUSY = (0, 2)
LIMIT_SECONDS = 300  # of one training
NOT_INSTALLED = 77  # exit status, with which tests are skipped


def library(install):
    """The path of LightGBM's library; raises peers.Missing."""
    folder = peers.BUILD / "lightgbm"
    # Without the dependencies of the Python package: only its library is used.
    peers.install_from_pip(folder, "LightGBM", REQUIREMENTS, install, ["--no-deps"])
    found = list(folder.glob("lib/python*/site-packages/lightgbm/lib/lib_lightgbm.so"))
    if not found:
        raise peers.Missing("the package has no lib_lightgbm.so")
    if not (peers.PROGRAMS / "lightgbm").exists():
        raise peers.Missing("the program lightgbm is not built, which needs UCX (libucx-dev)")
    return found[0]


def run_all(wanted, path):
    """The results of the program, and the numbers of ranks and busy processes with which it has failed."""
    results, failed = [], []
    for ranks in wanted.training_ranks:
        for busy in BUSY:
            print(f"\n==> {ranks} ranks, {busy} busy processes", flush=True)
            result = run(wanted, path, ranks, busy)
            if result is None:
                failed.append({"ranks": ranks, "busy": busy})
            else:
                results.append(result)
    return results, failed


def run(wanted, path, ranks, busy):
    """One run of the program, which limits its time. Its result, or None if it has failed."""
    file = Path(wanted.out, "lightgbm.part.json")
    file.unlink(missing_ok=True)
    command = [peers.PROGRAMS / "lightgbm", "--library", path, "--ranks", ranks, "--busy", busy, "--json", file]
    runs = 2 if wanted.quick else wanted.rounds
    command += ["--runs", runs, "--limit", LIMIT_SECONDS, *(["--small"] if wanted.quick else [])]
    try:
        seconds = 2 * runs * (LIMIT_SECONDS + 30)
        subprocess.run([str(each) for each in command], stdin=subprocess.DEVNULL, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return None
    if not file.exists():
        return None
    result = json.loads(file.read_text())
    file.unlink()
    return result


def conditions(results):
    here = results["machine"]
    about = (
        f"LightGBM {results['lightgbm']} on {here['cores']} cores of {here['processor']}, Linux {here['kernel']}, "
        f"{results['date']}, commit {results['commit']}"
    )
    return "\n".join([about, *report.warnings(results["load"])]) + "\n"


def as_text(results):
    head = ["ranks", "busy", "hocket s", "in calls s", "own sockets s", "own sockets / hocket", "models"]
    lines = [
        [
            each["ranks"],
            each["busy"],
            f"{each['hocket_s']:.3f}",
            f"{each['calls_s']:.3f}",
            f"{each['sockets_s']:.3f}",
            f"{each['ratio']:.2f}",
            "DIFFERENT" if each["difference"] else "equal",
        ]
        for each in results["rows"]
    ]
    text = conditions(results) + "\nMedians of the times to train; above 1, hocket is ahead\n\n"
    text += report.table(head, lines)
    for each in results["failed"]:
        text += f"{each['ranks']} ranks, {each['busy']} busy processes: FAILED\n"
    return text


def compare(wanted):
    """Returns the exit status."""
    try:
        path = library(not wanted.installed)
    except peers.Missing as reason:
        print(f"LightGBM can't be used: {reason}", file=sys.stderr)
        return NOT_INSTALLED
    load = {"cores_in_use_before": machine.warn_if_busy("before the run")}
    stolen = machine.Load()
    rows, failed = run_all(wanted, path)
    load["cores_stolen"] = round(stolen.since_begin()[1], 3)
    load["cores_in_use_after"] = machine.warn_if_busy("after the run")
    results = {
        "format": "hocket-compare-lightgbm 1",
        "date": datetime.datetime.now().isoformat(timespec="seconds"),
        "commit": machine.commit(),
        "lightgbm": REQUIREMENTS[0].split("==")[1],
        "machine": machine.describe(),
        "load": load,
        "rows": rows,
        "failed": failed,
    }
    text = as_text(results)
    Path(wanted.out, "lightgbm.txt").write_text(text)
    Path(wanted.out, "lightgbm.json").write_text(json.dumps(results, indent=1) + "\n")
    print(f"\n{text}\nresults: {wanted.out}/lightgbm.txt and .json")
    return 1 if failed or any(each["difference"] for each in rows) else 0
