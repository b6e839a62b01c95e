// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A tensor that is distributed over a mesh of ranks, with its distribution in its type: which axis cuts which
/// dimension, and along which axes the ranks hold copies or summands. A conversion from one such type to another
/// performs the communication that it needs. Which computations are valid, and the placements of their results, follow
/// from the types. See shard/placement.hpp, shard/convert.hpp and shard/apply.hpp; meshes are in mesh/mesh.hpp.
///
/// @code
/// const auto ranks = hocket::mesh<"dp", "tp">(comm, {2, 4});
/// using mesh_type = std::remove_cvref_t<decltype(ranks)>;
/// // A matrix of 1000 columns; tp cuts its rows, dp holds copies of them.
/// using rows = hocket::tensor<float, hocket::extents<hocket::dynamic, 1000>, mesh_type,
///                             hocket::on<"tp", hocket::shard<0>>, hocket::on<"dp", hocket::replicated>>;
/// rows x(ranks, {10});   // 10 rows: the ranks along tp have 3, 3, 3 and 1
/// @endcode
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/float_bits.hpp>
#include <hocket/core/not_understood.hpp>
#include <hocket/core/text.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/shard/array_view.hpp>
#include <hocket/shard/extents.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/tensor_diagnostics.hpp>
#include <hocket/shard/tensor_type.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE

namespace detail {

/// Returns whether all dimensions that `placed` cuts exist in a tensor of `Rank` dimensions.
template <std::size_t Rank>
constexpr bool dimensions_exist(std::span<const placement> placed) noexcept {
  for (const placement& each : placed) {
    if (each.sharded() && static_cast<std::size_t>(each.dimension) >= Rank) return false;
  }
  return true;
}

/// The placement along the first axis where a tensor is partial; void if there is none.
template <class Placed>
struct first_partial {
  using type = void;
};
template <class First, class... Rest>
struct first_partial<placements<First, Rest...>> {
  using type = typename std::conditional_t<First::value.partial(), std::type_identity<First>,
                                           first_partial<placements<Rest...>>>::type;
};

/// Returns whether all partial placements of a tensor are the same.
template <class... Placements>
constexpr bool one_reduction(placements<Placements...>) noexcept {
  using first = typename first_partial<placements<Placements...>>::type;
  return ((!Placements::value.partial() || std::is_same_v<Placements, first>)&&...);
}

/// Returns the sizes of a rank's part: a number if all cuts of that dimension are known to be even, else `dynamic`.
template <class Extents, class Axes, class Placed>
constexpr auto known_part_sizes() noexcept {
  auto sizes = Extents::sizes;
  for (std::size_t axis = 0; axis < Axes::all.size(); ++axis) {
    const placement& placed = Placed::values[axis];
    if (!placed.sharded() || static_cast<std::size_t>(placed.dimension) >= sizes.size()) continue;
    std::size_t& size = sizes[static_cast<std::size_t>(placed.dimension)];
    // The extent is not positive if it is passed when the mesh is made, or after an error in the type.
    const int extent = Axes::all[axis].extent;
    const auto ranks = static_cast<std::size_t>(extent);
    const bool equal_parts = size != dynamic && extent > 0 && size % ranks == 0;
    size = equal_parts ? size / ranks : dynamic;
  }
  return sizes;
}

/// A value that is reset to `Value{}` when it is moved from.
template <class Value>
struct reset_when_moved {
  Value value{};

  explicit constexpr reset_when_moved(const Value& given) noexcept : value(given) {}
  constexpr reset_when_moved(reset_when_moved&& other) noexcept : value(std::exchange(other.value, Value{})) {}
  constexpr reset_when_moved& operator=(reset_when_moved&& other) noexcept {
    value = std::exchange(other.value, Value{});
    return *this;
  }
};

[[noreturn]] HOCKET_COLD inline void refuse_moved_from() {
  raise(errc::invalid_argument, "this tensor or its mesh was moved from: use the object that it was moved to",
        {.operation = "tensor"});
}

template <class Mesh>
const Mesh& checked_mesh(const Mesh& mesh) {
  if (mesh.moved_from()) refuse_moved_from();
  return mesh;
}

}  // namespace detail

/// A tensor of elements T and of extents `Extents` over a mesh of type `Mesh`; `Placed` is a `placements<...>`. Written
/// as `tensor<T, Extents, Mesh, on<"tp", shard<0>>, ...>`. Movable, not copyable: see `copy`. A tensor that was moved
/// from has no elements; if its type determines the part's size, `elements()` has that size, at a null address.
/// Functions that make a tensor from a moved-from tensor throw `invalid_argument`.
///
/// **Storage.** Owned and initialized to zeros, or the caller's, which must outlive the tensor. Dense, row-major.
/// **Equal on all ranks:** the extents. Constructors do not check this, because they do not communicate; a call that
///   communicates parts of a tensor whose extents differ between ranks fails with `mismatch`, even if the parts have
///   equal sizes. A redistribution that is planned at run time may then move along other axes on each rank, and fail
///   with `timeout`.
template <class T, class Extents, class Mesh, class Placed>
class sharded_tensor {
 public:
  using element_type = T;
  using extents_type = Extents;
  using mesh_type = Mesh;
  using axes = typename Mesh::axes;
  using placements_type = Placed;
  static constexpr std::size_t rank = Extents::rank;  ///< number of dimensions
  using sizes_type = std::array<std::size_t, rank>;

  static_assert(Placed::size == Mesh::dimensions, "a tensor has one placement for each axis of its mesh");
  static_assert(std::is_trivially_copyable_v<T>, "elements of a tensor must be trivially copyable");
  static_assert(detail::one_reduction(Placed()),
                "partial results of two different reductions along two axes combine in no defined order: reduce the "
                "tensor along one of the axes first");
  static_assert(detail::dimensions_exist<rank>(Placed::values),
                "the tensor has no dimension d to cut for shard<d>: d must be less than its number of dimensions");

  /// The placement along the axis `Axis`.
  template <axis_name Axis>
  using placement_on =
      typename detail::placement_along<detail::position_of<axes, Axis>(), axes::find(Axis) == axes::size, Placed>::type;

  /// Makes a tensor with its own storage. `sizes` are the dynamic extents, in order, of the whole tensor, not of this
  /// rank's part. A wrong number of extents does not compile; throws `invalid_argument` if one is negative.
  explicit sharded_tensor(const Mesh& mesh, const given_extents<Extents::dynamic_rank>& sizes,
                          const std::source_location& site = std::source_location::current())
      : sharded_tensor(mesh, all_sizes(sizes, site), static_cast<T*>(nullptr), placed_over()) {
    owned_ = std::make_unique<T[]>(part_.value.volume());
    data_.value = owned_.get();
  }
  /// Makes a tensor with its own storage, if all extents are in the type.
  explicit sharded_tensor(const Mesh& mesh)
    requires(Extents::dynamic_rank == 0)
      : sharded_tensor(mesh, given_extents<Extents::dynamic_rank>()) {}

  /// Uses the caller's storage. Throws `invalid_argument` unless `storage` has as many elements as this rank's part.
  sharded_tensor(const Mesh& mesh, const given_extents<Extents::dynamic_rank>& sizes, std::span<T> storage,
                 const std::source_location& site = std::source_location::current())
      : sharded_tensor(mesh, all_sizes(sizes, site), storage.data(), placed_over()) {
    if (storage.size() == part_.value.volume()) return;
    refuse(detail::concat({"the storage has ", storage.size(), " elements, and this rank's part of the tensor has ",
                           part_.value.volume()}),
           site);
  }

  /// Uses the data of a view of any type with the interface of std::mdspan. Throws `invalid_argument` unless the view
  /// is dense and row-major, and has the extents of this rank's part.
  template <detail::view_of_tensor<T, rank> View>
  sharded_tensor(const Mesh& mesh, const given_extents<Extents::dynamic_rank>& sizes, const View& view,
                 const std::source_location& site = std::source_location::current())
      : sharded_tensor(mesh, all_sizes(sizes, site), view.data_handle(), placed_over()) {
    // Checks all sizes first, because a wrong size makes strides wrong, too.
    for (std::size_t d = 0; d < rank; ++d) {
      const auto size = static_cast<std::size_t>(view.extent(static_cast<decltype(View::rank())>(d)));
      if (size != part_.value.size[d]) {
        refuse(detail::concat({"dimension ", d, " of the view has ", size,
                               " elements, and this rank's part of the tensor has ", part_.value.size[d]}),
               site);
      }
    }
    const auto own = local();
    for (std::size_t d = 0; d < rank; ++d) {
      const auto stride = static_cast<std::size_t>(view.stride(static_cast<decltype(View::rank())>(d)));
      if (part_.value.size[d] > 1 && part_.value.volume() > 0 && stride != own.stride(d)) {
        refuse(detail::concat({"the view is not dense and row-major: dimension ", d, " has the stride ", stride,
                               " instead of ", own.stride(d)}),
               site);
      }
    }
  }

  // Deleted: the compiler prints the reason as a template argument.
  template <class View, auto Why = detail::why_not_over_this_view<View, T, rank>()>
  sharded_tensor(const Mesh&, const given_extents<Extents::dynamic_rank>&, const View&) = delete;
  template <class Element, auto Why = detail::why_not_at_a_pointer<Element>()>
  sharded_tensor(const Mesh&, const given_extents<Extents::dynamic_rank>&, Element*) = delete;
  template <class Storage, auto Why = detail::why_not_in_this_storage<Storage, T>()>
  sharded_tensor(const Mesh&, const given_extents<Extents::dynamic_rank>&, Storage&&) = delete;

  template <class Given, auto Why = detail::why_not_of_this_alone<Given, Mesh, Extents::dynamic_rank>()>
  explicit sharded_tensor(const Given&) = delete;
  template <class First, detail::extent_like Second, detail::extent_like... Rest,
            auto Why = detail::why_not_without_braces<First>()>
  sharded_tensor(const Mesh&, First, Second, Rest...) = delete;
  template <class Given, auto Why = detail::why_no_extents<Given, given_extents<Extents::dynamic_rank>>()>
  sharded_tensor(const Mesh&, const Given&) = delete;
  template <class Given, class... Rest,
            auto Why = detail::why_no_extents<Given, given_extents<Extents::dynamic_rank>>()>
  sharded_tensor(const Mesh&, const Given&, const given_extents<Extents::dynamic_rank>&, const Rest&...) = delete;
  template <class Given, detail::other_than_extents<given_extents<Extents::dynamic_rank>> Second, class... Rest,
            auto Why = detail::why_no_extents<Given, given_extents<Extents::dynamic_rank>>()>
  sharded_tensor(const Mesh&, const Given&, const Second&, const Rest&...) = delete;

  template <class Given, class... Rest, auto Why = detail::why_not_on_this<Given, Mesh>()>
  sharded_tensor(const Given&, const given_extents<Extents::dynamic_rank>&, const Rest&...) = delete;

  // Implicit, so that the explanation also appears for arguments and assignments.
  template <class Element, class Sizes, class Ranks, class Placements,
            auto Why = detail::why_not_made_of<sharded_tensor<Element, Sizes, Ranks, Placements>, sharded_tensor>()>
  sharded_tensor(const sharded_tensor<Element, Sizes, Ranks, Placements>&) = delete;  // NOLINT: implicit

  // Only declared: used after an error in a tensor's type, so that no other error follows.
  /// @cond
  template <detail::other_than_mesh<Mesh> Given>
    requires std::is_same_v<Mesh, detail::no_mesh>
  explicit sharded_tensor(const Given&);
  template <detail::other_than_mesh<Mesh> Given, class... Rest>
    requires std::is_same_v<Mesh, detail::no_mesh>
  sharded_tensor(const Given&, const given_extents<Extents::dynamic_rank>&, const Rest&...);
  template <class Element, class Sizes, class Ranks, class Placements>
    requires detail::after_an_error<sharded_tensor<Element, Sizes, Ranks, Placements>, sharded_tensor> &&
             (!std::is_same_v<sharded_tensor<Element, Sizes, Ranks, Placements>, sharded_tensor>)
  sharded_tensor(const sharded_tensor<Element, Sizes, Ranks, Placements>&);  // NOLINT: implicit
  /// @endcond

  sharded_tensor() = delete;  // a tensor is made on a mesh: x(mesh, {3, 2})
  sharded_tensor(const given_extents<Extents::dynamic_rank>&, const Mesh&) = delete;  // the mesh comes first
  sharded_tensor(const sharded_tensor&) = delete;             // use hocket::copy(tensor), or hocket::borrow(tensor)
  sharded_tensor& operator=(const sharded_tensor&) = delete;  // use hocket::copy(tensor), or hocket::borrow(tensor)
  sharded_tensor(sharded_tensor&& other) noexcept = default;
  sharded_tensor& operator=(sharded_tensor&& other) noexcept = default;

  const Mesh& mesh() const noexcept { return mesh_; }  ///< the mesh

  /// Returns the extents of the whole tensor.
  const sizes_type& sizes() const noexcept { return sizes_; }
  /// Returns this rank's part of the whole tensor.
  const box<rank>& part() const noexcept { return part_.value; }

  /// Returns this rank's elements.
  array_view<T, rank> local() noexcept { return {data_.value, local_sizes()}; }
  array_view<const T, rank> local() const noexcept { return {data_.value, local_sizes()}; }
  std::span<T> elements() noexcept { return {data_.value, local().size()}; }
  std::span<const T> elements() const noexcept { return {data_.value, local().size()}; }

  /// For `partial<mean>`: the number of values of which each of this rank's elements is the mean. Equal along axes
  /// where the tensor is not partial. `mean_over` sets the count; user-defined means need `set_count` to be reduced.
  /// `set_count` throws `invalid_argument` unless the number is finite and not negative.
  double count() const noexcept { return count_; }
  /// Sets `count()`.
  void set_count(double elements, const std::source_location& site = std::source_location::current()) {
    if (!detail::is_finite(elements) || elements < 0)
      refuse(detail::concat({"means can't stand for ", std::to_string(elements),
                             " elements: the number must be finite and at least 0"}),
             site);
    count_ = elements;
  }
  /// Copies the count of another tensor, even if it is not set.
  template <class Other>
  void copy_count(const Other& other) noexcept {
    count_ = other.count();
  }

  /// Moves the data into a tensor of another placement with the same parts. The caller must ensure that the data have
  /// this placement. For conversions and redistributions.
  template <class Other>
  Other reinterpret() && noexcept {
    static_assert(std::is_same_v<typename Other::element_type, T> && std::is_same_v<typename Other::mesh_type, Mesh> &&
                  Other::rank == rank);
    return Other(std::move(*this), typename Other::same_parts());
  }

  /// Returns a tensor over the elements at `data`, as many as this rank's part has; `sizes` are all extents. Like the
  /// two functions below, throws `invalid_argument` if `sizes` differs from an extent in the tensor's type.
  static sharded_tensor over(const Mesh& mesh, const sizes_type& sizes, T* data,
                             const std::source_location& site = std::source_location::current()) {
    return {mesh, checked(mesh, sizes, site), data, placed_over()};
  }

  /// Returns a tensor with its own storage; `sizes` are all extents.
  static sharded_tensor of_sizes(const Mesh& mesh, const sizes_type& sizes,
                                 const std::source_location& site = std::source_location::current()) {
    sharded_tensor made(mesh, checked(mesh, sizes, site), nullptr, placed_over());
    made.owned_ = std::make_unique<T[]>(made.elements().size());
    made.data_.value = made.owned_.get();
    return made;
  }

  /// Like `of_sizes`, but with uninitialized elements, which the caller must write before they are read.
  static sharded_tensor unwritten(const Mesh& mesh, const sizes_type& sizes,
                                  const std::source_location& site = std::source_location::current()) {
    sharded_tensor made(mesh, checked(mesh, sizes, site), nullptr, placed_over());
    made.owned_ = std::make_unique_for_overwrite<T[]>(made.elements().size());
    made.data_.value = made.owned_.get();
    return made;
  }

 private:
  template <class, class, class, class>
  friend class sharded_tensor;

  struct placed_over {};
  sharded_tensor(const Mesh& mesh, const sizes_type& sizes, T* data, placed_over)
      : mesh_(detail::checked_mesh(mesh)), sizes_(sizes),
        part_(part_of<rank>(sizes, Placed::values, mesh.extents(), mesh.coordinates())), data_{data} {}

  struct same_parts {};
  template <class Other>
  sharded_tensor(Other&& other, same_parts) noexcept
      : mesh_(std::move(other.mesh_)), sizes_(other.sizes_), part_(std::move(other.part_)),
        owned_(std::move(other.owned_)), data_(std::move(other.data_)), count_(other.count_) {}

  /// Returns the sizes of this rank's part; sizes that the types determine are constants, so that loops can use them.
  constexpr sizes_type local_sizes() const noexcept {
    [[maybe_unused]] constexpr sizes_type known = detail::known_part_sizes<Extents, axes, Placed>();
    return [&]<std::size_t... D>(std::index_sequence<D...>) {
      return sizes_type{(known[D] == dynamic ? part_.value.size[D] : known[D])...};
    }(std::make_index_sequence<rank>());
  }

  static constexpr auto most_bytes = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());

  /// Returns whether the whole tensor has at most `most_bytes` bytes.
  static constexpr bool fits(const sizes_type& sizes) noexcept {
    std::size_t bytes = sizeof(T);
    if (std::find(sizes.begin(), sizes.end(), std::size_t{0}) != sizes.end()) return true;
    for (const std::size_t each : sizes) {
      if (bytes > most_bytes / each) return false;
      bytes *= each;
    }
    return true;
  }

  static constexpr sizes_type all_sizes(const given_extents<Extents::dynamic_rank>& given,
                                        const std::source_location& site) {
    static_assert(
        Extents::dynamic_rank > 0 || fits(Extents::sizes),
        "the extents in the tensor's type are so large that its bytes can't be counted: they are 2^63 or more");
    sizes_type sizes = Extents::sizes;
    std::size_t next = 0;
    for (std::size_t& each : sizes) {
      if (each == dynamic) each = given.sizes()[next++];
      // A negative number, converted to an unsigned type, is this large.
      if (each > most_bytes) refuse_negative(site);
    }
    if (Extents::dynamic_rank > 0 && !fits(sizes)) refuse_volume(sizes, site);
    return sizes;
  }

  /// Returns `sizes`; throws if they differ from the extents in the type.
  static constexpr const sizes_type& checked(const Mesh& mesh, const sizes_type& sizes,
                                             const std::source_location& site) {
    for (std::size_t d = 0; d < rank; ++d) {
      if (Extents::sizes[d] != dynamic && Extents::sizes[d] != sizes[d]) refuse_extent(mesh, d, sizes[d], site);
    }
    if (Extents::dynamic_rank > 0 && !fits(sizes)) refuse_volume(sizes, site);
    return sizes;
  }

  [[noreturn]] HOCKET_COLD static void refuse_negative(const std::source_location& site) {
    raise(errc::invalid_argument, "an extent is negative: extents must be at least 0",
          {.operation = "tensor", .site = site});
  }

  [[noreturn]] HOCKET_COLD static void refuse_volume(const sizes_type& sizes, const std::source_location& site) {
    std::string product;
    for (const std::size_t each : sizes) detail::append(product, {product.empty() ? "" : " x ", each});
    raise(errc::invalid_argument,
          detail::concat({"the tensor has ", product, " elements of ", sizeof(T),
                          " bytes, which exceeds the limit of 2^63 - 1 bytes"}),
          {.operation = "tensor", .site = site});
  }

  [[noreturn]] HOCKET_COLD static void refuse_extent(const Mesh& mesh, std::size_t dimension, std::size_t size,
                                                     const std::source_location& site) {
    raise(errc::invalid_argument,
          detail::concat({"extent ", dimension, " is ", size, "; the tensor's type has ", Extents::sizes[dimension]}),
          {.operation = "tensor", .rank = mesh.rank(), .ranks = mesh.size(), .site = site});
  }

  [[noreturn]] HOCKET_COLD void refuse(std::string reason, const std::source_location& site) const {
    raise(errc::invalid_argument, std::move(reason),
          {.operation = "tensor", .rank = mesh_.rank(), .ranks = mesh_.size(), .site = site});
  }

  Mesh mesh_;
  sizes_type sizes_;
  detail::reset_when_moved<box<rank>> part_;
  std::unique_ptr<T[]> owned_;  ///< null if the storage is the caller's
  detail::reset_when_moved<T*> data_;
  double count_ = std::numeric_limits<double>::quiet_NaN();  ///< NaN until it is set
};

namespace detail {

template <class Extents>
inline constexpr bool are_extents = requires { Extents::dynamic_rank; };

/// Checks the third argument of `tensor`. If `Misplaced`, the second one is not extents; then its error suffices.
template <class Mesh, bool Misplaced = false>
struct mesh_must_be_mesh {
  using bare = std::remove_cvref_t<Mesh>;
  static constexpr bool has_axes = requires { typename bare::axes; };
  static constexpr bool is_mesh = std::is_same_v<Mesh, bare> && has_axes;
  static_assert(is_mesh || Misplaced,
                "the third argument of tensor<...> must be the type of a mesh, without const or reference");
  using type = std::conditional_t<has_axes && !Misplaced, bare, no_mesh>;
};

template <class Extents>
struct extents_must_be_extents {
  static_assert(are_extents<Extents>,
                "the second argument of tensor<...> must be extents<...>: a number, or dynamic, for each dimension");
  using type = std::conditional_t<are_extents<Extents>, Extents, extents<>>;
};

template <class Mesh, class Extents>
using mesh_after_extents = typename mesh_must_be_mesh<Mesh, !are_extents<Extents>>::type;

/// The type of tensor `Tensor` with other placements and elements that are not const.
template <class Tensor, class Placed>
using placed_as = sharded_tensor<std::remove_const_t<typename Tensor::element_type>, typename Tensor::extents_type,
                                 typename Tensor::mesh_type, Placed>;

}  // namespace detail

/// A tensor placed as in `Requested`, a list of `on<"axis", placement>` and optionally `elsewhere<placement>`, in any
/// order. The list must place every axis of the mesh.
template <class T, class Extents, class Mesh, class... Requested>
using tensor =
    sharded_tensor<T, typename detail::extents_must_be_extents<Extents>::type,
                   detail::mesh_after_extents<Mesh, Extents>,
                   typename detail::resolved_placements<typename detail::mesh_after_extents<Mesh, Extents>::axes, void,
                                                        Requested...>::type>;

namespace detail {

template <class Placed>
struct gradient_placements;
template <class... Placements>
struct gradient_placements<placements<Placements...>> {
  using type = placements<gradient_placement_t<Placements>...>;
};

}  // namespace detail

/// The type of the gradient of a tensor: the same extents, each placement replaced by that of its gradient.
template <tensor_type Tensor>
using gradient_t =
    detail::placed_as<std::remove_cvref_t<Tensor>, typename detail::gradient_placements<
                                                       typename std::remove_cvref_t<Tensor>::placements_type>::type>;

namespace detail {

/// The type of tensor `Tensor` with elements that are not const.
template <class Tensor>
using writable_t = sharded_tensor<std::remove_const_t<typename Tensor::element_type>, typename Tensor::extents_type,
                                  typename Tensor::mesh_type, typename Tensor::placements_type>;

}  // namespace detail

/// Returns a tensor with the same elements in new storage.
template <tensor_type Tensor>
detail::writable_t<Tensor> copy(const Tensor& original) {
  auto made = detail::writable_t<Tensor>::unwritten(original.mesh(), original.sizes());
  std::copy(original.elements().begin(), original.elements().end(), made.elements().begin());
  made.copy_count(original);
  return made;
}

/// Deleted: the template argument `Why` is the reason.
template <class Given, auto Why = detail::why_not_copied<Given>()>
  requires(!tensor_type<Given>)
detail::not_understood copy(const Given&) = delete;

/// Returns a tensor of const elements over the storage of `original`, which must outlive the result. A conversion of
/// the result that moves no data does not copy it.
template <class T, class Extents, class Mesh, class Placed>
sharded_tensor<const T, Extents, Mesh, Placed> borrow(const sharded_tensor<T, Extents, Mesh, Placed>& original) {
  auto made = sharded_tensor<const T, Extents, Mesh, Placed>::over(original.mesh(), original.sizes(),
                                                                   original.elements().data());
  made.copy_count(original);
  return made;
}

/// Deleted: the template argument `Why` is the reason.
template <class T, class Extents, class Mesh, class Placed,
          auto Why = detail::why_not_borrowed<sharded_tensor<T, Extents, Mesh, Placed>>()>
sharded_tensor<const T, Extents, Mesh, Placed> borrow(const sharded_tensor<T, Extents, Mesh, Placed>&&) = delete;

/// Sets every element of this rank's part to `value(indices)`, with indices in the whole tensor. In a partial sum, the
/// values are this rank's summands, so equal values on p ranks add up to p times the value.
template <tensor_type Tensor, class Value>
  requires(detail::is_value_of_indices<Value, Tensor> && detail::is_written_to<Tensor>)
void fill(Tensor& filled, Value&& value) {
  const auto& part = filled.part();
  auto* next = filled.elements().data();
  for_each_index(part.size, [&](auto indices) {
    for (std::size_t d = 0; d < indices.size(); ++d) indices[d] += part.begin[d];
    *next++ = value(static_cast<const decltype(indices)&>(indices));
  });
}

// Deleted: the compiler prints the reason as a template argument.
template <class Given, class Value, auto Why = detail::why_not_filled<Given, Value>()>
void fill(Given&, Value&&) = delete;
template <tensor_type Tensor, class Value, auto Why = detail::why_not_written_to<Tensor>()>
void fill(const Tensor&&, Value&&) = delete;

HOCKET_END_NAMESPACE
