// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Training with one call: every number and kind of ranks has the same losses, gradients are right, a restart continues, and
/// what can't be trained is refused in words.
#include <hocket/train.hpp>

#include "observe/shown_steps.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/text.hpp"

#include <hocket/checkpoint/store.hpp>
#include <hocket/core/error.hpp>
#include <hocket/group/local.hpp>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace hocket::train;
using hocket_test::contains;
using hocket_test::read_file;
using hocket_test::scratch_directory;

constexpr std::size_t features = 5, targets = 3;

/// Samples of which each has the class of its greatest of three sums.
struct classified {
  std::vector<float> x, y;

  explicit classified(std::size_t count) : x(count * features), y(count * targets) {
    for (std::size_t i = 0; i < count; ++i) {
      std::size_t best = 0;
      float sums[targets] = {};
      for (std::size_t k = 0; k < features; ++k) {
        x[i * features + k] = hocket::train::detail::normal_number(3, i * features + k);
        for (std::size_t t = 0; t < targets; ++t)
          sums[t] += x[i * features + k] * static_cast<float>((k * 7 + t * 5) % 4);
      }
      for (std::size_t t = 1; t < targets; ++t) best = sums[t] > sums[best] ? t : best;
      y[i * targets + best] = 1;
    }
  }

  number_samples samples() const { return {x, features, y, targets}; }
};

mlp small_model(loss_kind loss = loss_kind::cross_entropy) { return mlp("small", {features, 6, targets}, loss); }

train_options quiet(std::uint64_t batch, std::uint64_t epochs = 1) {
  train_options result;
  result.batch = batch;
  result.epochs = epochs;
  result.learning_rate = 0.01;
  result.shows_progress = false;
  return result;
}

/// Returns the error of `act`, which must be a `hocket::error`.
template <class Act>
std::string error_of(Act act) {
  try {
    act();
  } catch (const hocket::error& cause) {
    return cause.what();
  }
  return "";
}

/// Fails on one of the ranks, in its second batch.
struct failing_model {
  mlp inner = small_model();
  std::atomic<int>* copies;
  bool is_last = false;
  int batches = 0;

  explicit failing_model(std::atomic<int>& made) : copies(&made) {}
  failing_model(const failing_model& other) : inner(other.inner), copies(other.copies), is_last(++*copies == 3) {}

  std::string name() const { return "failing"; }
  std::vector<model_parameter> parameters() const { return inner.parameters(); }
  double forward(const parameter_values& values, const number_batch& in) {
    if (is_last && ++batches == 2) throw std::out_of_range("no such token");
    return inner.forward(values, in);
  }
  void backward(const parameter_values& values, const number_batch& in, const parameter_gradients& to) {
    inner.backward(values, in, to);
  }
};

/// Has a loss or a gradient that is not finite, on one rank, in its third batch.
struct diverging_model {
  mlp inner = small_model();
  double added_loss = 0, added_gradient = 0;
  int batches = 0;

  std::string name() const { return inner.name(); }
  std::vector<model_parameter> parameters() const { return inner.parameters(); }
  double forward(const parameter_values& values, const number_batch& in) {
    return inner.forward(values, in) + (++batches == 3 ? added_loss : 0);
  }
  void backward(const parameter_values& values, const number_batch& in, const parameter_gradients& to) {
    inner.backward(values, in, to);
    if (batches == 3) to[1][2] += added_gradient;
  }
};

/// Two parameters with the same name.
struct twins_model : mlp {
  twins_model() : mlp(small_model()) {}
  std::vector<model_parameter> parameters() const { return {{"a", 1}, {"b", 1}, {"a", 2}}; }
};

/// Makes a batch of a rank only after a while.
struct slow_samples {
  using batch_type = number_batch;
  number_samples inner;

  std::uint64_t size() const noexcept { return inner.size(); }
  void append(std::uint64_t sample, batch_type& to) const {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    inner.append(sample, to);
  }
};

/// Is stuck at a sample for a while, and counts the calls in progress.
struct stuck_samples {
  using batch_type = number_batch;
  number_samples inner;
  std::atomic<int>& in_progress;

  std::uint64_t size() const noexcept { return inner.size(); }
  void append(std::uint64_t sample, batch_type& to) const {
    ++in_progress;
    std::this_thread::sleep_for(std::chrono::milliseconds(sample == 7 ? 300 : 0));
    inner.append(sample, to);
    --in_progress;
  }
};

/// Throws in batch number `last`.
struct interrupted_model {
  mlp inner = small_model();
  int last = 0;

  std::string name() const { return inner.name(); }
  std::vector<model_parameter> parameters() const { return inner.parameters(); }
  double forward(const parameter_values& values, const number_batch& in) {
    if (last-- == 1) throw std::runtime_error("interrupted");
    return inner.forward(values, in);
  }
  void backward(const parameter_values& values, const number_batch& in, const parameter_gradients& to) {
    inner.backward(values, in, to);
  }
};

}  // namespace

TEST_CASE("the gradients of a model are those of differences of its loss") {
  const classified data(7);
  number_batch batch;
  for (std::uint64_t i = 0; i < 7; ++i) data.samples().append(i, batch);
  for (const loss_kind loss : {loss_kind::cross_entropy, loss_kind::squared_error}) {
    mlp model = small_model(loss);
    std::vector<std::vector<float>> values;
    std::vector<std::vector<double>> sums;
    std::uint64_t drawn = 0;
    for (const model_parameter& each : model.parameters()) {
      sums.emplace_back(each.elements);
      for (float& value : values.emplace_back(each.elements))
        value = 0.5F * hocket::train::detail::normal_number(9, drawn++);
    }
    const parameter_values seen(values.begin(), values.end());
    const parameter_gradients to(sums.begin(), sums.end());
    model.forward(seen, batch);
    model.backward(seen, batch, to);
    for (std::size_t p = 0; p < values.size(); ++p) {
      for (std::size_t i = 0; i < values[p].size(); ++i) {
        constexpr float step = 1e-2F;
        const float before = values[p][i];
        values[p][i] = before + step;
        const double above = model.forward(seen, batch);
        values[p][i] = before - step;
        const double below = model.forward(seen, batch);
        values[p][i] = before;
        const double difference = (above - below) / (2 * static_cast<double>(step));
        INFO("parameter " << p << ", element " << i);
        CHECK(std::abs(difference - sums[p][i]) < 0.02 * (1 + std::abs(difference)));
      }
    }
  }
}

TEST_CASE("every number of ranks, as threads or simulated, has the same losses for the same batches") {
  const classified data(331);  // the last batch of an epoch is small: some ranks get nothing of it
  const report alone = train_distributed(small_model(), data.samples(), nodes{1}, quiet(41, 3));
  CHECK(alone.steps == 27);
  CHECK(alone.samples == 3 * 331);
  CHECK(alone.loss < 0.9 * alone.first_loss);
  const auto check = [&](const report& found, int ranks) {
    INFO(ranks << " ranks");
    CHECK(found.nodes_used == ranks);
    CHECK(found.steps == alone.steps);
    CHECK(found.samples == alone.samples);
    CHECK(std::abs(found.first_loss - alone.first_loss) < 1e-9);
    CHECK(std::abs(found.loss - alone.loss) < 1e-9);
    REQUIRE(found.parameters.size() == alone.parameters.size());
    float largest = 0;
    for (std::size_t i = 0; i < found.parameters.size(); ++i)
      largest = std::max(largest, std::abs(found.parameters[i] - alone.parameters[i]));
    CHECK(largest < 1e-6F);
  };
  for (const int ranks : {2, 3, 5, 7, 8, 16}) {
    check(train_distributed(small_model(), data.samples(), nodes{ranks}, quiet(41, 3)), ranks);
    check(train_distributed(small_model(), data.samples(), nodes{ranks}, quiet(41, 3), simulated{}), ranks);
  }
}

TEST_CASE("the report states what was trained") {
  const classified data(50);
  const report found = train_distributed(linear_model("NeuralNet_Model", features, targets), data.samples());
  CHECK(found.model_name == "NeuralNet_Model");
  CHECK(found.nodes_used == 3);
  CHECK(found.device == "cpu");
  CHECK(found.status == "distributed_trained");
  CHECK(found.steps == 1);
  CHECK(found.samples == 50);
  CHECK(found.seconds > 0);
  CHECK(found.samples_per_second > 0);
  CHECK(found.parameters.size() == features * targets + targets);
}

TEST_CASE("logs have the start with the number of nodes, progress, and the end") {
  const classified data(60);
  const scratch_directory folder;
  train_options options = quiet(20);
  options.log = folder.path() + "/logs";
  options.tensorboard = folder.path() + "/board";
  train_distributed(small_model(), data.samples(), nodes{2}, options);
  for (const char* const rank : {"0", "1"}) {
    const std::string log = read_file(options.log + "/rank-" + rank + ".jsonl");
    INFO(log);
    CHECK(contains(log, R"("event":"start","job":"small","nodes":2)"));
    CHECK(contains(log, R"("event":"progress","step":3,"steps":3)"));
    CHECK(contains(log, R"("event":"end","status":"distributed_trained","nodes":2)"));
  }
}

TEST_CASE("a training continues from its newest checkpoint, on another number of ranks") {
  const classified data(130);
  const scratch_directory folder;
  const report whole = train_distributed(small_model(), data.samples(), nodes{1}, quiet(20, 4));
  train_options options = quiet(20, 2);
  options.checkpoints = folder.path() + "/saved";
  options.checkpoint_every = 5;
  const report first = train_distributed(small_model(), data.samples(), nodes{3}, options);
  CHECK(first.steps == 14);
  options.epochs = 4;
  const report second = train_distributed(small_model(), data.samples(), nodes{2}, options);
  CHECK(second.steps == 28);
  CHECK(second.samples == 2 * 130);
  CHECK(std::abs(second.loss - whole.loss) < 1e-9);
  // Nothing is left to do.
  const report third = train_distributed(small_model(), data.samples(), nodes{2}, options);
  CHECK(third.samples == 0);
  CHECK(third.parameters == second.parameters);
}

TEST_CASE("a training with fewer steps than its newest checkpoint is refused, and leaves the checkpoint") {
  const classified data(130);
  const scratch_directory folder;
  train_options options = quiet(20, 4);
  options.checkpoints = folder.path() + "/saved";
  const report whole = train_distributed(small_model(), data.samples(), nodes{3}, options);
  for (const std::uint64_t fewer : {std::uint64_t{1}, std::uint64_t{3}}) {
    options.epochs = fewer;
    const std::string found = error_of([&] { train_distributed(small_model(), data.samples(), nodes{2}, options); });
    INFO(found);
    CHECK(contains(found, "is of step 28, but " + std::to_string(fewer) + " epochs of 7 steps end before: ask for 4"));
  }
  options.epochs = 4;
  CHECK(train_distributed(small_model(), data.samples(), nodes{2}, options).parameters == whole.parameters);
}

TEST_CASE("a folder in which no checkpoint can be saved is an error before the first step") {
  const classified data(100);
  const scratch_directory folder;
  train_options options = quiet(20);
  const auto error_of_training = [&] {
    return error_of([&] { train_distributed(interrupted_model{.last = 1}, data.samples(), nodes{2}, options); });
  };
  options.checkpoints = folder.path() + "/none/saved";
  const std::string missing = error_of_training();
  CHECK(contains(missing, "can't make the folder '" + options.checkpoints));
  options.checkpoints = folder.path();
  std::string locked;
  hocket::local::run(1, [&](const hocket::local::communicator& comm) {
    hocket::checkpoint::store other(folder.path(), comm);
    other.lock();
    locked = error_of_training();
  });
  CHECK(contains(locked, "another process saves in '" + folder.path()));
}

TEST_CASE("the log states which checkpoints are not used and which can't be removed") {
  const classified data(100);
  const scratch_directory folder;
  train_options options = quiet(20);
  options.checkpoints = folder.path() + "/saved";
  options.checkpoint_every = 4;
  options.log = folder.path() + "/log";
  train_distributed(small_model(), data.samples(), nodes{2}, options);
  CHECK_FALSE(contains(read_file(options.log + "/rank-0.jsonl"), "warning"));
  std::filesystem::resize_file(options.checkpoints + "/step-5.0.1/shard-1-of-2.safetensors", 100);
  std::filesystem::create_directory(options.checkpoints + "/step-4.0.1/notes");
  options.epochs = 4;
  CHECK(train_distributed(small_model(), data.samples(), nodes{3}, options).samples == 320);
  const std::string log = read_file(options.log + "/rank-0.jsonl");
  INFO(log);
  CHECK(contains(log, R"("event":"checkpoint not used","reason":"rank)"));
  CHECK(contains(log, "step-5.0.1/shard-1-of-2.safetensors' has 100 bytes instead of"));
  CHECK(contains(log, R"("event":"checkpoint not removed","reason":"can't remove)"));
  CHECK(contains(log, "step-4.0.1/notes"));
}

TEST_CASE("the error of a stuck source comes when its call has returned") {
  const classified data(60);
  train_options options = quiet(12);
  options.timeout = std::chrono::milliseconds(30);
  const auto check = [&](auto how) {
    std::atomic<int> in_progress{0};
    const stuck_samples source{data.samples(), in_progress};
    const std::string found = error_of([&] { train_distributed(small_model(), source, nodes{3}, options, how); });
    INFO(found);
    CHECK(contains(found, "the source does not respond"));
    CHECK(in_progress == 0);
  };
  check(threads{});
  check(simulated{});
}

TEST_CASE("TensorBoard shows each step once after a restart") {
  const classified data(50);
  for (const std::uint64_t every : {std::uint64_t{3}, std::uint64_t{100}}) {
    INFO("a checkpoint every " << every << " steps");
    const scratch_directory folder;
    train_options options = quiet(10, 2);
    options.tensorboard = folder.path() + "/board";
    options.checkpoints = folder.path() + "/saved";
    options.checkpoint_every = every;
    for (const int last : {5, 4}) {  // the second restart has no new checkpoint, or one
      CHECK_THROWS(train_distributed(interrupted_model{.last = last}, data.samples(), nodes{1}, options));
    }
    train_distributed(small_model(), data.samples(), nodes{2}, options);
    CHECK(observe_test::shown_steps(options.tensorboard, "loss") ==
          std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  }
}

TEST_CASE("a checkpoint of another training is refused with both values") {
  const classified data(130);
  const scratch_directory folder;
  train_options saved = quiet(20);
  saved.checkpoints = folder.path() + "/saved";
  train_distributed(small_model(), data.samples(), nodes{1}, saved);
  const classified more(131);
  train_options other_batch = saved, other_seed = saved;
  other_batch.batch = 26;
  other_seed.seed = 7;
  const mlp same = small_model(), renamed("other", {features, 6, targets}, loss_kind::cross_entropy);
  struct change {
    const mlp& model;
    const classified& data;
    const train_options& options;
    std::string words;
  };
  const change changes[] = {{renamed, data, saved, "model 'small', not 'other'"},
                            {same, data, other_batch, "batch '20', not '26'"},
                            {same, data, other_seed, "seed '1', not '7'"},
                            {same, more, saved, "number of samples '130', not '131'"}};
  for (const change& each : changes) {
    const std::string found =
        error_of([&] { train_distributed(each.model, each.data.samples(), nodes{2}, each.options); });
    INFO(found);
    CHECK(contains(found, "are of a training with " + each.words));
  }
  CHECK(train_distributed(same, data.samples(), nodes{2}, saved).samples == 0);
}

TEST_CASE("a loss or a gradient that is not finite ends the training before a checkpoint has it") {
  const classified data(50);
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  struct fault {
    double loss, gradient;
    std::string words;
  };
  for (const fault& each :
       {fault{nan, 0, "the loss of its samples is nan"}, fault{infinity, 0, "the loss of its samples is inf"},
        fault{0, nan, "a parameter is nan"}, fault{0, infinity, "a parameter is nan"}}) {
    for (const int ranks : {1, 3}) {
      const scratch_directory folder;
      train_options options = quiet(10);
      options.checkpoints = folder.path() + "/saved";
      options.checkpoint_every = 1;
      const diverging_model model{.added_loss = each.loss, .added_gradient = each.gradient};
      const std::string found = error_of([&] { train_distributed(model, data.samples(), nodes{ranks}, options); });
      INFO(found);
      CHECK(contains(found, "step 3, rank "));
      CHECK(contains(found, each.words));
      // The training continues after step 2 with finite numbers.
      const report rest = train_distributed(small_model(), data.samples(), nodes{1}, options);
      CHECK((rest.steps == 5 && rest.samples == 30 && std::isfinite(rest.loss)));
    }
  }
}

TEST_CASE("a log that can't be written does not end the training") {
  const classified data(60);
  const scratch_directory folder;
  std::filesystem::create_symlink("/dev/full", folder.path() + "/rank-1.jsonl");
  train_options options = quiet(20);
  options.log = folder.path();
  CHECK(train_distributed(small_model(), data.samples(), nodes{2}, options).steps == 3);
  CHECK(contains(read_file(options.log + "/rank-0.jsonl"), R"("event":"end","status":"distributed_trained")"));
}

TEST_CASE("the log of a training that fails ends with the reason") {
  const classified data(50);
  const scratch_directory folder;
  const auto check = [&](auto how, const std::string& log) {
    train_options options = quiet(10);
    options.log = log;
    CHECK_THROWS(train_distributed(interrupted_model{.last = 3}, data.samples(), nodes{2}, options, how));
    for (const char* const rank : {"0", "1"}) {
      const std::string found = read_file(log + "/rank-" + rank + ".jsonl");
      INFO(found);
      CHECK(contains(found, R"("event":"end","status":"failed")"));
      CHECK(contains(found, "interrupted"));
    }
  };
  check(threads{}, folder.path() + "/threads");
  check(simulated{}, folder.path() + "/simulated");
}

TEST_CASE("no parameter has the initial values of another parameter or seed") {
  constexpr std::size_t width = 4;
  const std::vector<float> x(width, 1), y(width, 1);
  std::set<std::vector<float>> drawn;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    train_options options = quiet(1);
    options.seed = seed;
    options.learning_rate = 1e-30;
    const report found = train_distributed(mlp("even", {width, width, width, width}),
                                           number_samples(x, width, y, width), nodes{1}, options);
    for (std::size_t layer = 0; layer < 3; ++layer) {
      const auto begin = found.parameters.begin() + static_cast<std::ptrdiff_t>(layer * width * (width + 1));
      drawn.emplace(begin, begin + static_cast<std::ptrdiff_t>(width * width));
    }
  }
  CHECK(drawn.size() == 8 * 3);
}

TEST_CASE("what can't be trained is refused in words") {
  const classified data(10), none(0);
  const auto train = [&](nodes on, const train_options& options = quiet(5), const classified* of = nullptr) {
    return error_of([&] { train_distributed(small_model(), (of != nullptr ? *of : data).samples(), on, options); });
  };
  CHECK(contains(train(nodes{0}), "nodes{0}: at least one node is needed"));
  CHECK(contains(train(nodes{-2}), "nodes{-2}: at least one node is needed"));
  CHECK(contains(train(nodes{2}, quiet(5), &none), "the data has no samples"));
  CHECK(contains(train(nodes{2}, quiet(0)), "a batch must have at least one sample"));
  CHECK(contains(train(nodes{2}, quiet(5, 0)), "at least one epoch is needed"));
  train_options options = quiet(5);
  options.learning_rate = std::nan("");
  CHECK(contains(train(nodes{2}, options), "the learning rate must be a number above 0"));
  options.learning_rate = std::numeric_limits<double>::infinity();
  CHECK(contains(train(nodes{2}, options), "the learning rate must be a number above 0"));
  options = quiet(5);
  options.weight_decay = std::nan("");
  CHECK(contains(train(nodes{2}, options), "the weight decay must be a finite number"));
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  CHECK(contains(train(nodes{2}, quiet(most)), "a batch of 18446744073709551615 samples exceeds 2^63 - 1"));
  CHECK(
      contains(train(nodes{2}, quiet(5, most / 2 + 1)), "9223372036854775808 epochs of 2 steps exceed 2^63 - 1 steps"));
  options = quiet(5);
  options.timeout = std::chrono::milliseconds(20);
  CHECK(contains(error_of([&] { train_distributed(small_model(), slow_samples{data.samples()}, nodes{1}, options); }),
                 "the batch at position 0 of epoch 0"));
  CHECK(contains(error_of([&] { train_distributed(twins_model(), data.samples(), nodes{1}, quiet(5)); }),
                 "model 'small' has two parameters with the name 'a'"));
  options = quiet(5);
  options.where = device::gpu;
  CHECK(contains(train(nodes{2}, options), "device::gpu: "));
  options.where = device::any;
  CHECK(train(nodes{2}, options).empty());
  options = quiet(5);
  options.checkpoints = "anywhere";
  CHECK(contains(error_of([&] { train_distributed(small_model(), data.samples(), nodes{2}, options, simulated{}); }),
                 "simulated ranks save no checkpoints"));
  CHECK(contains(
      error_of([&] { train_distributed(linear_model("wide", 9, targets), data.samples(), nodes{2}, quiet(5)); }),
      "model 'wide' has 9 features and 3 targets, but the samples have 5 and 3"));
  CHECK(contains(error_of([] { mlp("flat", {5}); }), "the widths of model 'flat' must be at least two"));
  CHECK(contains(error_of([&] { number_samples(data.x, 7, data.y, targets); }), "are not equally many whole samples"));
}

TEST_CASE("an exception of the model on one rank ends the training on all ranks") {
  const classified data(60);
  const auto begin = std::chrono::steady_clock::now();
  for (int attempt = 0; attempt < 10; ++attempt) {  // always that of the rank that fails, of its own type
    std::atomic<int> copies{0};
    const failing_model model(copies);
    std::string found;
    try {
      train_distributed(model, data.samples(), nodes{4}, quiet(12));
    } catch (const std::out_of_range& cause) {
      found = cause.what();
    } catch (const std::exception& cause) {
      found = std::string("another exception: ") + cause.what();
    }
    CHECK(found == "no such token");
  }
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
}
