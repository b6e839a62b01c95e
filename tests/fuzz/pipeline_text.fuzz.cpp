// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The text form of pipeline schedules, written by other programs or by users.
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
    require(cause.code() == hocket::errc::invalid_argument, "text that is not a schedule causes invalid_argument");
    require(cause.reason().find("line ") == 0, "an error names the line");
    return 0;
  }
  require(plan->ranks() == static_cast<int>(plan->rows.size()), "each rank has a row");
  require(pipeline::parse(pipeline::print(*plan)) == *plan, "a printed schedule is parsed to the same schedule");
  const pipeline::schedule_proof found = pipeline::prove(*plan);
  require(found.ok == (found.what == pipeline::schedule_violation::none), "a failure has a reason");
  require(!found.message().empty(), "a proof has a message");
  return 0;
}
