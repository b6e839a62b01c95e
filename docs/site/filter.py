#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Doxygen's view of one header, so that headers need no markup for it. Keeps the number of each line.

- Puts the names of a file into the group of its path (see GROUPS).
- Removes the contents of namespaces `detail`.
- Turns `**Cost.** text`, at the beginning of a sentence in a docstring, into a paragraph with a heading.
- Shows a function object as `auto name`: its type is an implementation detail.
"""

import re
import sys

# The group of a file is that of the first path that it begins with.
GROUPS = [
    ("collective/send", "messages"),
    ("collective/recv", "messages"),
    ("collective/device", "device"),
    ("collective", "collectives"),
    ("bootstrap", "communicators"),
    ("communicator", "communicators"),
    ("group/peers", "device"),
    ("group/nvtx", "device"),
    ("group", "communicators"),
    ("core/error", "errors"),
    ("core/explanation", "errors"),
    ("core/request", "collectives"),
    ("core/buffers", "collectives"),
    ("core/agreement", "errors"),
    ("core/device_buffer", "device"),
    ("core/memory_ledger", "optimizers"),
    ("core/flat_buffer", "gradients"),
    ("core", "options"),
    ("selection", "options"),
    ("scalar", "operations"),
    ("operation", "operations"),
    ("plan", "plans"),
    ("draw/schedule", "pipelines"),
    ("draw", "plans"),
    ("schedule", "pipelines"),
    ("pipeline", "pipelines"),
    ("transport", "transports"),
    ("kernel/device", "device"),
    ("kernel", "operations"),
    ("engine/stream", "device"),
    ("engine", "plans"),
    ("mesh", "sharding"),
    ("shard", "sharding"),
    ("gradient", "gradients"),
    ("optimizer", "optimizers"),
]

# Headers that only other headers of hocket use, and the few among them that a program uses, too. Of the others, the reference
# shows the source alone.
IMPLEMENTATION = [
    "bootstrap",
    "collective/detail",
    "collective/device",
    "collective/host",
    "communicator",
    "core/explanation",
    "core/function_view",
    "core/json_line",
    "core/not_understood",
    "core/platform",
    "core/text",
    "draw/detail",
    "engine",
    "group/bound_diagnostics",
    "group/exchange",
    "impl",
    "kernel",
    "pipeline/agreement",
    "pipeline/buffers",
    "pipeline/message_slot",
    "pipeline/program",
    "pipeline/step_operation",
    "pipeline/tags",
    "plan/detail",
    "plan/in_place",
    "plan/merged_lanes",
    "plan/signal_reuse",
    "schedule/detail",
    "schedule/fingerprint",
    "shard/misuse",
    "shard/plan_memory",
    "transport",
]
PUBLIC = [
    "bootstrap/environment.hpp",
    "bootstrap/launch.hpp",
    "bootstrap/store.hpp",
    "collective/device/memory.hpp",
    "collective/host/call_settings.hpp",
    "communicator/communicator.hpp",
    "communicator/traffic.hpp",
    "engine/flight_record.hpp",
    "engine/simulate.hpp",
    "engine/step_observer.hpp",
    "kernel/device/accumulate.cuh",
    "kernel/device/combine.cuh",
    "kernel/device/pack_blocks.cuh",
    "kernel/device/quantize.cuh",
    "kernel/device/top_k.cuh",
    "kernel/device/unscale.cuh",
    "transport/adaptor/faults.hpp",
    "transport/concept.hpp",
    "transport/contexts.hpp",
    "transport/link_costs.hpp",
    "transport/sim/conditions.hpp",
    "transport/sim/report.hpp",
]

HEADING = re.compile(r"(^\s*/// |(?<=[.!?)]) )\*\*([A-Z][A-Za-z ,`_]*?)([.:]?)\*\*[.:]? ?")
FUNCTION_OBJECT = re.compile(r"^(\s*)inline constexpr (?:hocket::)?detail::[\w:<>, ]+ (\w+)(?:\{.*\})?;")


def is_implementation(inside):
    if inside.endswith(".ipp"):
        return True
    return inside not in PUBLIC and any(re.match(re.escape(path) + r"\b", inside) for path in IMPLEMENTATION)


def group_of(inside):
    return next((group for prefix, group in GROUPS if inside.startswith(prefix)), None)


def without_detail(lines):
    """The lines, with those of namespaces `detail` empty. clang-format writes where a namespace ends."""
    end = None
    for line in lines:
        if end is None:
            opened = re.match(r"(?:inline )?namespace ((?:\w+::)*detail) \{", line)
            if opened:
                end = re.compile(r"\}.*// namespace " + re.escape(opened[1]) + r"$")
            yield "" if opened else line
        else:
            if end.match(line):
                end = None
            yield ""


def headed(line):
    if not line.lstrip().startswith("///"):
        return line

    def heading(found):
        before = found[1] if found[1].strip() else "^^"
        return before + "@headed{" + found[2].replace(",", "\\,").strip() + "}"

    return HEADING.sub(heading, line)


def filtered(path, text):
    inside = path.split("include/hocket/")[-1]
    group = group_of(inside)
    about_the_file = True
    for line in without_detail(text.split("\n")):
        about_the_file = about_the_file and line.startswith("//")
        if is_implementation(inside) and not about_the_file:
            yield ""
            continue
        line = headed(line)
        line = FUNCTION_OBJECT.sub(r"\1inline constexpr auto \2{};", line)
        if group and line.startswith("HOCKET_BEGIN_NAMESPACE"):
            line += f" /** @grouped{{{group}}} */"
        elif group and line.startswith("HOCKET_END_NAMESPACE"):
            line = "/** @} */ " + line
        yield line


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        sys.stdout.write("\n".join(filtered(sys.argv[1], file.read())))
