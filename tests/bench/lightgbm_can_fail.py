#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that bench/peers/lightgbm.cpp finds models that differ, and reports failures in LightGBM's hooks.

lightgbm_can_fail.py PEERS PROGRAMS"""

import os
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import peers  # noqa: E402
import training  # noqa: E402

# Fault, texts that must be printed, and the exit status.
CASES = [
    (
        "error",
        [
            "rank 1: the reduce-scatter over hocket failed: failed on purpose",
            "run 1 over hocket failed: a rank ended with status 3",
        ],
        3,
    ),
    ("stop", ["run 1 over hocket failed: it took more than 15 s"], 3),
    ("wrong", ["models: DIFFERENT: that of run 1 over hocket, rank 1 differs"], 1),
    ("none", ["models: equal on all ranks and in all runs"], 0),
]


def run(arguments, fault=""):
    command = [str(each) for each in [peers.PROGRAMS / "lightgbm", *arguments]]
    environment = {**os.environ, "HOCKET_COMPARE_FAULT": fault}
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300
    )
    return done.returncode, done.stdout


def problem_of(found, texts, status):
    returned, output = found
    for text in texts:
        if text not in output:
            return f"'{text}' is missing in:\n{output}"
    return f"exit status {returned}, expected {status}:\n{output}" if returned != status else None


peers.PROGRAMS = Path(sys.argv[2])
try:
    library = training.library(install=False)
except peers.Missing as reason:
    print(f"LightGBM can't be used: {reason}")
    sys.exit(training.NOT_INSTALLED)

problems = {
    "no library": problem_of(run([]), ["--library is missing"], 2),
    "other library": problem_of(run(["--library", "/lib/other.so"]), ["in the folder of LightGBM's wheel"], 3),
}
for kind, texts, status in CASES:
    arguments = ["--library", library, "--small", "--runs", 1]
    arguments += ["--limit", 15 if kind == "stop" else 120]
    problems[kind] = problem_of(run(arguments, kind), texts, status)
for name, problem in problems.items():
    if problem:
        print(f"{name}: {problem}")
sys.exit(1 if any(problems.values()) else 0)
