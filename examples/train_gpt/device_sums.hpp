// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Sums of gradients over ranks in GPU memory: each bucket is copied to the GPU, reduced in the order of a stream, and
/// copied back. In this example the CPU computes the layers; a program that computes on its GPU has the gradients there
/// and needs neither copy.
#pragma once

#include <hocket/core/request.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/ucx.hpp>

#include <cstddef>
#include <memory>
#include <span>

namespace gpt {

/// Throws if there is no CUDA driver; the error names what is missing.
void require_device();

/// A reduction of a bucket in flight, on the host or a device. Meets `hocket::started_reduction`.
class bucket_sum {
 public:
  /// Copies the sum back when it is complete.
  class on_device;

  explicit bucket_sum(hocket::request of_host);
  explicit bucket_sum(std::unique_ptr<on_device> of_device);
  bucket_sum(bucket_sum&&) noexcept;
  bucket_sum& operator=(bucket_sum&&) noexcept;
  ~bucket_sum();

  bool test();
  void wait();

 private:
  hocket::request host_;
  std::unique_ptr<on_device> device_;
};

/// One rank's GPU. GPUs of a host are assigned to its ranks round-robin.
class device_sums {
 public:
  using communicator = hocket::ucx::communicator;

  explicit device_sums(int rank);
  device_sums(const device_sums&) = delete;
  device_sums& operator=(const device_sums&) = delete;
  ~device_sums();

  /// Sums `values` over the ranks of `comm`, in place.
  bucket_sum all_reduce(const communicator& comm, std::span<float> values);
  /// Writes this rank's block of the sum to `own`, its place in `values`; `lengths` are the lengths of the blocks.
  bucket_sum reduce_scatter(const communicator& comm, std::span<const float> values, std::span<float> own,
                            hocket::counts lengths);

 private:
  friend class bucket_sum::on_device;
  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace gpt
