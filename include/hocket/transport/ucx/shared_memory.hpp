// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Memory that all ranks of a communicator can read: one piece of each rank, mapped by all ranks.
///
/// Only the owner frees a piece. Peers map it until they see the owner's mark, which lies in the piece itself. So owner
/// and peers do not wait for each other, and data that a peer still publishes remains readable.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/core/platform/process_memory.hpp>
#include <hocket/core/platform/shared_pages.hpp>
#include <hocket/core/text.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/ucx/connections.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include <unistd.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// State of a rank's piece of memory, or of its membership in the communicator whose window the piece is.
enum class ownership : std::uint32_t {
  held = 0,  ///< also the state of fresh, zeroed memory
  released,
  failed  ///< released while an exception unwound the stack
};

/// One piece per rank, of equal size.
class shared_memory {
 public:
  /// Collective. Either all ranks can reach all pieces, or `reachable()` is false on all ranks. Raises `out_of_memory`
  /// on all ranks if one of them can't allocate its piece; if `must_be_shared`, also if it has the memory, but none that
  /// others can open.
  shared_memory(const std::shared_ptr<connections>& links, const transport::open_parameters& how, std::size_t bytes,
                bool must_be_shared)
      : links_(links), own_(header_bytes + bytes, no_room_), rank_(how.rank), bases_(how.members->size(), nullptr) {
    if (own_.lacks_file() && (!must_be_shared || how.members->size() == 1)) {
      no_room_ = {};
      own_ = platform::shared_pages::unshared(header_bytes + bytes, no_room_);
    }
    if (!no_room_) {
      bases_[index(rank_)] = own_.data() + header_bytes;
      new (own_.data()) header;
    }
    open_or_mark(how);  // also if alone: ranks that make other communicators at the same time need its answers
  }
  shared_memory(const shared_memory&) = delete;
  shared_memory& operator=(const shared_memory&) = delete;
  ~shared_memory() { release(ownership::released); }

  /// Marks and frees this rank's piece, not those of the peers. `culprit`: the rank that this rank found lost, or -1.
  void release(ownership how, int culprit = -1) noexcept {
    if (own_.data() == nullptr || links_->in_forked_child()) return;
    header& mark = *header_of(bases_[index(rank_)]);
    mark.culprit.store(culprit, std::memory_order_relaxed);
    mark.state.store(how, std::memory_order_release);
    bases_[index(rank_)] = nullptr;
    own_ = platform::shared_pages();
  }

  bool reachable() const noexcept { return reachable_; }
  /// Returns whether every rank can copy private memory of every other, and that is fast. Equal on all ranks.
  bool can_copy() const noexcept { return can_copy_; }
  /// Returns null if the piece can't be reached, or is this rank's own and has been released.
  std::byte* piece_of(int rank) const noexcept { return bases_[index(rank)]; }

  ownership state_of(int rank) const noexcept {
    return header_of(bases_[index(rank)])->state.load(std::memory_order_acquire);
  }

  /// Returns the rank that `rank`, which has released its piece, found lost, or -1.
  int culprit_of(int rank) const noexcept {
    return header_of(bases_[index(rank)])->culprit.load(std::memory_order_relaxed);
  }

  /// Returns whether all ranks have released their pieces, so that no rank will read them.
  bool unused() const noexcept {
    for (std::byte* const base : bases_) {
      if (base != nullptr && header_of(base)->state.load(std::memory_order_acquire) == ownership::held) return false;
    }
    return true;
  }

 private:
  struct alignas(platform::cache_line) header {
    std::atomic<ownership> state{ownership::held};
    std::atomic<std::int32_t> culprit{-1};
  };
  /// Places the data in the middle of a page. Large private buffers begin shortly after a page boundary, and on some
  /// processors copies are three times slower if source and destination have almost the same offset within a page.
  static constexpr std::size_t header_bytes = 2048;

  /// A word of a process, which another one tries to copy.
  struct probe {
    std::uint64_t address = 0;
    std::uint64_t content = 0;
  };
  /// What a rank can do with all others.
  struct abilities {
    bool reaches = false;
    bool copies = false;
  };

  static std::size_t index(int rank) noexcept { return static_cast<std::size_t>(rank); }
  static header* header_of(std::byte* base) noexcept { return reinterpret_cast<header*>(base - header_bytes); }

  /// If this fails after the last peer has all that it needs, that peer has a communicator without this rank: the mark
  /// reports that to it.
  void open_or_mark(const transport::open_parameters& how) {
#if HOCKET_HAS_EXCEPTIONS
    try {
      open_all(how);
    } catch (...) {
      release(ownership::failed);
      throw;
    }
#else
    open_all(how);
#endif
  }

  void open_all(const transport::open_parameters& how) {
    const auto tickets = how.exchange(no_room_ ? std::vector<std::byte>() : own_ticket());
    for (std::size_t peer = 0; peer < tickets.size(); ++peer) {
      if (!tickets[peer].empty()) continue;
      await_others(how);
      raise(no_room_of(static_cast<int>(peer)));
    }
    abilities own;
    own.reaches = open_peers(how, tickets);
    own.copies = own.reaches && links_->copies_by_kernel() && can_copy_from_all(how, tickets);
    can_copy_ = true;
    for (const auto& answer : how.exchange(std::as_bytes(std::span(&own, 1)))) {
      abilities theirs;
      if (answer.size() == sizeof theirs) std::memcpy(&theirs, answer.data(), sizeof theirs);
      reachable_ = reachable_ && theirs.reaches;
      can_copy_ = can_copy_ && theirs.copies;
    }
    own_.hide();
    if (reachable_) return;
    pieces_.clear();
    for (int peer = 0; peer < static_cast<int>(bases_.size()); ++peer) {
      if (peer != rank_) bases_[index(peer)] = nullptr;
    }
  }

  /// Returns when all ranks know that this fails, or one has left. A rank that left before would be the cause of the
  /// failure for the others.
  static void await_others(const transport::open_parameters& how) {
#if HOCKET_HAS_EXCEPTIONS
    try {
      how.exchange({});
    } catch (const error&) {}
#else
    how.exchange({});
#endif
  }

  /// The ticket of the piece, behind the address of a word of this process and its content.
  std::vector<std::byte> own_ticket() const {
    const probe word{reinterpret_cast<std::uintptr_t>(&probe_), probe_};
    std::vector<std::byte> result(sizeof word);
    std::memcpy(result.data(), &word, sizeof word);
    const std::vector<std::byte> ticket = own_.ticket();
    result.insert(result.end(), ticket.begin(), ticket.end());
    return result;
  }

  bool can_copy_from_all(const transport::open_parameters& how,
                         const std::vector<std::vector<std::byte>>& tickets) const noexcept {
    for (std::size_t peer = 0; peer < tickets.size(); ++peer) {
      probe word;
      std::uint64_t found = 0;
      if (tickets[peer].size() < sizeof word) return false;
      std::memcpy(&word, tickets[peer].data(), sizeof word);
      const pid_t process = links_->identity_of((*how.members)[peer]).pid;
      const auto read = platform::read_process_memory(process, word.address, &found, sizeof found);
      if (read != platform::process_read::done) return false;
      if (found != word.content) return false;
    }
    return true;
  }

  failure no_room_of(int rank) const {
    if (no_room_) return no_room_;
    return make_failure(errc::out_of_memory,
                        hocket::detail::concat({"rank ", rank, " can't allocate memory that its peers can reach"}),
                        {.peer = rank});
  }

  bool open_peers(const transport::open_parameters& how, const std::vector<std::vector<std::byte>>& tickets) {
    const int size = static_cast<int>(how.members->size());
    if (size > 1 && !may_share(how)) return false;
    pieces_.resize(bases_.size());
    for (int peer = 0; peer < size; ++peer) {
      if (peer != rank_ && !open_peer(peer, (*how.members)[index(peer)], tickets[index(peer)])) return false;
    }
    return true;
  }

  /// Returns whether all members are processes of this host, and UCX's settings allow shared memory. The connection to
  /// the neighbour, which is needed anyway, shows the latter.
  bool may_share(const transport::open_parameters& how) {
    for (const int rank : *how.members) {
      if (!links_->can_watch(rank)) return false;
    }
    const int neighbour = (*how.members)[index((rank_ + 1) % static_cast<int>(how.members->size()))];
    const std::lock_guard guard(links_->lock());
    return links_->connect(neighbour, false) == UCS_OK && links_->link_to(neighbour).shares_memory();
  }

  bool open_peer(int peer, int rank_in_domain, std::span<const std::byte> ticket) {
    platform::mapping& piece = pieces_[index(peer)];
    piece = platform::open_shared_pages(ticket.subspan(std::min(ticket.size(), sizeof(probe))));
    if (piece.data() == nullptr) {
      const std::lock_guard guard(links_->lock());
      if (links_->has_ended(rank_in_domain)) raise(connections::ended_failure(peer));
      return false;
    }
    bases_[index(peer)] = piece.data() + header_bytes;
    return true;
  }

  const std::shared_ptr<connections> links_;
  failure no_room_;
  platform::shared_pages own_;
  const int rank_;
  bool reachable_ = true;
  bool can_copy_ = false;
  /// Differs between processes, so that a copy from another one is recognized.
  const std::uint64_t probe_ = reinterpret_cast<std::uintptr_t>(this) ^ static_cast<std::uint64_t>(::getpid()) << 32;
  std::vector<platform::mapping> pieces_;  ///< of the peers
  std::vector<std::byte*> bases_;
};

}  // namespace ucx
HOCKET_END_NAMESPACE
