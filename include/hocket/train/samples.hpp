// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Samples of numbers in memory, as the source of a loader: each has features, from which a model predicts, and
/// targets.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace train {

/// Samples of a batch, one after the other.
struct number_batch {
  std::size_t count = 0;  ///< of samples, which may be 0
  std::vector<float> features;
  std::vector<float> targets;

  void clear() noexcept {
    count = 0;
    features.clear();
    targets.clear();
  }
};

/// Refers to arrays of the program, which must outlive it.
class number_samples {
 public:
  using batch_type = number_batch;

  /// Sample i has `features_per_sample` numbers of `features` from number i * `features_per_sample` on, and targets in
  /// the same way. Raises `invalid_argument` if the arrays do not have the same number of whole samples.
  number_samples(std::span<const float> features, std::size_t features_per_sample, std::span<const float> targets,
                 std::size_t targets_per_sample)
      : features_(features), targets_(targets), features_per_sample_(features_per_sample),
        targets_per_sample_(targets_per_sample) {
    const bool are_whole = features_per_sample > 0 && targets_per_sample > 0 &&
                           features.size() % features_per_sample == 0 && targets.size() % targets_per_sample == 0 &&
                           features.size() / features_per_sample == targets.size() / targets_per_sample;
    if (are_whole) return;
    raise(errc::invalid_argument,
          hocket::detail::concat({features.size(), " features of ", features_per_sample, " per sample and ",
                                  targets.size(), " targets of ", targets_per_sample,
                                  " per sample are not equally many whole samples"}),
          {.operation = "train::number_samples"});
  }

  std::uint64_t size() const noexcept { return features_.size() / features_per_sample_; }

  void append(std::uint64_t sample, batch_type& to) const {
    const auto i = static_cast<std::size_t>(sample);
    const auto features = features_.subspan(i * features_per_sample_, features_per_sample_);
    const auto targets = targets_.subspan(i * targets_per_sample_, targets_per_sample_);
    to.features.insert(to.features.end(), features.begin(), features.end());
    to.targets.insert(to.targets.end(), targets.begin(), targets.end());
    ++to.count;
  }

 private:
  std::span<const float> features_, targets_;
  std::size_t features_per_sample_, targets_per_sample_;
};

}  // namespace train
HOCKET_END_NAMESPACE
