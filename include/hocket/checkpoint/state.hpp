// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The state that a checkpoint saves and loads: named tensors, and which hyper-rectangle of each this rank holds. It
/// comes from the placement types of tensors, or is written by hand. It refers to the program's memory, and copies
/// nothing.
///
/// @code
/// hocket::checkpoint::state now;
/// now.add("weight", weight);                                    // a sharded tensor: its type has the rectangle
/// now.add("bias", {1000}, {{250 * r}, {250}}, std::span(bias)); // 250 of 1000 elements
/// now.add("step", step);                                        // a number that is equal on all ranks
/// now.text["data"] = "shakespeare.txt";                         // a text that is equal on all ranks
/// @endcode
#pragma once

#include <hocket/checkpoint/element_type.hpp>
#include <hocket/checkpoint/rectangle.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/core/utf8.hpp>
#include <hocket/shard/tensor_type.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace checkpoint {

/// Part of a tensor in this rank's memory.
struct state_part {
  std::string name;
  element_type type = element_type::u8;
  sizes_type extents;  ///< of the whole tensor
  rectangle where;     ///< the elements that this rank holds, row-major
  std::byte* data = nullptr;
  bool is_copy = false;  ///< other ranks have all of its elements, perhaps in other rectangles: it need not be saved

  std::size_t bytes() const noexcept { return static_cast<std::size_t>(where.volume()) * bytes_of(type); }
};

/// Name of the tensor with the checksums in each file.
inline constexpr std::string_view blocks_tensor = "hocket.crc32c_of_blocks";

/// Returns why a tensor can't have this name; empty if it can. Names are texts of JSON, and keys of safetensors files.
inline std::string problem_with_name(std::string_view name) {
  if (!hocket::detail::is_utf8(name)) return "its name is not UTF-8, which files of tensors must have";
  if (name == "__metadata__" || name == blocks_tensor) return "files of tensors have another meaning for its name";
  return {};
}

/// **Equal on all ranks:** the type and the extents of each tensor, and `text`. Names and texts are UTF-8. Over all
/// ranks, parts of a tensor have each element; a rectangle may be on several ranks, which must then hold equal
/// elements, but two different rectangles have no element in common, unless one is a part with `is_copy`. **Lifetime.**
/// The memory of the parts must outlive the calls that use the state.
class state {
 public:
  /// Adds the part `where` of a tensor; `elements` are its elements, row-major. Raises `invalid_argument` if `where` is
  /// not within `extents`, or has another number of elements than `elements`; and, as all functions do, if the name is
  /// not UTF-8, or has another meaning in files: "__metadata__" and "hocket.crc32c_of_blocks".
  template <std::ranges::contiguous_range Elements>
  void add(std::string name, sizes_type extents, rectangle where, Elements&& elements) {
    using T = std::remove_reference_t<std::ranges::range_reference_t<Elements>>;
    static_assert(!std::is_const_v<T>, "the elements of a state must be writable, because loading writes them");
    static_assert(std::is_trivially_copyable_v<T>, "elements in files must be trivially copyable");
    require_within(name, extents, where, std::ranges::size(elements));
    parts_.push_back({std::move(name), element_type_of<T>(), std::move(extents), std::move(where),
                      reinterpret_cast<std::byte*>(std::ranges::data(elements))});
  }

  /// Adds consecutive elements of a tensor of one dimension that has `extent` elements, from number `first` on. Raises
  /// `invalid_argument` if they are not within it.
  template <std::ranges::contiguous_range Elements>
  void add_slice(std::string name, std::uint64_t extent, std::uint64_t first, Elements&& elements) {
    add(std::move(name), {extent}, {{first}, {std::ranges::size(elements)}}, elements);
  }

  /// A state does not keep elements: an array that ends with the statement can't be saved.
  template <class Elements>
    requires(!std::ranges::borrowed_range<Elements>)
  void add(std::string name, sizes_type extents, rectangle where, Elements&& elements) = delete;
  template <class Elements>
    requires(std::ranges::contiguous_range<Elements> && !std::ranges::borrowed_range<Elements>)
  void add(std::string name, Elements&& elements) = delete;
  template <class Elements>
    requires(!std::ranges::borrowed_range<Elements>)
  void add_slice(std::string name, std::uint64_t extent, std::uint64_t first, Elements&& elements) = delete;

  /// Adds a part whose type of elements is known at run time.
  void add(state_part part) {
    require_within(part.name, part.extents, part.where, part.where.volume());
    parts_.push_back(std::move(part));
  }

  /// Adds an array that every rank holds as a whole, with equal elements.
  template <std::ranges::contiguous_range Elements>
  void add(std::string name, Elements&& elements) {
    const sizes_type extents{std::ranges::size(elements)};
    add(std::move(name), extents, whole_of(extents), elements);
  }

  /// Adds a number that is equal on all ranks.
  template <class T>
    requires(std::is_arithmetic_v<T>)
  void add(std::string name, T& value) {
    add(std::move(name), sizes_type(), rectangle(), std::span(&value, 1));
  }

  /// Adds this rank's part of a tensor.
  template <class T, class Extents, class Mesh, class Placed>
  void add(std::string name, sharded_tensor<T, Extents, Mesh, Placed>& tensor) {
    static_assert(!is_partial<Placed>(), "a tensor of partial sums can't be saved: reduce it first");
    const auto& part = tensor.part();
    add(std::move(name), sizes_type(tensor.sizes().begin(), tensor.sizes().end()),
        rectangle{{part.begin.begin(), part.begin.end()}, {part.size.begin(), part.size.end()}}, tensor.elements());
  }

  /// Adds the elements from number `first` on of the part `where`, in row-major order, as slices of flattened
  /// parameters are. Raises `invalid_argument` if the part does not have them.
  template <class T>
  void add_range(const std::string& name, const sizes_type& extents, const rectangle& where, std::uint64_t first,
                 std::span<T> elements) {
    require_range(name, where, first, elements.size());
    for (rectangle& each : rectangles_of_range(where, first, elements.size())) {
      const auto count = static_cast<std::size_t>(each.volume());
      add(name, extents, std::move(each), elements.first(count));
      elements = elements.subspan(count);
    }
  }

  const std::vector<state_part>& parts() const noexcept { return parts_; }

  std::map<std::string, std::string> text;  ///< texts that are equal on all ranks; loading replaces them

 private:
  static constexpr std::size_t most_dimensions = 64;

  template <class Placed>
  static constexpr bool is_partial() noexcept {
    return std::any_of(std::begin(Placed::values), std::end(Placed::values),
                       [](const auto& each) { return each.partial(); });
  }

  [[noreturn]] static void refuse(const std::string& name, std::string reason) {
    raise(errc::invalid_argument, hocket::detail::concat({"tensor '", name, "': ", reason}),
          {.operation = "checkpoint::state"});
  }

  static void require_within(const std::string& name, const sizes_type& extents, const rectangle& where,
                             std::size_t elements) {
    using hocket::detail::concat;
    std::string problem = problem_with_name(name);
    if (!problem.empty()) refuse(hocket::detail::to_utf8(name), std::move(problem));
    const std::size_t dimensions = extents.size();
    if (dimensions > most_dimensions) refuse(name, concat({"it has more than ", most_dimensions, " dimensions"}));
    if (where.begin.size() != dimensions || where.size.size() != dimensions)
      refuse(name, concat({"the rectangle must have a begin and a size for each of ", dimensions, " dimensions"}));
    for (std::size_t d = 0; d < dimensions; ++d) {
      if (where.size[d] <= extents[d] && where.begin[d] <= extents[d] - where.size[d]) continue;
      refuse(name, concat({"elements ", where.text(), " are not within the extent ", extents[d], " of dimension ", d}));
    }
    if (!volume_of(extents)) refuse(name, "its number of elements does not fit into 64 bits");
    if (where.volume() == elements) return;
    refuse(name, concat({"elements ", where.text(), " are ", where.volume(), ", but ", elements, " are given"}));
  }

  static void require_range(const std::string& name, const rectangle& where, std::uint64_t first, std::uint64_t count) {
    const std::uint64_t volume = where.volume();
    if (count <= volume && first <= volume - count) return;
    refuse(name, hocket::detail::concat({"a range of ", count, " elements from number ", first, " on is not within ",
                                         where.text(), ", which has ", volume}));
  }

  std::vector<state_part> parts_;
};

}  // namespace checkpoint
HOCKET_END_NAMESPACE
