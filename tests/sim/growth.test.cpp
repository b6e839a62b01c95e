// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Simulated ranks with much in flight: cost grows with what is in flight, not with its square.
#include <hocket/group/any_transport.hpp>
#include <hocket/sim.hpp>
#include <hocket/transport/adaptor/forwarding.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "support/catch.hpp"

namespace {

namespace sim = hocket::sim;
namespace transport = hocket::transport;

/// Counts the questions of messages to the network: each poll of one that waits asks at least one.
template <class Endpoints>
class counting_endpoints : public hocket::adaptor::forwarding_endpoints<Endpoints> {
  using base = hocket::adaptor::forwarding_endpoints<Endpoints>;

 public:
  counting_endpoints(std::unique_ptr<Endpoints> inner, const transport::open_parameters&,
                     std::shared_ptr<std::uint64_t> count)
      : base(std::move(inner)), count_(std::move(count)) {}

  bool drained(typename base::sending& state) {
    ++*count_;
    return base::drained(state);
  }
  const void* try_receive(typename base::receiving& state, int peer, transport::message_id id, void* buffer,
                          std::size_t bytes, hocket::failure& fail) {
    ++*count_;
    return base::try_receive(state, peer, id, buffer, bytes, fail);
  }

 private:
  const std::shared_ptr<std::uint64_t> count_;
};

using counting_domain =
    hocket::adaptor::adapted_domain<sim::domain, counting_endpoints<sim::endpoint_group>, std::uint64_t>;
using ranks_of_world = std::vector<hocket::communicator<counting_domain>>;
using request_list = std::vector<hocket::request>;

constexpr int two_ranks = 2;

void start_receives(request_list& all, ranks_of_world& ranks, std::span<int> data, bool same_tag) {
  for (std::size_t i = 0; i < data.size(); ++i) {
    const hocket::tag tag{same_tag ? 0 : static_cast<int>(i)};
    all.push_back(hocket::recv_async(ranks[1], data.subspan(i, 1), hocket::peer{0}, tag));
  }
}

void start_sends(request_list& all, ranks_of_world& ranks, std::span<int> data, bool same_tag) {
  for (std::size_t i = 0; i < data.size(); ++i) {
    const hocket::tag tag{same_tag ? 0 : static_cast<int>(i)};
    all.push_back(hocket::send_async(ranks[0], data.subspan(i, 1), hocket::peer{1}, tag));
  }
}

struct load {
  const char* name;
  void (*start)(request_list& all, ranks_of_world& ranks, std::span<int> in, std::span<int> out);
};

constexpr load loads[] = {
    {"messages of different tags, sent first",
     [](request_list& all, ranks_of_world& ranks, std::span<int> in, std::span<int> out) {
       start_sends(all, ranks, in, false);
       start_receives(all, ranks, out, false);
     }},
    {"messages of different tags, received first",
     [](request_list& all, ranks_of_world& ranks, std::span<int> in, std::span<int> out) {
       start_receives(all, ranks, out, false);
       start_sends(all, ranks, in, false);
     }},
    {"messages of one tag",
     [](request_list& all, ranks_of_world& ranks, std::span<int> in, std::span<int> out) {
       start_receives(all, ranks, out, true);
       start_sends(all, ranks, in, true);
     }},
    {"messages of one tag in both directions",
     [](request_list& all, ranks_of_world& ranks, std::span<int> in, std::span<int> out) {
       for (std::size_t i = 0; i < in.size(); ++i) {
         for (std::size_t rank = 0; rank < two_ranks; ++rank) {
           const hocket::peer other{static_cast<int>(1 - rank)};
           const std::span<int> to = rank == 0 ? in : out;
           all.push_back(hocket::send_recv_async(ranks[rank], std::span<const int>(in.subspan(i, 1)), other,
                                                 to.subspan(i, 1), other));
         }
       }
     }},
};

/// Returns how many questions a load of `count` messages of each rank asks while the world runs.
double questions(const load& what, std::size_t count) {
  sim::world world(two_ranks);
  const auto asked = std::make_shared<std::uint64_t>(0);
  auto ranks = world.group_on<counting_domain>({0, 1}, [&](std::shared_ptr<sim::domain> inner, int) {
    return std::make_shared<counting_domain>(std::move(inner), asked);
  });
  std::vector<int> in(count, 1), out(count, 2);
  request_list all;
  what.start(all, ranks, in, out);
  *asked = 0;
  world.run();
  const auto found = static_cast<double>(*asked);
  hocket::wait_all(all);
  return found;
}

/// Returns the least processor time of three runs of `run(count)`.
template <class Run>
double least_seconds(const Run& run, int count) {
  double least = 1e9;
  for (int round = 0; round < 3; ++round) {
    const std::clock_t begin = std::clock();
    run(count);
    least = std::min(least, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  return least;
}

/// Runs `count` collectives at the same time. Those that wait for their turn ask the network nothing.
void run_collectives(int count) {
  sim::world world(two_ranks);
  std::vector<int> data(static_cast<std::size_t>(two_ranks * count), 1);
  request_list all;
  for (std::size_t i = 0; i < data.size(); ++i) {
    const int rank = i < data.size() / 2 ? 0 : 1;
    all.push_back(hocket::all_reduce_async(world.comm(rank), hocket::in_place(std::span(&data[i], 1))));
  }
  world.run();
}

/// Uses `count` groups one after the other, and keeps them.
void use_groups(int count) {
  sim::world world(two_ranks);
  std::array<int, two_ranks> data{};
  std::vector<std::vector<sim::communicator>> groups;
  for (int i = 0; i < count; ++i) {
    groups.push_back(world.group({0, 1}));
    request_list all;
    for (std::size_t rank = 0; rank < two_ranks; ++rank) {
      all.push_back(hocket::all_reduce_async(groups.back()[rank], hocket::in_place(std::span(&data[rank], 1))));
    }
    world.run();
  }
}

/// Sends `count` messages before any is received, and receives them in the reverse order.
void queue_messages(int count) {
  sim::world world(two_ranks);
  std::vector<int> data(static_cast<std::size_t>(count));
  request_list sent;
  for (int i = 0; i < count; ++i) {
    sent.push_back(hocket::send_async(world.comm(0), std::span(&data[static_cast<std::size_t>(i)], 1), hocket::peer{1},
                                      hocket::tag{i}));
  }
  std::error_code no_receives;
  world.run(no_receives);
  for (int i = count - 1; i >= 0; --i) {
    hocket::recv_async(world.comm(1), std::span(&data[static_cast<std::size_t>(i)], 1), hocket::peer{0}, hocket::tag{i})
        .wait();
  }
  hocket::wait_all(sent);
}

}  // namespace

TEST_CASE("the polls of messages in flight grow with their number, not with its square", "[sim][world]") {
  for (const load& each : loads) {
    const double few = questions(each, 100), many = questions(each, 1000);
    INFO(each.name << ": " << few << " questions of 100 messages, " << many << " of 1000");
    CHECK(few > 0);
    CHECK(many < 12 * few);
  }
}

TEST_CASE("the time of collectives in flight, groups and queued messages grows with their number, not with its square",
          "[sim][world]") {
  const auto growth = [](const auto& run, int count) {
    return least_seconds(run, 10 * count) / least_seconds(run, count);
  };
  CHECK(growth(run_collectives, 200) < 40);
  CHECK(growth(use_groups, 300) < 40);
  CHECK(growth(queue_messages, 600) < 40);
}
