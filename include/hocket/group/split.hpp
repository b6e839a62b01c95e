// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Splits a communicator into smaller ones: rows and columns of a mesh, the ranks of one host.
#pragma once

#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/core/strong_types.hpp>

#include <source_location>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
/// Splits `comm` into one communicator per colour, and returns the communicator of this rank's colour, whose ranks are
/// in the order of their keys.
///
/// Collective over `comm`, at the cost of some small all-gathers. The new communicators share their parent's
/// connections and open no new ones. Each can be used in addition to its parent and the others, also from another
/// thread, and may outlive its parent. Throws `error` like any collective, with the line of this call.
template <class Domain>
communicator<Domain> split(const communicator<Domain>& comm, color part, key order = {},
                           const std::source_location& site = std::source_location::current());

namespace detail {

template <class Part, class... Given>
  requires(!(std::is_same_v<Part, color> && (sizeof...(Given) == 0 || (std::is_same_v<Given, key> || ...))))
constexpr auto why_no_split() {
  return make_explanation([]() -> sentence {
    return "split(...) takes the colour of this rank's part and, if it matters, its key in it: split(comm, color{1}, "
           "key{0})";
  });
}

}  // namespace detail

/// Deleted: the parts must be passed as `color` and `key`.
template <class Domain, class Part, class... Order, auto Why = detail::why_no_split<Part, Order...>()>
communicator<Domain> split(const communicator<Domain>& comm, Part, Order...) = delete;

HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/group/impl/split.ipp>
#endif
