// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A redistribution allocates memory for its result, but not for a copy of a tensor that it only reads. The test
// replaces operator new by one that counts bytes per thread.
#include "support/thread_ranks.hpp"

#include <hocket/mesh/mesh.hpp>
#include <hocket/shard/redistribute.hpp>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

namespace {

thread_local std::size_t bytes_taken = 0;

void* counted(std::size_t bytes) noexcept {
  bytes_taken += bytes;
  return std::malloc(bytes == 0 ? 1 : bytes);
}

void* counted_or_thrown(std::size_t bytes) {
  if (void* const made = counted(bytes)) return made;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return counted_or_thrown(bytes); }
void* operator new[](std::size_t bytes) { return counted_or_thrown(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes); }
void operator delete(void* made) noexcept { std::free(made); }
void operator delete[](void* made) noexcept { std::free(made); }
void operator delete(void* made, std::size_t) noexcept { std::free(made); }
void operator delete[](void* made, std::size_t) noexcept { std::free(made); }

using namespace hocket_test;
using hocket::on;
using hocket::partial;
using hocket::replicated;
using hocket::shard;

TEST_CASE("a redistribution does not copy a tensor that it only reads") {
  on_ranks(2, [](thread_rank& me) {
    const auto ranks = hocket::mesh<"tp">(me.comm(), {2});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    constexpr std::size_t bytes = std::size_t{512} * 256 * sizeof(double);
    using matrix = hocket::extents<hocket::dynamic, 256>;
    const auto taken_for = [&](const auto& x, auto said) {
      const std::size_t before = bytes_taken;
      const auto y = hocket::redistribute<decltype(said)>(x);
      const std::size_t result = y.elements().size_bytes();
      return bytes_taken - before - result;
    };
    const auto is_small = [&](std::size_t taken, const char* what) {
      me.check(taken < bytes / 4, [&] { return std::string(what) + ": " + std::to_string(taken) + " bytes more"; });
    };
    const hocket::tensor<double, matrix, mesh_type, on<"tp", replicated>> whole(ranks, {512});
    is_small(taken_for(whole, on<"tp", shard<0>>()), "slices");
    const hocket::tensor<double, matrix, mesh_type, on<"tp", partial<hocket::sum>>> summands(ranks, {512});
    is_small(taken_for(summands, on<"tp", replicated>()), "sums");
    is_small(taken_for(summands, on<"tp", shard<0>>()), "slices of sums");
  });
}
