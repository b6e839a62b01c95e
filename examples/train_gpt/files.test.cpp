// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What train_gpt reads from files: a checkpoint of another training is refused, and so is what is no text.
#include "checkpoint.hpp"
#include "text.hpp"

#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/text.hpp"

#include <hocket/checkpoint/store.hpp>
#include <hocket/group/local.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/stat.h>

namespace {

using namespace gpt;
using hocket_test::contains;
using hocket_test::scratch_directory;

/// Returns the error of `act`, or an empty string.
template <class Act>
std::string error_of(Act act) {
  try {
    act();
  } catch (const std::runtime_error& problem) {
    return problem.what();
  }
  return "";
}

// ---- checkpoints ----------------------------------------------------------------------------------------------------

const training_identity training{{.layers = 2, .width = 16, .heads = 2, .context = 8}, 5, true, 1024};

/// Writes a checkpoint of `training` after 7 steps.
void save(const std::string& folder, const training_identity& of) {
  hocket::local::run(1, [&](const hocket::local::communicator& comm) {
    std::vector<float> values(10);
    hocket::checkpoint::state now;
    now.add("values", values);
    now.text = text_of(of);
    hocket::checkpoint::store(folder, comm).save(7, now);
  });
}

TEST_CASE("a checkpoint of another training is refused with the option that differs") {
  struct difference {
    void (*make)(training_identity& other);
    std::string words;
  };
  const difference differences[] = {
      {[](training_identity& other) { other.shape.layers = 3; }, "of a training with --layers 2, not --layers 3"},
      {[](training_identity& other) { other.shape.width = 32; }, "of a training with --width 16, not --width 32"},
      {[](training_identity& other) { other.shape.heads = 4; }, "of a training with --heads 2, not --heads 4"},
      {[](training_identity& other) { other.shape.context = 9; }, "of a training with --context 8, not --context 9"},
      {[](training_identity& other) { other.seed = 6; }, "of a training with --seed 5, not --seed 6"},
      {[](training_identity& other) { other.narrow = false; }, "with --precision bfloat16, not --precision float"},
      {[](training_identity& other) { other.loss_scale = 0; }, "whose loss is scaled: pass --loss-scale 1024"}};
  const scratch_directory folder;
  const std::string all = folder.path() + "/all";
  CHECK_FALSE(has_checkpoint(all));
  CHECK(contains(error_of([&] { static_cast<void>(steps_of_newest(all, training)); }), "no checkpoint in '" + all));
  save(all, training);
  CHECK(has_checkpoint(all));
  CHECK(steps_of_newest(all, training) == 7);
  training_identity other_scale = training;
  other_scale.loss_scale = 8;  // it adapts
  CHECK(steps_of_newest(all, other_scale) == 7);
  for (const difference& each : differences) {
    training_identity other = training;
    each.make(other);
    const std::string error = error_of([&] { static_cast<void>(steps_of_newest(all, other)); });
    INFO(error);
    CHECK(contains(error, "--resume: the checkpoint is "));
    CHECK(contains(error, each.words));
  }
  training_identity unscaled = training;
  unscaled.loss_scale = 0;
  save(all, unscaled);
  CHECK(contains(error_of([&] { static_cast<void>(steps_of_newest(all, training)); }), "omit --loss-scale"));
}

TEST_CASE("a checkpoint without the texts of this program is refused") {
  const scratch_directory folder;
  const std::string all = folder.path() + "/all";
  hocket::local::run(1, [&](const hocket::local::communicator& comm) {
    hocket::checkpoint::store(all, comm).save(7, hocket::checkpoint::state());
  });
  CHECK(contains(error_of([&] { static_cast<void>(steps_of_newest(all, training)); }), "not of this program"));
}

// ---- the text -------------------------------------------------------------------------------------------------------

TEST_CASE("input that is not a regular file of text is refused with its name and kind") {
  const scratch_directory folder;
  folder.write("empty", "");
  folder.write("text", "some text");
  folder.write("packed", "\x1f\x8b...");
  REQUIRE(::mkfifo((folder.path() + "/pipe").c_str(), 0600) == 0);
  struct refusal {
    std::string path;
    std::string words;
  };
  const refusal cases[] = {{folder.path() + "/nothing", "No such file or directory; pass a regular file"},
                           {folder.path(), "it is a folder, not a regular file; pass a regular file"},
                           {folder.path() + "/pipe", "it is a pipe, not a regular file; pass a regular file"},
                           {"/dev/zero", "it is a device, not a regular file; pass a regular file"},
                           {folder.path() + "/empty", "it is empty; pass a regular file"},
                           {folder.path() + "/packed", "is compressed: unpack it first"}};
  for (const auto& [path, words] : cases) {
    const std::string error = error_of([&] { static_cast<void>(read_text(path)); });
    INFO(error);
    CHECK(contains(error, "the text '" + path + "'"));
    CHECK(contains(error, words));
  }
  const std::vector<std::uint8_t> text = read_text(folder.path() + "/text");
  CHECK(std::string(text.begin(), text.end()) == "some text");
}

}  // namespace
