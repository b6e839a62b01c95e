// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Headers of .npy files, which are literals of Python.
#include "fuzz.hpp"

#include <hocket/data/npy_file.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using fuzz::require;
  fuzz::may_raise(0, [&] {
    const auto found = hocket::data::read_npy_header({"x.npy", std::as_bytes(std::span(data, size))});
    require(found.data_at <= size, "the elements begin within the file");
    require(1 <= found.element_bytes && found.element_bytes <= 32, "elements are numbers");
    for (const std::uint64_t extent : found.shape) {
      if (extent == 0) return;
    }
    require(found.rows() <= (size - found.data_at) / found.element_bytes, "each row is within the file");
    require(found.rows() * found.row_elements() * found.element_bytes <= size - found.data_at,
            "the rows are within the file");
  });
  return 0;
}
