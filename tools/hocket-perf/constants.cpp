// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: ucx
#include "constants.hpp"

#include "machine.hpp"

#include <hocket/transport/concept.hpp>
#include <hocket/transport/link_costs_text.hpp>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
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
  const std::string unfinished = file + ".tmp";  // so that no job reads a part of it
  std::ofstream out(unfinished);
  out << "# Costs of links between " << comm.size() << " processes of one host, measured by hocket-perf " << version()
      << "\n# on " << now_utc() << ", " << processor_name() << ", Linux " << kernel_name()
      << ".\n# All ranks of a job must use equal files: HOCKET_CONSTANTS=" << file << "\n"
      << to_text(costs.current);
  out.close();
  if (!out || std::rename(unfinished.c_str(), file.c_str()) != 0) {
    const std::string reason = std::strerror(errno);
    std::remove(unfinished.c_str());
    throw std::runtime_error("--constants: cannot write '" + file + "': " + reason);
  }
  std::printf("costs of links, written to %s: %s\n", file.c_str(), describe(costs.current).c_str());
}

}  // namespace perf
