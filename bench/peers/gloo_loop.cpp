// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Measures Gloo over TCP on the loopback device, its only transport on one host, for `./dev compare`:
/// gloo_loop FOLDER RANKS. It has no reduce-scatter that leaves its input unchanged, and its packages no gather and scatter
/// of blocks of different lengths, so these calls are left out.
#include "loop.hpp"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include <csignal>
#include <cstdint>

#include <sys/prctl.h>
#include <sys/wait.h>

namespace {

class gloo_processes {
 public:
  gloo_processes(int rank, int ranks, const std::string& folder)
      : context_(std::make_shared<gloo::rendezvous::Context>(rank, ranks)) {
    gloo::rendezvous::FileStore store(folder);
    const gloo::transport::tcp::attr where("127.0.0.1");
    std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(where);
    context_->connectFullMesh(store, device);
  }

  int rank() const { return context_->rank; }
  int ranks() const { return context_->size; }
  std::string version() const { return "Gloo"; }
  bool has(compare::call what) const {
    return what != compare::call::reduce_scatter && what != compare::call::gather_v && what != compare::call::scatter_v;
  }
  std::shared_ptr<float[]> allocate(std::size_t count) const { return compare::aligned_elements(count); }

  void all_reduce(const float* in, float* out, std::size_t count) {
    gloo::AllreduceOptions options(context_);
    options.setInput(const_cast<float*>(in), count);
    options.setOutput(out, count);
    options.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
    gloo::allreduce(options);
  }
  void reduce_scatter(const float*, float*, std::size_t) { throw std::logic_error("Gloo has no such reduce-scatter"); }
  void all_gather(const float* in, float* out, std::size_t block) {
    gloo::AllgatherOptions options(context_);
    options.setInput(const_cast<float*>(in), block);
    options.setOutput(out, all(block));
    gloo::allgather(options);
  }
  void all_to_all(const float* in, float* out, std::size_t block) {
    gloo::AlltoallOptions options(context_);
    options.setInput(const_cast<float*>(in), all(block));
    options.setOutput(out, all(block));
    gloo::alltoall(options);
  }
  void broadcast(float* buffer, std::size_t count) {
    gloo::BroadcastOptions options(context_);
    options.setOutput(buffer, count);
    options.setRoot(0);
    gloo::broadcast(options);
  }
  void reduce(const float* in, float* out, std::size_t count) {
    gloo::ReduceOptions options(context_);
    options.setInput(const_cast<float*>(in), count);
    options.setOutput(out, count);
    options.setRoot(0);
    options.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
    gloo::reduce(options);
  }
  void gather(const float* in, float* out, std::size_t block) {
    gloo::GatherOptions options(context_);
    options.setInput(const_cast<float*>(in), block);
    if (rank() == 0) options.setOutput(out, all(block));
    options.setRoot(0);
    gloo::gather(options);
  }
  void scatter(const float* in, float* out, std::size_t block) {
    gloo::ScatterOptions options(context_);
    if (rank() == 0) {
      std::vector<float*> blocks;
      for (std::size_t at = 0; at < all(block); at += block) blocks.push_back(const_cast<float*>(in) + at);
      options.setInputs(blocks, block);
    }
    options.setOutput(out, block);
    options.setRoot(0);
    gloo::scatter(options);
  }
  void gather_v(const float*, float*, const compare::uneven_blocks&) {
    throw std::logic_error("Gloo's packages have no gather of blocks of different lengths");
  }
  void scatter_v(const float*, float*, const compare::uneven_blocks&) {
    throw std::logic_error("Gloo has no scatter of blocks of different lengths");
  }
  void barrier() {
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  }
  void send(const float* from, std::size_t count, int to) {
    const auto buffer = context_->createUnboundBuffer(const_cast<float*>(from), count * sizeof(float));
    buffer->send(to, message_slot);
    buffer->waitSend();
  }
  void receive(float* to, std::size_t count, int from) {
    const auto buffer = context_->createUnboundBuffer(to, count * sizeof(float));
    buffer->recv(from, message_slot);
    buffer->waitRecv();
  }
  void exchange(const float* from, float* to, std::size_t count, int partner) {
    const auto out = context_->createUnboundBuffer(const_cast<float*>(from), count * sizeof(float));
    const auto in = context_->createUnboundBuffer(to, count * sizeof(float));
    in->recv(partner, message_slot);
    out->send(partner, message_slot);
    out->waitSend();
    in->waitRecv();
  }

 private:
  static constexpr std::uint64_t message_slot = 1ULL << 40;  // collectives use smaller ones

  std::size_t all(std::size_t block) const { return block * static_cast<std::size_t>(context_->size); }

  std::shared_ptr<gloo::rendezvous::Context> context_;
};

int run_rank(int rank, int ranks, const std::string& folder) {
  compare::pin(rank);  // before Gloo starts its thread, which stays on the same core
  try {
    gloo_processes library(rank, ranks, folder);
    return compare::serve(library, folder);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "rank %d: %s\n", rank, problem.what());
    return 1;
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const int ranks = std::atoi(arguments[2]);
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    if (child < 0) return 1;
    if (child > 0) continue;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::_Exit(run_rank(rank, ranks, arguments[1]));
  }
  int worst = 0;
  for (int status = 0; ::wait(&status) > 0;) worst = worst != 0 ? worst : status;
  return worst == 0 ? 0 : 1;
}
