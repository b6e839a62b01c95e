// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// By what the steps of ranks can be put in order on their streams. A kernel that spins for another process may keep that
/// process's kernel off the device for ever; a stream that waits for a word holds nothing back. Whether streams can wait
/// for words depends on device and driver, so it is asked, and then tried.
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

/// What the streams of one device can do.
struct stream_order {
  bool words = false;    ///< write words of 4 bytes, and wait for them
  bool flushes = false;  ///< a wait may be followed by a flush of what others have written: `wait_then_flush`
  std::string why_not;   ///< where streams can't wait for words: why
};

namespace detail {

/// Writes a word by way of a stream, waits for it there, and looks at it.
template <class Driver>
class word_trial {
 public:
  word_trial(const driver_context<Driver>& at, const deadline& until) : at_(at), until_(until) {}

  failure operator()() {
    const context_scope scope(*at_.through, at_.where);
    if (failure found = scope.refused()) return found;
    if (failure found = make()) return found;
    constexpr std::uint32_t value = 0x76543210U;
    status said = in_order(value);
    if (said == status::success) {
      said = at_.through->memcpy_async(address_of(copy_), word_.get(), sizeof value, stream_.get());
    }
    bool idle = false;
    const failure waiting =
        finish(*at_.through, stream_.get(), until_, idle);  // for what was queued before an error, too
    if (!idle) give_up();
    if (said != status::success) return status_failure(*at_.through, "ordering words on a stream", said);
    if (!idle || waiting) return waiting;
    std::uint32_t seen = 0;
    std::memcpy(&seen, copy_.get(), sizeof seen);
    return seen == value ? failure()
                         : make_failure(errc::corrupted, "a stream has written another word than it was to");
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
    const status said = at_.through->stream_write_value_32(stream_.get(), word_.get(), value, 0U);
    if (said != status::success) return said;
    return at_.through->stream_wait_value_32(stream_.get(), word_.get(), value, wait_until_at_least);
  }

  void give_up() noexcept {
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

/// What streams of the context `at` can do. Local; once per wire. Never fails: what does not work is not there, and
/// `why_not` says why; what a trial used that has not ended at `until` is left to the end of the process.
template <class Driver>
stream_order stream_order_of(const driver_context<Driver>& at, device_number device, const deadline& until) {
  stream_order result;
  int flushes = 0;
  const status said = at.through->device_get_attribute(&flushes, device_attribute::flush_remote_writes, device);
  result.flushes = flushes != 0;
  // Without the flush, where there is one, a wait could end before what others have written is there.
  const failure missing =
      said == status::success
          ? detail::word_trial<Driver>(at, until)()
          : status_failure(*at.through, "asking whether waits can flush what others have written", said);
  result.words = !missing;
  if (missing) result.why_not = missing.message();
  return result;
}

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
