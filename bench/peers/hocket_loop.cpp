// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: ucx
/// @file
/// Measures hocket between processes, for `./dev compare`: hocket_loop FOLDER RANKS own|allocated
#include "loop.hpp"

#include <hocket/bootstrap/launch.hpp>
#include <hocket/group/allocate.hpp>
#include <hocket/hocket.hpp>
#include <hocket/ucx.hpp>

#include <span>

namespace {

class hocket_processes {
 public:
  explicit hocket_processes(bool allocates) : allocates_(allocates) {}

  int rank() const { return comm_.rank(); }
  int ranks() const { return comm_.size(); }
  std::string version() const {
    return "hocket " + std::to_string(HOCKET_VERSION_MAJOR) + "." + std::to_string(HOCKET_VERSION_MINOR) + "." +
           std::to_string(HOCKET_VERSION_PATCH);
  }
  bool has(compare::call) const { return true; }

  std::shared_ptr<float[]> allocate(std::size_t count) const {
    if (!allocates_) return compare::aligned_elements(count);
    const auto owner = std::make_shared<hocket::shared_buffer<float>>(hocket::allocate<float>(comm_, count));
    return {owner, owner->data()};
  }

  void all_reduce(const float* in, float* out, std::size_t count) {
    hocket::all_reduce(comm_, std::span(in, count), std::span(out, count));
  }
  void reduce_scatter(const float* in, float* out, std::size_t block) {
    hocket::reduce_scatter(comm_, std::span(in, all(block)), std::span(out, block));
  }
  void all_gather(const float* in, float* out, std::size_t block) {
    hocket::all_gather(comm_, std::span(in, block), std::span(out, all(block)));
  }
  void all_to_all(const float* in, float* out, std::size_t block) {
    hocket::all_to_all(comm_, std::span(in, all(block)), std::span(out, all(block)));
  }
  void broadcast(float* buffer, std::size_t count) {
    hocket::broadcast(comm_, std::span(buffer, count), hocket::root{0});
  }
  void reduce(const float* in, float* out, std::size_t count) {
    hocket::reduce(comm_, std::span(in, count), std::span(out, count));
  }
  void gather(const float* in, float* out, std::size_t block) {
    hocket::gather(comm_, std::span(in, block), std::span(out, all(block)));
  }
  void scatter(const float* in, float* out, std::size_t block) {
    hocket::scatter(comm_, std::span(in, all(block)), std::span(out, block));
  }
  void gather_v(const float* in, float* out, const compare::uneven_blocks& blocks) {
    hocket::gather_v(comm_, std::span(in, blocks.of(rank())), std::span(out, blocks.sum()),
                     hocket::counts{blocks.lengths});
  }
  void scatter_v(const float* in, float* out, const compare::uneven_blocks& blocks) {
    hocket::scatter_v(comm_, std::span(in, blocks.sum()), std::span(out, blocks.of(rank())),
                      hocket::counts{blocks.lengths});
  }
  void barrier() { hocket::barrier(comm_); }
  void send(const float* from, std::size_t count, int to) {
    hocket::send(comm_, std::span(from, count), hocket::peer{to});
  }
  void receive(float* to, std::size_t count, int from) {
    hocket::recv(comm_, std::span(to, count), hocket::peer{from});
  }
  void exchange(const float* from, float* to, std::size_t count, int partner) {
    hocket::send_recv(comm_, std::span(from, count), hocket::peer{partner}, std::span(to, count),
                      hocket::peer{partner});
  }

 private:
  std::size_t all(std::size_t block) const { return block * static_cast<std::size_t>(comm_.size()); }

  hocket::ucx::communicator comm_ = hocket::ucx::connect();
  bool allocates_;
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  if (!hocket::launch::is_rank()) {
    return hocket::launch::spawn(std::atoi(arguments[2]), {arguments, arguments + count});
  }
  try {
    hocket_processes library(std::string(arguments[3]) == "allocated");
    // Afterwards, because a process that may run on one core only takes it for a host with one core.
    compare::pin(library.rank());
    return compare::serve(library, arguments[1]);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
  }
}
