// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A tensor on one mesh becomes one on another mesh of the same ranks: training and inference, or two phases of one
/// program, cut the same tensors in different ways. Partial results are combined first, the cheaper way; then each rank
/// sends what others lack, in one exchange.
///
/// @code
/// auto served = hocket::redistribute<serving_weight>(trained, serving_ranks);   // a tensor type, and its mesh
/// std::puts(hocket::explain_redistribution<serving_weight>(trained, serving_ranks).c_str());
/// @endcode
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/options.hpp>
#include <hocket/shard/boxes.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/redistribute.hpp>
#include <hocket/shard/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Placements after which a tensor can go to another mesh: partial results are combined to `Combined`, and what is cut
/// stays so, or is gathered.
template <class Placed, class Combined, bool Gathers>
struct before_change;
template <class... Placements, class Combined, bool Gathers>
struct before_change<placements<Placements...>, Combined, Gathers> {
  using type = placements<
      std::conditional_t<Placements::value.partial(), Combined,
                         std::conditional_t<Gathers && Placements::value.sharded(), replicated, Placements>>...>;
};

template <class Placed>
constexpr bool any_of_kind(placement_kind kind) noexcept {
  for (const placement& each : Placed::values) {
    if (each.kind == kind) return true;
  }
  return false;
}

template <class Placed>
constexpr bool any_partial_of() noexcept {
  for (const placement& each : Placed::values) {
    if (each.partial()) return true;
  }
  return false;
}

/// Throws unless `sizes` are those that the type of `To` tells.
template <class To>
void check_extents(const std::array<std::size_t, To::rank>& sizes, const typename To::mesh_type& mesh,
                   const std::source_location& site) {
  for (std::size_t d = 0; d < To::rank; ++d) {
    const std::size_t told = To::extents_type::sizes[d];
    if (told == dynamic || told == sizes[d]) continue;
    raise(errc::invalid_argument,
          "extent " + std::to_string(d) + " is " + std::to_string(sizes[d]) +
              "; the type of the tensor on the other mesh says " + std::to_string(told),
          {.operation = "redistribute", .rank = mesh.rank(), .ranks = mesh.size(), .site = site});
  }
}

template <class From, class To>
struct checked_change_of_mesh {
  static_assert(std::is_same_v<std::remove_const_t<typename From::element_type>, typename To::element_type> &&
                    may_have_same_extents<typename From::extents_type, typename To::extents_type>(),
                "the tensor on the other mesh must have the same element type and extents");
  static_assert(!any_of_kind<typename From::placements_type>(placement_kind::varying) &&
                    !any_of_kind<typename To::placements_type>(placement_kind::varying),
                "varying data are no parts of a whole, so they can't go to another mesh");
  static_assert(!any_of_kind<typename To::placements_type>(placement_kind::partial_sum) &&
                    !any_of_kind<typename To::placements_type>(placement_kind::partial_mean) &&
                    !any_of_kind<typename To::placements_type>(placement_kind::partial_other),
                "a tensor can't become partial on another mesh: make it replicated there, and then partial");
  static_assert(!any_of_kind<typename From::placements_type>(placement_kind::replicated) ||
                    !any_of_kind<typename To::placements_type>(placement_kind::invariant),
                "replicated data can't become invariant, on another mesh neither: make it replicated there");
  static constexpr bool value = true;
};

/// Throws unless two meshes have the same ranks in the same order.
template <class A, class B>
void check_same_ranks(const A& a, const B& b, const std::source_location& site) {
  const auto& of_a = communicator_access::state(checked_mesh(a).all());
  const auto& of_b = communicator_access::state(checked_mesh(b).all());
  if (a.size() == b.size() && *of_a.members() == *of_b.members()) return;
  raise(errc::invalid_argument,
        "the other mesh has other ranks, or the same in another order; make both from one "
        "communicator",
        {.operation = "redistribute", .rank = a.rank(), .ranks = a.size(), .site = site});
}

/// What the rank that lacks most lacks of its part after a move. All ranks find the same; 0 if nothing has to move.
template <std::size_t Rank>
std::size_t most_lacking(const std::vector<box<Rank>>& before, const std::vector<box<Rank>>& after) {
  std::size_t most = 0;
  for (std::size_t rank = 0; rank < after.size(); ++rank) {
    most = std::max(most, after[rank].volume() - intersection(before[rank], after[rank]).volume());
  }
  return most;
}

/// The last step to another mesh, as a move that has a price.
struct last_step {
  std::size_t elements = 0;  ///< received by all ranks together
  double seconds = 0;
  bool exchanges = false;
};

/// From `Way`, a tensor type on the old mesh, to `To` on the new one.
template <class To, class Way>
last_step last_step_to(const typename Way::mesh_type& old_mesh, const typename To::mesh_type& mesh,
                       const typename Way::sizes_type& sizes) {
  constexpr std::size_t rank = Way::rank;
  const auto before = parts_along<rank>(old_mesh, Way::axes::whole, sizes, Way::placements_type::values);
  const auto after = parts_along<rank>(mesh, To::axes::whole, sizes, To::placements_type::values);
  const std::size_t most = most_lacking(before, after);
  last_step step;
  step.exchanges = most > 0;
  for (std::size_t each = 0; each < after.size(); ++each) {
    step.elements += after[each].volume() - intersection(before[each], after[each]).volume();
  }
  const move_costs costs;
  const double bytes = sizeof(typename To::element_type);
  step.seconds = static_cast<double>(after.front().volume()) * bytes * costs.copy_per_byte;
  if (step.exchanges) {
    step.seconds += costs.latency * static_cast<double>(std::bit_width(after.size() - 1)) +
                    static_cast<double>(most) * bytes * costs.seconds_per_byte;
  }
  return step;
}

/// Calls `go` with the cheapest of the placements from which a partial tensor can go to another mesh, last step
/// included: slices of the results, whole results, or all of it whole.
template <class To, class From, class Go>
auto by_cheapest_way(const From& from, const typename To::mesh_type& mesh, const Go& go) {
  using placed = typename From::placements_type;
  using target = std::conditional_t<From::rank == 0, invariant, shard<0>>;
  using slices = placed_as<From, typename before_change<placed, target, false>::type>;
  using results = placed_as<From, typename before_change<placed, replicated, false>::type>;
  using whole = placed_as<From, typename before_change<placed, replicated, true>::type>;
  const auto price = [&]<class Way>(std::type_identity<Way>) {
    const auto plan = remembered_plan<writable_t<From>, Way>(from.sizes(), from.mesh());
    const double last = last_step_to<To, Way>(from.mesh(), mesh, from.sizes()).seconds;
    return plan.possible ? plan.seconds() + last : std::numeric_limits<double>::infinity();
  };
  const double of_slices = price(std::type_identity<slices>());
  const double of_results = price(std::type_identity<results>());
  if constexpr (!std::is_same_v<results, whole>) {
    const double of_whole = price(std::type_identity<whole>());
    if (of_whole < std::min(of_slices, of_results)) return go(std::type_identity<whole>());
  }
  if (of_results < of_slices) return go(std::type_identity<results>());
  return go(std::type_identity<slices>());
}

/// One exchange among all ranks, or none if nothing has to move. Where ranks have copies, each is served by the one that
/// shares its coordinates along the axes of the copies.
template <class To, class From, class Options>
To move_to_mesh(const From& from, const typename To::mesh_type& mesh, const Options& options,
                const std::source_location& site) {
  constexpr std::size_t rank = From::rank;
  using value_type = typename To::element_type;
  const auto& old_mesh = from.mesh();
  To to = To::unwritten(mesh, from.sizes());
  to.copy_count(from);
  axis_set copies = 0;
  for (std::size_t a = 0; a < old_mesh.extents().size(); ++a) {
    copies |= From::placements_type::values[a].whole() ? 1U << a : 0U;
  }
  const auto serves = [&](int peer) {
    return same_along(copies, old_mesh.coordinates_of(peer), old_mesh.coordinates());
  };
  const block<value_type, rank> target{to.elements().data(), to.part()};
  const block<const value_type, rank> source{from.elements().data(), from.part()};
  const auto before = parts_along<rank>(old_mesh, From::axes::whole, from.sizes(), From::placements_type::values);
  const auto after = parts_along<rank>(mesh, To::axes::whole, from.sizes(), To::placements_type::values);
  if (most_lacking(before, after) == 0) {
    copy_region<value_type, rank>(target, source, to.part());
  } else {
    exchange_parts<value_type, rank>(old_mesh.all(), target, source, before, after, serves, with_extents(options, from),
                                     site);
  }
  return to;
}

}  // namespace detail

/// `tensor` as a tensor of type `To` on `mesh`, which has the same ranks as its own, in the same order: an exchange
/// among all ranks, or none where every rank has its new part already. Partial results are combined before that, to slices or
/// whole, whichever is cheaper with the exchange that follows. Every placement of `To` must be one that is not partial.
///
/// Collective over the ranks of both meshes. Throws `invalid_argument` if `mesh` has other ranks, or `To` says other extents;
/// else as the collectives.
template <tensor_type To, tensor_type Tensor, call_options Options = options<>>
To redistribute(Tensor&& tensor, const typename To::mesh_type& mesh, const Options& options = {},
                const std::source_location& site = std::source_location::current()) {
  using from_type = std::remove_cvref_t<Tensor>;
  static_assert(detail::checked_change_of_mesh<from_type, To>::value);
  detail::check_same_ranks(tensor.mesh(), mesh, site);
  detail::check_extents<To>(tensor.sizes(), mesh, site);
  if constexpr (!detail::any_partial_of<typename from_type::placements_type>()) {
    return detail::move_to_mesh<To>(tensor, mesh, options, site);
  } else {
    return detail::by_cheapest_way<To>(tensor, mesh, [&]<class Way>(std::type_identity<Way>) -> To {
      const auto on_the_way = detail::run_redistribution<Way>(std::forward<Tensor>(tensor), options, site);
      return detail::move_to_mesh<To>(on_the_way, mesh, options, site);
    });
  }
}

/// The same of `redistribute<To>(tensor, mesh)`, with its last step. Local, too.
template <tensor_type To, tensor_type Tensor>
std::string explain_redistribution(const Tensor& tensor, const typename To::mesh_type& mesh,
                                   const std::source_location& site = std::source_location::current()) {
  static_assert(detail::checked_change_of_mesh<Tensor, To>::value);
  detail::check_same_ranks(tensor.mesh(), mesh, site);
  detail::check_extents<To>(tensor.sizes(), mesh, site);
  const auto explained = [&]<class Way>(std::type_identity<Way>) {
    const auto plan = detail::remembered_plan<Tensor, Way>(tensor.sizes(), tensor.mesh());
    const auto last = detail::last_step_to<To, Way>(tensor.mesh(), mesh, tensor.sizes());
    const double bytes = static_cast<double>(last.elements * sizeof(typename To::element_type));
    return "redistribution: " + std::to_string(plan.collectives() + (last.exchanges ? 1U : 0U)) + " collectives\n" +
           detail::plan_text(tensor, plan) +
           detail::move_text(last.exchanges ? "all_to_all" : "slice", "all, to the other mesh", bytes, last.seconds);
  };
  if constexpr (detail::any_partial_of<typename Tensor::placements_type>()) {
    return detail::by_cheapest_way<To>(tensor, mesh, explained);
  } else {
    return explained(std::type_identity<detail::writable_t<Tensor>>());
  }
}

HOCKET_END_NAMESPACE
