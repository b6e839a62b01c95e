// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Four processes add up numbers in a loop. One is killed; the others shrink the communicator and continue, because the
// launcher does not end them.
// needs: ucx
// expect: step 20: the sum over 3 ranks is 30
#include <hocket/bootstrap/launch.hpp>
#include <hocket/ucx.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <span>

namespace {

/// Adds up the numbers 10 of all ranks.
int add_up(const hocket::ucx::communicator& comm) {
  const int mine = 10;
  int sum = 0;
  hocket::all_reduce(comm, std::span(&mine, 1), std::span(&sum, 1));
  return sum;
}

int run_rank() {
  hocket::ucx::communicator comm = hocket::ucx::connect();
  const bool will_be_killed = comm.rank() == 2;
  int sum = 0;
  for (int step = 0; step <= 20; ++step) {
    if (will_be_killed && step == 10) std::raise(SIGKILL);
    try {
      sum = add_up(comm);
    } catch (const hocket::error& cause) {
      if (comm.rank() == 0) std::printf("%s\n", cause.what());
      comm = hocket::shrink(comm);  // collective over the ranks that live
      --step;                       // repeat the step that failed
    }
  }
  if (comm.rank() == 0) std::printf("step 20: the sum over %d ranks is %d\n", comm.size(), sum);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (hocket::launch::is_rank()) return run_rank();
  hocket::launch::spawn_options options;
  options.grace = std::chrono::nanoseconds::max();  // the others may continue as long as they need
  const int status = hocket::launch::spawn(4, {arguments, arguments + count}, options);
  return status == 128 + SIGKILL ? 0 : 1;  // the status of the rank that failed first
}
