// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// `training_memory` for one type of gradients, one type of parameters, and all ZeRO stages. Compiled once for each
/// pair of types, in memory_*.cpp.
#pragma once

#include "memory.hpp"

#include <hocket/checkpoint/training_state.hpp>
#include <hocket/core/memory_ledger.hpp>
#include <hocket/gradient/accumulator.hpp>
#include <hocket/gradient/norm.hpp>
#include <hocket/group/split.hpp>
#include <hocket/observe/communication.hpp>
#include <hocket/observe/job_counters.hpp>
#include <hocket/operation/exact_sum.hpp>
#include <hocket/optimizer/memory.hpp>
#include <hocket/optimizer/optimizer.hpp>
#include <hocket/optimizer/parameters.hpp>
#include <hocket/optimizer/rule/adamw.hpp>
#include <hocket/scalar/bfloat16.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpt {

/// Returns a layout with a unit per layer: zero<3> gathers layers, and other stages need equal buckets for equal bits.
inline hocket::parameter_layout layout_of(const std::vector<entry>& entries, bool first_of_copies,
                                          std::size_t bucket_bytes) {
  std::vector<hocket::parameter> parameters;
  int layer = -1;
  for (const entry& each : entries) {
    hocket::parameter one{each.name(), each.elements(), each.block >= 0 || first_of_copies};
    one.begins_unit = std::exchange(layer, each.layer) != each.layer;
    parameters.push_back(each.is_gain() ? hocket::undecayed(one) : one);
  }
  return hocket::parameter_layout(std::move(parameters), hocket::bucket_limits::of<float>(bucket_bytes, bucket_bytes));
}

/// Reduces a bucket of gradients: unchanged, or, if requested and the sum is not exact, as bfloat16 or in device
/// memory.
struct bucket_reduction : hocket::piecewise_reduction {
  bool narrow = false;
  std::shared_ptr<device_sums> device;

  template <class Domain, class T, class Options>
  bucket_sum all_reduce(const hocket::communicator<Domain>& comm, std::size_t bucket, std::span<T> values,
                        const Options& options, const std::source_location& site) const {
    if constexpr (std::same_as<T, float>) {
      if (device) return device->all_reduce(comm, values);
      if (narrow) return bucket_sum(plain_reduction::all_reduce(comm, bucket, values, as_bfloat16, site));
    }
    return bucket_sum(plain_reduction::all_reduce(comm, bucket, values, options, site));
  }

  template <class Domain, class T, class Options>
  bucket_sum reduce_scatter(const hocket::communicator<Domain>& comm, std::size_t bucket, std::span<T> values,
                            std::span<T> own, hocket::counts lengths, const Options& options,
                            const std::source_location& site) const {
    if constexpr (std::same_as<T, float>) {
      if (device) return device->reduce_scatter(comm, values, own, lengths);
      if (narrow)
        return bucket_sum(plain_reduction::reduce_scatter(comm, bucket, values, own, lengths, as_bfloat16, site));
    }
    return bucket_sum(plain_reduction::reduce_scatter(comm, bucket, values, own, lengths, options, site));
  }

 private:
  static constexpr auto as_bfloat16 = hocket::with(hocket::wire<hocket::bfloat16>);
};

/// @tparam T type of gradients: `float` or `exact_sum<float>`
/// @tparam P type of parameters: `float` or `bfloat16`
template <class T, class P, int Stage>
class memory_of final : public training_memory {
  static constexpr auto stage = hocket::zero<Stage>;
  using when = std::conditional_t<(Stage >= 2), hocket::scatter_every_reduce_last_t, hocket::last_microbatch_t>;
  using communicator = hocket::ucx::communicator;
  using group = hocket::hybrid_group<communicator::domain_type>;
  using gradients_type = decltype(hocket::gradients<T>(std::declval<const group&>(), hocket::parameter_layout(), when(),
                                                       stage, hocket::options<>{}, bucket_reduction{}));
  using parameters_type =
      decltype(hocket::parameters<P>(std::declval<const group&>(), hocket::parameter_layout(), stage));
  using optimizer_type = hocket::optimizer<float, hocket::adamw, parameters_type>;

 public:
  memory_of(const communicator& data, const communicator& model, const std::vector<entry>& entries,
            bool first_of_copies, const memory_options& options)
      : model_(model), options_(options), layout_(layout_of(entries, first_of_copies, options.bucket_bytes)),
        shards_(hocket::split(data, hocket::color{data.rank() / options.shards}, hocket::key{data.rank()})),
        replicas_(hocket::split(data, hocket::color{data.rank() % options.shards}, hocket::key{data.rank()})),
        fetching_(hocket::split(shards_, hocket::color{0}, hocket::key{shards_.rank()})),
        parameters_(hocket::parameters<P>(hocket::hybrid(fetching_, replicas_), layout_, stage, hocket::options<>{},
                                          ledger_.account("parameters"))),
        gradients_(hocket::gradients<T>(hocket::hybrid(shards_, replicas_), layout_, when(), stage, hocket::options<>{},
                                        bucket_reduction{{}, options.narrow_wire, options.device},
                                        ledger_.account("gradients"))),
        widened_(layout_.parameters()) {}

  void set(std::size_t i, std::span<const float> values) override {
    if constexpr (is_narrow) {
      std::vector<P> narrowed;
      for (const float value : values) narrowed.push_back(static_cast<P>(value));
      parameters_.set(i, narrowed);
    } else {
      parameters_.set(i, values);
    }
  }

  void fetch(std::size_t first, std::size_t count) override { parameters_.hold(first, count); }
  void release(std::size_t first, std::size_t count) override {
    parameters_.end_hold(first, count);
    if (Stage < 3) return;
    for (std::size_t i = first; i < first + count; ++i) widened_[i] = {};
  }
  std::span<const float> weights(std::size_t i) override {
    if constexpr (!is_narrow) {
      return parameters_.of(i);
    } else {
      if (widened_[i].empty()) {
        const std::span<const P> narrow = parameters_.of(i);
        widened_[i] = hocket::flat_buffer<float>(narrow.size(), ledger_.account("parameters in use"));
        std::copy(narrow.begin(), narrow.end(), widened_[i].elements().begin());
      }
      return widened_[i].elements();
    }
  }

  void begin_pass(int pass, int of) override {
    make_optimizer();
    gradients_.begin_microbatch(pass, of);
  }
  void add_gradient(std::size_t i, std::span<const float> gradient) override {
    gradients_.add(i, gradient);
    if (overlaps_) gradients_.progress();  // because a layer computes for a long time between two calls of `ready`
  }
  void ready(std::size_t i) override {
    if (overlaps_) gradients_.ready(i);
  }
  void set_overlap(bool overlaps) override { overlaps_ = overlaps; }
  void end_pass(double tokens) override { gradients_.end_microbatch(0, tokens); }

  step_found end_step(double scale, double learning_rate) override {
    const hocket::gradient_totals totals = gradients_.finish();
    const hocket::gradient_norm norm = hocket::norm(gradients_, model_);
    const double divisor = totals.count * scale;
    for (auto& each : widened_) each = {};
    if (norm.finite) optimizer_->step(gradients_, learning_rate, norm.step_factor(divisor, options_.clip));
    // Report one value, because whether the norm is infinite or NaN depends on which sum overflows first.
    const double length = norm.finite ? norm.value / divisor : std::numeric_limits<double>::infinity();
    return {totals.count, length, norm.finite, totals.exposed_seconds + parameters_.take_time().exposed_seconds};
  }

  void add_to(hocket::checkpoint::state& to) override {
    make_optimizer();
    for (auto& each : widened_) each = {};  // loading changes what they are copies of
    add_parameters(to, parameters_);
    add_optimizer(to, *optimizer_);
  }

  void revoke(const std::string& reason) override {
    model_.revoke(reason);
    for (const communicator* each : {&shards_, &replicas_, &fetching_}) each->revoke(reason);
  }

  std::size_t bytes() const override { return ledger_.bytes(); }
  std::size_t peak_bytes() const override { return ledger_.peak_bytes(); }
  std::size_t predicted_bytes() const override {
    return hocket::bytes_of_training<P, T, float, hocket::adamw>(layout_.bucket_elements(), fetching_.rank(),
                                                                 fetching_.size(), stage)
        .total();
  }
  double predicted_traffic(int passes, int rounds, std::size_t forward_only) const override {
    const auto share_of_others = [](const communicator& comm) {
      return static_cast<double>(comm.size() - 1) / comm.size();
    };
    const double others = share_of_others(shards_);
    const double elements = static_cast<double>(layout_.size()) * others;
    const auto wire = static_cast<double>(options_.narrow_wire ? sizeof(hocket::bfloat16) : sizeof(T));
    const double gradient = elements * wire;
    const double parameters = elements * static_cast<double>(sizeof(P));
    // A rank's shard is summed over the copies once.
    const double copies = 2 * share_of_others(replicas_) * static_cast<double>(layout_.size()) / shards_.size() * wire;
    if (Stage == 0) return gradient + copies + elements * static_cast<double>(sizeof(T));
    if (Stage == 1) return gradient + copies + parameters;
    if (Stage == 2) return passes * gradient + copies + parameters;
    // Layers gather parameters in both passes of each round.
    const double once = static_cast<double>(forward_only) * others * static_cast<double>(sizeof(P));
    return passes * gradient + copies + rounds * (2 * parameters - once);
  }
  void watch(hocket::observe::registry& metrics) const override {
    for (const communicator* each : {&shards_, &replicas_, &fetching_}) hocket::observe::watch(metrics, *each);
    hocket::observe::watch(metrics, ledger_);
  }
  void settle() override {
    for (std::size_t b = 0; b < layout_.buckets(); ++b) parameters_.wait(b);
  }
  hocket::traffic moved() const override {
    hocket::traffic all = shards_.traffic();
    all += replicas_.traffic();
    return all += fetching_.traffic();
  }

 private:
  static constexpr bool is_narrow = !std::same_as<P, float>;

  /// Creates the optimizer after the parameters have their values, because it may make a float copy of them.
  void make_optimizer() {
    if (optimizer_) return;
    optimizer_.emplace(parameters_, hocket::adamw{.weight_decay = options_.weight_decay}, ledger_.account("states"));
  }

  const communicator& model_;
  memory_options options_;
  hocket::memory_ledger ledger_;
  hocket::parameter_layout layout_;
  communicator shards_;    ///< the data-parallel ranks that share a sharded copy
  communicator replicas_;  ///< the ranks that have the same shard of each copy
  communicator fetching_;  ///< separate, because parameters are fetched while gradients are reduced
  parameters_type parameters_;
  gradients_type gradients_;
  std::optional<optimizer_type> optimizer_;
  bool overlaps_ = true;
  std::vector<hocket::flat_buffer<float>> widened_;  ///< float copies for computations, if parameters are narrow
};

template <class T, class P>
std::unique_ptr<training_memory> make_memory_of(const hocket::ucx::communicator& data,
                                                const hocket::ucx::communicator& model,
                                                const std::vector<entry>& entries, bool first_of_copies,
                                                const memory_options& options) {
  switch (options.zero) {
    case 0: return std::make_unique<memory_of<T, P, 0>>(data, model, entries, first_of_copies, options);
    case 1: return std::make_unique<memory_of<T, P, 1>>(data, model, entries, first_of_copies, options);
    case 2: return std::make_unique<memory_of<T, P, 2>>(data, model, entries, first_of_copies, options);
    default: return std::make_unique<memory_of<T, P, 3>>(data, model, entries, first_of_copies, options);
  }
}

}  // namespace gpt
