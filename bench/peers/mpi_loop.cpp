// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Measures an MPI, for `./dev compare`: mpi_loop FOLDER, started by the launcher of that MPI.
#include "loop.hpp"

#include <mpi.h>

namespace {

class mpi {
 public:
  mpi(int count, char** arguments) {
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }
  mpi(const mpi&) = delete;
  mpi& operator=(const mpi&) = delete;
  ~mpi() { MPI_Finalize(); }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  std::string version() const {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(text, &length);
    return text;
  }
  bool has(compare::call) const { return true; }
  std::shared_ptr<float[]> allocate(std::size_t count) const { return compare::aligned_elements(count); }

  void all_reduce(const float* in, float* out, std::size_t count) {
    MPI_Allreduce(in, out, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  void reduce_scatter(const float* in, float* out, std::size_t block) {
    MPI_Reduce_scatter_block(in, out, static_cast<int>(block), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  void all_gather(const float* in, float* out, std::size_t block) {
    MPI_Allgather(in, static_cast<int>(block), MPI_FLOAT, out, static_cast<int>(block), MPI_FLOAT, MPI_COMM_WORLD);
  }
  void all_to_all(const float* in, float* out, std::size_t block) {
    MPI_Alltoall(in, static_cast<int>(block), MPI_FLOAT, out, static_cast<int>(block), MPI_FLOAT, MPI_COMM_WORLD);
  }
  void broadcast(float* buffer, std::size_t count) {
    MPI_Bcast(buffer, static_cast<int>(count), MPI_FLOAT, 0, MPI_COMM_WORLD);
  }
  void reduce(const float* in, float* out, std::size_t count) {
    MPI_Reduce(in, out, static_cast<int>(count), MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
  }
  void gather(const float* in, float* out, std::size_t block) {
    MPI_Gather(in, static_cast<int>(block), MPI_FLOAT, out, static_cast<int>(block), MPI_FLOAT, 0, MPI_COMM_WORLD);
  }
  void scatter(const float* in, float* out, std::size_t block) {
    MPI_Scatter(in, static_cast<int>(block), MPI_FLOAT, out, static_cast<int>(block), MPI_FLOAT, 0, MPI_COMM_WORLD);
  }
  void gather_v(const float* in, float* out, const compare::uneven_blocks& blocks) {
    MPI_Gatherv(in, static_cast<int>(blocks.of(rank_)), MPI_FLOAT, out, blocks.int_lengths.data(),
                blocks.int_offsets.data(), MPI_FLOAT, 0, MPI_COMM_WORLD);
  }
  void scatter_v(const float* in, float* out, const compare::uneven_blocks& blocks) {
    MPI_Scatterv(in, blocks.int_lengths.data(), blocks.int_offsets.data(), MPI_FLOAT, out,
                 static_cast<int>(blocks.of(rank_)), MPI_FLOAT, 0, MPI_COMM_WORLD);
  }
  void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
  void send(const float* from, std::size_t count, int to) {
    MPI_Send(from, static_cast<int>(count), MPI_FLOAT, to, 0, MPI_COMM_WORLD);
  }
  void receive(float* to, std::size_t count, int from) {
    MPI_Recv(to, static_cast<int>(count), MPI_FLOAT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  void exchange(const float* from, float* to, std::size_t count, int partner) {
    MPI_Sendrecv(from, static_cast<int>(count), MPI_FLOAT, partner, 0, to, static_cast<int>(count), MPI_FLOAT, partner,
                 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }

 private:
  int rank_ = 0;
  int ranks_ = 1;
};

/// Pins this process before the library starts, so that the library sees its core and allocates its memory there.
void pin_by_environment() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
    if (const char* rank = std::getenv(name)) return compare::pin(std::atoi(rank));
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) return 2;
  const std::string folder = arguments[1];
  pin_by_environment();
  mpi library(count, arguments);
  compare::pin(library.rank());
  return compare::serve(library, folder);
}
