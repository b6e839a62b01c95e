// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Redistribution of a tensor from any placements to any others on one mesh, by the cheapest sequence of collectives.
/// If the types contain all extents, the compiler searches for it. For another mesh, see shard/change_mesh.hpp.
///
/// @code
/// auto rows = hocket::redistribute<hocket::on<"tp", hocket::shard<0>>>(std::move(columns));   // other axes stay
/// std::puts(hocket::explain_redistribution<hocket::on<"tp", hocket::shard<0>>>(columns).c_str());
/// @endcode
///
/// A redistribution has no backward pass, because a value can be used in several ways; conversions (convert.hpp) do.
#pragma once

#include <hocket/collective/all_reduce.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/float_bits.hpp>
#include <hocket/core/not_understood.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/text.hpp>
#include <hocket/shard/agreed_extents.hpp>
#include <hocket/shard/boxes.hpp>
#include <hocket/shard/compiled_plan.hpp>
#include <hocket/shard/conversion_rules.hpp>
#include <hocket/shard/convert.hpp>
#include <hocket/shard/moves.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/plan_cache.hpp>
#include <hocket/shard/redistribution_diagnostics.hpp>
#include <hocket/shard/redistribution_plan.hpp>
#include <hocket/shard/tensor.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// This rank's data and their placements, before the first move or after a move.
template <class T, std::size_t Rank, std::size_t Axes>
struct current_part {
  std::array<placement, Axes> placed{};
  box<Rank> part;
  const T* data = nullptr;
  T* writable = nullptr;  ///< equals `data`, or null if the data are the caller's and read-only
  scratch_array<T> owned{0};
};

/// Runs the moves of one redistribution. Placements are values, not types, so that one instantiation runs many plans.
/// `Partial` is the source's partial placement, or void if it has none; then elements need no addition.
template <class T, std::size_t Rank, class Mesh, class Partial, class Options>
class redistributing {
  static constexpr std::size_t axes = static_cast<std::size_t>(Mesh::dimensions);
  using move_type = redistribution_move<axes>;
  using held_type = current_part<T, Rank, axes>;

 public:
  /// Whether the redistribution writes to its source: means are weighted in place before they are added.
  static constexpr bool writes = std::is_same_v<Partial, partial<mean>>;
  /// Whether a move may combine partial results: if the source has some. Data that become partial are not combined.
  static constexpr bool reduces = !std::is_void_v<Partial>;

  /// Redistributes `data`, placed as `placed`, into `out`. If they are means, each is the mean of `count` elements.
  redistributing(const Mesh& mesh, const std::array<std::size_t, Rank>& sizes,
                 const std::array<placement, axes>& placed, std::conditional_t<writes, T*, const T*> data, T* out,
                 double count, const Options& options, const std::source_location& site)
      : mesh_(mesh), sizes_(sizes), out_(out), count_(count), options_(options), site_(site) {
    now_.placed = placed;
    now_.part = part_at(placed);
    now_.data = data;
    if constexpr (writes) now_.writable = data;
  }

  template <move_kind Kind>
  void run(const move_type& move, bool last) {
    held_type next;
    next.placed = move.after;
    next.part = part_at(move.after);
    if (!last) next.owned = scratch_array<T>(next.part.volume());
    next.writable = last ? out_ : next.owned.data();
    next.data = next.writable;
    // A function, because there is no communicator for a slice whose set of axes is empty.
    const auto comm = [&]() -> const auto& { return mesh_.along(move.along); };
    const block<T, Rank> target{next.writable, next.part};
    const block<const T, Rank> source{now_.data, now_.part};
    if constexpr (Kind == move_kind::slice) {
      copy_region<T, Rank>(target, source, next.part);
    } else if constexpr (Kind == move_kind::keep_on_first || Kind == move_kind::pad_with_zeros) {
      make_summands(move, target, source);
    } else if constexpr (Kind == move_kind::gather_to_all) {
      gather_parts<T, Rank>(comm(), target, elements(), parts(move.along, now_.placed),
                            options_of_moves<reduces>(options_), site_);
    } else if constexpr (Kind == move_kind::reduce_to_all) {
      weigh(comm());
      all_reduce(comm(), elements(), std::span(next.writable, next.part.volume()),
                 typename reduction_of<Partial>::type{}, options_, site_);
    } else if constexpr (Kind == move_kind::reduce_to_slices) {
      weigh(comm());
      reduce_parts<T, Rank>(comm(), {next.writable, next.part.volume()}, source, parts(move.along, next.placed),
                            typename reduction_of<Partial>::type{}, options_, site_);
    } else {
      exchange(move, target, source);
    }
    now_ = std::move(next);
  }

  void run(const move_type& move, bool last) {
    switch (move.kind) {
      case move_kind::slice: return run<move_kind::slice>(move, last);
      case move_kind::keep_on_first: return run<move_kind::keep_on_first>(move, last);
      case move_kind::pad_with_zeros: return run<move_kind::pad_with_zeros>(move, last);
      case move_kind::gather_to_all: return run<move_kind::gather_to_all>(move, last);
      case move_kind::exchange: return run<move_kind::exchange>(move, last);
      case move_kind::reduce_to_all:
        if constexpr (reduces) return run<move_kind::reduce_to_all>(move, last);
        return;
      case move_kind::reduce_to_slices:
        if constexpr (reduces) return run<move_kind::reduce_to_slices>(move, last);
        return;
    }
  }

  void run_all(const redistribution_plan<axes>& plan) {
    for (std::size_t i = 0; i < plan.size; ++i) run(plan.moves[i], i + 1 == plan.size);
  }

  double count() const noexcept { return count_; }

 private:
  box<Rank> part_at(const std::array<placement, axes>& placed) const {
    return part_of<Rank>(sizes_, placed, mesh_.extents(), mesh_.coordinates());
  }

  std::span<const T> elements() const { return {now_.data, now_.part.volume()}; }

  auto parts(axis_set along, const std::array<placement, axes>& placed) const {
    return parts_along<Rank>(mesh_, along, sizes_, placed);
  }

  template <class Comm>
  void weigh(const Comm& comm) {
    if constexpr (writes) {
      count_ = weigh_means(std::span(now_.writable, now_.part.volume()), count_, comm, options_, site_);
    }
  }

  /// Returns the axes along which the ranks hold copies.
  axis_set axes_of_copies() const {
    axis_set copies = 0;
    for (std::size_t a = 0; a < axes; ++a) copies |= now_.placed[a].whole() ? 1U << a : 0U;
    return copies;
  }

  /// Makes summands: puts this rank's part among zeros. Of several copies, the first rank's is the only one that stays.
  void make_summands(const move_type& move, const block<T, Rank>& target, const block<const T, Rank>& source) {
    const bool stays = same_along(move.along & axes_of_copies(), mesh_.coordinates(), {});
    const box<Rank>& own = source.where;
    if (!stays || own.volume() != target.where.volume()) std::fill_n(target.data, target.where.volume(), T{});
    if (stays) copy_region<T, Rank>(target, source, own);
  }

  /// Exchanges slices. Along axes where ranks hold copies, a rank receives only from ranks at its own coordinates.
  void exchange(const move_type& move, const block<T, Rank>& target, const block<const T, Rank>& source) {
    const axis_set copies = axes_of_copies();
    const auto& comm = mesh_.along(move.along);
    std::vector<typename Mesh::extents_type> members;
    for_all_along(mesh_.extents(), mesh_.coordinates(), move.along, [&](const auto& at) {
      members.push_back(at);
      return true;
    });
    const auto serves = [&](int peer) {
      return same_along(copies, members[static_cast<std::size_t>(peer)], mesh_.coordinates());
    };
    exchange_parts<T, Rank>(comm, target, source, parts(move.along, now_.placed), parts(move.along, move.after), serves,
                            options_of_moves<reduces>(options_), site_);
  }

  const Mesh& mesh_;
  const std::array<std::size_t, Rank> sizes_;
  T* const out_;
  double count_;
  const Options& options_;
  const std::source_location& site_;
  held_type now_;
};

/// Returns the plan of a redistribution to placements `to`. The mesh stores plans, so each is searched for only once.
template <class From, class Placements>
auto cached_plan_to(const Placements& to, const typename From::sizes_type& sizes,
                    const typename From::mesh_type& mesh) {
  using memory = plan_cache<From::rank, static_cast<std::size_t>(From::mesh_type::dimensions)>;
  constexpr auto from = placement_array<typename From::placements_type>();
  constexpr std::size_t bytes = sizeof(typename From::element_type);
  return checked_mesh(mesh).attributes().template get<memory>().get(
      {sizes, from, to, bytes}, [&] { return plan_redistribution(sizes, mesh.extents(), from, to, bytes); });
}

template <class From, class To>
auto cached_plan(const typename From::sizes_type& sizes, const typename From::mesh_type& mesh) {
  return cached_plan_to<From>(placement_array<typename To::placements_type>(), sizes, mesh);
}

/// Throws because the search found no sequence of moves. Should not happen: types without a sequence do not compile.
template <class Mesh>
[[noreturn]] HOCKET_COLD void refuse_unreachable(const Mesh& mesh, const std::source_location& site) {
  raise(errc::invalid_argument,
        "no sequence of moves leads from this placement to the requested one: redistribute along one axis at a time",
        {.operation = "redistribute", .rank = mesh.rank(), .ranks = mesh.size(), .site = site});
}

/// Returns the source of a redistribution: by value if the tensor was moved in, so that it is freed when the
/// redistribution is complete; a copy if the redistribution `Writes` to it; else a reference to the caller's tensor.
template <bool Writes, class Tensor>
decltype(auto) source_of(Tensor&& tensor) {
  using original = std::remove_cvref_t<Tensor>;
  if constexpr (std::is_same_v<Tensor, writable_t<original>>) {
    return original(std::move(tensor));
  } else if constexpr (Writes) {
    return copy(tensor);
  } else {
    return static_cast<const original&>(tensor);
  }
}

template <class To, class Tensor, class Options>
To run_plan(Tensor&& from, const Options& options, const std::source_location& site) {
  using From = writable_t<std::remove_cvref_t<Tensor>>;
  using placed = typename From::placements_type;
  const auto& all_options = with_extents(options, from);
  using work_type = redistributing<typename From::element_type, From::rank, typename From::mesh_type,
                                   typename first_partial<placed>::type, std::remove_cvref_t<decltype(all_options)>>;
  const auto run = [&](const auto& run_moves) {
    auto&& source = source_of<work_type::writes>(std::forward<Tensor>(from));
    To to = To::unwritten(source.mesh(), source.sizes());
    work_type work(source.mesh(), source.sizes(), placement_array<placed>(), source.elements().data(),
                   to.elements().data(), source.count(), all_options, site);
    run_moves(work);
    to.copy_count(work);
    return to;
  };
  if constexpr (has_compiled_plan<From, To>()) {
    constexpr auto& plan = compiled_plan<From, To>;
    static_assert(plan.possible);
    if constexpr (plan.size == 0) {
      return owned(std::forward<Tensor>(from)).template reinterpret<To>();
    } else {
      return run([&](work_type& work) {
        [&]<std::size_t... Index>(std::index_sequence<Index...>) {
          (work.template run<plan.moves[Index].kind>(plan.moves[Index], Index + 1 == plan.size), ...);
        }(std::make_index_sequence<plan.size>());
      });
    }
  } else {
    const auto plan = cached_plan<From, To>(from.sizes(), from.mesh());
    if (!plan.possible) refuse_unreachable(from.mesh(), site);
    if (plan.size == 0) return owned(std::forward<Tensor>(from)).template reinterpret<To>();
    return run([&](work_type& work) { work.run_all(plan); });
  }
}

/// Throws if the count of the means in `to` (see `sharded_tensor::count`) is not set; sets the means to NaN if it is 0.
/// Called after the last move, so that no rank waits for one that throws; also if the axes have one rank each.
template <class To>
void check_means(To& to, const std::source_location& site) {
  using T = typename To::element_type;
  if (!is_finite(to.count())) refuse_uncounted(to.mesh(), site);
  if (to.count() == 0) std::fill_n(to.elements().data(), to.elements().size(), std::numeric_limits<T>::quiet_NaN());
}

template <class To, class Tensor, class Options>
To run_redistribution(Tensor&& from, const Options& options, const std::source_location& site) {
  if constexpr (combines_means<typename std::remove_cvref_t<Tensor>::placements_type, typename To::placements_type>()) {
    To to = run_plan<To>(std::forward<Tensor>(from), options, site);
    check_means(to, site);
    return to;
  } else {
    return run_plan<To>(std::forward<Tensor>(from), options, site);
  }
}

}  // namespace detail

/// Returns `tensor` in other placements: those in `Requested` (see `on`) along the axes that `Requested` names, and the
/// same as before along other axes. Uses the cheapest sequence of moves: see shard/redistribution_plan.hpp.
///
/// Collective over the ranks of the mesh. Exact: elements are sent unchanged, and only partial results are combined;
/// parts may be uneven or empty. If the plan has no moves, a tensor that is moved in passes its storage to the result.
/// Options, order, progress and errors are as for the collectives: see collective/all_reduce.hpp.
template <class... Requested, tensor_type Tensor, call_options Options = options<>>
  requires(!(tensor_type<Requested> || ...) &&
           detail::is_redistributed<Tensor, detail::requested_list<Requested...>, Options>)
auto redistribute(Tensor&& tensor, const Options& options = {},
                  const std::source_location& site = std::source_location::current()) {
  using from_type = std::remove_cvref_t<Tensor>;
  using to_type = detail::redistributed_t<from_type, Requested...>;
  return detail::run_redistribution<to_type>(std::forward<Tensor>(tensor), options, site);
}

// Deleted: the compiler prints the reason as a template argument.
template <class... Requested, class Given, class... Rest,
          auto Why = detail::why_not_redistributed<false, detail::requested_list<Requested...>, Given, Rest...>()>
detail::not_understood redistribute(Given&&, const Rest&...) = delete;
template <axis_name Axis, class... Named, auto Why = detail::why_not_along_an_axis_alone<Axis>()>
detail::not_understood redistribute(const detail::any_argument&, const auto&...) = delete;

namespace detail {

inline std::string move_text(const char* kind, const std::string& along, double bytes, double seconds) {
  char line[160];
  std::snprintf(line, sizeof line, "  %-18s along %-20s %12.0f bytes %10.3f us\n", kind, along.c_str(), bytes,
                seconds * 1e6);
  return line;
}

template <class From, class Plan>
std::string plan_text(const From& tensor, const Plan& plan) {
  std::string text;
  for (const auto& each : plan) {
    std::string along;
    for (std::size_t a = 0; a < From::axes::all.size(); ++a) {
      if ((each.along >> a & 1U) == 0) continue;
      along += (along.empty() ? "" : " x ") + std::string(From::axes::all[a].name.view());
    }
    if (each.counts > 0) {
      const int others = tensor.mesh().along(each.along).size() - 1;
      text += move_text("counts' all_reduce", along, 2.0 * others * sizeof(double), each.counts);
    }
    text +=
        move_text(to_string(each.kind), along, static_cast<double>(each.elements * sizeof(typename From::element_type)),
                  each.seconds - each.counts);
  }
  return text;
}

}  // namespace detail

/// Describes the moves of `redistribute<Requested...>(tensor)`, with bytes and predicted times. Local; moves no data.
/// Bytes are those that all ranks of a communicator receive, for the communicator that receives most. For an all_reduce
/// they are the minimum of all algorithms; the algorithm for short vectors sends more bytes in fewer rounds.
template <class... Requested, tensor_type Tensor>
  requires(!(tensor_type<Requested> || ...) && detail::can_explain_moves<Tensor, Requested...>)
std::string explain_redistribution(const Tensor& tensor,
                                   const std::source_location& site = std::source_location::current()) {
  using to_type = detail::redistributed_t<Tensor, Requested...>;
  const auto plan = detail::cached_plan<Tensor, to_type>(tensor.sizes(), tensor.mesh());
  if (!plan.possible) detail::refuse_unreachable(tensor.mesh(), site);
  return detail::concat({"redistribution: ", plan.collectives(), " collectives\n", detail::plan_text(tensor, plan)});
}

// Deleted: the compiler prints the reason as a template argument.
template <class... Requested, class Given, class... Rest,
          auto Why = detail::why_not_redistributed<true, detail::requested_list<Requested...>, Given, Rest...>()>
std::string explain_redistribution(const Given&, const Rest&...) = delete;
template <axis_name Axis, class... Named, auto Why = detail::why_not_along_an_axis_alone<Axis>()>
std::string explain_redistribution(const detail::any_argument&, const auto&...) = delete;

HOCKET_END_NAMESPACE
