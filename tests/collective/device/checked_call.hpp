// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// One call on memory of devices, against what the host's gives: in each kind of memory, in chunks that are small.
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

/// None, one, odd; one chunk of 8-byte elements to the byte, one more; many chunks.
#if defined(__SANITIZE_THREAD__)  // which makes elements slow, and looks at the order of accesses alone
inline const std::vector<std::size_t> sizes = {0, 1, 7, 127, 128, 129, 1000};
#else
inline const std::vector<std::size_t> sizes = {0, 1, 7, 127, 128, 129, 1000, 4097};
#endif

/// Which kind of memory, by turns; another one on each rank where `turn` is large enough.
inline memory_space kind_of(std::size_t turn, int rank) {
  constexpr memory_space kinds[] = {memory_space::device, memory_space::pinned, memory_space::managed};
  return kinds[(turn + (turn >= 3 ? static_cast<std::size_t>(rank) : 0)) % 3];
}

/// Calls `call` with a view of `what` as what it is.
template <class T, class Call>
void as_placed(std::span<T> what, memory_space where, Call call) {
  switch (where) {
    case memory_space::pinned: return call(hocket::cuda::pinned(what));
    case memory_space::managed: return call(hocket::cuda::managed(what));
    default: return call(hocket::cuda::device(what));
  }
}

/// One call on one rank: from `values`, by `call(in, out)` on placed buffers, what is expected there.
template <class T, class Call>
void check_call(thread_rank& me, const rank_device& mine, std::size_t turn, const std::vector<T>& values,
                const std::vector<T>& expected, Call call) {
  host_driver& driver = mine.driver();
  const memory_space from = kind_of(turn, me.rank()), to = kind_of(turn / 2 + turn, me.rank());
  placed_vector<T> in(driver, values.size(), from, turn % 3), out(driver, expected.size(), to, turn % 2);
  in.write(mine.stream(), values);
  std::vector<T> before;
  out.read(mine.stream(), before);  // what is written later must not be seen here
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
  me.check(in.intact() && out.intact(), "wrote beside the buffers");
}

}  // namespace hocket_test
