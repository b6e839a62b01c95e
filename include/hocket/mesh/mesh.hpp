// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Ranks arranged along named axes: data parallel, pipeline, tensor parallel. Programs with more than one kind of
/// parallelism need a communicator along each axis and each product of axes. A mesh makes all of them from one
/// communicator, over its connections, so that users do not compute colours and keys.
///
/// @code
/// const auto ranks = hocket::mesh<"dp", "tp">(comm, {2, 4});       // 8 ranks; tp neighbours are rank neighbours
/// hocket::all_reduce(ranks.along<"tp">(), in, out);                // among the 4 ranks of equal dp
/// hocket::all_reduce(ranks.along<"dp", "tp">(), in, out);          // among all
/// @endcode
#pragma once

#include <hocket/collective/all_gather.hpp>
#include <hocket/communicator/attribute_cache.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/not_understood.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/core/text.hpp>
#include <hocket/group/split.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/mesh/axis_diagnostics.hpp>
#include <hocket/mesh/factors.hpp>
#include <hocket/mesh/mesh_diagnostics.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE

/// Value to pass in place of an extent, which then is the number of ranks divided by the other extents.
inline constexpr int inferred = -1;

/// A mesh of ranks: made by `mesh<...>(comm, extents)`. Copies share their communicators; two meshes are equal if one
/// is a copy of the other.
///
/// **Order.** Row-major: the rank at coordinates (c0, c1, c2) is (c0 * extent1 + c1) * extent2 + c2.
/// **Threads.** Communicators along different axes may be used from different threads, like any communicators, even if
///   they have the same ranks because an axis has one rank.
template <class Domain, axis... Axes>
class rank_mesh {
  static_assert(sizeof...(Axes) >= 1 && sizeof...(Axes) <= 6, "a mesh must have 1 to 6 axes");
  static_assert(detail::axis_list<Axes...>::distinct(), "two axes of this mesh have the same name");
  static_assert(detail::axis_list<Axes...>::extents_are_positive(), "an axis must have at least one rank");

 public:
  using domain_type = Domain;
  using axes = detail::axis_list<Axes...>;
  static constexpr int dimensions = axes::size;  ///< number of axes
  using extents_type = std::array<int, sizeof...(Axes)>;

  /// See `mesh`.
  rank_mesh(const communicator<Domain>& comm, const std::vector<int>& run_time_extents,
            const std::source_location& site = std::source_location::current())
      : state_(std::make_shared<const state>(comm, agreed(comm, resolve(comm, run_time_extents, site), site), site)) {}

  /// The communicator of the ranks that differ from this one only in the coordinates along `Names`, in mesh order.
  template <axis_name... Names>
    requires(sizeof...(Names) > 0 && detail::has_axes<axes, Names...>)
  const communicator<Domain>& along() const noexcept {
    return *state_->groups[detail::set_of<axes, Names...>()];
  }

  /// Deleted: `Why` explains the mistake.
  template <axis_name... Names, auto Why = detail::why_not_along<axes, Names...>()>
  const communicator<Domain>& along() const = delete;

  /// The communicator of all ranks.
  const communicator<Domain>& all() const noexcept { return *state_->groups[axes::whole]; }

  /// Returns the communicator along a set of axes, bit i for axis i. Throws `invalid_argument` if the set is empty or
  /// contains axes that the mesh does not have.
  const communicator<Domain>& along(detail::axis_set set,
                                    const std::source_location& site = std::source_location::current()) const {
    if (set == 0 || set > axes::whole) refuse_set(site);
    return *state_->groups[set];
  }

  /// Returns the number of ranks along an axis; constexpr if the mesh's type specifies it.
  template <axis_name Name>
    requires detail::has_axes<axes, Name>
  constexpr int extent() const noexcept {
    constexpr auto position = static_cast<std::size_t>(detail::position_of<axes, Name>());
    if constexpr (axes::all[position].extent != run_time_extent) return axes::all[position].extent;
    return extents()[position];
  }

  /// Deleted: `Why` explains the mistake.
  template <axis_name Name, auto Why = detail::why_no_axis<axes, Name>()>
  int extent() const = delete;

  /// Returns this rank's coordinate along an axis.
  template <axis_name Name>
    requires detail::has_axes<axes, Name>
  int coordinate() const noexcept {
    return coordinates()[static_cast<std::size_t>(detail::position_of<axes, Name>())];
  }
  /// Deleted: `Why` explains the mistake.
  template <axis_name Name, auto Why = detail::why_no_axis<axes, Name>()>
  int coordinate() const = delete;

  /// Ends all communicators of the mesh: calls `communicator::revoke` for each. A rank that receives the reason along
  /// one axis should also call this, so that ranks that wait along another axis report the first failure, too.
  void revoke(const std::string& reason) const {
    for (detail::axis_set set = 1; set <= axes::whole; ++set) state_->groups[set]->revoke(reason);
  }

  /// True if the mesh was moved from; then no other member may be called.
  bool moved_from() const noexcept { return state_ == nullptr; }

  int rank() const noexcept { return all().rank(); }
  int size() const noexcept { return all().size(); }
  const extents_type& extents() const noexcept { return state_->extents; }          ///< ranks along each axis
  const extents_type& coordinates() const noexcept { return state_->coordinates; }  ///< of this rank

  /// Returns the coordinates of a rank of the whole mesh.
  extents_type coordinates_of(int rank) const noexcept { return coordinates_in(extents(), rank); }
  /// Returns the rank of the whole mesh at these coordinates.
  int rank_of(const extents_type& coordinates) const noexcept { return rank_in(extents(), coordinates); }

  /// Objects that exist as long as the mesh, shared by all its copies on this rank.
  detail::attribute_cache& attributes() const noexcept { return state_->attributes; }

  /// True for copies of one mesh.
  bool operator==(const rank_mesh& other) const noexcept { return state_ == other.state_; }

 private:
  struct state {
    state(const communicator<Domain>& comm, const extents_type& of_axes, const std::source_location& site)
        : extents(of_axes), coordinates(coordinates_in(of_axes, comm.rank())) {
      // Each set of axes has its own communicator, even if the groups are equal, because two threads may use them.
      for (detail::axis_set set = 1; set <= axes::whole; ++set) groups[set] = make(comm, set, site);
    }

    std::shared_ptr<const communicator<Domain>> make(const communicator<Domain>& comm, detail::axis_set set,
                                                     const std::source_location& site) const {
      extents_type first = coordinates;
      for (int i = 0; i < dimensions; ++i) {
        if ((set >> i & 1U) != 0) first[static_cast<std::size_t>(i)] = 0;
      }
      return std::make_shared<const communicator<Domain>>(
          split(comm, color{rank_in(extents, first)}, key{comm.rank()}, site));
    }

    extents_type extents;
    extents_type coordinates;
    std::array<std::shared_ptr<const communicator<Domain>>, std::size_t{1} << sizeof...(Axes)> groups;
    mutable detail::attribute_cache attributes;
  };

  static int rank_in(const extents_type& extents, const extents_type& coordinates) noexcept {
    int rank = 0;
    for (std::size_t i = 0; i < extents.size(); ++i) rank = rank * extents[i] + coordinates[i];
    return rank;
  }

  static extents_type coordinates_in(const extents_type& extents, int rank) noexcept {
    extents_type coordinates{};
    for (std::size_t i = extents.size(); i-- > 0; rank /= extents[i]) coordinates[i] = rank % extents[i];
    return coordinates;
  }

  /// Returns all extents: those of the type and those passed.
  HOCKET_COLD static extents_type resolve(const communicator<Domain>& comm, const std::vector<int>& given,
                                          const std::source_location& site) {
    std::vector<int> extents;
    std::size_t used = 0;
    for (const axis& each : axes::all) {
      const bool known = each.extent != run_time_extent;
      extents.push_back(known ? each.extent : used < given.size() ? given[used] : 0);
      used += known ? 0U : 1U;
    }
    if (used != given.size()) {
      refuse(comm,
             detail::concat({given.size(), " extents are given, but ", used, " axes have none in the mesh's type"}),
             site);
    }
    infer_one(comm.size(), extents);
    const long long needed = product_of(extents);
    if (needed != comm.size()) {
      refuse(comm,
             detail::concat({named(extents),
                             needed == too_many ? " needs too many ranks"
                             : needed > 0       ? detail::concat({" needs ", needed, " ranks"})
                                                : std::string(" is not a mesh: extents must be positive, and one may "
                                                                    "be `inferred` if the others divide the ranks"),
                             ", but the communicator has ", comm.size(), advice(comm.size(), extents)}),
             site);
    }
    extents_type result{};
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = extents[i];
    return result;
  }

  /// Returns `own` if all ranks have the same extents; otherwise raises `mismatch`.
  HOCKET_COLD static const extents_type& agreed(const communicator<Domain>& comm, const extents_type& own,
                                                const std::source_location& site) {
    std::vector<extents_type> all(static_cast<std::size_t>(comm.size()));
    // Gathers bytes, because other code needs an all_gather of bytes anyway: saves compile time.
    all_gather(comm, std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)), options<>(), site);
    for (std::size_t peer = 0; peer < all.size(); ++peer) {
      if (all[peer] == own) continue;
      raise(errc::mismatch,
            detail::concat({"this rank has ", named({own.begin(), own.end()}), " and another rank has ",
                            named({all[peer].begin(), all[peer].end()}), "; pass equal extents on all ranks"}),
            {.operation = "mesh",
             .rank = comm.rank(),
             .ranks = comm.size(),
             .peer = static_cast<int>(peer),
             .site = site});
    }
    return own;
  }

  static constexpr long long too_many = std::numeric_limits<long long>::max();

  /// Returns the product of the extents; `too_many` if the product overflows; 0 if an extent is not positive.
  static long long product_of(const std::vector<int>& extents) noexcept {
    long long product = 1;
    for (const int each : extents) {
      if (each <= 0) return 0;
      product = product > too_many / each ? too_many : product * each;
    }
    return product;
  }

  static void infer_one(int ranks, std::vector<int>& extents) {
    const auto open = std::find(extents.begin(), extents.end(), inferred);
    if (open == extents.end()) return;
    *open = 1;
    const long long others = product_of(extents);
    *open = others > 0 && ranks % others == 0 ? static_cast<int>(ranks / others) : inferred;
  }

  /// Returns a text such as "dp=2 x tp=4".
  HOCKET_COLD static std::string named(const std::vector<int>& extents) {
    std::string text;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      detail::append(text, {i == 0 ? "" : " x ", axes::all[i].name.view(), "=", extents[i]});
    }
    return text;
  }

  HOCKET_COLD static std::string advice(int ranks, const std::vector<int>& wanted) {
    std::vector<int> fixed;
    for (const axis& each : axes::all) fixed.push_back(each.extent != run_time_extent ? each.extent : 0);
    std::string text;
    for (const auto& each : detail::nearest_factorisations(ranks, wanted, fixed, 3)) {
      text += (text.empty() ? "; these would fit: " : ", ") + named(each);
    }
    return text.empty() ? "; no extents of the other axes would fit" : text;
  }

  [[noreturn]] HOCKET_COLD static void refuse(const communicator<Domain>& comm, std::string reason,
                                              const std::source_location& site) {
    raise(errc::invalid_argument, std::move(reason),
          {.operation = "mesh", .rank = comm.rank(), .ranks = comm.size(), .site = site});
  }

  [[noreturn]] HOCKET_COLD void refuse_set(const std::source_location& site) const {
    refuse(all(),
           "the set of axes is empty, or has axes that the mesh does not have: name at least one axis, and only axes "
           "of this mesh",
           site);
  }

  std::shared_ptr<const state> state_;
};

/// Arranges the ranks of `comm` along named axes. `extents` has a number for each axis whose template argument has no
/// extent; one of them may be `inferred`.
///
/// Collective over `comm`; every rank must pass equal extents. Makes a communicator for every product of axes (3 for two
/// axes, 7 for three), each by `split`: over the connections of `comm`. `comm` may be used in addition to the mesh, and
/// may be destroyed before it.
/// Throws `error`: `invalid_argument` if the product of the extents is not the number of ranks, with a list of valid
/// extents; `mismatch` if extents differ between ranks; otherwise like `split`.
template <axis... Axes, class Domain>
rank_mesh<Domain, Axes...> mesh(const communicator<Domain>& comm, const std::vector<int>& extents = {},
                                const std::source_location& site = std::source_location::current()) {
  return rank_mesh<Domain, Axes...>(comm, extents, site);
}

// Deleted: the template arguments that the compiler prints explain why.
template <axis... Axes, class Given, class... Rest, auto Why = detail::why_no_mesh<Given, Rest...>()>
detail::not_understood mesh(const Given&, const Rest&...) = delete;
template <axis... Axes, class Domain, auto Why = detail::why_no_mesh<std::vector<int>, communicator<Domain>>()>
detail::not_understood mesh(std::initializer_list<int>, const communicator<Domain>&) = delete;

/// Returns the mesh as text: its axes, and a line of ranks for each position along all axes except the last.
template <class Domain, axis... Axes>
std::string to_string(const rank_mesh<Domain, Axes...>& shown) {
  using axes = typename rank_mesh<Domain, Axes...>::axes;
  std::string text = "mesh";
  for (std::size_t i = 0; i < axes::all.size(); ++i) {
    detail::append(text, {i == 0 ? " " : " x ", axes::all[i].name.view(), "=", shown.extents()[i]});
  }
  const int row = shown.extents().back();
  for (int rank = 0; rank < shown.size(); ++rank) {
    if (rank % row == 0) {
      text += "\n ";
      const auto place = shown.coordinates_of(rank);
      for (std::size_t i = 0; i + 1 < place.size(); ++i) {
        detail::append(text, {' ', axes::all[i].name.view(), '=', place[i]});
      }
      text += text.back() == ' ' ? "" : " ";
      text += std::string(axes::all.back().name.view()) + ":";
    }
    detail::append(text, {' ', rank});
  }
  return text + '\n';
}

HOCKET_END_NAMESPACE
