// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls that are bound to memory of a real GPU, which threads share: enqueued, captured, replayed. Checked without a
// GPU: nvcc compiles them, and reach_peers reports a missing driver.
#include "kernel/device/gpu.cuh"
#include "support/elements.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/group/peers.cuh>
#include <hocket/hocket.hpp>

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <vector>

using namespace hocket_test;
namespace gpu = hocket::cuda;

namespace {

// Set before any use of CUDA, so that streams of 8 threads run concurrently.
const int more_connections = ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
const int kernels_at_first = ::setenv("CUDA_MODULE_LOADING", "EAGER", 1);

struct owned_stream {
  owned_stream() { check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)); }
  owned_stream(const owned_stream&) = delete;
  owned_stream& operator=(const owned_stream&) = delete;
  ~owned_stream() { static_cast<void>(cudaStreamDestroy(stream)); }
  cudaStream_t stream = nullptr;
};

void check_sum(thread_rank& me, gpu::peers<hocket::local::communicator::domain_type>& peers, cudaStream_t stream,
               std::size_t size) {
  const auto values = samples<float>(me.rank(), size);
  std::vector<float> expected(size);
  hocket::all_reduce(me.comm(), values, expected, std::plus<>{}, hocket::with(hocket::two_shot));
  device_vector<float> in(values), fused(size), shot(size), around(size), climbed(size);
  auto by_one = peers.all_reduce(gpu::device(in.data(), size), gpu::device(fused.data(), size), std::plus<>{});
  auto by_all = peers.all_reduce(gpu::device(in.data(), size), gpu::device(shot.data(), size), std::plus<>{},
                                 hocket::with(hocket::two_shot));
  auto by_ring = peers.all_reduce(gpu::device(in.data(), size), gpu::device(around.data(), size), std::plus<>{},
                                  hocket::with(hocket::ring));
  auto by_tree = peers.all_reduce(gpu::device(in.data(), size), gpu::device(climbed.data(), size), std::plus<>{},
                                  hocket::with(hocket::double_tree));
  for (auto* const each : {&by_one, &by_all, &by_ring, &by_tree}) each->enqueue(gpu::stream_ref(stream));
  by_tree.wait();
  me.check(fused.values() == expected, "one kernel for all ranks");
  me.check(shot.values() == expected, "two_shot");
  hocket::all_reduce(me.comm(), values, expected, std::plus<>{}, hocket::with(hocket::ring));
  me.check(around.values() == expected, "ring");
  hocket::all_reduce(me.comm(), values, expected, std::plus<>{}, hocket::with(hocket::double_tree));
  me.check(climbed.values() == expected, "double_tree");
}

}  // namespace

TEST_CASE("without a CUDA driver, reach_peers reports this on all ranks") {
  hocket::failure why;
  if (hocket::cuda_ipc::driver::load(why)) return;
  on_ranks(2, [](thread_rank& me) {
    me.expect(hocket::errc::bad_environment,
              [&] { gpu::reach_peers(me.comm(), gpu::stream_ref(cudaStreamPerThread)); });
    hocket::barrier(me.comm());  // which stays usable
  });
}

TEST_CASE("bound calls on a GPU give the host's bits", "[gpu]") {
  if (gpu_is_missing()) return;
  for (const int ranks : {1, 2, 3, 4, 8}) {
    on_ranks(ranks, [](thread_rank& me) {
      const owned_stream mine;
      auto peers = gpu::reach_peers(me.comm(), gpu::stream_ref(mine.stream));
      me.check(peers.one_device(), "one_device() is wrong");
      for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{1001}, std::size_t{3'000'001}}) {
        check_sum(me, peers, mine.stream, size);
      }
      peers.close();
    });
  }
}

TEST_CASE("bound calls can be captured in a graph and replayed 1000 times", "[gpu]") {
  if (gpu_is_missing()) return;
  on_ranks(4, [](thread_rank& me) {
    constexpr std::size_t size = 1001;
    const owned_stream mine;
    auto peers = gpu::reach_peers(me.comm(), gpu::stream_ref(mine.stream));
    const auto values = samples<float>(me.rank(), size);
    std::vector<float> expected(size);
    hocket::all_reduce(me.comm(), values, expected, std::plus<>{}, hocket::with(hocket::two_shot));
    device_vector<float> in(values), out(size);
    auto sum = peers.all_reduce(gpu::device(in.data(), size), gpu::device(out.data(), size), std::plus<>{},
                                hocket::with(hocket::two_shot));
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replayed = nullptr;
    check_cuda(cudaStreamBeginCapture(mine.stream, cudaStreamCaptureModeThreadLocal));
    sum.enqueue(gpu::stream_ref(mine.stream));
    check_cuda(cudaStreamEndCapture(mine.stream, &graph));
    check_cuda(cudaGraphInstantiate(&replayed, graph, 0));
    for (int i = 0; i < 1000; ++i) {
      check_cuda(cudaGraphLaunch(replayed, mine.stream));
      // A full queue of launches blocks within the driver, where no deadline applies.
      if (i % 32 == 31) check_cuda(cudaStreamSynchronize(mine.stream));
    }
    check_cuda(cudaStreamSynchronize(mine.stream));
    me.check(out.values() == expected, "a replay gave a wrong sum");
    check_cuda(cudaGraphExecDestroy(replayed));
    check_cuda(cudaGraphDestroy(graph));
    peers.close();
  });
}
