// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: eigen
#include "../../examples/train_language_model/training.hpp"

#include "../../examples/train_language_model/gradient_sum.hpp"
#include "../../examples/train_language_model/model.hpp"
#include "../../examples/train_language_model/text.hpp"

#include <hocket/hocket.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace {

using namespace language_model;

/// A text with something to learn: each byte is a function of the two before it, with a little noise.
std::vector<std::uint8_t> learnable_text(std::size_t count) {
  std::vector<std::uint8_t> text = {1, 2};
  while (text.size() < count) {
    const std::uint64_t random = mix(text.size());
    const auto expected = static_cast<std::uint8_t>(mix(text.back() * 31U + text[text.size() - 2]) % 16);
    text.push_back(random % 10 == 0 ? static_cast<std::uint8_t>((random >> 8) % 16) : expected);
  }
  return text;
}

constexpr model_shape shape{4, 8, 32};

/// What each of `ranks` ranks reports after training on its own.
template <typename Sum>
std::vector<training_record> train_on(int ranks, const training_options& options) {
  const std::vector<std::uint8_t> text = learnable_text(20'000);
  std::vector<training_record> records(static_cast<std::size_t>(ranks));
  hocket::local::run(ranks, [&](auto comm) {
    model network(shape);
    // Only rank 0's parameters count, so the others start from different ones.
    network.initialize(static_cast<std::uint64_t>(comm.rank()));
    records[static_cast<std::size_t>(comm.rank())] =
        train<Sum>(comm, network, split(text), options, [](const training_record&) {});
  });
  return records;
}

training_options short_training() {
  training_options options;
  options.steps = 50;
  options.batch = 10;
  options.evaluate_every = 20;
  options.seconds = 1e6;
  return options;
}

double largest_difference(const training_record& left, const training_record& right) {
  REQUIRE(left.steps.size() == right.steps.size());
  double largest = std::abs(left.held_out.back().loss / right.held_out.back().loss - 1);
  for (std::size_t i = 0; i < left.steps.size(); ++i) {
    largest = std::max(largest, std::abs(left.steps[i].loss / right.steps[i].loss - 1));
  }
  return largest;
}

bool same_bits(const training_record& left, const training_record& right) {
  bool same = left.steps.size() == right.steps.size() && left.held_out.size() == right.held_out.size();
  for (std::size_t i = 0; same && i < left.steps.size(); ++i) {
    same = left.steps[i].loss == right.steps[i].loss && left.steps[i].gradient_norm == right.steps[i].gradient_norm;
  }
  for (std::size_t i = 0; same && i < left.held_out.size(); ++i) {
    same = left.held_out[i].step == right.held_out[i].step && left.held_out[i].loss == right.held_out[i].loss;
  }
  return same;
}

}  // namespace

TEST_CASE("the loss falls, on the text and on what was held out", "[language_model]") {
  training_options options = short_training();
  options.steps = 300;
  const training_record record = train_on<float_gradient_sum>(2, options)[0];
  CHECK(record.steps.front().loss > 5);
  CHECK(record.steps.back().loss < 2.5);
  CHECK(record.held_out.back().loss < 2.5);
  CHECK(record.tokens == 300.0 * 10 * 64);
}

TEST_CASE("losses are nearly those of one rank for any ranks and microbatches", "[language_model]") {
  training_options options = short_training();
  const training_record one = train_on<float_gradient_sum>(1, options)[0];
  for (const int ranks : {1, 2, 3, 4}) {
    options.microbatches = ranks == 2 ? 4 : 1;
    for (const training_record& record : train_on<float_gradient_sum>(ranks, options)) {
      CHECK(largest_difference(record, one) < 1e-5);
    }
  }
}

TEST_CASE("exact sums give the same bits for any ranks and microbatches, more ranks than sequences too",
          "[language_model]") {
  training_options options = short_training();
  const training_record one = train_on<exact_gradient_sum>(1, options)[0];
  CHECK(largest_difference(one, train_on<float_gradient_sum>(1, options)[0]) < 1e-5);
  for (const int ranks : {2, 3, 4, 12}) {
    options.microbatches = ranks % 3 + 1;
    for (const training_record& record : train_on<exact_gradient_sum>(ranks, options)) CHECK(same_bits(record, one));
  }
}

TEST_CASE("when time is up all ranks stop after the same step", "[language_model]") {
  training_options options = short_training();
  options.seconds = 1e-9;
  for (const training_record& record : train_on<float_gradient_sum>(3, options)) {
    CHECK(record.steps.size() == 1);
    CHECK(record.held_out.size() == 1);
  }
}

TEMPLATE_TEST_CASE("the gradient is the mean over all bytes, however unequal the parts", "[language_model]",
                   float_gradient_sum, exact_gradient_sum) {
  const std::vector<std::uint8_t> text = learnable_text(300);
  const std::vector<byte_span> all = {byte_span(text).first(12), byte_span(text).subspan(20, 90),
                                      byte_span(text).subspan(110, 7), byte_span(text).subspan(120, 50)};
  constexpr double bytes = 8 + 86 + 3 + 46;
  model network(shape);
  network.initialize(1);
  std::vector<float> expected(network.parameters().size());
  const double loss = network.add_gradient(all, expected) / bytes;

  step_total total;
  std::vector<float> gradient;
  hocket::local::run(2, [&](auto comm) {
    model own(shape);
    own.initialize(1);
    TestType sum(expected.size());
    const std::span<const byte_span> mine = part_of(std::span<const byte_span>(all), comm.rank(), 2);
    sum.add(own, mine.first(1));
    sum.add(own, mine.last(1));
    sum.all_reduce(comm);
    const step_total result = sum.finish();
    if (comm.rank() != 1) return;
    total = result;
    gradient.assign(sum.gradient().begin(), sum.gradient().end());
  });
  CHECK(total.tokens == bytes);
  CHECK(total.loss == Approx(loss).epsilon(1e-6));
  CHECK_FALSE(total.stop);
  double squares = 0;
  double difference = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double mean = static_cast<double>(expected[i]) / bytes;
    squares += mean * mean;
    difference += std::pow(static_cast<double>(gradient[i]) - mean, 2);
  }
  CHECK(std::sqrt(difference) < 1e-6 * std::sqrt(squares));
  CHECK(total.gradient_norm == Approx(std::sqrt(squares)).epsilon(1e-6));
}

TEST_CASE("parts of a batch cover it once and differ by at most one", "[language_model]") {
  const std::vector<int> whole = {0, 1, 2, 3, 4, 5, 6};
  for (int ranks = 1; ranks < 10; ++ranks) {
    std::vector<int> joined;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto part = part_of(std::span<const int>(whole), rank, ranks);
      const std::size_t least = whole.size() / static_cast<std::size_t>(ranks);
      CHECK((part.size() == least || part.size() == least + 1));
      joined.insert(joined.end(), part.begin(), part.end());
    }
    CHECK(joined == whole);
  }
}
