// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// `train_distributed` with processes of this host as ranks. Needs UCX: link `hocket::ucx`.
#pragma once

#include <hocket/bootstrap/launch.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/shared_pages.hpp>
#include <hocket/core/utf8.hpp>
#include <hocket/group/ucx.hpp>
#include <hocket/train/train.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
    const platform::shared_pages of_failure(sizeof(first_failure), lacks);
    if (lacks) raise(std::move(lacks));
    auto& first = *new (of_failure.data()) first_failure;
    launch::process_options how;
    how.timeout = longest;
    const auto results = launch::run_processes(
        on.count,
        [&](const bootstrap::world_description& world) {
          auto comm = ucx::connect(world);
          const auto remember = [&](const failure& cause) { first.set(cause, comm.rank()); };
          const report own = detail::train_as_rank(comm, model, source, options, device_name, remember);
          if (comm.rank() == 0) write(own, shared.data());
          return 0;
        },
        how);
    const std::string problem = launch::describe_failures(results);
    if (!problem.empty()) raise(have_thrown(results) && first ? first.get(on.count) : lost(problem));
    return read(shared.data(), elements, model.name(), on.count, device_name);
  }

 private:
  /// Why the first rank has failed that has thrown an exception, in memory that processes share. Later exceptions are
  /// those of ranks that have learned of it.
  class first_failure {
   public:
    void set(const failure& cause, int rank) noexcept {
      if (is_taken_.exchange(true)) return;
      const bool is_own = cause.code.category() == error_category();
      code_ = static_cast<errc>(is_own ? cause.code.value() : static_cast<int>(errc::system));
      rank_ = rank;
      size_ = std::min(cause.reason.size(), sizeof text_);
      std::memcpy(text_, cause.reason.data(), size_);
      is_set_ = true;
    }

    explicit operator bool() const noexcept { return is_set_; }
    failure get(int ranks) const {
      return make_failure(code_, hocket::detail::to_utf8(std::string_view(text_, size_)),
                          {.operation = "train_distributed", .rank = rank_, .ranks = ranks});
    }

   private:
    std::atomic<bool> is_taken_{false}, is_set_{false};
    errc code_{};
    int rank_ = 0;
    std::size_t size_ = 0;
    char text_[4000];
  };

  /// Returns whether all processes that have failed did so by an exception. If one has ended otherwise, exceptions are
  /// those of others that have lost it.
  static bool have_thrown(const std::vector<launch::process_result>& results) {
    return std::all_of(results.begin(), results.end(), [](const launch::process_result& each) {
      return each.succeeded() || (each.exit_code == launch::code_of_exception && !each.timed_out);
    });
  }

  static failure lost(const std::string& problem) {
    return make_failure(errc::peer_lost, problem, {.operation = "train_distributed"});
  }

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
