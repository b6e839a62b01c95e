// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measures the device parts on the first GPU against a plain device copy and against CUB and Thrust, and compares their
// results. bench/gpu.sh builds and runs it; it prints one table.
//
//   gpu            run all benchmarks
//   gpu --process  run as one of several processes, which `gpu` starts
#include "engine/stream/gpu_ranks.cuh"
#include "support/elements.hpp"

#include <hocket/bootstrap/environment.hpp>
#include <hocket/bootstrap/launch.hpp>
#include <hocket/kernel/device/accumulate.cuh>
#include <hocket/kernel/device/combine.cuh>
#include <hocket/kernel/device/element_kernel.cuh>
#include <hocket/kernel/device/pack_blocks.cuh>
#include <hocket/kernel/device/quantize.cuh>
#include <hocket/kernel/device/top_k.cuh>
#include <hocket/kernel/device/unscale.cuh>
#include <hocket/plan/collective/one_shot.hpp>
#include <hocket/plan/collective/two_shot.hpp>
#include <hocket/plan/plan.hpp>

#include <cuda_fp16.h>
#include <thrust/execution_policy.h>
#include <thrust/transform.h>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_transform.cuh>
#include <cuda/std/tuple>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

using namespace hocket_test;
namespace device = hocket::kernel::device;
namespace plan = hocket::plan;

namespace {

constexpr std::size_t mebi = 1024 * 1024;
double copy_rate = 0;  ///< bytes per second, read and written

class timer {
 public:
  timer() {
    check_cuda(cudaEventCreate(&begin_));
    check_cuda(cudaEventCreate(&end_));
  }
  timer(const timer&) = delete;
  timer& operator=(const timer&) = delete;
  ~timer() {
    static_cast<void>(cudaEventDestroy(begin_));
    static_cast<void>(cudaEventDestroy(end_));
  }

  /// Returns the seconds per call of each of `works`, which enqueue on `stream`: medians of several rounds. Every round
  /// runs each of them, so that changes over time, such as of clock rates, affect all of them.
  template <class... Works>
  std::array<double, sizeof...(Works)> medians(cudaStream_t stream, const Works&... works) {
    constexpr int rounds = 15, calls = 10;
    std::array<std::vector<double>, sizeof...(Works)> seconds;
    for (int round = -2; round < rounds; ++round) {
      std::size_t which = 0;
      const auto take_turn = [&](const auto& work) {
        check_cuda(cudaEventRecord(begin_, stream));
        for (int i = 0; i < calls; ++i) work();
        check_cuda(cudaEventRecord(end_, stream));
        check_cuda(cudaStreamSynchronize(stream));
        if (round >= 0) seconds[which].push_back(elapsed() / calls);
        ++which;
      };
      (take_turn(works), ...);
    }
    std::array<double, sizeof...(Works)> results{};
    std::transform(seconds.begin(), seconds.end(), results.begin(), [](auto& each) { return median(each); });
    return results;
  }

  static double median(std::vector<double>& seconds) {
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
  }

  cudaEvent_t begin() const { return begin_; }
  cudaEvent_t end() const { return end_; }
  /// Returns the seconds between the events, which must have completed.
  double elapsed() const {
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, begin_, end_));
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

void print_head() {
  std::printf("%-44s %10s %10s %9s %7s %10s\n", "what", "bytes", "us", "GB/s", "of copy", "other us");
}

void print_row(const std::string& what, std::size_t bytes, double seconds, std::size_t moved, double other = 0) {
  const double rate = static_cast<double>(moved) / seconds;
  std::printf("%-44s %10zu %10.2f %9.1f %6.1f%%", what.c_str(), bytes, 1e6 * seconds, 1e-9 * rate,
              copy_rate > 0 ? 100 * rate / copy_rate : 100.0);
  if (other > 0) std::printf(" %10.2f", 1e6 * other);
  std::printf("\n");
  std::fflush(stdout);
}

std::vector<float> noise(int seed, std::size_t count) {
  std::vector<float> all(count);
  std::uint32_t state = 2463534242U + static_cast<std::uint32_t>(seed) * 7919U;
  for (float& each : all) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    each = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31F;
  }
  return all;
}

void require(bool holds, const char* what) {
  if (holds) return;
  std::printf("WRONG: %s\n", what);
  std::exit(1);
}

// ---- one stream -------------------------------------------------------------------------------------------------

struct sum_of_all {
  __device__ float operator()(float a, float b) const { return a + b; }
  __device__ float operator()(float a, float b, float c, float d) const { return ((a + b) + c) + d; }
  __device__ float operator()(float a, float b, float c, float d, float e, float f, float g, float h) const {
    return ((((((a + b) + c) + d) + e) + f) + g) + h;
  }
};

template <std::size_t... K>
cudaError_t by_cub(const float* const* from, float* to, std::size_t count, cudaStream_t stream,
                   std::index_sequence<K...>) {
  return cub::DeviceTransform::Transform(cuda::std::make_tuple(from[K]...), to, count, sum_of_all{}, stream);
}

template <std::size_t Sources>
void time_combine(cudaStream_t stream, std::size_t bytes) {
  const std::size_t count = bytes / sizeof(float);
  std::vector<std::unique_ptr<device_vector<float>>> buffers;
  const float* from[Sources];
  for (std::size_t k = 0; k < Sources; ++k) {
    buffers.push_back(std::make_unique<device_vector<float>>(noise(static_cast<int>(k), count)));
    from[k] = buffers.back()->data();
  }
  device_vector<float> ours(count), theirs(count);
  timer clock;
  const auto [own, cub] = clock.medians(
      stream, [&] { must(device::combine<float>(stream, std::plus<>(), ours.data(), from, count)); },
      [&] { check_cuda(by_cub(from, theirs.data(), count, stream, std::make_index_sequence<Sources>())); });
  require(ours.values() == theirs.values(), "combine and CUB differ");
  print_row("combine " + std::to_string(Sources) + " (other: cub transform)", bytes, own, (Sources + 1) * bytes, cub);
}

/// Combines elements of two bytes, which are converted for the operation.
void time_combine_small(cudaStream_t stream, std::size_t bytes) {
  const std::size_t count = bytes / sizeof(hocket::bfloat16);
  const std::vector<float> values = noise(1, count);
  const std::vector<hocket::bfloat16> rounded(values.begin(), values.end());
  device_vector<hocket::bfloat16> one(rounded), other(rounded);
  device_vector<hocket::bfloat16> to(count);
  const hocket::bfloat16* const from[] = {one.data(), other.data()};
  timer clock;
  const auto [own] = clock.medians(
      stream, [&] { must(device::combine<hocket::bfloat16>(stream, std::plus<>(), to.data(), from, count)); });
  const std::vector<hocket::bfloat16> sums = to.values();
  for (std::size_t i = 0; i < 8192; ++i) {
    require(sums[i].bits() == hocket::bfloat16(rounded[i] + rounded[i]).bits(), "combine and the host differ");
  }
  print_row("combine 2 of bfloat16", bytes, own, 3 * bytes);
}

struct accumulated {
  float scale;
  __device__ float operator()(float sum, __half from) const {
    return __fadd_rn(sum, __fmul_rn(scale, __half2float(from)));
  }
};

void time_accumulate(cudaStream_t stream, std::size_t bytes) {
  const std::size_t count = bytes / sizeof(float);
  device_vector<float> sum(noise(1, count)), other(noise(1, count));
  device_vector<hocket::half> from(count);
  check_cuda(cudaMemset(from.data(), 0x2c, count * sizeof(hocket::half)));
  finish_filling();
  const auto* const halves = reinterpret_cast<const __half*>(from.data());
  timer clock;
  const auto [own, thrust_took] = clock.medians(
      stream, [&] { must(device::accumulate(stream, sum.data(), from.data(), 0.5F, count)); },
      [&] {
        thrust::transform(thrust::cuda::par_nosync.on(stream), other.data(), other.data() + count, halves, other.data(),
                          accumulated{0.5F});
      });
  require(sum.values() == other.values(), "accumulate and Thrust differ");
  print_row("accumulate half to float (other: thrust)", bytes, own, 2 * bytes + bytes / 2, thrust_took);
}

/// Returns whether the first blocks equal the host's result for `values`.
template <class Quantized>
bool quantized_as_on_host(const std::vector<float>& values, const std::vector<Quantized>& numbers,
                          const std::vector<float>& scales) {
  using body_type = device::quantization<float, Quantized, 128>;
  constexpr std::size_t blocks = 64, count = blocks * 128;
  std::vector<Quantized> expected(count);
  std::vector<float> expected_scales(blocks);
  const body_type body{expected.data(), expected_scales.data(), values.data(), count};
  for (std::size_t block = 0; block < blocks; ++block) {
    const auto first = [&](std::size_t lane) { return block * 128 + lane * body_type::group_size; };
    std::uint32_t magnitude = 0;
    for (std::size_t lane = 0; lane < body_type::lanes; ++lane) {
      magnitude = std::max(magnitude, body_type::magnitude_of(body.load(first(lane))));
    }
    expected_scales[block] = body_type::scale_of(magnitude);
    for (std::size_t lane = 0; lane < body_type::lanes; ++lane) {
      body.store(first(lane), body.load(first(lane)), expected_scales[block]);
    }
  }
  return std::memcmp(expected.data(), numbers.data(), count) == 0 &&
         std::equal(expected_scales.begin(), expected_scales.end(), scales.begin());
}

template <class Quantized>
void time_quantize(const char* type, cudaStream_t stream, std::size_t bytes) {
  const std::size_t count = bytes / sizeof(float);
  const std::vector<float> values = noise(1, count);
  device_vector<float> from(values);
  device_vector<Quantized> to(count);
  device_vector<float> scales(count / 128 + 1);
  timer clock;
  const auto [own] =
      clock.medians(stream, [&] { must(device::quantize<128>(stream, to.data(), scales.data(), from.data(), count)); });
  require(quantized_as_on_host(values, to.values(), scales.values()), "quantize and the host differ");
  print_row(std::string("quantize float to ") + type + ", blocks of 128", bytes, own, bytes + bytes / 4 + bytes / 32);
}

void time_unscale(cudaStream_t stream, std::size_t bytes) {
  const std::size_t count = bytes / sizeof(float);
  const std::vector<float> values = noise(1, count);
  device_vector<float> from(values);
  device_vector<float> to(count);
  device_vector<device::gradient_tally> scratch(device::unscale_scratch), found(1);
  timer clock;
  const auto [own] = clock.medians(stream, [&] {
    must(device::unscale(stream, to.data(), from.data(), 0.5F, count, scratch.data(), found.data()));
  });
  const std::vector<float> halves = to.values();
  require(
      std::equal(halves.begin(), halves.begin() + 8192, values.begin(), [](float a, float b) { return a == 0.5F * b; }),
      "unscale and the host differ");
  require(found.values()[0].not_finite == 0, "unscale reports values that are not finite, but there are none");
  print_row("unscale, check and norm of floats", bytes, own, 2 * bytes);
}

/// Packs 64 blocks of unequal lengths, in another order than in memory; other: one driver copy per block.
void time_pack(cudaStream_t stream, std::size_t bytes) {
  constexpr std::size_t blocks = 64;
  const std::size_t count = bytes / sizeof(float);
  std::vector<std::size_t> counts(blocks), displacements(blocks), places(blocks);
  std::size_t next = 0;
  for (std::size_t k = 0; k < blocks; ++k) {
    const std::size_t at = k * 37 % blocks;
    displacements[at] = next;
    counts[at] = k + 1 < blocks ? count / blocks + k % 7 - 3 : count - next;
    next += counts[at];
  }
  for (std::size_t k = 1; k < blocks; ++k) places[k] = places[k - 1] + counts[k - 1];
  device_vector<float> from(noise(1, count)), ours(count), theirs(count), back(count);
  device_vector<std::size_t> device_counts(counts), device_displacements(displacements);
  const float* const source = from.data();
  const std::size_t *const lengths = device_counts.data(), *const begins = device_displacements.data();
  std::size_t needed = 0;
  must(device::pack_blocks_workspace<float, std::size_t>(blocks, needed));
  device_vector<std::byte> memory(needed);
  const device::workspace lent{memory.data(), needed};
  timer clock;
  const auto [own, copies] = clock.medians(
      stream, [&] { must(device::pack_blocks(stream, lent, ours.data(), source, lengths, begins, blocks)); },
      [&] {
        for (std::size_t k = 0; k < blocks; ++k) {
          check_cuda(cudaMemcpyAsync(theirs.data() + places[k], source + displacements[k], counts[k] * sizeof(float),
                                     cudaMemcpyDeviceToDevice, stream));
        }
      });
  require(ours.values() == theirs.values(), "pack and copies differ");
  print_row("pack 64 blocks (other: 64 copies)", bytes, own, 2 * bytes, copies);
  const float* const packed = ours.data();
  const auto [way_back] = clock.medians(
      stream, [&] { must(device::unpack_blocks(stream, lent, back.data(), packed, lengths, begins, blocks)); });
  require(back.values() == from.values(), "unpack does not restore what pack took");
  print_row("unpack 64 blocks", bytes, way_back, 2 * bytes);
}

/// Selects a hundredth of all elements; other: CUB's sort of the floats with prepared indices.
void time_top_k(cudaStream_t stream, std::size_t bytes) {
  const std::size_t count = bytes / sizeof(float), k = count / 100;
  std::vector<std::uint32_t> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = static_cast<std::uint32_t>(i);
  device_vector<float> from(noise(1, count)), ours(k), sorted(count);
  device_vector<std::uint32_t> indices(k), order(all), sorted_order(count);
  std::size_t needed = 0, cub_needed = 0;
  must(device::top_k_workspace<float, std::uint32_t>(count, needed));
  const auto by_sort = [&](void* temporary) {
    check_cuda(cub::DeviceRadixSort::SortPairsDescending(temporary, cub_needed, from.data(), sorted.data(),
                                                         order.data(), sorted_order.data(), count, 0, 32, stream));
  };
  by_sort(nullptr);
  device_vector<std::byte> memory(needed), cub_memory(cub_needed);
  const float* const source = from.data();
  timer clock;
  const auto [own, cub] = clock.medians(
      stream,
      [&] {
        must(device::top_k(stream, {memory.data(), needed}, ours.data(), indices.data(), k, source, count));
      },
      [&] { by_sort(cub_memory.data()); });
  std::vector<float> expected = sorted.values();
  std::vector<std::uint32_t> expected_order = sorted_order.values();
  expected.resize(k);
  expected_order.resize(k);
  require(ours.values() == expected && indices.values() == expected_order, "top_k and CUB's sort differ");
  print_row("top 1 % of floats (other: cub sort of all)", bytes, own, bytes, cub);
}

// ---- collectives ------------------------------------------------------------------------------------------------

enum class way { one_shot, two_shot, fused };

const char* name_of(way how) { return how == way::one_shot ? "one_shot" : how == way::two_shot ? "two_shot" : "fused"; }

/// Returns the bytes that must move on one device: reads and writes of all ranks.
std::size_t bytes_moved(way how, std::size_t bytes, std::size_t ranks) {
  if (how == way::fused) return 2 * ranks * bytes;
  if (how == way::one_shot) return ranks * (ranks + 1) * bytes;
  return (ranks + 1) * bytes + 2 * (ranks - 1) * bytes;  // each rank reduces 1/p of all, then copies the others' shares
}

constexpr std::size_t largest_buffer = 64 * mebi;

/// Returns the all_reduce of all ranks' noise. The result for fewer elements is a prefix of it.
std::vector<float> sum_of_noise(int ranks) {
  std::vector<float> sum = noise(0, largest_buffer / sizeof(float));
  for (int rank = 1; rank < ranks; ++rank) {
    const std::vector<float> more = noise(rank, sum.size());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
  }
  return sum;
}

/// The setting of a group of ranks.
struct rank_setting {
  const char* kind;                    ///< of ranks, for the table
  const std::vector<float>& expected;  ///< `sum_of_noise`
  std::function<void()> meet;          ///< returns when all ranks have called it
};

/// Returns the number of calls that take about 50 ms, at most `most`, from the time of one call; equal on all ranks.
int calls_for_a_round(gpu_rank& me, const rank_setting& setting, const timer& clock, gpu_operation& work, int most) {
  setting.meet();
  check_cuda(cudaEventRecord(clock.begin(), me.stream()));
  me.enqueue(work);
  check_cuda(cudaEventRecord(clock.end(), me.stream()));
  me.finish();
  const double took = clock.elapsed();
  double longest = 1e-9;
  for (const std::vector<std::byte>& each : me.exchange(std::as_bytes(std::span(&took, 1)))) {
    double theirs = 0;
    std::memcpy(&theirs, each.data(), sizeof theirs);
    longest = std::max(longest, theirs);
  }
  return std::max(1, static_cast<int>(std::min(0.05 / longest, static_cast<double>(most))));
}

/// Returns the seconds for one all_reduce. A round begins when all ranks have arrived, and is timed from the end of a
/// first call, which ends on no rank before all have launched theirs, so that a late launch costs little.
double time_all_reduce(gpu_rank& me, const rank_setting& setting, way how, std::size_t bytes, bool graph) {
  const std::size_t count = bytes / sizeof(float);
  const std::plus<> op;
  float* const in = me.allocate<float>(count);
  float* const out = me.allocate<float>(count);
  me.upload(in, noise(me.rank(), count));
  hocket::detail::stream_binding what{.plan = plan::one_shot{},
                                      .block_elements = count,
                                      .element_kernel = how == way::fused
                                                            ? &device::fused_kernel_of<std::plus<>, float>
                                                            : &device::stream_kernel_of<std::plus<>, float>,
                                      .operation = &op,
                                      .in = reinterpret_cast<std::uintptr_t>(in),
                                      .out = reinterpret_cast<std::uintptr_t>(out),
                                      .fused = how == way::fused};
  if (how == way::two_shot) what.plan = plan::two_shot{};
  std::unique_ptr<gpu_operation> work;
  me.bind(what, work);
  me.enqueue(*work);
  me.finish();
  const std::vector<float> got = me.download(out, count);
  if (!std::equal(got.begin(), got.end(), setting.expected.begin())) {
    throw std::runtime_error(std::string(name_of(how)) + " is wrong");
  }
  const timer clock;
  // If calls take 5 us, the start and end of a graph with few calls would be visible.
  const int most = graph && bytes <= 64 * 1024 ? 200 : 20;
  const int calls = calls_for_a_round(me, setting, clock, *work, most);
  const auto enqueue_all = [&](unsigned flags) {
    me.enqueue(*work);
    check_cuda(cudaEventRecordWithFlags(clock.begin(), me.stream(), flags));
    for (int i = 0; i < calls; ++i) me.enqueue(*work);
    check_cuda(cudaEventRecordWithFlags(clock.end(), me.stream(), flags));
  };
  cudaGraph_t recorded = nullptr;
  cudaGraphExec_t ready = nullptr;
  if (graph) {
    check_cuda(cudaStreamBeginCapture(me.stream(), cudaStreamCaptureModeThreadLocal));
    enqueue_all(cudaEventRecordExternal);
    check_cuda(cudaStreamEndCapture(me.stream(), &recorded));
    check_cuda(cudaGraphInstantiate(&ready, recorded, 0));
  }
  std::vector<double> seconds;
  for (int round = -2; round < 11; ++round) {
    setting.meet();
    if (graph) {
      check_cuda(cudaGraphLaunch(ready, me.stream()));
    } else {
      enqueue_all(cudaEventRecordDefault);
    }
    me.finish();
    if (round >= 0) seconds.push_back(clock.elapsed() / calls);
  }
  if (graph) {
    check_cuda(cudaGraphExecDestroy(ready));
    check_cuda(cudaGraphDestroy(recorded));
  }
  return timer::median(seconds);
}

/// Measures all figures of one group of ranks. The first rank prints each immediately, in case of a later timeout.
void time_group(gpu_rank& me, const rank_setting& setting) {
  for (const way how : {way::one_shot, way::two_shot, way::fused}) {
    for (const bool graph : {false, true}) {
      for (const std::size_t bytes : {std::size_t{1024}, 64 * std::size_t{1024}, mebi, largest_buffer}) {
        if (how == way::one_shot && bytes > mebi) continue;
        if (!graph && bytes == mebi) continue;
        const double seconds = time_all_reduce(me, setting, how, bytes, graph);
        if (me.rank() != 0) continue;
        print_row(std::to_string(me.size()) + ' ' + setting.kind + ": " + name_of(how) + (graph ? ", graph" : ""),
                  bytes, seconds, bytes_moved(how, bytes, static_cast<std::size_t>(me.size())));
      }
    }
  }
}

/// Returns false if a result was wrong or a rank failed.
bool time_threads(int ranks) {
  const std::vector<float> expected = sum_of_noise(ranks);
  std::barrier<> all(ranks);
  const auto complaints = run_threads(ranks, [&](gpu_rank& me) {
    struct barrier_guard {
      std::barrier<>& from;
      ~barrier_guard() { from.arrive_and_drop(); }  // also after an error: other ranks continue until their deadlines
    };
    const barrier_guard at_end{all};
    time_group(me, {"threads", expected, [&] { all.arrive_and_wait(); }});
  });
  bool right = true;
  for (const std::string& each : complaints) {
    if (!each.empty()) std::printf("%d threads: %s\n", ranks, each.c_str());
    right = right && each.empty();
  }
  return right;
}

bool time_processes(int ranks) {
  hocket::launch::process_options how;
  how.capture_output = true;
  how.timeout = std::chrono::seconds(40);  // used three times, within the limit of bench/gpu.sh
  const std::string rate = std::to_string(copy_rate);
  const auto body = [&](const hocket::bootstrap::world_description&) {
    ::execl("/proc/self/exe", "gpu", "--process", rate.c_str(), static_cast<char*>(nullptr));
    return 126;
  };
  const auto results = hocket::launch::run_processes(ranks, body, how);
  bool right = true;
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    std::fputs(results[rank].output.c_str(), stdout);
    if (!results[rank].succeeded()) std::printf("%d processes: rank %zu failed\n", ranks, rank);
    right = right && results[rank].succeeded();
  }
  std::fflush(stdout);
  return right;
}

int run_process(const char* rate) {
  copy_rate = std::atof(rate);
  try {
    const std::vector<float> expected = sum_of_noise(hocket::bootstrap::read_environment().ranks);
    as_process([&](gpu_rank& me) {
      time_group(me, {"processes", expected, [&] { static_cast<void>(me.exchange({})); }});
    });
  } catch (const std::exception& problem) {
    std::printf("%s\n", problem.what());
    return 1;
  }
  return 0;
}

bool time_everything() {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, 0));
  const std::size_t large = 256 * mebi;
  device_vector<std::byte> from(large), to(large);
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  timer clock;
  const auto [copying] = clock.medians(
      stream, [&] { check_cuda(cudaMemcpyAsync(to.data(), from.data(), large, cudaMemcpyDeviceToDevice, stream)); });
  copy_rate = 2.0 * static_cast<double>(large) / copying;
  std::printf("%s, %d multiprocessors, L2 %d MiB\n\n", properties.name, properties.multiProcessorCount,
              properties.l2CacheSize / static_cast<int>(mebi));
  print_head();
  print_row("copy of the device", large, copying, 2 * large);
  for (const std::size_t bytes : {64 * mebi, 256 * mebi}) {
    time_combine<2>(stream, bytes);
    time_combine<4>(stream, bytes);
    time_combine<8>(stream, bytes);
    time_combine_small(stream, bytes);
    time_accumulate(stream, bytes);
    time_quantize<std::int8_t>("int8", stream, bytes);
    time_quantize<hocket::float8_e4m3>("float8_e4m3", stream, bytes);
    time_unscale(stream, bytes);
    time_pack(stream, bytes);
    time_top_k(stream, bytes);
  }
  check_cuda(cudaStreamDestroy(stream));
  bool right = true;
  for (const int ranks : {2, 4, 8}) right = time_threads(ranks) && right;
  for (const int ranks : {2, 4, 8}) right = time_processes(ranks) && right;
  return right;
}

}  // namespace

int main(int count, char** arguments) {
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);  // before any use of CUDA: for parallel streams of 8 threads
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  if (count == 3 && std::strcmp(arguments[1], "--process") == 0) return run_process(arguments[2]);
  if (there_is_no_gpu()) {
    std::printf("no GPU found: nothing was measured\n");
    return 1;
  }
  return time_everything() ? 0 : 1;
}
