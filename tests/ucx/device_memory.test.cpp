// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives between processes on memory that the CPU can't access, of a library with the names of CUDA's driver: UCX
// sends this memory if it has modules for CUDA, otherwise hocket stages it. The test ucx/device_memory runs these cases
// with that library in place of the driver.
#include "support/catch.hpp"
#include "ucx/ranks.hpp"

#include <hocket/collective/device/staged.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace ucx_test;
namespace cuda = hocket::cuda;
namespace ipc = hocket::cuda_ipc;
using hocket::with;

namespace {

/// The driver and a stream.
class device {
 public:
  device() {
    hocket::failure why;
    driver_ = ipc::driver::load(why);
    if (!driver_) hocket::raise(std::move(why));
    check(driver_->device_primary_ctx_retain(&context_, 0));
    check(driver_->ctx_set_current(context_));
    check(driver_->stream_create(&stream_, ipc::stream_non_blocking));
  }
  device(const device&) = delete;
  device& operator=(const device&) = delete;
  ~device() { driver_->stream_destroy(stream_); }

  cuda::stream_ref order() const { return reinterpret_cast<CUstream_st*>(stream_); }
  ipc::driver& driver() { return *driver_; }
  void copy(const void* to, const void* from, std::size_t bytes) {
    const auto at = [](const void* place) { return reinterpret_cast<std::uintptr_t>(place); };
    check(driver_->memcpy_async(at(to), at(from), bytes, stream_));
    check(driver_->stream_synchronize(stream_));
  }
  static void check(ipc::status said) {
    if (said != ipc::status::success) hocket::raise(hocket::errc::system, "the test's driver returned an error");
  }

 private:
  std::optional<ipc::driver> driver_;
  ipc::context_handle context_ = nullptr;
  ipc::stream_handle stream_ = nullptr;
};

/// Elements in device memory, with one more at each end that must not change.
class device_vector {
 public:
  static constexpr std::uint64_t mark = 0x5eed;

  device_vector(device& on, const std::vector<std::uint64_t>& values) : on_(on), size_(values.size()) {
    device::check(on.driver().mem_alloc(&base_, (size_ + 2) * sizeof mark));
    std::vector<std::uint64_t> all{mark};
    all.insert(all.end(), values.begin(), values.end());
    all.push_back(mark);
    on_.copy(base(), all.data(), all.size() * sizeof mark);
  }
  device_vector(device& on, std::size_t size) : device_vector(on, std::vector<std::uint64_t>(size)) {}
  device_vector(const device_vector&) = delete;
  device_vector& operator=(const device_vector&) = delete;
  ~device_vector() { on_.driver().mem_free(base_); }

  std::span<std::uint64_t> span() const { return {base() + 1, size_}; }
  /// Returns the elements, or only `mark` if an element beside them has changed.
  std::vector<std::uint64_t> values() const {
    std::vector<std::uint64_t> all(size_ + 2);
    on_.copy(all.data(), base(), all.size() * sizeof mark);
    if (all.front() != mark || all.back() != mark) return {mark};
    return {all.begin() + 1, all.end() - 1};
  }

 private:
  std::uint64_t* base() const { return reinterpret_cast<std::uint64_t*>(base_); }

  device& on_;
  const std::size_t size_;
  ipc::address base_ = 0;
};

bool carried(const communicator& comm) {
  return hocket::transport::is_device_aware(*hocket::detail::communicator_access::state(comm).domain());
}

/// Returns block `mine`, of `size` elements, of each rank's vector, in the order of ranks.
std::vector<std::uint64_t> blocks_for(int mine, int ranks, std::size_t size) {
  std::vector<std::uint64_t> result;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto theirs = vector_of(rank, size * static_cast<std::size_t>(ranks));
    const auto begin = theirs.begin() + static_cast<std::ptrdiff_t>(size) * mine;
    result.insert(result.end(), begin, begin + static_cast<std::ptrdiff_t>(size));
  }
  return result;
}

/// Checks each collective once with `more` options, on `size` elements or blocks of this size.
template <class... More>
void check_all(const communicator& comm, device& on, std::size_t size, findings& found, More... more) {
  const auto p = static_cast<std::size_t>(comm.size());
  const int rank = comm.rank();
  const auto options = with(on.order(), more...);
  const std::string what = " of " + std::to_string(size) + " with " + std::to_string(sizeof...(more)) + " more";

  device_vector own(on, vector_of(rank, size)), all(on, p * size), sums(on, size);
  std::vector<std::uint64_t> gathered;
  for (int each = 0; each < comm.size(); ++each) {
    const auto theirs = vector_of(each, size);
    gathered.insert(gathered.end(), theirs.begin(), theirs.end());
  }
  hocket::all_gather(comm, cuda::device(own.span()), cuda::device(all.span()), options);
  found.expect(all.values() == gathered, "all_gather" + what);

  device_vector whole(on, p * size);
  const auto block = whole.span().subspan(static_cast<std::size_t>(rank) * size, size);
  on.copy(block.data(), vector_of(rank, size).data(), size * sizeof(std::uint64_t));
  hocket::all_gather(comm, cuda::device(block), cuda::device(whole.span()), options);
  found.expect(whole.values() == gathered, "all_gather in place" + what);

  device_vector given(on, vector_of(rank, p * size)), taken(on, p * size);
  hocket::all_to_all(comm, cuda::device(given.span()), cuda::device(taken.span()), options);
  found.expect(taken.values() == blocks_for(rank, comm.size(), size), "all_to_all" + what);
  hocket::request exchange =
      hocket::all_to_all_async(comm, cuda::device(given.span()), cuda::device(given.span()), options);
  exchange.wait();
  found.expect(given.values() == blocks_for(rank, comm.size(), size), "all_to_all in place" + what);

  const int root = comm.size() / 2;
  device_vector copy(on, vector_of(rank, size));
  hocket::broadcast(comm, cuda::device(copy.span()), hocket::root{root}, options);
  found.expect(copy.values() == vector_of(root, size), "broadcast" + what);

  hocket::all_reduce(comm, cuda::device(own.span()), cuda::device(sums.span()), std::plus<>{}, with(on.order()));
  found.expect(sums.values() == sum_of(comm.size(), size), "all_reduce" + what);
}

/// The same with blocks of given lengths, and messages between neighbours; those of rank 0 are the shortest.
template <class... More>
void check_uneven(const communicator& comm, device& on, std::size_t size, findings& found, More... more) {
  const auto p = static_cast<std::size_t>(comm.size()), r = static_cast<std::size_t>(comm.rank());
  const auto options = with(on.order(), more...);
  const std::string what = " from " + std::to_string(size) + " on, with " + std::to_string(sizeof...(more)) + " more";

  std::vector<std::size_t> lengths(p);
  for (std::size_t each = 0; each < p; ++each) lengths[each] = each * size;
  std::vector<std::uint64_t> gathered;
  for (int each = 0; each < comm.size(); ++each) {
    const auto theirs = vector_of(each, lengths[static_cast<std::size_t>(each)]);
    gathered.insert(gathered.end(), theirs.begin(), theirs.end());
  }
  device_vector own(on, vector_of(comm.rank(), lengths[r])), all(on, gathered.size());
  hocket::all_gather_v(comm, cuda::device(own.span()), cuda::device(all.span()), hocket::counts{lengths}, options);
  found.expect(all.values() == gathered, "all_gather_v" + what);

  device_vector block(on, lengths[r]);
  hocket::reduce_scatter_v(comm, cuda::device(all.span()), cuda::device(block.span()), hocket::counts{lengths},
                           std::plus<>{}, with(on.order()));
  auto sums = vector_of(comm.rank(), lengths[r]);
  for (std::uint64_t& each : sums) each *= p;
  found.expect(block.values() == sums, "reduce_scatter_v" + what);

  // Rank s sends (s + d) % p times `size` elements to rank d: the first ones of its vector.
  std::vector<std::size_t> counts(p);
  std::vector<std::uint64_t> sent, expected;
  for (std::size_t other = 0; other < p; ++other) {
    counts[other] = (r + other) % p * size;
    const auto mine = vector_of(comm.rank(), counts[other]), theirs = vector_of(static_cast<int>(other), counts[other]);
    sent.insert(sent.end(), mine.begin(), mine.end());
    expected.insert(expected.end(), theirs.begin(), theirs.end());
  }
  device_vector given(on, sent), taken(on, expected.size());
  hocket::all_to_all_v(comm, cuda::device(given.span()), cuda::device(taken.span()), hocket::send_counts{counts},
                       hocket::receive_counts{counts}, options);
  found.expect(taken.values() == expected, "all_to_all_v" + what);

  const hocket::peer next{(comm.rank() + 1) % comm.size()}, previous{(comm.rank() + comm.size() - 1) % comm.size()};
  const std::size_t comes = lengths[static_cast<std::size_t>(previous.rank)];
  device_vector in(on, comes);
  hocket::send_recv(comm, cuda::device(own.span()), next, cuda::device(in.span()), previous, hocket::tag{5}, options);
  found.expect(in.values() == vector_of(previous.rank, comes), "send_recv" + what);
  if (comm.size() == 1) return;

  device_vector first(on, comes), second(on, comes);
  std::vector<hocket::request> requests;
  for (device_vector* const each : {&first, &second}) {
    requests.push_back(hocket::recv_async(comm, cuda::device(each->span()), previous, hocket::tag{6}, options));
  }
  for (int i = 0; i < 2; ++i) hocket::send(comm, cuda::device(own.span()), next, hocket::tag{6}, options);
  requests[1].wait();
  requests[0].wait();
  found.expect(first.values() == in.values() && second.values() == in.values(), "two messages" + what);
}

/// UCX_TLS must name a transport for device memory.
constexpr route over_sockets{"the network, with CUDA", "tcp,self,cuda_copy", false};

/// True if this UCX is known to have modules for CUDA, which `./dev newest-ucx` states; another one may have them too.
bool ucx_has_cuda() { return std::getenv("HOCKET_TEST_UCX_HAS_CUDA") != nullptr; }

std::vector<route> routes() {
  return ucx_has_cuda() ? std::vector{shared_memory, over_sockets, network} : std::vector{shared_memory, network};
}

}  // namespace

TEST_CASE("collectives between processes on device memory return correct results", "[.device]") {
  for (const route& way : routes()) {
    for (const int ranks : {1, 2, 3, 5}) {
      const std::string wrong = run_worlds(ranks, way, [&](const world& where, findings& found) {
        device on;
        auto comm = hocket::ucx::connect(where);
        if (ucx_has_cuda()) found.equal(carried(comm), way.name != network.name, "UCX sends device memory");
        for (const std::size_t size : {0U, 1U, 100U, 1025U, 70'001U}) check_all(comm, on, size, found);
        for (const std::size_t size : {0U, 1U, 1025U, 70'001U}) check_uneven(comm, on, size, found);
        check_all(comm, on, 5000, found, cuda::staging{4096});
        check_uneven(comm, on, 5000, found, cuda::staging{4096});
        check_all(comm, on, 5000, found, hocket::require(hocket::checksummed));
        auto half = hocket::split(comm, hocket::color{comm.rank() % 2});
        check_all(half, on, 3000, found);
        // More than hocket passes to UCX in one message.
        if (ranks == 3) check_all(comm, on, 700'001, found);
        if (ranks == 3) check_uneven(comm, on, 700'001, found);
      });
      INFO(way.name << ", " << ranks << " ranks");
      CHECK(wrong == "");
    }
  }
}

TEST_CASE("calls on device memory report a mismatch if they differ between ranks", "[.device]") {
  for (const route& way : routes()) {
    const std::string wrong = run_worlds(2, way, [&](const world& where, findings& found) {
      device on;
      auto comm = hocket::ucx::connect(where);
      device_vector buffer(on, 100'000);
      const std::size_t size = comm.rank() == 0 ? 100'000 : 99'999;
      found.fails(hocket::errc::mismatch, "a broadcast of two lengths", [&] {
        hocket::broadcast(comm, cuda::device(buffer.span().first(size)), hocket::root{0}, with(on.order()));
        hocket::barrier(comm);
      });
    });
    INFO(way.name);
    CHECK(wrong == "");
    const std::string also_wrong = run_worlds(2, way, [&](const world& where, findings& found) {
      device on;
      auto comm = hocket::ucx::connect(where);
      device_vector buffer(on, 100'000);
      std::vector<std::uint64_t> hosts(100'000);
      found.fails(hocket::errc::mismatch, "a message to untagged host memory", [&] {
        if (comm.rank() == 0) {
          hocket::send(comm, cuda::device(buffer.span()), hocket::peer{1}, hocket::tag{0}, with(on.order()));
        } else {
          hocket::recv(comm, hosts, hocket::peer{0});
        }
        hocket::barrier(comm);
      });
    });
    INFO(way.name);
    CHECK(also_wrong == "");
  }
}

TEST_CASE("a call that sends device memory fails if a peer exits or makes no call", "[.device]") {
  for (const route& way : routes()) {
    for (const bool ends : {true, false}) {
      auto results = results_of(3, way, [&](const world& where, findings& found) {
        device on;
        auto comm = hocket::ucx::connect(where);
        meet_all(comm);
        device_vector buffer(on, 2'000'000);
        if (comm.rank() == 2) {
          if (ends) std::_Exit(7);
          std::this_thread::sleep_for(600ms);
          return;
        }
        const auto condition = ends ? hocket::errc::peer_lost : hocket::errc::timeout;
        const auto options = with(on.order(), hocket::timeout(ends ? 20s : 300ms));
        const hocket::failure said = found.fails(condition, "a broadcast", [&] {
          hocket::broadcast(comm, cuda::device(buffer.span()), hocket::root{1}, options);
          hocket::all_gather(comm, cuda::device(buffer.span().first(1)), cuda::device(buffer.span().last(3)), options);
        });
        found.equal(said.context.peer, 2, "the culprit in: " + said.message());
      });
      if (ends) results.erase(results.begin() + 2);
      INFO(way.name << (ends ? ", exits" : ", makes no call"));
      CHECK(hocket::launch::describe_failures(results) == "");
    }
  }
}
