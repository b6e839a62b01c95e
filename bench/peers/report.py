# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The results of a comparison as tables, CSV, JSON and plots."""

import csv
import io
import json
import math
import statistics
import sys
from pathlib import Path

import plots

BEHIND = 0.97
TIMING_TITLES = {"back_to_back": "back to back", "separated": "with an untimed barrier between calls"}


def size_text(size):
    for unit, name in ((1024**2, "Mi"), (1024, "Ki")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return str(size)


def time_text(us):
    """Microseconds with three significant digits."""
    if us is None:
        return ""
    digits = max(0, 2 - math.floor(math.log10(us))) if us > 0 else 2
    return f"{us:.{digits}f}"


def ratio_text(ratio):
    return "" if ratio is None else f"{ratio:.2f}"


class Cell:
    """The times of all peers for one call, size, cache and way of timing."""

    def __init__(self, call, size, cache, timing):
        self.call, self.size, self.cache, self.timing = call, size, cache, timing
        self.rows = {}
        self.limit_us = None

    def best_peer(self):
        """The fastest of the other libraries, or None."""
        others = [name for name in self.rows if not name.startswith("hocket")]
        return min(others, key=lambda name: self.rows[name]["median_us"], default=None)

    def ratio(self, name):
        """Time of the best peer divided by that of `name`: above 1, `name` is ahead."""
        best = self.best_peer()
        return self.rows[best]["median_us"] / self.rows[name]["median_us"] if best and name in self.rows else None

    def share_of_limit(self, name):
        return self.limit_us / self.rows[name]["median_us"] if self.limit_us and name in self.rows else None


def cells_of(results):
    limits = {(each["call"], each["bytes"]): each["us"] for each in results["limits"]}
    cells = {}
    for row in results["rows"]:
        key = row["call"], row["bytes"], row["cache"], row["timing"]
        cell = cells.setdefault(key, Cell(*key))
        cell.rows[row["peer"]] = row
        if row["cache"] == "warm":  # the limit is that of warm buffers
            cell.limit_us = limits.get((row["call"], row["bytes"]))
    return list(cells.values())


def unique(values):
    return list(dict.fromkeys(values))


def table(head, lines):
    """Columns that are as wide as their content; the first one is left-aligned."""
    widths = [max(len(str(line[i])) for line in [head, *lines]) for i in range(len(head))]
    text = ""
    for line in [head, *lines]:
        text += (
            "  ".join(
                f"{cell:<{width}}" if i == 0 else f"{cell:>{width}}"
                for i, (cell, width) in enumerate(zip(line, widths))
            ).rstrip()
            + "\n"
        )
    return text


def warnings(load):
    """The reasons why the figures are unreliable."""
    lines = []
    for when in ("before", "after"):
        used = load.get(f"cores_in_use_{when}", 0)
        if used > 0.1:
            lines.append(f"WARNING: other programs used {used} cores {when} the run; the figures are unreliable")
    if load.get("cores_stolen", 0) > 0.02:
        lines.append(f"WARNING: the host took {load['cores_stolen']} cores away during the run")
    return lines


def conditions(results):
    here = results["machine"]
    lines = [
        f"{results['ranks']} processes on {here['cores']} cores of {here['processor']}, Linux {here['kernel']}, "
        f"{results['date']}, commit {results['commit']}, {results['seconds']} s"
    ]
    if results["round_trip_us"]:
        lines.append(
            f"round trip of one cache line between two pinned threads: {1000 * results['round_trip_us']:.0f} ns"
        )
    lines += warnings(results["load"])
    for peer in results["peers"]:
        lines.append(f"{peer['name']}: {peer['version'] or peer['title']}; {peer['setting']}")
    for name, reason in results["left_out"].items():
        lines.append(f"{name}, left out or failed: {reason}")
    for each in results["wrong"]:
        lines.append(
            f"WRONG RESULT: {each['peer']}, {each['call']} of {each['bytes']} bytes, {each['elements']} elements"
        )
    return "\n".join(lines) + "\n"


def table_of(cells, columns):
    """Median and 99th percentile in microseconds of each peer, and the ratios. `columns`: titles by name of the peer."""
    names = list(columns)
    ours = [name for name in names if name.startswith("hocket")]
    head = ["bytes"]
    for name in names:
        head += [columns[name], "p99"]
    head += ["best peer", *("best/" + columns[name] for name in ours), *("limit/" + columns[name] for name in ours)]
    lines = []
    for cell in cells:
        line = ["" if cell.call == "barrier" else size_text(cell.size)]
        for name in names:
            row = cell.rows.get(name)
            line += [time_text(row["median_us"]), time_text(row["p99_us"])] if row else ["", ""]
        line += [cell.best_peer() or "", *(ratio_text(cell.ratio(name)) for name in ours)]
        line += [f"{100 * cell.share_of_limit(name):.0f} %" if cell.share_of_limit(name) else "" for name in ours]
        lines.append(line)
    return table(head, lines)


def mean_of(ratios):
    """The geometric mean, which is the same whichever of two libraries is the divisor."""
    return math.exp(statistics.fmean(math.log(each) for each in ratios)) if ratios else None


def ratios_of(cells, name):
    """Ratios by (cache, timing, call, size)."""
    found = {(cell.cache, cell.timing, cell.call, cell.size): cell.ratio(name) for cell in cells}
    return {key: ratio for key, ratio in found.items() if ratio is not None}


def times_of(cells, name):
    """Median times by (cache, timing, call, size)."""
    return {
        (cell.cache, cell.timing, cell.call, cell.size): cell.rows[name]["median_us"]
        for cell in cells
        if name in cell.rows
    }


def summary_table(ratios, title):
    """One row for each size, one column for each call."""
    calls = unique(call for call, _ in ratios)
    sizes = sorted({size for call, size in ratios if call != "barrier"}) or [0]
    lines = []
    for number, size in enumerate(sizes):
        cells = [ratio_text(ratios.get((call, 0 if call == "barrier" and number == 0 else size))) for call in calls]
        lines.append([size_text(size), *cells])
    lines.append(
        ["mean", *(ratio_text(mean_of([ratio for (of, _), ratio in ratios.items() if of == call])) for call in calls)]
    )
    behind = sum(ratio < BEHIND for ratio in ratios.values())
    return f"{title}: behind (below {BEHIND}) in {behind} of {len(ratios)}\n" + table(["bytes", *calls], lines)


def summary_text(ratios_by_name):
    text = "Time of the best peer divided by that of hocket; above 1, hocket is ahead\n\n"
    for name, ratios in ratios_by_name.items():
        for cache, timing in unique((cache, timing) for cache, timing, _, _ in ratios):
            chosen = {
                (call, size): ratio for (of, way, call, size), ratio in ratios.items() if (of, way) == (cache, timing)
            }
            text += summary_table(chosen, f"{name}, {cache} buffers, {TIMING_TITLES[timing]}") + "\n"
    return text


def our_names(results):
    return [peer["name"] for peer in results["peers"] if peer["is_hocket"]]


def as_text(results):
    cells = cells_of(results)
    columns = {
        peer["name"]: peer["column"] for peer in results["peers"] if any(peer["name"] in cell.rows for cell in cells)
    }
    text = conditions(results) + "\nMedians and 99th percentiles in microseconds\n"
    for cache, call, timing in unique((cell.cache, cell.call, cell.timing) for cell in cells):
        chosen = [cell for cell in cells if (cell.cache, cell.call, cell.timing) == (cache, call, timing)]
        text += f"\n{call}, {cache} buffers, {TIMING_TITLES[timing]}\n" + table_of(chosen, columns)
    return text + "\n" + summary_text({name: ratios_of(cells, name) for name in our_names(results)})


def as_csv(results):
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(
        [
            "call",
            "bytes",
            "cache",
            "timing",
            "peer",
            "median_us",
            "p99_us",
            "minimum_us",
            "samples",
            "best_peer",
            "ratio",
            "limit_us",
        ]
    )
    for cell in cells_of(results):
        for name, row in cell.rows.items():
            ratio = cell.ratio(name) if name.startswith("hocket") else None
            writer.writerow(
                [
                    cell.call,
                    cell.size,
                    cell.cache,
                    cell.timing,
                    name,
                    row["median_us"],
                    row["p99_us"],
                    row["minimum_us"],
                    row["samples"],
                    cell.best_peer() or "",
                    f"{ratio:.4f}" if ratio else "",
                    cell.limit_us or "",
                ]
            )
    return file.getvalue()


def write_all(results, folder):
    text = as_text(results)
    Path(folder, "results.txt").write_text(text)
    Path(folder, "results.csv").write_text(as_csv(results))
    Path(folder, "results.json").write_text(json.dumps(results, indent=1) + "\n")
    plots.write_all(cells_of(results), results, Path(folder))
    print("\n" + text)
    print(f"results: {folder}/results.txt, .csv, .json and plots")


def markdown_of(runs, merged):
    """For each size, the time of hocket in microseconds and the ratio."""
    times = [{name: times_of(cells_of(run), name) for name in merged} for run in runs]
    columns = {peer["name"]: peer["column"] for peer in runs[0]["peers"]}
    text = ""
    for name, ratios in merged.items():
        for cache, timing in unique((cache, timing) for cache, timing, _, _ in ratios):
            chosen = {key[2:]: ratio for key, ratio in ratios.items() if key[:2] == (cache, timing)}
            calls = unique(call for call, _ in chosen)
            text += f"{columns[name]}, {cache} buffers, {TIMING_TITLES[timing]}: µs (ratio)\n\n"
            text += f"| bytes | {' | '.join(calls)} |\n|{'---|' * (len(calls) + 1)}\n"
            for size in sorted({size for _, size in chosen}):
                row = []
                for call in calls:
                    key = cache, timing, call, size
                    known = (call, size) in chosen and all(key in run[name] for run in times)
                    us = statistics.median(run[name][key] for run in times) if known else None
                    row.append(f"{time_text(us)} ({ratio_text(chosen[call, size])})" if known else "")
                text += f"| {size_text(size)} | {' | '.join(row)} |\n"
            text += "\n"
    return text


def summarize(files, folder):
    """Prints the medians of the ratios of several runs. A cell is behind only if it is behind in all of them. Writes
    them to `folder`, too, unless it is None."""
    try:
        runs = [json.loads(each.read_text()) for each in files]
    except (OSError, ValueError) as problem:
        sys.exit(f"dev: --summary: {problem}")
    merged = {}
    for name in our_names(runs[0]):
        each_run = [ratios_of(cells_of(run), name) for run in runs]
        common = [key for key in each_run[0] if all(key in run for run in each_run)]
        merged[name] = {key: statistics.median(run[key] for run in each_run) for key in common}
        behind = [key for key in common if all(run[key] < BEHIND for run in each_run)]
        print(f"{name}: behind in all of {len(runs)} runs in {len(behind)} of {len(common)}")
        for cache, timing, call, size in behind:
            print(
                f"  {call} {size_text(size)}, {cache}, {TIMING_TITLES[timing]}: {merged[name][cache, timing, call, size]:.2f}"
            )
    print("\n" + summary_text(merged))
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    Path(folder, "summary.md").write_text(markdown_of(runs, merged))
    for name, ratios in merged.items():
        plots.write_ratios(name, ratios, folder)
    print(f"summary: {folder}/summary.md and plots")
