// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Memory that other processes can load from and store to, and their view of it.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/transport/ucx/endpoint.hpp>
#include <hocket/transport/ucx/status.hpp>
#include <hocket/transport/ucx/worker.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// Owned by this process. Zeroed. Movable.
class memory {
 public:
  memory() = default;
  /// Raises `out_of_memory` if UCX can't allocate.
  memory(std::shared_ptr<worker> through, std::size_t bytes) : worker_(std::move(through)) {
    const std::lock_guard guard(worker_->lock());
    ucp_mem_map_params_t wanted{};
    wanted.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    wanted.length = bytes;
    wanted.flags = UCP_MEM_MAP_ALLOCATE;
    const ucs_status_t status = ucp_mem_map(worker_->library(), &wanted, &handle_);
    if (status != UCS_OK) raise(cannot_allocate(bytes, status));
    ucp_mem_attr_t found{};
    found.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH;
    ucp_mem_query(handle_, &found);
    data_ = static_cast<std::byte*>(found.address);
    size_ = bytes;
    zero();
  }
  memory(memory&& other) noexcept
      : worker_(std::move(other.worker_)),
        handle_(std::exchange(other.handle_, nullptr)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  memory& operator=(memory&& other) noexcept {
    std::swap(worker_, other.worker_);
    std::swap(handle_, other.handle_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~memory() {
    if (handle_ == nullptr) return;
    const std::lock_guard guard(worker_->lock());
    ucp_mem_unmap(worker_->library(), handle_);
  }

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }

  /// What a peer needs for `peer_memory`: its address here, and UCX's key.
  std::vector<std::byte> ticket() const {
    const std::lock_guard guard(worker_->lock());
    void* key = nullptr;
    std::size_t key_size = 0;
    check(ucp_rkey_pack(worker_->library(), handle_, &key, &key_size), "UCX can't offer memory to other ranks");
    const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(data_));
    std::vector<std::byte> result(sizeof address + key_size);
    std::memcpy(result.data(), &address, sizeof address);
    std::memcpy(result.data() + sizeof address, key, key_size);
    ucp_rkey_buffer_release(key);
    return result;
  }

 private:
  static failure cannot_allocate(std::size_t bytes, ucs_status_t status) {
    const std::string room = shared_memory_text();
    failure cause = status_failure("no " + std::to_string(bytes) + " bytes of memory that other ranks can reach" +
                                       (room.empty() ? "" : " (" + room + ")"),
                                   status);
    cause.code = make_error_code(errc::out_of_memory);
    return cause;
  }

  /// Shared memory comes zeroed, page by page, when it is touched: only what is there already needs it, so that staging
  /// which is never used costs nothing.
  void zero() noexcept {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const auto begin = reinterpret_cast<std::uintptr_t>(data_);
    if (begin % page != 0) {
      std::memset(data_, 0, size_);
      return;
    }
    const std::size_t pages = (size_ + page - 1) / page;
    std::vector<unsigned char> resident(pages);
    if (::mincore(data_, size_, resident.data()) != 0) resident.assign(pages, 1);
    for (std::size_t i = 0; i < pages; ++i) {
      if ((resident[i] & 1U) != 0) std::memset(data_ + i * page, 0, std::min(page, size_ - i * page));
    }
  }

  std::shared_ptr<worker> worker_;
  ucp_mem_h handle_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// A peer's `memory` as seen from here: stays mapped, and readable, when the peer has freed it or died. Movable.
class peer_memory {
 public:
  peer_memory() = default;
  peer_memory(peer_memory&& other) noexcept
      : worker_(std::move(other.worker_)),
        key_(std::exchange(other.key_, nullptr)),
        data_(std::exchange(other.data_, nullptr)) {}
  peer_memory& operator=(peer_memory&& other) noexcept {
    std::swap(worker_, other.worker_);
    std::swap(key_, other.key_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~peer_memory() {
    if (key_ == nullptr) return;
    const std::lock_guard guard(worker_->lock());
    ucp_rkey_destroy(key_);
  }

  /// False if it can't be reached with loads and stores.
  bool open(const std::shared_ptr<worker>& through, const endpoint& link, std::span<const std::byte> ticket) {
    std::uint64_t address = 0;
    if (ticket.size() <= sizeof address) return false;
    std::memcpy(&address, ticket.data(), sizeof address);
    const std::lock_guard guard(through->lock());
    if (ucp_ep_rkey_unpack(link.get(), ticket.data() + sizeof address, &key_) != UCS_OK) {
      key_ = nullptr;
      return false;
    }
    worker_ = through;
    void* here = nullptr;
    if (ucp_rkey_ptr(key_, address, &here) != UCS_OK) return false;
    data_ = static_cast<std::byte*>(here);
    return true;
  }

  std::byte* data() const noexcept { return data_; }

 private:
  std::shared_ptr<worker> worker_;
  ucp_rkey_h key_ = nullptr;
  std::byte* data_ = nullptr;
};

}  // namespace ucx
HOCKET_END_NAMESPACE
