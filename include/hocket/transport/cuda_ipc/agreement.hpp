// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Agreement on failures: a failure on one rank ends the call on all ranks with the same error. A rank that continued
/// alone would enqueue waits for signals that never arrive.
#pragma once

#include <hocket/bootstrap/blob.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/transport/concept.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {
namespace detail {

/// Encodes a failure, or a rank's contribution `contribution` if there is none.
inline std::vector<std::byte> encode_answer(const failure& found, std::span<const std::byte> contribution = {}) {
  std::vector<std::byte> out;
  bootstrap::detail::append_integer(out, static_cast<std::int32_t>(found.code.value()));
  if (found) {
    bootstrap::detail::append_bytes(out, bootstrap::text_bytes(found.reason));
  } else {
    bootstrap::detail::append_bytes(out, contribution);
  }
  return out;
}

/// Decodes the contributions of all ranks, or returns the first failure among them, the same on all ranks.
inline failure decode_answers(const std::vector<std::vector<std::byte>>& all, std::size_t ranks,
                              std::vector<std::vector<std::byte>>& contributions) {
  contributions.assign(ranks, {});
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    bootstrap::detail::blob_reader from(rank < all.size() ? std::span(all[rank]) : std::span<const std::byte>());
    const auto code = from.integer<std::int32_t>();
    const error_context whose{.peer = static_cast<int>(rank)};
    if (!from.ok()) return make_failure(errc::corrupted, "the rank sent an invalid answer", whose);
    if (code != 0) return make_failure(static_cast<errc>(code), from.rest_as_text(), whose);
    const std::span<const std::byte> rest = from.bytes(from.left());
    contributions[rank].assign(rest.begin(), rest.end());
  }
  return {};
}

/// Returns the first failure of all ranks, the same on all; no failure if there is none.
inline failure agreed(const failure& own, std::size_t ranks, const transport::exchange_function& exchange) {
  std::vector<std::vector<std::byte>> nothing;
  return decode_answers(exchange(encode_answer(own)), ranks, nothing);
}

}  // namespace detail
}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
