// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Definitions of <hocket/transport/ucx/agreed_costs.hpp>.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/core/platform/input_file.hpp>
#include <hocket/core/text.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/cost_members.hpp>
#include <hocket/transport/host/link_measurement.hpp>
#include <hocket/transport/link_costs.hpp>
#include <hocket/transport/link_costs_text.hpp>
#include <hocket/transport/ucx/agreed_costs.hpp>
#include <hocket/transport/ucx/connections.hpp>
#include <hocket/transport/ucx/endpoint_group.hpp>
#include <hocket/transport/ucx/shared_memory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace ucx {
namespace detail {

inline constexpr const char* constants_variable = "HOCKET_CONSTANTS";
inline constexpr std::size_t most_file_bytes = std::size_t{1} << 20;

/// What a rank contributes to the agreement. The reason why it can't take part follows it in the message.
struct cost_proposal {
  transport::cost_origin origin = transport::cost_origin::built_in;
  bool is_measured = false;  ///< whether `costs` are from an undisturbed measurement
  transport::link_costs costs;
};

/// Constants of a virtual Xeon with two cores; only the proportions matter. `eager_bytes`: with copies by the kernel, the
/// length of messages that wait for no receiver; else 0.
inline transport::link_costs built_in_costs(std::size_t eager_bytes) noexcept {
  transport::link_costs costs{.message_latency = 4e-7,
                              .message_per_byte = 2e-10,
                              .flag_latency = 4.6e-7,
                              .load_per_byte = 2.5e-11,
                              .reduce_per_byte = 2.5e-11,
                              .load_latency = 0,
                              .fresh_load_per_byte = 2e-10,
                              .fresh_bytes = 128 * 1024};
  if (eager_bytes == 0) return costs;
  costs.load_latency = 5e-7;
  costs.load_per_byte = 7e-11;
  costs.eager_bytes = eager_bytes;
  return costs;
}

/// Returns the built-in costs with what has been measured. The rest of a message's latency is the library's own time.
inline transport::link_costs with_measured(transport::link_costs costs, const host::measured_links& found) noexcept {
  constexpr double built_in_line = 1.5e-7;
  const double further = found.line_latency - built_in_line;
  costs.message_latency = std::max(found.line_latency, costs.message_latency + further);
  costs.flag_latency = std::max(found.line_latency, costs.flag_latency + further);
  costs.message_per_byte = found.pass_per_byte;
  costs.fresh_load_per_byte = found.fresh_per_byte;
  costs.fresh_bytes = found.fresh_bytes;
  const bool copies = found.copy_per_byte > 0;
  costs.load_latency = copies ? found.copy_latency : 0;
  costs.load_per_byte = copies ? found.copy_per_byte : found.read_per_byte;
  return costs;
}

class cost_agreement {
 public:
  cost_agreement(const std::shared_ptr<connections>& links, const endpoint_group& endpoints,
                 const transport::open_parameters& how)
      : links_(links), endpoints_(endpoints), how_(how),
        built_in_(built_in_costs(endpoints.copies_any_memory() ? endpoints.eager_bytes() : 0)) {}

  transport::world_costs run() {
    std::string problem;
    cost_proposal own = propose(problem);
    exchange(own, problem);
    if (own.origin == transport::cost_origin::file) return {own.costs, own.costs, own.origin};
    // Whether the kernel copies is a finding of start-up, too.
    const transport::link_costs repeatable = built_in_costs(0);
    const transport::world_costs built_in{built_in_, repeatable, transport::cost_origin::built_in};
    if (own.origin == transport::cost_origin::built_in) return built_in;
    // With fewer cores than ranks, the measurement would show when the ranks take turns.
    if (endpoints_.size() == 1 || endpoints_.ranks_per_core() > 1) return built_in;
    own.is_measured = measure(own.costs);
    const std::vector<cost_proposal> all = exchange(own, {});
    const bool is_usable = std::all_of(all.begin(), all.end(), [](const auto& each) { return each.is_measured; });
    return is_usable ? transport::world_costs{median_of(all), repeatable, own.origin} : built_in;
  }

 private:
  cost_proposal propose(std::string& problem) const {
    cost_proposal own{.costs = built_in_};
    const char* const value = std::getenv(constants_variable);
    const std::string_view wanted = value == nullptr ? std::string_view() : std::string_view(value);
    if (wanted == "built_in") return own;
    if (wanted.empty() || wanted == "measured") {
      own.origin = transport::cost_origin::measured;
      return own;
    }
    own.origin = transport::cost_origin::file;
    std::string text;
    problem = platform::read_whole(value, platform::file_kinds::regular, most_file_bytes, text);
    if (problem.empty()) {
      problem = transport::read_costs(text, own.costs);
    } else {
      problem +=
          "; the variable must be measured, built_in or the name of a file, which `hocket-perf --constants FILE` "
          "writes";
    }
    if (!problem.empty()) problem = hocket::detail::concat({constants_variable, "=", wanted, ": ", problem});
    return own;
  }

  /// Returns whether nothing has disturbed this rank. The last of an odd number of ranks has no partner to measure with.
  bool measure(transport::link_costs& costs) const {
    const int rank = endpoints_.rank(), partner = rank ^ 1;
    const shared_memory memory(links_, how_, host::measured_bytes, false);
    if (!memory.reachable() || partner >= endpoints_.size()) return memory.reachable();
    const auto process = endpoints_.copies_any_memory() ? links_->identity_of((*how_.members)[index(partner)]).pid : 0;
    const platform::on_one_core stays(rank);  // as it would while calls of all ranks are in progress
    const host::measured_links found =
        host::measure_links({memory.piece_of(rank), memory.piece_of(partner), process, rank < partner});
    if (found.is_valid) costs = with_measured(built_in_, found);
    return found.is_valid;
  }

  /// Returns the proposals of all ranks, which have the same origin and, if they are from a file, the same costs.
  std::vector<cost_proposal> exchange(const cost_proposal& own, const std::string& problem) const {
    std::vector<std::byte> message(sizeof own + problem.size());
    std::memcpy(message.data(), &own, sizeof own);
    std::copy_n(reinterpret_cast<const std::byte*>(problem.data()), problem.size(), message.data() + sizeof own);
    std::vector<cost_proposal> all;
    const auto answers = how_.exchange(message);
    if (!problem.empty()) raise(errc::bad_environment, problem);
    for (const auto& each : answers) {
      const int rank = static_cast<int>(all.size());
      cost_proposal theirs;
      if (each.size() < sizeof theirs) raise(errc::mismatch, differs(rank), {.peer = rank});
      std::memcpy(&theirs, each.data(), sizeof theirs);
      const std::string reason(reinterpret_cast<const char*>(each.data()) + sizeof theirs, each.size() - sizeof theirs);
      if (!reason.empty()) {
        raise(errc::mismatch, hocket::detail::concat({"rank ", rank, " reports: ", reason}), {.peer = rank});
      }
      const bool is_equal =
          own.origin == theirs.origin && (own.origin != transport::cost_origin::file || own.costs == theirs.costs);
      if (!is_equal) raise(errc::mismatch, differs(rank), {.peer = rank});
      all.push_back(theirs);
    }
    return all;
  }

  std::string differs(int rank) const {
    return hocket::detail::concat({"rank ", rank, " has other costs of links than rank ", endpoints_.rank(), ": ",
                                   constants_variable, ", and the file that it names, must be equal on all ranks"});
  }

  /// Each cost is the median over the ranks that have measured it.
  transport::link_costs median_of(const std::vector<cost_proposal>& all) const {
    const std::size_t measured = all.size() - all.size() % 2;
    transport::link_costs result = all.front().costs;
    for (const transport::detail::cost_member& member : transport::detail::cost_members) {
      std::vector<double> values;
      for (std::size_t i = 0; i < measured; ++i) values.push_back(all[i].costs.*member.value);
      std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(measured / 2), values.end());
      result.*member.value = values[measured / 2];
    }
    return result;
  }

  static std::size_t index(int rank) noexcept { return static_cast<std::size_t>(rank); }

  const std::shared_ptr<connections>& links_;
  const endpoint_group& endpoints_;
  const transport::open_parameters& how_;
  const transport::link_costs built_in_;
};

}  // namespace detail

HOCKET_DECL transport::world_costs agree_on_costs(const std::shared_ptr<connections>& links,
                                                  const endpoint_group& endpoints,
                                                  const transport::open_parameters& how) {
  return detail::cost_agreement(links, endpoints, how).run();
}

}  // namespace ucx
HOCKET_END_NAMESPACE
