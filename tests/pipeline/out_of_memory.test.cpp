// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// If one rank lacks the memory for the buffers between stages, all ranks fail soon with an error that states this.
// Aligned operator new is replaced by a function that fails above a limit.
#include "schedule/schedules.hpp"
#include "support/catch.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/collective/barrier.hpp>
#include <hocket/pipeline/executor.hpp>
#include <hocket/sim.hpp>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

using namespace pipeline_test;
using hocket_test::on_ranks;
using hocket_test::thread_rank;
namespace pipeline = hocket::pipeline;

namespace {

constexpr std::size_t most = std::size_t{1} << 36;  // sanitizers end a program that requests much more

void* memory_or_null(std::size_t bytes, std::align_val_t alignment) noexcept {
  const auto multiple = static_cast<std::size_t>(alignment);
  return bytes > most ? nullptr : std::aligned_alloc(multiple, (bytes / multiple + 1) * multiple);
}

}  // namespace

// Not inlined, because g++ would compare the function called in operator new with that in operator delete.
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  if (void* const made = memory_or_null(bytes, alignment)) return made;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return memory_or_null(bytes, alignment);
}
[[gnu::noinline]] void operator delete(void* made, std::align_val_t) noexcept { std::free(made); }
[[gnu::noinline]] void operator delete(void* made, std::size_t, std::align_val_t) noexcept { std::free(made); }

namespace {

constexpr std::size_t vast = std::size_t{1} << 38;

/// A stage with the given input and output sizes.
struct sized_stage {
  using input_type = std::byte;
  using output_type = std::byte;
  std::size_t takes = 0;
  std::size_t gives = 0;
  std::size_t input_size() const { return takes; }
  std::size_t output_size() const { return gives; }
  void forward(int, std::span<const std::byte>, std::span<std::byte>) {}
  void backward(int, std::span<const std::byte>, std::span<const std::byte>, std::span<std::byte>) {}
};

/// Returns the stage of a rank. The buffer between the last two stages exceeds the memory.
sized_stage stage_of(int rank, int ranks) {
  const auto between = [&](int boundary) {
    if (boundary < 0 || boundary + 1 == ranks) return std::size_t{0};
    return boundary + 2 == ranks ? vast : std::size_t{8};
  };
  return {between(rank - 1), between(rank)};
}

}  // namespace

TEST_CASE("if a rank lacks the memory for buffers between stages, all ranks fail immediately") {
  for (const int ranks : {3, 5}) {
    on_ranks(ranks, [&](thread_rank& me) {
      me.comm().set_timeout(std::chrono::seconds(60));  // longer than the test may take
      sized_stage own = stage_of(me.rank(), ranks);
      const auto found = me.expect(hocket::errc::out_of_memory, [&] {
        pipeline::executor run(me.comm(), schedules::one_forward_one_backward(ranks, 4), {own});
        run.run();
        hocket::barrier(me.comm());
      });
      const std::string text = found ? found->what() : "";
      me.check(text.find("bytes") != std::string::npos, [&] { return "the message lacks the size: " + text; });
    });
  }
}

TEST_CASE("on simulated ranks, the first step fails on all ranks if one rank lacks memory") {
  constexpr int ranks = 3;
  hocket::sim::world world(ranks);
  std::vector<std::unique_ptr<pipeline::executor<hocket::sim::domain>>> all;
  const schedule plan = schedules::one_forward_one_backward(ranks, 4);
  std::deque<sized_stage> stages;  // which the executors refer to
  for (int rank = 0; rank < ranks; ++rank) {
    stages.push_back(stage_of(rank, ranks));
    all.push_back(std::make_unique<pipeline::executor<hocket::sim::domain>>(
        world.comm(rank), plan, std::vector<pipeline::any_stage>{stages.back()}));
  }
  for (auto& each : all) each->start();
  CHECK_THROWS_WITH(world.run(), Catch::Contains("out of memory"));
  for (auto& each : all) CHECK_THROWS_WITH(each->advance(), Catch::Contains("out of memory"));
}
