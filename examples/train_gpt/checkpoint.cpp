// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "checkpoint.hpp"

#include <hocket/checkpoint/folder.hpp>

#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace gpt {
namespace {

constexpr const char* loss_scale = "loss scale";

[[noreturn]] void refuse(const std::string& why) { throw std::runtime_error("--resume: " + why); }

/// Returns the positions of the checkpoints in `folder`, newest first.
std::vector<hocket::checkpoint::position> all_in(const hocket::checkpoint::folder& folder) {
  std::vector<hocket::checkpoint::position> found;
  if (!std::filesystem::exists(folder.path())) return found;
  if (const hocket::failure cause = folder.find_valid(found)) throw std::runtime_error(cause.reason);
  return found;
}

/// Returns the value of `key` in a checkpoint's text; empty if there is none.
std::string value_of(const checkpoint_text& text, const std::string& key) {
  const auto found = text.find(key);
  return found == text.end() ? std::string() : found->second;
}

void check_equal(const checkpoint_text& found, const checkpoint_text& wanted) {
  for (const auto& [option, value] : wanted) {
    const std::string saved = value_of(found, option);
    if (saved.empty()) refuse("the checkpoint has no text '" + option + "', so it is not of this program");
    if (option == loss_scale) {
      if ((saved == "0") != (value == "0"))
        refuse("the checkpoint is of a training " + (saved == "0"
                                                         ? "whose loss is not scaled: omit --loss-scale"
                                                         : "whose loss is scaled: pass --loss-scale " + saved));
    } else if (saved != value) {
      refuse("the checkpoint is of a training with --" + option + ' ' + saved + ", not --" + option + ' ' + value +
             ": pass the former");
    }
  }
}

}  // namespace

checkpoint_text text_of(const training_identity& of) {
  std::ostringstream scale;
  scale.precision(17);
  scale << of.loss_scale;
  return {{"layers", std::to_string(of.shape.layers)},
          {"width", std::to_string(of.shape.width)},
          {"heads", std::to_string(of.shape.heads)},
          {"context", std::to_string(of.shape.context)},
          {"seed", std::to_string(of.seed)},
          {"precision", of.narrow ? "bfloat16" : "float"},
          {loss_scale, scale.str()}};
}

bool has_checkpoint(const std::string& folder) {
  hocket::platform::file_system files;
  return !all_in(hocket::checkpoint::folder(files, folder)).empty();
}

int steps_of_newest(const std::string& folder, const training_identity& wanted) {
  hocket::platform::file_system files;
  const hocket::checkpoint::folder all(files, folder);
  for (const hocket::checkpoint::position& each : all_in(all)) {
    std::string text;
    hocket::checkpoint::manifest found;
    if (all.read(each, text, found)) continue;  // loading reports it, and takes the one before
    check_equal(found.metadata, text_of(wanted));
    return static_cast<int>(each.step);
  }
  refuse("there is no checkpoint in '" + folder + "': pass the folder that was passed as --checkpoint");
}

}  // namespace gpt
