// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// All collectives between processes, by all algorithms that the transport supports, over shared memory and TCP.
#include "support/catch.hpp"
#include "support/elements.hpp"
#include "support/fixed_tree.hpp"
#include "ucx/ranks.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace ucx_test;
using hocket::with;
using hocket_test::affine_map;
using hocket_test::compose;

constexpr route all_routes[] = {shared_memory, posix_memory, network};
/// Numbers of elements: none, one, odd ones, and some that do not fit into a staging region of 256 KiB.
constexpr std::size_t sizes[] = {0, 1, 3, 7, 1000, 32769, 150001};

template <class Algorithm>
constexpr bool needs_windows =
    std::is_same_v<Algorithm, hocket::one_shot_t> || std::is_same_v<Algorithm, hocket::two_shot_t> ||
    std::is_same_v<Algorithm, hocket::push_t> || std::is_same_v<Algorithm, hocket::direct_t>;

/// Calls `call(options)` without an algorithm, and with each algorithm that can run on `comm`.
template <class... Algorithms, class Call>
void for_each_algorithm(const communicator& comm, Call call) {
  call(with());
  const auto one = [&](auto algorithm) {
    if (!needs_windows<decltype(algorithm)> || has_windows(comm)) call(with(algorithm));
  };
  (one(Algorithms{}), ...);
}

void check_all_reduce(const communicator& comm, findings& found, std::size_t size) {
  const auto in = vector_of(comm.rank(), size);
  const auto expected = sum_of(comm.size(), size);
  for_each_algorithm<hocket::ring_t, hocket::recursive_doubling_t, hocket::halving_doubling_t, hocket::double_tree_t,
                     hocket::one_shot_t, hocket::two_shot_t>(comm, [&](auto options) {
    const std::string what = "all_reduce of " + std::to_string(size);
    std::vector<std::uint64_t> out(size, 1);
    hocket::all_reduce(comm, in, out, std::plus<>{}, options);
    found.equal(out, expected, what);
    out = in;
    hocket::all_reduce(comm, hocket::in_place(out), std::plus<>{}, options);
    found.equal(out, expected, what + " in place");
  });
}

/// Calls with a root. The vectors of the root are longer than a staging region for the largest sizes.
void check_rooted(const communicator& comm, findings& found, std::size_t size) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  const auto own = vector_of(comm.rank(), size);
  std::vector<std::uint64_t> all;
  for (int peer = 0; peer < comm.size(); ++peer) {
    for (std::size_t i = 0; i < size; ++i) all.push_back(element(peer, i));
  }
  for (int root = 0; root < comm.size(); ++root) {
    const std::string to = " of " + std::to_string(size) + ", root " + std::to_string(root);
    const bool is_root = comm.rank() == root;
    const std::vector<std::uint64_t> nothing;
    for_each_algorithm<hocket::binomial_t, hocket::ring_t, hocket::direct_t>(comm, [&](auto options) {
      std::vector<std::uint64_t> out(is_root ? size : 0, 1);
      hocket::reduce(comm, own, out, std::plus<>{}, hocket::root{root}, options);
      found.equal(out, is_root ? sum_of(comm.size(), size) : nothing, "reduce" + to);
      out = own;
      hocket::reduce(comm, hocket::in_place(out), std::plus<>{}, hocket::root{root}, options);
      found.equal(out, is_root ? sum_of(comm.size(), size) : own, "reduce in place" + to);
    });
    const auto check_blocks = [&](auto options) {
      std::vector<std::uint64_t> gathered(is_root ? size * ranks : 0, 1), mine(size, 1);
      hocket::gather(comm, own, gathered, hocket::root{root}, options);
      found.equal(gathered, is_root ? all : nothing, "gather" + to);
      hocket::scatter(comm, gathered, mine, hocket::root{root}, options);
      found.equal(mine, own, "scatter" + to);
    };
    for_each_algorithm<hocket::flat_t, hocket::binomial_t>(comm, check_blocks);
    if (has_windows(comm) && size * ranks * 8 <= 256 * 1024) check_blocks(with(hocket::direct));
  }
}

void check_others(const communicator& comm, findings& found, std::size_t size) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  const auto rank = static_cast<std::size_t>(comm.rank());
  const std::string of = " of " + std::to_string(size);
  const auto staged = [&](std::size_t elements) { return elements * 8 <= 256 * 1024; };

  const auto whole = vector_of(comm.rank(), size * ranks);
  const auto sum = sum_of(comm.size(), size * ranks);
  const auto begin = static_cast<std::ptrdiff_t>(rank * size);
  const std::vector<std::uint64_t> block(sum.begin() + begin, sum.begin() + begin + static_cast<std::ptrdiff_t>(size));
  for_each_algorithm<hocket::ring_t, hocket::pairwise_t, hocket::recursive_halving_t>(comm, [&](auto options) {
    std::vector<std::uint64_t> out(size, 1);
    hocket::reduce_scatter(comm, whole, out, std::plus<>{}, options);
    found.equal(out, block, "reduce_scatter" + of);
  });

  std::vector<std::uint64_t> all;
  std::vector<std::uint64_t> for_me;
  for (int peer = 0; peer < comm.size(); ++peer) {
    for (std::size_t i = 0; i < size; ++i) all.push_back(element(peer, i));
    for (std::size_t i = 0; i < size; ++i) for_me.push_back(element(peer, rank * size + i));
  }
  const auto own = vector_of(comm.rank(), size);
  const auto check_gather = [&](auto options) {
    std::vector<std::uint64_t> out(size * ranks, 1);
    hocket::all_gather(comm, own, out, options);
    found.equal(out, all, "all_gather" + of);
  };
  const auto check_exchange = [&](auto options) {
    std::vector<std::uint64_t> out(size * ranks, 1);
    hocket::all_to_all(comm, whole, out, options);
    found.equal(out, for_me, "all_to_all" + of);
  };
  for_each_algorithm<hocket::ring_t, hocket::pairwise_t>(comm, check_gather);
  for_each_algorithm<hocket::pairwise_t>(comm, check_exchange);
  if (has_windows(comm) && staged(size * ranks)) {
    check_gather(with(hocket::direct));
    check_exchange(with(hocket::direct));
    std::vector<std::uint64_t> out(size, 1);
    hocket::reduce_scatter(comm, whole, out, std::plus<>{}, with(hocket::direct));
    found.equal(out, block, "direct reduce_scatter" + of);
  }

  for (int root = 0; root < comm.size(); ++root) {
    for_each_algorithm<hocket::binomial_t, hocket::direct_t>(comm, [&](auto options) {
      auto data = vector_of(comm.rank(), size);
      hocket::broadcast(comm, data, hocket::root{root}, options);
      found.equal(data, vector_of(root, size), "broadcast" + of);
    });
  }
  hocket::barrier(comm);

  const int next = (comm.rank() + 1) % comm.size();
  const int previous = (comm.rank() + comm.size() - 1) % comm.size();
  std::vector<std::uint64_t> in(size, 1);
  hocket::send_recv(comm, own, hocket::peer{next}, in, hocket::peer{previous}, hocket::tag{65535});
  found.equal(in, vector_of(previous, size), "send_recv" + of);
}

}  // namespace

TEST_CASE("all_reduce between processes gives exact sums by each algorithm") {
  for (const route& way : all_routes) {
    for (const int ranks : {1, 2, 3, 4}) {
      INFO(way.name << ", " << ranks << " ranks");
      CHECK(run_ranks(ranks, way, [&](communicator& comm, findings& found) {
              if (ranks > 1) found.equal(has_windows(comm), way.windows, "peers' memory is reachable");
              for (const std::size_t size : sizes) check_all_reduce(comm, found, size);
            }) == "");
    }
  }
}

TEST_CASE("the other collectives between processes give exact results by each algorithm") {
  for (const route& way : all_routes) {
    for (const int ranks : {2, 3, 4}) {
      INFO(way.name << ", " << ranks << " ranks");
      CHECK(run_ranks(ranks, way, [](communicator& comm, findings& found) {
              for (const std::size_t size : sizes) check_others(comm, found, size);
              for (const std::size_t size : sizes) check_rooted(comm, found, size);
            }) == "");
    }
  }
}

TEST_CASE("messages use the transports that UCX_TLS names") {
  const auto used_by = [](const route& way, const std::string& allowed) {
    return run_ranks(2, way, [&](communicator& comm, findings& found) {
      auto& state = hocket::detail::communicator_access::state(comm);
      const auto names = state.domain()->transports_to(1 - comm.rank());
      found.expect(!names.empty(), "the connection has no lanes");
      for (const std::string& name : names) {
        found.expect(allowed.find(name) != std::string::npos, "a lane uses " + name);
      }
    });
  };
  CHECK(used_by(network, "tcp") == "");
  CHECK(used_by(posix_memory, "posix") == "");
  CHECK(used_by(shared_memory, "posix sysv cma xpmem knem") == "");
}

TEST_CASE("more operations in flight than the window allows return correct sums") {
  for (const route& way : all_routes) {
    INFO(way.name);
    CHECK(run_ranks(3, way, [](communicator& comm, findings& found) {
            constexpr std::size_t operations = 2 * hocket::transport::window + 3;
            std::vector<std::vector<std::uint64_t>> in(operations);
            std::vector<std::vector<std::uint64_t>> out(operations);
            std::vector<hocket::request> requests;
            for (std::size_t i = 0; i < operations; ++i) {
              const std::size_t size = (i % 4 + 1) * 1531;
              in[i] = vector_of(comm.rank(), size);
              out[i].resize(size);
              if (i % 2 == 0) {
                requests.push_back(hocket::all_reduce_async(comm, in[i], out[i]));
              } else {
                requests.push_back(hocket::all_reduce_async(comm, in[i], out[i], std::plus<>{}, with(hocket::ring)));
              }
            }
            for (std::size_t i = operations; i-- > 0;) requests[i].wait();
            for (std::size_t i = 0; i < operations; ++i) {
              found.equal(out[i], sum_of(comm.size(), out[i].size()), "operation " + std::to_string(i));
            }
          }) == "");
  }
}

TEST_CASE("messages between two ranks are matched by tag in any order of receives") {
  for (const route& way : all_routes) {
    INFO(way.name);
    CHECK(run_ranks(2, way, [](communicator& comm, findings& found) {
            const hocket::peer other{1 - comm.rank()};
            for (const std::size_t size : std::array<std::size_t, 4>{0, 1, 5000, 300000}) {
              const auto first = vector_of(2 * comm.rank(), size);
              const auto second = vector_of(2 * comm.rank() + 1, size);
              auto a = hocket::send_async(comm, first, other, hocket::tag{1});
              auto b = hocket::send_async(comm, second, other, hocket::tag{2});
              std::vector<std::uint64_t> in(size);
              hocket::recv(comm, in, other, hocket::tag{2});
              found.equal(in, vector_of(2 * other.rank + 1, size), "the second message");
              hocket::recv(comm, in, other, hocket::tag{1});
              found.equal(in, vector_of(2 * other.rank, size), "the first message");
              a.wait();
              b.wait();
            }
          }) == "");
  }
}

TEST_CASE("messages in flight take about the same time each, however many there are") {
  // Eight times as many messages would take 64 times as long if each were compared with all others.
  constexpr int few = 2000, times = 8;
  constexpr double most = 24;
  using clock = std::chrono::steady_clock;
  for (const route& way : {shared_memory, network}) {
    for (const bool has_own_tag : {true, false}) {
      INFO(way.name << (has_own_tag ? ", own tags" : ", one tag"));
      CHECK(run_ranks(2, way, [&](communicator& comm, findings& found) {
              const hocket::peer other{1 - comm.rank()};
              std::vector<int> data(few * times);
              const auto seconds = [&](int count) {
                hocket::barrier(comm);
                const auto begin = clock::now();
                std::vector<hocket::request> all;
                for (int i = 0; i < count; ++i) {
                  int& one = data[static_cast<std::size_t>(i)];
                  const hocket::tag mark{has_own_tag ? i : 0};
                  one = comm.rank() == 0 ? i : -1;
                  if (comm.rank() == 0) all.push_back(hocket::send_async(comm, std::span(&one, 1), other, mark));
                  if (comm.rank() == 1) all.push_back(hocket::recv_async(comm, std::span(&one, 1), other, mark));
                }
                for (hocket::request& each : all) each.wait();
                int wrong = 0;
                for (int i = 0; i < count; ++i) wrong += data[static_cast<std::size_t>(i)] != i;
                found.expect(wrong == 0, std::to_string(wrong) + " messages have the content of others");
                hocket::barrier(comm);
                return std::chrono::duration<double>(clock::now() - begin).count();
              };
              seconds(few);
              double short_time = 1e9, long_time = 1e9;
              for (int round = 0; round < 3; ++round) {
                short_time = std::min(short_time, seconds(few));
                long_time = std::min(long_time, seconds(few * times));
              }
              found.expect(long_time < most * short_time,
                           std::to_string(few) + " messages take " + std::to_string(short_time) + " s, " +
                               std::to_string(few * times) + " take " + std::to_string(long_time) + " s");
            }) == "");
    }
  }
}

TEST_CASE("long messages, which are sent in pieces, arrive complete and in order") {
  constexpr std::size_t piece = hocket::ucx::tcp_pieces.bytes / sizeof(std::uint64_t);
  constexpr std::size_t large = hocket::ucx::direct_pieces.bytes / sizeof(std::uint64_t);
  for (const route& way : {shared_memory, posix_memory, network, whole_messages}) {
    INFO(way.name);
    CHECK(run_ranks(2, way, [](communicator& comm, findings& found) {
            const hocket::peer other{1 - comm.rank()};
            for (const std::size_t size : {std::size_t{1024}, std::size_t{1025}, piece - 1, piece, piece + 1, 2 * piece,
                                           17 * piece, large - 1, large, large + 1, 2 * large, 40 * large + 3}) {
              const auto first = vector_of(2 * comm.rank(), size);
              const auto second = vector_of(2 * comm.rank() + 1, 3 * piece);
              const auto third = vector_of(comm.rank(), 5);
              std::vector<hocket::request> sent;
              sent.push_back(hocket::send_async(comm, first, other));
              sent.push_back(hocket::send_async(comm, second, other));
              sent.push_back(hocket::send_async(comm, third, other));
              std::vector<std::uint64_t> none;
              sent.push_back(hocket::send_async(comm, none, other));
              std::vector<std::uint64_t> a(size), b(second.size()), c(third.size());
              auto last = hocket::recv_async(comm, a, other);
              hocket::recv(comm, b, other);
              hocket::recv(comm, c, other);
              hocket::recv(comm, none, other);
              last.wait();
              found.equal(a, vector_of(2 * other.rank, size), std::to_string(size) + " elements");
              found.equal(b, vector_of(2 * other.rank + 1, b.size()), "the second message");
              found.equal(c, vector_of(other.rank, c.size()), "the third message");
              for (hocket::request& each : sent) each.wait();
            }
          }) == "");
  }
}

TEST_CASE("split communicators work at the same time, and after their parent is destroyed") {
  for (const route& way : {shared_memory, network}) {
    INFO(way.name);
    CHECK(run_ranks(4, way, [](communicator& comm, findings& found) {
            const int rank = comm.rank();
            auto row = hocket::split(comm, hocket::color{rank / 2});
            auto column = hocket::split(comm, hocket::color{rank % 2}, hocket::key{-rank});
            found.equal(row.rank(), rank % 2, "rank in the row");
            found.equal(column.rank(), 1 - rank / 2, "rank in the column, in reverse order");
            std::optional<communicator> parent(std::move(comm));
            parent.reset();
            int sum = 0;
            hocket::all_reduce(row, std::span(&rank, 1), std::span(&sum, 1));
            found.equal(sum, rank / 2 * 4 + 1, "sum of the row");
            hocket::all_reduce(column, std::span(&rank, 1), std::span(&sum, 1), std::plus<>{}, with(hocket::ring));
            found.equal(sum, rank % 2 * 2 + 2, "sum of the column");
          }) == "");
  }
}

TEST_CASE("a communicator can be split into parts of any size, including one rank") {
  for (const route& way : {shared_memory, network}) {
    for (const int ranks : {1, 2, 3, 4}) {
      INFO(way.name << ", " << ranks << " ranks");
      CHECK(run_ranks(ranks, way, [&](communicator& comm, findings& found) {
              const auto check_parts = [&](auto color_of) {
                const int own = color_of(comm.rank());
                auto part = hocket::split(comm, hocket::color{own});
                int members = 0;
                int sum_of_ranks = 0;
                for (int rank = 0; rank < ranks; ++rank) {
                  members += color_of(rank) == own ? 1 : 0;
                  sum_of_ranks += color_of(rank) == own ? rank : 0;
                }
                found.equal(part.size(), members, "members");
                const int rank = comm.rank();
                int sum = 0;
                hocket::all_reduce(part, std::span(&rank, 1), std::span(&sum, 1));
                found.equal(sum, sum_of_ranks, "sum over the part");
                hocket::all_reduce(comm, std::span(&rank, 1), std::span(&sum, 1));
                found.equal(sum, ranks * (ranks - 1) / 2, "sum over the parent after the split");
              };
              check_parts([](int rank) { return rank == 0 ? 0 : 1; });
              check_parts([](int rank) { return rank % 2; });
              check_parts([](int rank) { return rank; });
              check_parts([](int) { return 7; });
            }) == "");
    }
  }
}

TEST_CASE("operations on user-defined types that are not commutative are applied in the order of ranks") {
  for (const route& way : {shared_memory, network}) {
    for (const int ranks : {2, 3, 4}) {
      INFO(way.name << ", " << ranks << " ranks");
      CHECK(run_ranks(ranks, way, [&](communicator& comm, findings& found) {
              for (const std::size_t size : {1U, 2U, 1000U, 20'000U}) {
                const std::size_t whole = size * static_cast<std::size_t>(ranks);
                const auto all = hocket_test::samples_of_all<affine_map>(ranks, whole);
                const std::vector<affine_map>& in = all[static_cast<std::size_t>(comm.rank())];
                std::vector<affine_map> expected = all[0], out(whole), block(size);
                for (std::size_t rank = 1; rank < all.size(); ++rank) {
                  for (std::size_t i = 0; i < whole; ++i) expected[i] = compose{}(expected[i], all[rank][i]);
                }
                hocket::all_reduce(comm, in, out, compose{});
                found.expect(out == expected, "all_reduce of " + std::to_string(whole));
                const auto own = expected.begin() + static_cast<std::ptrdiff_t>(size) * comm.rank();
                const auto check_block = [&](auto options) {
                  hocket::reduce_scatter(comm, in, block, compose{}, options);
                  const bool right = std::equal(block.begin(), block.end(), own);
                  found.expect(right, "reduce_scatter of " + std::to_string(size));
                };
                check_block(with());
                check_block(with(hocket::pairwise));
                check_block(with(hocket::hint(hocket::direct)));  // the last size is too long for the staging memory
              }
            }) == "");
    }
  }
}

TEST_CASE("fixed_tree gives the same bits over shared memory and messages, by each algorithm") {
  for (const route& way : {shared_memory, network}) {
    for (const int ranks : {2, 3, 4}) {
      INFO(way.name << ", " << ranks << " ranks");
      CHECK(run_ranks(ranks, way, [&](communicator& comm, findings& found) {
              const auto required = hocket::require(hocket::fixed_tree);
              for (const std::size_t size : {1U, 2U, 1000U, 20'000U}) {
                const auto all = hocket_test::samples_of_all<float>(ranks, size * static_cast<std::size_t>(ranks));
                const std::vector<float>& in = all[static_cast<std::size_t>(comm.rank())];
                const std::vector<float> expected = hocket_test::in_fixed_tree(all, std::plus<>{});
                const std::span<const float> own =
                    std::span(expected).subspan(size * static_cast<std::size_t>(comm.rank()), size);
                const auto reduces = [&](const auto& options) {
                  std::vector<float> out(in.size());
                  hocket::all_reduce(comm, in, out, std::plus<>{}, options);
                  found.expect(hocket_test::same_bytes<float>(out, expected), "all_reduce of " + std::to_string(size));
                };
                const auto scatters = [&](const auto& options) {
                  std::vector<float> out(size);
                  hocket::reduce_scatter(comm, in, out, std::plus<>{}, options);
                  found.expect(hocket_test::same_bytes<float>(out, own), "reduce_scatter of " + std::to_string(size));
                };
                reduces(with(required));
                reduces(with(required, hocket::recursive_doubling));
                reduces(with(required, hocket::halving_doubling));
                reduces(with(required, hocket::hint(hocket::two_shot)));
                scatters(with(required));
                scatters(with(required, hocket::recursive_halving));
              }
            }) == "");
    }
  }
}

TEST_CASE("several threads can use several communicators of a rank, in a different order on each rank") {
  constexpr std::size_t size = 3000;
  constexpr int rounds = 25;
  const auto sum_by_turns = [](communicator& on, bool& right) {
    const auto in = vector_of(on.rank(), size);
    std::vector<std::uint64_t> out(size);
    for (int i = 0; i < 2 * rounds; ++i) {
      hocket::all_reduce(on, in, out, std::plus<>{}, with(hocket::ring));
      right = right && out == sum_of(on.size(), size);
      hocket::all_reduce(on, in, out);
      right = right && out == sum_of(on.size(), size);
    }
  };
  // A call on one communicator makes no progress on another one, so that all ranks must wait in the same order.
  const auto sum_on_both = [](communicator& first, communicator& second, bool turned, bool& right) {
    const auto in = vector_of(first.rank(), size);
    std::vector<std::uint64_t> out_first(size);
    std::vector<std::uint64_t> out_second(size);
    const auto start_first = [&] { return hocket::all_reduce_async(first, in, out_first); };
    const auto start_second = [&] { return hocket::all_reduce_async(second, in, out_second); };
    for (int i = 0; i < rounds; ++i) {
      hocket::request one;
      hocket::request other;
      if (turned) other = start_second();
      one = start_first();
      if (!turned) other = start_second();
      other.wait();
      one.wait();
      right = right && out_first == sum_of(first.size(), size) && out_second == sum_of(first.size(), size);
    }
  };
  for (const route& way : {shared_memory, network}) {
    for (const int ranks : {2, 3, 4}) {
      INFO(way.name << ", " << ranks << " ranks");
      CHECK(run_ranks(ranks, way, [&](communicator& comm, findings& found) {
              auto second = hocket::split(comm, hocket::color{0});
              auto third = hocket::split(comm, hocket::color{0});
              auto fourth = hocket::split(comm, hocket::color{0});
              const bool turned = comm.rank() % 2 == 1;
              bool right[3] = {true, true, true};
              {
                std::jthread one([&] { sum_by_turns(turned ? third : fourth, right[0]); });
                std::jthread other([&] { sum_by_turns(turned ? fourth : third, right[1]); });
                sum_on_both(comm, second, turned, right[2]);
              }
              found.expect(right[0] && right[1] && right[2], "a wrong sum");
            }) == "");
    }
  }
}
