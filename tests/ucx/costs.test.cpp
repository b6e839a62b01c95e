// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The costs by which processes of one host choose algorithms: equal on all ranks, whether they are built in, from a file
// or measured, inherited by parts of a world, and never measured for calls that must choose alike in each run.
#include "support/catch.hpp"
#include "ucx/ranks.hpp"

#include <hocket/collective/explain.hpp>
#include <hocket/core/platform/directory.hpp>
#include <hocket/group/shrink.hpp>
#include <hocket/group/split.hpp>
#include <hocket/transport/link_costs_text.hpp>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

using namespace ucx_test;
using hocket::errc;
using hocket::transport::cost_origin;
using hocket::transport::link_costs;
using hocket::transport::world_costs;

namespace {

const world_costs& costs_of(const communicator& comm) {
  return hocket::detail::communicator_access::state(comm).domain()->agreed_costs();
}

/// Expects that all ranks pass the same text.
void expect_equal_texts(const communicator& comm, const std::string& text, findings& found) {
  const std::vector<std::uint64_t> own = {std::hash<std::string>()(text)};
  std::vector<std::uint64_t> all(static_cast<std::size_t>(comm.size()));
  hocket::all_gather(comm, own, all);
  for (const std::uint64_t each : all) found.expect(each == own.front(), "ranks have different costs: " + text);
}

/// A file with costs, while the object exists.
class cost_file {
 public:
  explicit cost_file(const std::string& text)
      : path_(std::filesystem::temp_directory_path() / ("hocket-costs-" + hocket::platform::random_name())) {
    std::ofstream(path_) << text;
  }
  cost_file(const cost_file&) = delete;
  cost_file& operator=(const cost_file&) = delete;
  ~cost_file() { std::filesystem::remove(path_); }

  std::string path() const { return path_.string(); }

 private:
  const std::filesystem::path path_;
};

}  // namespace

TEST_CASE("all ranks of a world, and of its parts, have the same costs, measured or not") {
  for (const char* const wanted : {"", "measured", "built_in"}) {
    for (const int ranks : {1, 2, 3, 5}) {
      for (const route& way : {shared_memory, posix_memory, network}) {
        INFO(ranks << " ranks, HOCKET_CONSTANTS=" << wanted);
        CHECK(run_worlds(ranks, way, [&](const world& where, findings& found) {
                ::setenv("HOCKET_CONSTANTS", wanted, 1);
                communicator comm = hocket::ucx::connect(where);
                const world_costs costs = costs_of(comm);
                if (wanted[0] == 'b' || ranks == 1 || !way.windows) {
                  found.expect(costs.origin == cost_origin::built_in, "costs were measured");
                }
                const bool kernel_copies = way.kernel_copies[0] == '1';
                found.expect(
                    costs.origin != cost_origin::built_in || kernel_copies || costs.current == costs.repeatable,
                    "built-in costs differ for calls that must choose alike in each run");
                expect_equal_texts(comm, to_text(costs.current) + to_text(costs.repeatable), found);
                const auto part = hocket::split(comm, hocket::color{0});
                found.expect(costs_of(part).current == costs.current, "a part has other costs");
              }) == "");
      }
    }
  }
}

TEST_CASE("a call that must choose alike in each run uses no measured costs, and explain tells") {
  CHECK(run_ranks(2, shared_memory, [](const communicator& comm, findings& found) {
          const world_costs costs = costs_of(comm);
          const std::string repeatable =
              hocket::explain<float>(comm, hocket::all_reduce, 1000, hocket::with(hocket::require(hocket::run_to_run)));
          const std::string any = hocket::explain<float>(comm, hocket::all_reduce, 1000);
          found.expect(repeatable.find("costs built in: " + describe(costs.repeatable)) != std::string::npos,
                       repeatable);
          found.expect(any.find(describe(costs.current)) != std::string::npos, any);
          const bool measured = costs.origin == cost_origin::measured;
          found.expect((any.find("costs measured at start-up: ") != std::string::npos) == measured, any);
        }) == "");
}

TEST_CASE("a call that must choose alike in each run does so whether or not the kernel copies between processes") {
  const auto choices = [](const route& way) {
    const cost_file chosen("");
    CHECK(run_ranks(2, way, [&](const communicator& comm, findings&) {
            std::string all;
            const auto options = hocket::with(hocket::require(hocket::run_to_run));
            for (const std::size_t count : {1U, 1000U, 20'000U, 100'000U, 1'000'000U}) {
              all += hocket::explain<float>(comm, hocket::all_reduce, count, options);
              all += hocket::explain<float>(comm, hocket::reduce_scatter, count, options);
            }
            if (comm.rank() == 0) std::ofstream(chosen.path()) << all;
          }) == "");
    std::ifstream file(chosen.path());
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string with_copies = choices(shared_memory);
  CHECK(with_copies.size() > 1000);
  CHECK(with_copies == choices(posix_memory));
}

TEST_CASE("ranks may differ in whether they wait for a short all_reduce at once, whatever the costs") {
  for (const char* const wanted : {"measured", "built_in"}) {
    for (const int ranks : {2, 3, 5}) {
      CHECK(run_worlds(ranks, shared_memory, [&](const world& where, findings& found) {
              ::setenv("HOCKET_CONSTANTS", wanted, 1);
              const communicator comm = hocket::ucx::connect(where);
              for (const std::size_t count : {std::size_t{1}, std::size_t{14}, std::size_t{15}, std::size_t{4000}}) {
                const std::vector<int> in(count, comm.rank() + 1);
                std::vector<int> out(count);
                if (comm.rank() == 1) {
                  hocket::all_reduce_async(comm, in, out).wait();
                } else {
                  hocket::all_reduce(comm, in, out);
                }
                found.equal(out.back(), ranks * (ranks + 1) / 2, "sum of " + std::to_string(count));
              }
            }) == "");
    }
  }
}

TEST_CASE("costs from a file are used for all calls") {
  const link_costs costs{.message_latency = 1.0 / 3, .load_per_byte = 1e-11, .eager_bytes = 100};
  const cost_file file(to_text(costs));
  CHECK(run_worlds(3, shared_memory, [&](const world& where, findings& found) {
          ::setenv("HOCKET_CONSTANTS", file.path().c_str(), 1);
          const communicator comm = hocket::ucx::connect(where);
          found.expect(costs_of(comm).origin == cost_origin::file, "the file was not used");
          found.expect(costs_of(comm).current == costs && costs_of(comm).repeatable == costs, "other costs are used");
          const std::string text = hocket::explain<float>(comm, hocket::all_reduce, 1000);
          found.expect(text.find("costs from the file of HOCKET_CONSTANTS") != std::string::npos, text);
        }) == "");
}

TEST_CASE("connect fails on all ranks if HOCKET_CONSTANTS differs or names an unusable file") {
  const cost_file right(to_text(link_costs{}));
  const auto cause_of = [&](const std::string& value_of_rank_1, const std::string& others, errc of_rank_1,
                            errc of_others, const std::string& words) {
    return run_worlds(3, shared_memory, [&](const world& where, findings& found) {
      ::setenv("HOCKET_CONSTANTS", where.rank == 1 ? value_of_rank_1.c_str() : others.c_str(), 1);
      const hocket::failure cause = found.fails(where.rank == 1 ? of_rank_1 : of_others, "connect",
                                                [&] { static_cast<void>(hocket::ucx::connect(where)); });
      found.expect(cause.message().find(words) != std::string::npos, cause.message());
    });
  };
  CHECK(cause_of("built_in", "measured", errc::mismatch, errc::mismatch, "HOCKET_CONSTANTS") == "");
  const cost_file empty("");
  const std::pair<std::string, std::string> unusable[] = {
      {"/none", "/none: No such file or directory"},
      {"/", "=/: it is a folder, not a regular file"},
      {"/dev/zero", "/dev/zero: it is a device, not a regular file"},
      {empty.path(), empty.path() + ": it is empty"}};
  for (const auto& [name, words] : unusable) {
    CHECK(cause_of(name, "", errc::bad_environment, errc::mismatch, words + "; the variable must be") == "");
  }
  CHECK(cause_of(right.path(), "built_in", errc::mismatch, errc::mismatch, "must be equal on all ranks") == "");
}
