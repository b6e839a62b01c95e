// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Checks how the steps of ranks can be ordered on their streams. A kernel that spins for another process may keep that
/// process's kernel off the device forever; a stream that waits for a word blocks no other work. Whether streams can
/// wait for words depends on device and driver, so the driver is queried, and then tested.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/transport/cuda_ipc/context_scope.hpp>
#include <hocket/transport/cuda_ipc/driver_status.hpp>
#include <hocket/transport/cuda_ipc/driver_types.hpp>
#include <hocket/transport/cuda_ipc/resources.hpp>

#include <cstdint>
#include <cstring>
#include <string>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {

/// Capabilities of the streams of one device.
struct stream_order {
  bool words = false;    ///< streams can write words of 4 bytes, and wait for them
  bool flushes = false;  ///< a wait can be followed by a flush of remote writes: `wait_then_flush`
  std::string why_not;   ///< reason if streams can't wait for words
};

namespace detail {

/// Writes a word on a stream, waits for it there, and checks it.
template <class Driver>
class word_trial {
 public:
  word_trial(const driver_context<Driver>& at, const deadline& until) : at_(at), until_(until) {}

  failure operator()() {
    const context_scope scope(*at_.through, at_.where);
    if (failure found = scope.refused()) return found;
    if (failure found = make()) return found;
    constexpr std::uint32_t value = 0x76543210U;
    status returned = in_order(value);
    if (returned == status::success) {
      returned = at_.through->memcpy_async(address_of(copy_), word_.get(), sizeof value, stream_.get());
    }
    bool idle = false;
    const failure waiting =
        finish(*at_.through, stream_.get(), until_, idle);  // for what was queued before an error, too
    if (!idle) abandon_memory();
    if (returned != status::success)
      return status_failure(*at_.through, "enqueueing a test write to device memory and a wait for it", returned);
    if (!idle || waiting) return waiting;
    std::uint32_t seen = 0;
    std::memcpy(&seen, copy_.get(), sizeof seen);
    return seen == value ? failure()
                         : make_failure(errc::corrupted, "a stream wrote a wrong word into device memory in a test");
  }

 private:
  static address address_of(const pinned_memory<Driver>& of) noexcept { return reinterpret_cast<address>(of.get()); }

  failure make() {
    failure found = device_memory<Driver>::make(at_, word_, sizeof(std::uint32_t));
    if (!found) found = pinned_memory<Driver>::make(at_, copy_, sizeof(std::uint32_t));
    if (!found) found = owned_stream<Driver>::make(at_, stream_);
    return found;
  }

  status in_order(std::uint32_t value) {
    const status returned = at_.through->stream_write_value_32(stream_.get(), word_.get(), value, 0U);
    if (returned != status::success) return returned;
    return at_.through->stream_wait_value_32(stream_.get(), word_.get(), value, wait_until_at_least);
  }

  void abandon_memory() noexcept {
    word_.abandon();
    copy_.abandon();
    stream_.abandon();
  }

  const driver_context<Driver> at_;
  const deadline until_;
  device_memory<Driver> word_;
  pinned_memory<Driver> copy_;
  owned_stream<Driver> stream_;
};

}  // namespace detail

/// Returns the capabilities of streams of the context `at`. Local; call once per domain. Never fails: a missing
/// capability has its reason in `why_not`. What a trial uses that does not end by `until` stays until the process ends.
template <class Driver>
stream_order stream_order_of(const driver_context<Driver>& at, device_number device, const deadline& until) {
  stream_order result;
  int flushes = 0;
  const status returned = at.through->device_get_attribute(&flushes, device_attribute::flush_remote_writes, device);
  result.flushes = flushes != 0;
  // Without the flush, if supported, a wait could end before remote writes are visible.
  const failure missing =
      returned == status::success
          ? detail::word_trial<Driver>(at, until)()
          : status_failure(*at.through, "asking the driver whether waits can flush remote writes", returned);
  result.words = !missing;
  if (missing) result.why_not = missing.message();
  return result;
}

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
