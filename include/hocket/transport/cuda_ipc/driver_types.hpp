// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Types and constants of CUDA's driver. Programs must compile without the toolkit, so the few declarations that hocket
/// needs are repeated here, under hocket's names; where CUDA's headers are available, a test compares them.
#pragma once

#include <hocket/core/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {

/// The result of each driver function. Only codes that hocket handles are named.
enum class status : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  deinitialized = 4,
  stub_library = 34,
  call_requires_newer_driver = 36,
  device_unavailable = 46,
  no_device = 100,
  invalid_device = 101,
  device_not_licensed = 102,
  invalid_context = 201,
  map_failed = 205,
  peer_access_unsupported = 217,
  operating_system = 304,
  invalid_handle = 400,
  not_found = 500,
  not_ready = 600,
  illegal_address = 700,
  peer_access_already_enabled = 704,
  peer_access_not_enabled = 705,
  too_many_peers = 711,
  not_permitted = 800,
  not_supported = 801,
  system_not_ready = 802,
  system_driver_mismatch = 803,
  compat_not_supported_on_device = 804,
  mps_connection_failed = 805,
  mps_rpc_failure = 806,
  mps_server_not_ready = 807,
  mps_max_clients_reached = 808,
  mps_max_connections_reached = 809,
  unknown = 999
};

using device_number = int;
using address = unsigned long long;  ///< of device memory or pinned memory
using context_handle = struct opaque_context*;
using stream_handle = struct opaque_stream*;
using event_handle = struct opaque_event*;

/// True for null and CU_STREAM_LEGACY, which other streams wait for. False for the per-thread default stream.
inline bool is_default_stream(stream_handle which) noexcept { return reinterpret_cast<std::uintptr_t>(which) <= 1; }

struct uuid {
  std::array<unsigned char, 16> bytes{};
  friend bool operator==(const uuid&, const uuid&) = default;
};

/// Refers to a whole allocation, even if it was obtained for an address inside.
struct ipc_memory_handle {
  std::array<unsigned char, 64> bytes{};
  friend bool operator==(const ipc_memory_handle&, const ipc_memory_handle&) = default;
};

enum class device_attribute : int { unified_addressing = 41, flush_remote_writes = 98 };

enum class pointer_attribute : int {
  context = 1,
  memory_type = 2,
  buffer_id = 7,  ///< of an allocation: never reused within a process
  is_managed = 8,
  device_ordinal = 9,
  ipc_capable = 10
};

enum class memory_type : unsigned { unknown = 0, host = 1, device = 2, array = 3, unified = 4 };

/// One operation on a word, in a batch for a stream.
struct word_operation {
  unsigned what = 0;  ///< `word_wait_32` or `word_write_32`
  address at = 0;
  std::uint64_t value = 0;  ///< for words of 4 bytes: in the low bytes
  unsigned flags = 0;
  address for_the_driver = 0;
  std::uint64_t unused = 0;
};
inline constexpr unsigned word_wait_32 = 1;
inline constexpr unsigned word_write_32 = 2;

/// Whether work on a stream is executed, or captured into a graph.
enum class capture_status : int { none = 0, active = 1, invalidated = 2 };

/// Restricts what a thread may do while a stream is captured by any thread, or by the same thread.
enum class capture_mode : int { of_all = 0, of_thread = 1, relaxed = 2 };

/// When kernels are loaded onto a device: all at start-up, or each before its first launch.
enum class loading_mode : int { eager = 1, lazy = 2 };

inline constexpr unsigned open_with_peer_access = 1;  ///< required to open a handle
inline constexpr unsigned stream_non_blocking = 1;
inline constexpr unsigned event_without_timing = 2;
inline constexpr unsigned event_between_processes = 4;
inline constexpr unsigned host_memory_portable = 1;
inline constexpr unsigned managed_memory_global = 1;  ///< any stream of any device may use it
inline constexpr unsigned wait_until_at_least = 0;    ///< cyclic: compares the difference
inline constexpr unsigned wait_until_equal = 1;
inline constexpr unsigned wait_then_flush = 1U << 30;

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
