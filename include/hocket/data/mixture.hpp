// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Mixes several data sets by integer weights. The mixture consists of blocks of as many samples as the weights are in
/// sum; each block has exactly `weight` samples of each source, in a permuted order. A source whose epoch ends begins
/// its next one, so that a mixture has no end. Like an order, it is computed: each position costs the same.
///
/// Weights may change during a training. The position of each change is part of `recipe()`, which belongs into the
/// checkpoint, so that a training that goes back mixes again what it has mixed.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/data/order.hpp>
#include <hocket/data/permutation.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace data {

/// A sample of one of several sources.
struct mixed_sample {
  std::size_t source = 0;    ///< index of the source
  std::uint64_t epoch = 0;   ///< epoch of the source
  std::uint64_t sample = 0;  ///< number of the sample in the source

  bool operator==(const mixed_sample&) const = default;
};

/// Weights of the sources from a position of the mixture on.
struct mixture_weights {
  std::uint64_t begin = 0;             ///< position
  std::vector<std::uint64_t> weights;  ///< by source

  bool operator==(const mixture_weights&) const = default;
};

class mixture_order;

/// A mixture of sources. All ranks must make the same mixture, and change it in the same way. A value.
class mixture {
 public:
  /// The most that weights are in sum.
  static constexpr std::uint64_t most_weight = std::uint64_t{1} << 32;

  /// Mixes `sources` by `weights`, one for each. A source of weight 0 is not used. Raises `invalid_argument`, as the
  /// others, if the numbers of sources and weights differ, if all weights are 0, or if a source that is used is empty.
  mixture(std::vector<order> sources, std::vector<std::uint64_t> weights, std::uint64_t seed)
      : sources_(std::move(sources)), seed_(seed) {
    append({0, std::move(weights)});
  }

  /// Mixes `sources` as the mixture did whose `recipe()` is given.
  mixture(std::vector<order> sources, std::string_view recipe, std::uint64_t seed)
      : sources_(std::move(sources)), seed_(seed) {
    for (mixture_weights& each : read_recipe(recipe)) {
      if (next_change(each.begin) != each.begin) {
        refuse(hocket::detail::concat(
            {"the recipe changes weights at position ", each.begin, ", where no block of the weights before ends"}));
      }
      append(std::move(each));
    }
  }

  /// Changes the weights from the end of the block at `position` on, and returns that position. A training calls this
  /// with the position of its cursor. Raises `invalid_argument` if the weights changed at a later position before.
  std::uint64_t change(std::uint64_t position, std::vector<std::uint64_t> weights) {
    const std::uint64_t begin = next_change(position);
    require_weights(weights);
    if (parts_.back().recipe.begin == begin) parts_.pop_back();
    append({begin, std::move(weights)});
    return begin;
  }

  /// Returns all weights with their positions, as a text of one line: "0 3 1;400 1 1" for weights 3 and 1, and 1 and 1
  /// from position 400 on.
  std::string recipe() const {
    std::string text;
    for (const part& each : parts_) {
      hocket::detail::append(text, {text.empty() ? "" : ";", each.recipe.begin});
      for (const std::uint64_t weight : each.recipe.weights) hocket::detail::append(text, {" ", weight});
    }
    return text;
  }

  /// Returns the positions. Later changes of the mixture do not affect the result. Raises `invalid_argument` if
  /// `number` is not 0: the mixture has no end, and so no other epoch.
  mixture_order epoch(std::uint64_t number = 0) const;

  /// Returns the number of positions.
  std::uint64_t size() const noexcept { return permutation::most; }
  std::size_t sources() const noexcept { return sources_.size(); }

 private:
  friend class mixture_order;
  struct part {
    mixture_weights recipe;
    std::vector<std::uint64_t> ends;    ///< sums of the weights up to each source
    std::vector<std::uint64_t> before;  ///< samples of each source before this part
    std::uint64_t sum() const noexcept { return ends.back(); }
  };

  [[noreturn]] static void refuse(std::string reason) {
    raise(errc::invalid_argument, std::move(reason), {.operation = "data::mixture"});
  }

  void require_weights(const std::vector<std::uint64_t>& weights) const {
    if (weights.empty() || weights.size() != sources_.size()) {
      refuse(hocket::detail::concat({"a mixture of ", sources_.size(), " sources needs one weight for each, and ",
                                     weights.size(), " are given"}));
    }
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] > most_weight - sum) refuse("the sum of the weights is more than 2^32");
      sum += weights[i];
      if (weights[i] > 0 && sources_[i].size() == 0)
        refuse(hocket::detail::concat({"source ", i, " has no samples: its weight must be 0"}));
    }
    if (sum == 0) refuse("at least one weight must be more than 0");
  }

  /// Returns the end of the block at `position`, or `position` if a block begins there.
  std::uint64_t next_change(std::uint64_t position) const {
    if (parts_.empty()) return 0;
    const part& last = parts_.back();
    if (position > permutation::most || position < last.recipe.begin) {
      refuse(hocket::detail::concat({"the weights can't change at position ", position, ": they changed at position ",
                                     last.recipe.begin, " already"}));
    }
    const std::uint64_t rest = (position - last.recipe.begin) % last.sum();
    return rest == 0 ? position : position - rest + last.sum();
  }

  void append(mixture_weights weights) {
    require_weights(weights.weights);
    part added{std::move(weights), {}, std::vector<std::uint64_t>(sources_.size(), 0)};
    std::partial_sum(added.recipe.weights.begin(), added.recipe.weights.end(), std::back_inserter(added.ends));
    if (!parts_.empty()) {
      const part& last = parts_.back();
      const std::uint64_t blocks = (added.recipe.begin - last.recipe.begin) / last.sum();
      for (std::size_t i = 0; i < sources_.size(); ++i)
        added.before[i] = last.before[i] + blocks * last.recipe.weights[i];
    }
    parts_.push_back(std::move(added));
  }

  /// Returns source and epoch of a position; `sample` is the position in the order of that epoch.
  mixed_sample locate(std::uint64_t position) const {
    const auto after = std::upper_bound(parts_.begin(), parts_.end(), position,
                                        [](std::uint64_t at, const part& each) { return at < each.recipe.begin; });
    const part& in = *(after - 1);
    const std::uint64_t block = (position - in.recipe.begin) / in.sum(), begin = in.recipe.begin + block * in.sum();
    const std::uint64_t drawn = permutation(in.sum(), detail::derived_key(seed_, begin))[position - begin];
    const auto end = std::upper_bound(in.ends.begin(), in.ends.end(), drawn);
    const auto source = static_cast<std::size_t>(end - in.ends.begin());
    const std::uint64_t weight = in.recipe.weights[source];
    const std::uint64_t number = in.before[source] + block * weight + drawn - (*end - weight);
    const std::uint64_t size = sources_[source].size();
    return {source, number / size, number % size};
  }

  static std::vector<mixture_weights> read_recipe(std::string_view text) {
    std::vector<mixture_weights> result;
    std::vector<std::uint64_t> numbers;
    const char* at = text.data();
    const char* const end = at + text.size();
    for (;;) {
      std::uint64_t number = 0;
      const auto [after, error] = std::from_chars(at, end, number);
      const bool is_separated = after == end || *after == ' ' || *after == ';';
      if (error != std::errc() || !is_separated) {
        refuse(hocket::detail::concat({"the recipe of a mixture has no number at byte ", at - text.data(),
                                       ": it must look like \"0 3 1;400 1 1\""}));
      }
      numbers.push_back(number);
      if (after == end || *after == ';') {
        result.push_back({numbers[0], {numbers.begin() + 1, numbers.end()}});
        numbers.clear();
      }
      if (after == end) return result;
      at = after + 1;
    }
  }

  std::vector<order> sources_;
  std::uint64_t seed_;
  std::vector<part> parts_;  ///< by position
};

/// The positions of a mixture, as those of an epoch of an order. For one thread at a time: it keeps the current epoch
/// of each source.
class mixture_order {
 public:
  /// There is no end.
  std::uint64_t size() const noexcept { return permutation::most; }

  /// Returns the sample at `position`. Cost: about 200 ns; proportional to the number of shards when a source begins an
  /// epoch whose shards are listed.
  mixed_sample operator[](std::uint64_t position) {
    mixed_sample found = from_.locate(position);
    current& now = current_[found.source];
    if (now.epoch != found.epoch) now = current(found.epoch, from_.sources_[found.source].epoch(found.epoch));
    found.sample = now.order[found.sample];
    return found;
  }

 private:
  friend class mixture;
  struct current {
    current(std::uint64_t number, epoch_order its_order) : epoch(number), order(std::move(its_order)) {}
    std::uint64_t epoch;
    epoch_order order;
  };
  explicit mixture_order(const mixture& from) : from_(from) {
    for (const order& each : from_.sources_) current_.emplace_back(0, each.epoch(0));
  }

  mixture from_;
  std::vector<current> current_;
};

inline mixture_order mixture::epoch(std::uint64_t number) const {
  if (number == 0) return mixture_order(*this);
  refuse(hocket::detail::concat({"epoch ", number,
                                 " of a mixture is asked for, which has no end, and only epoch 0: a "
                                 "cursor with another epoch belongs to other data"}));
}

}  // namespace data
HOCKET_END_NAMESPACE
