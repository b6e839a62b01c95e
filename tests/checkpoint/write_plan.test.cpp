// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Which rank writes which elements.
#include <hocket/checkpoint/write_plan.hpp>

#include "support/catch.hpp"
#include "support/text.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace {

using namespace hocket::checkpoint;
using parts = std::vector<state_part>;

state_part part_of(std::string name, sizes_type extents, rectangle where, element_type type = element_type::f32) {
  return {std::move(name), type, std::move(extents), std::move(where), nullptr};
}
state_part whole(std::string name, sizes_type extents, element_type type = element_type::f32) {
  rectangle where = whole_of(extents);
  return part_of(std::move(name), std::move(extents), std::move(where), type);
}

/// How often each element of each tensor is written, and how many bytes each rank writes.
struct written {
  std::map<std::string, std::vector<int>> times;
  std::vector<std::uint64_t> bytes;
};

written follow(const std::vector<parts>& of_ranks) {
  const auto plan = plan_writes(of_ranks);
  REQUIRE(plan.size() == of_ranks.size());
  written result;
  result.bytes.resize(plan.size());
  for (std::size_t r = 0; r < plan.size(); ++r) {
    for (const state_part& each : of_ranks[r]) result.times[each.name].resize(*volume_of(each.extents));
    for (const written_range& range : plan[r]) {
      const state_part& of = of_ranks[r][range.part];
      result.bytes[r] += range.count * bytes_of(of.type);
      for (const rectangle& each : rectangles_of_range(of.where, range.first, range.count)) {
        sizes_type at = each.begin;
        do ++result.times[of.name][detail::offset_in(whole_of(of.extents), at)];
        while (detail::advance(at, each, at.size()));
      }
    }
  }
  return result;
}

void check_once_and_balanced(const std::vector<parts>& of_ranks, double most_above_mean) {
  const written found = follow(of_ranks);
  for (const auto& [name, times] : found.times)
    CHECK(std::all_of(times.begin(), times.end(), [](int each) { return each == 1; }));
  const auto sum = std::accumulate(found.bytes.begin(), found.bytes.end(), std::uint64_t{0});
  const double mean = static_cast<double>(sum) / static_cast<double>(found.bytes.size());
  const auto most = static_cast<double>(*std::max_element(found.bytes.begin(), found.bytes.end()));
  CHECK(most <= mean * (1 + most_above_mean) + 8);
}

std::string refusal_of(const std::vector<parts>& of_ranks) {
  try {
    plan_writes(of_ranks);
    return "";
  } catch (const hocket::error& cause) {
    CHECK(cause.code() == hocket::errc::invalid_argument);
    return cause.cause().reason;
  }
}

}  // namespace

TEST_CASE(
    "parts that are copies share the work where their rectangle is one that is saved, and are ignored elsewhere") {
  const auto copy_of = [](state_part each) {
    each.is_copy = true;
    return each;
  };
  const std::vector<parts> all{
      {whole("a", {200'000})}, {copy_of(whole("a", {200'000}))}, {copy_of(part_of("a", {200'000}, {{100}, {500}}))}};
  const written found = follow(all);
  CHECK(std::all_of(found.times.at("a").begin(), found.times.at("a").end(), [](int each) { return each == 1; }));
  CHECK(found.bytes == std::vector<std::uint64_t>{400'000, 400'000, 0});
  // The order of ranks does not matter.
  CHECK(follow({all[2], all[1], all[0]}).bytes == std::vector<std::uint64_t>{0, 400'000, 400'000});
}

TEST_CASE("copies of a tensor are divided among the ranks that hold them") {
  for (const std::size_t ranks : {1U, 2U, 3U, 5U, 8U}) {
    CAPTURE(ranks);
    const parts all{whole("a", {1000, 77}), whole("b", {99'999}, element_type::bf16),
                    whole("step", {}, element_type::u64)};
    check_once_and_balanced(std::vector<parts>(ranks, all), 0.1);
  }
}

TEST_CASE("on a mesh of copies and slices, each element is written once, by ranks with about equal bytes") {
  for (const std::uint64_t copies : {1U, 2U, 3U}) {
    for (const std::uint64_t slices : {1U, 2U, 4U, 7U}) {
      std::vector<parts> of_ranks;
      for (std::uint64_t copy = 0; copy < copies; ++copy) {
        for (std::uint64_t slice = 0; slice < slices; ++slice) {
          const std::uint64_t rows = 840, begin = rows * slice / slices, end = rows * (slice + 1) / slices;
          of_ranks.push_back({part_of("rows", {rows, 200}, {{begin, 0}, {end - begin, 200}}),
                              part_of("columns", {200, rows}, {{0, begin}, {200, end - begin}}), whole("all", {30'000}),
                              part_of("flat", {rows * copies * slices}, {{rows * (copy * slices + slice)}, {rows}})});
        }
      }
      CAPTURE(copies, slices);
      check_once_and_balanced(of_ranks, 0.1);
    }
  }
}

TEST_CASE("a rank that holds more of its own writes less of what is shared") {
  const auto own = [](std::uint64_t begin, std::uint64_t size) { return part_of("own", {60'000}, {{begin}, {size}}); };
  check_once_and_balanced({{own(0, 60'000), whole("shared", {120'000})},
                           {own(60'000, 0), whole("shared", {120'000})},
                           {own(60'000, 0), whole("shared", {120'000})}},
                          0.1);
}

TEST_CASE("small tensors are not divided, and none is forgotten") {
  std::vector<parts> of_ranks(4);
  for (int i = 0; i < 100; ++i) {
    for (auto& each : of_ranks) each.push_back(whole("t" + std::to_string(i), {100}));
  }
  of_ranks[2].push_back(whole("alone", {3}));
  of_ranks[3].push_back(whole("empty", {0, 5}));
  check_once_and_balanced(of_ranks, 0.1);
  for (const auto& each : plan_writes(of_ranks)) CHECK(each.size() <= 26);
}

TEST_CASE("parts that are not one state are refused, with the tensor, the elements and the ranks") {
  using hocket_test::contains;
  const state_part a = whole("a", {4, 6});
  CHECK(refusal_of({{a}, {whole("a", {4, 6}, element_type::f64)}}) ==
        "tensor 'a': rank 0 has F32 [0:4, 0:6], and rank 1 has F64 [0:4, 0:6]: type and extents must be equal on all "
        "ranks");
  CHECK(contains(refusal_of({{a}, {whole("a", {4, 7})}}), "rank 1 has F32 [0:4, 0:7]"));
  CHECK(refusal_of({{a, a}}) == "tensor 'a': rank 0 has added elements [0:4, 0:6] twice");
  CHECK(refusal_of({{part_of("a", {10}, {{0}, {6}})}, {part_of("a", {10}, {{5}, {5}})}}) ==
        "tensor 'a': elements [0:6] of rank 0 and [5:10] of rank 1 have [5:6] in common: rectangles of ranks must be "
        "equal or have no element in common");
  CHECK(refusal_of({{part_of("a", {10}, {{0}, {5}})}, {part_of("a", {10}, {{6}, {4}})}}) ==
        "tensor 'a': the ranks hold 9 of its 10 elements: each element must be on a rank");
}

TEST_CASE("names that files can't have are refused, and so is one that a part of another tensor has in files") {
  const auto refusal_of_name = [](const char* name) -> std::string {
    float number = 0;
    state into;
    try {
      into.add(name, number);
      return "";
    } catch (const hocket::error& cause) {
      CHECK(cause.code() == hocket::errc::invalid_argument);
      return cause.cause().reason;
    }
  };
  for (const char* const name : {"w\xff", "\xc3", "a\xed\xa0\x80"})
    CHECK(hocket_test::contains(refusal_of_name(name), "not UTF-8"));
  for (const char* const name : {"__metadata__", "hocket.crc32c_of_blocks"})
    CHECK(hocket_test::contains(refusal_of_name(name), "another meaning"));
  for (const char* const name : {"", "w[0]", "\u00e9", "__metadata"}) CHECK(refusal_of_name(name) == "");

  CHECK(refusal_of({{whole("w", {8}), whole("w[0:4]", {4})}}) ==
        "tensor 'w[0:4]': parts of tensor 'w' have such names in files: rename one of them");
  CHECK(refusal_of({{whole("w", {8}), whole("w[0]", {4}), whole("v[0:4]", {4})}}) == "");
}

TEST_CASE("a plan for many parts takes time in proportion to their number") {
  std::vector<parts> of_ranks(256);
  for (std::uint64_t r = 0; r < of_ranks.size(); ++r) {
    for (int i = 0; i < 100; ++i)
      of_ranks[r].push_back(part_of("t" + std::to_string(i), {of_ranks.size()}, {{r}, {1}}));
  }
  CHECK(plan_writes(of_ranks).size() == 256);
}

TEST_CASE("what ranks exchange about their parts is read as it was written") {
  const parts all{part_of("a b", {4, 6}, {{1, 2}, {3, 4}}, element_type::f8_e5m2), whole("", {}), whole("long", {0})};
  const parts read = detail::decode_parts(detail::encode_parts(all));
  REQUIRE(read.size() == all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(read[i].name == all[i].name);
    CHECK(read[i].type == all[i].type);
    CHECK(read[i].extents == all[i].extents);
    CHECK(read[i].where == all[i].where);
  }
  const std::vector<written_range> ranges{{0, 1, 2}, {5, 1ULL << 40, 7}};
  CHECK(detail::decode_ranges(detail::encode_ranges(ranges)) == ranges);
}
