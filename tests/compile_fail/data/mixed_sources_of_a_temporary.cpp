// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: (use of deleted function|call to deleted constructor).*mixed_sources
//
// The object refers to its sources, and the second one is gone before a sample is read.
#include <hocket/data/mixed_sources.hpp>
#include <hocket/data/token_file.hpp>

void misuse(const hocket::data::token_file& web, const hocket::data::token_file& books) {
  const auto long_samples = web.samples(1024);
  const hocket::data::mixed_sources both(long_samples, books.samples(1024));
}
