// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Staging: copies device memory to the host and back, chunk by chunk, through pinned slots and on two separate
/// streams, so that copies in both directions and the host's work in between overlap.
///
/// The caller's stream is only ordered: its earlier work precedes the copies (`follow`), and its later work follows
/// them (`join`). A slot is reused or freed only when no copy uses it any more.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/transport/cuda_ipc/context_scope.hpp>
#include <hocket/transport/cuda_ipc/driver.hpp>
#include <hocket/transport/cuda_ipc/driver_status.hpp>
#include <hocket/transport/cuda_ipc/driver_types.hpp>
#include <hocket/transport/cuda_ipc/resources.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {

/// Number of chunks in flight: one in transit to the host, one there, one in transit back.
inline constexpr std::size_t staging_slots = 3;

/// The staging resources of one call at a time, in one context. All members except `open` and the destructor require
/// that the context is the thread's.
template <class Driver>
class staging_lane {
 public:
  staging_lane() = default;
  staging_lane(const staging_lane&) = delete;
  staging_lane& operator=(const staging_lane&) = delete;
  /// Waits at most a second for the copies, and frees the slots; otherwise they stay allocated until the process ends.
  ~staging_lane() {
    if (!quiet(deadline::after(std::chrono::seconds(1)))) abandon();
  }

  failure open(const driver_context<Driver>& at) {
    at_ = at;
    failure found = owned_stream<Driver>::make(at, down_);
    if (!found) found = owned_stream<Driver>::make(at, up_);
    for (owned_event<Driver>* each : {&begin_, &end_down_, &end_up_}) {
      if (!found) found = owned_event<Driver>::make(at, *each);
    }
    for (slot& each : slots_) {
      if (!found) found = owned_event<Driver>::make(at, each.filled);
      if (!found) found = owned_event<Driver>::make(at, each.emptied);
    }
    return found;
  }
  const driver_context<Driver>& at() const noexcept { return at_; }

  /// Orders later copies to the host after the earlier work of `stream`. Copies to the device come later still, because
  /// the host waits for `is_down` first.
  failure follow(stream_handle stream) {
    status returned = driver().event_record(begin_.get(), stream);
    if (returned == status::success) returned = driver().stream_wait_event(down_.get(), begin_.get(), 0U);
    return driver_failure("ordering the copies after the stream's earlier work", returned);
  }
  /// Orders later work of `stream` after the copies to the device.
  failure join(stream_handle stream) { return join(stream, up_, end_up_); }
  /// Like `join`, but also orders after the copies to the host.
  failure join_both(stream_handle stream) {
    failure found = join(stream, up_, end_up_);
    failure other = join(stream, down_, end_down_);
    return found ? found : other;
  }

  /// Sets `ready` to whether slot `which` is free; if so, ensures that it has at least `bytes`.
  failure prepare(std::size_t which, std::size_t bytes, bool& ready) {
    slot& one = slots_[which];
    failure found = over(one.emptied, ready);
    if (found || !ready || bytes <= one.bytes) return found;
    one.bytes = 0;
    if ((found = one.memory.destroy())) return found;
    const std::size_t wanted = bytes <= most_rounded ? std::bit_ceil(std::max(bytes, least_bytes))
                                                     : (bytes + least_bytes - 1) / least_bytes * least_bytes;
    if ((found = pinned_memory<Driver>::make(at_, one.memory, wanted))) return found;
    one.bytes = wanted;
    return {};
  }
  std::byte* memory(std::size_t which) const noexcept { return static_cast<std::byte*>(slots_[which].memory.get()); }

  failure copy_down(void* to, const void* from, std::size_t bytes) { return copy(to, from, bytes, down_); }
  failure copy_up(void* to, const void* from, std::size_t bytes) { return copy(to, from, bytes, up_); }
  /// Call after the copies of a slot in one direction.
  failure note_down(std::size_t which) { return note(slots_[which].filled, down_); }
  failure note_up(std::size_t which) { return note(slots_[which].emptied, up_); }
  failure is_down(std::size_t which, bool& ready) { return over(slots_[which].filled, ready); }

  /// Waits until no copy is in flight. Returns false at `until`, or if the driver does not confirm it.
  bool quiet(const deadline& until) noexcept {
    if (!down_ && !up_) return true;
    const context_scope scope(driver(), at_.where);
    return is_quiet(down_, until) && is_quiet(up_, until);
  }

 private:
  static constexpr std::size_t least_bytes = std::size_t{1} << 16;   // so that slots seldom grow
  static constexpr std::size_t most_rounded = std::size_t{8} << 20;  // to a power of two

  struct slot {
    pinned_memory<Driver> memory;
    std::size_t bytes = 0;
    owned_event<Driver> filled;
    owned_event<Driver> emptied;
  };

  Driver& driver() const noexcept { return *at_.through; }
  failure driver_failure(std::string_view what, status returned) const {
    return returned == status::success ? failure() : status_failure(driver(), what, returned);
  }
  failure note(const owned_event<Driver>& event, const owned_stream<Driver>& stream) {
    return driver_failure("recording an event after a copy", driver().event_record(event.get(), stream.get()));
  }
  failure copy(void* to, const void* from, std::size_t bytes, const owned_stream<Driver>& stream) {
    return driver_failure(
        "copying between device and host",
        driver().memcpy_async(reinterpret_cast<address>(to), reinterpret_cast<address>(from), bytes, stream.get()));
  }
  failure join(stream_handle stream, const owned_stream<Driver>& own, const owned_event<Driver>& end) {
    status returned = driver().event_record(end.get(), own.get());
    if (returned == status::success) returned = driver().stream_wait_event(stream, end.get(), 0U);
    return driver_failure("ordering the stream's later work after the copies", returned);
  }
  failure over(const owned_event<Driver>& event, bool& ready) {
    const status returned = driver().event_query(event.get());
    ready = returned == status::success;
    return ready || returned == status::not_ready
               ? failure()
               : driver_failure("waiting for a copy between device and host", returned);
  }
  /// Queries again after an error, because the driver may return an error of earlier work.
  bool is_quiet(const owned_stream<Driver>& stream, const deadline& until) noexcept {
    if (!stream) return true;
    for (int complaints = 0; complaints < 3;) {
      const status returned = driver().stream_query(stream.get());
      if (returned == status::success) return true;
      if (returned != status::not_ready) {
        ++complaints;
      } else if (until.passed()) {
        return false;
      } else {
        std::this_thread::yield();
      }
    }
    return false;
  }
  void abandon() noexcept {
    for (slot& each : slots_) {
      each.memory.abandon();
      each.filled.abandon();
      each.emptied.abandon();
    }
    for (owned_event<Driver>* each : {&begin_, &end_down_, &end_up_}) each->abandon();
    down_.abandon();
    up_.abandon();
  }

  driver_context<Driver> at_;
  owned_stream<Driver> down_;  ///< to the host
  owned_stream<Driver> up_;    ///< to the device
  owned_event<Driver> begin_, end_down_, end_up_;
  std::array<slot, staging_slots> slots_;
};

/// The driver, and the lanes that a communicator's later calls reuse.
template <class Driver>
class staging_lanes {
 public:
  using lane_type = staging_lane<Driver>;

  /// Uses the caller's driver if given; otherwise sets `through` to this machine's driver, loaded on first use.
  failure find(Driver*& through) {
    if (through != nullptr) return {};
    if constexpr (std::is_same_v<Driver, driver>) {
      failure why;
      if (!loaded_) loaded_ = driver::load(why);
      through = loaded_ ? &*loaded_ : nullptr;
      return why;
    } else {
      return make_failure(errc::invalid_argument, "stream_of has no driver: set its member `through`");
    }
  }

  failure acquire_lane(const driver_context<Driver>& at, std::unique_ptr<lane_type>& result) {
    for (auto& each : free_) {
      if (each->at().through != at.through || each->at().where != at.where) continue;
      result = std::move(each);
      std::swap(each, free_.back());
      free_.pop_back();
      return {};
    }
    auto made = std::make_unique<lane_type>();
    failure found = made->open(at);
    if (!found) result = std::move(made);
    return found;
  }
  /// Stores a lane for later calls; destroys it if there is no memory for that.
  void return_lane(std::unique_ptr<lane_type> lane) noexcept {
#if HOCKET_HAS_EXCEPTIONS
    try {
      free_.push_back(std::move(lane));
    } catch (const std::bad_alloc&) {}
#else
    free_.push_back(std::move(lane));
#endif
  }

 private:
  std::optional<Driver> loaded_;
  std::vector<std::unique_ptr<lane_type>> free_;
};

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
