// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The command line. Flags that nccl-tests has too have the same names.
#include "settings.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>

namespace perf {

namespace {

template <class Value>
using named = std::vector<std::pair<std::string, Value>>;

const named<collective> collectives{{"all_reduce", collective::all_reduce},
                                    {"reduce_scatter", collective::reduce_scatter},
                                    {"all_gather", collective::all_gather},
                                    {"all_to_all", collective::all_to_all},
                                    {"broadcast", collective::broadcast},
                                    {"barrier", collective::barrier},
                                    {"send_recv", collective::send_recv},
                                    {"reduce_scatter_v", collective::reduce_scatter_v},
                                    {"all_gather_v", collective::all_gather_v},
                                    {"all_to_all_v", collective::all_to_all_v},
                                    {"reduce", collective::reduce},
                                    {"gather", collective::gather},
                                    {"scatter", collective::scatter},
                                    {"gather_v", collective::gather_v},
                                    {"scatter_v", collective::scatter_v}};
const named<operation> operations{{"sum", operation::sum},
                                  {"prod", operation::prod},
                                  {"min", operation::min},
                                  {"max", operation::max},
                                  {"avg", operation::avg}};
const named<datatype> datatypes{{"int8", datatype::int8},
                                {"uint8", datatype::uint8},
                                {"int32", datatype::int32},
                                {"uint32", datatype::uint32},
                                {"int64", datatype::int64},
                                {"uint64", datatype::uint64},
                                {"half", datatype::half},
                                {"bfloat16", datatype::bfloat16},
                                {"float", datatype::float32},
                                {"double", datatype::float64},
                                {"float8_e4m3", datatype::float8_e4m3},
                                {"float8_e5m2", datatype::float8_e5m2}};

const named<distribution> distributions{
    {"even", distribution::even}, {"linear", distribution::linear}, {"single", distribution::single}};

const named<memory> memories{
    {"host", memory::host}, {"pinned", memory::pinned}, {"device", memory::device}, {"managed", memory::managed}};

const named<output_format> formats{{"nccl-tests", output_format::nccl_tests},
                                   {"osu", output_format::osu},
                                   {"csv", output_format::csv},
                                   {"json", output_format::json}};

template <class Value>
const char* name_of(const named<Value>& all, Value what) {
  for (const auto& [name, value] : all) {
    if (value == what) return name.c_str();
  }
  return "unknown";
}

template <class Value>
std::string names_of(const named<Value>& all) {
  std::string text;
  for (const auto& [name, value] : all) text += name + ", ";
  return text + "all";
}

/// Converts nccl-tests' names of 8-bit floats to hocket's.
std::string own_name_of(const std::string& text) {
  return text == "f8e4m3" || text == "f8e5m2" ? "float8_" + text.substr(2) : text;
}

/// Adds an option that takes one of the names, or "all".
template <class Value>
void add_names(CLI::App& app, const std::string& flags, const std::string& what, const named<Value>& all,
               std::vector<Value>& chosen, Value preset) {
  chosen = {preset};
  app.add_option_function<std::string>(
         flags,
         [&all, &chosen, flags](const std::string& text) {
           chosen.clear();
           for (const auto& [name, value] : all) {
             if (text == "all" || own_name_of(text) == name) chosen.push_back(value);
           }
           if (chosen.empty()) throw CLI::ValidationError(flags, "'" + text + "' must be one of " + names_of(all));
         },
         what + ": " + names_of(all))
      ->default_str(name_of(all, preset))
      ->type_name("NAME");
}

/// Adds an option that takes one of the names. The error lists them.
template <class Value>
void add_name(CLI::App& app, const std::string& flag, const std::string& what, const named<Value>& all, Value& chosen) {
  std::string known;
  for (const auto& [name, value] : all) known += (known.empty() ? "" : ", ") + name;
  app.add_option_function<std::string>(
         flag,
         [&all, &chosen, flag, known](const std::string& text) {
           const auto found =
               std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.first == text; });
           if (found == all.end()) throw CLI::ValidationError(flag, "'" + text + "' must be one of " + known);
           chosen = found->second;
         },
         what)
      ->default_str(name_of(all, chosen))
      ->type_name("NAME");
}

/// Parses sizes such as "8", "64K", "1.5M" or "2GB"; units are powers of 1024, as in nccl-tests.
std::size_t read_bytes(const std::string& flag, const std::string& text) {
  std::size_t used = 0;
  double number = -1;
  try {
    number = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  std::string unit = used == 0 ? "?" : text.substr(used);
  if (unit.size() > 1 && (unit.back() == 'B' || unit.back() == 'b')) unit.pop_back();
  const std::map<std::string, int> shifts{{"", 0},   {"B", 0},  {"K", 10}, {"k", 10},
                                          {"M", 20}, {"m", 20}, {"G", 30}, {"g", 30}};
  const auto shift = shifts.find(unit);
  const double bytes = shift == shifts.end() ? -1 : std::ldexp(number, shift->second);
  if (!(bytes >= 0 && bytes <= 1e15)) {
    throw CLI::ValidationError(
        flag, "'" + text + "' is not a size: pass a number of bytes, optionally followed by K, M or G, such as 64K");
  }
  return static_cast<std::size_t>(bytes);
}

CLI::Option* add_bytes(CLI::App& app, const std::string& flags, std::size_t& bytes, const std::string& what,
                       const std::string& preset) {
  const auto read = [flags, &bytes](const std::string& text) { bytes = read_bytes(flags, text); };
  auto* const option = app.add_option_function<std::string>(flags, read, what)->type_name("SIZE");
  return preset.empty() ? option : option->default_str(preset);
}

void add_what(CLI::App& app, settings& to) {
  add_names(app, "--collective", "what to measure", collectives, to.collectives, collective::all_reduce);
  add_names(app, "-o,--op", "reduction operation", operations, to.operations, operation::sum);
  add_names(app, "-d,--datatype", "element type (f8e4m3 and f8e5m2 are accepted, too)", datatypes, to.types,
            datatype::float32);
  add_name(
      app, "--distribution",
      "how calls with counts (_v) distribute a size over the blocks of n ranks: even; linear: rank r's block has r + 1 "
      "of n (n + 1) / 2 parts; single: the last rank's block has all elements",
      distributions, to.blocks);
  app.add_option("--algorithm", to.algorithm, "auto, or the name of an algorithm of the collective: see --explain")
      ->type_name("NAME");
  app.add_option("-r,--root", to.root, "root of broadcast, reduce, gather and scatter")->check(CLI::NonNegativeNumber);
}

void add_sizes(CLI::App& app, settings& to) {
  add_bytes(app, "-b,--minbytes", to.least_bytes, "smallest size", "8");
  add_bytes(app, "-e,--maxbytes", to.most_bytes, "largest size", "32M");
  auto* const factor = app.add_option("-f,--stepfactor", to.step_factor, "factor between consecutive sizes")
                           ->check(CLI::Range(1.001, 1e6));
  const auto is_step = [](const std::string& text) {
    return read_bytes("-i,--stepbytes", text) > 0 ? std::string()
                                                  : "'" + text + "' is not a step: pass at least 1 byte";
  };
  add_bytes(app, "-i,--stepbytes", to.step_bytes, "difference between consecutive sizes", "")
      ->check(is_step)
      ->excludes(factor);
}

void add_method(CLI::App& app, settings& to) {
  app.add_option("-n,--iters", to.iterations, "measured iterations per size")->check(CLI::Range(1, 100'000'000));
  app.add_option("-w,--warmup_iters", to.warmups, "warm-up iterations before the measured ones")
      ->check(CLI::Range(0, 100'000'000));
  app.add_option("-c,--check", to.check, "1: check every element of the results, 0: do not check");
  app.add_option_function<int>(
         "-a,--average", [&to](int number) { to.average = static_cast<averaging>(number); },
         "time of an iteration: 0: that of rank 0, 1: the mean, 2: the shortest, 3: the longest of all ranks")
      ->check(CLI::Range(0, 3))
      ->default_str("1")
      ->type_name("INT");
  auto* const inside = app.add_flag_callback(
      "--in-place", [&to] { to.out_of_place = false; }, "measure in-place calls only");
  app.add_flag_callback(
         "--out-of-place", [&to] { to.in_place = false; }, "measure out-of-place calls only")
      ->excludes(inside);
  app.add_flag("--cold", to.cold, "evict the buffers from the caches before each iteration");
  app.add_flag("--shared-memory", to.shared_memory,
               "allocate buffers with hocket::allocate, so that other ranks can read them");
  add_name(app, "--memory", "memory of the buffers: host, pinned, device, managed; all except host need a GPU",
           memories, to.buffers);
  app.add_option("-T,--timeout", to.timeout, "seconds that a call may wait for other ranks")
      ->check(CLI::PositiveNumber);
  app.add_option("--corrupt", to.corrupt)->group("");
}

void add_ranks(CLI::App& app, settings& to) {
  auto* const threads = app.add_option("-t,--threads", to.threads,
                                       "number of ranks as threads; default: the number of "
                                       "cores, at least 2")
                            ->check(CLI::Range(1, 4096))
                            ->default_str("");
  app.add_option("-p,--processes", to.processes, "number of ranks as processes on this host, over UCX")
      ->check(CLI::Range(1, 4096))
      ->default_str("")
      ->excludes(threads);
  app.add_flag("--pin", to.pin, "pin rank r of a host to its r-th core");
}

/// Parses a percentage such as "5%" into a share.
double read_percentage(const std::string& flag, const std::string& text) {
  std::size_t used = 0;
  double number = -1;
  try {
    number = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || text.substr(used) != "%" || !(number >= 0 && number <= 1e6)) {
    throw CLI::ValidationError(flag,
                               "'" + text + "' is not a percentage: pass a number of at least 0 and %, such as 5%");
  }
  return number / 100;
}

void add_output(CLI::App& app, settings& to) {
  add_name(app, "--format",
           "form of the output: nccl-tests, osu: tables of these programs, for scripts that read them; csv, json: for "
           "programs, with units in the names, and with machine, ranks, transport, version and date",
           formats, to.format);
  app.add_flag("--full", to.full,
               "--format osu: also print the means of the fastest and the slowest rank, and iterations");
  app.add_option(
         "--percentiles", to.percentiles,
         "also print these percentiles of the iterations, such as 50,99,99.9, right of all other columns of a table")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 100.0))
      ->default_str("")
      ->type_name("LIST");
  app.add_flag("--explain", to.explain, "print for each size which algorithm hocket selects, and why");
  app.add_option(
         "-J,--json", to.json,
         "also write to this file what --format json prints: settings and results, with the time of each iteration")
      ->type_name("FILE");
}

void add_other_tasks(CLI::App& app, settings& to) {
  app.add_option("--constants", to.constants,
                 "measure no collective; measure the costs of links, by which processes of one host choose algorithms, "
                 "and write them to this file, which HOCKET_CONSTANTS=FILE uses; as many processes as cores, unless -p "
                 "or a launcher states another number")
      ->check([](const std::string& file) { return std::string(file.empty() ? "must be the name of a file" : ""); })
      ->type_name("FILE");
  auto* const files =
      app.add_option("--compare", to.compared,
                     "measure nothing; compare the medians of two files that --format json, --format csv "
                     "or --json wrote: first the older, then the newer")
          ->expected(2)
          ->default_str("")
          ->type_name("OLD NEW");
  app.add_option_function<std::string>(
         "--tolerance", [&to](const std::string& text) { to.tolerance = read_percentage("--tolerance", text); },
         "difference of medians up to which --compare marks neither slower nor faster")
      ->default_str("5%")
      ->type_name("PERCENT")
      ->needs(files);
}

/// Rejects options other than `used`, which option `task` would ignore.
void check_task(const CLI::App& app, const std::string& task, const std::vector<std::string>& used) {
  if (app.count(task) == 0) return;
  for (const CLI::Option* each : app.get_options()) {
    const std::string name = each->get_name();
    if (each->count() == 0 || name == task || std::find(used.begin(), used.end(), name) != used.end()) continue;
    throw CLI::ValidationError(task, "measures no collective, so " + name + " would have no effect: omit it");
  }
}

constexpr const char* examples =
    "Sizes are counted as in nccl-tests: for all_gather, reduce_scatter and all_to_all, with or without _v, the\n"
    "blocks of all ranks together, otherwise one rank's buffer. K, M and G are powers of 1024; 1 GB/s is 1e9 bytes\n"
    "per second. --format osu shows sizes as OSU Micro-Benchmarks do: one block for all_gather and all_to_all. Its\n"
    "times are means, and it measures each call in one placement.\n\n"
    "Flags shared with nccl-tests have the same meaning, except -p (here processes), -t (here all ranks) and -c (here "
    "0 or\n"
    "1). Other defaults: sizes from 8 bytes, doubling (nccl-tests: only 32M, steps of 1M); 100 iterations after 10 "
    "for\n"
    "warm-up (nccl-tests: 20 after 5); as many ranks as cores, at least 2 (nccl-tests: 1). Times are medians over\n"
    "iterations.\n\n"
    "If a launcher sets HOCKET_RANK and HOCKET_RANKS, or RANK and WORLD_SIZE as torchrun does, the program runs as "
    "one\n"
    "of the launcher's ranks, on one host or several.\n\n"
    "Sizes are in bytes, times in microseconds, bandwidths in GB/s. If other programs use the processors during the\n"
    "measurement, a comment line of the table, or a warning on stderr, reports how many cores they used.\n\n"
    "Exit status: 0: all results are right, 1: wrong results or a failed call, 2: invalid command line.\n"
    "With --compare: 0: no median is slower by more than the tolerance, 1: one is, 2: a file can't be compared.\n\n"
    "Examples:\n"
    "  hocket-perf -t 2 -b 8 -e 64M -f 2                     all_reduce of floats between two threads\n"
    "  hocket-perf -p 4 --collective all_gather -d bfloat16  between four processes over UCX\n"
    "  hocket-perf -t 4 -d all -o all -b 1M -e 1M -n 20      every element type and operation, one size\n"
    "  hocket-perf -p 4 --collective all_to_all_v            blocks of different lengths; --distribution states which\n"
    "  hocket-perf -t 2 --algorithm ring --cold --pin        one algorithm, cold caches, fixed cores\n"
    "  hocket-perf -p 4 --explain -b 1K -e 1M -f 4           explains the selection of algorithms\n"
    "  hocket-perf -t 2 --percentiles 50,99,99.9             with percentiles, right of the columns of nccl-tests\n"
    "  hocket-perf -p 2 --format osu --full                  the table of osu_allreduce -f\n"
    "  hocket-perf -p 2 --format csv > new.csv               one line for each size and placement\n"
    "  hocket-perf --compare old.json new.csv --tolerance 3% marks medians that differ by more than 3 %\n"
    "  UCX_TLS=tcp,self hocket-perf -p 2                     the same over TCP\n"
    "  hocket-perf --constants costs.txt                     costs for the choice of algorithms, the same at each "
    "start\n"
    "  hocket-perf -t 2 --memory device -d bfloat16 -b 1M    between GPU buffers, including the wait for their stream\n"
    "  torchrun --no-python --nproc-per-node 2 hocket-perf   started by a launcher\n";

/// Rejects combinations that are not measured outside of host memory.
void check_memory(settings& read) {
  if (read.buffers == memory::host) return;
  const auto refuse = [&](const std::string& why) {
    throw CLI::ValidationError(std::string("--memory ") + to_string(read.buffers), why);
  };
  if (read.shared_memory) refuse("--shared-memory needs host memory: omit one of the two options");
  if (read.cold) refuse("--cold empties the caches of the host, not those of a device: omit it");
  // "all" means all collectives that can be measured in this memory.
  const bool all = read.collectives.size() == collectives.size();
  if (all) std::erase_if(read.collectives, takes_counts);
  for (const collective what : read.collectives) {
    if (takes_counts(what))
      refuse(std::string(to_string(what)) + " is measured only in host memory: omit one of the two");
  }
  if (read.explain)
    refuse(
        "--explain describes the selection for vectors in host memory, but vectors here are cut into chunks: omit it");
  for (const collective what : read.collectives) {
    if (!reduces(what)) continue;
    for (const operation op : read.operations) {
      for (const datatype type : read.types) {
        if (reduces_elsewhere(op, type)) continue;
        refuse(std::string(to_string(what)) + " is measured only for sum of float, half and bfloat16 here, not for " +
               to_string(op) + " of " + to_string(type));
      }
    }
  }
}

void check_output(const settings& read) {
  if (read.full && read.format != output_format::osu) {
    throw CLI::ValidationError("--full", "has no effect without --format osu: omit one of the two, or pass both");
  }
}

void check(settings& read) {
  check_memory(read);
  check_output(read);
  if (read.least_bytes > read.most_bytes) {
    throw CLI::ValidationError("-b,--minbytes", std::to_string(read.least_bytes) + " bytes must not exceed the " +
                                                    std::to_string(read.most_bytes) + " of -e,--maxbytes");
  }
}

}  // namespace

const char* to_string(collective what) { return name_of(collectives, what); }
const char* to_string(operation what) { return name_of(operations, what); }
const char* to_string(datatype what) { return name_of(datatypes, what); }
const char* to_string(distribution what) { return name_of(distributions, what); }
const char* to_string(memory what) { return name_of(memories, what); }
const char* to_string(output_format what) { return name_of(formats, what); }

std::size_t size_of(datatype what) {
  switch (what) {
    case datatype::int8:
    case datatype::uint8:
    case datatype::float8_e4m3:
    case datatype::float8_e5m2: return 1;
    case datatype::half:
    case datatype::bfloat16: return 2;
    case datatype::int32:
    case datatype::uint32:
    case datatype::float32: return 4;
    case datatype::int64:
    case datatype::uint64:
    case datatype::float64: return 8;
  }
  return 1;
}

bool reduces(collective what) {
  return what == collective::all_reduce || what == collective::reduce_scatter || what == collective::reduce_scatter_v ||
         what == collective::reduce;
}

bool has_placement(collective what, placement where) {
  switch (what) {
    case collective::all_reduce:
    case collective::reduce_scatter:
    case collective::reduce_scatter_v:
    case collective::all_gather:
    case collective::all_gather_v:
    case collective::reduce:
    case collective::gather:
    case collective::gather_v:
    case collective::scatter:
    case collective::scatter_v: return true;
    case collective::broadcast: return where == placement::in_place;
    case collective::all_to_all:
    case collective::all_to_all_v:
    case collective::barrier:
    case collective::send_recv: return where == placement::out_of_place;
  }
  return false;
}

const char* to_string(averaging how) {
  switch (how) {
    case averaging::rank_0: return "that of rank 0";
    case averaging::mean: return "the mean over ranks";
    case averaging::shortest: return "the shortest of all ranks";
    case averaging::longest: return "the longest of all ranks";
  }
  return "unknown";
}

bool read_command_line(int count, char** arguments, settings& read, int& status) {
  CLI::App app("Measures how fast hocket's collectives are on this machine, and checks their results.", "hocket-perf");
  app.option_defaults()->always_capture_default();
  app.footer(examples);
  add_what(app, read);
  add_sizes(app, read);
  add_method(app, read);
  add_ranks(app, read);
  add_output(app, read);
  add_other_tasks(app, read);
  try {
    app.parse(count, arguments);
    check_task(app, "--compare", {"--tolerance"});
    check_task(app, "--constants", {"--processes", "--timeout"});
    check(read);
    return true;
  } catch (const CLI::ParseError& problem) {
    status = app.exit(problem) == 0 ? 0 : 2;
    return false;
  }
}

std::vector<std::size_t> sizes_of(const settings& wanted) {
  std::vector<std::size_t> sizes;
  std::size_t bytes = wanted.least_bytes;
  while (bytes <= wanted.most_bytes) {
    sizes.push_back(bytes);
    const auto multiplied = static_cast<std::size_t>(static_cast<double>(bytes) * wanted.step_factor);
    bytes = wanted.step_bytes != 0 ? bytes + wanted.step_bytes : std::max(multiplied, bytes + 1);
  }
  return sizes;
}

}  // namespace perf
