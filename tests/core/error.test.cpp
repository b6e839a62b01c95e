// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/core/error.hpp>

#include <set>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "support/catch.hpp"

using hocket::errc;

namespace {

constexpr int first_code = static_cast<int>(errc::timeout);
constexpr int last_code = static_cast<int>(errc::system);

/// The category as a second shared object would hold it: same name and meaning, another address.
class foreign_category final : public std::error_category {
 public:
  explicit foreign_category(const char* name) : name_(name) {}
  const char* name() const noexcept override { return name_; }
  std::string message(int) const override { return "foreign"; }

 private:
  const char* name_;
};

hocket::error_context full_context() {
  hocket::error_context context;
  context.operation = "all_reduce";
  context.sequence = 12;
  context.rank = 1;
  context.ranks = 4;
  context.peer = 3;
  context.lane = 2;
  context.step = 5;
  return context;
}

}  // namespace

TEST_CASE("every error code has its own message, and other numbers have none") {
  std::set<std::string> messages;
  for (int code = first_code; code <= last_code; ++code) {
    messages.insert(hocket::make_error_code(static_cast<errc>(code)).message());
  }
  CHECK(messages.size() == static_cast<std::size_t>(last_code - first_code + 1));
  CHECK(messages.count("unknown error") == 0);
  CHECK(hocket::error_category().message(first_code - 1) == "unknown error");
  CHECK(hocket::error_category().message(last_code + 1) == "unknown error");
}

TEST_CASE("an errc converts to an error code that is true and equals only its own condition") {
  STATIC_REQUIRE(std::is_error_code_enum_v<errc>);
  for (int i = first_code; i <= last_code; ++i) {
    const std::error_code code = static_cast<errc>(i);
    CHECK(code);
    CHECK(code.value() == i);
    for (int j = first_code; j <= last_code; ++j) {
      CHECK((code == hocket::make_error_condition(static_cast<errc>(j))) == (i == j));
    }
  }
  CHECK(hocket::make_error_code(errc::timeout) != std::make_error_condition(std::errc::timed_out));
}

TEST_CASE("conditions compare by the category's name, so that two shared objects agree") {
  const foreign_category twin("hocket");
  const foreign_category stranger("stranger");
  const int lost = static_cast<int>(errc::peer_lost);
  CHECK(std::error_code(lost, twin) == hocket::make_error_condition(errc::peer_lost));
  CHECK(std::error_code(lost, twin) != hocket::make_error_condition(errc::timeout));
  CHECK(std::error_code(lost, stranger) != hocket::make_error_condition(errc::peer_lost));
}

TEST_CASE("a default failure is false, and a failure with a code is true") {
  CHECK_FALSE(hocket::failure{});
  CHECK(hocket::make_failure(errc::aborted, ""));
}

TEST_CASE("the message contains operation, rank, cause, peer, step and lane") {
  const auto text = hocket::make_failure(errc::timeout, "waited 60 s for a chunk", full_context()).message();
  CHECK(text == "all_reduce #12 on rank 1 of 4: timed out: waited 60 s for a chunk [peer: rank 3] [step 5 of lane 2]");
}

TEST_CASE("unknown values are left out of the message") {
  CHECK(hocket::make_failure(errc::refused, "").message() == "connection refused by peer");
  CHECK(hocket::make_failure(errc::refused, "the token differs").message() ==
        "connection refused by peer: the token differs");

  hocket::error_context context;
  context.rank = 0;
  CHECK(hocket::make_failure(errc::aborted, "", context).message() == "on rank 0: aborted");

  context = full_context();
  context.lane = 0;
  context.sequence = 0;
  context.peer = -1;
  CHECK(hocket::make_failure(errc::aborted, "", context).message() == "all_reduce on rank 1 of 4: aborted [step 5]");
}

TEST_CASE("the caller's line is part of the message if it is known") {
  auto context = full_context();
  context.site = std::source_location::current();
  const auto line = std::to_string(context.site.line());
  const auto text = hocket::make_failure(errc::mismatch, "", context).message();
  CHECK(text.find("error.test.cpp:" + line + "]") != std::string::npos);
}

TEST_CASE("raise throws a std::system_error that contains the whole failure") {
  try {
    hocket::raise(errc::peer_lost, "its process ended", full_context());
    FAIL("raise returned");
  } catch (const std::system_error& caught) {
    CHECK(caught.code() == errc::peer_lost);
    const auto* error = dynamic_cast<const hocket::error*>(&caught);
    REQUIRE(error != nullptr);
    CHECK(error->reason() == "its process ended");
    CHECK(error->context().peer == 3);
    CHECK(error->what() == error->cause().message());
  }
}

TEST_CASE("a copy of an error keeps its message after the original is destroyed") {
  STATIC_REQUIRE(std::is_nothrow_move_constructible_v<hocket::failure>);
  std::string text;
  auto copy = [&] {
    const hocket::error original(hocket::make_failure(errc::truncated, std::string(100, 'x')));
    text = original.what();
    return hocket::error(original);
  }();
  CHECK(copy.what() == text);
}
