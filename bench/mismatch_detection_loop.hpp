// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The loop of the source that includes this header. The library's names differ between the two sources, and the loop
/// is in an anonymous namespace, so that the linker does not merge them.
#pragma once

#include "mismatch_detection.hpp"

#include <hocket/hocket.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <thread>

namespace {

class loop_of_this_source final : public bench::all_reduce_loop {
 public:
  loop_of_this_source() {
    const auto place = std::make_shared<hocket::local::world>(2);
    const auto connect = [&](int rank) {
      comms_[rank] = std::make_unique<hocket::local::communicator>(hocket::local::connect(place, rank));
    };
    std::thread one(connect, 1);
    connect(0);
    one.join();
  }

  void run(int rank, const float* in, float* out, std::size_t count, int rounds) override {
    const auto& comm = *comms_[rank];
    const std::span<const float> from(in, count);
    const std::span<float> to(out, count);
    for (int i = 0; i < rounds; ++i) hocket::all_reduce(comm, from, to);
  }

 private:
  std::unique_ptr<hocket::local::communicator> comms_[2];
};

}  // namespace
