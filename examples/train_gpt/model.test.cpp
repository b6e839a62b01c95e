// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gradient of the model against differences of its loss, for every parameter, in one and in two stages.
#include "first_values.hpp"
#include "plain_memory.hpp"
#include "stage.hpp"

#include "support/catch.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace gpt;

constexpr model_shape shape{.layers = 2, .width = 16, .heads = 2, .context = 8};
constexpr int sequences = 3;

struct text {
  std::vector<std::uint8_t> bytes;
  std::vector<microbatch> batch;

  text() {
    for (std::size_t i = 0; i < 200; ++i) bytes.push_back(static_cast<std::uint8_t>(mix(i / 3) % 40 + 'a'));
    for (int m = 0; m < 2; ++m) {
      batch.emplace_back();
      for (int s = 0; s < sequences; ++s) {
        batch.back().push_back(std::span(bytes).subspan(static_cast<std::size_t>(40 * m + 11 * s), shape.context + 1));
      }
    }
  }
};

std::vector<std::vector<float>> first_parameters() {
  std::vector<std::vector<float>> all;
  for (const entry& each : entries_of(shape, {0, shape.layers}, {0, shape.heads})) {
    all.push_back(first_values(each, shape, 7));
    // Larger than for training: differences of the loss then stand out from its rounding.
    if (!each.is_gain()) {
      for (float& value : all.back()) value *= 2;
    }
  }
  return all;
}

/// The sum of the losses; gradients are left in `memory`.
double pass(plain_memory& memory, const text& data, int stages, bool exact) {
  block_sum sum(nullptr, exact);
  std::vector<stage> all;
  std::size_t next = 0;
  for (int s = 0; s < stages; ++s) {
    all.emplace_back(shape, part_of(shape.layers, s, stages), range{0, shape.heads}, next, memory, sum, sequences,
                     exact);
    next = all.back().end_parameter();
  }
  memory.begin_pass(0, 1);
  for (stage& each : all) each.begin_pass(data.batch);
  std::vector<float> between(all.front().output_size()), gradient(all.front().output_size());
  for (int m = 0; m < 2; ++m) {
    all.front().forward(m, {}, between);
    if (stages == 2) all.back().forward(m, between, {});
    if (stages == 2) all.back().backward(m, between, {}, gradient);
    all.front().backward(m, {}, gradient, {});
  }
  return all.back().loss().value();
}

TEST_CASE("the gradient of every parameter is the difference quotient of the loss") {
  make_products_repeatable();
  const text data;
  for (const int stages : {1, 2}) {
    for (const bool exact : {false, true}) {
      plain_memory memory(first_parameters());
      pass(memory, data, stages, exact);
      const std::vector<entry> entries = entries_of(shape, {0, shape.layers}, {0, shape.heads});
      for (std::size_t i = 0; i < entries.size(); ++i) {
        // Along a direction of all elements: the sum is larger than what one element would give.
        const std::vector<double> expected(memory.gradient(i).begin(), memory.gradient(i).end());
        double slope = 0, squares = 0;
        for (std::size_t e = 0; e < expected.size(); ++e) squares += expected[e] * expected[e];
        REQUIRE(squares > 0);
        const std::vector<float> kept(memory.parameter(i).begin(), memory.parameter(i).end());
        const double length = std::sqrt(squares), step = 2e-3;
        const auto moved = [&](double by) {
          for (std::size_t e = 0; e < kept.size(); ++e) {
            memory.parameter(i)[e] = static_cast<float>(static_cast<double>(kept[e]) + by * expected[e] / length);
          }
          return pass(memory, data, stages, exact);
        };
        slope = (moved(step) - moved(-step)) / (2 * step);
        memory.set(i, kept);
        INFO(entries[i].name() << ", " << stages << " stages: along its gradient the loss rises by " << slope
                               << ", the gradient says " << length);
        CHECK(std::abs(slope - length) <= 0.01 * length);
      }
    }
  }
}

TEST_CASE("a gradient added exactly does not depend on which sequences share a microbatch") {
  make_products_repeatable();
  const text data;
  plain_memory together(first_parameters()), apart(first_parameters());
  pass(together, data, 1, false);
  pass(apart, data, 1, true);
  for (std::size_t i = 0; i < first_parameters().size(); ++i) {
    double difference = 0, squares = 0;
    for (std::size_t e = 0; e < together.gradient(i).size(); ++e) {
      const double by = together.gradient(i)[e] - apart.gradient(i)[e];
      difference += by * by;
      squares += together.gradient(i)[e] * together.gradient(i)[e];
    }
    CHECK(std::sqrt(difference) <= 1e-5 * std::sqrt(squares));
  }
}

}  // namespace
