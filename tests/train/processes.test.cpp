// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: ucx
/// @file
/// Training with processes as ranks.
#include <hocket/train/ucx.hpp>

#include "support/catch.hpp"
#include "support/text.hpp"

#include <hocket/core/error.hpp>
#include <hocket/train/mlp.hpp>
#include <hocket/train/samples.hpp>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace {

using namespace hocket::train;

/// Features, and targets that are a linear function of them.
struct linear_data {
  std::vector<float> x, y;

  explicit linear_data(std::size_t count) {
    for (std::size_t i = 0; i < 2 * count; ++i) x.push_back(hocket::train::detail::normal_number(5, i));
    for (std::size_t i = 0; i < count; ++i) y.push_back(3 * x[2 * i] - x[2 * i + 1] + 1);
  }
  number_samples samples() const { return {x, 2, y, 1}; }
};

train_options quiet_options() {
  train_options result;
  result.batch = 16;
  result.epochs = 4;
  result.learning_rate = 0.05;
  result.shows_progress = false;
  return result;
}

/// Ends its process in its third batch.
struct ending_model {
  mlp inner = linear_model("ending", 2, 1);
  int batches = 0;

  std::string name() const { return inner.name(); }
  std::vector<model_parameter> parameters() const { return inner.parameters(); }
  double forward(const parameter_values& values, const number_batch& in) {
    if (++batches == 3 && in.count == 5) ::raise(SIGKILL);
    return inner.forward(values, in);
  }
  void backward(const parameter_values& values, const number_batch& in, const parameter_gradients& to) {
    inner.backward(values, in, to);
  }
};

/// Throws in its third batch.
struct throwing_model : ending_model {
  explicit throwing_model(std::function<void()> what) : act(std::move(what)) {}
  std::function<void()> act;

  double forward(const parameter_values& values, const number_batch& in) {
    if (++batches == 3 && in.count == 5) act();
    return inner.forward(values, in);
  }
};

}  // namespace

TEST_CASE("three processes have the losses of threads") {
  const linear_data data(100);
  const mlp model = linear_model("line", 2, 1);
  const report expected = train_distributed(model, data.samples(), nodes{3}, quiet_options());
  const report found = train_distributed(model, data.samples(), nodes{3}, quiet_options(), processes{});
  CHECK(found.model_name == "line");
  CHECK(found.nodes_used == 3);
  CHECK(found.status == "distributed_trained");
  CHECK(found.steps == expected.steps);
  CHECK(found.samples == 400);
  CHECK(std::abs(found.loss - expected.loss) < 1e-9);
  CHECK(found.loss < found.first_loss);
  REQUIRE(found.parameters.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(std::abs(found.parameters[i] - expected.parameters[i]) < 1e-6F);
}

TEST_CASE("an exception in a process ends the training with an error that has its text") {
  const linear_data data(100);
  struct cause {
    std::function<void()> act;
    hocket::errc code;
    std::string words;
  };
  const std::string long_text(5'000, 'x');
  const cause causes[] = {
      {[] { throw std::out_of_range("no such token"); }, hocket::errc::peer_lost, "no such token"},
      {[] { hocket::raise(hocket::errc::corrupted, "the vocabulary is damaged"); }, hocket::errc::corrupted,
       "the vocabulary is damaged"},
      {[] { throw std::system_error(ENOSPC, std::generic_category()); }, hocket::errc::peer_lost, "No space left"},
      {[] { throw 7; }, hocket::errc::peer_lost, "an exception that is not a std::exception"},
      {[&] { throw std::runtime_error(long_text); }, hocket::errc::peer_lost, "xxx"},
      {[] { throw std::runtime_error("a byte \xff"); }, hocket::errc::peer_lost, "a byte \xef\xbf\xbd"},
  };
  for (const cause& each : causes) {
    INFO(each.words);
    hocket::failure found;
    try {
      train_distributed(throwing_model(each.act), data.samples(), nodes{3}, quiet_options(), processes{});
    } catch (const hocket::error& thrown) {
      found = thrown.cause();
    }
    INFO(found.message());
    CHECK(found.code == each.code);
    CHECK(hocket_test::contains(found.reason, each.words));
    CHECK((found.context.rank >= 0 && found.context.rank < 3 && found.context.ranks == 3));
  }
}

TEST_CASE("a process that ends is named") {
  const linear_data data(100);
  std::string found;
  try {
    train_distributed(ending_model(), data.samples(), nodes{3}, quiet_options(), processes{});
  } catch (const hocket::error& cause) {
    found = cause.what();
  }
  INFO(found);
  CHECK(hocket_test::contains(found, "was ended by signal 9"));
}
