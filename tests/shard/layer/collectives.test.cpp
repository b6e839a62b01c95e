// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: eigen
//
// Layers call exactly the collectives that their placements need, forward and backward. The test reads their names
// from the flight record of the communicator along tp. A trace of all steps on all communicators shows that there are
// no others.
#include "shard/layer/block.hpp"

#include <hocket/engine/flight_record.hpp>
#include <hocket/group/adapted.hpp>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using namespace hocket_test;
using hocket::invariant;
using hocket::replicated;
using hocket::shard;

namespace {

using traced_domain = hocket::adaptor::traced<hocket::local::domain>;

/// Returns the collectives that a rank has started on a communicator, oldest first.
template <class Comm>
std::vector<std::string> names_of_calls(const Comm& comm) {
  std::vector<std::string> names;
  std::istringstream lines(hocket::flight_record(comm));
  for (std::string line; std::getline(lines, line);) {
    const std::string key = "\"operation\":\"";
    const std::size_t begin = line.find(key);
    if (line.find("\"call\":") == std::string::npos || begin == std::string::npos) continue;
    names.push_back(line.substr(begin + key.size(), line.find('"', begin + key.size()) - begin - key.size()));
  }
  return names;
}

/// Returns the number of operations of plans in a trace, on all communicators of a rank.
std::size_t operations_in(const hocket::adaptor::trace_log& log) {
  std::set<std::pair<long, std::string>> found;  // communicator, and number of the operation
  std::istringstream lines(log.events());
  for (std::string line; std::getline(lines, line);) {
    const std::string name = "{\"name\":\"operation ";
    if (line.rfind(name, 0) != 0) continue;
    const long place = std::strtol(line.c_str() + line.find("\"tid\":") + 6, nullptr, 10);
    found.emplace(place / 256 / static_cast<long>(hocket::transport::window),
                  line.substr(name.size(), line.find('"', name.size()) - name.size()));
  }
  return found.size();
}

using stages = std::map<std::string, std::vector<std::string>>;

/// Returns the collectives of one rank in each stage of a forward and a backward pass along tp.
template <class Activation>
stages collectives_of(int ranks_along_tp) {
  stages found;
  on_ranks(ranks_along_tp, [&](thread_rank& me) {
    const auto comm = hocket::traced(me.comm());
    static_assert(std::is_same_v<std::remove_const_t<decltype(comm)>, hocket::communicator<traced_domain>>);
    const auto ranks = hocket::mesh<"tp">(comm, {ranks_along_tp});
    const auto& log = *hocket::detail::communicator_access::state(comm).domain()->shared();
    // Multiples of the numbers of ranks, so that slices are equal, and collectives for equal blocks send them.
    const parallel_block<std::remove_const_t<decltype(ranks)>, Activation> block(ranks, {12, 12, 5, 12});
    stages own;
    std::size_t calls = names_of_calls(ranks.all()).size();
    std::size_t operations = operations_in(log);
    block.run(
        [&](const char* stage) {
          const auto names = names_of_calls(ranks.all());
          own[stage].assign(names.begin() + static_cast<std::ptrdiff_t>(calls), names.end());
          const std::size_t traced = operations_in(log) - std::exchange(operations, operations_in(log));
          me.check(traced == own[stage].size(), [&] {
            return std::string(stage) + ": " + std::to_string(traced) + " operations, and " +
                   std::to_string(own[stage].size()) + " calls along tp";
          });
          calls = names.size();
        },
        [](const auto&) {});
    if (me.rank() == 0) found = own;
  });
  return found;
}

using names = std::vector<std::string>;

}  // namespace

TEST_CASE("with invariant activations, a pair of layers calls one all_reduce forward and one backward") {
  for (const int tp : {2, 3, 4}) {
    const stages found = collectives_of<invariant>(tp);
    INFO("tp " << tp);
    CHECK(found.at("start") == names{});
    CHECK(found.at("embedding") == names{"all_reduce"});
    CHECK(found.at("pair") == names{"all_reduce"});
    CHECK(found.at("last linear") == names{});
    CHECK(found.at("cross entropy") == names{"all_reduce", "all_reduce"});
    CHECK(found.at("cross entropy backward") == names{});
    CHECK(found.at("last linear backward") == names{"all_reduce"});
    CHECK(found.at("pair backward") == names{"all_reduce"});
    CHECK(found.at("embedding backward") == names{});
    CHECK(found.at("gradients") == names{});
  }
}

TEST_CASE("with activations sharded by sequence, a pair of layers calls all_gather and reduce_scatter each way") {
  for (const int tp : {2, 3, 4}) {
    const stages found = collectives_of<shard<0>>(tp);
    INFO("tp " << tp);
    CHECK(found.at("start") == names{});
    CHECK(found.at("embedding") == names{"reduce_scatter"});
    CHECK(found.at("pair") == names{"all_gather", "reduce_scatter"});
    CHECK(found.at("last linear") == names{"all_gather"});
    CHECK(found.at("cross entropy") == names{"all_reduce", "all_reduce"});
    CHECK(found.at("cross entropy backward") == names{});
    CHECK(found.at("last linear backward") == names{"reduce_scatter"});
    CHECK(found.at("pair backward") == names{"all_gather", "reduce_scatter"});
    CHECK(found.at("embedding backward") == names{"all_gather"});
    CHECK(found.at("gradients") == names{"all_reduce"});  // of the bias, which each rank has added to its tokens
  }
}

TEST_CASE("with replicated activations, gradients stay partial sums until a layer needs the whole gradient") {
  const stages found = collectives_of<replicated>(2);
  CHECK(found.at("embedding") == names{"all_reduce"});
  CHECK(found.at("pair") == names{"all_reduce"});
  CHECK(found.at("last linear") == names{});
  CHECK(found.at("last linear backward") == names{});
  CHECK(found.at("pair backward") == names{"all_reduce"});
  CHECK(found.at("embedding backward") == names{"all_reduce"});
}
