// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The text form of pipeline schedules: written by other programs, and by hand.
#include "fuzz.hpp"

#include <hocket/schedule/prove.hpp>
#include <hocket/schedule/text.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace pipeline = hocket::plan::pipeline;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input in(data, size);
  std::optional<pipeline::schedule> plan;
  try {
    plan.emplace(pipeline::parse(fuzz::text_of(in.rest())));
  } catch (const hocket::error& cause) {
    require(cause.code() == hocket::errc::invalid_argument, "text that is no schedule is an invalid argument");
    require(cause.reason().find("line ") == 0, "an error says where");
    return 0;
  }
  require(plan->ranks() == static_cast<int>(plan->rows.size()), "there is a row for each rank");
  require(pipeline::parse(pipeline::print(*plan)) == *plan, "a schedule is what its text says");
  const pipeline::schedule_proof found = pipeline::prove(*plan);
  require(found.ok == (found.what == pipeline::schedule_violation::none), "a proof fails for a reason");
  require(!found.message().empty(), "a proof says something");
  return 0;
}
