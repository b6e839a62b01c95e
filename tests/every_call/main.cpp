// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   every_call
//
// Makes all calls from two sources, over threads and, if UCX is found, over processes; with a user-defined transport,
// plan and observer; and after a failure. Compiled twice: header-only, and linked with hocket::compiled. Prints wrong
// results, and fails if there are any.
#include "every_call/every_call.hpp"

#include "every_call/second.hpp"

#include <hocket/group/any_transport.hpp>
#include <hocket/plan/listed.hpp>
#include <hocket/transport/adaptor/forwarding.hpp>
#include <hocket/transport/local/domain.hpp>
#include <hocket/transport/local/world.hpp>
#if defined(EVERY_CALL_OVER_UCX)
#include <hocket/bootstrap/launch.hpp>
#include <hocket/ucx.hpp>
#endif

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

namespace {

using namespace every_call;
using namespace std::chrono_literals;

/// User-defined endpoints that count what they send.
class counting_endpoints : public hocket::adaptor::forwarding_endpoints<hocket::local::domain::endpoints_type> {
  using base = hocket::adaptor::forwarding_endpoints<hocket::local::domain::endpoints_type>;

 public:
  static constexpr bool observes_only = true;

  counting_endpoints(std::unique_ptr<hocket::local::domain::endpoints_type> inner,
                     const hocket::transport::open_parameters&, std::shared_ptr<std::atomic<int>> sent)
      : base(std::move(inner)), sent_(std::move(sent)) {}

  bool try_send(sending& state, int peer, hocket::transport::message_id id, const void* data, std::size_t bytes,
                hocket::failure& fail) {
    const bool begun = base::try_send(state, peer, id, data, bytes, fail);
    if (begun) ++*sent_;
    return begun;
  }

 private:
  std::shared_ptr<std::atomic<int>> sent_;
};
using counting_domain = hocket::adaptor::adapted_domain<hocket::local::domain, counting_endpoints, std::atomic<int>>;

int count_wrong_over_own_transport(int ranks) {
  const auto place = std::make_shared<hocket::local::world>(ranks);
  const auto sent = std::make_shared<std::atomic<int>>(0);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      auto members = std::make_shared<std::vector<int>>(numbers<int>(static_cast<std::size_t>(ranks), 0));
      hocket::transport::open_parameters how;
      how.members = members;
      how.rank = rank;
      how.exchange = [&place, rank](std::span<const std::byte> blob) {
        return place->exchange(rank, blob, hocket::deadline::after(10s));
      };
      const hocket::communicator<counting_domain> comm(
          std::make_shared<counting_domain>(std::make_shared<hocket::local::domain>(place, rank), sent), std::move(how),
          0);
      wrong += count_wrong<double>(comm, "double, a user-defined transport");
    });
  }
  for (auto& each : threads) each.join();
  if (ranks > 1 && *sent == 0) ++wrong;
  return wrong;
}

/// A broadcast along the chain of ranks.
struct chain_broadcast {
  static constexpr const char* name() { return "chain_broadcast"; }
  static constexpr hocket::plan::collective collective() { return {hocket::plan::collective_kind::broadcast, 0}; }
  static constexpr hocket::plan::shape shape(int) { return {}; }
  static constexpr unsigned length(int ranks, int rank, unsigned) {
    return static_cast<unsigned>((rank > 0) + (rank + 1 < ranks));
  }
  static constexpr hocket::plan::action at(int, int rank, unsigned, unsigned i) {
    return rank > 0 && i == 0 ? hocket::plan::receive(rank - 1, {0}, hocket::plan::out(0))
                              : hocket::plan::send(rank + 1, {0}, hocket::plan::out(0));
  }
};

template <class Domain>
void check_own_plan(const hocket::communicator<Domain>& comm, findings& found) {
  int steps = 0;
  const hocket::step_observer counts{
      [](void* context, const hocket::completed_step&) { ++*static_cast<int*>(context); }, &steps};
  std::vector<short> data(40, static_cast<short>(comm.rank() == 0 ? 6 : 0));
  hocket::broadcast(comm, data, hocket::root{0},
                    hocket::with(hocket::algorithm(chain_broadcast{}), hocket::observe_steps(counts)));
  found.check(all_are(data, 6), "broadcast by a user-defined plan");
  found.check(steps == static_cast<int>(chain_broadcast::length(comm.size(), comm.rank(), 0)), "an observer");
}

/// Shrinks without the last rank, which has left.
template <class Domain>
void check_shrink(const hocket::communicator<Domain>& comm, findings& found) {
  int one = 1, sum = 0;
  std::error_code code;
  hocket::all_reduce(comm, std::span<const int>(&one, 1), std::span<int>(&sum, 1), std::plus<>{},
                     hocket::with(hocket::timeout(20s)), code);
  const auto left = hocket::shrink(comm, hocket::with(hocket::timeout(20s)));
  hocket::all_reduce(left, std::span<const int>(&one, 1), std::span<int>(&sum, 1));
  found.check(left.size() == comm.size() - 1 && sum == left.size(), "shrink");
}

template <class Domain>
int count_wrong_in_all(hocket::communicator<Domain> comm, const char* where) {
  findings found(std::string(where) + ", rank " + std::to_string(comm.rank()));
  check_own_plan(comm, found);
  const int wrong = count_wrong<float>(comm, where) + count_wrong_in_second(comm);
  if (comm.size() > 1 && comm.rank() + 1 < comm.size()) check_shrink(comm, found);
  return found.wrong() + wrong;
}

int count_wrong_over_threads() {
  std::atomic<int> wrong = 0;
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    hocket::local::run(ranks, [&](auto comm) { wrong += count_wrong_in_all(std::move(comm), "threads"); });
    wrong += count_wrong_over_own_transport(ranks);
  }
  return wrong;
}

int count_wrong_over_processes() {
  int wrong = 0;
#if defined(EVERY_CALL_OVER_UCX)
  for (const int ranks : {1, 2, 3, 5}) {
    const auto results = hocket::launch::run_processes(ranks, [](const hocket::bootstrap::world_description& world) {
      return count_wrong_in_all(hocket::ucx::connect(world), "UCX") > 0 ? 1 : 0;
    });
    const std::string failures = hocket::launch::describe_failures(results);
    if (!failures.empty()) ++wrong;
    std::fputs(failures.c_str(), stderr);
  }
#endif
  return wrong;
}

}  // namespace

int main() {
  const int wrong = count_wrong_over_processes() + count_wrong_over_threads();
  std::printf("every_call: %d results are wrong\n", wrong);
  return wrong == 0 ? 0 : 1;
}
