// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Recipes of mixtures of two sources, as they are in checkpoints.
#include "fuzz.hpp"

#include <hocket/data/mixture.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hocket::data;
  using fuzz::require;
  const std::string_view recipe(reinterpret_cast<const char*>(data), size);
  const std::vector<order> sources{order(7, 1), order(1000, 2)};
  fuzz::may_raise(0, [&] {
    const mixture found(sources, recipe, 3);
    const std::string text = found.recipe();
    require(mixture(sources, text, 3).recipe() == text, "a recipe is read as it was written");
    auto positions = found.epoch();
    for (std::uint64_t at : {std::uint64_t{0}, std::uint64_t{1000}, permutation::most - 1}) {
      const mixed_sample sample = positions[at];
      require(sample.source < 2 && sample.sample < sources[sample.source].size(), "a sample is one of its source");
    }
  });
  return 0;
}
