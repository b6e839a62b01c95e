// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// convert: conversions give the results of their table, and the backward pass is the transpose: <C x, g> = <x, C^T g>
// for all x and g. Values are small integers, so that both sides are equal to the bit.
#include "support/thread_ranks.hpp"

#include <hocket/collective/all_reduce.hpp>
#include <hocket/mesh/mesh.hpp>
#include <hocket/operation/operations.hpp>
#include <hocket/scalar/bfloat16.hpp>
#include <hocket/shard/convert.hpp>
#include <hocket/shard/redistribute.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using namespace hocket_test;
using hocket::dynamic;
using hocket::invariant;
using hocket::mean;
using hocket::mesh;
using hocket::on;
using hocket::partial;
using hocket::replicated;
using hocket::shard;
using hocket::sum;
using hocket::varying;

namespace {

using sizes_type = std::array<std::size_t, 2>;

double sample_at(const sizes_type& at, int seed) {
  return static_cast<double>((at[0] * 31 + at[1] * 17 + static_cast<std::size_t>(seed) * 13) % 23) - 11;
}

template <class Tensor>
constexpr hocket::placement placement_of = Tensor::placements_type::values[0];

/// Returns a tensor of this type with sample values. Copies on several ranks are equal.
template <class Tensor, class Mesh>
Tensor any_tensor(const Mesh& ranks, const sizes_type& sizes, int seed) {
  Tensor made(ranks, sizes);
  const bool own = placement_of<Tensor>.partial() || placement_of<Tensor>.kind == hocket::placement_kind::varying;
  hocket::fill(made, [&](const sizes_type& at) { return sample_at(at, seed + (own ? ranks.rank() * 7 : 0)); });
  return made;
}

/// Returns the pairing of a value and a gradient. If the value is invariant, only one rank's pairing counts.
template <class Value, class Gradient>
double pairing(const Value& value, const Gradient& gradient) {
  double own = 0;
  for (std::size_t i = 0; i < value.elements().size(); ++i) own += value.elements()[i] * gradient.elements()[i];
  if (placement_of<Value>.kind == hocket::placement_kind::invariant && value.mesh().rank() != 0) own = 0;
  double all = 0;
  hocket::all_reduce(value.mesh().all(), std::span(&own, 1), std::span(&all, 1));
  return all;
}

/// Returns the whole tensor on every rank.
template <class Tensor>
std::vector<double> whole_of(const Tensor& tensor) {
  const auto& sizes = tensor.sizes();
  std::vector<double> own(sizes[0] * sizes[1]);
  if (!placement_of<Tensor>.whole() || tensor.mesh().rank() == 0) {
    hocket::for_each_index(tensor.part().size, [&](const sizes_type& at) {
      own[(at[0] + tensor.part().begin[0]) * sizes[1] + at[1] + tensor.part().begin[1]] = tensor.local()[at];
    });
  }
  hocket::all_reduce(tensor.mesh().all(), hocket::in_place(own));
  return own;
}

template <class Mesh, class Placement>
using matrix_on_line = hocket::tensor<double, hocket::extents<dynamic, dynamic>, Mesh, on<"tp", Placement>>;

template <class From, class To, class Mesh>
void check_conversion(thread_rank& me, const Mesh& ranks, const sizes_type& sizes) {
  using from_type = matrix_on_line<Mesh, From>;
  using conversion = hocket::conversion<"tp", From, To>;
  using to_type = matrix_on_line<Mesh, To>;
  const auto x = any_tensor<from_type>(ranks, sizes, 1);
  const auto y = conversion()(x);
  static_assert(std::is_same_v<std::remove_const_t<decltype(y)>, to_type>);
  // Varying data are not parts of a whole.
  if constexpr (To::value.kind != hocket::placement_kind::varying) {
    me.check(whole_of(x) == whole_of(y), "the whole has changed");
  }
  if constexpr (To::value.whole()) {
    me.check(y.elements().size() == sizes[0] * sizes[1], "a rank lacks a part of the whole");
    const auto whole = whole_of(x);
    me.check(std::equal(whole.begin(), whole.end(), y.elements().begin()), "a rank has other elements than the whole");
  }
  const auto g = any_tensor<hocket::gradient_t<to_type>>(ranks, sizes, 2);
  const auto back = hocket::backward_t<conversion>()(g);
  static_assert(std::is_same_v<std::remove_const_t<decltype(back)>, hocket::gradient_t<from_type>>);
  me.check(pairing(y, g) == pairing(x, back), "the backward pass is not the transpose");

  auto moved = hocket::copy(x);
  const auto from_moved = conversion()(std::move(moved));
  me.check(std::equal(from_moved.elements().begin(), from_moved.elements().end(), y.elements().begin()),
           "a tensor that was moved in gave another result");
}

template <class From, class... To, class Mesh>
void check_conversions(thread_rank& me, const Mesh& ranks, const sizes_type& sizes) {
  const auto each = [&]<class Target>(std::type_identity<Target>) {
    if constexpr (hocket::conversion<"tp", From, Target>::allowed) check_conversion<From, Target>(me, ranks, sizes);
  };
  (each(std::type_identity<To>()), ...);
}

template <class... Placements, class Mesh>
void check_all(thread_rank& me, const Mesh& ranks, const sizes_type& sizes) {
  (check_conversions<Placements, Placements...>(me, ranks, sizes), ...);
}

}  // namespace

TEST_CASE("each conversion preserves the whole tensor, and its backward pass is its transpose") {
  for (const int count : {1, 2, 3, 5, 7, 8}) {
    on_ranks(count, [&](thread_rank& me) {
      const auto ranks = mesh<"tp">(me.comm(), {count});
      for (const sizes_type& sizes : {sizes_type{6, 8}, sizes_type{7, 5}, sizes_type{1, 2}, sizes_type{0, 3}}) {
        me.at([&] { return std::to_string(sizes[0]) + "x" + std::to_string(sizes[1]); });
        check_all<replicated, invariant, varying, shard<0>, shard<1>, partial<sum>>(me, ranks, sizes);
      }
    });
  }
}

TEST_CASE("a partial maximum is converted to the maximum") {
  for (const int count : {1, 2, 3, 5}) {
    on_ranks(count, [&](thread_rank& me) {
      const auto ranks = mesh<"tp">(me.comm(), {count});
      using mesh_type = std::remove_const_t<decltype(ranks)>;
      const auto x = any_tensor<matrix_on_line<mesh_type, partial<hocket::maximum>>>(ranks, {5, 3}, 1);
      const auto expected = [&](const sizes_type& at) {
        double most = -100;
        for (int rank = 0; rank < count; ++rank) most = std::max(most, sample_at(at, 1 + rank * 7));
        return most;
      };
      const auto check = [&](const auto& y) {
        hocket::for_each_index(y.part().size, [&](const sizes_type& at) {
          me.check(y.local()[at] == expected({at[0] + y.part().begin[0], at[1] + y.part().begin[1]}),
                   "not the maximum");
        });
      };
      check(hocket::convert<"tp", replicated>(x));
      check(hocket::convert<"tp", invariant>(x));
      check(hocket::convert<"tp", shard<1>>(x));
    });
  }
}

TEST_CASE("a const tensor that is moved from is copied") {
  on_ranks(2, [](thread_rank& me) {
    const auto ranks = mesh<"tp">(me.comm(), {2});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    const hocket::tensor<double, hocket::extents<2>, mesh_type, on<"tp", invariant>> x(ranks);
    const auto y = hocket::convert<"tp", replicated>(std::move(x));
    me.check(y.elements().data() != x.elements().data(), "the storage is not a copy");
    me.check(hocket::convert<"tp", shard<0>>(std::move(x)).elements().size() == 1, "a slice");
    const auto z = hocket::redistribute<on<"tp", replicated>>(std::move(x));
    me.check(z.elements().size() == 2 && z.elements().data() != x.elements().data(), "redistributed");
  });
}

TEST_CASE("the counts of means are exact for any wire type of the elements") {
  on_ranks(2, [](thread_rank& me) {
    const auto ranks = mesh<"tp">(me.comm(), {2});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    hocket::tensor<float, hocket::extents<2>, mesh_type, on<"tp", partial<mean>>> x(ranks);
    std::fill(x.elements().begin(), x.elements().end(), 1.F);
    x.set_count(1001);
    const auto options = hocket::with(hocket::wire<hocket::bfloat16>, hocket::timeout(rank_timeout));
    const auto wished = hocket::with(hocket::hint(hocket::wire<hocket::bfloat16>), hocket::timeout(rank_timeout));
    me.check(hocket::convert<"tp", replicated>(x, options).count() == 2002, "the count of a conversion");
    me.check(hocket::redistribute<on<"tp", shard<0>>>(x, wished).count() == 2002, "the count of a redistribution");
    const std::string text = hocket::explain_redistribution<on<"tp", shard<0>>>(x);
    me.check(text.find("2 collectives") != std::string::npos && text.find("counts' all_reduce") != std::string::npos,
             [&] { return "the counts are not listed: " + text; });
  });
}

TEST_CASE("a partial mean is converted to the mean of all elements if ranks have different counts") {
  for (const int count : {1, 2, 3, 5}) {
    on_ranks(count, [&](thread_rank& me) {
      const auto ranks = mesh<"tp">(me.comm(), {count});
      using mesh_type = std::remove_const_t<decltype(ranks)>;
      // Rank r has the mean of r elements; that of rank 0 is NaN.
      matrix_on_line<mesh_type, partial<mean>> x(ranks, {2, 3});
      hocket::fill(x, [&](const sizes_type& at) {
        return me.rank() == 0 && count > 1 ? std::nan("") : sample_at(at, me.rank() * 7);
      });
      x.set_count(count > 1 ? me.rank() : 4);
      const auto expected = [&](const sizes_type& at) {
        double total = 0;
        double elements = 0;
        for (int rank = 1; rank < count; ++rank) {
          total += sample_at(at, rank * 7) * rank;
          elements += rank;
        }
        return count > 1 ? total / elements : sample_at(at, 0);
      };
      const auto check = [&](const auto& y) {
        me.check(y.count() == (count > 1 ? count * (count - 1) / 2 : 4), "count");
        hocket::for_each_index(y.part().size, [&](const sizes_type& at) {
          const double wanted = expected({at[0] + y.part().begin[0], at[1] + y.part().begin[1]});
          me.check(std::abs(y.local()[at] - wanted) <= 1e-12 * (1 + std::abs(wanted)), "not the mean");
        });
      };
      check(hocket::convert<"tp", replicated>(x));
      check(hocket::convert<"tp", shard<0>>(x));
    });
  }
}

TEST_CASE("a conversion that moves no elements does not copy borrowed or moved tensors") {
  on_ranks(2, [](thread_rank& me) {
    const auto ranks = mesh<"tp">(me.comm(), {2});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    matrix_on_line<mesh_type, invariant> x(ranks, {4, 3});
    const double* const data = x.elements().data();
    me.check(hocket::convert<"tp", replicated>(hocket::borrow(x)).elements().data() == data,
             "a borrowed tensor was copied");
    const auto y = hocket::convert<"tp", replicated>(x);
    me.check(y.elements().data() != data, "not a copy");
    const auto z = hocket::convert<"tp", replicated>(std::move(x));
    me.check(z.elements().data() == data, "a moved tensor was copied");
  });
}
