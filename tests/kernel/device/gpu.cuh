// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Detection of a GPU, a count of the test cases that are skipped without one, and device memory for tests.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

namespace hocket_test {

/// True if there is no GPU or no driver. Other CUDA errors, such as a driver that is too old, are no reason to skip.
inline bool there_is_no_gpu() {
  int devices = 0, driver = 0;
  const cudaError_t said = cudaGetDeviceCount(&devices);
  if (said != cudaErrorInsufficientDriver) return said == cudaErrorNoDevice;
  return cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0;
}

/// True if there is no GPU. Counts one skipped case per call; the program prints the count when it ends.
inline bool gpu_is_missing() {
  struct tally {
    int skipped = 0;
    ~tally() {
      if (skipped != 0) std::printf("skipped: no GPU for %d cases\n", skipped);
    }
  };
  static const bool missing = there_is_no_gpu();
  static tally count;
  if (missing) ++count.skipped;
  return missing;
}

inline void check_cuda(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(status));
}

/// Waits for a cudaMemset, or for a cudaMemcpy from host memory that is not pinned: both may return before they are
/// done, and non-blocking streams are not ordered after them.
inline void finish_filling() { check_cuda(cudaStreamSynchronize(cudaStreamLegacy)); }

/// Elements in device memory. The first is `offset` elements behind the address from cudaMalloc.
template <class T>
class device_vector {
 public:
  explicit device_vector(std::size_t size, std::size_t offset = 0) : size_(size), offset_(offset) {
    check_cuda(cudaMalloc(&memory_, (size + offset + 1) * sizeof(T)));
    check_cuda(cudaMemset(memory_, 0xa5, (size + offset + 1) * sizeof(T)));
    finish_filling();
  }
  explicit device_vector(const std::vector<T>& values, std::size_t offset = 0) : device_vector(values.size(), offset) {
    check_cuda(cudaMemcpy(data(), values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
    finish_filling();
  }
  device_vector(const device_vector&) = delete;
  device_vector& operator=(const device_vector&) = delete;
  ~device_vector() { static_cast<void>(cudaFree(memory_)); }

  T* data() { return static_cast<T*>(memory_) + offset_; }

  /// Waits for all launches, and returns a copy of the elements.
  std::vector<T> values() {
    check_cuda(cudaDeviceSynchronize());
    std::vector<T> copy(size_);
    check_cuda(cudaMemcpy(copy.data(), data(), size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return copy;
  }

 private:
  void* memory_ = nullptr;
  std::size_t size_;
  std::size_t offset_;
};

}  // namespace hocket_test
