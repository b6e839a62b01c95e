// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Programs can check whether a call compiles: by std::is_invocable, a requires-expression or a concept. None of these
// causes an error, and all agree with the compiler.
#include <hocket/collective/device/memory.hpp>
#include <hocket/collective/device/staged.hpp>
#include <hocket/group/peers.hpp>
#include <hocket/hocket.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <source_location>
#include <span>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

namespace {

using namespace hocket;

using comm = const local::communicator&;
using floats = std::vector<float>;
using in = const floats&;
using out = floats&;
using code = std::error_code&;
using none = options<>;
using by_ring = decltype(with(ring, timeout(std::chrono::seconds(5))));
using lengths = const std::vector<std::size_t>&;
using place = in_place_buffer<float>;
using on_device = device_buffer<float, cuda::device_memory>;
using const_on_device = device_buffer<const float, cuda::device_memory>;
using in_order = decltype(with(cuda::stream_ref(static_cast<CUstream_st*>(nullptr))));

/// A user-defined concept.
template <class Call, class... Arguments>
concept callable =
    requires(const Call& call, Arguments&&... arguments) { call(static_cast<Arguments&&>(arguments)...); };

/// True if all ways to check give the same result.
template <bool Expected, class Call, class... Arguments>
constexpr bool agree =
    std::is_invocable_v<Call, Arguments...> == Expected && std::is_invocable_v<const Call&, Arguments...> == Expected &&
    callable<Call, Arguments...> == Expected && valid_call<Call, Arguments...> == Expected;

template <const auto& Call, class... Arguments>
constexpr bool fits = agree<true, std::remove_cvref_t<decltype(Call)>, Arguments...>;
template <const auto& Call, class... Arguments>
constexpr bool refused = agree<false, std::remove_cvref_t<decltype(Call)>, Arguments...>;

template <const auto& Call, class... Arguments>
constexpr bool gives_request = std::is_invocable_r_v<request, decltype(Call), Arguments...> &&
                               std::is_same_v<std::invoke_result_t<decltype(Call), Arguments...>, request>;

// ── Checks as in a program ─────────────────────────────────────────────────────────────────────────────────────────

static_assert(!std::is_invocable_v<decltype(all_reduce), int, int>);
static_assert(!std::is_invocable_v<decltype(all_reduce)>);
template <class Comm, class Out>
concept sums_strings = requires(Comm comm, Out n) { all_reduce(comm, std::string{}, n); };
template <class Comm, class In>
concept sums_into_nothing = requires(Comm comm, In in) { all_reduce(comm, in); };
template <class Comm, class In, class Out>
concept sums = requires(Comm comm, In in, Out out) { all_reduce(comm, in, out); };
static_assert(!sums_strings<comm, int&> && !sums_into_nothing<comm, in> && sums<comm, in, out>);
static_assert(std::is_invocable_v<decltype(all_reduce), comm, in, out>);
static_assert(!std::is_invocable_r_v<request, decltype(all_reduce), comm, in, out>);
static_assert(!std::is_invocable_r_v<request, decltype(all_reduce_async), comm, in, int>);
static_assert(!std::is_nothrow_invocable_v<decltype(all_reduce), comm, in, out>);
static_assert(std::is_nothrow_invocable_v<decltype(all_reduce), comm, in, out, std::plus<>, none, code>);

/// Not an operation.
struct unary_negation {
  float operator()(float x) const;
};

/// Overloads for calls that accept a root and for those that do not.
template <class Call>
constexpr int ways(const Call&) {
  return 1;
}
template <class Call>
  requires callable<Call, comm, in, out, root>
constexpr int ways(const Call&) {
  return 2;
}
static_assert(ways(all_reduce) == 1 && ways(all_gather) == 1 && ways(gather) == 2 && ways(scatter) == 2);
static_assert(fits<reduce, comm, in, out> && fits<reduce, comm, in, out, std::plus<>, root> &&
              fits<reduce, comm, place, std::plus<>, root, by_ring, code> && refused<reduce, comm, in, out, root> &&
              refused<reduce, comm, in, out, std::plus<>, int> &&
              refused<reduce, comm, in, out, std::plus<>, by_ring> && refused<reduce, comm, in, out, unary_negation> &&
              gives_request<reduce_async, comm, in, out>);
static_assert(fits<gather, comm, in, out, root, none, code> && refused<gather, comm, place, root> &&
              refused<gather, comm, in, in, root> && refused<gather, comm, in, out, root, by_ring> &&
              refused<scatter, comm, in, out, std::plus<>, root> && gives_request<scatter_async, comm, in, out, root>);
static_assert(fits<gather_v, comm, in, out, counts, root, none, code> && fits<scatter_v, comm, in, out, counts> &&
              refused<gather_v, comm, in, out, root> && refused<gather_v, comm, in, out, counts, lengths>);
static_assert(fits<reduce, comm, on_device, on_device, std::plus<>, root, in_order> &&
              fits<gather, comm, const_on_device, on_device, root, in_order> &&
              fits<scatter_v, comm, on_device, on_device, counts, root, in_order> &&
              refused<gather, comm, on_device, on_device, root> && refused<scatter, comm, on_device, out, root>);

// ── The communicator and the buffers ───────────────────────────────────────────────────────────────────────────────

static_assert(refused<all_reduce, in, out> && refused<barrier> && refused<barrier, int> && fits<barrier, comm>);
static_assert(refused<all_reduce, comm> && refused<all_reduce, comm, out> && refused<all_gather, comm, in> &&
              refused<broadcast, comm> && refused<send, comm, in> && refused<send_recv, comm, in, peer, out>);
static_assert(refused<all_reduce, comm, in, in> && refused<all_gather, comm, in, in> && refused<broadcast, comm, in> &&
              refused<recv, comm, in, peer> && refused<send_recv, comm, in, peer, in, peer>);
static_assert(refused<all_reduce, comm, in, floats> && refused<recv, comm, floats, peer>);
static_assert(refused<all_reduce, comm, float*, float*> && refused<all_reduce, comm, float&, float&> &&
              refused<all_reduce, comm, std::list<float>&, out>);
static_assert(refused<all_reduce, comm, in, std::vector<double>&> &&
              refused<all_gather, comm, in, std::vector<double>&> &&
              fits<send_recv, comm, in, peer, std::vector<double>&, peer>);
static_assert(refused<all_reduce, comm, std::vector<bool>&, std::vector<bool>&> &&
              refused<all_reduce, comm, std::vector<std::string>&, std::vector<std::string>&> &&
              refused<all_gather, comm, std::vector<int*>&, std::vector<int*>&> &&
              refused<send, comm, std::vector<std::string>&, peer>);
static_assert(fits<all_reduce, comm, floats, out> && fits<all_gather, comm, in, std::span<float>> &&
              fits<all_reduce, comm, std::array<int, 4>, int (&)[4]> && fits<send, comm, floats, peer>);
static_assert(refused<all_reduce_async, comm, floats, out> && refused<all_gather_async, comm, floats, out> &&
              refused<send_async, comm, floats, peer> && refused<send_recv_async, comm, floats, peer, out, peer>);
static_assert(fits<all_reduce_async, comm, in, out> && fits<all_reduce_async, comm, std::span<const float>, out> &&
              fits<send_async, comm, in, peer>);

// ── in_place ───────────────────────────────────────────────────────────────────────────────────────────────────────

static_assert(fits<all_reduce, comm, place> && fits<all_reduce, comm, place, std::plus<>, by_ring> &&
              fits<all_reduce, comm, place, std::plus<>, none, code>);
static_assert(refused<all_reduce, comm, place, place> && refused<all_gather, comm, place> &&
              refused<broadcast, comm, place, root> &&
              refused<all_to_all_v, comm, place, send_counts, receive_counts> &&
              refused<all_reduce, comm, in_place_buffer<std::string>> && refused<all_reduce, comm, place, by_ring>);

// ── Operations ─────────────────────────────────────────────────────────────────────────────────────────────────────

struct unary {
  float operator()(float x) const;
};
struct with_memory {
  floats table;
  float operator()(float a, float b) const;
};
/// Not constrained: the body must be compiled to find out whether it accepts given elements.
struct only_for_strings {
  auto operator()(const auto& a, const auto& b) const { return a.append(b); }
};
static_assert(fits<all_reduce, comm, in, out, std::multiplies<>> && fits<all_reduce, comm, in, out, std::plus<float>>);
static_assert(refused<all_reduce, comm, in, out, unary> && refused<all_reduce, comm, in, out, with_memory> &&
              refused<all_reduce, comm, in, out, int> && refused<all_reduce, comm, in, out, std::string> &&
              refused<all_reduce, comm, in, out, std::plus<int>> && refused<reduce_scatter, comm, in, out, unary> &&
              refused<all_reduce, comm, place, unary>);
static_assert(refused<all_reduce, comm, in, int, only_for_strings> &&
              refused<all_reduce, comm, in, std::vector<double>&, only_for_strings> &&
              refused<all_reduce, comm, in, out, only_for_strings, int> &&
              refused<all_reduce, comm, std::vector<std::string>&, std::vector<std::string>&, only_for_strings>);

// ── Options ────────────────────────────────────────────────────────────────────────────────────────────────────────

static_assert(fits<all_reduce, comm, in, out, std::plus<>, by_ring> && fits<all_gather, comm, in, out, by_ring> &&
              fits<all_reduce, comm, in, out, std::plus<>, by_ring, std::source_location> &&
              fits<barrier, comm, none> && fits<send, comm, in, peer, tag, none>);
static_assert(refused<all_reduce, comm, in, out, by_ring> && refused<all_reduce, comm, in, out, by_ring, std::plus<>> &&
              refused<all_reduce, comm, in, out, std::plus<>, decltype(ring)> &&
              refused<all_reduce, comm, in, out, decltype(ring)> && refused<all_reduce, comm, by_ring, in, out> &&
              refused<all_gather, comm, in, out, std::plus<>> && refused<send, comm, in, peer, none> &&
              refused<broadcast, comm, out, none>);

// ── std::error_code ────────────────────────────────────────────────────────────────────────────────────────────────

static_assert(fits<all_reduce, comm, in, out, std::plus<>, none, code> && fits<barrier, comm, none, code> &&
              fits<broadcast, comm, out, root, none, code> && fits<recv, comm, out, peer, tag, none, code> &&
              fits<all_gather, comm, in, out, by_ring, code, std::source_location>);
static_assert(refused<all_reduce, comm, in, out, std::plus<>, none, const std::error_code&> &&
              refused<all_reduce, comm, in, out, std::plus<>, none, std::error_code> &&
              refused<barrier, comm, none, const std::error_code&>);
static_assert(refused<all_reduce, comm, in, out, code> && refused<all_reduce, comm, in, out, std::plus<>, code> &&
              refused<barrier, comm, code>);
static_assert(refused<all_reduce_async, comm, in, out, std::plus<>, none, code> &&
              refused<send_async, comm, in, peer, tag, none, code>);
static_assert(refused<all_reduce, comm, in, out, std::plus<>, none, code, int>);

// ── root, peer, tag, counts ────────────────────────────────────────────────────────────────────────────────────────

static_assert(fits<broadcast, comm, out> && fits<broadcast, comm, out, root> && fits<send, comm, in, peer, tag>);
static_assert(refused<broadcast, comm, out, int> && refused<send, comm, in, int> && refused<recv, comm, out, int> &&
              refused<send, comm, in, root> && refused<send, comm, in, peer, int> &&
              refused<send_recv, comm, in, out, peer, peer> && refused<send_recv, comm, in, int, out, int>);
static_assert(fits<all_gather_v, comm, in, out, counts> && fits<reduce_scatter_v, comm, in, out, counts, std::plus<>> &&
              fits<all_to_all_v, comm, in, out, send_counts, receive_counts>);
static_assert(refused<all_gather_v, comm, in, out> && refused<all_gather_v, comm, in, out, lengths> &&
              refused<all_gather_v, comm, in, out, int> && refused<reduce_scatter_v, comm, in, out, counts, none> &&
              refused<all_to_all_v, comm, in, out, receive_counts, send_counts> &&
              refused<all_to_all_v, comm, in, out, counts, counts>);

// ── Device memory ──────────────────────────────────────────────────────────────────────────────────────────────────

static_assert(fits<all_reduce, comm, on_device, on_device, std::plus<>, in_order> &&
              fits<all_reduce, comm, device_in_place<float, cuda::device_memory>, std::plus<>, in_order> &&
              fits<all_gather, comm, const_on_device, on_device, in_order> &&
              fits<broadcast, comm, on_device, root, in_order, code> &&
              fits<send, comm, const_on_device, peer, tag, in_order> &&
              gives_request<all_reduce_async, comm, on_device, on_device, std::plus<>, in_order>);
static_assert(refused<all_reduce, comm, on_device, on_device> &&
              refused<all_reduce, comm, on_device, on_device, std::plus<>> &&
              refused<all_reduce, comm, on_device, on_device, in_order> &&
              refused<all_reduce, comm, on_device, on_device, std::plus<>, by_ring> &&
              refused<all_reduce, comm, on_device, on_device, unary, in_order> &&
              refused<all_reduce, comm, on_device, std::plus<>, in_order>);
static_assert(refused<all_reduce, comm, in, on_device, std::plus<>, in_order> &&
              refused<all_reduce, comm, on_device, const_on_device, std::plus<>, in_order> &&
              refused<recv, comm, const_on_device, peer, tag, in_order> &&
              refused<send, comm, on_device, peer, in_order> && refused<send, comm, peer, on_device> &&
              refused<broadcast, comm, on_device, int, in_order> &&
              refused<all_gather_v, comm, on_device, on_device, lengths, in_order> &&
              refused<send_recv, comm, on_device, on_device, peer, peer, tag, in_order> &&
              refused<send_async, comm, on_device, peer, tag, in_order, code>);

struct no_kernels {};
using bound = cuda::peers_of<local::domain, cuda_ipc::driver, no_kernels>;
template <class Peers, class... Arguments>
concept binds_all_reduce = requires(Peers& peers, Arguments... arguments) { peers.all_reduce(arguments...); };
template <class Peers, class... Arguments>
concept binds_broadcast = requires(Peers& peers, Arguments... arguments) { peers.broadcast(arguments...); };
static_assert(binds_all_reduce<bound, on_device, on_device, std::plus<>> && binds_broadcast<bound, on_device, root>);
static_assert(!binds_all_reduce<bound, on_device, on_device> && !binds_all_reduce<bound, float*, float*, std::plus<>> &&
              !binds_all_reduce<bound, on_device, on_device, unary> && !binds_broadcast<bound, on_device, int>);

// ── Result types of calls ──────────────────────────────────────────────────────────────────────────────────────────

static_assert(gives_request<all_reduce_async, comm, in, out> &&
              gives_request<all_reduce_async, comm, in, out, std::plus<>, by_ring> &&
              gives_request<all_reduce_async, comm, place> && gives_request<send_async, comm, in, peer> &&
              gives_request<barrier_async, comm>);
static_assert(std::is_void_v<std::invoke_result_t<decltype(all_reduce), comm, in, out>> &&
              std::is_void_v<std::invoke_result_t<decltype(barrier), comm, none, code>>);

}  // namespace
