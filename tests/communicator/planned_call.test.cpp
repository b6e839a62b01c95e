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
    remembered_call& made = calls.replace(asked);
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
  calls.replace_named().asked = asked;
  CHECK(calls.find(asked) == nullptr);
}

TEST_CASE("a call in place and the same call with two buffers are remembered together") {
  for (std::size_t elements = 0; elements < 1000; ++elements) {
    remembered_calls calls;
    const call_request apart{
        .what = {plan::collective_kind::all_reduce, 0}, .block_elements = elements, .type_signature = 0x12345678};
    call_request in_place = apart;
    in_place.in_place = true;
    calls.replace(apart).asked = apart;
    calls.replace(in_place).asked = in_place;
    REQUIRE(calls.find(apart) != nullptr);
    REQUIRE(calls.find(in_place) != nullptr);
  }
}
