// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How ranks report failures of their own work to each other, so that each step of a save or a load fails on all of
/// them with the same error.
#pragma once

#include <hocket/bootstrap/blob.hpp>
#include <hocket/checkpoint/rank_group.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace checkpoint {
namespace detail {

/// Begins with the failure of a rank, or with none; so that ranks report failures with what they exchange anyway.
inline bootstrap::blob encode_outcome(const failure& cause) {
  bootstrap::blob result;
  bootstrap::detail::append_integer(result, static_cast<std::int32_t>(cause.code.value()));
  bootstrap::detail::append_integer(result, static_cast<std::uint32_t>(cause.reason.size()));
  bootstrap::detail::append_bytes(result, bootstrap::text_bytes(cause.reason));
  return result;
}
inline failure decode_outcome(bootstrap::detail::blob_reader& reader) {
  const auto code = reader.integer<std::int32_t>();
  std::string reason = bootstrap::blob_text(reader.bytes(reader.integer<std::uint32_t>()));
  return code == 0 ? failure() : make_failure(static_cast<errc>(code), std::move(reason));
}

/// Calls `act` and returns its failure, also if it throws one, or another exception: an exception would end the process
/// where `act` runs on a thread of its own, and leave the other ranks waiting.
template <class Act>
failure outcome_of(Act act) {
#if HOCKET_HAS_EXCEPTIONS
  try {
    return act();
  } catch (const error& cause) {
    return cause.cause();
  } catch (const std::bad_alloc&) {
    return make_failure(errc::out_of_memory, "there is no memory for what a checkpoint needs");
  } catch (const std::exception& cause) {
    return make_failure(errc::system, cause.what());
  }
#else
  return act();
#endif
}

/// Returns rank 0's failure on all ranks.
inline failure agreed(rank_group& ranks, const failure& of_first) {
  const bootstrap::blob outcome = ranks.broadcast(encode_outcome(of_first));
  bootstrap::detail::blob_reader reader(outcome);
  return decode_outcome(reader);
}
/// Returns the failure of the first rank that has one, on all ranks.
inline failure agreed_of_all(rank_group& ranks, const failure& mine) {
  failure first;
  const auto all = ranks.gather(encode_outcome(mine));
  for (std::size_t r = 0; r < all.size() && !first; ++r) {
    bootstrap::detail::blob_reader reader(all[r]);
    first = decode_outcome(reader);
    if (first) first.reason = hocket::detail::concat({"rank ", r, ": ", first.reason});
  }
  return agreed(ranks, first);
}

}  // namespace detail
}  // namespace checkpoint
HOCKET_END_NAMESPACE
