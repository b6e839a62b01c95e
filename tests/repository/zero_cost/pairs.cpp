// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// For zero_cost: operations with types, and the same by hand on the same buffers. The test compares the instructions of
// typed::X and bare::X.
#include <hocket/parallel.hpp>

#include <cstddef>
#include <functional>
#include <utility>

using hocket::dynamic;
using hocket::extents;
using hocket::invariant;
using hocket::on;
using hocket::replicated;
using hocket::shard;
using hocket::varying;

using mesh = hocket::rank_mesh<hocket::local::domain, hocket::axis("tp", 4)>;
using summands = hocket::partial<hocket::sum>;

template <class Placement, class Extents = extents<64, 512>>
using placed = hocket::tensor<double, Extents, mesh, on<"tp", Placement>>;
/// A tensor with run-time extents.
template <class Placement>
using unknown = placed<Placement, extents<dynamic, dynamic>>;

// ── Conversions that move no elements, of moved tensors ────────────────────────────────────────────────────────────

// Checks, also by hand, that the tensor was not moved from before.
namespace bare {
template <class Tensor>
inline Tensor&& usable(Tensor& x) {
  static_cast<void>(hocket::detail::checked_mesh(x.mesh()));
  return std::move(x);
}
}  // namespace bare

namespace typed {
unknown<replicated> use(unknown<invariant>&& x) { return hocket::convert<"tp", replicated>(std::move(x)); }
unknown<summands> add_later(unknown<varying>&& x) { return hocket::convert<"tp", summands>(std::move(x)); }
placed<replicated> redistribute(placed<invariant>&& x) {
  return hocket::redistribute<on<"tp", replicated>>(std::move(x));
}
}  // namespace typed
namespace bare {
unknown<invariant> use(unknown<invariant>&& x) { return usable(x); }
unknown<varying> add_later(unknown<varying>&& x) { return usable(x); }
placed<invariant> redistribute(placed<invariant>&& x) { return usable(x); }
}  // namespace bare

// ── Collectives ────────────────────────────────────────────────────────────────────────────────────────────────────

// If extents are known only at run time, their hash is part of the call's signature, also by hand: see bare::checked.
namespace typed {
unknown<invariant> reduce(unknown<summands>&& x) { return hocket::convert<"tp", invariant>(std::move(x)); }
placed<replicated> gather(const placed<shard<0>>& x) { return hocket::convert<"tp", replicated>(x); }
placed<shard<0>> scatter(const placed<summands>& x) { return hocket::convert<"tp", shard<0>>(x); }
}  // namespace typed
namespace bare {
template <class Tensor>
inline auto checked(const Tensor& x) {
  return hocket::detail::with_extents(hocket::options<>(), x);
}
unknown<summands> reduce(unknown<summands>&& x) {
  const auto& along = hocket::detail::checked_mesh(x.mesh()).along<"tp">();
  hocket::all_reduce(along, hocket::in_place(x.elements()), std::plus<>(), checked(x));
  return std::move(x);
}
template <class To, class From>
inline To made_for(const From& x) {
  auto to = To::unwritten(x.mesh(), x.sizes());
  to.copy_count(x);
  return to;
}
placed<replicated> gather(const placed<shard<0>>& x) {
  auto to = made_for<placed<replicated>>(x);
  hocket::all_gather(x.mesh().along<"tp">(), x.elements(), to.elements());
  return to;
}
placed<shard<0>> scatter(const placed<summands>& x) {
  auto to = made_for<placed<shard<0>>>(x);
  hocket::reduce_scatter(x.mesh().along<"tp">(), x.elements(), to.elements());
  return to;
}
}  // namespace bare

// By hand, the slices are known to be equal. With run-time extents, the types do not know this: so they divide,
// compare, and have a call for unequal slices.
namespace typed {
unknown<replicated> unknown_gather(const unknown<shard<0>>& x) { return hocket::convert<"tp", replicated>(x); }
unknown<shard<0>> unknown_scatter(const unknown<summands>& x) { return hocket::convert<"tp", shard<0>>(x); }
}  // namespace typed
namespace bare {
unknown<replicated> unknown_gather(const unknown<shard<0>>& x) {
  auto to = made_for<unknown<replicated>>(x);
  hocket::all_gather(x.mesh().along<"tp">(), x.elements(), to.elements(), checked(x));
  return to;
}
unknown<shard<0>> unknown_scatter(const unknown<summands>& x) {
  auto to = made_for<unknown<shard<0>>>(x);
  hocket::reduce_scatter(x.mesh().along<"tp">(), x.elements(), to.elements(), std::plus<>(), checked(x));
  return to;
}
}  // namespace bare

// ── A rank's part ──────────────────────────────────────────────────────────────────────────────────────────────────

namespace typed {
double element(const placed<shard<0>>& x, std::size_t i, std::size_t j) { return x.local()(i, j); }
double unknown_element(const unknown<shard<0>>& x, std::size_t i, std::size_t j) { return x.local()(i, j); }
double total(const placed<shard<1>>& x) {
  double sum = 0;
  const auto part = x.local();
  for (std::size_t i = 0; i < part.extent(0); ++i) {
    for (std::size_t j = 0; j < part.extent(1); ++j) sum += part(i, j);
  }
  return sum;
}
void scale(unknown<shard<0>>& x) {
  const auto part = x.local();
  for (std::size_t i = 0; i < part.extent(0); ++i) {
    for (std::size_t j = 0; j < part.extent(1); ++j) part(i, j) *= 2;
  }
}
std::size_t rows(const placed<shard<0>>& x) { return x.local().extent(0); }
std::size_t stride(const placed<shard<1>>& x) { return x.local().stride(0); }
std::size_t volume(const placed<shard<1>>& x) { return x.elements().size(); }
}  // namespace typed
namespace bare {
double element(const placed<shard<0>>& x, std::size_t i, std::size_t j) { return x.elements().data()[i * 512 + j]; }
double unknown_element(const unknown<shard<0>>& x, std::size_t i, std::size_t j) {
  return x.elements().data()[i * x.part().size[1] + j];
}
double total(const placed<shard<1>>& x) {
  double sum = 0;
  const double* const data = x.elements().data();
  for (std::size_t i = 0; i < 64; ++i) {
    for (std::size_t j = 0; j < 128; ++j) sum += data[i * 128 + j];
  }
  return sum;
}
void scale(unknown<shard<0>>& x) {
  double* const data = x.elements().data();
  const std::size_t height = x.part().size[0], width = x.part().size[1];
  for (std::size_t i = 0; i < height; ++i) {
    for (std::size_t j = 0; j < width; ++j) data[i * width + j] *= 2;
  }
}
std::size_t rows(const placed<shard<0>>&) { return 16; }
std::size_t stride(const placed<shard<1>>&) { return 128; }
std::size_t volume(const placed<shard<1>>&) { return 64 * 128; }
}  // namespace bare

// ── Local mathematics ──────────────────────────────────────────────────────────────────────────────────────────────

// `apply` compares the operands' meshes, which the code by hand assumes to be equal.
void multiply(hocket::array_view<const double, 2> x, hocket::array_view<const double, 2> w,
              hocket::array_view<double, 2> to);

namespace typed {
placed<summands, extents<64, 32>> product(const placed<shard<1>>& x, const placed<shard<0>, extents<512, 32>>& w) {
  return hocket::apply(hocket::multilinear<"mk,kn->mn">(), multiply, x, w);
}
}  // namespace typed
namespace bare {
placed<summands, extents<64, 32>> product(const placed<shard<1>>& x, const placed<shard<0>, extents<512, 32>>& w) {
  auto to = placed<summands, extents<64, 32>>::of_sizes(x.mesh(), {64, 32});
  multiply(x.local(), w.local(), to.local());
  return to;
}
}  // namespace bare
