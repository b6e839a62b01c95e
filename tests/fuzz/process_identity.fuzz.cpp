// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Who the peers are, as each process tells all others through the store; and /proc/PID/stat, in which the name of a
/// process may be anything. The first byte says which, the rest is the blob or the file.
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
  require(arrived.has_value() == (blob.size() == sizeof *arrived), "an arrival has one size");
  if (!arrived) return;
  require(std::memcmp(&*arrived, blob.data(), blob.size()) == 0, "an arrival is taken as it is");
  const ucx::arrival here = ucx::own_arrival(arrived->staging_bytes);
  require(ucx::difference(here, 0, *arrived, 1).empty() ==
              (std::memcmp(here.build, arrived->build, sizeof here.build) == 0),
          "another build is found, and nothing else");
  ucx::process_identity other = arrived->who, *const peer = &other;
  if (of_this_host) {
    std::memcpy(peer->host, own().host, sizeof peer->host);
    peer->pid_namespace = own().pid_namespace;
  }
  const ucx::host_share share = ucx::share_of_host(own(), {own(), *peer});
  require(share.ranks == (own().same_host(*peer) ? 2 : 1), "ranks of this host are counted");
  require(share.cores >= 1 && share.cores <= CPU_SETSIZE, "there is a core, and no more than there can be");
  if (own().can_watch(*peer)) static_cast<void>(ucx::process_watch().ended(*peer));
}

/// With a right file around it, a name changes nothing.
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
