// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: must be trivially copyable
//
// Strings can't be sent as bytes.
#include <hocket/pipeline/any_stage.hpp>

#include <cstddef>
#include <span>
#include <string>

struct layers {
  using input_type = std::string;
  using output_type = float;
  std::size_t input_size() const;
  std::size_t output_size() const;
};

void misuse(layers& given) { hocket::pipeline::any_stage stage(given); }
