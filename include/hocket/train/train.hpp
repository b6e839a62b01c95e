// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Trains a model on several ranks, for programs that have no training loop yet: samples are shared out, gradients
/// summed, parameters updated, metrics logged and checkpoints saved.
///
/// @code
/// hocket::train::mlp model("NeuralNet_Model", {128, 64, 10}, hocket::train::loss_kind::cross_entropy);
/// hocket::train::number_samples data(features, 128, targets, 10);
/// const auto report = hocket::train::train_distributed(model, data, hocket::train::nodes{8}, {.epochs = 3});
/// @endcode
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/float_bits.hpp>
#include <hocket/core/platform/nvml.hpp>
#include <hocket/core/text.hpp>
#include <hocket/data/input.hpp>
#include <hocket/group/local.hpp>
#include <hocket/group/sim.hpp>
#include <hocket/train/model.hpp>
#include <hocket/train/report.hpp>
#include <hocket/train/worker.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace train {
namespace detail {

/// Samples that can be numbered and made into batches.
template <class Source>
concept sized_source = data::source<Source> && requires(const Source& of) {
  { of.size() } -> std::convertible_to<std::uint64_t>;
};

/// Whether a model states that it computes on a GPU, by `static constexpr bool computes_on_gpu = true`.
template <class Model>
constexpr bool computes_on_gpu() noexcept {
  if constexpr (requires { Model::computes_on_gpu; }) return Model::computes_on_gpu;
  return false;
}

[[noreturn]] inline void refuse(std::string reason) {
  raise(errc::invalid_argument, std::move(reason), {.operation = "train_distributed"});
}

/// Returns "cpu" or "gpu". Raises `invalid_argument` if a GPU is asked for and can't be used.
template <class Model>
std::string device_for(device wanted, const std::string& model) {
  if (wanted == device::cpu) return "cpu";
  const auto driver = platform::nvml::load();
  const bool has_gpu = driver && driver->gpus() > 0;
  if (has_gpu && computes_on_gpu<Model>()) return "gpu";
  if (wanted == device::any) return "cpu";
  refuse(has_gpu
             ? hocket::detail::concat(
                   {"device::gpu: model '", model, "' computes on the CPU: use device::any or device::cpu"})
             : std::string(
                   "device::gpu: this host has no GPU of NVIDIA, or no driver for it: use device::any or device::cpu"));
}

/// Raises `invalid_argument` if there is nothing to train with.
template <class Model, class Source>
void check(const Model& model, const Source& source, const nodes& on, const train_options& options) {
  using hocket::detail::concat;
  if (on.count < 1) refuse(concat({"nodes{", on.count, "}: at least one node is needed"}));
  if (source.size() == 0) refuse("the data has no samples");
  if (options.batch == 0) refuse("a batch must have at least one sample");
  if (options.epochs == 0) refuse("at least one epoch is needed");
  if (options.checkpoint_every == 0) refuse("checkpoint_every must be at least 1");
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();  // metrics count in this type
  if (options.batch > most) refuse(concat({"a batch of ", options.batch, " samples exceeds 2^63 - 1"}));
  const std::uint64_t steps = steps_of_epoch(source.size(), options.batch);
  if (options.epochs > most / steps)
    refuse(concat({options.epochs, " epochs of ", steps, " steps exceed 2^63 - 1 steps: use fewer epochs"}));
  if (!(options.learning_rate > 0 && hocket::detail::is_finite(options.learning_rate)))
    refuse("the learning rate must be a number above 0, such as 0.001");
  if (!(options.weight_decay >= 0 && hocket::detail::is_finite(options.weight_decay)))
    refuse("the weight decay must be a finite number that is at least 0");
  std::vector<model_parameter> all = model.parameters();
  if (all.empty()) refuse(concat({"model '", model.name(), "' has no parameters"}));
  std::sort(all.begin(), all.end(), [](const auto& one, const auto& other) { return one.name < other.name; });
  const auto equal = std::adjacent_find(all.begin(), all.end(),
                                        [](const auto& one, const auto& other) { return one.name == other.name; });
  if (equal != all.end())
    refuse(concat({"model '", model.name(), "' has two parameters with the name '", equal->name,
                   "': a checkpoint needs a name for each"}));
}

#if HOCKET_HAS_EXCEPTIONS
/// Returns the failure of the exception that is being handled: `peer_lost` with its text if it is none of hocket's.
inline failure failure_of_exception() {
  try {
    throw;
  } catch (const error& cause) {
    return cause.cause();
  } catch (const std::exception& cause) {
    return make_failure(errc::peer_lost, cause.what());
  } catch (...) {
    return make_failure(errc::peer_lost, "an exception that is not a std::exception");
  }
}
#endif

/// Trains as one rank of `comm`. If the model or the source throws, the other ranks fail with the same reason. Before
/// they can learn of it, `on_failure(failure)` is called while the exception is handled.
template <class Domain, class Model, class Source, class OnFailure>
report train_as_rank(communicator<Domain>& comm, const Model& model, const Source& source, const train_options& options,
                     const std::string& device_name, [[maybe_unused]] OnFailure on_failure) {
  comm.set_timeout(options.timeout);
  std::optional<worker<Domain, Model, Source>> own;
#if HOCKET_HAS_EXCEPTIONS
  try {
#endif
    own.emplace(comm, model, source, options);
    own->begin();
    while (!own->is_over()) {
      own->compute();
      own->start_sums();
      own->finish_step();
    }
    return own->end(device_name);
#if HOCKET_HAS_EXCEPTIONS
  } catch (...) {
    const failure cause = failure_of_exception();
    on_failure(cause);
    comm.revoke(cause.reason);  // before `own` waits for its sums
    if (own) own->fail(cause.reason);
    throw;
  }
#endif
}

}  // namespace detail

/// Ranks that are threads of this process.
struct threads {
  template <class Model, class Source>
  report run(const Model& model, const Source& source, nodes on, const train_options& options,
             const std::string& device_name) const {
    report result;
    const auto take_part = [&](local::communicator& comm, auto on_failure) {
      report own = detail::train_as_rank(comm, model, source, options, device_name, on_failure);
      if (comm.rank() == 0) result = std::move(own);
    };
#if HOCKET_HAS_EXCEPTIONS
    // The exception of the rank that failed, and not that of a rank that has learned of it.
    std::mutex first_mutex;
    std::exception_ptr first;
    const auto remember = [&](const failure&) {
      const std::scoped_lock lock(first_mutex);
      if (!first) first = std::current_exception();
    };
    try {
      local::run(on.count, [&](local::communicator comm) { take_part(comm, remember); });
    } catch (...) {
      if (first) std::rethrow_exception(first);
      throw;
    }
#else
    local::run(on.count, [&](local::communicator comm) { take_part(comm, [](const failure&) {}); });
#endif
    return result;
  }
};

/// Simulated ranks, which share this thread: for tests of models and data with more ranks than cores. They save no
/// checkpoints.
struct simulated {
  template <class Model, class Source>
  report run(const Model& model, const Source& source, nodes on, const train_options& options,
             const std::string& device_name) const {
    if (!options.checkpoints.empty()) detail::refuse("simulated ranks save no checkpoints: leave checkpoints empty");
    sim::world world(on.count);
    std::deque<detail::worker<sim::domain, Model, Source>> workers;
#if HOCKET_HAS_EXCEPTIONS
    try {
#endif
      for (int rank = 0; rank < on.count; ++rank)
        workers.emplace_back(world.comm(rank), model, source, options).begin();
      while (!workers.front().is_over()) {
        for (auto& each : workers) each.compute();
        for (auto& each : workers) each.start_sums();
        world.run();
        for (auto& each : workers) each.finish_step();
      }
      report result = workers.front().end(device_name);
      for (std::size_t i = 1; i < workers.size(); ++i) workers[i].end(device_name);
      return result;
#if HOCKET_HAS_EXCEPTIONS
    } catch (...) {
      const failure cause = detail::failure_of_exception();
      for (auto& each : workers) each.fail(cause.reason);
      throw;
    }
#endif
  }
};

/// Trains `model` on `source` with `on.count` ranks, and returns what happened. The model is copied for each rank.
///
/// Every number of ranks uses the same batches: ranks divide each one, and sum losses and gradients, so that results
/// differ by rounding alone. A rank that gets no sample of a batch takes part in its sums.
/// @param source has `size()`, and makes batches: see `data::source`. `number_samples` has arrays of numbers.
/// @param how `threads{}`, `simulated{}`, or `processes{}` of <hocket/train/ucx.hpp>
///
/// **Errors.** `invalid_argument` if there are no nodes, no samples or no parameters, two parameters have one name, a
/// GPU is asked for that can't be used, or a loss or a parameter becomes infinite or no number: then no checkpoint is
/// written any more. `mismatch` if the checkpoints are those of another model, seed, batch or number of samples, or
/// have more steps than `epochs`. The exception of the model or the source on any rank; of processes, an error
/// with its text and rank: with its code if it is a `hocket::error`, else `peer_lost`. `peer_lost` if a process ends.
/// Those of calls and checkpoints, and of logs that can't be created; if a log can't be written later, as on a full
/// disk, this is reported once on standard error, and the training continues. A model without one of its functions does
/// not compile.
///
/// An error is raised when no call of the source is in progress any more, because a thread can't be ended from outside.
/// So if the source is stuck, that takes `timeout` and as long as its `append` needs for one sample.
template <class Model, class Source, class How = threads>
report train_distributed(const Model& model, const Source& source, nodes on = {}, const train_options& options = {},
                         How how = {}) {
  static_assert(detail::sized_source<Source>,
                "hocket: the data needs size(), batch_type with clear(), and append(sample, batch)");
  using batch = typename Source::batch_type;
  static_assert(has_name<Model>, "hocket: the model needs name()");
  static_assert(has_parameters<Model>,
                "hocket: the model needs parameters(), which returns model_parameter for each array");
  static_assert(
      has_forward<Model, batch>,
      "hocket: the model needs forward(parameter_values, batch), which returns the sum of the samples' losses");
  static_assert(
      has_backward<Model, batch>,
      "hocket: the model needs backward(parameter_values, batch, parameter_gradients), which adds the gradients");
  if constexpr (detail::sized_source<Source> && trainable<Model, batch>) {
    detail::check(model, source, on, options);
    return how.run(model, source, on, options, detail::device_for<Model>(options.where, model.name()));
  } else {
    return {};
  }
}

}  // namespace train
HOCKET_END_NAMESPACE
