// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// One rank of `train_distributed`. A step has three parts, so that ranks that share a thread can take them in turn.
#pragma once

#include <hocket/checkpoint/state.hpp>
#include <hocket/checkpoint/store.hpp>
#include <hocket/collective/all_reduce.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/float_bits.hpp>
#include <hocket/core/mixed_bits.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/request.hpp>
#include <hocket/core/text.hpp>
#include <hocket/data/loader.hpp>
#include <hocket/data/order.hpp>
#include <hocket/data/permutation.hpp>
#include <hocket/data/share.hpp>
#include <hocket/observe/communication.hpp>
#include <hocket/observe/console.hpp>
#include <hocket/observe/job_records.hpp>
#include <hocket/observe/registry.hpp>
#include <hocket/optimizer/rule/adamw.hpp>
#include <hocket/train/model.hpp>
#include <hocket/train/report.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numbers>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace train {
namespace detail {

/// Returns number `index` of a sequence that has a normal distribution, which depends on `seed` alone.
inline float normal_number(std::uint64_t seed, std::uint64_t index) noexcept {
  const auto uniform = [&](std::uint64_t i) {
    using hocket::detail::golden_ratio;
    const std::uint64_t bits = hocket::detail::mixed_bits((seed ^ (i * golden_ratio)) + golden_ratio);
    return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
  };
  const double radius = std::sqrt(-2 * std::log(uniform(2 * index)));
  return static_cast<float>(radius * std::cos(2 * std::numbers::pi * uniform(2 * index + 1)));
}

/// Returns a / b, rounded up.
inline std::uint64_t ratio_up(std::uint64_t a, std::uint64_t b) noexcept { return a / b + (a % b != 0 ? 1 : 0); }

/// Returns the number of batches of an epoch.
inline std::uint64_t steps_of_epoch(std::uint64_t samples, std::uint64_t batch) noexcept {
  return ratio_up(samples, batch);
}

/// Returns a number with four digits, such as "0.001234".
inline std::string four_digits(double value) {
  char digits[32];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, 4);
  return error == std::errc() ? std::string(digits, end) : std::string("?");
}

inline std::string status_of(const std::string& device_name) {
  return device_name == "cpu" ? "distributed_trained" : "distributed_trained_with_acceleration";
}

/// The figures that a rank shows while it trains.
class progress {
 public:
  progress(const train_options& options, const std::string& model, int rank, int ranks, std::uint64_t taken,
           std::uint64_t all)
      : model_(model), rank_(rank),
        records_({.log = options.log, .tensorboard = options.tensorboard}, {.program = "train_distributed",
                                                                            .name = model,
                                                                            .rank = rank,
                                                                            .ranks = ranks,
                                                                            .taken = static_cast<std::int64_t>(taken),
                                                                            .steps = static_cast<std::int64_t>(all)}) {
    if (options.shows_progress && rank == 0) line_.emplace(static_cast<std::int64_t>(all));
  }

  /// Shows the calls of this rank, if there is a sink.
  template <class Domain>
  void watch(const communicator<Domain>& comm) {
    if (records_.has_sinks()) observe::watch(records_.metrics(), comm);
  }

  void add(std::uint64_t step, double loss, std::uint64_t samples, double waited) {
    loss_.set(loss);
    samples_.add(static_cast<double>(samples));
    waited_.add(waited);
    records_.step(static_cast<std::int64_t>(step));
    if (line_) line_->update(static_cast<std::int64_t>(step), hocket::detail::concat({"loss ", four_digits(loss)}));
  }

  /// States on rank 0, on standard error and in its log, what a person should know of checkpoints: `event`, and the
  /// reason for each.
  void warn(std::string_view event, const std::vector<std::string>& reasons) {
    if (rank_ != 0) return;
    for (const std::string& each : reasons) records_.warn(event, each);
  }

  void end(const std::string& status) {
    if (line_) line_->finish();
    records_.end(status, {{"model", model_}});
  }

  /// Ends the records of a training that `reason` has ended.
  void fail(const std::string& reason) {
    if (line_) line_->finish();
    records_.end("failed", {{"model", model_}, {"reason", reason}});
  }

 private:
  std::string model_;
  int rank_;
  observe::job_records records_;
  observe::gauge& loss_ = records_.metrics().gauge("loss", "mean loss of the samples of the last step");
  observe::counter& samples_ = records_.metrics().counter("samples", "samples of this rank");
  observe::counter& waited_ =
      records_.metrics().counter("communication_seconds", "time in which this rank waited for sums");
  std::optional<observe::console> line_;
};

/// One rank. Collective: all ranks call the same functions, each in its turn.
template <class Domain, class Model, class Source>
class worker {
 public:
  worker(const communicator<Domain>& comm, const Model& model, const Source& source, const train_options& options)
      : comm_(comm), model_(model), source_(source), options_(options), described_(model.parameters()),
        order_(source.size(), options.seed), steps_per_epoch_(steps_of_epoch(source.size(), options.batch)) {
    std::size_t elements = 0;
    for (const model_parameter& each : described_) elements += each.elements;
    for (std::vector<float>* const each : {&weights_, &first_moment_, &second_moment_}) each->resize(elements);
    sums_.resize(elements);
    std::size_t begin = 0;
    for (std::size_t p = 0; p < described_.size(); begin += described_[p++].elements) {
      const std::size_t count = described_[p].elements;
      const std::uint64_t key = data::detail::derived_key(options.seed, p);
      for (std::size_t i = 0; i < count && described_[p].deviation > 0; ++i) {
        weights_[begin + i] = static_cast<float>(described_[p].deviation) * normal_number(key, i);
      }
      values_.push_back(std::span<const float>(weights_).subspan(begin, count));
      gradients_.push_back(std::span(sums_).subspan(begin, count));
    }
  }

  std::uint64_t all_steps() const noexcept { return steps_per_epoch_ * options_.epochs; }
  bool is_over() const noexcept { return step_ >= all_steps(); }

  /// Continues from the newest checkpoint, if there is one.
  void begin() {
    std::vector<std::string> refused;
    if (!options_.checkpoints.empty()) {
      store_.emplace(options_.checkpoints, comm_, checkpoint::store_options{.timeout = options_.timeout});
      checkpoint::state now = state();
      if (auto found = store_->load_newest(now)) {
        require_same_training(now.text);
        step_ = found->at.step;
        refused = std::move(found->refused);
        require_steps_left();
      }
      if (!is_over()) store_->lock();  // not after the steps before the first save
    }
    const data::cursor from{step_ / steps_per_epoch_, step_ % steps_per_epoch_ * options_.batch};
    batches_.emplace(order_, source_, data::share(comm_),
                     data::loader_options{.batch = options_.batch, .prefetch = 2, .timeout = options_.timeout}, from);
    shown_.emplace(options_, model_.name(), comm_.rank(), comm_.size(), step_, all_steps());
    shown_->watch(comm_);
    shown_->warn("checkpoint not used", refused);
    begin_ = std::chrono::steady_clock::now();
  }

  /// Computes the loss and the gradients of this rank's samples of the next batch.
  void compute() {
    const auto& batch = batches_->next();
    samples_of_step_ = batch.own.size();
    std::fill(sums_.begin(), sums_.end(), 0.0);
    totals_ = {0, static_cast<double>(samples_of_step_)};
    if (samples_of_step_ == 0) return;
    totals_[0] = model_.forward(values_, batch.samples);
    require_finite("the loss of its samples", totals_[0]);
    model_.backward(values_, batch.samples, gradients_);
  }

  /// Starts to sum them over the ranks. A rank without samples takes part.
  void start_sums() {
    sums_begin_ = std::chrono::steady_clock::now();
    requests_[0] = all_reduce_async(comm_, in_place(std::span(totals_)));
    requests_[1] = all_reduce_async(comm_, in_place(std::span(sums_)));
  }

  /// Waits for the sums, and changes the parameters.
  void finish_step() {
    for (request& each : requests_) each.wait();
    require_finite("the loss of all ranks", totals_[0]);
    const auto now = std::chrono::steady_clock::now();
    const double waited = std::chrono::duration<double>(now - sums_begin_).count();
    waited_ += waited;
    if (step_ % steps_per_epoch_ == 0) epoch_totals_ = {};
    for (std::size_t i = 0; i < totals_.size(); ++i) epoch_totals_[i] += totals_[i];
    if (used_ == 0) first_loss_ = totals_[0] / totals_[1];
    used_ += static_cast<std::uint64_t>(totals_[1]);
    update();
    ++step_;
    shown_->add(step_, totals_[0] / totals_[1], samples_of_step_, waited);
    if (store_ && (step_ % options_.checkpoint_every == 0 || is_over())) store_->save(step_, state());
  }

  /// Returns the report, which is equal on all ranks, except for times.
  report end(const std::string& device_name) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    report result;
    result.model_name = model_.name();
    result.nodes_used = comm_.size();
    result.device = device_name;
    result.status = status_of(device_name);
    result.steps = step_;
    result.samples = used_;
    result.first_loss = first_loss_;
    result.loss = epoch_totals_[1] > 0 ? epoch_totals_[0] / epoch_totals_[1] : 0;
    result.seconds = seconds;
    result.samples_per_second = seconds > 0 ? static_cast<double>(used_) / seconds : 0;
    result.communication_seconds = waited_;
    result.parameters = weights_;
    if (store_) shown_->warn("checkpoint not removed", store_->not_removed());
    shown_->end(result.status);
    return result;
  }

  /// Records that `reason` has ended the training.
  void fail(const std::string& reason) {
    if (shown_) shown_->fail(reason);
  }

 private:
  /// What a checkpoint has. All ranks have equal copies, and divide the work of saving them.
  checkpoint::state state() {
    checkpoint::state now;
    std::size_t begin = 0;
    for (std::size_t p = 0; p < described_.size(); begin += described_[p++].elements) {
      const std::size_t count = described_[p].elements;
      now.add(hocket::detail::concat({"parameter/", described_[p].name}), std::span(weights_).subspan(begin, count));
      now.add(hocket::detail::concat({"first moment/", described_[p].name}),
              std::span(first_moment_).subspan(begin, count));
      now.add(hocket::detail::concat({"second moment/", described_[p].name}),
              std::span(second_moment_).subspan(begin, count));
    }
    now.add("losses of the epoch", epoch_totals_[0]);
    now.add("samples of the epoch", epoch_totals_[1]);
    now.text = identity();
    return now;
  }

  /// What must be equal before and after a restart: with another value, samples would be omitted or used twice, or the
  /// parameters would be those of another model.
  std::map<std::string, std::string> identity() const {
    return {{"model", model_.name()},
            {"seed", std::to_string(options_.seed)},
            {"batch", std::to_string(options_.batch)},
            {"number of samples", std::to_string(order_.size())}};
  }

  /// Raises `mismatch` if a checkpoint with the texts `saved` is of another training. Equal on all ranks.
  void require_same_training(const std::map<std::string, std::string>& saved) const {
    for (const auto& [name, own] : identity()) {
      const auto found = saved.find(name);
      const std::string before = found != saved.end() ? found->second : "none";
      if (before == own) continue;
      raise(errc::mismatch,
            hocket::detail::concat({"the checkpoints in '", options_.checkpoints, "' are of a training with ", name,
                                    " '", before, "', not '", own,
                                    "': continue it with equal options and data, or name another folder"}),
            {.operation = "train_distributed"});
    }
  }

  /// Raises `mismatch` if a checkpoint has more steps than the training will. Equal on all ranks.
  void require_steps_left() const {
    if (step_ <= all_steps()) return;
    raise(errc::mismatch,
          hocket::detail::concat({"the newest checkpoint in '", options_.checkpoints, "' is of step ", step_, ", but ",
                                  options_.epochs, " epochs of ", steps_per_epoch_, " steps end before: ask for ",
                                  ratio_up(step_, steps_per_epoch_), " epochs or more, or name another folder"}),
          {.operation = "train_distributed"});
  }

  void update() {
    const adamw rule{.weight_decay = options_.weight_decay};
    const auto constants = rule.template at<float>(step_ + 1, options_.learning_rate);
    const double share = 1 / totals_[1];
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const auto gradient = static_cast<float>(sums_[i] * share);
      adamw::update(constants, weights_[i], gradient, std::array{&first_moment_[i], &second_moment_[i]});
    }
    // A gradient can be infinite where the loss is finite. A checkpoint must not have the result.
    for (const float each : weights_) require_finite("a parameter", static_cast<double>(each));
  }

  /// Raises `invalid_argument` if a number of the step in progress is not finite: no later step could correct it.
  void require_finite(const char* what, double value) const {
    if (hocket::detail::is_finite(value)) return;
    const std::string found = hocket::detail::has_nan_bits(value) ? "nan" : four_digits(value);
    raise(errc::invalid_argument,
          hocket::detail::concat({"step ", step_ + 1, ", rank ", static_cast<int>(comm_.rank()), ": ", what, " is ",
                                  found,
                                  ", not a finite number: use a lower learning rate, or check the samples and the "
                                  "model"}),
          {.operation = "train_distributed"});
  }

  const communicator<Domain>& comm_;
  Model model_;
  const Source& source_;
  const train_options& options_;
  std::vector<model_parameter> described_;
  data::order order_;
  std::uint64_t steps_per_epoch_;
  std::vector<float> weights_, first_moment_, second_moment_;
  std::vector<double> sums_;
  parameter_values values_;
  parameter_gradients gradients_;
  std::array<double, 2> totals_{}, epoch_totals_{};  ///< sum of losses, number of samples
  std::uint64_t samples_of_step_ = 0, step_ = 0, used_ = 0;
  double first_loss_ = 0, waited_ = 0;
  std::chrono::steady_clock::time_point begin_, sums_begin_;
  std::optional<checkpoint::store> store_;
  std::optional<progress> shown_;
  std::optional<data::loader<data::order, Source>> batches_;
  std::array<request, 2> requests_;  ///< last member, so that sums end before their memory is freed
};

}  // namespace detail
}  // namespace train
HOCKET_END_NAMESPACE
