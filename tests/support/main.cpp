// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The one main of every test program, compiled once, for Catch2 3 and for the single header of Catch2 2.
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

int main(int argument_count, char* arguments[]) { return Catch::Session().run(argument_count, arguments); }
