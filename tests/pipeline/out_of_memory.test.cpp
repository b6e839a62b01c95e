// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where one rank lacks the memory for what lies between its stages, all ranks end with an error that says so, and soon:
// operator new for aligned memory is replaced by one that has not more than a machine of today.
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

constexpr std::size_t most = std::size_t{1} << 36;  // sanitizers end a program that asks for much more

void* memory_or_null(std::size_t bytes, std::align_val_t alignment) noexcept {
  const auto multiple = static_cast<std::size_t>(alignment);
  return bytes > most ? nullptr : std::aligned_alloc(multiple, (bytes / multiple + 1) * multiple);
}

}  // namespace

// Not inlined: g++ would compare what is inside of one with what is inside of the other.
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

/// Takes and gives what it is told to.
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

/// Between the last two stages lies more than there is memory for.
sized_stage stage_of(int rank, int ranks) {
  const auto between = [&](int boundary) {
    if (boundary < 0 || boundary + 1 == ranks) return std::size_t{0};
    return boundary + 2 == ranks ? vast : std::size_t{8};
  };
  return {between(rank - 1), between(rank)};
}

}  // namespace

TEST_CASE("where a rank lacks the memory for what lies between stages, all ranks hear of it at once") {
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
      me.check(text.find("bytes") != std::string::npos, [&] { return "does not say how much was asked for: " + text; });
    });
  }
}

TEST_CASE("on simulated ranks the first step tells all of them that one lacks memory") {
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
