// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Words in host memory, one page per rank, by which ranks report without their devices that they have reached an
/// operation, have abandoned the group, or have unmapped memory. A rank whose driver no longer responds can still
/// report that, so that peers need not wait until a deadline.
#pragma once

#include <hocket/bootstrap/process_identity.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/shared_pages.hpp>
#include <hocket/transport/cuda_ipc/process_mark.hpp>
#include <hocket/transport/cuda_ipc/teardown_peers.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {

/// One rank's view of these words.
class host_words {
 public:
  /// Creates the page of this rank.
  failure make() {
    failure found;
    own_ = platform::shared_pages(sizeof(page), found);
    return found;
  }

  /// Returns what peers need to open this rank's page.
  std::vector<std::byte> ticket() const { return own_.ticket(); }

  /// Opens the pages of all ranks, by their tickets.
  failure open(int rank, const std::vector<std::vector<std::byte>>& tickets) {
    rank_ = rank;
    pages_.clear();
    for (std::size_t peer = 0; peer < tickets.size(); ++peer) {
      pages_.push_back(platform::open_shared_pages(tickets[peer]));
      if (pages_.back().data() != nullptr && pages_.back().size() >= sizeof(page)) continue;
      return make_failure(errc::unreachable,
                          "host memory that a peer shares was not found through /proc: all ranks of a host must have "
                          "the same user and the same PID namespace",
                          {.peer = static_cast<int>(peer)});
    }
    return {};
  }

  /// Call when all peers have opened the page: no other process can open it any more.
  void hide() noexcept { own_.hide(); }

  /// Reports that this rank has enqueued `operation`. `history` is a hash of all operations up to it, in order.
  void arrive(std::uint64_t operation, std::uint64_t history) noexcept {
    at(rank_).histories[operation % retained_histories].store(history, std::memory_order_release);
    at(rank_).arrived.store(operation, std::memory_order_release);
  }
  /// Reports that this rank has abandoned the group. `culprit`: the culprit; this rank, or one that it waited for.
  void report_end(int culprit) noexcept {
    at(rank_).culprit_plus_1.store(static_cast<std::uint32_t>(culprit) + 1, std::memory_order_release);
  }

  std::uint64_t arrived(int peer) const noexcept { return at(peer).arrived.load(std::memory_order_acquire); }
  /// Returns the first of the last operations that both ranks have reached at which the peer's history differs from
  /// this rank's; 0 if there is none.
  std::uint64_t first_difference(int peer) const noexcept {
    const std::uint64_t own = arrived(rank_), theirs = arrived(peer);
    const std::uint64_t common = std::min(own, theirs);
    const std::uint64_t newest = std::max(own, theirs);
    std::uint64_t result = 0;
    for (std::uint64_t i = common; i > 0 && newest - i < retained_histories / 2; --i) {
      const std::size_t place = i % retained_histories;
      const std::uint64_t history = at(peer).histories[place].load(std::memory_order_relaxed);
      if (history == at(rank_).histories[place].load(std::memory_order_relaxed)) break;
      result = i;
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    const bool overwritten = arrived(peer) - common >= retained_histories / 2;
    return overwritten ? 0 : result;
  }
  /// Returns the culprit that the peer named; -1 if it has not abandoned the group.
  int culprit_named_by(int peer) const noexcept {
    return static_cast<int>(at(peer).culprit_plus_1.load(std::memory_order_acquire)) - 1;
  }

  /// Returns the words that teardown uses.
  teardown_words teardown_peers(std::function<bool(int)> has_ended) const {
    std::vector<teardown_words::word*> words;
    for (std::size_t peer = 0; peer < pages_.size(); ++peer) words.push_back(&at(static_cast<int>(peer)).unmapped);
    return {rank_, std::move(words), std::move(has_ended)};
  }

 private:
  static constexpr std::size_t retained_histories = 64;
  struct page {  // zeroed
    teardown_words::word unmapped;
    std::atomic<std::uint32_t> culprit_plus_1;  ///< 1 + the culprit's rank
    std::atomic<std::uint64_t> arrived;
    std::atomic<std::uint64_t> histories[retained_histories];  ///< by operation, modulo their count
  };

  page& at(int rank) const noexcept { return *reinterpret_cast<page*>(pages_[static_cast<std::size_t>(rank)].data()); }

  int rank_ = 0;
  platform::shared_pages own_;
  std::vector<platform::mapping> pages_;
};

/// Detects through the kernel whether peers' processes have ended.
class process_watches {
 public:
  process_watches(const process_mark& own, const std::vector<process_mark>& all) : watches_(all.size()) {
    for (const process_mark& each : all) {
      bootstrap::process_identity who;
      who.pid = each.pid;
      who.start_time = each.start_time;
      identities_.push_back(who);
      const bool are_comparable = each.host == own.host && each.namespaces == own.namespaces;
      can_watch_.push_back(!own.same_process(each) && are_comparable && each.namespaces != 0 && each.start_time != 0);
    }
  }

  bool operator()(int peer) {
    const auto index = static_cast<std::size_t>(peer);
    return can_watch_[index] && watches_[index].ended(identities_[index]);
  }

 private:
  std::vector<bootstrap::process_identity> identities_;
  std::vector<bool> can_watch_;
  std::vector<bootstrap::process_watch> watches_;
};

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
