// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which redistributions the compiler plans. Others, whose meshes are too large, compile too.
#include <hocket/group/local.hpp>
#include <hocket/mesh/mesh.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/redistribute.hpp>
#include <hocket/shard/tensor.hpp>

#include <type_traits>

namespace {

using namespace hocket;

template <int Dp, int Tp>
using mesh_of = rank_mesh<local::domain, axis("dp", Dp), axis("tp", Tp)>;
template <int Dp, int Tp>
using weight = tensor<float, extents<4096, 8192>, mesh_of<Dp, Tp>, on<"dp", shard<0>>, on<"tp", shard<1>>>;

static_assert(detail::searches_at_compile_time<weight<2, 4>>());
static_assert(detail::searches_at_compile_time<weight<64, 1>>());
static_assert(!detail::searches_at_compile_time<weight<65, 1>>());
static_assert(!detail::searches_at_compile_time<weight<64, 32>>());
static_assert(!detail::searches_at_compile_time<weight<1 << 16, 1 << 16>>());

[[maybe_unused]] auto gathered_over_few(const weight<8, 8>& w) { return redistribute<on<"dp", replicated>>(w); }
[[maybe_unused]] auto gathered_over_many(const weight<64, 32>& w) { return redistribute<on<"dp", replicated>>(w); }

// The compiler starts to plan this one, and stops: there are many sequences of moves, each compared on all ranks.
using uneven = tensor<float, extents<4097, 64, 1, 7>, rank_mesh<local::domain, axis("a", 32), axis("b", 2)>,
                      on<"a", partial<sum>>, on<"b", shard<0>>>;
using cut_twice = detail::redistributed_t<uneven, on<"a", shard<2>>, on<"b", shard<2>>>;
static_assert(detail::searches_at_compile_time<uneven>() && !detail::has_compiled_plan<uneven, cut_twice>());
[[maybe_unused]] auto cut(uneven& x) { return redistribute<on<"a", shard<2>>, on<"b", shard<2>>>(x); }

// Along one axis, the compiler would have to compare even more.
using row_mesh = rank_mesh<local::domain, axis("dp", 32768)>;
using rows = tensor<float, extents<100003, 512>, row_mesh, on<"dp", shard<0>>>;
[[maybe_unused]] auto turned_over_many(const rows& x) { return redistribute<on<"dp", shard<1>>>(x); }

// Each pair of replicated, sharded and summed data along two axes is accepted, and so is each pair along one axis.
template <class Tensor, class... To>
constexpr bool accepts_each() {
  constexpr auto accepts_along_two = []<class First>(std::type_identity<First>) {
    return (detail::is_redistributed<Tensor, detail::requested_list<on<"dp", First>, on<"tp", To>>> && ...);
  };
  return (accepts_along_two(std::type_identity<To>()) && ...) &&
         (detail::is_redistributed<Tensor, detail::requested_list<on<"tp", To>>> && ...);
}
template <class Mesh, class... Each>
constexpr bool accepts_every_pair() {
  constexpr auto from_dp = []<class Dp>(std::type_identity<Dp>) {
    return (accepts_each<tensor<float, extents<dynamic, 5>, Mesh, on<"dp", Dp>, on<"tp", Each>>, Each...>() && ...);
  };
  return (from_dp(std::type_identity<Each>()) && ...);
}
static_assert(accepts_every_pair<rank_mesh<local::domain, "dp", "tp">, replicated, shard<0>, shard<1>, partial<sum>>());

}  // namespace
