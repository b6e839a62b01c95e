// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls that name no algorithm, or name one by its tag, run the steps of the selected plan and give its bits.
#include "collective/cases.hpp"

#include <hocket/collective/all_gather.hpp>
#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/all_to_all.hpp>
#include <hocket/collective/barrier.hpp>
#include <hocket/collective/broadcast.hpp>
#include <hocket/collective/explain.hpp>
#include <hocket/collective/gather.hpp>
#include <hocket/collective/host/impl/call.ipp>
#include <hocket/collective/reduce.hpp>
#include <hocket/collective/reduce_scatter.hpp>
#include <hocket/collective/scatter.hpp>
#include <hocket/engine/flight_record.hpp>
#include <hocket/operation/operations.hpp>
#include <hocket/selection/select.hpp>

#include <functional>
#include <string>
#include <vector>

using namespace hocket_test;

namespace {

plan::any_algorithm best_for(const hocket::local::communicator& comm, std::size_t elements, std::size_t element_size,
                             plan::combination_order order) {
  hocket::detail::call_request asked{.what = {plan::collective_kind::all_reduce, 0}, .block_elements = elements};
  asked.element_size = element_size;
  asked.order = order;
  const auto& state = hocket::detail::communicator_access::state(comm);
  return hocket::selection::table(hocket::detail::query_of(state, asked)).best().make(0);
}

template <class T, class Op>
void check_chosen(const std::vector<std::size_t>& sizes, const Op& op) {
  for (const int ranks : rank_counts) {
    on_ranks(ranks, [&](thread_rank& me) {
      for (const std::size_t size : sizes) {
        const plan::any_algorithm best = best_for(me.comm(), size, sizeof(T), hocket::detail::weakest_order<Op, T>());
        me.at([&] { return std::string("all_reduce by ") + best.name() + " of " + std::to_string(size); });
        const auto inputs = samples_of_all<T>(ranks, size);
        const auto expected = evaluate<T, Op>(best, ranks, layout_for(best, ranks, size), inputs, op);
        guarded<T> in(inputs[static_cast<std::size_t>(me.rank())], size % 2);
        guarded<T> out(size, size % 3);
        trace steps;
        hocket::all_reduce(me.comm(), in.elements(), out.elements(), op,
                           hocket::with(hocket::observe_steps(steps.observer())));
        me.check(same_bytes<T>(out.elements(), expected[0]),
                 [&] { return first_difference<T>(out.elements(), expected[0]); });
        me.check(in.intact() && out.intact(), "wrote outside the buffers");
        const std::string wrong = difference(steps.events(), {best, ranks, me.rank(), size, sizeof(T)});
        me.check(wrong.empty(), wrong);
        hocket::all_reduce(me.comm(), hocket::in_place(in.elements()), op);
        me.check(same_bytes<T>(in.elements(), expected[0]), "in place gives other bits");
      }
    });
  }
}

/// Checks by the steps of a call which plan has run.
template <class Call>
void check_named(thread_rank& me, const plan::any_algorithm& expected, std::size_t elements, Call call) {
  trace steps;
  call(hocket::observe_steps(steps.observer()));
  const std::string wrong = difference(steps.events(), {expected, me.size(), me.rank(), elements, sizeof(float)});
  me.check(wrong.empty(), wrong);
}

}  // namespace

TEST_CASE("without a named algorithm, all_reduce runs the plan that the table selects") {
  check_chosen<float>({0, 1, 2, 13, 14, 15, 100, 1000, 40'000}, std::plus<>{});
  check_chosen<double>({1, 7, 8, 1000}, hocket::maximum{});
  check_chosen<hocket::bfloat16>({1, 28, 29, 999}, std::plus<>{});
  check_chosen<affine_map>({0, 1, 2, 3, 50}, compose{});
}

TEST_CASE("the tag of an algorithm selects the plan of the same name") {
  on_ranks(5, [](thread_rank& me) {
    constexpr std::size_t size = 10;
    const std::vector<float> in(size, 1.0F);
    const std::vector<float> blocks(size * 5, 1.0F);
    std::vector<float> out(size);
    std::vector<float> all(size * 5);
    auto& comm = me.comm();
    const auto reduces = [&](const auto& name, const plan::any_algorithm& expected) {
      check_named(me, expected, size, [&](auto observed) {
        hocket::all_reduce(comm, in, out, std::plus<>{}, hocket::with(name, observed));
      });
    };
    reduces(hocket::ring, plan::ring_all_reduce{});
    reduces(hocket::recursive_doubling, plan::recursive_doubling{});
    reduces(hocket::halving_doubling, plan::halving_doubling{});
    reduces(hocket::double_tree, plan::double_tree{16});
    reduces(hocket::double_tree(3), plan::double_tree{3});
    reduces(hocket::one_shot, plan::one_shot{});
    reduces(hocket::two_shot, plan::two_shot{});
    reduces(hocket::push, plan::push_all_reduce{});
    const auto scatters = [&](const auto& name, const plan::any_algorithm& expected) {
      check_named(me, expected, size, [&](auto observed) {
        hocket::reduce_scatter(comm, blocks, out, std::plus<>{}, hocket::with(name, observed));
      });
    };
    scatters(hocket::ring, plan::ring_reduce_scatter{});
    scatters(hocket::pairwise, plan::pairwise_reduce_scatter{});
    scatters(hocket::recursive_halving, plan::recursive_halving_reduce_scatter{});
    scatters(hocket::direct, plan::direct_reduce_scatter{});
    const auto gathers = [&](const auto& name, const plan::any_algorithm& expected) {
      check_named(me, expected, size,
                  [&](auto observed) { hocket::all_gather(comm, in, all, hocket::with(name, observed)); });
    };
    gathers(hocket::ring, plan::ring_all_gather{});
    gathers(hocket::pairwise, plan::pairwise_all_gather{});
    gathers(hocket::direct, plan::direct_all_gather{});
    const auto swaps = [&](const auto& name, const plan::any_algorithm& expected) {
      check_named(me, expected, size,
                  [&](auto observed) { hocket::all_to_all(comm, blocks, all, hocket::with(name, observed)); });
    };
    swaps(hocket::pairwise, plan::pairwise_all_to_all{});
    swaps(hocket::direct, plan::direct_all_to_all{});
    const auto tells = [&](const auto& name, const plan::any_algorithm& expected) {
      check_named(me, expected, size,
                  [&](auto observed) { hocket::broadcast(comm, out, hocket::root{3}, hocket::with(name, observed)); });
    };
    tells(hocket::binomial, plan::binomial_broadcast{3});
    tells(hocket::direct, plan::direct_broadcast{3});
    const auto collects = [&](const auto& name, const plan::any_algorithm& expected) {
      check_named(me, expected, size, [&](auto observed) {
        hocket::reduce(comm, in, out, std::plus<>{}, hocket::root{3}, hocket::with(name, observed));
      });
    };
    collects(hocket::binomial, plan::binomial_reduce{3});
    collects(hocket::ring, plan::ring_reduce{3});
    collects(hocket::direct, plan::direct_reduce{3});
    const auto moves = [&](const auto& name, const plan::any_algorithm& up, const plan::any_algorithm& down) {
      check_named(me, up, size,
                  [&](auto observed) { hocket::gather(comm, in, all, hocket::root{3}, hocket::with(name, observed)); });
      check_named(me, down, size, [&](auto observed) {
        hocket::scatter(comm, blocks, out, hocket::root{3}, hocket::with(name, observed));
      });
    };
    moves(hocket::flat, plan::flat_gather{3}, plan::flat_scatter{3});
    moves(hocket::binomial, plan::binomial_gather{3}, plan::binomial_scatter{3});
    moves(hocket::direct, plan::direct_gather{3}, plan::direct_scatter{3});
    check_named(me, plan::dissemination_barrier{}, 0,
                [&](auto observed) { hocket::barrier(comm, hocket::with(hocket::dissemination, observed)); });
  });
}

TEST_CASE("a hint is followed if the call supports it, and otherwise ignored") {
  on_ranks(3, [](thread_rank& me) {
    std::vector<float> in(10, 1.0F);
    std::vector<float> out(10);
    check_named(me, plan::ring_all_reduce{}, 10, [&](auto observed) {
      hocket::all_reduce(me.comm(), in, out, std::plus<>{}, hocket::with(hocket::hint(hocket::ring), observed));
    });
    const auto last = [](float, float b) { return b; };
    const plan::any_algorithm best = best_for(me.comm(), 10, sizeof(float), plan::combination_order::rank_order);
    check_named(me, best, 10, [&](auto observed) {
      hocket::all_reduce(me.comm(), in, out, last, hocket::with(hocket::hint(hocket::ring), observed));
    });
    check_named(me, best_for(me.comm(), 10, sizeof(float), plan::combination_order::any_order), 10, [&](auto observed) {
      hocket::all_reduce(me.comm(), in, out, std::plus<>{}, hocket::with(hocket::hint(hocket::binomial), observed));
    });
    hocket::barrier(me.comm(), hocket::with(hocket::hint(hocket::wire<hocket::half>)));
  });
}

TEST_CASE("a hinted wire type is used if the call supports it, and otherwise ignored") {
  on_ranks(2, [](thread_rank& me) {
    constexpr float fine = 1 + 0x1p-20F;  // 1 as a bfloat16
    const std::vector<float> in(10, fine);
    std::vector<float> out(10);
    const auto wish = hocket::hint(hocket::wire<hocket::bfloat16>);
    hocket::all_reduce(me.comm(), in, out, hocket::maximum{}, hocket::with(wish));
    me.check(out[9] == 1, "a supported hint was ignored");
    hocket::all_reduce(me.comm(), in, out, hocket::average{}, hocket::with(wish));
    me.check(out[9] == fine, "an operation in three parts was rounded to the wire type");
    hocket::all_reduce(me.comm(), in, out, std::plus<>{},
                       hocket::with(wish, hocket::require(hocket::rank_count_invariant)));
    me.check(out[9] == 2 * fine, "an exact sum was rounded to the wire type");
    struct pair_of_floats {
      float a, b;
    };
    pair_of_floats both{fine, 1};
    const auto add = [](pair_of_floats x, pair_of_floats y) { return pair_of_floats{x.a + y.a, x.b + y.b}; };
    hocket::all_reduce(me.comm(), hocket::in_place(std::span(&both, 1)), add, hocket::with(wish));
    me.check(both.a == 2 * fine, "a struct was rounded to the wire type");
  });
}

TEST_CASE("an operation on the small type rounds at each step, an operation on floats once") {
  on_ranks(3, [](thread_rank& me) {
    const hocket::half value(me.rank() == 0 ? 2048.0F : 1.0F);
    hocket::half narrow;
    hocket::half wide;
    const auto add = [](hocket::half a, hocket::half b) { return hocket::half(a + b); };
    hocket::all_reduce(me.comm(), std::span(&value, 1), std::span(&narrow, 1), add);
    hocket::all_reduce(me.comm(), std::span(&value, 1), std::span(&wide, 1), std::plus<>{});
    me.check(static_cast<float>(wide) == 2050.0F, "2048 + 1 + 1 is 2050 when rounded once");
    me.check(static_cast<float>(narrow) == 2048.0F, "2048 + 1 is 2048 when rounded at each step");
  });
}

namespace {

/// Returns the name of the row that a table marks as chosen.
std::string chosen_row(const std::string& table) {
  const std::size_t end = table.find("<- chosen"), begin = table.rfind('\n', end) + 3;
  return end == std::string::npos ? table : table.substr(begin, table.find(' ', begin) - begin);
}

/// Returns the name of the plan of the latest call.
std::string latest_plan(const hocket::local::communicator& comm) {
  const std::string text = hocket::flight_record(comm), key = "\"plan\":\"";
  const std::size_t begin = text.rfind(key);
  return begin == std::string::npos
             ? text
             : text.substr(begin + key.size(), text.find('"', begin + key.size()) - begin - key.size());
}

/// Checks that explain names the plans that calls with a root run.
template <class T, class Op, class Options>
void check_explained(thread_rank& me, int root, std::size_t size, const Op& op, const Options& options) {
  const hocket::root at{root};
  const std::size_t ranks = static_cast<std::size_t>(me.size());
  const std::string with_root = " of " + std::to_string(size) + " with root " + std::to_string(root);
  std::vector<T> block(size), whole(size * ranks), result(size);
  const auto check = [&](const char* what, const std::string& table) {
    me.check(chosen_row(table) == latest_plan(me.comm()),
             what + with_root + " ran " + latest_plan(me.comm()) + ", not as in " + table);
  };
  hocket::reduce(me.comm(), block, result, op, at, options);
  check("reduce", hocket::explain<T>(me.comm(), hocket::reduce, size, op, at, options));
  hocket::broadcast(me.comm(), block, at, options);
  check("broadcast", hocket::explain<T>(me.comm(), hocket::broadcast, size, at, options));
  hocket::gather(me.comm(), block, whole, at, options);
  check("gather", hocket::explain<T>(me.comm(), hocket::gather, size, at, options));
  hocket::scatter(me.comm(), whole, block, at, options);
  check("scatter", hocket::explain<T>(me.comm(), hocket::scatter, size, at, options));
  hocket::barrier(me.comm());
}

}  // namespace

TEST_CASE("explain names the plan that a call runs, for each root, also of an operation that is not commutative") {
  for (const int ranks : {1, 2, 3, 5}) {
    on_ranks(ranks, [&](thread_rank& me) {
      for (int root = 0; root < me.size(); ++root) {
        for (const std::size_t size : {std::size_t{1}, std::size_t{1000}, std::size_t{100'000}}) {
          const auto by_messages = hocket::with(hocket::require(hocket::checksummed));
          check_explained<float>(me, root, size, std::plus<>{}, hocket::with());
          check_explained<float>(me, root, size, std::plus<>{}, by_messages);
          check_explained<affine_map>(me, root, size, compose{}, hocket::with());
          check_explained<affine_map>(me, root, size, compose{}, by_messages);
        }
      }
    });
  }
}

TEST_CASE("explain of a root that is no rank is refused") {
  on_ranks(3, [](thread_rank& me) {
    for (const int root : {-1, 3}) {
      const auto found = me.expect(hocket::errc::invalid_argument, [&] {
        static_cast<void>(hocket::explain<float>(me.comm(), hocket::reduce, 1, std::plus<>{}, hocket::root{root}));
      });
      me.check(found && std::string(found->what()).find("must be one of 0 to 2") != std::string::npos, "wrong advice");
    }
  });
}
