// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions over more ranks than the element type can count: sums, averages, minima and maxima of every element type.
#include <hocket/sim.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "support/catch.hpp"
#include "support/reference.hpp"

namespace {

namespace many {

namespace plan = hocket::plan;
namespace sim = hocket::sim;

/// What the ranks contribute; each element of the vector is another of these.
enum class contribution : std::size_t { ones, largest, lowest, last_rank_alone, alternating, count };
constexpr std::size_t elements = static_cast<std::size_t>(contribution::count);

template <class T>
T contributed(contribution what, int rank, int ranks) {
  switch (what) {
    case contribution::ones: return T(1);
    case contribution::largest: return std::numeric_limits<T>::max();
    case contribution::lowest: return std::numeric_limits<T>::lowest();
    case contribution::last_rank_alone: return rank + 1 == ranks ? T(3) : T(0);
    default: return rank % 2 == 0 ? T(2) : T(5);
  }
}

template <class T>
using per_rank = std::vector<std::vector<T>>;

template <class T>
per_rank<T> contributions(int ranks) {
  per_rank<T> all;
  for (int rank = 0; rank < ranks; ++rank) {
    all.emplace_back();
    for (std::size_t i = 0; i < elements; ++i) {
      all.back().push_back(contributed<T>(static_cast<contribution>(i), rank, ranks));
    }
  }
  return all;
}

/// The sum of integers modulo 2^bits.
template <class T>
T wrapped_sum(contribution what, int ranks) {
  std::uint64_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += static_cast<std::uint64_t>(contributed<T>(what, rank, ranks));
  return static_cast<T>(sum);
}

/// The sum in the accumulator type, which is exact or infinite.
template <class T>
hocket::accumulator_t<T> accumulated(contribution what, int ranks) {
  using wide = hocket::accumulator_t<T>;
  const auto count = static_cast<wide>(ranks);
  switch (what) {
    case contribution::last_rank_alone: return 3;
    case contribution::alternating: return static_cast<wide>(2 * ((ranks + 1) / 2) + 5 * (ranks / 2));
    default: return static_cast<wide>(contributed<T>(what, 0, ranks)) * count;
  }
}

template <class T>
T right_average(contribution what, int ranks) {
  if constexpr (std::is_integral_v<T>) {
    using wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    return static_cast<T>(static_cast<wide>(wrapped_sum<T>(what, ranks)) / static_cast<wide>(ranks));
  } else {
    return static_cast<T>(accumulated<T>(what, ranks) / static_cast<hocket::accumulator_t<T>>(ranks));
  }
}

/// The sum over a power of two of ranks by recursive doubling. Sums of floating-point numbers are then exact, or too
/// large for T: then they are infinite, or the largest number of types that saturate.
template <class T>
T right_sum(contribution what, int ranks) {
  if constexpr (std::is_integral_v<T>) {
    return wrapped_sum<T>(what, ranks);
  } else {
    return static_cast<T>(accumulated<T>(what, ranks));
  }
}

/// The smallest or largest contribution of any rank.
template <class T>
T extreme(contribution what, int ranks, bool smallest) {
  T found = contributed<T>(what, 0, ranks);
  for (int rank = 1; rank < ranks; ++rank) {
    const T each = contributed<T>(what, rank, ranks);
    if (smallest ? each < found : found < each) found = each;
  }
  return found;
}

template <class T>
bool is_equal(const T& a, const T& b) {
  return a == b;  // no result is NaN
}

template <class T>
std::string as_text(const T& value) {
  return std::to_string(static_cast<long double>(static_cast<hocket::accumulator_t<T>>(value)));
}

/// Checks one result on all ranks; the first wrong value is reported.
template <class T, class Right>
void check_results(const per_rank<T>& out, int ranks, const std::string& what, Right right) {
  for (std::size_t i = 0; i < elements; ++i) {
    const T wanted = right(i);
    for (std::size_t rank = 0; rank < out.size(); ++rank) {
      if (is_equal(out[rank][i], wanted)) continue;
      FAIL_CHECK(what << " over " << ranks << " ranks, contribution " << i << ", on rank " << rank << ": "
                      << as_text(out[rank][i]) << " instead of " << as_text(wanted));
      break;
    }
  }
  SUCCEED();
}

template <class T, class Op>
per_rank<T> all_reduced(sim::world& world, const per_rank<T>& in, const Op& op, const plan::any_algorithm& by) {
  per_rank<T> out(in.size(), std::vector<T>(elements));
  std::vector<hocket::request> requests;
  for (std::size_t rank = 0; rank < in.size(); ++rank) {
    requests.push_back(hocket::all_reduce_async(world.comm(static_cast<int>(rank)), in[rank], out[rank], op,
                                                hocket::with(hocket::algorithm(by))));
  }
  world.run();
  for (hocket::request& each : requests) each.wait();
  return out;
}

/// Reduces to `root`; only its result exists.
template <class T, class Op>
per_rank<T> reduced(sim::world& world, int root, const per_rank<T>& in, const Op& op, const plan::any_algorithm& by) {
  per_rank<T> out(1, std::vector<T>(elements));
  std::vector<T> ignored(elements);
  std::vector<hocket::request> requests;
  for (int rank = 0; rank < world.size(); ++rank) {
    requests.push_back(hocket::reduce_async(world.comm(rank), in[static_cast<std::size_t>(rank)],
                                            rank == root ? out[0] : ignored, op, hocket::root{root},
                                            hocket::with(hocket::algorithm(by))));
  }
  world.run();
  for (hocket::request& each : requests) each.wait();
  return out;
}

/// Averages blocks of two elements: block b has rank b's contributions of the first two kinds.
template <class T>
void check_scattered_average(sim::world& world, const std::string& type) {
  const int ranks = world.size();
  const contribution what[] = {contribution::ones, contribution::largest};
  std::vector<T> in;
  for (int block = 0; block < ranks; ++block) {
    for (const contribution each : what) in.push_back(contributed<T>(each, 0, ranks));
  }
  per_rank<T> out(static_cast<std::size_t>(ranks), std::vector<T>(2));
  std::vector<hocket::request> requests;
  for (int rank = 0; rank < ranks; ++rank) {
    requests.push_back(hocket::reduce_scatter_async(world.comm(rank), in, out[static_cast<std::size_t>(rank)],
                                                    hocket::average{}, hocket::with()));
  }
  world.run();
  for (hocket::request& each : requests) each.wait();
  for (std::size_t rank = 0; rank < out.size(); ++rank) {
    for (std::size_t i = 0; i < 2; ++i) {
      INFO("reduce_scatter of " << type << " over " << ranks << " ranks, rank " << rank << ", element " << i);
      if (!is_equal(out[rank][i], right_average<T>(what[i], ranks))) {
        FAIL_CHECK(as_text(out[rank][i]) << " instead of " << as_text(right_average<T>(what[i], ranks)));
        return;
      }
    }
  }
  SUCCEED();
}

template <class T>
void check_sums(sim::world& world, const plan::any_algorithm& by, const std::string& type) {
  const int ranks = world.size();
  const std::string what = type + " by " + by.name();
  const per_rank<T> in = contributions<T>(ranks);
  check_results(all_reduced(world, in, hocket::average{}, by), ranks, "average of " + what,
                [&](std::size_t i) { return right_average<T>(static_cast<contribution>(i), ranks); });
  const per_rank<T> sums = all_reduced(world, in, std::plus<>{}, by);
  if (std::is_integral_v<T> || (ranks & (ranks - 1)) == 0) {
    check_results(sums, ranks, "sum of " + what,
                  [&](std::size_t i) { return right_sum<T>(static_cast<contribution>(i), ranks); });
    return;
  }
  // Sums of small types are rounded at each step, so they depend on the order.
  const plan::layout layout = hocket_test::layout_for(by, ranks, elements);
  const auto wanted = hocket_test::evaluate<T>(by, ranks, layout, in, std::plus<>{});
  check_results(sums, ranks, "sum of " + what, [&](std::size_t i) { return wanted[0][i]; });
}

template <class T>
void check_extremes(sim::world& world, const plan::any_algorithm& by, const std::string& type) {
  const int ranks = world.size();
  const std::string what = type + " by " + by.name();
  const per_rank<T> in = contributions<T>(ranks);
  check_results(all_reduced(world, in, hocket::minimum{}, by), ranks, "minimum of " + what,
                [&](std::size_t i) { return extreme<T>(static_cast<contribution>(i), ranks, true); });
  check_results(all_reduced(world, in, hocket::maximum{}, by), ranks, "maximum of " + what,
                [&](std::size_t i) { return extreme<T>(static_cast<contribution>(i), ranks, false); });
}

/// Checks sums, averages, minima and maxima on a root, whose number the type may not be able to count.
template <class T>
void check_reduced(sim::world& world, int root, const std::string& type) {
  const int ranks = world.size();
  const plan::any_algorithm by = plan::binomial_reduce{root};
  const std::string what = type + " on root " + std::to_string(root);
  const per_rank<T> in = contributions<T>(ranks);
  check_results(reduced(world, root, in, hocket::average{}, by), ranks, "average of " + what,
                [&](std::size_t i) { return right_average<T>(static_cast<contribution>(i), ranks); });
  check_results(reduced(world, root, in, hocket::minimum{}, by), ranks, "minimum of " + what,
                [&](std::size_t i) { return extreme<T>(static_cast<contribution>(i), ranks, true); });
  check_results(reduced(world, root, in, hocket::maximum{}, by), ranks, "maximum of " + what,
                [&](std::size_t i) { return extreme<T>(static_cast<contribution>(i), ranks, false); });
  const per_rank<T> sums = reduced(world, root, in, std::plus<>{}, by);
  if (std::is_integral_v<T> || (ranks & (ranks - 1)) == 0) {
    check_results(sums, ranks, "sum of " + what,
                  [&](std::size_t i) { return right_sum<T>(static_cast<contribution>(i), ranks); });
    return;
  }
  const plan::layout layout = hocket_test::layout_for(by, ranks, elements);  // see check_sums
  const auto wanted = hocket_test::evaluate<T>(by, ranks, layout, in, std::plus<>{});
  check_results(sums, ranks, "sum of " + what,
                [&](std::size_t i) { return wanted[static_cast<std::size_t>(root)][i]; });
}

/// Calls `check(T, name)` for every element type that has an accumulator of the library.
template <class Check>
void for_each_type(Check check) {
  check(std::int8_t{}, "int8"), check(std::uint8_t{}, "uint8");
  check(std::int16_t{}, "int16"), check(std::uint16_t{}, "uint16");
  check(std::int32_t{}, "int32"), check(std::uint32_t{}, "uint32");
  check(std::int64_t{}, "int64"), check(std::uint64_t{}, "uint64");
  check(hocket::half{}, "half"), check(hocket::bfloat16{}, "bfloat16");
  check(hocket::float8_e4m3{}, "float8_e4m3"), check(hocket::float8_e5m2{}, "float8_e5m2");
  check(float{}, "float"), check(double{}, "double"), check(0.0L, "long double");
}

}  // namespace many

}  // namespace

TEST_CASE("reductions of every type are right for numbers of ranks around those that it can count",
          "[sim][rank_counts]") {
  for (const int ranks : {127, 128, 255, 256}) {
    hocket::sim::world world(ranks);
    many::for_each_type([&]<class T>(T, const char* name) {
      many::check_sums<T>(world, hocket::plan::recursive_doubling{}, name);
      many::check_extremes<T>(world, hocket::plan::recursive_doubling{}, name);
      many::check_scattered_average<T>(world, name);
      many::check_reduced<T>(world, ranks - 1, name);
    });
    many::check_sums<std::int8_t>(world, hocket::plan::ring_all_reduce{}, "int8");
    many::check_sums<std::uint8_t>(world, hocket::plan::double_tree{1}, "uint8");
  }
}

TEST_CASE("sums and averages of int16 over 32768 ranks are right", "[sim][rank_counts]") {
  hocket::sim::world world(32768);
  many::check_sums<std::int16_t>(world, hocket::plan::recursive_doubling{}, "int16");
  many::check_reduced<std::int16_t>(world, 32767, "int16");
}

TEST_CASE("reductions of every type over 32768 and 65536 ranks are right", "[.many_ranks][sim]") {
  for (const int ranks : {32768, 65536}) {
    hocket::sim::world world(ranks);
    many::for_each_type([&]<class T>(T, const char* name) {
      many::check_sums<T>(world, hocket::plan::recursive_doubling{}, name);
      many::check_extremes<T>(world, hocket::plan::recursive_doubling{}, name);
      many::check_reduced<T>(world, ranks / 2, name);
    });
  }
}
