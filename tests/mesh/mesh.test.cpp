// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mesh: coordinates of ranks, members of the communicators along axes, and errors about wrong extents.
#include "support/text.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/collective/all_gather.hpp>
#include <hocket/collective/all_reduce.hpp>
#include <hocket/mesh/mesh.hpp>

#include <atomic>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace hocket_test;
using hocket::axis;
using hocket::inferred;
using hocket::mesh;

namespace {

/// The ranks that the members of `part` have in the whole mesh, in the order of the part.
template <class Mesh>
std::vector<int> members(const Mesh& ranks, const hocket::local::communicator& part) {
  const int own = ranks.rank();
  std::vector<int> all(static_cast<std::size_t>(part.size()));
  hocket::all_gather(part, std::span(&own, 1), all);
  return all;
}

/// Text of the error if `make` makes a mesh of `ranks` ranks; empty if there was none.
template <class Make>
std::string refusal(int ranks, const Make& make) {
  std::string text;
  on_ranks(ranks, [&](thread_rank& me) {
    const auto found = me.expect(hocket::errc::invalid_argument, [&] { make(me); });
    if (me.rank() == 0 && found) text = found->what();
  });
  return text;
}

}  // namespace

TEST_CASE("coordinates are row-major, and rank_of is the inverse of coordinates_of") {
  on_ranks(8, [](thread_rank& me) {
    const auto ranks = mesh<"dp", "pp", "tp">(me.comm(), {2, 2, 2});
    me.check(ranks.rank() == me.rank(), "another rank than its communicator's");
    me.check(ranks.size() == 8, "size");
    for (int rank = 0; rank < 8; ++rank) {
      const auto place = ranks.coordinates_of(rank);
      me.check(place[0] * 4 + place[1] * 2 + place[2] == rank, "not row-major");
      me.check(ranks.rank_of(place) == rank, "not the inverse");
    }
    me.check(ranks.template coordinate<"dp">() == me.rank() / 4, "dp");
    me.check(ranks.template coordinate<"pp">() == me.rank() / 2 % 2, "pp");
    me.check(ranks.template coordinate<"tp">() == me.rank() % 2, "tp");
  });
}

TEST_CASE("a communicator along axes has the ranks that differ only in these axes, in mesh order") {
  for (const auto& extents :
       std::vector<std::vector<int>>{{2, 2, 2}, {1, 2, 3}, {3, 1, 2}, {7, 1, 1}, {1, 1, 1}, {1, 5, 1}}) {
    const int size = extents[0] * extents[1] * extents[2];
    on_ranks(size, [&](thread_rank& me) {
      const auto ranks = mesh<"a", "b", "c">(me.comm(), extents);
      const auto expect = [&](const hocket::local::communicator& part, bool a, bool b, bool c) {
        std::vector<int> expected;
        const auto own = ranks.coordinates();
        for (int rank = 0; rank < size; ++rank) {
          const auto place = ranks.coordinates_of(rank);
          if ((a || place[0] == own[0]) && (b || place[1] == own[1]) && (c || place[2] == own[2]))
            expected.push_back(rank);
        }
        me.check(members(ranks, part) == expected, "wrong members");
        me.check(expected[static_cast<std::size_t>(part.rank())] == me.rank(), "wrong rank");
      };
      expect(ranks.template along<"a">(), true, false, false);
      expect(ranks.template along<"b">(), false, true, false);
      expect(ranks.template along<"c">(), false, false, true);
      expect(ranks.template along<"a", "b">(), true, true, false);
      expect(ranks.template along<"c", "a">(), true, false, true);  // the order of the names has no effect
      expect(ranks.template along<"b", "c">(), false, true, true);
      expect(ranks.all(), true, true, true);
    });
  }
}

TEST_CASE("extents come from the type or from the call, or are inferred") {
  on_ranks(6, [](thread_rank& me) {
    const auto fixed = mesh<axis("dp", 3), axis("tp", 2)>(me.comm());
    const auto mixed = mesh<"dp", axis("tp", 2)>(me.comm(), {3});
    const auto left = mesh<"dp", "tp">(me.comm(), {inferred, 2});
    static_assert(decltype(fixed)::axes::all[1].extent == 2);
    me.check(fixed.extents() == mixed.extents() && mixed.extents() == left.extents(), "other extents");
    me.check(left.template extent<"dp">() == 3 && fixed.template extent<"tp">() == 2, "extent");
  });
}

TEST_CASE("two meshes over the same ranks work beside each other, and outlive their communicator") {
  on_ranks(6, [](thread_rank& me) {
    auto [rows, columns] = [&] {
      const auto parent = hocket::split(me.comm(), hocket::color{0});
      return std::pair(mesh<"dp", "tp">(parent, {3, 2}), mesh<"stage", "replica">(parent, {2, 3}));
    }();
    const auto again = rows;
    me.check(again == rows, "a copy is another mesh");
    for (int round = 0; round < 20; ++round) {
      const int one = 1;
      int sum = 0;
      hocket::all_reduce(rows.template along<"tp">(), std::span(&one, 1), std::span(&sum, 1));
      me.check(sum == 2, "tp");
      hocket::all_reduce(columns.template along<"replica">(), std::span(&one, 1), std::span(&sum, 1));
      me.check(sum == 3, "replica");
    }
  });
}

TEST_CASE("communicators along different axes can be used from different threads, even if they have the same ranks") {
  for (const auto& extents : std::vector<std::vector<int>>{{2, 1}, {1, 2}, {1, 1}}) {
    on_ranks(extents[0] * extents[1], [&](thread_rank& me) {
      const auto ranks = mesh<"dp", "tp">(me.comm(), extents);
      std::atomic<int> wrong = 0;
      const auto sum_often = [&](const hocket::local::communicator& along, int own) {
        for (int round = 0; round < 300; ++round) {
          int sum = 0;
          hocket::all_reduce(along, std::span(&own, 1), std::span(&sum, 1));
          if (sum != own * along.size()) ++wrong;
        }
      };
      std::thread rows([&] { sum_often(ranks.template along<"dp">(), 1); });
      std::thread columns([&] { sum_often(ranks.template along<"tp">(), 10); });
      sum_often(ranks.all(), 100);
      rows.join();
      columns.join();
      me.check(wrong == 0, "calls of two threads were mixed up");
      me.check(&ranks.template along<"dp">() != &ranks.all() && &ranks.template along<"tp">() != &ranks.all(),
               "shared");
    });
  }
}

TEST_CASE("extents that do not match the number of ranks are refused, and the error suggests others") {
  const std::string text = refusal(6, [](thread_rank& me) { mesh<"dp", "tp">(me.comm(), {2, 4}); });
  CHECK(contains(text, "dp=2 x tp=4 needs 8 ranks, but the communicator has 6"));
  CHECK(contains(text, "these would fit: dp=2 x tp=3"));

  const std::string fixed = refusal(6, [](thread_rank& me) { mesh<"dp", axis("tp", 4)>(me.comm(), {1}); });
  CHECK(contains(fixed, "no extents of the other axes would fit"));

  CHECK(contains(refusal(5, [](thread_rank& me) { mesh<"dp", "tp">(me.comm(), {inferred, 2}); }), "dp=-1 x tp=2"));
  CHECK(contains(refusal(4,
                         [](thread_rank& me) {
                           mesh<"dp", "tp">(me.comm(), {inferred, inferred});
                         }),
                 "one may be `inferred`"));
  CHECK(contains(refusal(4, [](thread_rank& me) { mesh<"dp", "tp">(me.comm(), {0, 2}); }), "extents must be positive"));
  CHECK(contains(refusal(4, [](thread_rank& me) { mesh<"dp", "tp">(me.comm(), {4}); }),
                 "1 extents are given, but 2 axes have none"));
}

TEST_CASE("extents whose product overflows are refused") {
  constexpr int large = 65536;
  const std::string text = refusal(2, [](thread_rank& me) {
    mesh<"a", "b", "c", "d">(me.comm(), {large, large, large, large});
  });
  CHECK(contains(text, "needs too many ranks"));
  CHECK(contains(text, "these would fit: "));
  CHECK(contains(refusal(2,
                         [](thread_rank& me) {
                           mesh<"a", "b", "c", "d", "e">(me.comm(), {inferred, large, large, large, large});
                         }),
                 "a=-1 x b=65536"));
}

TEST_CASE("extents that differ between ranks are a mismatch") {
  on_ranks(4, [](thread_rank& me) {
    const std::vector<int> extents = me.rank() == 1 ? std::vector<int>{4, 1} : std::vector<int>{2, 2};
    me.expect(hocket::errc::mismatch, [&] { mesh<"dp", "tp">(me.comm(), extents); });
  });
}

TEST_CASE("a mesh prints its axes and the positions of the ranks") {
  std::string text;
  on_ranks(6, [&](thread_rank& me) {
    const auto ranks = mesh<"dp", "tp">(me.comm(), {2, 3});
    if (me.rank() == 0) text = to_string(ranks);
  });
  CHECK(text == "mesh dp=2 x tp=3\n  dp=0 tp: 0 1 2\n  dp=1 tp: 3 4 5\n");
}

TEST_CASE("a failure of one rank reaches the ranks along all axes if they pass it on by revoke") {
  for (const std::vector<int>& extents : {std::vector<int>{1, 1}, {2, 2}, {2, 3}, {4, 2}}) {
    const int count = extents[0] * extents[1];
    std::atomic<int> ready{0}, done{0};
    on_ranks(count, [&](thread_rank& me) {
      const auto ranks = mesh<"dp", "pp">(me.comm(), extents);
      ++ready;
      while (ready.load() < count) std::this_thread::yield();  // or its failure ends the creation of other meshes
      float number = 1;
      const auto add_up = [&](const hocket::local::communicator& along) {
        hocket::all_reduce(along, hocket::in_place(std::span(&number, 1)));
      };
      if (me.rank() == count - 1) {
        ranks.revoke("the disk is full");
        const auto own = me.expect(hocket::errc::aborted, [&] { add_up(ranks.all()); });
        me.check(own && own->reason() == "the disk is full", "this rank's own next call has another reason");
      } else {
        // The failed rank is in few of the communicators that the others wait on.
        const auto found = me.expect(hocket::errc::aborted, [&] {
          for (;;) {
            add_up(ranks.template along<"dp">());
            add_up(ranks.template along<"pp">());
          }
        });
        me.check(found && contains(found->reason(), "the disk is full"), "another reason than that of the failed rank");
        if (found) ranks.revoke(found->reason());
      }
      ++done;
      while (done.load() < count) std::this_thread::yield();  // or ranks that leave are reported as lost
    });
  }
}

TEST_CASE("along refuses an empty set of axes and unknown axes") {
  on_ranks(2, [](thread_rank& me) {
    for (const int tp : {1, 2}) {
      const auto ranks = hocket::mesh<"dp", "tp">(me.comm(), {2 / tp, tp});
      me.expect(hocket::errc::invalid_argument, [&] { ranks.along(0U); });
      me.expect(hocket::errc::invalid_argument, [&] { ranks.along(4U); });
      me.check(ranks.along(3U).size() == 2, "along both");
    }
  });
}
