// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Redistribution of a tensor to another mesh of the same ranks, because training and inference, or two phases of one
/// program, divide tensors in different ways. Moves on the old mesh combine partial results; then each rank sends the
/// elements that others lack, in one exchange. The moves are those that are cheapest together with the exchange.
///
/// @code
/// auto served = hocket::redistribute<serving_weight>(trained, serving_ranks);   // a tensor type, and its mesh
/// std::puts(hocket::explain_redistribution<serving_weight>(trained, serving_ranks).c_str());
/// @endcode
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/text.hpp>
#include <hocket/shard/boxes.hpp>
#include <hocket/shard/conversion_rules.hpp>
#include <hocket/shard/convert.hpp>
#include <hocket/shard/moves.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/plan_cache.hpp>
#include <hocket/shard/redistribute.hpp>
#include <hocket/shard/redistribution_move.hpp>
#include <hocket/shard/tensor.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Throws unless `sizes` agree with the extents in the type `To`.
template <class To>
void check_extents(const std::array<std::size_t, To::rank>& sizes, const typename To::mesh_type& mesh,
                   const std::source_location& site) {
  for (std::size_t d = 0; d < To::rank; ++d) {
    const std::size_t declared = To::extents_type::sizes[d];
    if (declared == dynamic || declared == sizes[d]) continue;
    raise(
        errc::invalid_argument,
        concat({"extent ", d, " is ", sizes[d], ", but the type of the tensor on the other mesh requires ", declared}),
        {.operation = "redistribute", .rank = mesh.rank(), .ranks = mesh.size(), .site = site});
  }
}

/// Throws unless two meshes have the same ranks in the same order.
template <class A, class B>
void check_same_ranks(const A& a, const B& b, const std::source_location& site) {
  const auto& of_a = communicator_access::state(checked_mesh(a).all());
  const auto& of_b = communicator_access::state(checked_mesh(b).all());
  if (a.size() == b.size() && *of_a.members() == *of_b.members()) return;
  raise(errc::invalid_argument,
        "the other mesh has other ranks, or the same ranks in another order; make both meshes from one communicator",
        {.operation = "redistribute", .rank = a.rank(), .ranks = a.size(), .site = site});
}

/// Returns the largest number of elements that a rank lacks of its new part; equal on all ranks.
template <std::size_t Rank>
std::size_t most_missing_elements(const std::vector<box<Rank>>& before, const std::vector<box<Rank>>& after) {
  std::size_t most = 0;
  for (std::size_t rank = 0; rank < after.size(); ++rank) {
    most = std::max(most, after[rank].volume() - intersection(before[rank], after[rank]).volume());
  }
  return most;
}

/// The last step to another mesh, as a move with its cost.
struct last_step {
  std::size_t elements = 0;  ///< received by all ranks together
  double seconds = 0;
  bool exchanges = false;
};

/// Returns the last step from placements `placed` on the old mesh to `To` on the new one.
template <class To, class Old, std::size_t Axes>
last_step last_step_to(const Old& old_mesh, const std::array<placement, Axes>& placed,
                       const typename To::mesh_type& mesh, const typename To::sizes_type& sizes) {
  const auto before = parts_along<To::rank>(old_mesh, Old::axes::whole, sizes, placed);
  const auto after = parts_along<To::rank>(mesh, To::axes::whole, sizes, To::placements_type::values);
  const std::size_t most = most_missing_elements(before, after);
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

/// A path of a tensor to another mesh: a redistribution on its own mesh, and a last step.
template <std::size_t Axes>
struct path_to_mesh {
  std::array<placement, Axes> through{};  ///< placements before the last step
  redistribution_plan<Axes> plan{};
  last_step last{};

  double seconds() const noexcept { return plan.seconds() + last.seconds; }
};

/// Calls `visit` with each array of placements in which the axes of `varied` are whole or cut along any dimension, and
/// the others as in `placed`.
template <std::size_t Axes, class Visit>
void for_all_without_partial(std::array<placement, Axes> placed, axis_set varied, int dimensions, const Visit& visit) {
  std::array<int, Axes> choices;
  choices.fill(dimensions + 1);
  for_all_along(choices, std::array<int, Axes>{}, varied, [&](const auto& choice) {
    for (std::size_t a = 0; a < Axes; ++a) {
      if ((varied >> a & 1U) == 0) continue;
      placed[a] = choice[a] == 0 ? replicated::value : placement{placement_kind::shard, choice[a] - 1};
    }
    visit(static_cast<const std::array<placement, Axes>&>(placed));
    return true;
  });
}

/// Returns the cheapest path. Varies the placements of all axes if these are few, else of the axes with partial
/// results.
template <class To, class From>
auto cheapest_path(const From& from, const typename To::mesh_type& mesh) {
  constexpr std::size_t axes = From::axes::all.size();
  constexpr auto own = placement_array<typename From::placements_type>();
  path_to_mesh<axes> best;
  const auto last_from = [&](const auto& placed) { return last_step_to<To>(from.mesh(), placed, mesh, from.sizes()); };
  axis_set partial = 0, all = 0;
  double states = 1;
  for (std::size_t a = 0; a < axes; ++a) {
    if (own[a].partial()) partial |= 1U << a;
    if (from.mesh().extents()[a] > 1) all |= 1U << a;
    states *= From::rank + 1;
  }
  if (partial == 0) {
    best = {own, {}, last_from(own)};
    best.plan.possible = true;
  }
  const axis_set varied = partial | (states <= 256 ? all : 0U);
  for_all_without_partial(own, varied, static_cast<int>(From::rank), [&](const auto& placed) {
    const last_step last = last_from(placed);
    if (best.plan.possible && last.seconds >= best.seconds()) return;
    const auto plan = cached_plan_to<writable_t<From>>(placed, from.sizes(), from.mesh());
    const path_to_mesh<axes> found{placed, plan, last};
    if (plan.possible && (!best.plan.possible || found.seconds() < best.seconds())) best = found;
  });
  return best;
}

template <class From, class To>
struct path_request {
  typename From::sizes_type sizes{};
  typename To::mesh_type::extents_type extents{};
  friend bool operator==(const path_request&, const path_request&) = default;
};

/// Like `cheapest_path`, but searches only if the tensor's mesh does not have the result stored. The result is the same
/// for all meshes of the same ranks and extents.
template <class To, class From>
auto cached_path(const From& from, const typename To::mesh_type& mesh) {
  using memory = search_cache<path_request<From, To>, path_to_mesh<From::axes::all.size()>>;
  return checked_mesh(from.mesh()).attributes().template get<memory>().get({from.sizes(), mesh.extents()}, [&] {
    return cheapest_path<To>(from, mesh);
  });
}

/// Makes the last step to `to`: one exchange among all ranks, or a local copy if nothing must move. If several ranks
/// have copies, each rank receives from those that share its coordinates along the axes of the copies.
template <class To, class Old, std::size_t Axes, class Options>
void make_last_step(To& to, const Old& old_mesh, const std::array<placement, Axes>& placed,
                    const typename To::element_type* from, const Options& options, const std::source_location& site) {
  constexpr std::size_t rank = To::rank;
  using value_type = typename To::element_type;
  axis_set copies = 0;
  for (std::size_t a = 0; a < Axes; ++a) copies |= placed[a].whole() ? 1U << a : 0U;
  const auto serves = [&](int peer) {
    return same_along(copies, old_mesh.coordinates_of(peer), old_mesh.coordinates());
  };
  const block<value_type, rank> target{to.elements().data(), to.part()};
  const block<const value_type, rank> source{
      from, part_of<rank>(to.sizes(), placed, old_mesh.extents(), old_mesh.coordinates())};
  const auto before = parts_along<rank>(old_mesh, Old::axes::whole, to.sizes(), placed);
  const auto after = parts_along<rank>(to.mesh(), To::axes::whole, to.sizes(), To::placements_type::values);
  if (most_missing_elements(before, after) == 0) {
    copy_region<value_type, rank>(target, source, to.part());
  } else {
    exchange_parts<value_type, rank>(old_mesh.all(), target, source, before, after, serves, options, site);
  }
}

template <class To, class Tensor, class Options>
To change_mesh(Tensor&& tensor, const typename To::mesh_type& mesh, const Options& options,
               const std::source_location& site) {
  using From = writable_t<std::remove_cvref_t<Tensor>>;
  using placed = typename From::placements_type;
  using T = typename To::element_type;
  const auto& all_options = with_extents(options, tensor);
  using work_type = redistributing<T, From::rank, typename From::mesh_type, typename first_partial<placed>::type,
                                   std::remove_cvref_t<decltype(all_options)>>;
  To to = To::unwritten(mesh, tensor.sizes());
  const auto way = cached_path<To>(tensor, mesh);
  if (!way.plan.possible) refuse_unreachable(tensor.mesh(), site);
  if (way.plan.size == 0) {
    to.copy_count(tensor);
    make_last_step(to, tensor.mesh(), way.through, tensor.elements().data(),
                   options_of_moves<work_type::reduces>(all_options), site);
    return to;
  }
  const auto old_mesh = tensor.mesh();  // the tensor may be freed before the last step
  const box<From::rank> part =
      part_of<From::rank>(tensor.sizes(), way.through, old_mesh.extents(), old_mesh.coordinates());
  const scratch_array<T> between(part.volume());
  {
    auto&& source = source_of<work_type::writes>(std::forward<Tensor>(tensor));
    work_type work(old_mesh, to.sizes(), placement_array<placed>(), source.elements().data(), between.data(),
                   source.count(), all_options, site);
    work.run_all(way.plan);
    to.copy_count(work);
  }
  make_last_step(to, old_mesh, way.through, between.data(), options_of_moves<work_type::reduces>(all_options), site);
  return to;
}

}  // namespace detail

/// Returns `tensor` as a tensor of type `To` on `mesh`, which must have the same ranks as its own mesh, in the same
/// order. Combines partial results on the old mesh, together with other moves that reduce the cost; then exchanges
/// elements among all ranks, unless every rank already has its new part. No placement of `To` may be partial.
///
/// Collective over the ranks of both meshes. Throws `invalid_argument` if `mesh` has other ranks, or if `To` has other
/// extents; otherwise, errors as for the collectives.
template <tensor_type To, tensor_type Tensor, call_options Options = options<>>
  requires detail::is_redistributed<Tensor, detail::requested_list<To>, typename To::mesh_type, Options>
To redistribute(Tensor&& tensor, const typename To::mesh_type& mesh, const Options& options = {},
                const std::source_location& site = std::source_location::current()) {
  using placed = typename std::remove_cvref_t<Tensor>::placements_type;
  detail::check_same_ranks(tensor.mesh(), mesh, site);
  detail::check_extents<To>(tensor.sizes(), mesh, site);
  To to = detail::change_mesh<To>(std::forward<Tensor>(tensor), mesh, options, site);
  if constexpr (detail::any_of_kind<placed>(placement_kind::partial_mean)) detail::check_means(to, site);
  return to;
}

/// Like `explain_redistribution` on one mesh, for `redistribute<To>(tensor, mesh)` with its last step. Local.
template <tensor_type To, tensor_type Tensor>
  requires detail::can_explain_path<Tensor, To>
std::string explain_redistribution(const Tensor& tensor, const typename To::mesh_type& mesh,
                                   const std::source_location& site = std::source_location::current()) {
  detail::check_same_ranks(tensor.mesh(), mesh, site);
  detail::check_extents<To>(tensor.sizes(), mesh, site);
  const auto way = detail::cached_path<To>(tensor, mesh);
  if (!way.plan.possible) detail::refuse_unreachable(tensor.mesh(), site);
  const double bytes = static_cast<double>(way.last.elements * sizeof(typename To::element_type));
  return detail::concat({"redistribution: ", way.plan.collectives() + (way.last.exchanges ? 1U : 0U), " collectives\n",
                         detail::plan_text(tensor, way.plan),
                         detail::move_text(way.last.exchanges ? "all_to_all" : "slice", "all, to the other mesh", bytes,
                                           way.last.seconds)});
}

HOCKET_END_NAMESPACE
