// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Measures how fast two processes of one host read each other's memory, in about two milliseconds. The proportions
/// differ between machines by factors that decide which algorithm is fastest: on some, lines that a peer has just
/// written cost ten times what others cost, on some as much.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/cpu.hpp>

#include <cstddef>

#include <sys/types.h>

HOCKET_BEGIN_NAMESPACE
namespace host {

/// Times in seconds.
struct measured_links {
  bool is_valid = false;      ///< false if other programs disturbed the measurement
  double line_latency = 0;    ///< until a peer sees a word that was written
  double read_per_byte = 0;   ///< for reading memory that both map
  double fresh_per_byte = 0;  ///< in addition, if the peer has just written it
  double fresh_bytes = 0;     ///< up to how many bytes
  double pass_per_byte = 0;   ///< for a write and a read in memory that the two write to in turns
  double copy_latency = 0;    ///< to begin a copy by the kernel; 0 if it does not copy
  double copy_per_byte = 0;   ///< of such a copy
};

/// One of two processes that measure together.
struct measuring_rank {
  std::byte* own = nullptr;      ///< `measured_bytes` zeroed bytes that both map, aligned to a cache line
  std::byte* partner = nullptr;  ///< those of the other one
  pid_t partner_process = 0;     ///< 0: the kernel does not copy
  bool is_first = false;         ///< exactly one of the two is
};

inline constexpr std::size_t most_read_bytes = std::size_t{1} << 18;
inline constexpr std::size_t measured_bytes = 4096 + most_read_bytes;

/// Collective over the two. Waits at most 20 ms for the other one, and later 2 ms in each step, and then stops measuring.
HOCKET_DECL measured_links measure_links(const measuring_rank& self);

}  // namespace host
HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/transport/host/impl/link_measurement.ipp>
#endif
