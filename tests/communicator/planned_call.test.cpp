// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a communicator remembers of recent calls: a plan is found for an equal request only.
#include "support/catch.hpp"

#include <hocket/communicator/planned_call.hpp>

#include <cstddef>
#include <cstdint>
#include <random>

using hocket::detail::call_request;
using hocket::detail::remembered_call;
using hocket::detail::remembered_calls;
namespace plan = hocket::plan;

TEST_CASE("a remembered call is found for an equal request, and for no other") {
  remembered_calls calls;
  std::mt19937 random(5);
  const auto some_request = [&] {
    return call_request{.what = {static_cast<plan::collective_kind>(random() % 6), static_cast<int>(random() % 3)},
                        .block_elements = random() % 4,
                        .in_place = random() % 2 == 0,
                        .type_signature = static_cast<std::uint32_t>(random() % 3)};
  };
  unsigned found = 0;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    const call_request asked = some_request();
    if (const remembered_call* const known = calls.find(asked); known != nullptr) {
      REQUIRE(known->asked == asked);
      ++found;
      continue;
    }
    remembered_call& made = calls.place_for(asked);
    made.asked = asked;
    made.planned.signature = i;
    REQUIRE(calls.find(asked) == &made);
    REQUIRE(calls.find(asked)->planned.signature == i);
  }
  CHECK(found > 0);
}

TEST_CASE("a call whose algorithm is named is never found") {
  remembered_calls calls;
  const call_request asked{.what = {plan::collective_kind::all_gather, 0}, .block_elements = 3};
  calls.place_for_named().asked = asked;
  CHECK(calls.find(asked) == nullptr);
}

TEST_CASE("calls that a program makes in turn, with different lengths or kinds, are mostly remembered together") {
  remembered_calls calls;
  unsigned kept = 0;
  for (std::size_t elements = 0; elements < 64; ++elements) {
    const call_request first{
        .what = {plan::collective_kind::all_gather, 0}, .block_elements = elements, .type_signature = 0x12345678};
    const call_request second{
        .what = {plan::collective_kind::reduce_scatter, 0}, .block_elements = elements, .type_signature = 0x9abcdef0};
    calls.place_for(first).asked = first;
    calls.place_for(second).asked = second;
    if (calls.find(first) != nullptr && calls.find(second) != nullptr) ++kept;
  }
  CHECK(kept > 40);
}
