#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures hocket beside other libraries, on the same cores in turn. See ./dev compare --help.

The processes of all peers exist at the same time, and sleep in a read while another peer is measured. So a round over all
peers takes a fraction of a second, and whatever changes slowly on the machine affects all of them alike."""

import argparse
import datetime
import re
import statistics
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import machine  # noqa: E402
import peers  # noqa: E402
import report  # noqa: E402
import training  # noqa: E402
from processes import Failed, Processes  # noqa: E402

CALLS = [
    "all_reduce",
    "reduce_scatter",
    "all_gather",
    "all_to_all",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "gather_v",
    "scatter_v",
    "barrier",
    "ping_pong",
    "exchange",
]
DIVIDING = ("reduce_scatter", "all_gather", "all_to_all", "gather", "scatter", "gather_v", "scatter_v")
TIMINGS = ["back_to_back", "separated"]
UNITS = {"": 1, "B": 1, "K": 1024, "KI": 1024, "KIB": 1024, "M": 1024**2, "MI": 1024**2, "MIB": 1024**2}


def size_of(text):
    match = re.fullmatch(r"(\d+)([A-Za-z]*)", text.strip())
    if not match or match.group(2).upper() not in UNITS:
        raise argparse.ArgumentTypeError(f"'{text}' must be a number of bytes such as 8, 64K or 2M")
    return int(match.group(1)) * UNITS[match.group(2).upper()]


def sizes_of(text):
    """FIRST:LAST, by powers of two, or a list."""
    if ":" in text:
        first, last = (size_of(each) for each in text.split(":", 1))
        sizes = [first]
        while sizes[-1] * 2 <= last:
            sizes.append(sizes[-1] * 2)
    else:
        sizes = sorted({size_of(each) for each in text.split(",")})
    if not sizes or sizes[0] < 4 or any(size % 4 for size in sizes):
        raise argparse.ArgumentTypeError("sizes must be multiples of 4, the size of an element")
    return sizes


def names_of(allowed):
    def parse(text):
        names = allowed if text == "all" else text.split(",")
        for name in names:
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"'{name}' must be one of {', '.join(allowed)}")
        return names

    return parse


def read_command_line():
    known = [peer.name for peer in peers.all_peers()]
    parser = argparse.ArgumentParser(
        prog="./dev compare",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Measures hocket's calls between processes of this host beside other libraries.",
        epilog="docs/performance.md describes what is measured, and how to read the results.",
    )
    parser.add_argument(
        "--ranks", type=int, default=None, help="number of processes (2); rank r runs on core r mod cores"
    )
    parser.add_argument(
        "--sizes", type=sizes_of, default=None, help="bytes, FIRST:LAST by powers of two or a list (8:64M)"
    )
    parser.add_argument("--calls", type=names_of(CALLS), default=CALLS, help=", ".join(CALLS) + "; all")
    parser.add_argument("--peers", type=names_of(known), default=None, help=", ".join(known) + "; all")
    parser.add_argument(
        "--buffers",
        choices=["warm", "cold", "both"],
        default="warm",
        help="cold: each call uses other buffers, which together exceed the last-level cache",
    )
    parser.add_argument("--rounds", type=int, default=None, help="times that each peer has its turn at each size (5)")
    parser.add_argument(
        "--budget", type=float, default=None, help="milliseconds of one measurement (12; 40 if ranks outnumber cores)"
    )
    parser.add_argument("--minutes", type=float, default=8, help="makes fewer rounds rather than take longer (8)")
    parser.add_argument(
        "--out", type=Path, default=None, help="folder for results (build/compare/results)"
    )
    parser.add_argument(
        "--patience", type=float, default=20, help="seconds after which a peer that does not answer has failed (20)"
    )
    parser.add_argument("--quick", action="store_true", help="few sizes and rounds: about a minute")
    parser.add_argument(
        "--installed", action="store_true", help="install nothing; leave out peers that are not installed"
    )
    parser.add_argument("--list", action="store_true", help="list the peers and their settings, and end")
    parser.add_argument(
        "--lightgbm",
        action="store_true",
        help="instead train a model by LightGBM over hocket and over LightGBM's own sockets, on 2, 3 and 4 ranks unless "
        "--ranks names a number, in 9 rounds. Of the other options, --rounds, --quick, --out, --installed and "
        "--programs apply",
    )
    parser.add_argument(
        "--summary",
        nargs="+",
        type=Path,
        metavar="JSON",
        help="print the medians of the ratios of these results, and end; with --out, also write them as a table in "
        "Markdown and as plots",
    )
    parser.add_argument(
        "--programs", type=Path, default=peers.PROGRAMS, help="folder with the programs of another build"
    )
    parser.add_argument("--fault", default=":", help=argparse.SUPPRESS)  # PEER:KIND, for tests
    wanted = parser.parse_args()
    check(parser, wanted)
    return wanted


def check(parser, wanted):
    if wanted.ranks is not None and not 2 <= wanted.ranks <= 64:
        parser.error("--ranks must be from 2 to 64")
    if wanted.rounds is None:
        wanted.rounds = 9 if wanted.lightgbm else 5
    wanted.training_ranks = [wanted.ranks] if wanted.ranks else [2, 3, 4]
    wanted.ranks = wanted.ranks or 2
    if wanted.budget is None:
        wanted.budget = 40 if wanted.ranks > len(machine.cores()) else 12
    if wanted.rounds < 1 or wanted.budget <= 0 or wanted.minutes <= 0:
        parser.error("--rounds, --budget and --minutes must be greater than 0")
    if wanted.quick:
        wanted.rounds, wanted.budget, wanted.minutes = (
            min(wanted.rounds, 2),
            wanted.budget / 4,
            min(wanted.minutes, 0.7),
        )
    if wanted.sizes is None:
        wanted.sizes = sizes_of("8,1K,64K,1M" if wanted.quick else "8:64M")


def choose_peers(wanted):
    """The peers to measure, and the reasons why others are left out."""
    crowded = wanted.ranks > len(machine.cores())
    everyone = peers.all_peers()
    if wanted.peers is not None:
        return [peer for peer in everyone if peer.name in wanted.peers], {}
    left_out = {peer.name: peer.left_out(crowded) for peer in everyone if peer.left_out(crowded)}
    return [peer for peer in everyone if peer.name not in left_out], left_out


def print_list(wanted):
    crowded = wanted.ranks > len(machine.cores())
    print(f"settings for {wanted.ranks} ranks on {len(machine.cores())} cores; rank r is pinned to core r mod cores")
    for peer in peers.all_peers():
        print(f"{peer.name:17} {peer.title}\n{'':17} from: {peer.origin}\n{'':17} setting: {peer.setting(crowded)}")
        if peer.left_out(crowded):
            print(f"{'':17} left out unless --peers names it: {peer.left_out(crowded)}")


class Comparison:
    def __init__(self, wanted, ready, reasons):
        self.wanted = wanted
        self.peers = ready
        self.reasons = reasons  # why peers are left out or have failed, by name
        self.versions = {}
        self.found = {}  # (call, bytes, cache, peer, timing): answers of the rounds
        self.wrong = []
        self.limits = machine.Limits(machine.cores())
        self.begin = time.monotonic()
        self.until = self.begin + 60 * wanted.minutes
        self.failures = {}

    # ---- what to measure ----

    def sizes_for(self, call):
        if call == "barrier":
            return [0]
        least = 4 * self.wanted.ranks if call in DIVIDING else 4
        return [size for size in self.wanted.sizes if size >= least and (call not in DIVIDING or size % least == 0)]

    def caches(self):
        return {"warm": ["warm"], "cold": ["cold"], "both": ["warm", "cold"]}[self.wanted.buffers]

    def plan(self):
        return [
            (cache, call)
            for cache in self.caches()
            for call in self.wanted.calls
            if cache == "warm" or call != "barrier"
        ]

    def most_bytes(self, cache):
        """The largest size whose buffers fit in memory for all peers."""
        cold = 2 * machine.last_level_cache() if cache == "cold" else 0
        most = max(self.wanted.sizes)
        while (
            most > 1024
            and 2 * (max(most, cold) + most) * self.wanted.ranks * len(self.peers) > 0.8 * machine.available_memory()
        ):
            most //= 2
        if most < max(self.wanted.sizes):
            print(
                f"sizes above {report.size_text(most)} are left out: the buffers of all peers would not fit in memory"
            )
        return most, cold

    # ---- measuring ----

    def run(self):
        self.measure_limits()
        plan = self.plan()
        for number, (cache, call) in enumerate(plan):
            self.measure_call(call, cache, self.shares(plan[number:]))
        self.measure_limits()

    def measure_limits(self):
        copies = {
            machine.copies_of(call, size, self.wanted.ranks)
            for call in self.wanted.calls
            for size in self.sizes_for(call)
        }
        try:
            self.limits.measure({each for each in copies if each and each[1] > 0})
        except peers.Missing as problem:
            self.reasons["limit"] = str(problem)

    def shares(self, plan):
        """The shares of the time that is left, by size, for the first call of the plan."""

        def weight(size):
            return 1 + size / 2**22

        everything = sum(weight(size) for _, call in plan for size in self.sizes_for(call))
        return {size: weight(size) / everything for size in self.sizes_for(plan[0][1])}

    def measure_call(self, call, cache, shares):
        most, cold = self.most_bytes(cache)
        running = self.start_all(call, most, cold)
        try:
            left = self.until - time.monotonic()
            end = time.monotonic()
            for size in self.sizes_for(call):
                if size <= most and running:
                    end = max(end, time.monotonic()) + shares[size] * left
                    self.measure_size(running, call, size, cache, end)
        finally:
            for processes in running.values():
                processes.stop()

    def start_all(self, call, most, cold):
        running = {}
        for peer in self.peers:
            if self.failures.get(peer.name, 0) >= 3:
                continue
            try:
                failing, fault = self.wanted.fault.split(":", 1)
                processes = Processes(peer, self.wanted.ranks, machine.cores(), fault if peer.name == failing else None)
                self.versions[peer.name] = processes.version
                running[peer.name] = processes
                processes.ask(f"reserve {min(most, max(self.sizes_for(call)))} {cold}", self.wanted.patience)
            except Failed as problem:
                self.drop(running, peer.name, f"{call}: {problem}")
        return running

    def drop(self, running, name, reason):
        """Ends the processes of a peer that has failed; they start again for the next call."""
        self.failures[name] = self.failures.get(name, 0) + 1
        self.reasons[name] = f"{self.reasons[name]}; {reason}" if name in self.reasons else reason
        print(f"{name} has failed: {reason}", file=sys.stderr, flush=True)
        if name in running:
            running.pop(name).kill()

    def measure_size(self, running, call, size, cache, end):
        for number in range(self.wanted.rounds):
            begin = time.monotonic()
            names = list(running)
            turn = number % max(len(names), 1)
            for name in names[turn:] + names[:turn]:
                self.measure_peer(running, name, call, size, cache, number == 0)
            # No more rounds than fit, but at least two while there is time: the first one also verifies.
            late = time.monotonic() > self.until
            if late or number >= 1 and time.monotonic() + 0.7 * (time.monotonic() - begin) > end:
                break
        self.print_progress(call, size, cache)

    def measure_peer(self, running, name, call, size, cache, verify):
        limit = self.wanted.patience + 40 * self.wanted.budget / 1000
        try:
            answer = running[name].ask(f"measure {call} {size} {1000 * self.wanted.budget} {int(verify)}", limit)
        except Failed as problem:
            self.drop(running, name, str(problem))
            return
        if answer.get("missing"):
            running.pop(name).stop()
            return
        if answer["wrong"]:
            self.wrong.append({"peer": name, "call": call, "bytes": size, "elements": answer["wrong"]})
            print(f"{name}: {call} of {size} bytes has {answer['wrong']} wrong elements", file=sys.stderr, flush=True)
        for timing in TIMINGS:
            self.found.setdefault((call, size, cache, name, timing), []).append(answer[timing])

    def median(self, call, size, cache, name, timing):
        answers = self.found.get((call, size, cache, name, timing))
        return statistics.median(each["median_us"] for each in answers) if answers else None

    def print_progress(self, call, size, cache):
        elapsed = time.monotonic() - self.begin
        times = {peer.name: self.median(call, size, cache, peer.name, "back_to_back") for peer in self.peers}
        others = {name: value for name, value in times.items() if value and not name.startswith("hocket")}
        best = min(others, key=others.get, default=None)
        text = f"{best} {report.time_text(others[best])}" if best else "no peer"
        for name in ("hocket", "hocket_allocated"):
            if times.get(name):
                text += f", {name} {report.time_text(times[name])}"
                text += f" ({others[best] / times[name]:.2f})" if best else ""
        label = call if call == "barrier" else f"{call} {report.size_text(size)}"
        print(f"[{elapsed:4.0f} s] {label:24} {cache}: {text}", flush=True)

    # ---- results ----

    def results(self, load):
        rows = []
        for (call, size, cache, name, timing), answers in self.found.items():
            rows.append(
                {
                    "call": call,
                    "bytes": size,
                    "cache": cache,
                    "peer": name,
                    "timing": timing,
                    "median_us": statistics.median(each["median_us"] for each in answers),
                    "p99_us": statistics.median(each["p99_us"] for each in answers),
                    "minimum_us": min(each["minimum_us"] for each in answers),
                    "samples": sum(each["samples"] for each in answers),
                    "batch": answers[-1]["batch"],
                    "rounds_us": [each["median_us"] for each in answers],
                }
            )
        crowded = self.wanted.ranks > len(machine.cores())
        about = [
            {
                "name": peer.name,
                "column": peer.column or peer.name,
                "title": peer.title,
                "version": self.versions.get(peer.name, ""),
                "origin": peer.origin,
                "setting": peer.setting(crowded),
                "is_hocket": peer.is_hocket,
            }
            for peer in self.peers
        ]
        limits = [
            {"call": call, "bytes": size, "us": self.limits.time_of(call, size, self.wanted.ranks)}
            for call in self.wanted.calls
            for size in self.sizes_for(call)
            if self.limits.time_of(call, size, self.wanted.ranks)
        ]
        return {
            "format": "hocket-compare 1",
            "date": datetime.datetime.now().isoformat(timespec="seconds"),
            "commit": machine.commit(),
            "machine": machine.describe(),
            "ranks": self.wanted.ranks,
            "load": load,
            "seconds": round(time.monotonic() - self.begin),
            "round_trip_us": self.limits.round_trip_us,
            "peers": about,
            "left_out": self.reasons,
            "wrong": self.wrong,
            "limits": limits,
            "rows": rows,
        }


def main():
    wanted = read_command_line()
    if wanted.summary:
        return report.summarize(wanted.summary, wanted.out)
    if wanted.list:
        return print_list(wanted)
    peers.PROGRAMS = wanted.programs.resolve()
    wanted.out = wanted.out or peers.BUILD / "results"
    wanted.out.mkdir(parents=True, exist_ok=True)
    if wanted.lightgbm:
        return training.compare(wanted)
    chosen, reasons = choose_peers(wanted)
    ready, missing = peers.prepare_all(chosen, not wanted.installed)
    if not ready:
        sys.exit("dev: there is no peer to measure")
    load = {"cores_in_use_before": machine.warn_if_busy("before the run")}
    stolen = machine.Load()
    comparison = Comparison(wanted, ready, {**reasons, **missing})
    comparison.run()
    load["cores_stolen"] = round(stolen.since_begin()[1], 3)
    load["cores_in_use_after"] = machine.warn_if_busy("after the run")
    results = comparison.results(load)
    report.write_all(results, wanted.out)
    return 1 if results["wrong"] or any(name.startswith("hocket") for name in results["left_out"]) else 0


if __name__ == "__main__":
    sys.exit(main())
