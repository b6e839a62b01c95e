// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Shared memory: windows are initially zero, `allocate` returns buffers that peers can read, and freeing is local.
#include "support/catch.hpp"
#include "ucx/ranks.hpp"

#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace ucx_test;
using hocket::with;

hocket::ucx::endpoint_group& endpoints_of(const communicator& comm) {
  return hocket::detail::communicator_access::state(comm).endpoints();
}

/// Returns the resident memory of this process in KiB, including shared memory.
long resident_kibibytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  long total = 0;
  long resident = 0;
  if (file == nullptr || std::fscanf(file, "%ld %ld", &total, &resident) != 2) resident = 0;
  if (file != nullptr) std::fclose(file);
  return resident * 4;
}

}  // namespace

TEST_CASE("a buffer from allocate is zeroed, aligned, and read by peers in place") {
  for (const route& way : {shared_memory, posix_memory, network}) {
    for (const int ranks : {1, 2, 3}) {
      INFO(way.name << ", " << ranks << " ranks");
      CHECK(run_ranks(ranks, way, [&](communicator& comm, findings& found) {
              constexpr std::size_t size = 200000;
              auto in = hocket::allocate<std::uint64_t>(comm, size);
              auto out = hocket::allocate<std::uint64_t>(comm, size);
              found.equal(in.size(), size, "size");
              found.equal(reinterpret_cast<std::uintptr_t>(in.data()) % 64, std::uintptr_t{0}, "alignment");
              found.expect(std::count(in.begin(), in.end(), 0U) == static_cast<std::ptrdiff_t>(size), "not zeroed");
              if (has_windows(comm)) {
                const std::uint64_t handle = endpoints_of(comm).publish(in.data() + 5, 100);
                found.expect(handle != 0, "not published");
                found.expect(endpoints_of(comm).resolve(comm.rank(), handle) ==
                                 reinterpret_cast<const std::byte*>(in.data() + 5),
                             "resolves to another place");
                found.equal(endpoints_of(comm).publish(in.data() + size - 1, 16), std::uint64_t{0}, "beyond the end");
                std::uint64_t elsewhere = 0;
                found.equal(endpoints_of(comm).publish(&elsewhere, 8), std::uint64_t{0}, "ordinary memory");
              }
              const auto values = vector_of(comm.rank(), size);
              const auto expected = sum_of(comm.size(), size);
              std::copy(values.begin(), values.end(), in.begin());
              const auto check = [&](auto options, const char* what) {
                std::fill(out.begin(), out.end(), 1U);
                hocket::all_reduce(comm, in.span(), out.span(), std::plus<>{}, options);
                found.expect(std::equal(out.begin(), out.end(), expected.begin()), what);
              };
              check(with(), "a sum by the default algorithm");
              check(with(hocket::ring), "a sum by ring");
              if (!has_windows(comm)) return;
              check(with(hocket::one_shot), "a sum by one_shot");
              check(with(hocket::two_shot), "a sum by two_shot");
            }) == "");
    }
  }
}

TEST_CASE("allocate of too much memory fails on all ranks, and the error names the call site") {
  for (const route& way : {shared_memory, network}) {
    INFO(way.name);
    CHECK(run_ranks(2, way, [](communicator& comm, findings& found) {
            for (const std::size_t size : {std::size_t{1} << 61U, std::size_t{1} << 58U}) {
              const auto cause = found.fails(hocket::errc::out_of_memory, "allocate", [&] {
                static_cast<void>(hocket::allocate<double>(comm, comm.rank() == 0 ? size : 10));
              });
              found.expect(cause.message().find("allocate on rank ") == 0, cause.message());
              found.expect(cause.message().find("memory.test.cpp:") != std::string::npos, cause.message());
            }
            hocket::barrier(comm);
          }) == "");
  }
}

TEST_CASE("a mismatch of allocate and another call names the call sites of both, and none within allocate") {
  for (const route& way : {shared_memory, network}) {
    INFO(way.name);
    CHECK(run_ranks(2, way, [](communicator& comm, findings& found) {
            const auto cause = found.fails(hocket::errc::mismatch, "the call", [&] {
              const std::uint64_t own = 8;  // as long as the block that allocate exchanges
              std::vector<std::uint64_t> all(2);
              if (comm.rank() == 0) hocket::all_gather(comm, std::span(&own, 1), all);
              if (comm.rank() == 1) static_cast<void>(hocket::allocate<int>(comm, 1000));
            });
            for (const char* const part :
                 {" in allocate, called at ", " in all_gather of 1 elements of (", "memory.test"}) {
              found.expect(cause.reason.find(part) != std::string::npos,
                           std::string("lacks ") + part + ": " + cause.reason);
            }
            found.expect(cause.reason.find("split.hpp") == std::string::npos, cause.reason);
          }) == "");
  }
}

TEST_CASE("some ranks may pass shared buffers and others ordinary ones to the same call") {
  CHECK(run_ranks(3, shared_memory, [](communicator& comm, findings& found) {
          constexpr std::size_t size = 5000;
          auto shared = hocket::allocate<std::uint64_t>(comm, size);
          const auto values = vector_of(comm.rank(), size);
          std::copy(values.begin(), values.end(), shared.begin());
          std::vector<std::uint64_t> out(size);
          for (const auto algorithm : {0, 1}) {
            const std::span<const std::uint64_t> in = comm.rank() == 1 ? std::span(values) : shared.span();
            if (algorithm == 0) hocket::all_reduce(comm, in, out, std::plus<>{}, with(hocket::one_shot));
            if (algorithm == 1) hocket::all_reduce(comm, in, out, std::plus<>{}, with(hocket::two_shot));
            found.equal(out, sum_of(comm.size(), size), "sum");
          }
        }) == "");
}

TEST_CASE("a rank that has freed its buffer still reads those of its peers") {
  CHECK(run_ranks(3, shared_memory, [](communicator& comm, findings& found) {
          constexpr std::size_t size = 5000;
          for (int round = 0; round < 20; ++round) {
            std::optional shared(hocket::allocate<std::uint64_t>(comm, size));
            auto values = vector_of(comm.rank(), size);
            std::copy(values.begin(), values.end(), shared->begin());
            if (comm.rank() == round % comm.size()) shared.reset();
            std::vector<std::uint64_t> out(size);
            const std::span<std::uint64_t> in = shared ? shared->span() : std::span(values);
            hocket::all_reduce(comm, in, out, std::plus<>{}, with(hocket::two_shot));
            found.equal(out, sum_of(comm.size(), size), "sum");
          }
        }) == "");
}

TEST_CASE("a buffer may outlive its communicator") {
  CHECK(run_worlds(2, shared_memory, [](const world& where, findings& found) {
          std::optional<communicator> comm(hocket::ucx::connect(where));
          auto kept = hocket::allocate<int>(*comm, 1000);
          comm.reset();
          kept[999] = 7;
          found.equal(std::accumulate(kept.begin(), kept.end(), 0), 7, "sum of the kept buffer");
        }) == "");
}

TEST_CASE("unused staging regions use no memory") {
  CHECK(run_ranks(2, shared_memory, [](communicator& comm, findings& found) {
          const long before = resident_kibibytes();
          std::vector<communicator> more;
          for (int i = 0; i < 8; ++i) more.push_back(hocket::split(comm, hocket::color{0}));
          for (const communicator& each : more) hocket::barrier(each);
          const long windows = 8L * 16 * 256;
          const long added = resident_kibibytes() - before;
          found.expect(added < windows / 4, std::to_string(added) + " KiB were touched");
          const int one = 1;
          int sum = 0;
          for (const communicator& each : more) hocket::all_reduce(each, std::span(&one, 1), std::span(&sum, 1));
          found.equal(sum, 2, "sum");
        }) == "");
}

TEST_CASE("windows are initially zero even if their memory was used before") {
  CHECK(run_ranks(2, shared_memory, [](communicator& comm, findings& found) {
          for (int round = 0; round < 3; ++round) {
            auto other = hocket::split(comm, hocket::color{0});
            auto& state = hocket::detail::communicator_access::state(other);
            std::byte* const begin = state.window(other.rank()) + state.layout().staging_begin();
            std::byte* const end = state.window(other.rank()) + state.layout().size();
            found.equal(std::count(begin, end, std::byte{0}), end - begin, "bytes that are zero");
            hocket::barrier(comm);
            std::fill(begin, end, std::byte{0xff});
            hocket::barrier(comm);
          }
        }) == "");
}
