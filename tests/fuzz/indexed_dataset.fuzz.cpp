// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Megatron's indexed data sets: the input is the index; its last byte says how many bytes of tokens there are.
#include "fuzz.hpp"

#include <hocket/data/indexed_dataset.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hocket::data;
  using fuzz::require;
  if (size == 0) return 0;
  std::vector<std::byte> tokens(data[size - 1]);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::byte>(37 * i);
  const auto index = std::as_bytes(std::span(data, size - 1));
  fuzz::may_raise(0, [&] {
    const indexed_sequences found({"x.idx", index}, {"x.bin", tokens});
    require(found.size() <= index.size() / 12, "each sequence has an entry in the index");
    for (std::uint64_t i = 0; i < found.size(); ++i) {
      fuzz::may_raise(0, [&] {
        indexed_sequences::batch_type batch;
        found.append(i, batch);
        require(batch.size() == 1 && batch[0].size() == found.tokens_of(i), "a sequence has the tokens that it states");
        require(batch[0].size() <= tokens.size(), "a sequence is within the tokens");
      });
    }
    for (std::uint64_t i = 0; i < found.documents(); ++i) {
      fuzz::may_raise(0, [&] {
        const positions sequences = found.document(i);
        require(sequences.begin <= sequences.end && sequences.end <= found.size(),
                "a document is within the sequences");
      });
    }
  });
  return 0;
}
