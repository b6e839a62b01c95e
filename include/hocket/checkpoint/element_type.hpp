// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The types of elements that files of tensors name, and those of C++ that are the same.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/scalar/bfloat16.hpp>
#include <hocket/scalar/float8.hpp>
#include <hocket/scalar/half.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace checkpoint {

enum class element_type : std::uint8_t {
  f64,
  f32,
  f16,
  bf16,
  f8_e4m3,
  f8_e5m2,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean
};

namespace detail {

struct element_type_entry {
  std::string_view name;  ///< in safetensors files
  std::size_t bytes;
};
/// In the order of `element_type`.
inline constexpr std::array<element_type_entry, 15> element_types{{{"F64", 8},
                                                                   {"F32", 4},
                                                                   {"F16", 2},
                                                                   {"BF16", 2},
                                                                   {"F8_E4M3", 1},
                                                                   {"F8_E5M2", 1},
                                                                   {"I64", 8},
                                                                   {"I32", 4},
                                                                   {"I16", 2},
                                                                   {"I8", 1},
                                                                   {"U64", 8},
                                                                   {"U32", 4},
                                                                   {"U16", 2},
                                                                   {"U8", 1},
                                                                   {"BOOL", 1}}};

template <class T>
constexpr std::optional<element_type> find_element_type() noexcept {
  using enum element_type;
  if constexpr (std::is_same_v<T, double>) return f64;
  else if constexpr (std::is_same_v<T, float>) return f32;
  else if constexpr (std::is_same_v<T, half>) return f16;
  else if constexpr (std::is_same_v<T, bfloat16>) return bf16;
  else if constexpr (std::is_same_v<T, float8_e4m3>) return f8_e4m3;
  else if constexpr (std::is_same_v<T, float8_e5m2>) return f8_e5m2;
  else if constexpr (std::is_same_v<T, bool>) return boolean;
  else if constexpr (std::is_same_v<T, std::byte>) return u8;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 8) return std::is_signed_v<T> ? i64 : u64;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 4) return std::is_signed_v<T> ? i32 : u32;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 2) return std::is_signed_v<T> ? i16 : u16;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 1) return std::is_signed_v<T> ? i8 : u8;
  else return std::nullopt;
}

}  // namespace detail

/// The name of the type in safetensors files, such as "BF16".
constexpr std::string_view name_of(element_type type) noexcept {
  return detail::element_types[static_cast<std::size_t>(type)].name;
}
constexpr std::size_t bytes_of(element_type type) noexcept {
  return detail::element_types[static_cast<std::size_t>(type)].bytes;
}
/// Returns the type with this name; nothing if there is none.
constexpr std::optional<element_type> element_type_named(std::string_view name) noexcept {
  for (std::size_t i = 0; i < detail::element_types.size(); ++i) {
    if (detail::element_types[i].name == name) return static_cast<element_type>(i);
  }
  return std::nullopt;
}

/// The type in files of elements T. Types without one can be saved as the bytes of their elements.
template <class T>
constexpr element_type element_type_of() noexcept {
  constexpr std::optional<element_type> found = detail::find_element_type<std::remove_cv_t<T>>();
  static_assert(found.has_value(),
                "files of tensors have no type for these elements: save their bytes, as elements of std::byte");
  return *found;
}

}  // namespace checkpoint
HOCKET_END_NAMESPACE
