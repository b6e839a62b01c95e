// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The description of a buffer on a rank's device by which other ranks can reach it.
///
/// An IPC handle refers to the whole allocation that contains a buffer, wherever the buffer begins; so the offset must
/// be sent with it. And an address alone is not unique over time: memory that is freed and allocated again at the same
/// address differs, and only the driver's number of the allocation, which is never reused, distinguishes the two.
#pragma once

#include <hocket/bootstrap/blob.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/transport/cuda_ipc/driver_status.hpp>
#include <hocket/transport/cuda_ipc/driver_types.hpp>
#include <hocket/transport/cuda_ipc/process_mark.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {

struct memory_handle {
  ipc_memory_handle allocation;
  uuid device;                   ///< device of the memory
  process_mark process;          ///< process that owns the memory
  std::uint64_t generation = 0;  ///< the driver's number of the allocation, unique in a process
  std::uint64_t base = 0;        ///< address of the allocation in its process
  std::uint64_t size = 0;        ///< size of the allocation
  std::uint64_t offset = 0;      ///< offset of the buffer in the allocation
  std::uint64_t length = 0;      ///< size of the buffer

  friend bool operator==(const memory_handle&, const memory_handle&) = default;

  /// True if the buffer lies within the allocation, and the allocation within the address space.
  bool sound() const noexcept {
    return size != 0 && base != 0 && size <= std::numeric_limits<std::uint64_t>::max() - base && offset <= size &&
           length <= size - offset;
  }
};

/// Size of an encoded handle.
inline constexpr std::size_t encoded_handle_bytes = 1 + 64 + 16 + 3 * 8 + 4 + 5 * 8;

namespace detail {

inline constexpr std::uint8_t handle_format = 1;

template <std::size_t Size>
void read_into(bootstrap::detail::blob_reader& from, std::array<unsigned char, Size>& to) noexcept {
  std::ranges::transform(from.bytes(Size), to.begin(),
                         [](std::byte each) { return std::to_integer<unsigned char>(each); });
}

}  // namespace detail

/// Encodes a handle as bytes, the same on all machines.
inline std::vector<std::byte> encode(const memory_handle& what) {
  namespace blob = bootstrap::detail;
  std::vector<std::byte> out;
  out.reserve(encoded_handle_bytes);
  blob::append_integer(out, detail::handle_format);
  blob::append_bytes(out, std::as_bytes(std::span(what.allocation.bytes)));
  blob::append_bytes(out, std::as_bytes(std::span(what.device.bytes)));
  blob::append_integer(out, what.process.host);
  blob::append_integer(out, what.process.namespaces);
  blob::append_integer(out, what.process.start_time);
  blob::append_integer(out, what.process.pid);
  for (const std::uint64_t each : {what.generation, what.base, what.size, what.offset, what.length}) {
    blob::append_integer(out, each);
  }
  return out;
}

/// Decodes a peer's handle. Returns nothing if the bytes are not a handle, or the buffer exceeds its allocation.
inline std::optional<memory_handle> decode(std::span<const std::byte> bytes) noexcept {
  bootstrap::detail::blob_reader from(bytes);
  if (bytes.size() != encoded_handle_bytes || from.integer<std::uint8_t>() != detail::handle_format)
    return std::nullopt;
  memory_handle result;
  detail::read_into(from, result.allocation.bytes);
  detail::read_into(from, result.device.bytes);
  result.process.host = from.integer<std::uint64_t>();
  result.process.namespaces = from.integer<std::uint64_t>();
  result.process.start_time = from.integer<std::uint64_t>();
  result.process.pid = from.integer<std::int32_t>();
  for (std::uint64_t* const each : {&result.generation, &result.base, &result.size, &result.offset, &result.length}) {
    *each = from.integer<std::uint64_t>();
  }
  if (!from.ok() || !result.sound()) return std::nullopt;
  return result;
}

namespace detail {

/// Queries an attribute of a pointer, whatever the width in which the driver writes it.
template <class Driver>
status attribute_of(Driver& through, pointer_attribute which, address data, std::uint64_t& result) {
  result = 0;
  return through.pointer_get_attribute(&result, which, data);
}

inline failure without_handle(std::string_view what) {
  return make_failure(errc::unreachable, std::string(what) +
                                             ": peers can't open it; they can open memory of cudaMalloc or "
                                             "cuMemAlloc");
}

/// Checks that peers may open memory at `data`.
template <class Driver>
failure openable(Driver& through, address data) {
  std::uint64_t type = 0, managed = 0, capable = 0;
  status returned = attribute_of(through, pointer_attribute::memory_type, data, type);
  if (returned == status::invalid_value)
    return without_handle("the driver does not know this memory: it is the host's");
  if (returned == status::success) returned = attribute_of(through, pointer_attribute::is_managed, data, managed);
  if (returned == status::success) returned = attribute_of(through, pointer_attribute::ipc_capable, data, capable);
  if (returned != status::success)
    return status_failure(through, "asking the driver for the kind of the buffer's memory", returned);
  if (managed != 0) return without_handle("this is managed memory");
  if (type != static_cast<std::uint64_t>(memory_type::device)) return without_handle("this memory is not on a device");
  if (capable == 0) {
    return without_handle(
        "this memory was mapped manually or comes from a pool (PyTorch: expandable_segments, "
        "cudaMallocAsync)");
  }
  return {};
}

/// Queries the uuid of the device that `data` is on.
template <class Driver>
failure device_of(Driver& through, address data, uuid& result) {
  std::uint64_t ordinal = 0;
  device_number number = 0;
  status returned = attribute_of(through, pointer_attribute::device_ordinal, data, ordinal);
  if (returned == status::success) returned = through.device_get(&number, static_cast<int>(ordinal));
  if (returned == status::success) returned = through.device_get_uuid(&result, number);
  return returned == status::success
             ? failure()
             : status_failure(through, "asking the driver for the device of the buffer", returned);
}

}  // namespace detail

/// Creates a handle of `bytes` from `data` on, for peers. Local; some microseconds. `unreachable` if no peer can open
/// that memory: it must then be staged.
template <class Driver>
failure describe(Driver& through, address data, std::uint64_t bytes, const process_mark& own, memory_handle& result) {
  if (failure found = detail::openable(through, data)) return found;
  address base = 0;
  std::size_t size = 0;
  std::uint64_t generation = 0;
  status returned = through.mem_get_address_range(&base, &size, data);
  if (returned == status::success)
    returned = detail::attribute_of(through, pointer_attribute::buffer_id, data, generation);
  if (returned != status::success)
    return status_failure(through, "asking the driver for the allocation of the buffer", returned);
  memory_handle made{{}, {}, own, generation, base, size, data - base, bytes};
  if (data < base || !made.sound()) {
    return make_failure(errc::invalid_argument,
                        hocket::detail::concat({"a buffer of ", bytes, " bytes at offset ", data - base,
                                                " exceeds its allocation of ", size, " bytes"}));
  }
  if (failure found = detail::device_of(through, data, made.device)) return found;
  returned = through.ipc_get_mem_handle(&made.allocation, base);
  if (returned != status::success)
    return status_failure(through, "creating a handle with which peers can open the buffer", returned);
  result = made;
  return {};
}

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
