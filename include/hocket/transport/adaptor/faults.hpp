// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The list of faults to inject, each with its rank and step. It must be equal on all ranks; see `draw_faults`.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace adaptor {

/// Kinds of faults.
enum class fault_kind : std::uint8_t {
  delay,      ///< the rank's step is delayed by `time`: it sends or sees a message or flag later
  drop,       ///< the next message or flag of the rank does not arrive
  duplicate,  ///< the rank's next message is sent twice
  truncate,   ///< the end of the rank's next message is missing
  corrupt,    ///< one bit of the rank's next message is flipped
  cut,        ///< nothing arrives any more between the rank and `peer`, in either direction
  stop,       ///< the rank does nothing for `time`, and does not answer control messages either
  kill        ///< the rank does nothing any more; its current call fails with `aborted`
};
inline constexpr int fault_kinds = 8;  ///< number of kinds

/// Happens when rank `rank` reaches step `step`. A step is an action of a plan or a message of `send`; a rank counts
/// its steps from 0 over all its calls. Ranks are those of the world, not of a communicator.
struct fault {
  fault_kind what = fault_kind::delay;  ///< the kind
  int rank = 0;
  std::uint64_t step = 0;                  ///< number of the rank's step, from 0
  int peer = 0;                            ///< for `cut`, which also happens at this step of `peer`
  std::chrono::nanoseconds time{100'000};  ///< for `delay` and `stop`

  friend constexpr bool operator==(const fault&, const fault&) = default;
};

constexpr const char* to_string(fault_kind what) noexcept {
  constexpr const char* names[fault_kinds] = {"delay",   "drop", "duplicate", "truncate",
                                              "corrupt", "cut",  "stop",      "kill"};
  return names[static_cast<int>(what)];
}

/// Returns a text such as "cut rank 2 from rank 0 at step 17".
inline std::string to_string(const fault& each) {
  std::string text = hocket::detail::concat({to_string(each.what), " rank ", each.rank});
  if (each.what == fault_kind::cut) hocket::detail::append(text, {" from rank ", each.peer});
  hocket::detail::append(text, {" at step ", each.step});
  if (each.what == fault_kind::delay || each.what == fault_kind::stop) {
    hocket::detail::append(text,
                           {" for ", std::chrono::duration_cast<std::chrono::microseconds>(each.time).count(), " us"});
  }
  return text;
}

using faults = std::vector<fault>;  ///< faults of one run

inline std::string to_string(const faults& all) {
  std::string text;
  for (const fault& each : all) text += (text.empty() ? "" : ", ") + to_string(each);
  return text.empty() ? "no fault" : text;
}

/// Draws one to three faults of `kinds` in the first `steps` steps of `ranks` ranks; each lasts at most `longest`.
/// Equal arguments give equal faults on all machines.
inline faults draw_faults(std::uint64_t seed, int ranks, std::uint64_t steps, const std::vector<fault_kind>& kinds,
                          std::chrono::nanoseconds longest = std::chrono::milliseconds(2)) {
  if (ranks < 1 || steps == 0 || kinds.empty()) return {};
  std::mt19937_64 random(seed);  // the standard fixes the values of engines, but not those of distributions
  const auto below = [&](std::uint64_t bound) { return random() % bound; };
  const std::int64_t most = std::max<std::int64_t>(longest.count(), 1);
  faults all(1 + below(3));
  for (fault& each : all) {
    each.what = kinds[below(kinds.size())];
    each.rank = static_cast<int>(below(static_cast<std::uint64_t>(ranks)));
    each.step = below(steps);
    each.peer =
        (each.rank + 1 + static_cast<int>(below(static_cast<std::uint64_t>(ranks > 1 ? ranks - 1 : 1)))) % ranks;
    each.time = std::chrono::nanoseconds(static_cast<std::int64_t>(1 + below(static_cast<std::uint64_t>(most))));
  }
  return all;
}

}  // namespace adaptor
HOCKET_END_NAMESPACE
