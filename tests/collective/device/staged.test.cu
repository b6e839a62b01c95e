// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives on memory of a real GPU, staged through the host, between threads that share it. Checked without a GPU:
// nvcc compiles the umbrella header, and a call reports a missing driver.
#include "kernel/device/gpu.cuh"
#include "support/elements.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/hocket.hpp>

#include <hocket/cuda.cuh>

#include <cuda_runtime.h>
#include <cuda/stream_ref>

#include <cstddef>
#include <functional>
#include <vector>

using namespace hocket_test;
using hocket::with;

namespace {

using device_floats = hocket::device_buffer<float, hocket::cuda::device_memory>;
static_assert(!hocket::contiguous_buffer<device_floats>);
static_assert(!std::is_constructible_v<std::span<float>, device_floats>);
static_assert(std::is_constructible_v<hocket::cuda::stream_ref, cudaStream_t>);
static_assert(std::is_convertible_v<::cuda::stream_ref, hocket::cuda::stream_ref>);
static_assert(!std::is_constructible_v<hocket::cuda::stream_ref, std::nullptr_t>);
static_assert(!std::is_constructible_v<hocket::cuda::stream_ref, int>);

/// A stream of this rank.
struct owned_stream {
  owned_stream() { check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)); }
  owned_stream(const owned_stream&) = delete;
  owned_stream& operator=(const owned_stream&) = delete;
  ~owned_stream() { static_cast<void>(cudaStreamDestroy(stream)); }
  cudaStream_t stream = nullptr;
};

/// Writes late, so that a call that does not wait for its stream reads the old values.
__global__ void write_late(float* to, const float* from, std::size_t size) {
  for (int i = 0; i < 200; ++i) __nanosleep(10'000);
  for (std::size_t i = threadIdx.x; i < size; i += blockDim.x) to[i] = from[i];
}

}  // namespace

TEST_CASE("without a CUDA driver, a call on device memory reports this") {
  hocket::failure why;
  if (hocket::cuda_ipc::driver::load(why)) return;
  on_ranks(1, [](thread_rank& me) {
    float element = 0;
    me.expect(hocket::errc::bad_environment, [&] {
      hocket::all_reduce(me.comm(), hocket::in_place(hocket::cuda::device(&element, 1)), std::plus<>{},
                         with(hocket::cuda::stream_ref(cudaStreamPerThread)));
    });
  });
}

TEST_CASE("collectives on GPU memory give the same results as on the host", "[gpu]") {
  if (gpu_is_missing()) return;
  for (const int ranks : {1, 2, 3, 4, 8}) {
    on_ranks(ranks, [](thread_rank& me) {
      const auto p = static_cast<std::size_t>(me.size());
      const owned_stream mine;
      const auto order = with(hocket::cuda::stream_ref(mine.stream));
      for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{1001}, std::size_t{3'000'001}}) {
        me.at([&] { return "size " + std::to_string(size); });
        const auto values = samples<float>(me.rank(), size);
        std::vector<float> expected(size);
        hocket::all_reduce(me.comm(), values, expected, std::plus<>{}, with(hocket::two_shot));
        device_vector<float> late(values, 1), in(size, 1), out(size);
        check_cuda(cudaDeviceSynchronize());
        write_late<<<1, 256, 0, mine.stream>>>(in.data(), late.data(), size);
        check_cuda(cudaGetLastError());
        hocket::all_reduce(me.comm(), hocket::cuda::device(in.data(), size), hocket::cuda::device(out.data(), size),
                           std::plus<>{}, with(hocket::two_shot, hocket::cuda::stream_ref(mine.stream)));
        std::vector<float> found(size);
        check_cuda(
            cudaMemcpyAsync(found.data(), out.data(), size * sizeof(float), cudaMemcpyDeviceToHost, mine.stream));
        check_cuda(cudaStreamSynchronize(mine.stream));
        me.check(same_bytes(std::span<const float>(found), std::span<const float>(expected)), "all_reduce");

        std::vector<float> gathered(p * size);
        hocket::all_gather(me.comm(), values, gathered);
        device_vector<float> whole(p * size);
        hocket::all_gather(me.comm(), hocket::cuda::device(in.data(), size),
                           hocket::cuda::device(whole.data(), p * size), order);
        me.check(whole.values() == gathered, "all_gather");

        const auto many = samples<int>(me.rank(), p * size);
        std::vector<int> exchanged(p * size), block(size);
        hocket::all_to_all(me.comm(), many, exchanged);
        hocket::reduce_scatter(me.comm(), many, block);
        device_vector<int> from(many), to(p * size), part(size);
        check_cuda(cudaDeviceSynchronize());
        hocket::all_to_all(me.comm(), hocket::cuda::device(from.data(), p * size),
                           hocket::cuda::device(to.data(), p * size), order);
        hocket::reduce_scatter(me.comm(), hocket::cuda::device(from.data(), p * size),
                               hocket::cuda::device(part.data(), size), std::plus<>{}, order);
        me.check(to.values() == exchanged, "all_to_all");
        me.check(part.values() == block, "reduce_scatter");
        hocket::broadcast(me.comm(), hocket::cuda::device(in.data(), size), hocket::root{0}, order);
        me.check(in.values() == samples<float>(0, size), "broadcast");
      }
    });
  }
}

TEST_CASE("pinned and managed memory of a GPU work, and wrong tags are refused", "[gpu]") {
  if (gpu_is_missing()) return;
  on_ranks(2, [](thread_rank& me) {
    const owned_stream mine;
    const auto order = with(hocket::cuda::stream_ref(mine.stream));
    float *pinned = nullptr, *managed = nullptr;
    check_cuda(cudaMallocHost(&pinned, 1000 * sizeof(float)));
    check_cuda(cudaMallocManaged(&managed, 1000 * sizeof(float)));
    for (std::size_t i = 0; i < 1000; ++i) pinned[i] = 1;
    hocket::all_reduce(me.comm(), hocket::cuda::pinned(pinned, 1000), hocket::cuda::managed(managed, 1000),
                       std::plus<>{}, order);
    check_cuda(cudaStreamSynchronize(mine.stream));
    me.check(managed[0] == 2 && managed[999] == 2, "sum");
    std::vector<float> plain(1000);
    const auto wrong = [&](auto buffer) {
      me.expect(hocket::errc::invalid_argument,
                [&] { hocket::all_reduce(me.comm(), hocket::in_place(buffer), std::plus<>{}, order); });
    };
    wrong(hocket::cuda::device(pinned, 1000));
    wrong(hocket::cuda::device(managed, 1000));
    wrong(hocket::cuda::managed(pinned, 1000));
    wrong(hocket::cuda::pinned(managed, 1000));
    wrong(hocket::cuda::device(plain));
    wrong(hocket::cuda::pinned(plain));
    check_cuda(cudaStreamBeginCapture(mine.stream, cudaStreamCaptureModeRelaxed));
    wrong(hocket::cuda::pinned(pinned, 1000));
    cudaGraph_t graph = nullptr;
    check_cuda(cudaStreamEndCapture(mine.stream, &graph));
    check_cuda(cudaGraphDestroy(graph));
    check_cuda(cudaFreeHost(pinned));
    check_cuda(cudaFree(managed));
  });
}
