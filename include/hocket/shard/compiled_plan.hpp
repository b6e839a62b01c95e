// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The plan of a redistribution as a constant. If the type of the tensor to redistribute contains all extents, the
/// compiler searches for the plan, unless the search would exceed the compiler's limits.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/shard/parts_of_ranks.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/redistribution_plan.hpp>
#include <hocket/shard/tensor.hpp>

#include <array>
#include <cstddef>

HOCKET_BEGIN_NAMESPACE
namespace detail {

template <class Placed>
constexpr auto placement_array() noexcept {
  std::array<placement, static_cast<std::size_t>(Placed::size)> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = Placed::values[i];
  return values;
}

template <class Mesh>
constexpr auto type_extents() noexcept {
  typename Mesh::extents_type extents{};
  for (std::size_t i = 0; i < extents.size(); ++i) extents[i] = Mesh::axes::all[i].extent;
  return extents;
}

// Compilers report an error if a constant takes too many operations. `max_compile_time_pairs` limits a search before it
// starts, `max_compile_time_work` while it runs, in units of `parts_of_ranks::work`. The limit of g++ is 32 million
// operations: a search took 4 million at its start, and up to 290 per unit. That of clang is a million; 40 per unit.
#ifdef __clang__
inline constexpr std::size_t max_compile_time_pairs = std::size_t{1} << 17U;
inline constexpr std::size_t max_compile_time_work = 20'000;
#else
inline constexpr std::size_t max_compile_time_pairs = std::size_t{1} << 21U;
inline constexpr std::size_t max_compile_time_work = 90'000;
#endif

/// Returns whether the compiler may start a search, which compares the parts of all ranks in pairs of placements.
/// Above `max_ranks_compared` a search compares no parts, but the compiler would still enumerate the ranks.
template <class Tensor>
constexpr bool fits_compile_time_search() noexcept {
  constexpr std::size_t dimensions = Tensor::rank;
  std::size_t states = 1;
  std::size_t ranks = 1;
  for (const axis& each : Tensor::axes::all) {
    states *= dimensions + 2;
    ranks *= static_cast<std::size_t>(each.extent);
    if (ranks > max_ranks_compared) return false;
    if (states > 64 || states * dimensions * states * dimensions * ranks > max_compile_time_pairs) return false;
  }
  return true;
}

/// Returns whether the compiler searches for the plan: if the tensor's type contains all extents, and the search fits.
template <class Tensor>
constexpr bool searches_at_compile_time() noexcept {
  for (const axis& each : Tensor::axes::all) {
    if (each.extent == run_time_extent) return false;
  }
  return Tensor::extents_type::dynamic_rank == 0 && fits_compile_time_search<Tensor>();
}

/// The plan of a redistribution; `From` must contain all extents. `search_abandoned` if the search took too much work.
template <class From, class To>
inline constexpr auto compiled_plan = plan_redistribution(
    From::extents_type::sizes, type_extents<typename From::mesh_type>(),
    placement_array<typename From::placements_type>(), placement_array<typename To::placements_type>(),
    sizeof(typename From::element_type), move_costs(), max_compile_time_work);

/// Returns whether `compiled_plan` is the plan to use. If false, the plan is searched for at run time.
template <class From, class To>
constexpr bool has_compiled_plan() noexcept {
  if constexpr (searches_at_compile_time<From>()) {
    return !compiled_plan<From, To>.search_abandoned;
  } else {
    return false;
  }
}

}  // namespace detail
HOCKET_END_NAMESPACE
