// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Buffers from which messages are sent. UCX can't learn that the memory of a message has moved, but it can ask for the
/// bytes when it sends them: those of an abandoned buffer come from a copy. So the peer receives the bytes that were
/// sent, not what the caller has written since.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/transport/ucx/status.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <ucp/api/ucp.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// Members are called with the worker's lock held, so that UCX does not read a buffer while it is being abandoned.
class send_buffer {
 public:
  /// Up to this size a copy costs less than UCX's requests for the bytes.
  static constexpr std::size_t most_copied = 1024;

  void fill(const void* data, std::size_t bytes) noexcept {
    data_ = static_cast<const std::byte*>(data);
    bytes_ = bytes;
    saved_.reset();
    if (!copied() || bytes == 0) return;
    std::memcpy(copy_.data(), data, bytes);
    data_ = copy_.data();
  }
  bool copied() const noexcept { return bytes_ <= most_copied; }
  const std::byte* copy() const noexcept { return copy_.data(); }
  std::size_t bytes() const noexcept { return bytes_; }

  /// Copies the bytes, so that the caller's memory is no longer read. Returns false if memory is exhausted.
  bool save_bytes() noexcept {
    if (copied()) return true;
    saved_.reset(new (std::nothrow) std::byte[bytes_]);
    if (saved_ == nullptr) return false;
    std::memcpy(saved_.get(), data_, bytes_);
    data_ = saved_.get();
    return true;
  }

  /// Copies to `place`. Returns `bytes`, as UCX requires.
  std::size_t put(std::size_t begin, void* place, std::size_t bytes) const noexcept {
    std::memcpy(place, data_ + begin, bytes);
    return bytes;
  }

 private:
  const std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::array<std::byte, most_copied> copy_;
  std::unique_ptr<std::byte[]> saved_;  ///< copy of an abandoned message
};

/// UCX datatype of send buffers. Must outlive the worker that sends them: the worker's destruction calls it for
/// messages that UCX could never send.
class send_buffer_type {
 public:
  send_buffer_type() {
    ucp_generic_dt_ops_t how{};
    how.start_pack = [](void*, const void* one, std::size_t) { return const_cast<void*>(one); };
    how.start_unpack = [](void*, void* one, std::size_t) { return one; };
    how.packed_size = [](void* one) { return static_cast<const send_buffer*>(one)->bytes(); };
    how.pack = [](void* one, std::size_t begin, void* place, std::size_t room) {
      const auto& from = *static_cast<const send_buffer*>(one);
      return from.put(begin, place, std::min(room, from.bytes() - begin));
    };
    how.unpack = [](void*, std::size_t, const void*, std::size_t) { return UCS_ERR_UNSUPPORTED; };
    how.finish = [](void*) {};  // the buffer may no longer exist
    check(ucp_dt_create_generic(&how, nullptr, &handle_), "UCX can't create the datatype of send buffers");
  }
  send_buffer_type(const send_buffer_type&) = delete;
  send_buffer_type& operator=(const send_buffer_type&) = delete;
  ~send_buffer_type() {
    if (!kept_) ucp_dt_destroy(handle_);
  }

  ucp_datatype_t get() const noexcept { return handle_; }
  /// Leaves the datatype in place until the process ends.
  void keep() noexcept { kept_ = true; }

 private:
  ucp_datatype_t handle_{};
  bool kept_ = false;
};

/// Pool of send buffers, which stores some for reuse.
class send_buffer_pool {
 public:
  using pointer = std::unique_ptr<send_buffer>;

  send_buffer_pool(const send_buffer_type& type, std::size_t most_spare) : type_(type.get()) {
    spare_.reserve(most_spare);
  }

  /// Returns null if memory is exhausted.
  pointer fill(const void* data, std::size_t bytes) noexcept {
    pointer one;
    if (spare_.empty()) {
      one.reset(new (std::nothrow) send_buffer);
    } else {
      one = std::move(spare_.back());
      spare_.pop_back();
    }
    if (one) one->fill(data, bytes);
    return one;
  }
  /// Returns a buffer that UCX no longer reads to the pool.
  void recycle(pointer one) noexcept {
    if (one && spare_.size() < spare_.capacity()) spare_.push_back(std::move(one));
  }

  /// @param confirmed whether the request ends only when the receiver has asked for the message
  ucs_status_ptr_t send(const send_buffer& one, ucp_ep_h to, ucp_tag_t tag, bool confirmed) const noexcept {
    const auto post = confirmed ? &ucp_tag_send_sync_nbx : &ucp_tag_send_nbx;
    ucp_request_param_t how{};
    if (one.copied()) return post(to, one.copy(), one.bytes(), tag, &how);
    how.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    how.datatype = type_;
    return post(to, &one, 1, tag, &how);
  }

 private:
  ucp_datatype_t type_;
  std::vector<pointer> spare_;
};

}  // namespace ucx
HOCKET_END_NAMESPACE
