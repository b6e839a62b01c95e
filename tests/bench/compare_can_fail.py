#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that `./dev compare` finds a peer that fails, names the reason, and measures the others.

compare_can_fail.py COMPARE PROGRAMS SCRATCH"""

import json
import subprocess
import sys
from pathlib import Path

compare, programs, scratch = sys.argv[1:]
# Fault, text that must be printed, and the exit status: a failure of hocket itself is an error.
CASES = [
    ("error", "hocket_allocated has failed: rank 1: failed on purpose", 1),
    ("exit", "hocket_allocated has failed: rank 1 has ended", 1),
    ("stop", "hocket_allocated has failed: no answer of rank 0, 1 in time", 1),
    ("wrong", "hocket_allocated: all_reduce of 1024 bytes has 1 wrong elements", 1),
    ("none", "hocket_allocated", 0),
]


def run(fault):
    command = [
        sys.executable,
        compare,
        "--installed",
        "--programs",
        programs,
        "--out",
        scratch,
        "--calls",
        "all_reduce",
        "--peers",
        "hocket,hocket_allocated",
        "--sizes",
        "8,1K",
        "--rounds",
        "2",
        "--budget",
        "1",
        "--patience",
        "5",
        "--fault",
        f"hocket_allocated:{fault}",
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    return done.returncode, done.stdout


def problem_of(fault, text, status):
    returned, output = run(fault)
    if text not in output:
        return f"'{text}' is missing", output
    if returned != status:
        return f"exit status {returned}, expected {status}", output
    rows = json.loads(Path(scratch, "results.json").read_text())["rows"]
    if not any(row["peer"] == "hocket" and row["bytes"] == 1024 for row in rows):
        return "the other peer has not been measured to the end", output
    return None, output


failed = False
for case in CASES:
    problem, output = problem_of(*case)
    if problem:
        failed = True
        print(f"{case[0]}: {problem}\n{output}")
sys.exit(1 if failed else 0)
