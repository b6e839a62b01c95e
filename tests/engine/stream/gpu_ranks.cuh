// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Ranks on the first GPU: threads of this process, or this process as one of several.
#pragma once

#include "kernel/device/gpu.cuh"

#include <hocket/bootstrap/connect_store.hpp>
#include <hocket/bootstrap/environment.hpp>
#include <hocket/bootstrap/store.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/wait_limit.hpp>
#include <hocket/engine/stream/operation.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/cuda_ipc/driver.hpp>
#include <hocket/transport/cuda_ipc/group.hpp>
#include <hocket/transport/local/world.hpp>

#include <cuda_runtime.h>

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hocket_test {

namespace ipc = hocket::cuda_ipc;

using gpu_group = ipc::group<ipc::driver>;
using gpu_operation = hocket::detail::stream_operation<ipc::driver>;

inline hocket::deadline soon(std::chrono::seconds limit = std::chrono::seconds(30)) {
  return hocket::deadline::after(limit);
}

inline void must(const hocket::failure& found) {
  if (found) throw hocket::error(found);
}

/// A rank of a group on the first GPU. Failures are thrown.
class gpu_rank {
 public:
  gpu_rank(int rank, int ranks, hocket::transport::exchange_function exchange)
      : rank_(rank), ranks_(ranks), exchange_(std::move(exchange)) {
    hocket::failure why;
    auto found = ipc::driver::load(why);
    must(why);
    driver_ = *found;
    check_cuda(cudaSetDevice(0));
    check_cuda(cudaFree(nullptr));
    ipc::context_handle context = nullptr;
    if (driver_.ctx_get_current(&context) != ipc::status::success) throw std::runtime_error("no context");
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    must(gpu_group::make({&driver_, context}, rank, ranks, exchange_,
                         {.process = ipc::own_mark(), .until = soon(), .stream = handle()}, group_));
  }
  gpu_rank(const gpu_rank&) = delete;
  gpu_rank& operator=(const gpu_rank&) = delete;
  ~gpu_rank() {
    for (void* const each : buffers_) static_cast<void>(cudaFree(each));
    static_cast<void>(cudaStreamDestroy(stream_));
  }

  int rank() const { return rank_; }
  int size() const { return ranks_; }
  cudaStream_t stream() const { return stream_; }
  ipc::stream_handle handle() const { return reinterpret_cast<ipc::stream_handle>(stream_); }
  gpu_group& group() { return *group_; }
  /// Returns the blobs that all ranks pass. Collective.
  std::vector<std::vector<std::byte>> exchange(std::span<const std::byte> blob) { return exchange_(blob); }

  template <class T>
  T* allocate(std::size_t count) {
    void* at = nullptr;
    check_cuda(cudaMalloc(&at, (count + 1) * sizeof(T)));
    buffers_.push_back(at);
    check_cuda(cudaMemset(at, 0xa5, (count + 1) * sizeof(T)));
    finish_filling();
    return static_cast<T*>(at);
  }
  template <class T>
  void upload(T* to, const std::vector<T>& values) {
    check_cuda(cudaMemcpy(to, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    finish_filling();
  }
  template <class T>
  std::vector<T> download(const T* from, std::size_t count) {
    std::vector<T> result(count);
    check_cuda(cudaMemcpy(result.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost));
    return result;
  }

  void bind(hocket::detail::stream_binding what, std::unique_ptr<gpu_operation>& result) {
    must(gpu_operation::bind(*group_, std::move(what), exchange_, result));
  }
  void enqueue(gpu_operation& what) { must(what.enqueue(handle())); }
  void finish() { must(group_->finish(handle(), soon())); }
  void close() {
    must(group_->close(soon()));
    group_.reset();
  }

 private:
  const int rank_;
  const int ranks_;
  hocket::transport::exchange_function exchange_;
  ipc::driver driver_;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<gpu_group> group_;
  std::vector<void*> buffers_;
};

/// Runs `body` on threads as ranks. Returns the texts of the exceptions that they have thrown.
inline std::vector<std::string> run_threads(int ranks, const std::function<void(gpu_rank&)>& body) {
  const auto world = std::make_shared<hocket::local::world>(ranks);
  std::vector<std::string> complaints(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        gpu_rank me(rank, ranks, [&](std::span<const std::byte> blob) { return world->exchange(rank, blob, soon()); });
        body(me);
        me.close();
      } catch (const std::exception& problem) {
        complaints[static_cast<std::size_t>(rank)] = problem.what();
        world->abandon(rank);
      }
    });
  }
  for (std::thread& each : threads) each.join();
  return complaints;
}

/// Runs `body` in this process, which is a rank.
inline void as_process(const std::function<void(gpu_rank&)>& body) {
  const auto world = hocket::bootstrap::read_environment();
  auto store = hocket::bootstrap::connect_store(world, hocket::wait_limit(soon()));
  int round = 0;
  gpu_rank me(world.rank, world.ranks, [&](std::span<const std::byte> blob) {
    return hocket::bootstrap::exchange(store, "gpu." + std::to_string(++round), world.rank, world.ranks, blob,
                                       hocket::wait_limit(soon()));
  });
  body(me);
  me.close();
}

}  // namespace hocket_test
