// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Several sources as the source of a mixture: sample 7 of source 1 is read from the second one.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/data/input.hpp>
#include <hocket/data/loader.hpp>
#include <hocket/data/mixture.hpp>

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace data {

/// Sources whose batches have one type, in the order of the mixture's. They must outlive the object.
template <class First, class... Others>
class mixed_sources {
 public:
  static_assert((std::same_as<typename First::batch_type, typename Others::batch_type> && ...),
                "hocket: sources can be mixed if their batches have the same type");
  static_assert(!(reports_loading<First> || ... || reports_loading<Others>),
                "hocket: a group_reader can't be part of a mixture: its order is not that of the loader");
  using batch_type = typename First::batch_type;

  explicit mixed_sources(const First& first, const Others&... others) : sources_(first, others...) {}
  /// Refuses temporaries, which would be gone before they are read.
  template <class... Sources>
    requires std::same_as<std::tuple<First, Others...>, std::tuple<std::remove_cvref_t<Sources>...>> &&
                 (std::is_rvalue_reference_v<Sources &&> || ...)
  explicit mixed_sources(Sources&&...) = delete;

  /// Adds a sample of one of the sources. Raises as that source, and `invalid_argument` if there is no such source.
  void append(const mixed_sample& sample, batch_type& to) const {
    append_of(sample, to, std::index_sequence_for<First, Others...>());
  }

 private:
  template <std::size_t... I>
  void append_of(const mixed_sample& sample, batch_type& to, std::index_sequence<I...>) const {
    const bool is_found = ((I == sample.source && (std::get<I>(sources_).append(sample.sample, to), true)) || ...);
    if (is_found) return;
    raise(errc::invalid_argument,
          hocket::detail::concat({"source ", sample.source, " is asked for, and there are ", sizeof...(I)}),
          {.operation = "data::mixed_sources"});
  }

  std::tuple<const First&, const Others&...> sources_;
};

}  // namespace data
HOCKET_END_NAMESPACE
