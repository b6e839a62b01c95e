// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: eigen
#include "../../examples/train_language_model/model.hpp"

#include "../../examples/train_language_model/bigram.hpp"
#include "../../examples/train_language_model/optimizer.hpp"
#include "../../examples/train_language_model/sampler.hpp"
#include "../../examples/train_language_model/text.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace language_model;

std::vector<std::uint8_t> random_bytes(std::size_t count, std::uint64_t seed) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < count; ++i) bytes.push_back(static_cast<std::uint8_t>(mix(seed + i)));
  return bytes;
}

std::vector<float> gradient_of(model& network, std::span<const byte_span> sequences) {
  std::vector<float> gradient(network.parameters().size());
  network.add_gradient(sequences, gradient);
  return gradient;
}

double norm(std::span<const float> values) {
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(squares);
}

}  // namespace

TEST_CASE("the gradient is the slope of the loss, in every layer", "[language_model]") {
  const model_shape shape{5, 6, 20};
  model network(shape);
  network.initialize(3);
  const std::vector<std::uint8_t> text = random_bytes(60, 1);
  const std::vector<byte_span> sequences = {byte_span(text).first(40), byte_span(text).subspan(30, 17)};
  const std::vector<float> gradient = gradient_of(network, sequences);
  const std::vector<float> start(network.parameters().begin(), network.parameters().end());

  // Along the gradient of one layer alone, the loss must rise with the norm of that part of the gradient.
  const std::size_t layers[] = {256 * 6, 5 * 6 * 20, 20, 20 * 256, 256};
  std::size_t first = 0;
  for (const std::size_t size : layers) {
    const std::span<const float> part = std::span(gradient).subspan(first, size);
    const double expected = norm(part);
    REQUIRE(expected > 0.1);
    const auto loss_at = [&](double distance) {
      for (std::size_t i = 0; i < start.size(); ++i) network.parameters()[i] = start[i];
      for (std::size_t i = 0; i < size; ++i) {
        network.parameters()[first + i] += static_cast<float>(distance * static_cast<double>(part[i]) / expected);
      }
      return network.loss(sequences);
    };
    const double step = 0.02;
    CHECK((loss_at(step) - loss_at(-step)) / (2 * step) == Approx(expected).epsilon(0.003));
    first += size;
  }
  CHECK(first == gradient.size());
}

TEST_CASE("single numbers of the gradient are slopes too", "[language_model]") {
  model network({4, 3, 7});
  network.initialize(8);
  const std::vector<std::uint8_t> text = random_bytes(30, 5);
  const byte_span sequence(text);
  const std::vector<float> gradient = gradient_of(network, std::span(&sequence, 1));
  for (std::size_t i = 0; i < gradient.size(); i += 13) {
    float& parameter = network.parameters()[i];
    const float at = parameter;
    const double step = 0.0625;
    parameter = at + static_cast<float>(step);
    const double above = network.loss(std::span(&sequence, 1));
    parameter = at - static_cast<float>(step);
    const double below = network.loss(std::span(&sequence, 1));
    parameter = at;
    CHECK((above - below) / (2 * step) == Approx(gradient[i]).epsilon(0.02).margin(0.003));
  }
}

TEST_CASE("gradients and losses of sequences add up to those of the batch", "[language_model]") {
  model network({8, 4, 32});
  network.initialize(1);
  const std::vector<std::uint8_t> text = random_bytes(400, 2);
  std::vector<byte_span> batch;
  for (std::size_t i = 0; i < 5; ++i) batch.push_back(byte_span(text).subspan(i * 70, 20 + 9 * i));

  std::vector<float> summed(network.parameters().size());
  double loss = 0;
  for (const byte_span& sequence : batch) loss += network.add_gradient(std::span(&sequence, 1), summed);

  const std::vector<float> whole = gradient_of(network, batch);
  CHECK(network.loss(batch) == Approx(loss).epsilon(1e-6));
  for (std::size_t i = 0; i < whole.size(); ++i) summed[i] -= whole[i];
  CHECK(norm(summed) < 1e-6 * norm(whole));
}

TEST_CASE("a sequence's gradient has the same bits wherever and after whatever it is computed", "[language_model]") {
  const model_shape shape{16, 16, 64};
  const std::vector<std::uint8_t> text = random_bytes(2000, 7);
  const byte_span sequence = byte_span(text).first(80);
  model fresh(shape);
  fresh.initialize(4);
  const std::vector<float> expected = gradient_of(fresh, std::span(&sequence, 1));
  const double expected_loss = fresh.loss(std::span(&sequence, 1));

  model used(shape);
  used.initialize(4);
  const std::vector<byte_span> others = consecutive_sequences(text, used.window(), 64);
  gradient_of(used, others);
  for (std::size_t offset = 0; offset < 8; ++offset) {
    std::vector<std::uint8_t> elsewhere(offset + sequence.size());
    std::copy(sequence.begin(), sequence.end(), elsewhere.begin() + static_cast<std::ptrdiff_t>(offset));
    const byte_span same = byte_span(elsewhere).subspan(offset);
    std::vector<float> buffer(expected.size() + offset);
    const std::span<float> gradient = std::span(buffer).subspan(offset);
    CHECK(used.add_gradient(std::span(&same, 1), gradient) == expected_loss);
    CHECK(std::vector<float>(gradient.begin(), gradient.end()) == expected);
  }
}

TEST_CASE("the scores are those that the loss is computed from", "[language_model]") {
  model network({6, 5, 16});
  network.initialize(2);
  const std::vector<std::uint8_t> text = random_bytes(7, 3);
  const byte_span sequence(text);
  const std::span<const float> scores = network.scores(sequence.first(6));
  double total = 0;
  for (const float score : scores) total += std::exp(static_cast<double>(score));
  const double loss = std::log(total) - static_cast<double>(scores[text[6]]);
  CHECK(network.loss(std::span(&sequence, 1)) == Approx(loss).epsilon(1e-6));
}

TEST_CASE("the optimizer goes downhill and repeats itself to the last bit", "[language_model]") {
  const auto minimise = [] {
    std::vector<float> at = {3, -2, 0.5F};
    adam optimizer(at.size());
    for (int step = 0; step < 500; ++step) {
      const std::vector<float> gradient = {2 * (at[0] - 1), 20 * (at[1] + 1), 0.2F * at[2]};
      optimizer.step(at, gradient, learning_rate_at(step, 500, 0.05F));
    }
    return at;
  };
  const std::vector<float> found = minimise();
  CHECK(found[0] == Approx(1).margin(0.02));
  CHECK(found[1] == Approx(-1).margin(0.02));
  CHECK(found[2] == Approx(0).margin(0.02));
  CHECK(minimise() == found);
}

TEST_CASE("the bigram model's probabilities sum to one and follow the counts", "[language_model]") {
  const std::string words = "the theory of the thing";
  const std::vector<std::uint8_t> text(words.begin(), words.end());
  const bigram_model bigram(text);
  for (const int byte : {static_cast<int>('t'), static_cast<int>('g'), 0}) {
    double sum = 0;
    for (int next = 0; next < 256; ++next) {
      sum += bigram.probability(static_cast<std::uint8_t>(byte), static_cast<std::uint8_t>(next));
    }
    CHECK(sum == Approx(1));
  }
  // All four 't' are followed by 'h', the only kind: (4 + 1 * (4 + 1) / (23 + 256)) / (4 + 1).
  CHECK(bigram.probability('t', 'h') == Approx((4 + 5.0 / 279) / 5));
  // 'g' ends the text and has no successor, so plain frequencies count.
  CHECK(bigram.probability('g', 'e') == Approx(4.0 / 279));
}

TEST_CASE("the bigram loss of random bytes is that of guessing", "[language_model]") {
  const std::vector<std::uint8_t> text = random_bytes(4'000'000, 11);
  CHECK(bigram_model(byte_span(text).first(3'900'000)).loss(byte_span(text).last(100'000), 1) ==
        Approx(std::log(256.0)).epsilon(0.01));
}

TEST_CASE("consecutive sequences predict every byte after the first window once", "[language_model]") {
  const std::vector<std::uint8_t> text = random_bytes(203, 1);
  std::vector<std::uint8_t> predicted;
  for (const byte_span sequence : consecutive_sequences(text, 10, 64)) {
    predicted.insert(predicted.end(), sequence.begin() + 10, sequence.end());
  }
  CHECK(predicted == std::vector<std::uint8_t>(text.begin() + 10, text.end()));
}

TEST_CASE("drawn sequences lie in the text and depend on seed, step and index", "[language_model]") {
  const std::vector<std::uint8_t> text = random_bytes(5000, 1);
  const auto start = [&](std::uint64_t seed, std::uint64_t step, std::uint64_t index) {
    const byte_span sequence = draw_sequence(text, 16, 64, seed, step, index);
    CHECK(sequence.size() == 80);
    const auto first = sequence.data() - text.data();
    CHECK((first >= 0 && first <= 4920));
    return first;
  };
  CHECK(start(1, 2, 3) == start(1, 2, 3));
  CHECK(start(1, 2, 3) != start(2, 2, 3));
  CHECK(start(1, 2, 3) != start(1, 3, 3));
  CHECK(start(1, 2, 3) != start(1, 2, 4));
  CHECK(draw_sequence(byte_span(text).first(80), 16, 64, 1, 1, 1).data() == text.data());
}

TEST_CASE("a low temperature picks the likeliest byte, a high one any", "[language_model]") {
  std::vector<float> scores(256, 0.0F);
  scores[65] = 2;
  CHECK(draw_byte(scores, 0.01, 0.999) == 65);
  CHECK(draw_byte(scores, 1000.0, 0.1) == 25);
  CHECK(draw_byte(scores, 1000.0, 0.9) == 230);
}

TEST_CASE("printable text keeps good UTF-8 and nothing that could harm a terminal", "[language_model]") {
  CHECK(printable("a\xe2\x80\x9c\nb") == "a\xe2\x80\x9c\nb");
  CHECK(printable("\x1b[2J\x80\xe2\x80") == "?[2J???");
  CHECK(printable("\xe2" "ab\xff") == "?ab?");
}

TEST_CASE("a missing text is an error that says what to do", "[language_model]") {
  std::string message;
  try {
    read_text("/nowhere/text");
  } catch (const std::runtime_error& problem) {
    message = problem.what();
  }
  CHECK(message.find("/nowhere/text") != std::string::npos);
  CHECK(message.find("--text") != std::string::npos);
}
