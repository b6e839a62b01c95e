// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A job of four processes that fails in one of the usual ways: `what_happened killed`, `late` or `differs`. With
// HOCKET_FLIGHT_RECORDER=DIRECTORY each rank records its last calls there, and `hocket-flight DIRECTORY` explains what
// happened.
// needs: ucx
// arguments: differs
// expect: calls do not match across ranks
#include <hocket/bootstrap/launch.hpp>
#include <hocket/ucx.hpp>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

/// A training step: adds the gradients of all ranks, then waits in a barrier.
void step(const hocket::ucx::communicator& comm, std::size_t parameters) {
  std::vector<float> gradients(parameters, 1.0F);
  hocket::all_reduce(comm, hocket::in_place(gradients));
  hocket::barrier(comm);
}

void train(hocket::ucx::communicator& comm, const std::string& how) {
  comm.set_timeout(std::chrono::seconds(1));
  for (int i = 0; i < 1000; ++i) {
    const bool odd_one = comm.rank() == 2 && i == 10;
    if (odd_one && how == "killed") std::raise(SIGKILL);
    if (odd_one && how == "late") std::this_thread::sleep_for(std::chrono::seconds(3));
    step(comm, odd_one && how == "differs" ? 9'000 : 10'000);
  }
}

int run_rank(const std::string& how) {
  hocket::ucx::communicator comm = hocket::ucx::connect();
  try {
    train(comm, how);
  } catch (const hocket::error& cause) {
    std::printf("%s\n", cause.what());
    return 0;  // this failure is expected
  }
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string how = count > 1 ? arguments[1] : "killed";
  if (hocket::launch::is_rank()) return run_rank(how);
  hocket::launch::spawn_options quiet;
  quiet.report = false;
  const int status = hocket::launch::spawn(4, {arguments[0], how}, quiet);
  return status == 1 ? 1 : 0;
}
