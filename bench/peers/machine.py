# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the machine is, how busy it is, and its limits."""

import json
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

import peers


def read(path):
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def cores():
    return sorted(os.sched_getaffinity(0))


def describe():
    processor = re.search(r"^model name\s*: (.*)$", read("/proc/cpuinfo"), re.M)
    memory = re.search(r"^MemTotal:\s*(\d+)", read("/proc/meminfo"), re.M)
    return {
        "processor": processor.group(1) if processor else platform.machine(),
        "cores": len(cores()),
        "kernel": platform.release(),
        "memory_bytes": int(memory.group(1)) * 1024 if memory else 0,
        "last_level_cache_bytes": last_level_cache(),
        "governor": governor(),
    }


def governor():
    return read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def last_level_cache():
    sizes = [read(each) for each in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    units = {"K": 1024, "M": 1024**2}
    return max([int(size[:-1]) * units[size[-1]] for size in sizes if size[-1:] in units], default=32 * 1024**2)


def available_memory():
    found = re.search(r"^MemAvailable:\s*(\d+)", read("/proc/meminfo"), re.M)
    return int(found.group(1)) * 1024 if found else 0


class Load:
    """How many cores other programs, or other virtual machines, take between two points in time."""

    def __init__(self):
        self.begin()

    def begin(self):
        self.ticks = self.read_ticks()
        self.start = time.monotonic()

    @staticmethod
    def read_ticks():
        """Ticks in use and stolen, of all cores."""
        fields = [int(each) for each in read("/proc/stat").splitlines()[0].split()[1:]]
        idle = fields[3] + fields[4]
        stolen = fields[7] if len(fields) > 7 else 0
        return sum(fields[:8]) - idle, stolen

    def since_begin(self):
        """Cores that were in use, and cores that were stolen."""
        used, stolen = self.read_ticks()
        ticks = os.sysconf("SC_CLK_TCK") * max(time.monotonic() - self.start, 1e-3)
        return (used - self.ticks[0]) / ticks, (stolen - self.ticks[1]) / ticks


def cores_in_use(seconds=1.0):
    load = Load()
    time.sleep(seconds)
    return load.since_begin()[0]


def warn_if_busy(when):
    used = cores_in_use()
    if used > 0.1:
        print(
            f"\nWARNING: other programs use {used:.1f} cores {when}. The figures are unreliable.\n",
            file=sys.stderr,
            flush=True,
        )
    return round(used, 2)


def commit():
    done = subprocess.run(
        ["git", "-C", str(peers.ROOT), "describe", "--always", "--dirty"], capture_output=True, text=True
    )
    return done.stdout.strip()


def copies_of(call, size, ranks):
    """How many threads copy how many bytes each, to move what `call` must write to the buffers of its results."""
    if call == "barrier":
        return None
    if call == "reduce_scatter":
        return ranks, size // ranks
    if call in ("reduce", "gather", "gather_v"):
        return 1, size
    if call in ("scatter", "scatter_v"):
        return ranks, size // ranks
    if call == "broadcast":
        return max(ranks - 1, 1), size
    if call == "ping_pong":
        return ranks // 2, size
    if call == "exchange":
        return ranks // 2 * 2, size
    return ranks, size


class Limits:
    """The least times that copies have taken in any measurement."""

    def __init__(self, core_list):
        self.cores = core_list
        self.round_trip_us = None
        self.copies = {}

    def measure(self, wanted):
        """Measures these (threads, bytes); raises peers.Missing if that fails."""
        command = [peers.PROGRAMS / "limit", *(f"{threads}:{size}" for threads, size in sorted(wanted))]
        environment = {**os.environ, "HOCKET_COMPARE_CORES": ",".join(str(core) for core in self.cores)}
        for line in peers.run(command, 120, "measuring the limits of the machine", env=environment).splitlines():
            self.add(json.loads(line))

    def add(self, found):
        if "round_trip_us" in found:
            self.round_trip_us = min(found["round_trip_us"], self.round_trip_us or found["round_trip_us"])
            return
        key = found["threads"], found["bytes"]
        if key not in self.copies or found["us"] < self.copies[key]["us"]:
            self.copies[key] = found

    def time_of(self, call, size, ranks):
        """The limit in microseconds, or None."""
        found = self.copies.get(copies_of(call, size, ranks))
        return found["us"] if found else None
