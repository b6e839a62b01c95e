// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The concept of tensors, for headers that shard/tensor.hpp includes.
#pragma once

#include <hocket/core/config.hpp>

#include <type_traits>

HOCKET_BEGIN_NAMESPACE

template <class T, class Extents, class Mesh, class Placed>
class sharded_tensor;

namespace detail {

template <class T>
struct is_tensor : std::false_type {};
template <class T, class Extents, class Mesh, class Placed>
struct is_tensor<sharded_tensor<T, Extents, Mesh, Placed>> : std::true_type {};

}  // namespace detail

/// A sharded tensor, or a reference to one.
template <class T>
concept tensor_type = detail::is_tensor<std::remove_cvref_t<T>>::value;

HOCKET_END_NAMESPACE
