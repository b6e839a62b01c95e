// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: ucx
#include "constants.hpp"

#include "machine.hpp"
#include "output_file.hpp"

#include <hocket/transport/concept.hpp>
#include <hocket/transport/link_costs_text.hpp>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace perf {

void measure_costs_at_start_up() { ::setenv("HOCKET_CONSTANTS", "measured", 1); }

void write_costs(const hocket::ucx::communicator& comm, const std::string& file) {
  if (comm.rank() != 0) return;
  const auto& state = hocket::detail::communicator_access::state(comm);
  const hocket::transport::world_costs costs = hocket::transport::agreed_costs(*state.domain());
  if (costs.origin != hocket::transport::cost_origin::measured) {
    throw std::runtime_error(
        "--constants: the costs could not be measured, so '" + file +
        "' was not written: that needs at least 2 ranks, all on one host with shared memory, a core for each, and no "
        "other program on these cores");
  }
  std::ostringstream text;
  text << "# Costs of links between " << comm.size() << " processes of one host, measured by hocket-perf " << version()
       << "\n# on " << now_utc() << ", " << processor_name() << ", Linux " << kernel_name()
       << ".\n# All ranks of a job must use equal files: HOCKET_CONSTANTS=" << file << "\n"
       << to_text(costs.current);
  write_file(file, text.str(), "--constants");
  std::printf("costs of links, written to %s: %s\n", file.c_str(), describe(costs.current).c_str());
}

}  // namespace perf
