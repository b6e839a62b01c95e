// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// User-defined algorithms for all_reduce: written as plans, proven, priced, drawn and run.
//
//   own_algorithm [FILE.svg]   FILE.svg: file for the drawing of the pipeline
//
// A plan specifies what each rank does in each step, and nothing else. The first one is a type, for any number of
// ranks: a pipeline along a chain. The second is a list of steps for three ranks. The third is the second with two
// steps in the wrong order; the proof finds the error without a run.
// expect: the proof refuses the wrong one: .*the step overwrites what may still be in transit to a peer
#include <hocket/draw/plan.hpp>
#include <hocket/hocket.hpp>
#include <hocket/plan/listed.hpp>
#include <hocket/plan/price.hpp>
#include <hocket/plan/prove.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <utility>
#include <vector>

namespace {

namespace plan = hocket::plan;

/// Divides the vector into pieces. Lane 0 passes partial results up the chain of ranks, and each rank adds its input;
/// lane 1 passes the results down while later pieces are still in transit up the chain.
struct pipelined_chain {
  unsigned pieces = 4;

  static constexpr const char* name() { return "pipelined_chain"; }
  static constexpr plan::collective collective() { return {plan::collective_kind::all_reduce}; }
  constexpr plan::shape shape(int) const {
    return {.chunks_per_block = pieces, .lanes = 2, .order = plan::combination_order::rank_order};
  }

  constexpr unsigned length(int ranks, int rank, unsigned lane) const { return pieces * steps(ranks, rank, lane); }

  constexpr plan::action at(int ranks, int rank, unsigned lane, unsigned i) const {
    const unsigned piece = i / steps(ranks, rank, lane);
    const bool second = i % steps(ranks, rank, lane) == 1;
    const int above = rank + 1;
    const int below = rank - 1;
    if (ranks == 1) return plan::copy({piece}, plan::in(piece), plan::out(piece));
    if (lane == 1) {
      return second ? plan::send(below, {piece}, plan::out(piece)) : plan::receive(above, {piece}, plan::out(piece));
    }
    if (rank == 0) return plan::send(above, {piece}, plan::in(piece));
    if (second) return plan::send(rank + 1 == ranks ? below : above, {piece}, plan::out(piece));
    return plan::receive_reduce(below, {piece}, plan::in(piece), plan::out(piece), plan::operand_order::message_first);
  }

 private:
  /// Returns the number of steps per piece.
  static constexpr unsigned steps(int ranks, int rank, unsigned lane) {
    if (ranks == 1) return lane == 0 ? 1 : 0;
    const bool first = rank == 0;
    const bool last = rank + 1 == ranks;
    if (lane == 1 && last) return 0;
    return first ? 1 : 2;
  }
};

static_assert(plan::algorithm<pipelined_chain>);
static_assert(plan::prove(pipelined_chain{4}, 1));
static_assert(plan::prove(pipelined_chain{4}, 2));
static_assert(plan::prove(pipelined_chain{4}, 5), "the compiler proves the plan");

/// Every rank sends to rank 0, which adds in rank order and sends the result to all ranks.
plan::listed star_of_three() {
  using enum plan::operand_order;
  plan::listed star("star", {plan::collective_kind::all_reduce}, 3, {.order = plan::combination_order::rank_order});
  star.lane(0) = {plan::receive_reduce(1, {0}, plan::in(0), plan::out(0), local_first),
                  plan::receive_reduce(2, {0}, plan::out(0), plan::out(0), local_first),
                  plan::send(1, {0}, plan::out(0)), plan::send(2, {0}, plan::out(0))};
  for (const int rank : {1, 2}) {
    star.lane(rank) = {plan::send(0, {0}, plan::in(0)), plan::receive(0, {0}, plan::out(0))};
  }
  return star;
}

/// Runs the plan on threads as ranks. Returns true if every element on every rank is right.
template <class Plan>
bool runs(const Plan& own, int ranks) {
  std::atomic<std::size_t> right{0};
  const std::size_t size = 10'007;
  hocket::local::run(ranks, [&](auto comm) {
    std::vector<std::int64_t> mine(size);
    std::vector<std::int64_t> sum(size);
    for (std::size_t i = 0; i < size; ++i) mine[i] = static_cast<std::int64_t>(i) * (comm.rank() + 1);
    hocket::all_reduce(comm, mine, sum, std::plus<>{}, hocket::with(hocket::algorithm(own)));
    for (std::size_t i = 0; i < size; ++i) right += sum[i] == static_cast<std::int64_t>(i) * ranks * (ranks + 1) / 2;
  });
  return right == size * static_cast<std::size_t>(ranks);
}

template <class Plan>
bool prove_and_run(const Plan& own, int ranks) {
  const plan::proof found = plan::prove(own, ranks);
  std::printf("%s %s\n", own.name(), found.message().c_str());
  const bool right = found && runs(own, ranks);
  std::printf("  run on %d threads: %s\n", ranks, right ? "all results right" : "WRONG");
  return right;
}

void compare_prices(int ranks) {
  std::printf("\nprices on %d ranks, with round figures for the machine (us):\n%10s %16s %16s %8s\n", ranks, "bytes",
              "chain, 4 pieces", "chain, 32 pieces", "ring");
  const auto microseconds = [&](const auto& each, std::size_t bytes) {
    return 1e6 * plan::price(each, ranks, bytes, plan::example_machine).seconds;
  };
  for (const std::size_t bytes : {std::size_t{1} << 10, std::size_t{1} << 16, std::size_t{1} << 22}) {
    std::printf("%10zu %16.1f %16.1f %8.1f\n", bytes, microseconds(pipelined_chain{4}, bytes),
                microseconds(pipelined_chain{32}, bytes), microseconds(plan::ring_all_reduce{}, bytes));
  }
}

bool write_drawing(const char* path) {
  std::FILE* const file = std::fopen(path, "w");
  if (file == nullptr) return false;
  std::fputs(plan::draw_svg(pipelined_chain{4}, 5).c_str(), file);
  return std::fclose(file) == 0;
}

}  // namespace

int main(int count, char** arguments) {
  bool right = prove_and_run(pipelined_chain{4}, 5);
  right = prove_and_run(star_of_three(), 3) && right;

  compare_prices(5);
  std::printf("\n%s\n", plan::draw_text(pipelined_chain{2}, 3).c_str());
  if (count > 1 && !write_drawing(arguments[1])) {
    std::fprintf(stderr, "own_algorithm: cannot write '%s'\n", arguments[1]);
    return 1;
  }

  plan::listed hasty = star_of_three();
  std::swap(hasty.lane(0)[1], hasty.lane(0)[2]);  // answers rank 1 before it receives from rank 2
  const plan::proof refused = plan::prove(hasty, 3);
  std::printf("the proof refuses the wrong one: %s\n", refused.message().c_str());
  return right && !refused ? 0 : 1;
}
