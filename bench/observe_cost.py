#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What all sinks cost a training: processor time of the demo with and without --log, --tensorboard and --prometheus.

    observe_cost.py PROGRAM TEXT [--steps N] [--pairs N] [--check PERCENT]

Runs PROGRAM, examples/train_gpt, in pairs of a run without and a run with sinks, in turns, on the mesh of `./dev demo`. While
a run has an endpoint, it is read once a second. Prints the user and system time of all ranks: the medians, and the
median of the ratios within pairs. With --check, up to three rounds are measured, and the exit status is nonzero if the ratio
of each exceeds 1 + PERCENT / 100.
"""

import argparse
import contextlib
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from pathlib import Path

MESH = ["--dp", "2", "--pp", "2", "--zero", "1", "--microbatches", "4"]
RANKS = 4
PORT = 23400
LIMIT_SECONDS = 600
ROUNDS = 3


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextlib.contextmanager
def scraped():
    """Reads the endpoint of all ranks once a second; gives the number of answers with all of them so far in a list."""
    over, answers = threading.Event(), [0]

    def read():
        while not over.wait(1):
            with contextlib.suppress(OSError, urllib.error.URLError):
                with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=1) as answer:
                    text = answer.read().decode()
                    answers[0] += all(f'hocket_steps_total{{rank="{rank}"}}' in text for rank in range(RANKS))

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield answers
    finally:
        over.set()
        thread.join()


def train(wanted, folder, sinks):
    """Returns the processor time of a run in seconds."""
    command = [wanted.program, "--text", wanted.text, "--out", folder, "--steps", str(wanted.steps), *MESH, *sinks]
    before = processor_seconds()
    done = subprocess.run(
        [str(each) for each in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout}")
    return processor_seconds() - before


def has_prometheus(wanted):
    refused = subprocess.run(
        [wanted.program, "--text", wanted.text, "--steps", "1", "--prometheus", "no address"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    return "built without prometheus-cpp" not in refused.stdout + refused.stderr


def measure(wanted, with_endpoints):
    """Returns pairs of seconds: without and with sinks."""
    pairs = []
    for pair in range(wanted.pairs):
        seconds = {}
        for is_observed in (False, True) if pair % 2 == 0 else (True, False):
            with tempfile.TemporaryDirectory() as folder, scraped() as answers:
                sinks = ["--log", f"{folder}/logs", "--tensorboard", f"{folder}/board"]
                sinks += ["--prometheus", f"127.0.0.1:{PORT}"] if with_endpoints else []
                seconds[is_observed] = train(wanted, folder, sinks if is_observed else [])
                if is_observed and not list(Path(folder, "board").glob("events*")):
                    raise SystemExit("a run with sinks has written no events")
            if is_observed and with_endpoints and answers[0] == 0:
                raise SystemExit("no endpoint has answered: pass more --steps")
        pairs.append((seconds[False], seconds[True]))
        print(f"{seconds[False]:8.2f} s without, {seconds[True]:8.2f} s with sinks", flush=True)
    return pairs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("text", type=Path)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--check", type=float, metavar="PERCENT")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if wanted.text.is_dir():  # the sources in it
            joined = Path(folder, "text")
            joined.write_bytes(b"".join(each.read_bytes() for each in sorted(wanted.text.rglob("*.hpp"))))
            wanted.text = joined
        with_endpoints = has_prometheus(wanted)
        print("sinks: logs, TensorBoard" + (", Prometheus" if with_endpoints else "; this program has no Prometheus"))
        for _ in range(ROUNDS if wanted.check is not None else 1):
            pairs = measure(wanted, with_endpoints)
            without, observed = (statistics.median(each) for each in zip(*pairs))
            ratio = statistics.median(after / before for before, after in pairs)
            print(f"processor time, medians: {without:.2f} s without, {observed:.2f} s with sinks; ratio {ratio:.4f}")
            if wanted.check is None or ratio <= 1 + wanted.check / 100:
                return
    sys.exit(f"the sinks cost more than {wanted.check} %")


main()
