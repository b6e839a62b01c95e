// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The ranks over which a gradient is summed: one group, or two groups that cross each other, for example if each host
/// holds a sharded copy of the model. Then the smaller part of the traffic is between hosts.
#pragma once

#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>

#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE

/// The ranks that share one copy of the model, and the ranks that hold the same shard of all copies. See `hybrid`.
template <class Domain>
struct hybrid_group {
  using domain_type = Domain;
  static constexpr bool has_replicas = true;  ///< whether gradients are also summed over copies of the model
  const communicator<Domain>* shards;         ///< ranks that share one copy
  const communicator<Domain>* replicas;       ///< ranks that hold the same part of different copies
};

namespace detail {

/// Returns the ranks of `comm`, in its order, as numbered by its domain.
template <class Domain>
const std::vector<int>& members_of(const communicator<Domain>& comm) noexcept {
  return *communicator_access::state(comm).members();
}

/// Returns whether both communicators use the same domain, and so number ranks in the same way.
template <class Domain>
bool same_domain(const communicator<Domain>& one, const communicator<Domain>& other) noexcept {
  return communicator_access::state(one).domain() == communicator_access::state(other).domain();
}

/// Raises `invalid_argument` if the groups have a rank in common other than this one, rank `self` of `shards`. Along
/// axes of a mesh, all ranks get the same result.
HOCKET_DECL void check_crossing(const std::vector<int>& shards, const std::vector<int>& replicas, int self,
                                const std::source_location& site);

/// Returns whether a sum over `shards` and then over `replicas` includes all ranks of `group`, and no others.
HOCKET_DECL bool are_all_of(std::vector<int> group, const std::vector<int>& shards, const std::vector<int>& replicas);

/// Returns whether the groups have a rank in common other than `self`.
HOCKET_DECL bool share_another(const std::vector<int>& one, const std::vector<int>& other, int self);

}  // namespace detail

/// Returns the group of gradients and parameters that are sharded over `shards` and replicated over `replicas`, for
/// example the communicators along two axes of a mesh. They must outlive what is made with the result. Not collective.
/// Raises `invalid_argument` if they have a rank in common other than this one, for example if both go along one axis.
template <class Domain>
hybrid_group<Domain> hybrid(const communicator<Domain>& shards, const communicator<Domain>& replicas,
                            const std::source_location& site = std::source_location::current()) {
  if (detail::same_domain(shards, replicas)) {
    detail::check_crossing(detail::members_of(shards), detail::members_of(replicas), shards.rank(), site);
  }
  return {&shards, &replicas};
}
template <class Domain>
hybrid_group<Domain> hybrid(communicator<Domain>&&, const communicator<Domain>&) = delete;
template <class Domain>
hybrid_group<Domain> hybrid(const communicator<Domain>&, communicator<Domain>&&) = delete;

namespace detail {

/// A single group, without replicas.
template <class Domain>
struct plain_group {
  using domain_type = Domain;
  static constexpr bool has_replicas = false;
  const communicator<Domain>* shards;
};

template <class Domain>
plain_group<Domain> as_group(const communicator<Domain>& comm) noexcept {
  return {&comm};
}
template <class Domain>
hybrid_group<Domain> as_group(const hybrid_group<Domain>& group) noexcept {
  return group;
}

template <class Over>
concept group_of_ranks = requires(Over& given) { as_group(given); };

/// Returns whether both have the same rank and size and, if they share a domain, the same members in the same order.
template <class Domain, class OtherDomain>
bool same_ranks(const communicator<Domain>& one, const communicator<OtherDomain>& other) noexcept {
  if (one.rank() != other.rank() || one.size() != other.size()) return false;
  if constexpr (std::is_same_v<Domain, OtherDomain>) {
    return !same_domain(one, other) || members_of(one) == members_of(other);
  }
  return true;
}

}  // namespace detail
HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/gradient/impl/data_parallel.ipp>
#endif
