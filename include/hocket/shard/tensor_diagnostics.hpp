// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Error messages of the compiler for a tensor that can't be constructed, and for invalid calls of `copy`, `borrow` and
/// `fill`. Each `why_...` is the template argument of a deleted overload, and exists only for the arguments that it
/// explains, so that std::is_convertible, requires-expressions and others are right. See core/explanation.hpp.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/shard/array_view.hpp>
#include <hocket/shard/extents.hpp>
#include <hocket/shard/extents_diagnostics.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/tensor_type.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Replaces a mesh after an error.
struct no_mesh {
  using axes = axis_list<axis("no mesh")>;
  static constexpr int dimensions = 1;
};

/// Whether no placement is `undetermined` because of an error.
template <class Placed>
inline constexpr bool determined = true;
template <class... Placements>
inline constexpr bool determined<placements<Placements...>> = !(std::is_same_v<Placements, undetermined> || ...);

// ── The mesh ───────────────────────────────────────────────────────────────────────────────────────────────────────

/// A type with a rank and a size, as a mesh has, such as another mesh or a communicator.
template <class Given, class Mesh>
concept other_than_mesh = !std::is_same_v<Given, Mesh> && requires(const Given& given) {
  given.rank();
  given.size();
};

template <class Given, class Mesh>
inline constexpr bool is_wrong_mesh = other_than_mesh<Given, Mesh> && !std::is_same_v<Mesh, no_mesh>;

consteval sentence explain_wrong_mesh() {
  return "a tensor must be made on a mesh of the type that its own type names, not on a communicator or on a mesh of "
         "other axes";
}

template <class Given, class Mesh>
  requires is_wrong_mesh<Given, Mesh>
constexpr auto why_not_on_this() {
  return make_explanation([] { return explain_wrong_mesh(); });
}

// ── The extents ────────────────────────────────────────────────────────────────────────────────────────────────────

template <class Given, class Mesh, std::size_t Open>
inline constexpr bool lacks_extents = std::is_same_v<Given, Mesh> && Open > 0;

template <class Given, class Mesh, std::size_t Open>
consteval sentence explain_one_argument() {
  if (lacks_extents<Given, Mesh, Open>) return explain_extent_count(0, Open);
  return explain_wrong_mesh();
}

/// For a tensor whose type leaves `Open` extents open.
template <class Given, class Mesh, std::size_t Open>
  requires lacks_extents<Given, Mesh, Open> || is_wrong_mesh<Given, Mesh>
constexpr auto why_not_of_this_alone() {
  return make_explanation([] { return explain_one_argument<Given, Mesh, Open>(); });
}

/// A type that is neither extents nor wrong extents that `given_extents` explains.
template <class Given, class Extents>
concept other_than_extents = !std::is_convertible_v<const Given&, Extents> && !explained_by_extents<Given>;

template <class Given, class Extents>
  requires other_than_extents<Given, Extents>
constexpr auto why_no_extents() {
  return make_explanation([]() -> sentence {
    return "after the mesh, pass the extents that the tensor's type leaves open, in braces, and then the storage: "
           "tensor_type x(mesh, {3, 2}, storage), or x(mesh, {}, storage) if it leaves none open; a range of extents "
           "must be a std::array<std::size_t, n> or a std::span<const std::size_t>";
  });
}

template <class First>
  requires extent_like<First>
constexpr auto why_not_without_braces() {
  return make_explanation([]() -> sentence { return "a tensor's extents go in braces: tensor_type x(mesh, {3, 2})"; });
}

// ── The storage ────────────────────────────────────────────────────────────────────────────────────────────────────

template <class Element>
constexpr auto why_not_at_a_pointer() {
  return make_explanation([]() -> sentence {
    return "a pointer does not state the number of elements: pass std::span(data, count), whose size is compared with "
           "that of this rank's part";
  });
}

/// A range that can't be storage for elements T: of another type, read-only, or a temporary.
template <class Storage, class T>
concept other_than_storage = requires(Storage& storage) {
  storage.data();
  storage.size();
} && !std::is_convertible_v<Storage&&, std::span<T>> && !mdspan_like<std::remove_cvref_t<Storage>>;

template <class Storage, class T>
  requires other_than_storage<Storage, T>
constexpr auto why_not_in_this_storage() {
  return make_explanation([]() -> sentence {
    return "a tensor's storage must be a contiguous range of the tensor's element type, writable unless that type is "
           "const, and not a temporary";
  });
}

/// A view whose data a tensor of `Rank` dimensions and of elements T can use.
template <class View, class T, std::size_t Rank>
concept view_of_tensor = mdspan_like<View> && View::rank() == Rank && requires(const View& view) {
  { view.data_handle() } -> std::convertible_to<T*>;
};

template <class View, std::size_t Rank>
consteval sentence explain_view() {
  if (View::rank() != Rank)
    return "the view and the tensor have different numbers of dimensions: pass a view with as many as the tensor";
  return "the view's elements are const or have another type than the tensor's elements: pass a view of the tensor's "
         "element type, or, for const elements, make a tensor<const T, ...>";
}

template <class View, class T, std::size_t Rank>
  requires mdspan_like<View> && (!view_of_tensor<View, T, Rank>)
constexpr auto why_not_over_this_view() {
  return make_explanation([] { return explain_view<View, Rank>(); });
}

// ── Another tensor ─────────────────────────────────────────────────────────────────────────────────────────────────

/// Returns how to convert a tensor to another tensor type, which does not happen implicitly.
template <class From, class To>
consteval sentence explain_other_tensor() {
  if (!std::is_same_v<typename From::mesh_type, typename To::mesh_type>) {
    return "a tensor is not moved to another mesh implicitly: use redistribute<to_type>(x, mesh)";
  }
  if (!std::is_same_v<typename From::placements_type, typename To::placements_type>) {
    return "this tensor has another placement than the one required here: convert<\"axis\", placement>(x) changes it "
           "along one axis, redistribute<on<\"axis\", placement>, ...>(x) along several";
  }
  return "a tensor is not converted to other elements or extents implicitly: borrow(x) makes a tensor of const "
         "elements, copy(x) one whose elements can be written to, and apply computes other elements";
}

/// Whether the compiler has reported an error for one of two tensor types.
template <class From, class To>
inline constexpr bool after_an_error =
    !determined<typename From::placements_type> || !determined<typename To::placements_type>;

template <class From, class To>
  requires(!std::is_same_v<From, To> && !after_an_error<From, To>)
constexpr auto why_not_made_of() {
  return make_explanation([] { return explain_other_tensor<From, To>(); });
}

// ── copy, borrow, fill ─────────────────────────────────────────────────────────────────────────────────────────────

template <class Given>
constexpr auto why_not_copied() {
  return make_explanation([]() -> sentence {
    return "hocket::copy copies only tensors: copy a range by its own constructor, or by std::copy";
  });
}

template <class Tensor>
constexpr auto why_not_borrowed() {
  return make_explanation([]() -> sentence {
    return "the storage of a temporary tensor ends before the borrowed tensor can be used: give the tensor a name, or "
           "use it without borrow";
  });
}

/// Whether the elements of a tensor of this type, which may be const, can be written to.
template <class Tensor>
inline constexpr bool is_written_to = false;
template <tensor_type Tensor>
inline constexpr bool is_written_to<Tensor> =
    !std::is_const_v<std::remove_pointer_t<decltype(std::declval<Tensor&>().elements().data())>>;

consteval sentence explain_not_written_to() {
  return "a tensor that is written to must have a name, and elements that are not const: it can't be a temporary, a "
         "const tensor, or the result of borrow";
}

template <class Tensor>
constexpr auto why_not_written_to() {
  return make_explanation([] { return explain_not_written_to(); });
}

/// Whether `Value` can be called with the indices of an element of a tensor.
template <class Value, class Tensor>
inline constexpr bool is_value_of_indices = false;
template <class Value, tensor_type Tensor>
inline constexpr bool is_value_of_indices<Value, Tensor> =
    requires(Value& value, const typename std::remove_const_t<Tensor>::sizes_type& at,
             std::remove_const_t<typename std::remove_const_t<Tensor>::element_type>& element) {
      element = static_cast<std::remove_reference_t<decltype(element)>>(value(at));
    };

template <class Given, class Value>
consteval sentence explain_fill() {
  if (!tensor_type<Given>) {
    return "only a tensor can be filled by a function of indices: the type of a range does not state which elements "
           "of the whole it has";
  }
  if (!is_value_of_indices<Value, Given>) {
    return "fill takes a function of the indices of an element, which are an array: [](const auto& at) { return at[0] "
           "+ 0.5; }; to set one value everywhere, use std::ranges::fill(x.elements(), value)";
  }
  return explain_not_written_to();
}

/// If `Given` is not a tensor, exists only if `Value` may be a function of indices: otherwise another `fill` is meant.
template <class Given, class Value>
  requires(tensor_type<Given> ? !(is_value_of_indices<Value, Given> && is_written_to<Given>)
                              : std::is_invocable_v<Value&, const std::array<std::size_t, 1>&>)
constexpr auto why_not_filled() {
  return make_explanation([] { return explain_fill<Given, Value>(); });
}

}  // namespace detail
HOCKET_END_NAMESPACE
