// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Checks that all ranks have the same layout. Layouts that differ only in names or in the order of equal sizes move
/// the same number of bytes, so no collective would fail, but ranks would add gradients of different parameters.
#pragma once

#include <hocket/collective/all_gather.hpp>
#include <hocket/collective/all_gather_v.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/gradient/parameter_layout.hpp>
#include <hocket/transport/concept.hpp>

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Returns the timeout and the stop token of `options`, for the calls that use no other options.
template <class Options>
constexpr auto bounds_of(const Options& options) {
  constexpr bool timed = Options::template has<kind::timeout>, stopped = Options::template has<kind::stop>;
  if constexpr (timed && stopped) {
    return with(options.template get<kind::timeout>(0), options.template get<kind::stop>(0));
  } else if constexpr (timed) {
    return with(options.template get<kind::timeout>(0));
  } else if constexpr (stopped) {
    return with(options.template get<kind::stop>(0));
  } else {
    return hocket::options<>();
  }
}

/// Returns a layout as text, with one line per parameter.
HOCKET_DECL std::string text_of(const parameter_layout& layout);

/// Describes the first line in which two texts differ: the line of each text, or that the text has no such line.
HOCKET_DECL std::string first_difference(std::string_view one, std::string_view other, const std::string& one_is,
                                         const std::string& other_is);

/// Returns the FNV-1a hash of a text.
constexpr std::uint64_t fingerprint_of(std::string_view text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char each : text) hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001b3U;
  return hash;
}

struct layout_print {
  std::uint64_t hash;
  std::uint64_t length;
  friend bool operator==(const layout_print&, const layout_print&) = default;
};

/// Raises `mismatch` with the first difference between the layouts of rank 0 and rank `culprit`, given as text.
[[noreturn]] HOCKET_DETAIL_RARE HOCKET_DECL void raise_difference(std::string_view first, std::string_view other,
                                                                  std::size_t culprit, const error_context& context);

/// Exchanges the layouts of rank 0 and rank `culprit`, and raises their difference on every rank.
template <class Domain, class Bounds>
[[noreturn]] HOCKET_COLD void raise_layouts_differ(const communicator<Domain>& comm, const std::string& own,
                                                   const std::vector<layout_print>& all, std::size_t culprit,
                                                   const Bounds& bounds, const char* operation,
                                                   const std::source_location& site) {
  std::vector<std::size_t> lengths(all.size());
  lengths[0] = static_cast<std::size_t>(all[0].length);
  lengths[culprit] = static_cast<std::size_t>(all[culprit].length);
  const auto rank = static_cast<std::size_t>(comm.rank());
  std::string both(lengths[0] + lengths[culprit], '\0');
  all_gather_v(comm, std::as_bytes(std::span(own).first(lengths[rank])), std::as_writable_bytes(std::span(both)),
               counts{lengths}, bounds, site);
  raise_difference(std::string_view(both).substr(0, lengths[0]), std::string_view(both).substr(lengths[0]), culprit,
                   {.operation = operation,
                    .rank = comm.rank(),
                    .ranks = comm.size(),
                    .peer = static_cast<int>(rank == culprit ? 0 : culprit),
                    .site = site});
}

/// Raises `mismatch` on all ranks of `comm` if their layouts differ. Collective: an all_gather of 16 bytes per rank.
/// Does nothing on simulated ranks, which share a thread and can't wait.
template <class Domain, class Bounds>
void check_same_layout(const communicator<Domain>& comm, const parameter_layout& layout, const Bounds& bounds,
                       const char* operation, const std::source_location& site) {
  if constexpr (!transport::keeps_virtual_time<typename Domain::endpoints_type>) {
    if (comm.size() == 1) return;
    const std::string text = text_of(layout);
    const layout_print own{fingerprint_of(text), text.size()};
    std::vector<layout_print> all(static_cast<std::size_t>(comm.size()));
    all_gather(comm, std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)), bounds, site);
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
      if (!(all[rank] == all[0])) raise_layouts_differ(comm, text, all, rank, bounds, operation, site);
    }
  }
}

}  // namespace detail
HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/gradient/impl/layout_agreement.ipp>
#endif
