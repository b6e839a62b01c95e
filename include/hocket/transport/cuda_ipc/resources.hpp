// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Owners of the driver's memory, streams and events, which release them on every return path. A resource that endless
/// work may still use can be abandoned, because freeing it would wait for that work.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/transport/cuda_ipc/context_scope.hpp>
#include <hocket/transport/cuda_ipc/driver_status.hpp>
#include <hocket/transport/cuda_ipc/driver_types.hpp>

#include <cstddef>
#include <string_view>
#include <thread>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {

/// A driver, and the context in which it is called. Both must outlive objects that refer to them.
template <class Driver>
struct driver_context {
  Driver* through = nullptr;
  context_handle where = nullptr;
};

/// One resource of the driver. `Kind` creates and releases it. Move-only.
template <class Driver, class Kind>
class resource {
 public:
  using value_type = typename Kind::value_type;

  resource() noexcept = default;
  resource(resource&& other) noexcept : from_(other.from_), value_(std::exchange(other.value_, value_type{})) {}
  resource& operator=(resource&& other) noexcept {
    resource taken(std::move(other));
    std::swap(from_, taken.from_);
    std::swap(value_, taken.value_);
    return *this;
  }
  ~resource() { destroy(); }

  template <class... Arguments>
  static failure make(const driver_context<Driver>& from, resource& result, Arguments... arguments) {
    resource made;
    made.from_ = from;
    const context_scope scope(*from.through, from.where);
    status returned = scope.entered();
    if (returned == status::success) returned = Kind::make(*from.through, made.value_, arguments...);
    if (returned != status::success) {
      made.abandon();
      return status_failure(*from.through, Kind::making, returned);
    }
    result = std::move(made);
    return {};
  }

  value_type get() const noexcept { return value_; }
  explicit operator bool() const noexcept { return value_ != value_type{}; }

  /// Releases the resource now. An error that the driver then returns may be that of earlier work.
  failure destroy() {
    if (value_ == value_type{}) return {};
    const context_scope scope(*from_.through, from_.where);
    const status returned = Kind::destroy(*from_.through, std::exchange(value_, value_type{}));
    return returned == status::success ? failure() : status_failure(*from_.through, Kind::destroying, returned);
  }

  /// Leaves the resource allocated until the process ends.
  void abandon() noexcept { value_ = value_type{}; }

 private:
  driver_context<Driver> from_;
  value_type value_{};
};

namespace detail {

struct device_memory_kind {
  using value_type = address;
  static constexpr std::string_view making = "allocating device memory";
  static constexpr std::string_view destroying = "freeing device memory";

  static status make(auto& through, address& result, std::size_t bytes) { return through.mem_alloc(&result, bytes); }
  static status destroy(auto& through, address which) { return through.mem_free(which); }
};

struct managed_memory_kind {
  using value_type = address;
  static constexpr std::string_view making = "allocating managed memory";
  static constexpr std::string_view destroying = "freeing managed memory";

  static status make(auto& through, address& result, std::size_t bytes) {
    return through.mem_alloc_managed(&result, bytes, managed_memory_global);
  }
  static status destroy(auto& through, address which) { return through.mem_free(which); }
};

struct pinned_memory_kind {
  using value_type = void*;
  static constexpr std::string_view making = "allocating pinned memory";
  static constexpr std::string_view destroying = "freeing pinned memory";

  static status make(auto& through, void*& result, std::size_t bytes) {
    return through.mem_host_alloc(&result, bytes, host_memory_portable);
  }
  static status destroy(auto& through, void* which) { return through.mem_free_host(which); }
};

struct stream_kind {
  using value_type = stream_handle;
  static constexpr std::string_view making = "creating a stream";
  static constexpr std::string_view destroying = "destroying a stream";

  static status make(auto& through, stream_handle& result) {
    return through.stream_create(&result, stream_non_blocking);
  }
  static status destroy(auto& through, stream_handle which) { return through.stream_destroy(which); }
};

struct event_kind {
  using value_type = event_handle;
  static constexpr std::string_view making = "creating an event";
  static constexpr std::string_view destroying = "destroying an event";

  static status make(auto& through, event_handle& result) {
    return through.event_create(&result, event_without_timing);
  }
  static status destroy(auto& through, event_handle which) { return through.event_destroy(which); }
};

}  // namespace detail

template <class Driver>
using device_memory = resource<Driver, detail::device_memory_kind>;
template <class Driver>
using managed_memory = resource<Driver, detail::managed_memory_kind>;
template <class Driver>
using pinned_memory = resource<Driver, detail::pinned_memory_kind>;
template <class Driver>
using owned_stream = resource<Driver, detail::stream_kind>;
template <class Driver>
using owned_event = resource<Driver, detail::event_kind>;

/// Waits until the work on `which` is done: `timeout` at `until`. An error that the driver returns may be that of other
/// work, so the stream is queried again, and the error is the result once it is idle. `idle` is true only if the stream
/// is certainly idle; otherwise the memory that it uses must not be freed.
template <class Driver>
failure finish(Driver& through, stream_handle which, const deadline& until, bool& idle) {
  constexpr int most_errors = 16;  // in a row: the context is broken, and returns only errors
  failure first;
  idle = false;
  for (int errors = 0; errors < most_errors;) {
    const status returned = through.stream_query(which);
    idle = returned == status::success;
    if (idle) return first;
    errors = returned == status::not_ready ? 0 : errors + 1;
    if (errors != 0 && !first) first = status_failure(through, "waiting for the work on a stream", returned);
    if (until.passed())
      return first ? first : make_failure(errc::timeout, "the work on a stream did not end before the deadline");
    std::this_thread::yield();
  }
  return first;
}

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
