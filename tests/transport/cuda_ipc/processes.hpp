// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Threads that represent processes with devices. Each has a driver of one machine whose devices are host memory.
#pragma once

#include "support/catch.hpp"
#include "transport/cuda_ipc/host_driver.hpp"

#include <hocket/core/deadline.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/cuda_ipc/resources.hpp>
#include <hocket/transport/local/world.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace hocket_test {

struct where_rank_runs {
  int process = 0;
  int device = 0;
};

class processes {
 public:
  processes(host_machine& on, const std::vector<where_rank_runs>& ranks)
      : world_(std::make_shared<hocket::local::world>(static_cast<int>(ranks.size()))) {
    for (const where_rank_runs& each : ranks) {
      drivers_.push_back(std::make_unique<host_driver>(on, each.process, each.device));
    }
  }

  std::size_t size() const { return drivers_.size(); }
  host_driver& driver(std::size_t rank) { return *drivers_[rank]; }
  ipc::driver_context<host_driver> place(std::size_t rank) {
    return {&driver(rank),
            reinterpret_cast<ipc::context_handle>(static_cast<std::uintptr_t>(driver(rank).device()) + 1)};
  }
  hocket::transport::exchange_function exchange(std::size_t rank) {
    return [this, rank](std::span<const std::byte> blob) {
      return world_->exchange(static_cast<int>(rank), blob, hocket::deadline::after(std::chrono::seconds(30)));
    };
  }

  /// Runs `body(rank)` on one thread per rank. An exception is a failure of the test.
  void run(const std::function<void(std::size_t)>& body) {
    std::vector<std::string> thrown(size());
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < size(); ++rank) {
      threads.emplace_back([&, rank] {
        try {
          body(rank);
        } catch (const std::exception& problem) {
          thrown[rank] = problem.what();
        }
      });
    }
    for (std::thread& each : threads) each.join();
    for (const std::string& each : thrown) CHECK(each == "");
  }

 private:
  std::shared_ptr<hocket::local::world> world_;
  std::vector<std::unique_ptr<host_driver>> drivers_;
};

/// Checks that all mappings, memory, streams and events have been released.
inline void check_clean(host_machine& machine, processes& all) {
  CHECK(machine.allocated() == 0);
  CHECK(machine.freed_while_open == 0);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    CHECK(all.driver(rank).opens == all.driver(rank).closes);
    CHECK(all.driver(rank).bad_closes == 0);
    CHECK(all.driver(rank).pinned() == 0);
    CHECK(all.driver(rank).streams() == 0);
    CHECK(all.driver(rank).events() == 0);
  }
}

}  // namespace hocket_test
