// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Environment variables, set by users and launchers. The input has lines of NAME=value.
#include "fuzz.hpp"

#include <hocket/bootstrap/environment.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace {

using fuzz::require;

/// A value ends at a zero byte, as in a real environment.
std::map<std::string, std::string, std::less<>> variables_in(std::string_view text) {
  std::map<std::string, std::string, std::less<>> variables;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    variables[std::string(line.substr(0, equals))] = std::string(line.substr(equals + 1)).c_str();
  }
  return variables;
}

void check(const hocket::bootstrap::world_description& world) {
  require(world.ranks >= 1 && world.rank >= 0 && world.rank < world.ranks, "0 <= rank < ranks");
  require(world.local_rank >= -1 && world.local_ranks >= 0, "local ranks are valid or marked as unknown");
  require(world.local_ranks == 0 || world.local_rank < world.local_ranks, "local_rank < local_ranks");
  require(world.timeout.count() > 0, "the timeout is positive");
  require(world.directory.empty() || (world.address.empty() && world.directory.front() == '/'),
          "the path of a directory is absolute, and there is no second store");
  require(world.address.empty() == (world.port == 0), "an address and a port are set together");
  require(world.ranks == 1 || !world.address.empty() || !world.directory.empty(), "several ranks have a store");
  require(world.listener == -1 || (world.listener >= 0 && world.rank == 0), "only rank 0 gets a listening socket");
  require(!world.source.empty(), "the source of the description is set");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input in(data, size);
  const auto variables = variables_in(fuzz::text_of(in.rest()));
  const auto look_up = [&](const char* name) -> const char* {
    const auto found = variables.find(std::string_view(name));
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  try {
    check(hocket::bootstrap::read_environment(look_up));
  } catch (const hocket::error& cause) {
    require(cause.code() == hocket::errc::bad_environment, "an invalid variable causes bad_environment");
    require(!cause.reason().empty(), "an error has a reason");
  }
  return 0;
}
