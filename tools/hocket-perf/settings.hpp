// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The settings of a measurement, as given on the command line.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace perf {

enum class collective {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
  barrier,
  send_recv,
  reduce_scatter_v,
  all_gather_v,
  all_to_all_v,
  reduce,
  gather,
  scatter,
  gather_v,
  scatter_v
};
enum class operation { sum, prod, min, max, avg };
enum class datatype {
  int8,
  uint8,
  int32,
  uint32,
  int64,
  uint64,
  half,
  bfloat16,
  float32,
  float64,
  float8_e4m3,
  float8_e5m2
};

/// How many elements the block of each rank has, in calls with counts.
enum class distribution { even, linear, single };

/// Kind of memory of the buffers.
enum class memory { host, pinned, device, managed };

enum class placement { out_of_place, in_place };
/// The output: a table that existing scripts read, or a file for programs.
enum class output_format { nccl_tests, osu, csv, json };

const char* to_string(collective what);
const char* to_string(operation what);
const char* to_string(datatype what);
const char* to_string(distribution what);
const char* to_string(memory what);
const char* to_string(output_format what);
std::size_t size_of(datatype what);
/// Returns whether the collective takes a reduction operation.
bool reduces(collective what);

/// Returns whether the collective can be called with this placement.
bool has_placement(collective what, placement where);
/// Returns whether the collective takes the length of each rank's block.
constexpr bool takes_counts(collective what) {
  return what == collective::reduce_scatter_v || what == collective::all_gather_v || what == collective::all_to_all_v ||
         what == collective::gather_v || what == collective::scatter_v;
}
/// Returns whether the collective has a root.
constexpr bool has_root(collective what) {
  return what == collective::broadcast || what == collective::reduce || what == collective::gather ||
         what == collective::scatter || what == collective::gather_v || what == collective::scatter_v;
}

/// Returns whether this reduction is measured outside of host memory: few are, because each one is compiled separately.
constexpr bool reduces_elsewhere(operation op, datatype type) {
  return op == operation::sum && (type == datatype::float32 || type == datatype::half || type == datatype::bfloat16);
}

/// How the times of the ranks are combined into one.
enum class averaging { rank_0, mean, shortest, longest };
const char* to_string(averaging how);

struct settings {
  std::size_t least_bytes = 8;
  std::size_t most_bytes = 32 << 20;
  double step_factor = 2;
  std::size_t step_bytes = 0;  ///< if not 0, instead of the factor
  int iterations = 100;
  int warmups = 10;
  bool check = true;
  std::vector<collective> collectives;
  std::vector<operation> operations;
  std::vector<datatype> types;
  distribution blocks = distribution::linear;  ///< of calls with counts
  std::string algorithm = "auto";
  int root = 0;
  int threads = 0;    ///< 0: not given
  int processes = 0;  ///< 0: not given
  bool out_of_place = true;
  bool in_place = true;
  bool cold = false;
  bool pin = false;
  bool explain = false;
  bool shared_memory = false;
  memory buffers = memory::host;
  averaging average = averaging::mean;
  double timeout = 60;
  output_format format = output_format::nccl_tests;
  bool full = false;                ///< columns of OSU Micro-Benchmarks that are optional there
  std::vector<double> percentiles;  ///< in percent
  std::string json;
  std::string constants;              ///< file for the costs of links, instead of a measurement of collectives
  std::vector<std::string> compared;  ///< the older and the newer file, instead of a measurement
  double tolerance = 0.05;            ///< of the comparison, as a share of the older time
  std::size_t corrupt = 0;            ///< number of elements of rank 0's result to corrupt, which tests the check
};

/// Reads the command line. Returns true if the program should continue; otherwise sets `status` to the exit status: 0
/// after --help, 2 for an invalid command line, which is then explained on stderr.
bool read_command_line(int count, char** arguments, settings& read, int& status);

/// Returns whether a table is printed, and not a file for programs.
inline bool prints_table(const settings& wanted) {
  return wanted.format == output_format::nccl_tests || wanted.format == output_format::osu;
}

/// Returns the sizes to measure in bytes, in ascending order.
std::vector<std::size_t> sizes_of(const settings& wanted);

}  // namespace perf
