// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks that the element kernels are vectorised at the consumer's -O2, by comparing them with the same loops in a file
// compiled with -O3. Both run interleaved in one process; the result is the ratio of medians printed at the end.
//
//   element_kernel [--check] [Google Benchmark's flags]
//
// With --check the exit status is nonzero if a ratio exceeds 1.15. A second table shows how many bytes sums of two
// vectors read and write per second, at each level of instructions that the machine has.

#include "element_kernel_o3.hpp"

#include <hocket/kernel/host/element_kernel.hpp>
#include <hocket/kernel/host/instruction_level.hpp>
#include <hocket/operation/operations.hpp>
#include <hocket/scalar/scalar.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr std::size_t counts[] = {1 << 10, 16 << 10};  // both fit the second-level cache

template <class T>
struct operands {
  explicit operands(std::size_t count) : sources(4, std::vector<T>(count)), to(count) {
    for (std::size_t k = 0; k < 4; ++k) {
      for (std::size_t i = 0; i < count; ++i) sources[k][i] = static_cast<T>(k + i % 7);
    }
  }
  std::vector<std::vector<T>> sources;
  std::vector<T> to;
};

/// The same memory for both variants: with other addresses, loads and stores interfere, which costs doubles 15 %.
template <class T>
operands<T>& operands_of(std::size_t count) {
  static std::map<std::size_t, operands<T>> all;
  return all.try_emplace(count, count).first->second;
}

/// Runs `loop(operands, count)` and checks its result against `op` on the same sources.
template <class T, class Op, class Loop>
void time_loop(benchmark::State& state, const Op& op, Loop loop, std::size_t sources) {
  const auto count = static_cast<std::size_t>(state.range(0));
  operands<T>& data = operands_of<T>(count);
  std::fill(data.to.begin(), data.to.end(), T{});
  for (auto unused : state) {
    static_cast<void>(unused);
    loop(data, count);
    benchmark::ClobberMemory();
  }
  for (std::size_t i = 0; i < count; ++i) {
    T expected = data.sources[0][i];
    for (std::size_t k = 1; k < sources; ++k) expected = static_cast<T>(op(expected, data.sources[k][i]));
    if (data.to[i] != expected) state.SkipWithError("wrong result");
  }
}

template <class T, class Op>
void kernel_two(benchmark::State& state) {
  const Op op;
  const auto loop = [&](operands<T>& data, std::size_t count) {
    hocket::kernel::element_kernel_of<Op, T>.combine_two(&op, data.to.data(), data.sources[0].data(),
                                                         data.sources[1].data(), count);
  };
  time_loop<T>(state, op, loop, 2);
}

template <class T, class Op>
void plain_two(benchmark::State& state) {
  const Op op;
  const auto loop = [&](operands<T>& data, std::size_t count) {
    plain::combine_two(op, data.to.data(), data.sources[0].data(), data.sources[1].data(), count);
  };
  time_loop<T>(state, op, loop, 2);
}

template <class T, class Op>
void kernel_four(benchmark::State& state) {
  const Op op;
  const auto loop = [&](operands<T>& data, std::size_t count) {
    const void* const from[] = {data.sources[0].data(), data.sources[1].data(), data.sources[2].data(),
                                data.sources[3].data()};
    hocket::kernel::element_kernel_of<Op, T>.combine_many(&op, data.to.data(), from, 4, count);
  };
  time_loop<T>(state, op, loop, 4);
}

template <class T>
void plain_four(benchmark::State& state) {
  const auto loop = [](operands<T>& data, std::size_t count) {
    plain::add_four(data.to.data(), data.sources[0].data(), data.sources[1].data(), data.sources[2].data(),
                    data.sources[3].data(), count);
  };
  time_loop<T>(state, std::plus<>(), loop, 4);
}

void plain_minimum_of_four(benchmark::State& state) {
  const auto loop = [](operands<float>& data, std::size_t count) {
    plain::minimum_of_four(data.to.data(), data.sources[0].data(), data.sources[1].data(), data.sources[2].data(),
                           data.sources[3].data(), count);
  };
  time_loop<float>(state, hocket::minimum(), loop, 4);
}

using hocket::kernel::instruction_level;

constexpr instruction_level levels[] = {instruction_level::generic, instruction_level::avx2, instruction_level::avx512};
/// Elements of two and of four bytes in 16 KiB, 1 MiB and 16 MiB.
constexpr std::size_t counts_of_levels[] = {4 << 10, 8 << 10, 256 << 10, 512 << 10, 4 << 20, 8 << 20};

/// The sum of two vectors at one level.
template <class T>
void sum_at(benchmark::State& state, instruction_level level) {
  const instruction_level before = hocket::kernel::current_instruction_level();
  hocket::kernel::set_instruction_level(level);
  kernel_two<T, std::plus<>>(state);
  hocket::kernel::set_instruction_level(before);
}

struct summed_type {
  const char* name;
  std::size_t size;
  void (*sum)(benchmark::State&, instruction_level);
};

constexpr summed_type summed_types[] = {
    {"float", 4, sum_at<float>}, {"bfloat16", 2, sum_at<hocket::bfloat16>}, {"half", 2, sum_at<hocket::half>}};

std::string name_of(const summed_type& type, instruction_level level) {
  return std::string("sum_") + type.name + "_" + hocket::kernel::instruction_level_name(level);
}

void register_sums() {
  for (const summed_type& type : summed_types) {
    for (const instruction_level level : levels) {
      if (level > hocket::kernel::supported_instruction_level()) continue;
      for (const std::size_t count : counts_of_levels) {
        benchmark::RegisterBenchmark(name_of(type, level).c_str(), type.sum, level)
            ->Arg(static_cast<std::int64_t>(count));
      }
    }
  }
}

struct pair_of_loops {
  const char* name;
  void (*element_kernel)(benchmark::State&);
  void (*plain)(benchmark::State&);
};

using sum = std::plus<>;

constexpr pair_of_loops pairs[] = {{"float", kernel_two<float, sum>, plain_two<float, sum>},
                                   {"double", kernel_two<double, sum>, plain_two<double, sum>},
                                   {"int32", kernel_two<std::int32_t, sum>, plain_two<std::int32_t, sum>},
                                   {"minimum", kernel_two<float, hocket::minimum>, plain_two<float, hocket::minimum>},
                                   {"four_floats", kernel_four<float, sum>, plain_four<float>},
                                   {"minimum_of_four", kernel_four<float, hocket::minimum>, plain_minimum_of_four},
                                   {"four_bytes", kernel_four<std::uint8_t, sum>, plain_four<std::uint8_t>}};

/// Collects medians for the comparison at the end.
class medians final : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.error_occurred) wrong_ = true;
      if (run.aggregate_name == "median") times_[run.benchmark_name()] = run.GetAdjustedCPUTime();
    }
    ConsoleReporter::ReportRuns(runs);
  }

  double of(const std::string& name, std::size_t count) const {
    const auto found = times_.find(name + "/" + std::to_string(count) + "_median");
    return found == times_.end() ? 0 : found->second;
  }
  bool wrong() const { return wrong_; }

 private:
  std::map<std::string, double> times_;
  bool wrong_ = false;
};

bool compare(const medians& found) {
  bool within = !found.wrong();
  std::printf("\n%16s %10s %12s %12s %8s\n", "loop", "elements", "-O3 (ns)", "kernel (ns)", "ratio");
  for (const pair_of_loops& each : pairs) {
    for (const std::size_t count : counts) {
      const double plain = found.of(std::string("plain_") + each.name, count);
      const double element_kernel = found.of(std::string("leaf_") + each.name, count);
      if (plain == 0 || element_kernel == 0) continue;
      const bool kept = element_kernel <= 1.15 * plain;
      within = within && kept;
      std::printf("%16s %10zu %12.1f %12.1f %8.3f%s\n", each.name, count, plain, element_kernel, element_kernel / plain,
                  kept ? "" : "  EXCEEDED");
    }
  }
  return within;
}

/// Gigabytes per second, and the time relative to that of as many floats at the same level.
void print_sums(const medians& found) {
  std::printf("\n%16s %10s %10s %10s %12s\n", "sum", "elements", "level", "GB/s", "time/float");
  for (const summed_type& type : summed_types) {
    for (const std::size_t count : counts_of_levels) {
      for (const instruction_level level : levels) {
        const double time = found.of(name_of(type, level), count);
        const double time_of_floats = found.of(name_of(summed_types[0], level), count);
        if (time == 0 || time_of_floats == 0) continue;
        std::printf("%16s %10zu %10s %10.1f %12.2f\n", type.name, count, hocket::kernel::instruction_level_name(level),
                    3 * static_cast<double>(count * type.size) / time, time / time_of_floats);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  bool check = false;
  std::vector<char*> arguments;
  for (int i = 0; i < argc; ++i) {
    if (std::strcmp(argv[i], "--check") == 0) {
      check = true;
    } else {
      arguments.push_back(argv[i]);
    }
  }
  std::string defaults[] = {"--benchmark_repetitions=15", "--benchmark_enable_random_interleaving=true",
                            "--benchmark_report_aggregates_only=true", "--benchmark_min_time=0.02"};
  for (std::string& each : defaults) arguments.insert(arguments.begin() + 1, each.data());
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  for (const pair_of_loops& each : pairs) {
    for (const std::size_t size : counts) {
      const auto argument = static_cast<std::int64_t>(size);
      benchmark::RegisterBenchmark((std::string("plain_") + each.name).c_str(), each.plain)->Arg(argument);
      benchmark::RegisterBenchmark((std::string("leaf_") + each.name).c_str(), each.element_kernel)->Arg(argument);
    }
  }
  register_sums();
  medians reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  const bool within = compare(reporter);
  print_sums(reporter);
  return check && !within ? 1 : 0;
}
