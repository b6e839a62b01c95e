#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Doxygen's view of one header, so that headers need no markup for it. Keeps the number of each line.

- Puts the names of a file into the group of its path (see GROUPS).
- Removes the contents of namespaces `detail`.
- Turns `**Cost.** text`, at the beginning of a sentence in a docstring, into a paragraph with a heading.
- Shows a collective as a function, and other function objects as `auto name`: their types are implementation details.
- Shows friend functions as members, and links to the pages of the site.
"""

import re
import sys

# The group of a file is that of the first path that it begins with.
GROUPS = [
    ("collective/send", "messages"),
    ("collective/recv", "messages"),
    ("collective/device", "device"),
    ("collective/host", "options"),
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
    "shard/plan_cache",
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

# Members whose meaning is a convention of C++ or of hocket, where they have no docstring: (path, declaration, text).
CONVENTIONS = [
    ("plan", r"\bname\(\)", "See plan::algorithm."),
    ("plan", r"\bcollective\(\)", "See plan::algorithm."),
    ("plan", r"\b(shape|length|at)\(int ranks", "See plan::algorithm."),
    ("plan", r"\b(shape|length|at)\(int", "See plan::algorithm."),
    ("shard/array_view", r"^\s+(using|static|constexpr) ", "As in std::mdspan, std::dextents and std::layout_right."),
    ("shard/rules", r"\brule_result result\(", "Placement of the result, or why there is none, for operands with these placements."),
    ("shard/placement", r"placement value\{", "This placement as a value."),
    ("operation/operations", r"\b(prepare|combine|finish|commutative)\b", "See operation/traits.hpp."),
    ("operation/operations", r"operator\(\)\(", "Combines two elements."),
    ("operation/traits", r"\b(partial|accumulator) =", "Types in which partial results travel and are combined."),
    ("operation/traits", r"\b(combine|prepare|finish|prepares)\b", "The steps of the operation, for the library's loops."),
    ("optimizer/rule", r"\bstates =", "Number of states for each parameter."),
    ("optimizer/rule", r"\bstate_names", "Names of the states, in their order."),
    ("optimizer/rule", r"\bat\(std::uint64_t", "Constants of a step, from its number and its learning rate."),
    ("optimizer/rule", r"\bupdate\(", "Updates one parameter and its states."),
    ("optimizer/rule", r"double (momentum|weight_decay|beta\d|epsilon|rate)\b", "Constant of the rule, as in its formula."),
    ("optimizer/rule", r"bool nesterov", "Whether momentum is Nesterov's."),
    ("scalar/traits", r"\bname =", "Name of the type in texts."),
    ("scalar/traits", r"^struct scalar_traits<", "Traits of a type of the library."),
    ("schedule/schedule_action", r"schedule_action (forward|backward|\w+)\(int stage, int microbatch\)", "An action of one task."),
    ("core/options", r"^inline constexpr \w+_t \w+\{\}", "What a program passes to `require`."),
    ("gradient/policy", r"^inline constexpr \w+_t(<\w+>)? \w+\{\}", "What a program passes to `gradients`."),
    ("", r"^\s+using kind = hocket::kind::", "Kind of the option: a call has at most one of each kind."),
    ("", r"^struct \w+<.*> \{", "A specialization."),
    ("shard/convert", r"^\s+using type =", "The conversion of the gradients."),
    ("selection", r"^struct \w+_t : detail::algorithm_property \{\};", "Type of the algorithm of this name."),
    ("", r"= default;$", "Member by member."),
    ("", r"\b(\w+)\(\1&&( other)?\)", "Moves; the source may only be destroyed or assigned to."),
    ("", r"\boperator=\((\w+)&&( other)?\)", "Moves; the source may only be destroyed or assigned to."),
    ("", r"\boperator\+=\(", "Adds each member."),
    ("", r"\b(size|empty|data|begin|end)\(\)( const)? noexcept", "As in a container of the standard library."),
    ("", r"\boperator\[\]\(", "As in a container of the standard library."),
    ("", r"std::span<(const )?T> (elements|span)\(\)", "The elements."),
    ("", r"\busing (value_type|element_type|size_type|index_type) =", "As in the standard library."),
    ("", r"\busing (\w+_type|sharding|axes) = (\w|typename)", "Template argument."),
    ("", r"\bint rank\(\) const", "Returns the number of the caller's rank, from 0."),
    ("", r"\bint (ranks|size)\(\) const", "Returns the number of ranks."),
    ("", r"^\s+(int|std::int32_t) rank = ", "Number of the rank, from 0."),
    ("", r"^\s+int ranks = ", "Number of ranks."),
    ("", r"\bto_string\(", "Returns the value as text."),
    ("", r"\bexplicit (constexpr )?operator bool\(\)|\bconstexpr explicit operator bool\(\)", "Whether the value holds what it is named after."),
    ("", r"^\s+(unsigned|int) lane = ", "Number of the lane, from 0."),
]

# An undocumented function of the same name, within so many lines after a documented one, is called its overload.
OVERLOADS_WITHIN = 40

HEADING = re.compile(r"(^\s*/// |(?<=[.!?)]) )\*\*([A-Z][A-Za-z ,`_]*?)([.:]?)\*\*[.:]? ?")
PAGE = re.compile(r"(?<![\w/`])docs/([\w/-]+)\.md")
FRIEND = re.compile(r"^(\s+(?:/\*\*.*?\*/ )?)friend (?!class |struct )")
CALL = re.compile(r"^(\s*)inline constexpr (?:hocket::)?detail::call\w*<[\w:<>, ]+> (\w+)\{\};")
FUNCTION_OBJECT = re.compile(r"^(\s*)inline constexpr (?:hocket::)?detail::[\w:<>, ]+ (\w+)(?:\{.*\})?;")


def missing_paths(include):
    """Entries of the lists above that no header has: remove or rename them."""
    headers = [path.relative_to(include).as_posix() for path in include.rglob("*.*") if path.is_file()]
    entries = {*IMPLEMENTATION, *PUBLIC, *(path for path, _ in GROUPS), *(path for path, _, _ in CONVENTIONS)}
    return sorted(path for path in entries if not any(header.startswith(path) for header in headers))


def undocumented_types(path, text):
    """Names of empty structures and of concepts without a docstring, which Doxygen does not warn of."""
    lines = list(filtered(path, text))
    for i, line in enumerate(lines):
        found = re.match(r"(?:struct|class) (\w+)(?: :.*)? \{\};|concept (\w+) =", line)
        if found:
            while re.match(r"(template <|  requires)", lines[i - 1]):
                i -= 1
            if not lines[i - 1].startswith("///") and "/**" not in lines[i] and "///<" not in line:
                yield found[1] or found[2]


def is_implementation(inside):
    if inside.endswith(".ipp"):
        return True
    return inside not in PUBLIC and any(re.match(re.escape(path) + r"\b", inside) for path in IMPLEMENTATION)


def group_of(inside):
    return next((group for prefix, group in GROUPS if inside.startswith(prefix)), None)


def without_detail(lines):
    """The lines, with those of namespaces `detail`, and of specializations in other namespaces than hocket, empty.

    clang-format writes where a namespace ends.
    """
    end, behind = None, False
    for line in lines:
        behind = (behind or line.startswith("HOCKET_END_NAMESPACE")) and not line.startswith("HOCKET_BEGIN_NAMESPACE")
        if behind and not line.startswith(("HOCKET_END_NAMESPACE", "#")):
            yield ""
            continue
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

    line = re.sub(r"^(\s*/// )Collective: (\w)", lambda found: found[1] + "@headed{Collective}" + found[2].upper(), line)
    return HEADING.sub(heading, line)


def joined(lines):
    """The lines; a declaration of a function object is on its first line."""
    whole = None
    for line in lines:
        if whole is None and re.match(r"inline constexpr detail::[^;]*$", line):
            whole, count = line, 0
        elif whole is None:
            yield line
        else:
            whole, count = whole + " " + line.strip(), count + 1
            if ";" in line:
                yield whole
                yield from [""] * count
                whole = None


def with_conventions(inside, lines):
    """The lines; a member without a docstring that a convention describes gets one, in front of its declaration."""
    rules = [(re.compile(rule), text) for prefix, rule, text in CONVENTIONS if inside.startswith(prefix)]
    lines = list(lines)
    overloaded, documented_at = None, 0
    for i, line in enumerate(lines):
        if "///" in line or "/**" in line or not line.strip():
            continue
        called = re.match(r"\s*(?!return|if|for|while|static_assert|requires|template)[\w\[\]][^=;(]*?\b(\w+)\(", line)
        if called and lines[i - 1].lstrip().startswith(("///", "template <", "requires")):
            first = i
            while re.match(r"\s*(template <|requires)", lines[first - 1]):
                first -= 1
            if re.match(r"\s*///(?!<)", lines[first - 1]):
                overloaded, documented_at = called[1], i
        text = next((text for rule, text in rules if rule.search(line)), None)
        if text is None and called and called[1] == overloaded and documented_at < i < documented_at + OVERLOADS_WITHIN:
            text = "An overload of the function before it."
            documented_at = i
        if text is None:
            continue
        first = i
        while re.match(r"\s*(template <|requires)", lines[first - 1]) and not lines[first - 1].endswith(";"):
            first -= 1
        if lines[first - 1].lstrip().startswith("///") and "///<" not in lines[first - 1]:
            continue
        if re.match(r"\s*(return|if|for|else|case|\}|static_assert)\b", lines[i]):
            continue
        lines[first] = re.sub(r"^(\s*)", rf"\1/** {text} */ ", lines[first], count=1)
    return lines


def filtered(path, text):
    inside = path.split("include/hocket/")[-1]
    group = group_of(inside)
    about_the_file = True
    for line in with_conventions(inside, joined(without_detail(text.split("\n")))):
        about_the_file = about_the_file and line.startswith("//")
        if is_implementation(inside) and not about_the_file:
            yield ""
            continue
        line = headed(line)
        if line.lstrip().startswith("///"):
            line = PAGE.sub(r'<a href="../docs/\1/index.html">docs/\1.md</a>', line)
        line = FRIEND.sub(r"\1", line)
        line = CALL.sub(r"\1auto \2(...);", line)
        line = FUNCTION_OBJECT.sub(r"\1inline constexpr auto \2{};", line)
        if group and line.startswith("HOCKET_BEGIN_NAMESPACE"):
            line += f" /** @grouped{{{group}}} */"
        elif group and line.startswith("HOCKET_END_NAMESPACE"):
            line = "/** @} */ " + line
        yield line


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        sys.stdout.write("\n".join(filtered(sys.argv[1], file.read())))
