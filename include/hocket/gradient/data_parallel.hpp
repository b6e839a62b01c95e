// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Over which ranks a gradient is added up: one group, or, where a copy of the model is spread inside each host and
/// hosts hold copies, two that cross each other. Traffic between hosts then is the smaller part.
#pragma once

#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>

#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE

/// Ranks that share one copy of the model, and ranks that hold the same part of different copies. Made by `hybrid`.
template <class Domain>
struct hybrid_group {
  using domain_type = Domain;
  static constexpr bool has_replicas = true;
  const communicator<Domain>* shards;
  const communicator<Domain>* replicas;
};

namespace detail {

/// The ranks of `comm`, in its order, as its wire numbers them.
template <class Domain>
const std::vector<int>& members_of(const communicator<Domain>& comm) noexcept {
  return *communicator_access::state(comm).members();
}

/// Whether both number ranks alike.
template <class Domain>
bool same_domain(const communicator<Domain>& one, const communicator<Domain>& other) noexcept {
  return communicator_access::state(one).domain() == communicator_access::state(other).domain();
}

/// Refuses groups that have another rank in common than this one, rank `self` of `shards`. Along axes of a mesh all ranks
/// find the same.
HOCKET_DECL void check_crossing(const std::vector<int>& shards, const std::vector<int>& replicas, int self,
                                const std::source_location& site);

/// Whether a gradient that is added up over `shards` and then over `replicas` comes from all of `group`, and from no other.
HOCKET_DECL bool are_all_of(std::vector<int> group, const std::vector<int>& shards, const std::vector<int>& replicas);

/// Whether both have a rank other than `self`.
HOCKET_DECL bool share_another(const std::vector<int>& one, const std::vector<int>& other, int self);

}  // namespace detail

/// For gradients and parameters that are sharded over `shards` and replicated over `replicas`: the communicators along
/// two axes of a mesh. They must outlive what is made with the result. Not collective.
/// Raises `invalid_argument` if they have another rank in common than this one: two along one axis, or all ranks.
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

/// One group alone.
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

/// Of what is no group, and that has been said.
struct no_group {
  using domain_type = void;
  static constexpr bool has_replicas = true;
};

template <class Over>
auto group_type_of() {
  if constexpr (group_of_ranks<Over>) {
    return decltype(as_group(std::declval<Over&>()))();
  } else {
    return no_group();
  }
}

/// Whether a group may be given as `Over&&`: groups keep the addresses of communicators.
template <class Over>
struct checked_group {
  static constexpr bool is_group = group_of_ranks<Over>;
  static_assert(is_group,
                "what gradients(...) or parameters(...) goes over is a communicator, such as mesh.along<\"dp\">(), or "
                "hybrid(shards, replicas)");
  static constexpr bool stays = std::is_lvalue_reference_v<Over> || decltype(group_type_of<Over>())::has_replicas;
  static constexpr bool value = is_group && stays;
  static_assert(stays,
                "this communicator ends with the statement, and gradients(...) or parameters(...) would keep its "
                "address: give it a name, and let it live longer than what is made with it");
};

/// Whether both have the same ranks in the same order, as far as can be told: two wires may number them differently.
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
