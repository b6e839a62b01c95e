// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// `train_distributed` with processes of this host as ranks. Needs UCX: link `hocket::ucx`.
#pragma once

#include <hocket/bootstrap/launch.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/shared_pages.hpp>
#include <hocket/core/text.hpp>
#include <hocket/group/ucx.hpp>
#include <hocket/train/train.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace train {

/// Ranks that are processes, copies of this one: call `train_distributed` before the program starts threads.
struct processes {
  std::chrono::nanoseconds longest = std::chrono::hours(24 * 365);  ///< after which processes are killed

  template <class Model, class Source>
  report run(const Model& model, const Source& source, nodes on, const train_options& options,
             const std::string& device_name) const {
    std::size_t elements = 0;
    for (const model_parameter& each : model.parameters()) elements += each.elements;
    failure lacks;
    const platform::shared_pages shared(sizeof(header) + elements * sizeof(float), lacks);
    if (lacks) raise(std::move(lacks));
    launch::process_options how;
    how.timeout = longest;
    const auto results = launch::run_processes(
        on.count,
        [&](const bootstrap::world_description& world) {
          auto comm = ucx::connect(world);
          const report own = detail::train_as_rank(comm, model, source, options, device_name, [] {});
          if (comm.rank() == 0) write(own, shared.data());
          return 0;
        },
        how);
    const std::string problem = launch::describe_failures(results);
    if (!problem.empty()) raise(errc::peer_lost, problem, {.operation = "train_distributed"});
    return read(shared.data(), elements, model.name(), on.count, device_name);
  }

 private:
  /// What rank 0's process returns, before the parameters.
  struct header {
    std::uint64_t steps, samples;
    double first_loss, loss, seconds, samples_per_second, communication_seconds;
  };

  static void write(const report& from, std::byte* to) {
    const header all{from.steps,
                     from.samples,
                     from.first_loss,
                     from.loss,
                     from.seconds,
                     from.samples_per_second,
                     from.communication_seconds};
    std::memcpy(to, &all, sizeof all);
    std::memcpy(to + sizeof all, from.parameters.data(), from.parameters.size() * sizeof(float));
  }

  static report read(const std::byte* from, std::size_t elements, const std::string& model, int count,
                     const std::string& device_name) {
    header all{};
    std::memcpy(&all, from, sizeof all);
    report result;
    result.model_name = model;
    result.nodes_used = count;
    result.device = device_name;
    result.status = detail::status_of(device_name);
    result.steps = all.steps;
    result.samples = all.samples;
    result.first_loss = all.first_loss;
    result.loss = all.loss;
    result.seconds = all.seconds;
    result.samples_per_second = all.samples_per_second;
    result.communication_seconds = all.communication_seconds;
    result.parameters.resize(elements);
    std::memcpy(result.parameters.data(), from + sizeof all, elements * sizeof(float));
    return result;
  }
};

}  // namespace train
HOCKET_END_NAMESPACE
