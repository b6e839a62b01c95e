// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The main function of every test program, compiled once, for Catch2 3 and for the single header of Catch2 2.
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

// The same options as in the presets' environment, for programs that run without CTest. The sanitizers of g++ up to 13
// may mistake a thread_local variable of a library loaded later for one of an older glibc, and search for leaks at 0.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "intercept_tls_get_addr=0"; }
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return HOCKET_TEST_LEAKS_OF_OTHERS; }

int main(int argument_count, char* arguments[]) { return Catch::Session().run(argument_count, arguments); }
