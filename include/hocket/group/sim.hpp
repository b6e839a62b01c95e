// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A world of simulated ranks: runs collectives, with the same engine as real ranks, for thousands of ranks on one
/// thread. A virtual clock shows how long the calls would take on the machine of a cost model.
///
/// @code
/// hocket::sim::world world(4096);
/// std::vector<hocket::request> requests;
/// for (int rank = 0; rank < world.size(); ++rank) {
///   requests.push_back(hocket::all_reduce_async(world.comm(rank), in[rank], out[rank]));
/// }
/// world.run();
/// std::printf("%g s\n", world.now());
/// @endcode
#pragma once

#include <hocket/communicator/communicator.hpp>
#include <hocket/communicator/indexed_operations.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/float_bits.hpp>
#include <hocket/core/text.hpp>
#include <hocket/engine/operation.hpp>
#include <hocket/plan/cost_model.hpp>
#include <hocket/transport/operation_event.hpp>
#include <hocket/transport/sim/domain.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace sim {

/// A communicator of simulated ranks.
using communicator = hocket::communicator<domain>;

/// All ranks of a simulation, and the clock.
///
/// Start calls with their `_async` forms on all ranks that take part, then call `run()`. A request's `wait` also runs
/// the world; its `test` does not. A blocking call runs the world until the call is complete. If a rank for which it
/// waits has not started its part, the call fails with `timeout` and names the waiting ranks.
///
/// **Time.** An operation begins on a rank at the time at which the operations of earlier runs were complete on this
/// rank. Concurrent operations share the rank's ports (network links) and processor.
/// **Threads.** One thread for the whole world. **Lifetime.** Communicators and requests may outlive the world.
class world {
 public:
  /// Raises `invalid_argument` if `ranks` is less than 1, or if `model` or `conditions::jitter` is invalid.
  explicit world(int ranks, const plan::cost_model& model = plan::example_machine)
      : world(ranks, conditions{.model = model}) {}

  /// A world of `ranks` ranks under `how`.
  world(int ranks, const conditions& how) : network_(std::make_shared<network>(checked(ranks, how), how)) {
    domains_.reserve(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) domains_.push_back(std::make_shared<domain>(network_, rank));
    auto all = std::vector<int>(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    comms_ = group(std::move(all));
  }

  int size() const noexcept { return network_->size(); }

  /// Returns rank `rank`'s communicator of all ranks.
  communicator& comm(int rank) {
    require_rank(rank);
    return comms_[static_cast<std::size_t>(rank)];
  }

  /// Makes another communicator of the world's ranks `members`; element r of the result is for its rank r. Replaces
  /// `split`, which ranks that share a thread can't call.
  std::vector<communicator> group(std::vector<int> members) {
    return group_on<domain>(std::move(members), [](std::shared_ptr<domain> through, int) { return through; });
  }

  /// Like `group`, over adapted domains: `adapt(domain, rank in the world)` returns the adapted domain of a rank.
  template <class Adapted, class Adapt>
  std::vector<hocket::communicator<Adapted>> group_on(std::vector<int> members, Adapt adapt) {
    std::vector<bool> taken(static_cast<std::size_t>(size()));
    for (const int rank : members) {
      if (rank < 0 || rank >= size()) {
        raise(errc::invalid_argument,
              hocket::detail::concat({"rank ", rank, " is not in this world: list ranks from 0 to size() - 1"}));
      }
      if (taken[static_cast<std::size_t>(rank)]) {
        raise(errc::invalid_argument, hocket::detail::concat({"rank ", rank, " is listed twice: list each rank once"}));
      }
      taken[static_cast<std::size_t>(rank)] = true;
    }
    const std::uint32_t context = contexts_++;
    const auto shared = std::make_shared<const std::vector<int>>(std::move(members));
    std::vector<hocket::communicator<Adapted>> made;
    made.reserve(shared->size());
    for (std::size_t rank = 0; rank < shared->size(); ++rank) {
      const int rank_in_world = (*shared)[rank];
      std::shared_ptr<Adapted> through = adapt(domains_[static_cast<std::size_t>(rank_in_world)], rank_in_world);
      through->contexts().claim(context);
      transport::open_parameters how;
      how.context = context;
      how.members = shared;
      how.rank = static_cast<int>(rank);
      made.emplace_back(std::move(through), std::move(how), 0);
      auto& state = hocket::detail::communicator_access::state(made.back());
      state.endpoints().attach(&state, &poll<hocket::detail::communicator_state<Adapted>>);
    }
    return made;
  }

  /// Runs until all started operations are complete. Throws `error`: the first failure of an operation; or `timeout`,
  /// with the waiting ranks, if operations wait for others that are not started. The waiting operations stay active,
  /// and continue when the others are started.
  void run() {
    if (failure cause = run_all()) raise(std::move(cause));
  }
  void run(std::error_code& code) { code = run_all().code; }

  /// Seconds from the beginning until the last operation on any rank was complete.
  double now() const noexcept { return network_->now(); }
  /// Seconds until `rank`'s last operation was complete. Raises `invalid_argument` if there is no such rank.
  double time_of(int rank) const {
    require_rank(rank);
    return network_->time_of(rank);
  }

  /// Simulates that `rank` computes for `seconds`: its next operation begins later. Raises `invalid_argument` if there
  /// is no such rank, or unless `seconds` and the sum of the rank's times are finite numbers, 0 or more.
  void spend(int rank, double seconds) {
    require_rank(rank);
    if (!hocket::detail::is_finite(time_of(rank) + seconds) || seconds < 0) {
      raise(errc::invalid_argument,
            hocket::detail::concat({"rank ", rank, " can't spend ", std::to_string(seconds), " s after ",
                                    std::to_string(time_of(rank)),
                                    " s: pass a number of seconds, 0 or more, with a finite sum"}));
    }
    network_->spend(rank, seconds);
  }

  /// Messages sent so far, and bytes in them.
  std::uint64_t messages() const noexcept { return network_->messages(); }
  std::uint64_t bytes() const noexcept { return network_->bytes(); }  ///< bytes sent so far

 private:
  void require_rank(int rank) const {
    if (rank >= 0 && rank < size()) return;
    raise(errc::invalid_argument,
          hocket::detail::concat({"there is no rank ", rank, " in a world of ", size(), " ranks"}));
  }

  static int checked(int ranks, const conditions& how) {
    if (ranks < 1)
      raise(errc::invalid_argument, hocket::detail::concat({"a world needs at least 1 rank, not ", ranks}));
    if (const char* const why = how.model.invalid_member(); why != nullptr) {
      raise(errc::invalid_argument, hocket::detail::concat({"the world's cost model is invalid: ", why}));
    }
    if (!hocket::detail::is_finite(how.jitter) || how.jitter < 0) {
      raise(errc::invalid_argument,
            "the world's jitter must be a number, 0 or more, not " + std::to_string(how.jitter));
    }
    return ranks;
  }

  /// Polls the active operations of one communicator that `now` may concern: see `transport::poll_function`.
  template <class State>
  static bool poll(void* owner, const transport::operation_event& now) {
    auto& state = *static_cast<State*>(owner);
    bool is_any_incomplete = false;
    const auto poll_one = [&](hocket::detail::operation& each) {
      if (!each.over()) poll_operation(each, state);
      is_any_incomplete = is_any_incomplete || !each.over();
    };
    if (now.what == transport::operation_event::kind::any) {
      state.active().visit_all(poll_one);
    } else {
      state.active().visit_concerned(
          now, [&] { return state.last_turn(); }, poll_one);
    }
    return is_any_incomplete;
  }

  /// Polls an operation, and reports if it has completed or failed.
  template <class State>
  static void poll_operation(hocket::detail::operation& one, State& state) {
    const hocket::detail::machine_status status = one.poll();
    if (status == hocket::detail::machine_status::done) one.entry().ends();
    if (status != hocket::detail::machine_status::failed) return;
    failure cause = with_context(one, state);
    state.revoke(cause);
    state.endpoints().note(std::move(cause));
  }

  /// Returns the failure of `failed`, with the operation's position and call site added.
  template <class State>
  static failure with_context(hocket::detail::operation& failed, const State& state) {
    failure cause = failed.cause();
    error_context at;
    failed.locate(at);
    error_context& context = cause.context;
    context.rank = state.rank();
    context.ranks = state.size();
    if (context.sequence == 0) context.sequence = at.sequence;
    if (context.lane < 0) context.lane = at.lane;
    if (context.step < 0) context.step = at.step;
    const auto* const call = state.calls().find(static_cast<std::uint32_t>(context.sequence));
    if (call == nullptr) return cause;
    if (context.operation == nullptr) context.operation = call->operation;
    if (context.site.line() == 0) context.site = call->site;
    return cause;
  }

  failure run_all() {
    network_->run();
    network_->ask_all();
    if (failure cause = network_->take_failure()) return cause;
    return network_->stuck();
  }

  const std::shared_ptr<network> network_;
  std::vector<std::shared_ptr<domain>> domains_;
  std::uint32_t contexts_ = 0;
  std::vector<communicator> comms_;
};

}  // namespace sim
HOCKET_END_NAMESPACE
