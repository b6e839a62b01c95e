// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Teardown of ranks that have mapped each other's memory. First all ranks unmap their peers' memory; when all have,
/// each frees its own. In between they wait for each other. A destructor can't: it has no deadline, can't report
/// an error, and runs at a different time on each rank. So teardown is a call, made before anything is destroyed.
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

/// Ends one communicator on one rank. Work on streams that uses peers' memory must be done.
template <class Driver>
class teardown {
 public:
  /// Borrows the mappings of peers' memory, and the memory that peers may have mapped.
  teardown(mapping_cache<Driver>& of_peers, peer_visible_memory<Driver>& own) : of_peers_(of_peers), own_(own) {}

  /// Unmaps, reports that to the others, waits for them until `until`, and frees. Collective; ranks may arrive at any
  /// time. May be called again after each failure except the last two; does nothing once `done()`. `interrupted`
  /// returns a failure that ends the wait: the others, whose streams may still have to be drained, get `grace` more.
  ///
  /// - `invalid_argument`: this rank uses mappings. Nothing was reported or freed.
  /// - `timeout`: a live peer still has memory mapped. Nothing was freed, because the peer may read it.
  /// - `peer_lost`: a peer has ended without reporting. All others have unmapped; everything was freed.
  /// - errors of the driver. Everything was freed, or the driver no longer can.
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
    return unmap_failure_ ? std::exchange(unmap_failure_, failure()) : std::move(freeing);
  }

  /// True if everything was freed.
  bool done() const noexcept { return done_; }

 private:
  /// Unmaps all. A mapping that the driver fails to close is unusable anyway, so that error is returned at the end.
  failure unmap() {
    failure found = of_peers_.close_all();
    if (of_peers_.size() != 0) return found;
    unmap_failure_ = std::move(found);
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
                        "the peer has not reported that it has unmapped this rank's device memory, which stays "
                        "allocated: all ranks must end the communicator",
                        {.peer = peer});
  }
  static failure lost_failure(int peer) {
    return make_failure(
        errc::peer_lost,
        "the peer has ended without unmapping this rank's device memory; all others have, so it is freed",
        {.peer = peer});
  }

  mapping_cache<Driver>& of_peers_;
  peer_visible_memory<Driver>& own_;
  failure unmap_failure_;  ///< the driver's error on unmapping
  bool announced_ = false;
  bool done_ = false;
};

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
