// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Sums of gradients over ranks in memory of a GPU: each bucket is copied there, added up in the order of a stream, and
/// copied back. The layers are computed by the processor here; a program that computes on its GPU has the gradients there,
/// and leaves out both copies.
#pragma once

#include <hocket/core/request.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/ucx.hpp>

#include <cstddef>
#include <memory>
#include <span>

namespace gpt {

/// Throws where no driver of CUDA is, and says what is missing.
void require_device();

/// A bucket on its way: what `hocket::started_reduction` asks for, on the host or a device.
class bucket_sum {
 public:
  /// Copies the sum back when it is there.
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

/// One rank's GPU. Ranks of a host take its GPUs in turn.
class device_sums {
 public:
  using communicator = hocket::ucx::communicator;

  explicit device_sums(int rank);
  device_sums(const device_sums&) = delete;
  device_sums& operator=(const device_sums&) = delete;
  ~device_sums();

  /// Adds `values` up over the ranks of `comm`, in place.
  bucket_sum all_reduce(const communicator& comm, std::span<float> values);
  /// Leaves this rank's block of the sum, of `lengths`, in `own`, which lies where it lies in `values`.
  bucket_sum reduce_scatter(const communicator& comm, std::span<const float> values, std::span<float> own,
                            hocket::counts lengths);

 private:
  friend class bucket_sum::on_device;
  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace gpt
