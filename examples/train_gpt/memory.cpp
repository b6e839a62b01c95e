// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory.hpp"

#include <hocket/communicator/split.hpp>
#include <hocket/core/memory_ledger.hpp>
#include <hocket/gradient/accumulator.hpp>
#include <hocket/gradient/norm.hpp>
#include <hocket/operation/exact_sum.hpp>
#include <hocket/optimizer/memory.hpp>
#include <hocket/optimizer/optimizer.hpp>
#include <hocket/optimizer/parameters.hpp>
#include <hocket/optimizer/rule/adamw.hpp>

#include <optional>
#include <type_traits>

namespace gpt {
namespace {

hocket::parameter_layout layout_of(const std::vector<entry>& entries, bool first_of_copies, std::size_t bucket_bytes) {
  std::vector<hocket::parameter> parameters;
  for (const entry& each : entries) {
    parameters.push_back({each.name(), each.elements(), each.block >= 0 || first_of_copies});
  }
  return hocket::parameter_layout(std::move(parameters), hocket::bucket_limits::of<float>(bucket_bytes, bucket_bytes));
}

/// @tparam T `float` or `exact_sum<float>`
template <class T, int Stage>
class memory_of final : public training_memory {
  static constexpr auto stage = hocket::zero<Stage>;
  using when = std::conditional_t<(Stage >= 2), hocket::every_microbatch_t, hocket::last_microbatch_t>;
  using communicator = hocket::ucx::communicator;
  using gradients_type =
      decltype(hocket::gradients<T>(std::declval<const communicator&>(), hocket::parameter_layout(), when(), stage));
  using parameters_type =
      decltype(hocket::parameters<float>(std::declval<const communicator&>(), hocket::parameter_layout(), stage));
  using optimizer_type = hocket::optimizer<float, hocket::adamw, parameters_type>;

 public:
  memory_of(const communicator& data, const communicator& model, const std::vector<entry>& entries,
            bool first_of_copies, const memory_options& options)
      : model_(model), options_(options), layout_(layout_of(entries, first_of_copies, options.bucket_bytes)),
        fetching_(hocket::split(data, hocket::color{0}, hocket::key{data.rank()})),
        parameters_(
            hocket::parameters<float>(fetching_, layout_, stage, hocket::options<>{}, ledger_.account("parameters"))),
        gradients_(
            hocket::gradients<T>(data, layout_, when(), stage, hocket::options<>{}, {}, ledger_.account("gradients"))),
        optimizer_(hocket::make_optimizer<float>(parameters_, hocket::adamw{.weight_decay = options.weight_decay},
                                                 ledger_.account("states"))),
        users_(layout_.buckets()) {}

  void set(std::size_t i, std::span<const float> values) override { parameters_.set(i, values); }

  void fetch(std::size_t first, std::size_t count) override {
    if constexpr (Stage == 3) {
      for_each_bucket(first, count, [&](std::size_t b) {
        if (users_[b]++ == 0) parameters_.gather(b);
      });
    }
  }
  void release(std::size_t first, std::size_t count) override {
    if constexpr (Stage == 3) {
      for_each_bucket(first, count, [&](std::size_t b) {
        if (--users_[b] == 0) parameters_.release(b);
      });
    }
  }
  std::span<const float> weights(std::size_t i) override { return parameters_.of(i); }

  void begin_step() override { gradients_.begin_microbatch(0, 1); }
  void add_gradient(std::size_t i, std::span<const float> gradient) override { gradients_.add(i, gradient); }
  void ready(std::size_t i) override { gradients_.ready(i); }

  step_found end_step(double tokens, double learning_rate) override {
    gradients_.end_microbatch(0, tokens);
    const hocket::gradient_totals totals = gradients_.finish();
    const hocket::gradient_norm norm = hocket::norm(gradients_, model_);
    const double factor = 1 / totals.count;
    if (norm.finite) {
      optimizer_.step(gradients_, learning_rate, factor * hocket::clip_factor(norm.value * factor, options_.clip));
    }
    return {totals.count, norm.value * factor, norm.finite, totals.exposed_seconds};
  }

  std::size_t bytes() const override { return ledger_.bytes(); }
  std::size_t peak_bytes() const override { return ledger_.peak_bytes(); }
  std::size_t predicted_bytes() const override {
    std::vector<std::size_t> buckets;
    for (std::size_t b = 0; b < layout_.buckets(); ++b) buckets.push_back(layout_.bucket(b).size);
    return hocket::bytes_of_training<float, T, float, hocket::adamw>(buckets, fetching_.rank(), fetching_.size(), stage)
        .total();
  }

 private:
  template <class Visit>
  void for_each_bucket(std::size_t first, std::size_t count, Visit visit) {
    if (count == 0) return;
    // Buckets are numbered from the last parameter on.
    for (std::size_t b = layout_.bucket_of(first) + 1; b-- > layout_.bucket_of(first + count - 1);) visit(b);
  }

  const communicator& model_;
  memory_options options_;
  hocket::memory_ledger ledger_;
  hocket::parameter_layout layout_;
  communicator fetching_;  ///< parameters are fetched while gradients leave: each in an order of its own
  parameters_type parameters_;
  gradients_type gradients_;
  optimizer_type optimizer_;
  std::vector<int> users_;  ///< of each bucket: layers that use it now, and those that will next
};

template <class T>
std::unique_ptr<training_memory> make_memory_of(const hocket::ucx::communicator& data,
                                                const hocket::ucx::communicator& model,
                                                const std::vector<entry>& entries, bool first_of_copies,
                                                const memory_options& options) {
  switch (options.zero) {
    case 0: return std::make_unique<memory_of<T, 0>>(data, model, entries, first_of_copies, options);
    case 1: return std::make_unique<memory_of<T, 1>>(data, model, entries, first_of_copies, options);
    case 2: return std::make_unique<memory_of<T, 2>>(data, model, entries, first_of_copies, options);
    default: return std::make_unique<memory_of<T, 3>>(data, model, entries, first_of_copies, options);
  }
}

}  // namespace

std::unique_ptr<training_memory> make_memory(const hocket::ucx::communicator& data,
                                             const hocket::ucx::communicator& model, const std::vector<entry>& entries,
                                             bool first_of_copies, const memory_options& options) {
  return options.exact ? make_memory_of<hocket::exact_sum<float>>(data, model, entries, first_of_copies, options)
                       : make_memory_of<float>(data, model, entries, first_of_copies, options);
}

}  // namespace gpt
