// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Seven calls between processes: include_cost measures their compile time.
#include <hocket/ucx.hpp>

#include <cstddef>
#include <functional>
#include <vector>

int main() {
  auto comm = hocket::ucx::connect();
  const std::size_t count = 1024, ranks = static_cast<std::size_t>(comm.size());
  std::vector<float> in(count), out(count), blocks(count * ranks), other_blocks(count * ranks);
  hocket::all_reduce(comm, in, out, std::plus<>{});
  hocket::reduce_scatter(comm, blocks, out);
  hocket::all_gather(comm, in, blocks);
  hocket::all_to_all(comm, blocks, other_blocks);
  hocket::broadcast(comm, in, hocket::root{0});
  hocket::barrier(comm);
  hocket::send_recv(comm, in, hocket::peer{0}, out, hocket::peer{0});
}
