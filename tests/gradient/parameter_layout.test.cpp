// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/gradient/parameter_layout.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace {

using hocket::bucket_limits;
using hocket::element_range;
using hocket::layout_block_elements;
using hocket::parameter;
using hocket::parameter_layout;

std::vector<parameter> parameters_of(const std::vector<std::size_t>& sizes) {
  std::vector<parameter> made;
  for (std::size_t i = 0; i < sizes.size(); ++i) made.push_back({"p" + std::to_string(i), sizes[i]});
  return made;
}

/// Pseudo-random sizes, some of them zero.
std::vector<std::size_t> sizes_of(std::uint64_t seed, std::size_t count) {
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    sizes.push_back((seed >> 33) % 5 == 0 ? 0 : (seed >> 40) % 3000);
  }
  return sizes;
}

void check_laws(const parameter_layout& layout, const bucket_limits& limits) {
  std::size_t end = 0;
  for (std::size_t b = 0; b < layout.buckets(); ++b) {
    const element_range whole = layout.bucket(b);
    REQUIRE(whole.first == end);  // buckets are contiguous
    std::size_t at = whole.first;
    for (const std::size_t i : layout.members(b)) {
      REQUIRE(layout.bucket_of(i) == b);
      REQUIRE(layout.of(i).first == at);
      REQUIRE(at % layout_block_elements == 0);
      at = (layout.of(i).end() + layout_block_elements - 1) / layout_block_elements * layout_block_elements;
    }
    end = whole.end();
    REQUIRE(at == end);
    // A bucket is closed when it has reached its limit: not before, and by its last member.
    const std::size_t limit = b == 0 ? limits.first_elements : limits.elements;
    const element_range last = layout.of(layout.members(b).back());
    const bool ends_unit = layout[layout.members(b).back()].begins_unit;
    if (b + 1 < layout.buckets()) REQUIRE((whole.size >= limit || ends_unit));
    if (layout.members(b).size() > 1) REQUIRE(last.first - whole.first < limit);
    for (const int ranks : {1, 2, 3, 5, 7, 8, 100}) {
      std::size_t cut = whole.first, least = whole.size, most = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const element_range piece = layout.piece(b, rank, ranks);
        REQUIRE(piece.first == cut);  // pieces are contiguous
        REQUIRE(piece.size % layout_block_elements == 0);
        cut = piece.end();
        least = std::min(least, piece.size);
        most = std::max(most, piece.size);
      }
      REQUIRE(cut == whole.end());
      REQUIRE(most - least <= layout_block_elements);
    }
  }
  REQUIRE(end == layout.size());
}

TEST_CASE("a layout puts each parameter in one bucket, beginning with the last of the forward pass") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<std::size_t> sizes = sizes_of(seed, seed);
    for (const bucket_limits limits : {bucket_limits{}, bucket_limits{1024, 4096}, bucket_limits{0, 0}}) {
      const parameter_layout layout(parameters_of(sizes), limits);
      REQUIRE(layout.parameters() == sizes.size());
      std::size_t last = layout.buckets();
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        REQUIRE(layout.of(i).size == sizes[i]);
        REQUIRE(layout.bucket_of(i) <= last);
        last = layout.bucket_of(i);
      }
      check_laws(layout, limits);
    }
  }
}

TEST_CASE("no bucket has parameters of two units") {
  for (std::uint64_t seed = 1; seed < 50; ++seed) {
    auto parameters = parameters_of(sizes_of(seed, seed));
    for (std::size_t i = 0; i < parameters.size(); i += 1 + seed % 4) parameters[i].begins_unit = true;
    const bucket_limits limits{1024, 4096};
    const parameter_layout layout(parameters, limits);
    check_laws(layout, limits);
    for (std::size_t b = 0; b < layout.buckets(); ++b) {
      const auto& members = layout.members(b);
      for (std::size_t at = 0; at + 1 < members.size(); ++at) REQUIRE(!parameters[members[at]].begins_unit);
    }
  }
}

TEST_CASE("the first bucket has 1 MiB, further buckets have up to 25 MiB") {
  const parameter_layout layout(parameters_of(std::vector<std::size_t>(100, 1 << 18)));  // of 1 MiB each
  REQUIRE(layout.buckets() == 5);
  CHECK(layout.bucket(0).size == std::size_t{1} << 18);
  for (std::size_t b = 1; b < 4; ++b) CHECK(layout.bucket(b).size == std::size_t{25} << 18);
  CHECK(layout.bucket(4).size == std::size_t{24} << 18);
  CHECK(layout.find("p7") == 7);
}

TEST_CASE("limits in bytes are converted by the size of the type that is added") {
  const std::vector<std::size_t> sizes(4, 1 << 17);  // of 1 MiB each as doubles
  CHECK(parameter_layout(parameters_of(sizes), bucket_limits::of<double>()).bucket(0).size == std::size_t{1} << 17);
  CHECK(parameter_layout(parameters_of(sizes), bucket_limits::of<float>()).bucket(0).size == std::size_t{1} << 18);
  CHECK(bucket_limits::of<float>().elements == bucket_limits().elements);
  CHECK(bucket_limits::of<float>(1, 9).first_elements == 1);
  CHECK(bucket_limits::of<float>(1, 9).elements == 3);
}

TEST_CASE("the pieces of a range cover it, even if its last block is not whole") {
  for (const std::size_t size : {0U, 1U, 63U, 64U, 65U, 100U, 128U, 1000U, 4097U}) {
    for (const int ranks : {1, 2, 3, 5, 7, 8, 100}) {
      std::size_t end = 17;
      for (int rank = 0; rank < ranks; ++rank) {
        const element_range piece = hocket::piece_of({17, size}, rank, ranks);
        CHECK(piece.first == end);
        end = piece.end();
        if (end != 17 + size) CHECK(piece.size % layout_block_elements == 0);
      }
      CHECK(end == 17 + size);
    }
  }
}

TEST_CASE("visit_parts visits each part of a parameter in the given range once") {
  const parameter_layout layout(parameters_of({100, 0, 64, 1, 300}));
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    std::vector<std::size_t> seen(layout.parameters());
    for (std::size_t b = 0; b < layout.buckets(); ++b) {
      for (int rank = 0; rank < ranks; ++rank) {
        const element_range piece = layout.piece(b, rank, ranks);
        layout.visit_parts(b, piece, [&](std::size_t i, const element_range& part) {
          CHECK(part.size > 0);
          CHECK(hocket::common_part(part, piece) == part);
          CHECK(part.first == layout.of(i).first + seen[i]);
          seen[i] += part.size;
        });
      }
    }
    for (std::size_t i = 0; i < layout.parameters(); ++i) CHECK(seen[i] == layout[i].elements);
  }
}

TEST_CASE("duplicate names, sizes that are too large and unknown names are rejected") {
  const auto what = [](auto call) {
    try {
      call();
    } catch (const hocket::error& found) {
      return std::string(found.what());
    }
    return std::string();
  };
  using Catch::Matchers::Contains;
  CHECK_THAT(what([] { parameter_layout({{"w", 3}, {"w", 4}}); }), Contains("two parameters are called 'w'"));
  CHECK_THAT(what([] {
               parameter_layout({{"w", std::numeric_limits<std::size_t>::max() - 3}});
             }),
             Contains("'w' has 18446744073709551612 elements"));
  CHECK_THAT(what([] { parameter_layout({{"w", 3}}).find("v"); }), Contains("'v'"));
}

}  // namespace
