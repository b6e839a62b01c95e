// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Start-up over an all-gather that the program already has: MPI_Allgatherv, a driver's own connections, Python's
/// torch.distributed. Nothing else is needed: no port is opened for start-up.
///
/// The function has no deadline that hocket could end, so a rank must never be in it while another has left start-up.
/// Each message therefore begins with whether its sender continues. A rank that fails takes part once more, with the
/// reason; and at the end all ranks confirm that none has failed.
#pragma once

#include <hocket/bootstrap/blob.hpp>
#include <hocket/bootstrap/store.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/wait_limit.hpp>
#include <hocket/core/text.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE

namespace bootstrap {

/// A function that takes this rank's bytes and returns those of all ranks, in rank order. The sizes may differ between
/// ranks. Every rank calls it equally often.
template <typename Function>
concept all_gather_function = std::is_invocable_r_v<std::vector<blob>, Function&, byte_view>;

/// A store for `exchange` that calls an all-gather function. Exceptions of the function pass through.
template <all_gather_function Function>
class all_gather_store {
 public:
  /// 0 <= rank < ranks.
  all_gather_store(Function function, int rank, int ranks)
      : function_(std::move(function)), rank_(rank), ranks_(ranks) {}
  all_gather_store(all_gather_store&& other) noexcept(std::is_nothrow_move_constructible_v<Function>)
      : function_(std::move(other.function_)), rank_(other.rank_), ranks_(other.ranks_),
        ended_(std::exchange(other.ended_, true)) {}
  all_gather_store& operator=(all_gather_store&&) = delete;
  ~all_gather_store() { report_failure(make_failure(errc::system, "start-up has ended by an exception")); }

  /// As `exchange` calls it. There is no limit: `function` returns when all ranks have called it.
  std::vector<blob> gather(std::string_view /*key*/, int /*rank*/, int /*ranks*/, byte_view mine,
                           const wait_limit& /*limit*/) {
    return gather(mine);
  }

  /// Confirms that start-up has succeeded on all ranks; otherwise raises the failure of the first rank that reports one.
  void finish() {
    gather({});
    ended_ = true;
  }

  /// Takes part in the call in which the other ranks are or will be, with the reason why this rank leaves.
  void report_failure(const failure& cause) noexcept {
    if (ended_) return;
#if HOCKET_HAS_EXCEPTIONS
    try {
      call(static_cast<std::int32_t>(cause.code.value()), text_bytes(cause.reason));
    } catch (...) {  // the ranks can't be told
    }
#else
    call(static_cast<std::int32_t>(cause.code.value()), text_bytes(cause.reason));
#endif
    ended_ = true;
  }

 private:
  std::vector<blob> gather(byte_view mine) {
    std::vector<blob> all = call(0, mine);
    for (int rank = 0; rank < ranks_; ++rank) {
      blob& each = all[static_cast<std::size_t>(rank)];
      detail::blob_reader reader(each);
      const auto code = reader.integer<std::int32_t>();
      if (code != 0 || !reader.ok()) raise_failure_of(rank, reader.ok() ? code : -1, reader.rest_as_text());
      each.erase(each.begin(), each.begin() + sizeof(std::int32_t));
    }
    return all;
  }

  /// Calls the function, and checks that it has returned what it must.
  std::vector<blob> call(std::int32_t code, byte_view body) {
    blob message;
    detail::append_integer(message, code);
    detail::append_bytes(message, body);
    ended_ = true;  // if it throws, it can't be called again
    std::vector<blob> all = function_(byte_view(message));
    if (all.size() != static_cast<std::size_t>(ranks_)) {
      raise(errc::invalid_argument,
            hocket::detail::concat({"the all_gather function has returned ", all.size(),
                                    " blobs; it must return those of ", ranks_, " ranks, in rank order"}),
            detail::store_context("connect", rank_, ranks_));
    }
    if (all[static_cast<std::size_t>(rank_)] != message) {
      raise(errc::invalid_argument,
            hocket::detail::concat({"blob ", rank_,
                                    " that the all_gather function has returned is not the one that rank ", rank_,
                                    " passed; it must return the bytes of each rank unchanged, in rank order"}),
            detail::store_context("connect", rank_, ranks_));
    }
    ended_ = false;
    return all;
  }

  [[noreturn]] void raise_failure_of(int rank, std::int32_t code, const std::string& reason) {
    ended_ = true;
    failure found =
        detail::reported_failure(code, rank, hocket::detail::concat({"rank ", rank, " reports: ", reason}), ranks_);
    found.context = detail::store_context("connect", rank_, ranks_, rank);
    raise(std::move(found));
  }

  Function function_;
  int rank_;
  int ranks_;
  bool ended_ = false;  ///< the function must not be called again
};

}  // namespace bootstrap

HOCKET_END_NAMESPACE
