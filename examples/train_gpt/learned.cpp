// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "learned.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gpt {

learned_model::learned_model(const model_shape& shape, std::vector<std::vector<float>> parameters)
    : shape_(shape), memory_(std::move(parameters)), sum_(nullptr, false),
      all_(shape, {0, shape.layers}, {0, shape.heads}, 0, memory_, sum_, 1, false) {}

double learned_model::loss(byte_span text, std::size_t sequences) {
  const std::size_t length = static_cast<std::size_t>(shape_.context) + 1;
  const std::size_t count = std::min(sequences, text.size() / length);
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::vector<microbatch> one{{text.subspan((text.size() - length) * i / count, length)}};
    all_.begin_step();
    all_.begin_pass(one);
    all_.forward(0, {}, {});
    sum += all_.loss().value();
  }
  return sum / static_cast<double>(count * static_cast<std::size_t>(shape_.context));
}

std::string learned_model::write(byte_span prompt, std::size_t count, double temperature, std::uint64_t seed) {
  const auto context = static_cast<std::size_t>(shape_.context);
  std::vector<std::uint8_t> text(prompt.begin(), prompt.end());
  std::string written;
  for (std::size_t i = 0; i < count; ++i) {
    // The context ends where the text does; the rest of the sequence is not used.
    const std::size_t known = std::min(context, text.size());
    std::vector<std::uint8_t> bytes(text.end() - static_cast<std::ptrdiff_t>(known), text.end());
    bytes.resize(context + 1, 0);
    const std::vector<float> scores = all_.scores_after(bytes, known - 1);
    const double highest = *std::max_element(scores.begin(), scores.end());
    double total = 0;
    std::vector<double> weights;
    for (const float score : scores) {
      weights.push_back(std::exp((static_cast<double>(score) - highest) / temperature));
      total += weights.back();
    }
    double left = uniform(mix(mix(seed) + i)) * total;
    std::size_t next = 0;
    while (next + 1 < weights.size() && (left -= weights[next]) >= 0) ++next;
    text.push_back(static_cast<std::uint8_t>(next));
    written.push_back(static_cast<char>(next));
  }
  return written;
}

}  // namespace gpt
