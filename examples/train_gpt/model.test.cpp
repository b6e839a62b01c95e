// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compares the model's gradient with difference quotients of its loss, for every parameter, in one and in two stages.
#include "first_values.hpp"
#include "plain_memory.hpp"
#include "stage.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace gpt;

constexpr model_shape shape{.layers = 2, .width = 16, .heads = 2, .context = 8};

/// Six sequences, divided over the microbatches.
struct text {
  std::vector<std::uint8_t> bytes;
  std::vector<microbatch> batch;

  explicit text(int sequences_per_microbatch = 3) {
    for (std::size_t i = 0; i < 200; ++i) bytes.push_back(static_cast<std::uint8_t>(mix(i / 3) % 40 + 'a'));
    for (std::size_t i = 0; i < 6; ++i) {
      if (i % static_cast<std::size_t>(sequences_per_microbatch) == 0) batch.emplace_back();
      batch.back().push_back(std::span(bytes).subspan(11 * i + 7 * (i / 3), shape.context + 1));
    }
  }
  int sequences() const { return static_cast<int>(batch.front().size()); }
};

std::vector<std::vector<float>> first_parameters() {
  std::vector<std::vector<float>> all;
  for (const entry& each : entries_of(shape, {0, shape.layers}, {0, shape.heads})) {
    all.push_back(first_values(each, shape, 7));
    // Values larger than for training, so that differences of the loss exceed its rounding errors.
    if (!each.is_gain()) {
      for (float& value : all.back()) value *= 2;
    }
  }
  return all;
}

/// Returns the sum of the losses; `memory` has the gradients afterwards.
double pass(plain_memory& memory, const text& data, int stages, bool exact) {
  block_sum sum(nullptr, exact);
  std::vector<stage> all;
  std::size_t next = 0;
  for (int s = 0; s < stages; ++s) {
    all.emplace_back(shape, part_of(shape.layers, s, stages), range{0, shape.heads}, next, memory, sum,
                     data.sequences(), exact);
    next = all.back().end_parameter();
  }
  memory.begin_pass(0, 1);
  for (stage& each : all) each.begin_pass(data.batch);
  std::vector<float> between(all.front().output_size()), gradient(all.front().output_size());
  for (int m = 0; m < static_cast<int>(data.batch.size()); ++m) {
    all.front().forward(m, {}, between);
    if (stages == 2) all.back().forward(m, between, {});
    if (stages == 2) all.back().backward(m, between, {}, gradient);
    all.front().backward(m, {}, gradient, {});
  }
  return all.back().loss().value();
}

TEST_CASE("the gradient of each parameter equals the difference quotient of the loss") {
  const text data;
  for (const int stages : {1, 2}) {
    for (const bool exact : {false, true}) {
      plain_memory memory(first_parameters());
      pass(memory, data, stages, exact);
      const std::vector<entry> entries = entries_of(shape, {0, shape.layers}, {0, shape.heads});
      for (std::size_t i = 0; i < entries.size(); ++i) {
        const std::vector<double> expected(memory.gradient(i).begin(), memory.gradient(i).end());
        const std::vector<float> kept(memory.parameter(i).begin(), memory.parameter(i).end());
        double squares = 0;
        for (const double each : expected) squares += each * each;
        REQUIRE(squares > 0);
        const double length = std::sqrt(squares), elements = static_cast<double>(expected.size());
        const auto slope_along = [&](const std::vector<double>& direction, double step) {
          const auto moved = [&](double by) {
            for (std::size_t e = 0; e < kept.size(); ++e) {
              memory.parameter(i)[e] = static_cast<float>(static_cast<double>(kept[e]) + by * direction[e]);
            }
            return pass(memory, data, stages, exact);
          };
          const double slope = (moved(step) - moved(-step)) / (2 * step);
          memory.set(i, kept);
          return slope;
        };
        INFO(entries[i].name() << ", " << stages << " stages, exact: " << exact);
        // Along the gradient itself, where the slope is steepest, and along independent directions: a missing part of a
        // gradient does not show along the rest of it.
        std::vector<double> along = expected;
        for (double& each : along) each /= length;
        CHECK(slope_along(along, 2e-3) == Approx(length).epsilon(0.01));
        for (std::uint64_t seed = 0; seed < 3; ++seed) {
          std::vector<double> direction;
          double slope = 0;
          for (std::size_t e = 0; e < expected.size(); ++e) {
            direction.push_back((mix(mix(seed) + e) % 2 == 0 ? 1 : -1) / std::sqrt(elements));
            slope += direction.back() * expected[e];
          }
          CHECK(slope_along(direction, 1e-2) == Approx(slope).margin(0.1 * length / std::sqrt(elements) + 2e-3));
        }
      }
    }
  }
}

TEST_CASE("sequences that are computed one by one give the same bits for any size of the microbatches") {
  const text each_alone(1);
  plain_memory alone(first_parameters());
  const double loss = pass(alone, each_alone, 1, true);
  for (const int sequences : {2, 3, 6}) {
    for (const int stages : {1, 2}) {
      const text data(sequences);
      plain_memory together(first_parameters());
      INFO(sequences << " sequences per microbatch, " << stages << " stages");
      CHECK(pass(together, data, stages, true) == loss);
      for (std::size_t i = 0; i < first_parameters().size(); ++i) {
        CHECK(std::equal(together.gradient(i).begin(), together.gradient(i).end(), alone.gradient(i).begin()));
      }
    }
  }
}

TEST_CASE("sequences that are computed together give the same gradient except for rounding") {
  const text data;
  plain_memory together(first_parameters()), alone(first_parameters());
  pass(together, data, 1, false);
  pass(alone, data, 1, true);
  for (std::size_t i = 0; i < first_parameters().size(); ++i) {
    double difference = 0, squares = 0;
    for (std::size_t e = 0; e < together.gradient(i).size(); ++e) {
      const double by = together.gradient(i)[e] - alone.gradient(i)[e];
      difference += by * by;
      squares += together.gradient(i)[e] * together.gradient(i)[e];
    }
    CHECK(std::sqrt(difference) <= 1e-5 * std::sqrt(squares));
  }
}

}  // namespace
