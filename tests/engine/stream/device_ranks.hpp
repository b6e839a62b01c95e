// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Ranks whose devices are host memory and whose streams are queues: see tests/transport/cuda_ipc/host_driver.hpp.
/// Each rank is a thread; a number states to which process it belongs.
#pragma once

#include "support/catch.hpp"
#include "transport/cuda_ipc/host_driver.hpp"
#include "transport/cuda_ipc/host_queue.hpp"
#include "transport/cuda_ipc/processes.hpp"
#include "transport/cuda_ipc/silent_calls.hpp"

#include <hocket/core/deadline.hpp>
#include <hocket/engine/stream/operation.hpp>
#include <hocket/kernel/device/stream_kernel.hpp>
#include <hocket/kernel/host/element_kernel.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/transport/cuda_ipc/group.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hocket_test {

using device_group = ipc::group<host_driver>;
using device_operation = hocket::detail::stream_operation<host_driver>;

inline hocket::deadline soon(std::chrono::milliseconds limit = std::chrono::seconds(20)) {
  return hocket::deadline::after(limit);
}

/// Combines contributions by the host's element kernels, between prepare and finish if the operation has these.
template <class Op, class T>
void combine_on_host(const Op& op, void* to, const std::vector<const void*>& from, std::size_t count) {
  using reduction = hocket::reduction<Op, T>;
  if constexpr (reduction::prepares) {
    using partial = typename reduction::partial;
    std::vector<std::vector<partial>> prepared;
    std::vector<const void*> sources;
    for (const void* const each : from) {
      prepared.emplace_back();
      for (std::size_t i = 0; i < count; ++i) {
        prepared.back().push_back(reduction::prepare(op, static_cast<const T*>(each)[i]));
      }
    }
    for (const auto& each : prepared) sources.push_back(each.data());
    std::vector<partial> sums = prepared[0];
    if (from.size() > 1) {
      hocket::kernel::element_kernel_of<Op, T>.combine_many(&op, sums.data(), sources.data(), sources.size(), count);
    }
    for (std::size_t i = 0; i < count; ++i) {
      static_cast<T*>(to)[i] = reduction::finish(op, sums[i], static_cast<int>(from.size()));
    }
  } else {
    hocket::kernel::element_kernel_of<Op, T>.combine_many(&op, to, from.data(), from.size(), count);
  }
}

/// Enqueues a combination, as a kernel launch does on a device.
template <class Op, class T>
hocket::failure combine_on_queue(void* stream, const void* op, void* to, const void* const* from, std::size_t sources,
                                 std::size_t count) {
  const Op copied = *static_cast<const Op*>(op);
  const std::vector<const void*> all(from, from + sources);
  const std::size_t bytes = count * sizeof(T);
  std::vector<host_queue::range> touched{{reinterpret_cast<ipc::address>(to), bytes}};
  for (const void* const each : all) touched.push_back({reinterpret_cast<ipc::address>(each), bytes});
  host_queue::of(static_cast<ipc::stream_handle>(stream))
      .push(
          [=] {
            combine_on_host<Op, T>(copied, to, all, count);
            return true;
          },
          touched);
  return {};
}

/// Like `combine_on_queue`, with the result for all ranks.
template <class Op, class T>
hocket::failure combine_to_all_on_queue(void* stream, const void* op, void* const* to, const void* const* from,
                                        std::size_t ranks, std::size_t count) {
  const Op copied = *static_cast<const Op*>(op);
  const std::vector<const void*> sources(from, from + ranks);
  const std::vector<void*> destinations(to, to + ranks);
  const std::size_t bytes = count * sizeof(T);
  std::vector<host_queue::range> touched;
  for (const void* const each : sources) touched.push_back({reinterpret_cast<ipc::address>(each), bytes});
  for (void* const each : destinations) touched.push_back({reinterpret_cast<ipc::address>(each), bytes});
  host_queue::of(static_cast<ipc::stream_handle>(stream))
      .push(
          [=] {
            std::vector<std::byte> result(bytes);
            combine_on_host<Op, T>(copied, result.data(), sources, count);
            for (void* const each : destinations) std::memcpy(each, result.data(), bytes);
            return true;
          },
          touched);
  return {};
}

template <class Op, class T>
inline constexpr hocket::kernel::stream_kernel queue_kernel_of{.size = sizeof(T),
                                                               .finishes = hocket::reduction<Op, T>::prepares,
                                                               .most_sources = 256,
                                                               .combine_many = &combine_on_queue<Op, T>,
                                                               .most_fused = 128,
                                                               .to_all = &combine_to_all_on_queue<Op, T>};

/// A rank in the body of a test.
class device_rank {
 public:
  device_rank(processes& all, std::size_t rank) : all_(all), rank_(rank) {}

  int rank() const { return static_cast<int>(rank_); }
  int size() const { return static_cast<int>(all_.size()); }
  host_driver& driver() { return all_.driver(rank_); }
  hocket::transport::exchange_function exchange() { return all_.exchange(rank_); }

  hocket::failure join(
      std::chrono::milliseconds drain = std::chrono::seconds(2),
      std::function<bool(int)> has_ended = [](int) { return false; }) {
    return device_group::make(all_.place(rank_), rank(), size(), exchange(),
                              {.device = driver().device(),
                               .process = driver().mark(),
                               .until = soon(),
                               .stream = works_on,
                               .connections = 32,
                               .batches = batches,
                               .has_ended = std::move(has_ended),
                               .drain = drain},
                              group_);
  }
  bool batches = true;
  ipc::stream_handle works_on = nullptr;  ///< stream that the group gets
  device_group& group() { return *group_; }
  bool joined() const { return group_ != nullptr; }

  // Driver calls of the test itself are tried twice, because an injected fault is meant for the library.
  ipc::stream_handle stream(unsigned flags = ipc::stream_non_blocking) {
    ipc::stream_handle made = nullptr;
    if (driver().stream_create(&made, flags) != status::success) driver().stream_create(&made, flags);
    streams_.push_back(made);
    return made;
  }
  template <class T>
  T* allocate(std::size_t count) {
    ipc::address at = 0;
    if (driver().mem_alloc(&at, (count + 1) * sizeof(T)) != status::success) {
      driver().mem_alloc(&at, (count + 1) * sizeof(T));
    }
    buffers_.push_back(at);
    std::memset(reinterpret_cast<void*>(at), 0xa5, (count + 1) * sizeof(T));
    return reinterpret_cast<T*>(at);
  }
  template <class T>
  T* upload(const std::vector<T>& values) {
    T* const at = allocate<T>(values.size());
    if (!values.empty()) std::memcpy(static_cast<void*>(at), values.data(), values.size() * sizeof(T));
    return at;
  }

  hocket::failure bind(hocket::detail::stream_binding what, std::unique_ptr<device_operation>& result) {
    return device_operation::bind(*group_, std::move(what), exchange(), result);
  }

  /// Frees everything, like the end of a program.
  void free_all() {
    for (const ipc::stream_handle each : streams_) driver().stream_destroy(each);
    for (const ipc::address each : buffers_) driver().mem_free(each);
    streams_.clear();
    buffers_.clear();
  }
  void leave() { group_.reset(); }

 private:
  processes& all_;
  const std::size_t rank_;
  std::unique_ptr<device_group> group_;
  std::vector<ipc::stream_handle> streams_;
  std::vector<ipc::address> buffers_;
};

enum class kind_of_ranks {
  threads,
  processes,
  pairs  ///< two threads in each process, on different devices
};

/// Ranks that are created, used and ended together; no resources may be left.
class device_ranks {
 public:
  explicit device_ranks(int ranks, kind_of_ranks kind = kind_of_ranks::processes) : all_(machine, places(ranks, kind)) {
    for (std::size_t rank = 0; rank < all_.size(); ++rank) {
      all_.driver(rank).queue_streams();
      ranks_.push_back(std::make_unique<device_rank>(all_, rank));
    }
  }

  /// Runs `body(rank)` on one thread for each rank.
  void run(const std::function<void(device_rank&)>& body) {
    all_.run([&](std::size_t rank) { body(*ranks_[rank]); });
  }

  /// Lets ranks write and await each word by a separate driver call.
  void without_batches() {
    for (const auto& each : ranks_) each->batches = false;
  }

  /// Like `run`, with a group that is closed afterwards; a failure, or a text that `body` returns, fails the test.
  void run_in_group(const std::function<std::string(device_rank&)>& body) {
    std::vector<std::string> complaints(all_.size());
    run([&](device_rank& me) {
      std::string& text = complaints[static_cast<std::size_t>(me.rank())];
      hocket::failure found = me.join();
      if (!found) text = body(me);
      if (!found) found = me.group().close(soon());
      me.leave();
      me.free_all();
      if (found) text += found.message();
    });
    for (const std::string& each : complaints) CHECK(each == "");
    check_clean(machine, all_);
    CHECK(machine.freed_while_used == 0);
    for (std::size_t rank = 0; rank < all_.size(); ++rank) {
      CHECK(all_.driver(rank).events() == 0);
      CHECK(all_.driver(rank).destroyed_while_busy == 0);
    }
  }

  device_rank& operator[](std::size_t rank) { return *ranks_[rank]; }
  processes& drivers() { return all_; }

  host_machine machine{2};

 private:
  static std::vector<where_rank_runs> places(int ranks, kind_of_ranks kind) {
    std::vector<where_rank_runs> result;
    for (int rank = 0; rank < ranks; ++rank) {
      switch (kind) {
        case kind_of_ranks::threads: result.push_back({1, 0}); break;
        case kind_of_ranks::processes: result.push_back({rank + 1, 0}); break;
        case kind_of_ranks::pairs: result.push_back({rank / 2 + 1, rank % 2}); break;
      }
    }
    return result;
  }

  processes all_;
  std::vector<std::unique_ptr<device_rank>> ranks_;
};

}  // namespace hocket_test
