// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Compares one call on device memory with the host's result: in each kind of memory, with small chunks.
#pragma once

#include "collective/device/devices.hpp"
#include "support/elements.hpp"

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace hocket_test {

inline constexpr std::size_t chunk_bytes = 1024;
inline constexpr hocket::cuda::staging small_chunks{chunk_bytes};

/// 0, 1 and an odd number of elements; exactly one chunk of 8-byte elements, one element less and more; many chunks.
#if defined(__SANITIZE_THREAD__)  // which is slow and checks only the order of accesses
inline const std::vector<std::size_t> sizes = {0, 1, 7, 127, 128, 129, 1000};
#else
inline const std::vector<std::size_t> sizes = {0, 1, 7, 127, 128, 129, 1000, 4097};
#endif

/// Kind of memory in this turn; from turn 3 it differs between ranks.
inline memory_space kind_of(std::size_t turn, int rank) {
  constexpr memory_space kinds[] = {memory_space::device, memory_space::pinned, memory_space::managed};
  return kinds[(turn + (turn >= 3 ? static_cast<std::size_t>(rank) : 0)) % 3];
}

/// Calls `call` with a view of `what` that is tagged with its kind of memory.
template <class T, class Call>
void as_placed(std::span<T> what, memory_space where, Call call) {
  switch (where) {
    case memory_space::pinned: return call(hocket::cuda::pinned(what));
    case memory_space::managed: return call(hocket::cuda::managed(what));
    default: return call(hocket::cuda::device(what));
  }
}

/// Runs `call(in, out)` on one rank on placed buffers with the input `values`, and compares the result with `expected`.
template <class T, class Call>
void check_call(thread_rank& me, const rank_device& mine, std::size_t turn, const std::vector<T>& values,
                const std::vector<T>& expected, Call call) {
  host_driver& driver = mine.driver();
  const memory_space from = kind_of(turn, me.rank()), to = kind_of(turn / 2 + turn, me.rank());
  placed_vector<T> in(driver, values.size(), from, turn % 3), out(driver, expected.size(), to, turn % 2);
  in.write(mine.stream(), values);
  std::vector<T> before;
  out.read(mine.stream(), before);  // must not see what the call writes later
  as_placed(in.span(), from,
            [&](auto placed_in) { as_placed(out.span(), to, [&](auto placed_out) { call(placed_in, placed_out); }); });
  std::vector<T> found, after;
  out.read(mine.stream(), found);
  in.read(mine.stream(), after);
  driver.finish_streams();
  me.check(same_bytes(std::span<const T>(found), std::span<const T>(expected)),
           [&] { return first_difference(std::span<const T>(found), std::span<const T>(expected)); });
  me.check(same_bytes(std::span<const T>(after), std::span<const T>(values)), "changed `in`");
  std::vector<T> untouched(before.size());
  if (!before.empty()) std::memset(static_cast<void*>(untouched.data()), 0xa5, untouched.size() * sizeof(T));
  me.check(same_bytes(std::span<const T>(before), std::span<const T>(untouched)), "wrote `out` too early");
  me.check(in.intact() && out.intact(), "wrote outside the buffers");
}

}  // namespace hocket_test
