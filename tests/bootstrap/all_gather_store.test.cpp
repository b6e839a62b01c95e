// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Exchanges through an all-gather function: what each rank tells the others, and when it must not call again.
#include <hocket/bootstrap/all_gather_store.hpp>
#include <hocket/bootstrap/any_store.hpp>

#include "support/catch.hpp"

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace hocket::bootstrap;
using hocket::errc;

/// An all-gather of two ranks, of which only this one exists: the other says `theirs`.
struct with_one_peer {
  std::vector<std::string>* said;
  std::string theirs;
  std::vector<blob> operator()(byte_view mine) {
    said->push_back(blob_text(mine));
    return {blob(mine.begin(), mine.end()), text_blob(theirs)};
  }
};

const std::string continues(4, '\0');

TEST_CASE("a store that takes part in no more calls tells the other ranks so, once") {
  std::vector<std::string> said;
  const hocket::wait_limit limit{hocket::deadline()};
  {
    any_store place(all_gather_store(with_one_peer{&said, continues + "theirs"}, 0, 2));
    const auto all = exchange(place, "key", 0, 2, text_bytes("mine"), limit);
    REQUIRE(all.size() == 2);
    CHECK(blob_text(all[0]) == "mine");
    CHECK(blob_text(all[1]) == "theirs");
    CHECK_FALSE(place.obeys_limits());
  }
  REQUIRE(said.size() == 2);
  CHECK(said[0] == continues + "mine");
  CHECK(said[1].substr(0, 4) != continues);
  CHECK(said[1].find("ended by an exception") != std::string::npos);

  said.clear();
  {
    any_store place(all_gather_store(with_one_peer{&said, continues}, 0, 2));
    place.report_failure(hocket::make_failure(errc::out_of_memory, "too little"));
    place.report_failure(hocket::make_failure(errc::system, "again"));
  }
  REQUIRE(said.size() == 1);
  CHECK(said[0].substr(4) == "too little");

  said.clear();
  {
    any_store place(all_gather_store(with_one_peer{&said, continues}, 0, 2));
    place.finish();
  }
  CHECK(said == std::vector<std::string>{continues});
}

TEST_CASE("the failure of another rank is raised here, and the function is not called again") {
  const std::string failed = std::string("\x01\0\0\0", 4) + "no device";  // the code of errc::timeout
  for (const bool at_end : {false, true}) {
    std::vector<std::string> said;
    try {
      any_store place(all_gather_store(with_one_peer{&said, failed}, 0, 2));
      if (at_end) {
        place.finish();
      } else {
        exchange(place, "key", 0, 2, {}, hocket::wait_limit{hocket::deadline()});
      }
      FAIL("no error");
    } catch (const hocket::error& cause) {
      CHECK(cause.code() == static_cast<errc>(1));
      CHECK(cause.context().peer == 1);
      CHECK(cause.reason() == "rank 1 reports: no device");
    }
    CHECK(said.size() == 1);
  }
}

TEST_CASE("after an exception of the all-gather function, it is not called again") {
  int calls = 0;
  const auto broken = [&](byte_view) -> std::vector<blob> {
    ++calls;
    throw std::runtime_error("broken");
  };
  {
    any_store place(all_gather_store(broken, 0, 2));
    CHECK_THROWS_AS(exchange(place, "key", 0, 2, {}, hocket::wait_limit{hocket::deadline()}), std::runtime_error);
  }
  CHECK(calls == 1);
}

}  // namespace
