// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A cache of mappings of peers' memory. Opening a handle costs up to a millisecond, so each allocation is mapped once,
/// however many buffers it contains. But mappings become stale: a peer frees memory without notice and allocates other
/// memory at the same address; reading the old mapping is then undefined. So mappings are found only by process,
/// address and generation, and a mapping that overlaps a newer allocation is closed.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/transport/cuda_ipc/context_scope.hpp>
#include <hocket/transport/cuda_ipc/driver_status.hpp>
#include <hocket/transport/cuda_ipc/driver_types.hpp>
#include <hocket/transport/cuda_ipc/memory_handle.hpp>
#include <hocket/transport/cuda_ipc/process_mark.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {

/// The mappings of one context.
///
/// **Threads.** Thread-safe. **Lifetime.** Must outlive its leases; driver and context must outlive it.
template <class Driver>
class mapping_cache {
  struct mapping {
    std::uint64_t size = 0;
    std::uint64_t generation = 0;
    address at = 0;
    unsigned users = 0;
    std::uint64_t last_use = 0;
    bool retired = false;
  };

 public:
  static constexpr std::size_t default_most = 256;

  /// A buffer of a peer that stays mapped during the lifetime of this object. Movable.
  class lease {
   public:
    lease() noexcept = default;
    lease(lease&& other) noexcept { swap(other); }
    lease& operator=(lease&& other) noexcept {
      lease taken(std::move(other));
      swap(taken);
      return *this;
    }
    ~lease() {
      if (used_ != nullptr) from_->release(*used_);
    }

    /// Returns the buffer's address in this process; 0 if there is none.
    address data() const noexcept { return data_; }

    /// Leaves the buffer mapped permanently, because work on it does not end.
    void abandon() noexcept {
      used_ = nullptr;
      data_ = 0;
    }

   private:
    friend mapping_cache;
    void swap(lease& other) noexcept {
      std::swap(from_, other.from_);
      std::swap(used_, other.used_);
      std::swap(data_, other.data_);
    }

    mapping_cache* from_ = nullptr;
    mapping* used_ = nullptr;  ///< null: this process's own memory
    address data_ = 0;
  };

  /// Retains at most `most` unused mappings.
  mapping_cache(Driver& through, context_handle where, const process_mark& own, std::size_t most = default_most)
      : through_(through), context_(where), own_(own), most_(most) {}
  mapping_cache(const mapping_cache&) = delete;
  mapping_cache& operator=(const mapping_cache&) = delete;
  ~mapping_cache() { close_all(); }

  /// Opens the buffer that a peer described. Local; a lookup, or the opening of a mapping. This process's own memory is
  /// not opened, because its address is valid here. If the driver has no room, closes unused mappings and tries once
  /// more. `unreachable` if the memory can't be opened: it must be staged; `what` is then unchanged.
  failure open(const memory_handle& of, lease& what) {
    if (!of.sound())
      return make_failure(errc::invalid_argument, "a peer sent a memory handle whose buffer exceeds its allocation");
    lease made;
    made.data_ = of.base + of.offset;
    if (!own_.same_process(of.process)) {
      const std::lock_guard guard(lock_);
      failure cause;
      mapping* const found = found_or_opened(of, cause);
      if (found == nullptr) return cause;
      ++found->users;
      found->last_use = ++uses_;
      made.from_ = this;
      made.used_ = found;
      made.data_ = found->at + of.offset;
    }
    what = std::move(made);
    return {};
  }

  /// Closes all mappings. Fails if some are in use, which are closed after their last use, or if the driver has
  /// reported an error on closing since the previous call.
  failure close_all() {
    const std::lock_guard guard(lock_);
    while (!mappings_.empty()) retire(mappings_.begin());
    failure result = std::exchange(close_failure_, failure());
    if (!retired_.empty() && !result) {
      result = make_failure(errc::invalid_argument,
                            hocket::detail::concat({retired_.size(),
                                                    " mappings of peers' memory are in use: end the operations that "
                                                    "use them first"}));
    }
    return result;
  }

  /// Closes the mappings of a process that has ended; those in use are closed after their last use.
  void forget(const process_mark& ended) {
    const std::lock_guard guard(lock_);
    auto each = mappings_.lower_bound({ended, 0});
    while (each != mappings_.end() && each->first.process == ended) each = retire(each);
  }

  /// Returns the number of mappings, in use or not.
  std::size_t size() const {
    const std::lock_guard guard(lock_);
    return mappings_.size() + retired_.size();
  }

 private:
  struct key {
    process_mark process;
    std::uint64_t base = 0;
    friend auto operator<=>(const key&, const key&) = default;
  };
  using table = std::map<key, std::unique_ptr<mapping>>;

  // The caller must hold the lock for all of these.

  mapping* found_or_opened(const memory_handle& of, failure& cause) {
    const auto known = mappings_.find({of.process, of.base});
    if (known != mappings_.end() && known->second->generation == of.generation && known->second->size == of.size) {
      return known->second.get();
    }
    retire_overlapped(of);
    while (mappings_.size() >= most_ && evict_oldest()) {}
    auto made = std::make_unique<mapping>(mapping{of.size, of.generation});
    cause = mapped(of, made->at);
    if (cause) return nullptr;
    return mappings_.insert_or_assign(key{of.process, of.base}, std::move(made)).first->second.get();
  }

  /// Retires mappings that overlap `of`: their memory has been freed, or `of` could not be there.
  void retire_overlapped(const memory_handle& of) {
    auto each = mappings_.lower_bound({of.process, of.base});
    if (each != mappings_.begin()) {
      const auto before = std::prev(each);
      if (before->first.process == of.process && of.base - before->first.base < before->second->size) each = before;
    }
    while (each != mappings_.end() && each->first.process == of.process &&
           (each->first.base < of.base || each->first.base - of.base < of.size)) {
      each = retire(each);
    }
  }

  failure mapped(const memory_handle& of, address& at) {
    const context_scope scope(through_, context_);
    if (failure found = scope.refused()) return found;
    status returned = through_.ipc_open_mem_handle(&at, of.allocation, open_with_peer_access);
    const bool no_room =
        returned == status::out_of_memory || returned == status::map_failed || returned == status::too_many_peers;
    if (no_room && evict_oldest()) {
      while (evict_oldest()) {}
      returned = through_.ipc_open_mem_handle(&at, of.allocation, open_with_peer_access);
    }
    return returned == status::success ? failure() : status_failure(through_, "opening a peer's memory", returned);
  }

  /// Retires the unused mapping that was least recently used. Returns false if there is none.
  bool evict_oldest() {
    auto oldest = mappings_.end();
    for (auto each = mappings_.begin(); each != mappings_.end(); ++each) {
      if (each->second->users != 0) continue;
      if (oldest == mappings_.end() || each->second->last_use < oldest->second->last_use) oldest = each;
    }
    if (oldest == mappings_.end()) return false;
    retire(oldest);
    return true;
  }

  /// Removes a mapping from the table. It is closed now, or by the release of its last user.
  typename table::iterator retire(typename table::iterator which) {
    std::unique_ptr<mapping> taken = std::move(which->second);
    const auto next = mappings_.erase(which);
    if (taken->users == 0) {
      close(*taken);
    } else {
      taken->retired = true;
      retired_.push_back(std::move(taken));
    }
    return next;
  }

  void release(mapping& which) {
    const std::lock_guard guard(lock_);
    if (--which.users != 0) return;
    if (which.retired) {
      close(which);
      std::erase_if(retired_, [&](const auto& each) { return each.get() == &which; });
    } else if (mappings_.size() > most_) {
      evict_oldest();
    }
  }

  void close(const mapping& which) {
    const context_scope scope(through_, context_);
    const status returned = through_.ipc_close_mem_handle(which.at);
    if (returned != status::success && !close_failure_)
      close_failure_ = status_failure(through_, "closing a peer's memory", returned);
  }

  Driver& through_;
  const context_handle context_;
  const process_mark own_;
  const std::size_t most_;
  mutable std::mutex lock_;
  table mappings_;
  std::vector<std::unique_ptr<mapping>> retired_;
  failure close_failure_;  ///< first error that the driver reported on closing
  std::uint64_t uses_ = 0;
};

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
