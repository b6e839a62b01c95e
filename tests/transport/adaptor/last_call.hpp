// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Compares the last call in the trace of a rank with the actions of its plan.
#pragma once

#include "support/trace.hpp"

#include <hocket/group/adapted.hpp>

#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

namespace hocket_test {

/// Describes how the trace of `run`, the last call on `comm`, in one lane and segment, differs from its plan, if so.
template <class Domain>
std::string difference_of_last_call(const hocket::communicator<hocket::adaptor::traced<Domain>>& comm,
                                    const traced_run& run) {
  const auto& state = hocket::detail::communicator_access::state(comm);
  const std::string operation = "\"operation\":" + std::to_string(state.last_sequence()) + ',';
  std::vector<std::string> found;
  std::istringstream lines(state.domain()->shared()->events());
  for (std::string line; std::getline(lines, line);) {
    if (line.find(operation) != std::string::npos) found.push_back(line);
  }
  const hocket::plan::shape shape = run.plan.shape(run.ranks);
  const auto blocks = static_cast<std::uint32_t>(run.plan.collective().blocks(run.ranks));
  const hocket::plan::layout layout(run.block_elements, blocks, shape.chunks_per_block);
  const unsigned length = run.plan.length(run.ranks, run.rank, 0);
  if (found.size() != length) {
    return std::to_string(found.size()) + " steps in the trace, the plan lists " + std::to_string(length);
  }
  for (unsigned i = 0; i < length; ++i) {
    const hocket::plan::action listed = run.plan.at(run.ranks, run.rank, 0, i);
    const std::size_t elements = listed.count == 0 ? 0 : layout.chunks(listed.chunk, listed.count).size;
    const std::string name = "{\"name\":\"" + hocket::plan::to_string(listed) + "\",";
    const std::string details = operation + "\"lane\":0,\"step\":" + std::to_string(i) +
                                ",\"bytes\":" + std::to_string(elements * run.element_size) + '}';
    if (found[i].starts_with(name) && found[i].find(details) != std::string::npos) continue;
    return "step " + std::to_string(i) + " is " + found[i] + ", the plan lists " + name + " ... " + details;
  }
  return {};
}

}  // namespace hocket_test
