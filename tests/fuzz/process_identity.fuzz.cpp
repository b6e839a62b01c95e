// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The identity that each process publishes for its peers through the store; and /proc/PID/stat, in which a process may
/// have any name. The first byte selects one of them, the rest is the blob or the file.
#include "fuzz.hpp"

#include <hocket/transport/ucx/arrival.hpp>
#include <hocket/transport/ucx/process_identity.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace {

using fuzz::require;
namespace ucx = hocket::ucx;

const ucx::process_identity& own() {
  static const ucx::process_identity instance = ucx::own_identity();
  return instance;
}

void read_identity(std::span<const std::byte> blob, bool of_this_host) {
  const std::optional<ucx::arrival> arrived = ucx::arrival_from(blob);
  if (!arrived) return;
  require(blob.size() >= sizeof(ucx::arrival_values), "an arrival has at least the bytes of its values");
  const ucx::arrival_values& values = *arrived;
  require(std::memcmp(&values, blob.data(), sizeof values) == 0, "an arrival has the bytes of the blob");
  const auto encoded = ucx::encode_arrival(*arrived);
  const auto again = ucx::arrival_from(encoded);
  require(again && ucx::encode_arrival(*again) == encoded, "an arrival is read as it was encoded");
  const ucx::arrival here = ucx::own_arrival(arrived->staging_bytes);
  require(ucx::difference(here, 0, *arrived, 1).empty() ==
              (std::memcmp(here.build, arrived->build, sizeof here.build) == 0),
          "only another build is reported as a difference");
  ucx::process_identity other = arrived->who, *const peer = &other;
  if (of_this_host) {
    std::memcpy(peer->host, own().host, sizeof peer->host);
    peer->pid_namespace = own().pid_namespace;
    peer->time_namespace = own().time_namespace;
  }
  const ucx::host_share share = ucx::share_of_host(own(), {own(), *peer});
  require(share.ranks == (own().same_host(*peer) ? 2 : 1), "ranks of this host are counted");
  require(share.cores >= 1 && share.cores <= CPU_SETSIZE, "the number of cores is between 1 and CPU_SETSIZE");
  if (!own().can_watch(*peer)) return;
  static_cast<void>(ucx::process_watch().ended(*peer));
  peer->time_namespace ^= 1;
  require(!own().can_watch(*peer), "start times in another time namespace are not comparable");
}

/// Reads `name` as a whole file, and as the name of a process in a valid file, which must not change the start time.
void read_start_time(const std::string& name) {
  static_cast<void>(hocket::bootstrap::detail::start_time_in(name));
  std::string rest;
  for (int field = 3; field <= 30; ++field) rest += ' ' + std::to_string(field * 1000);
  require(hocket::bootstrap::detail::start_time_in("1 (" + name + ")" + rest) == 22000, "the start time is field 22");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input in(data, size);
  const unsigned choice = in.byte();
  if (choice == 's') {
    read_start_time(std::string(fuzz::text_of(in.rest())));
  } else {
    read_identity(in.rest(), choice == 'i');
  }
  return 0;
}
