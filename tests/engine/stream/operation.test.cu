// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans on the streams of a GPU: ranks are threads of this process, or processes that share the GPU. The bits are those
// of the host for the same plan; graphs can be replayed; the others name a process that is killed.
#include "engine/stream/gpu_ranks.cuh"
#include "engine/stream/plans.hpp"
#include "kernel/device/gpu.cuh"
#include "support/catch.hpp"
#include "support/elements.hpp"

#include <hocket/bootstrap/environment.hpp>
#include <hocket/bootstrap/launch.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/engine/stream/operation.hpp>
#include <hocket/kernel/device/element_kernel.cuh>
#include <hocket/scalar/scalar.hpp>
#include <hocket/transport/cuda_ipc/group.hpp>

#include <cuda_runtime.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <unistd.h>

using namespace hocket_test;
namespace plan = hocket::plan;
using plan::collective_kind;

namespace {

// Set before any use of CUDA, so that streams of 8 threads run concurrently.
const int more_connections = ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
const int kernels_at_first = ::setenv("CUDA_MODULE_LOADING", "EAGER", 1);

/// Runs `body` on threads as ranks. Exceptions fail the test.
void on_threads(int ranks, const std::function<void(gpu_rank&)>& body) {
  for (const std::string& each : run_threads(ranks, body)) CHECK(each == "");
}

/// Runs the test case with this tag in processes of this program. Returns the results of all.
std::vector<hocket::launch::process_result> on_processes(int ranks, const char* tag) {
  hocket::launch::process_options how;
  how.capture_output = true;
  how.timeout = std::chrono::seconds(120);
  const auto body = [&](const hocket::bootstrap::world_description&) {
    ::setenv("HOCKET_TEST_IS_RANK", "1", 1);
    ::execl("/proc/self/exe", "hocket.tests", tag, static_cast<char*>(nullptr));
    return 126;
  };
  return hocket::launch::run_processes(ranks, body, how);
}

/// The host's result. Computing it takes a thread for each rank, so ranks that are threads share it: the caller holds
/// it during `bind`, which ends after all ranks have called this function.
template <class T, class Op>
std::shared_ptr<const vectors<T>> shared_on_host(const plan::any_algorithm& how, int ranks, std::size_t block,
                                                 const Op& op) {
  static std::mutex one_at_a_time;
  static std::map<std::tuple<std::string, int, int, std::size_t>, std::weak_ptr<const vectors<T>>> known;
  const std::lock_guard lock(one_at_a_time);
  auto& found = known[{std::string(how.name()), how.collective().root, ranks, block}];
  auto result = found.lock();
  if (result == nullptr) found = result = std::make_shared<const vectors<T>>(on_host<T>(how, ranks, block, op));
  return result;
}

template <class T, class Op>
void run_plans(gpu_rank& me, const std::vector<std::size_t>& blocks, const Op& op) {
  const int ranks = me.size();
  const auto own_index = static_cast<std::size_t>(me.rank());
  for (const plan::any_algorithm& how : plans_on(ranks)) {
    if (!hocket::is_commutative_v<Op, T> && !keeps_rank_order(how, ranks)) continue;
    for (const std::size_t block : blocks) {
      const auto of_all = shared_on_host<T>(how, ranks, block, op);
      const std::vector<T>& expected = (*of_all)[own_index];
      for (const bool in_place : {false, true}) {
        const collective_kind collective = how.collective().kind;
        const std::vector<T> mine = samples<T>(me.rank(), elements(how, plan::region::in, block, ranks));
        const std::size_t own = block * own_index;
        T* in = me.allocate<T>(mine.size());
        T* out = nullptr;
        if (collective == collective_kind::broadcast) {
          out = std::exchange(in, nullptr);
          me.upload(out, mine);
        } else if (!in_place) {
          me.upload(in, mine);
          out = me.allocate<T>(expected.size());
        } else if (collective == collective_kind::all_gather) {
          out = me.allocate<T>(expected.size());
          in = out + own;
          me.upload(in, mine);
        } else {
          me.upload(in, mine);
          out = collective == collective_kind::reduce_scatter ? in + own : in;
        }
        std::unique_ptr<gpu_operation> work;
        me.bind({.plan = how,
                 .block_elements = block,
                 .element_kernel = &hocket::kernel::device::stream_kernel_of<Op, T>,
                 .operation = &op,
                 .in = reinterpret_cast<std::uintptr_t>(in),
                 .out = reinterpret_cast<std::uintptr_t>(out)},
                work);
        me.enqueue(*work);
        me.finish();
        const std::vector<T> got = me.download(out, expected.size());
        if (same_bytes<T>(got, expected)) continue;
        throw std::runtime_error(std::string(how.name()) + " of " + std::to_string(block) +
                                 (in_place ? " in place: " : ": ") + first_difference<T>(got, expected));
      }
    }
  }
}

/// Checks one launch of the first rank for all ranks; odd ranks are in place.
void run_fused(gpu_rank& me) {
  const std::plus<> op;
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1001}, std::size_t{300'007}}) {
    const auto index = static_cast<std::size_t>(me.rank());
    const auto of_all = shared_on_host<float>(plan::one_shot{}, me.size(), count, op);
    const std::vector<float>& expected = (*of_all)[index];
    float* const in = me.allocate<float>(count);
    float* const out = me.rank() % 2 == 1 ? in : me.allocate<float>(count);
    me.upload(in, samples<float>(me.rank(), count));
    std::unique_ptr<gpu_operation> work;
    me.bind({.plan = plan::one_shot{},
             .block_elements = count,
             .element_kernel = &hocket::kernel::device::fused_kernel_of<std::plus<>, float>,
             .operation = &op,
             .in = reinterpret_cast<std::uintptr_t>(in),
             .out = reinterpret_cast<std::uintptr_t>(out),
             .fused = true},
            work);
    me.enqueue(*work);
    me.finish();
    const std::vector<float> got = me.download(out, count);
    if (!same_bytes<float>(got, expected)) throw std::runtime_error("fused: " + first_difference<float>(got, expected));
  }
}

void run_all_plans(gpu_rank& me) {
  run_fused(me);
  run_plans<float>(me, {0, 1, 1001, 300'007}, std::plus<>());
  run_plans<hocket::half>(me, {257}, std::plus<>());
  run_plans<affine_map>(me, {129}, compose());
}

/// Replays a graph of two operations, of which the second one changes its own input.
void replay_graph(gpu_rank& me) {
  const std::plus<> op;
  const std::size_t count = 1000;
  const auto of_all = shared_on_host<double>(plan::two_shot{}, me.size(), count, op);
  double* const in = me.allocate<double>(count);
  double* const out = me.allocate<double>(count);
  double* const grows = me.allocate<double>(count);
  me.upload(in, samples<double>(me.rank(), count));
  me.upload(grows, std::vector<double>(count, me.rank() == 0 ? 1.0 : 0.0));
  hocket::detail::stream_binding what{.plan = plan::two_shot{},
                                      .block_elements = count,
                                      .element_kernel = &hocket::kernel::device::stream_kernel_of<std::plus<>, double>,
                                      .operation = &op,
                                      .in = reinterpret_cast<std::uintptr_t>(in),
                                      .out = reinterpret_cast<std::uintptr_t>(out)};
  std::unique_ptr<gpu_operation> first, second;
  me.bind(what, first);
  what.plan = plan::one_shot{};
  what.in = what.out = reinterpret_cast<std::uintptr_t>(grows);
  me.bind(what, second);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  check_cuda(cudaStreamBeginCapture(me.stream(), cudaStreamCaptureModeThreadLocal));
  me.enqueue(*first);
  me.enqueue(*second);
  check_cuda(cudaStreamEndCapture(me.stream(), &graph));
  check_cuda(cudaGraphInstantiate(&ready, graph, 0));
  const int replays = 1000;
  for (int i = 0; i < replays; ++i) {
    check_cuda(cudaGraphLaunch(ready, me.stream()));
    // A queue of launches that is full blocks within the driver, where no deadline helps.
    if (i % 32 == 31) me.finish();
  }
  me.finish();
  check_cuda(cudaGraphExecDestroy(ready));
  check_cuda(cudaGraphDestroy(graph));
  double expected = 1;
  for (int i = 1; i < replays; ++i) expected *= me.size();  // beyond 2^1023 both are infinity
  const std::vector<double>& host = (*of_all)[static_cast<std::size_t>(me.rank())];
  const std::vector<double> got = me.download(out, count);
  if (!same_bytes<double>(got, host)) throw std::runtime_error("two_shot: " + first_difference<double>(got, host));
  for (const double each : me.download(grows, count)) {
    if (each != expected) throw std::runtime_error("after replays: " + std::to_string(each));
  }
}

/// Starts the first work of all ranks' streams at the same time: an operation, or a graph of one.
void start_at_once(gpu_rank& me, bool graph) {
  const std::plus<> op;
  float* const buffer = me.allocate<float>(100);
  me.upload(buffer, std::vector<float>(100, 1.0F));
  std::unique_ptr<gpu_operation> work;
  me.bind({.plan = plan::one_shot{},
           .block_elements = 100,
           .element_kernel = &hocket::kernel::device::stream_kernel_of<std::plus<>, float>,
           .operation = &op,
           .in = reinterpret_cast<std::uintptr_t>(buffer),
           .out = reinterpret_cast<std::uintptr_t>(buffer)},
          work);
  cudaGraph_t recorded = nullptr;
  cudaGraphExec_t ready = nullptr;
  if (graph) {
    check_cuda(cudaStreamBeginCapture(me.stream(), cudaStreamCaptureModeThreadLocal));
    me.enqueue(*work);
    check_cuda(cudaStreamEndCapture(me.stream(), &recorded));
    check_cuda(cudaGraphInstantiate(&ready, recorded, 0));
  }
  me.exchange({});
  if (graph) {
    check_cuda(cudaGraphLaunch(ready, me.stream()));
  } else {
    me.enqueue(*work);
  }
  me.finish();
  if (graph) {
    check_cuda(cudaGraphExecDestroy(ready));
    check_cuda(cudaGraphDestroy(recorded));
  }
  if (me.download(buffer, 100)[99] != static_cast<float>(me.size())) throw std::runtime_error("a sum is wrong");
}

bool is_rank() { return std::getenv("HOCKET_TEST_IS_RANK") != nullptr; }

void check_processes(int ranks, const char* tag) {
  const auto results = on_processes(ranks, tag);
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    INFO("rank " << rank << " of " << ranks << ": " << results[rank].output);
    CHECK(results[rank].succeeded());
  }
}

}  // namespace

TEST_CASE("groups and operations can be instantiated with the real driver") {
  STATIC_REQUIRE(std::is_same_v<decltype(gpu_group::in_flight_operation::passed), ipc::owned_event<ipc::driver>>);
  CHECK(more_connections == 0);
}

TEST_CASE("threads of one GPU: plans on streams give the host's bits", "[gpu]") {
  if (gpu_is_missing()) return;
  for (const int ranks : {1, 2, 4, 8}) on_threads(ranks, run_all_plans);
}

TEST_CASE("threads of one GPU: a graph is replayed 1000 times", "[gpu]") {
  if (gpu_is_missing()) return;
  for (const int ranks : {2, 4, 8}) on_threads(ranks, replay_graph);
}

TEST_CASE("threads of one GPU: streams that start at the same time do not block each other", "[gpu]") {
  if (gpu_is_missing()) return;
  for (int round = 0; round < 20; ++round) {
    on_threads(8, [&](gpu_rank& me) { start_at_once(me, round % 2 == 1); });
  }
}

TEST_CASE("processes of one GPU: plans on streams give the host's bits", "[gpu]") {
  if (gpu_is_missing()) return;
  for (const int ranks : {2, 4, 8}) check_processes(ranks, "[.plans_of_a_process]");
}

TEST_CASE("processes of one GPU: a graph is replayed 1000 times", "[gpu]") {
  if (gpu_is_missing()) return;
  for (const int ranks : {2, 4, 8}) check_processes(ranks, "[.graph_of_a_process]");
}

TEST_CASE("processes of one GPU: the others name a process that is killed, and the GPU stays usable", "[gpu]") {
  if (gpu_is_missing()) return;
  const auto results = on_processes(3, "[.killed_process]");
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    INFO("rank " << rank << ": " << results[rank].output);
    CHECK((rank == 1 ? results[rank].signal == SIGKILL : results[rank].succeeded()));
  }
  device_vector<int> usable(std::vector<int>{1, 2, 3});
  CHECK(usable.values() == std::vector<int>{1, 2, 3});
}

// The code of the processes. `~[gpu]` runs hidden cases, too, which do nothing then.

TEST_CASE("a process runs all plans", "[.plans_of_a_process]") {
  if (is_rank()) as_process(run_all_plans);
}
TEST_CASE("a process replays a graph", "[.graph_of_a_process]") {
  if (is_rank()) as_process(replay_graph);
}
TEST_CASE("a process is killed while others wait for it", "[.killed_process]") {
  if (!is_rank()) return;
  hocket::failure waited, closed;
  try {
    as_process([&](gpu_rank& me) {
      const std::plus<> op;
      float* const buffer = me.allocate<float>(1000);
      me.upload(buffer, samples<float>(me.rank(), 1000));
      const auto at = reinterpret_cast<std::uintptr_t>(buffer);
      std::unique_ptr<gpu_operation> work;
      me.bind({.plan = plan::one_shot{},
               .block_elements = 1000,
               .element_kernel = &hocket::kernel::device::stream_kernel_of<std::plus<>, float>,
               .operation = &op,
               .in = at,
               .out = at},
              work);
      if (me.rank() == 1) ::raise(SIGKILL);
      me.enqueue(*work);
      waited = work->finish(soon(std::chrono::seconds(20)));
      closed = me.group().close(soon());
    });
  } catch (const hocket::error& problem) {
    WARN(problem.what());
  }
  INFO(waited.message() << "; " << closed.message());
  CHECK((waited.code == hocket::errc::peer_lost || waited.code == hocket::errc::aborted));
  CHECK(closed.code == hocket::errc::peer_lost);
  CHECK(closed.context.peer == 1);
}
