// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How fast the device parts are, on the first GPU, against a plain copy of the device and what CUB and Thrust have. Results
// are compared before they are timed. bench/gpu.sh builds and runs it; it prints one table.
//
//   gpu            everything
//   gpu --process  one of several processes, started by the former
#include "engine/stream/gpu_ranks.cuh"
#include "support/elements.hpp"

#include <hocket/bootstrap/launch.hpp>
#include <hocket/kernel/device/accumulate.cuh>
#include <hocket/kernel/device/combine.cuh>
#include <hocket/kernel/device/leaf.cuh>
#include <hocket/kernel/device/pack_blocks.cuh>
#include <hocket/kernel/device/quantize.cuh>
#include <hocket/kernel/device/top_k.cuh>
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
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
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

  /// Seconds per call of `work`, which enqueues on `stream`: the median of some rounds. `wait` ends when all is done.
  template <class Work, class Wait>
  double median(cudaStream_t stream, int rounds, int calls, const Work& work, const Wait& wait) {
    std::vector<double> seconds;
    for (int round = -2; round < rounds; ++round) {
      check_cuda(cudaEventRecord(begin_, stream));
      for (int i = 0; i < calls; ++i) work();
      check_cuda(cudaEventRecord(end_, stream));
      wait();
      float milliseconds = 0;
      check_cuda(cudaEventElapsedTime(&milliseconds, begin_, end_));
      if (round >= 0) seconds.push_back(1e-3 * milliseconds / calls);
    }
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
  }
  template <class Work>
  double median(cudaStream_t stream, const Work& work) {
    return median(stream, 15, 10, work, [&] { check_cuda(cudaStreamSynchronize(stream)); });
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
  const double own =
      clock.median(stream, [&] { must(device::combine<float>(stream, std::plus<>(), ours.data(), from, count)); });
  const double cub = clock.median(
      stream, [&] { check_cuda(by_cub(from, theirs.data(), count, stream, std::make_index_sequence<Sources>())); });
  require(ours.values() == theirs.values(), "combine and CUB differ");
  print_row("combine " + std::to_string(Sources) + " (other: cub transform)", bytes, own, (Sources + 1) * bytes, cub);
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
  const auto* const halves = reinterpret_cast<const __half*>(from.data());
  timer clock;
  const double own =
      clock.median(stream, [&] { must(device::accumulate(stream, sum.data(), from.data(), 0.5F, count)); });
  const double thrust = clock.median(stream, [&] {
    thrust::transform(thrust::cuda::par_nosync.on(stream), other.data(), other.data() + count, halves, other.data(),
                      accumulated{0.5F});
  });
  require(sum.values() == other.values(), "accumulate and Thrust differ");
  print_row("accumulate half to float (other: thrust)", bytes, own, 2 * bytes + bytes / 2, thrust);
}

void time_quantize(cudaStream_t stream, std::size_t bytes) {
  const std::size_t count = bytes / sizeof(float);
  device_vector<float> from(noise(1, count));
  device_vector<std::int8_t> to(count);
  device_vector<float> scales(count / 128 + 1);
  timer clock;
  const double own =
      clock.median(stream, [&] { must(device::quantize<128>(stream, to.data(), scales.data(), from.data(), count)); });
  print_row("quantize float to int8, blocks of 128", bytes, own, bytes + bytes / 4 + bytes / 32);
}

/// 64 blocks of unequal lengths, in another order than they lie in; other: a copy of the driver for each.
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
  const double own = clock.median(
      stream, [&] { must(device::pack_blocks(stream, lent, ours.data(), source, lengths, begins, blocks)); });
  const double copies = clock.median(stream, [&] {
    for (std::size_t k = 0; k < blocks; ++k) {
      check_cuda(cudaMemcpyAsync(theirs.data() + places[k], source + displacements[k], counts[k] * sizeof(float),
                                 cudaMemcpyDeviceToDevice, stream));
    }
  });
  require(ours.values() == theirs.values(), "pack and copies differ");
  print_row("pack 64 blocks (other: 64 copies)", bytes, own, 2 * bytes, copies);
  const float* const packed = ours.data();
  const double way_back = clock.median(
      stream, [&] { must(device::unpack_blocks(stream, lent, back.data(), packed, lengths, begins, blocks)); });
  require(back.values() == from.values(), "unpack does not bring back what pack took");
  print_row("unpack 64 blocks", bytes, way_back, 2 * bytes);
}

/// A hundredth of all elements; other: CUB's sort of the floats themselves with indices that are there already.
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
  const double own = clock.median(stream, [&] {
    must(device::top_k(stream, {memory.data(), needed}, ours.data(), indices.data(), k, source, count));
  });
  const double cub = clock.median(stream, [&] { by_sort(cub_memory.data()); });
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

/// Bytes that must move on one device: what each rank reads and writes, of all ranks.
std::size_t bytes_moved(way how, std::size_t bytes, std::size_t ranks) {
  if (how == way::fused) return 2 * ranks * bytes;
  if (how == way::one_shot) return ranks * (ranks + 1) * bytes;
  return (ranks + 1) * bytes + 2 * (ranks - 1) * bytes;  // each rank 1/p of all, then copies of the others' shares
}

/// Seconds for one all_reduce; 0 where graphs of it can't be made.
double time_all_reduce(gpu_rank& me, way how, std::size_t bytes, bool graph) {
  const std::size_t count = bytes / sizeof(float);
  const std::plus<> op;
  float* const in = me.allocate<float>(count);
  float* const out = me.allocate<float>(count);
  me.upload(in, noise(me.rank(), count));
  hocket::detail::stream_binding what{.plan = plan::one_shot{},
                                      .block_elements = count,
                                      .leaf = how == way::fused ? &device::fused_leaf_of<std::plus<>, float>
                                                                : &device::stream_leaf_of<std::plus<>, float>,
                                      .operation = &op,
                                      .in = reinterpret_cast<std::uintptr_t>(in),
                                      .out = reinterpret_cast<std::uintptr_t>(out),
                                      .fused = how == way::fused};
  if (how == way::two_shot) what.plan = plan::two_shot{};
  std::unique_ptr<gpu_operation> work;
  me.bind(what, work);
  me.enqueue(*work);
  me.finish();
  std::vector<float> expected = noise(0, count);
  for (int rank = 1; rank < me.size(); ++rank) {
    const std::vector<float> more = noise(rank, count);
    for (std::size_t i = 0; i < count; ++i) expected[i] += more[i];
  }
  if (me.download(out, count) != expected) throw std::runtime_error(std::string(name_of(how)) + " is wrong");
  timer clock;
  const auto wait = [&] { me.finish(); };
  const int calls = bytes > 4 * mebi ? 3 : 20;
  double seconds = 0;
  if (!graph) {
    seconds = clock.median(
        me.stream(), 11, calls, [&] { me.enqueue(*work); }, wait);
  } else {
    cudaGraph_t recorded = nullptr;
    cudaGraphExec_t ready = nullptr;
    check_cuda(cudaStreamBeginCapture(me.stream(), cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < calls; ++i) me.enqueue(*work);
    check_cuda(cudaStreamEndCapture(me.stream(), &recorded));
    check_cuda(cudaGraphInstantiate(&ready, recorded, 0));
    const auto replay = [&] { check_cuda(cudaGraphLaunch(ready, me.stream())); };
    seconds = clock.median(me.stream(), 11, 1, replay, wait) / calls;
    check_cuda(cudaGraphExecDestroy(ready));
    check_cuda(cudaGraphDestroy(recorded));
  }
  return seconds;
}

struct measured {
  std::string what;
  std::size_t bytes = 0;
  double seconds = 0;
  std::size_t moved = 0;
};

/// All figures of one group of ranks; known to the first of them.
std::vector<measured> time_group(gpu_rank& me, const char* kind) {
  std::vector<measured> rows;
  for (const way how : {way::one_shot, way::two_shot, way::fused}) {
    for (const bool graph : {false, true}) {
      for (const std::size_t bytes : {std::size_t{1024}, 64 * std::size_t{1024}, mebi, 64 * mebi}) {
        if (how == way::one_shot && bytes > mebi) continue;
        if (!graph && bytes == mebi) continue;
        const double seconds = time_all_reduce(me, how, bytes, graph);
        rows.push_back({std::to_string(me.size()) + ' ' + kind + ": " + name_of(how) + (graph ? ", graph" : ""), bytes,
                        seconds, bytes_moved(how, bytes, static_cast<std::size_t>(me.size()))});
      }
    }
  }
  return rows;
}

void print(const std::vector<measured>& rows) {
  for (const measured& each : rows) print_row(each.what, each.bytes, each.seconds, each.moved);
}

void time_threads(int ranks) {
  std::vector<measured> rows;
  const auto complaints = run_threads(ranks, [&](gpu_rank& me) {
    std::vector<measured> mine = time_group(me, "threads");
    if (me.rank() == 0) rows = std::move(mine);
  });
  print(rows);
  for (const std::string& each : complaints) {
    if (!each.empty()) std::printf("%d threads: %s\n", ranks, each.c_str());
  }
}

void time_processes(int ranks) {
  hocket::launch::process_options how;
  how.capture_output = true;
  how.timeout = std::chrono::seconds(100);
  const std::string rate = std::to_string(copy_rate);
  const auto body = [&](const hocket::bootstrap::world_description&) {
    ::execl("/proc/self/exe", "gpu", "--process", rate.c_str(), static_cast<char*>(nullptr));
    return 126;
  };
  const auto results = hocket::launch::run_processes(ranks, body, how);
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    std::fputs(results[rank].output.c_str(), stdout);
    if (!results[rank].succeeded()) std::printf("%d processes: rank %zu failed\n", ranks, rank);
  }
  std::fflush(stdout);
}

int run_process(const char* rate) {
  copy_rate = std::atof(rate);
  try {
    std::vector<measured> rows;
    as_process([&](gpu_rank& me) {
      rows = time_group(me, "processes");
      if (me.rank() != 0) rows.clear();
    });
    print(rows);
  } catch (const std::exception& problem) {
    std::printf("%s\n", problem.what());
    return 1;
  }
  return 0;
}

void time_everything() {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, 0));
  const std::size_t large = 256 * mebi;
  device_vector<std::byte> from(large), to(large);
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  timer clock;
  const double copying = clock.median(
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
    time_accumulate(stream, bytes);
    time_quantize(stream, bytes);
    time_pack(stream, bytes);
    time_top_k(stream, bytes);
  }
  check_cuda(cudaStreamDestroy(stream));
  for (const int ranks : {2, 4, 8}) time_threads(ranks);
  for (const int ranks : {2, 4, 8}) time_processes(ranks);
}

}  // namespace

int main(int count, char** arguments) {
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);  // before anything uses CUDA: streams of 8 threads, side by side
  if (count == 3 && std::strcmp(arguments[1], "--process") == 0) return run_process(arguments[2]);
  if (gpu_is_missing()) {
    std::printf("no GPU here: nothing was measured\n");
    return 0;
  }
  time_everything();
  return 0;
}
