// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Trains a classifier of 100 000 samples of 128 features on 3, 8 and 16 nodes, which are threads here.
// expect: NeuralNet_Model on 16 nodes: distributed_trained, 391 steps, loss 1\.52[0-9]* -> 0\.31
#include <hocket/train.hpp>

#include <cstdio>
#include <random>
#include <vector>

int main() {
  constexpr std::size_t samples = 100'000, features = 128;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> x(samples * features), y(samples * 2);
  for (float& each : x) each = normal(random);
  for (std::size_t i = 0; i < samples; ++i)
    y[2 * i + (x[i * features] + x[i * features + 1] > 0 ? 1 : 0)] = 1;  // two classes

  const hocket::train::mlp model("NeuralNet_Model", {features, 16, 2}, hocket::train::loss_kind::cross_entropy);
  const hocket::train::number_samples data(x, features, y, 2);
  for (const int nodes : {3, 8, 16}) {
    const auto found =
        hocket::train::train_distributed(model, data, hocket::train::nodes{nodes}, {.learning_rate = 0.003});
    std::printf("%s on %d nodes: %s, %d steps, loss %.4f -> %.4f, %.0f samples per second\n", found.model_name.c_str(),
                found.nodes_used, found.status.c_str(), static_cast<int>(found.steps), found.first_loss, found.loss,
                found.samples_per_second);
  }
}
