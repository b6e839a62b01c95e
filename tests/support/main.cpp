// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The main function of every test program, compiled once, for Catch2 3 and for the single header of Catch2 2.
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include <string>

// The same options as in the presets' environment, for programs that run without CTest. The sanitizers of g++ up to 13
// may mistake a thread_local variable of a library loaded later for one of an older glibc, and search for leaks at 0.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "intercept_tls_get_addr=0"; }
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return HOCKET_TEST_LEAKS_OF_OTHERS; }

namespace {

/// Returns a filter by name so that it does not select hidden cases, which need what only their tests prepare: a tag or
/// a whole name selects them.
std::string without_hidden(const std::string& filter) {
  constexpr char wildcard = '*', tag = '[';
  if (filter.find(wildcard) == std::string::npos || filter.find(tag) != std::string::npos) return filter;
  std::string result = "~[.]";
  for (const char each : filter) {
    const bool begins_alternative = each == ',' && result.back() != '\\';
    result += each;
    if (begins_alternative) result += "~[.]";
  }
  return result;
}

}  // namespace

int main(int argument_count, char* arguments[]) {
  Catch::Session tests;
  if (const int status = tests.applyCommandLine(argument_count, arguments); status != 0) return status;
  for (std::string& each : tests.configData().testsOrTags) each = without_hidden(each);
  return tests.run();
}
