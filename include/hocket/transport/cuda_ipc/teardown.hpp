// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How ranks that have each other's memory mapped go apart. First all unmap what is their peers'; when all have, each frees
/// what is its own. Between the two is a wait for others, which a destructor can't express: it has no deadline, nobody to
/// tell, and comes at a time of its own on each rank. So it is a call, made before anything is destroyed.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/transport/cuda_ipc/mapping_cache.hpp>
#include <hocket/transport/cuda_ipc/peer_visible_memory.hpp>
#include <hocket/transport/cuda_ipc/teardown_peers.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {

/// The end of one communicator on one rank. Work on streams that touches peers' memory must be over.
template <class Driver>
class teardown {
 public:
  /// Borrows what is mapped of peers, and what was lent to them.
  teardown(mapping_cache<Driver>& of_peers, peer_visible_memory<Driver>& own) : of_peers_(of_peers), own_(own) {}

  /// Unmaps, tells the others, waits for them until `until`, and frees. Collective; ranks may come at any time. May be
  /// called again after each failure but the last two; once it is `done()` it does nothing. When there is a reason to
  /// wait no longer, `interrupted` says it: then others, whose streams may still have to run dry, get `grace` more.
  ///
  /// - `invalid_argument`: mappings are in use by this rank. Nobody was told, nothing freed.
  /// - `timeout`: a peer that lives still has memory mapped. Nothing was freed: it may be read.
  /// - `peer_lost`: a peer has ended without a word. All others have unmapped; everything was freed.
  /// - what the driver complained of. Everything was freed, or the driver can't any more.
  template <teardown_peers Peers>
  failure operator()(Peers& peers, const deadline& until, const std::function<failure()>& interrupted = {},
                     std::chrono::nanoseconds grace = {}) {
    if (done_) return {};
    if (!announced_) {
      if (failure found = unmap()) return found;
      peers.announce();
      announced_ = true;
    }
    int lost = -1;
    if (failure found = wait_for_all(peers, until, interrupted, grace, lost)) return found;
    done_ = true;
    failure freeing = own_.free_all();
    if (lost >= 0) return lost_failure(lost);
    return complaint_ ? std::exchange(complaint_, failure()) : std::move(freeing);
  }

  /// Whether everything was freed.
  bool done() const noexcept { return done_; }

 private:
  /// A mapping that the driver does not close is one that can't be used either: that is told afterwards.
  failure unmap() {
    failure found = of_peers_.close_all();
    if (of_peers_.size() != 0) return found;
    complaint_ = std::move(found);
    return {};
  }

  template <class Peers>
  failure wait_for_all(Peers& peers, const deadline& until, const std::function<failure()>& interrupted,
                       std::chrono::nanoseconds grace, int& lost) {
    failure cause;
    deadline last = until;
    for (int peer = 0; peer < static_cast<int>(peers.size()); ++peer) {
      if (peer == static_cast<int>(peers.rank())) continue;
      mapping_state now = peers.mapping_state_of(peer);
      while (now == mapping_state::mapped) {
        if (until.passed() || last.passed()) return cause ? cause : late_failure(peer);
        if (interrupted && !cause && (cause = interrupted())) last = deadline::after(grace);
        std::this_thread::yield();
        now = peers.mapping_state_of(peer);
      }
      if (now == mapping_state::ended && lost < 0) lost = peer;
    }
    return {};
  }

  static failure late_failure(int peer) {
    return make_failure(errc::timeout,
                        "the peer has not said that it has unmapped this rank's device memory, which stays allocated: "
                        "all ranks must end the communicator",
                        {.peer = peer});
  }
  static failure lost_failure(int peer) {
    return make_failure(
        errc::peer_lost,
        "the peer has ended without unmapping this rank's device memory; as all others have, it is freed",
        {.peer = peer});
  }

  mapping_cache<Driver>& of_peers_;
  peer_visible_memory<Driver>& own_;
  failure complaint_;  ///< of the driver, on unmapping
  bool announced_ = false;
  bool done_ = false;
};

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
