// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether a call accepts its options can be asked without an error, and the answer is the compiler's.
#include <hocket/collective/host/algorithm_diagnostics.hpp>
#include <hocket/group/peers.hpp>
#include <hocket/hocket.hpp>
#include <hocket/mesh/mesh.hpp>
#include <hocket/shard/array_view.hpp>
#include <hocket/shard/convert.hpp>
#include <hocket/shard/layer/linear.hpp>
#include <hocket/shard/norm.hpp>
#include <hocket/shard/redistribute.hpp>
#include <hocket/shard/row_exchange.hpp>
#include <hocket/shard/tensor.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <stop_token>
#include <string_view>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <vector>

namespace {

using namespace hocket;

using comm = const local::communicator&;
using in = const std::vector<float>&;
using out = std::vector<float>&;
using integers = const std::vector<int>&;
using integers_out = std::vector<int>&;
using plus = std::plus<>;

template <const auto& Call, class... Arguments>
constexpr bool fits = std::is_invocable_v<decltype(Call), Arguments...>;

// ── with, hint, timeout, in_place ──────────────────────────────────────────────────────────────────────────────────

template <class... Values>
concept options_of = requires(Values... values) { with(values...); };
template <class Value>
concept can_be_hinted = requires(Value value) { hint(value); };
template <class Given>
concept a_timeout = requires(Given given) { timeout(given); };
template <class Given>
concept in_one_place = requires(Given&& given) { in_place(static_cast<Given&&>(given)); };

using checksum = decltype(require(checksummed));
static_assert(options_of<> && options_of<ring_t> && options_of<ring_t, timeout_property, std::stop_token>);
static_assert(!options_of<int> && !options_of<ring_t, int> && !options_of<std::chrono::seconds>);
static_assert(!options_of<ring_t, one_shot_t> && !options_of<timeout_property, timeout_property>);
static_assert(can_be_hinted<ring_t> && can_be_hinted<std::stop_token> && can_be_hinted<timeout_property>);
static_assert(!can_be_hinted<checksum> && !can_be_hinted<decltype(require(run_to_run))> && !can_be_hinted<int>);
static_assert(a_timeout<std::chrono::milliseconds> && !a_timeout<int> && !a_timeout<double> && !a_timeout<plus>);
static_assert(in_one_place<out> && in_one_place<std::span<float>>);
static_assert(!in_one_place<in> && !in_one_place<std::vector<float>> && !in_one_place<float&>);

// ── Collectives and messages ───────────────────────────────────────────────────────────────────────────────────────

using by_ring = decltype(with(ring));
using by_direct = decltype(with(direct));
using perhaps_by_ring = decltype(with(hint(ring)));
using as_bfloat16 = decltype(with(wire<bfloat16>));
using perhaps_as_bfloat16 = decltype(with(hint(wire<bfloat16>)));
using as_int = decltype(with(wire<int>));
using in_tree = decltype(with(require(fixed_tree)));
using in_tree_by_ring = decltype(with(require(fixed_tree), ring));
using invariant_bits = decltype(with(require(rank_count_invariant)));
using invariant_bits_as_bfloat16 = decltype(with(require(rank_count_invariant), wire<bfloat16>));
using on_stream = decltype(with(cuda::stream_ref(static_cast<CUstream_st*>(nullptr))));
using stopped = decltype(with(std::stop_token()));

/// An operation whose operands have an order.
struct first_of_two {
  float operator()(float a, float) const { return a; }
};

static_assert(fits<all_reduce, comm, in, out, plus, by_ring> && !fits<all_reduce, comm, in, out, plus, by_direct>);
static_assert(fits<all_gather, comm, in, out, by_ring> && fits<all_gather, comm, in, out, by_direct>);
static_assert(!fits<all_to_all, comm, in, out, by_ring> && fits<all_to_all, comm, in, out, perhaps_by_ring>);
static_assert(!fits<broadcast, comm, out, root, by_ring> && fits<broadcast, comm, out, root, perhaps_by_ring>);
static_assert(!fits<barrier, comm, as_bfloat16> && fits<barrier, comm, perhaps_as_bfloat16>);
static_assert(!fits<barrier, comm, on_stream> && !fits<all_gather, comm, in, out, as_bfloat16>);
static_assert(fits<all_reduce, comm, in, out, plus, as_bfloat16> && !fits<all_reduce, comm, in, out, plus, as_int>);
static_assert(fits<all_reduce, comm, integers, integers_out, plus, options<>> &&
              !fits<all_reduce, comm, integers, integers_out, plus, decltype(with(wire<char>))>);
static_assert(fits<all_reduce, comm, in, out, first_of_two> &&
              !fits<all_reduce, comm, in, out, first_of_two, by_ring> &&
              fits<all_reduce, comm, in, out, first_of_two, perhaps_by_ring>);
static_assert(fits<all_reduce, comm, in, out, plus, in_tree> &&
              !fits<all_reduce, comm, in, out, plus, in_tree_by_ring>);
static_assert(fits<all_reduce, comm, in, out, plus, invariant_bits> &&
              !fits<all_reduce, comm, in, out, std::multiplies<>, invariant_bits> &&
              !fits<all_reduce, comm, in, out, plus, invariant_bits_as_bfloat16>);
static_assert(!fits<all_reduce, comm, in, out, plus, on_stream> &&
              !fits<all_reduce_async, comm, in, out, plus, on_stream>);
static_assert(fits<send, comm, in, peer, tag, stopped> && !fits<send, comm, in, peer, tag, by_ring> &&
              fits<send, comm, in, peer, tag, perhaps_by_ring> && !fits<recv, comm, out, peer, tag, as_bfloat16> &&
              !fits<send_recv, comm, in, peer, out, peer, tag, by_ring>);

static_assert(can_be_hinted<ring_t> && !can_be_hinted<decltype(hint(ring))> &&
              !options_of<decltype(hint(ring)), ring_t>);

// The forms with a std::error_code.
using code = std::error_code&;
static_assert(fits<all_gather, comm, in, out, by_ring, code> && !fits<all_gather, comm, in, out, as_bfloat16, code> &&
              !fits<all_gather, comm, in, out, on_stream, code> && !fits<all_to_all, comm, in, out, by_ring, code>);
static_assert(!fits<all_gather_v, comm, in, out, counts, as_bfloat16, code> &&
              !fits<all_to_all_v, comm, in, out, send_counts, receive_counts, by_ring, code>);
static_assert(!fits<broadcast, comm, out, root, by_ring, code> && !fits<barrier, comm, as_bfloat16, code> &&
              !fits<all_reduce, comm, in, out, plus, by_direct, code> &&
              !fits<send, comm, in, peer, tag, by_ring, code> && !fits<recv, comm, out, peer, tag, by_ring, code> &&
              !fits<send_recv, comm, in, peer, out, peer, tag, by_ring, code>);

// ── explain ────────────────────────────────────────────────────────────────────────────────────────────────────────

template <class T, class Call, class... Arguments>
concept explained =
    requires(comm where, const Call& call, const Arguments&... arguments) { explain<T>(where, call, arguments...); };
using lengths = counts;

static_assert(explained<float, decltype(all_reduce), int> && explained<float, decltype(all_reduce), int, by_ring> &&
              explained<float, decltype(all_reduce), int, plus, as_bfloat16>);
static_assert(!explained<float, decltype(all_reduce), int, by_direct> &&
              !explained<float, decltype(all_gather), int, as_bfloat16> && !explained<float, decltype(send), int>);
static_assert(explained<float, decltype(all_gather_v), lengths> && !explained<float, decltype(all_gather_v), int> &&
              !explained<float, decltype(all_gather), lengths>);
static_assert(explained<float, decltype(all_to_all_v)> && !explained<float, decltype(all_to_all_v), by_ring>);
static_assert(!explained<float, decltype(all_gather), std::size_t, ring_t> &&
              !explained<float, decltype(all_gather), std::size_t, int> &&
              !explained<float, decltype(all_gather_v), lengths, ring_t> &&
              explained<float, decltype(broadcast), int, root> &&
              explained<float, decltype(broadcast), int, by_direct>);
static_assert(explained<float, decltype(reduce), int, plus, root> && explained<float, decltype(reduce), int, root> &&
              explained<float, decltype(reduce), int, plus, root, by_ring> &&
              explained<float, decltype(gather), int, root, by_direct> &&
              explained<float, decltype(gather_v), lengths, root> &&
              explained<float, decltype(scatter_v), lengths, root, by_direct>);
static_assert(!explained<float, decltype(all_reduce), int, plus, root> &&
              !explained<float, decltype(all_gather), int, root> &&
              !explained<float, decltype(all_gather_v), lengths, root> &&
              !explained<float, decltype(gather), int, plus, by_direct, root> &&
              !explained<float, decltype(reduce), int, root, plus> &&
              !explained<float, decltype(reduce), int, plus, int>);
struct three_floats {
  float x, y, z;
};
static_assert(!explained<three_floats, decltype(all_reduce), int> &&
              explained<three_floats, decltype(all_gather), int>);
struct derived_communicator : local::communicator {};
template <class Comm>
concept explained_on = requires(const Comm& where) { explain<float>(where, all_reduce, 5); };
static_assert(explained_on<derived_communicator> && !explained_on<int>);
static_assert(!explained<void, decltype(all_reduce), int> && !explained<float*, decltype(all_reduce), int>);

// ── Bound calls ────────────────────────────────────────────────────────────────────────────────────────────────────

struct no_kernels {};
using device_ranks = cuda::peers_of<local::domain, cuda_ipc::driver, no_kernels>;
using bound = cuda::bound_call<local::domain, cuda_ipc::driver>;

template <class Options>
concept bound_sum = requires(device_ranks& ranks, float* data, const Options& options) {
  ranks.all_reduce(cuda::device(data, 3), cuda::device(data, 3), plus(), options);
};
template <class Options>
concept bound_gather = requires(device_ranks& ranks, float* data, const Options& options) {
  ranks.all_gather(cuda::device(data, 3), cuda::device(data, 9), options);
};
template <class Options>
concept waited_for = requires(bound& call, const Options& options) {
  call.wait(options);
  call.completion(options);
};
using in_time = decltype(with(timeout(std::chrono::seconds(1))));

static_assert(bound_sum<options<>> && bound_sum<by_ring> && bound_sum<in_time> && bound_sum<in_tree>);
static_assert(!bound_sum<by_direct> && !bound_sum<stopped> && !bound_sum<in_tree_by_ring> && !bound_sum<on_stream>);
static_assert(bound_gather<by_direct> && !bound_gather<stopped> && !bound_gather<decltype(with(two_shot))>);
static_assert(waited_for<options<>> && waited_for<in_time> && !waited_for<by_ring> && !waited_for<int>);

// ── Tensors ────────────────────────────────────────────────────────────────────────────────────────────────────────

using ranks = rank_mesh<local::domain, "dp", "tp">;
template <class Placement>
using vector_on_tp = tensor<float, extents<dynamic>, ranks, on<"tp", Placement>, elsewhere<replicated>>;
template <class Placement>
using matrix_on_tp = tensor<float, extents<dynamic, dynamic>, ranks, on<"tp", Placement>, elsewhere<replicated>>;

template <class Tensor, class To, class Options>
concept converted = requires(const Tensor& x, const Options& options) { convert<"tp", To>(x, options); };
template <class Tensor, class To, class Options>
concept redistributed = requires(const Tensor& x, const Options& options) { redistribute<on<"tp", To>>(x, options); };
template <class Tensor, class Options>
concept has_norm = requires(Tensor& x, const Options& options) { norm(std::tie(x), options); };
template <class Tensor, class Options>
concept routed = requires(const Tensor& x, std::vector<std::size_t> sent, const Options& options) {
  route_rows<"tp">(x, sent, options);
};
template <class Output, class Options>
concept passed = requires(const matrix_on_tp<shard<1>>& x, const matrix_on_tp<shard<0>>& w, const Options& options) {
  row_parallel_linear<"tp", Output>::forward([](auto&&...) {}, x, w, options);
};

using by_double_tree = decltype(with(double_tree));
static_assert(converted<vector_on_tp<shard<0>>, replicated, by_ring> &&
              !converted<vector_on_tp<shard<0>>, replicated, by_double_tree> &&
              !converted<vector_on_tp<shard<0>>, replicated, as_bfloat16>);
static_assert(converted<vector_on_tp<partial<sum>>, replicated, by_double_tree> &&
              converted<vector_on_tp<partial<sum>>, shard<0>, as_bfloat16> &&
              !converted<vector_on_tp<partial<sum>>, shard<0>, by_double_tree>);
static_assert(!converted<vector_on_tp<shard<0>>, replicated, on_stream>);
static_assert(redistributed<vector_on_tp<shard<0>>, replicated, in_time> &&
              !redistributed<vector_on_tp<shard<0>>, replicated, by_double_tree> &&
              !redistributed<vector_on_tp<shard<0>>, replicated, as_bfloat16> &&
              redistributed<vector_on_tp<partial<sum>>, replicated, as_bfloat16>);
static_assert(has_norm<vector_on_tp<shard<0>>, by_ring> && !has_norm<vector_on_tp<shard<0>>, by_direct>);
static_assert(routed<vector_on_tp<shard<0>>, in_time> && !routed<vector_on_tp<shard<0>>, by_ring>);
static_assert(passed<invariant, by_ring> && !passed<invariant, by_direct> && passed<shard<0>, by_direct>);

// ── The algorithms that refusals name ──────────────────────────────────────────────────────────────────────────────

using plan::collective_kind;

/// Whether `text` is `begin`, the names `algorithms` and `end`.
constexpr bool lists(const detail::composed_text& text, std::string_view begin, std::string_view algorithms,
                     std::string_view end) {
  const std::string_view whole(text.characters.data());
  return whole.starts_with(begin) && whole.ends_with(end) && whole.size() > begin.size() + end.size() &&
         whole.substr(begin.size(), whole.size() - begin.size() - end.size()) == algorithms;
}

template <collective_kind Kind>
constexpr bool has_no_others_than(std::string_view algorithms) {
  detail::composed_text begin;
  begin.append({"with(...): ", plan::to_string(Kind), " has no such algorithm: it has "});
  return lists(detail::no_such_algorithm<Kind>, begin.characters.data(), algorithms,
               ", and takes algorithm(your_plan)");
}

template <collective_kind Kind>
constexpr bool has_in_fixed_tree(std::string_view algorithms) {
  return lists(detail::not_in_fixed_tree<Kind>,
               "require(fixed_tree): this algorithm combines in another order than the fixed tree: use ", algorithms,
               ", or pass no algorithm");
}

template <collective_kind Kind>
constexpr bool has_in_rank_order(std::string_view algorithms) {
  return lists(
      detail::not_in_rank_order<Kind>,
      "with(...): this algorithm combines operands in another order than that of the ranks, and the operation is not "
      "known to be commutative: give it `static constexpr bool commutative = true`, or use ",
      algorithms, ", which keeps rank order");
}

static_assert(has_no_others_than<collective_kind::all_reduce>(
    "ring, recursive_doubling, halving_doubling, double_tree, one_shot, two_shot and push"));
static_assert(has_no_others_than<collective_kind::reduce_scatter>("ring, recursive_halving, pairwise and direct"));
static_assert(has_no_others_than<collective_kind::reduce>("ring, binomial and direct"));
static_assert(has_no_others_than<collective_kind::all_gather>("ring, pairwise and direct"));
static_assert(has_no_others_than<collective_kind::gather>("flat, binomial and direct"));
static_assert(has_no_others_than<collective_kind::scatter>("flat, binomial and direct"));
static_assert(has_no_others_than<collective_kind::broadcast>("binomial and direct"));
static_assert(has_no_others_than<collective_kind::all_to_all>("pairwise and direct"));
static_assert(has_no_others_than<collective_kind::barrier>("dissemination"));
static_assert(
    has_in_fixed_tree<collective_kind::all_reduce>("recursive_doubling, halving_doubling, one_shot, two_shot or push"));
static_assert(has_in_fixed_tree<collective_kind::reduce_scatter>("recursive_halving or direct"));
static_assert(has_in_fixed_tree<collective_kind::reduce>("binomial or direct"));
static_assert(has_in_rank_order<collective_kind::all_reduce>(
    "recursive_doubling, halving_doubling, double_tree, one_shot, two_shot or push"));
static_assert(has_in_rank_order<collective_kind::reduce_scatter>("recursive_halving, pairwise or direct"));
static_assert(has_in_rank_order<collective_kind::reduce>("binomial or direct"));

static_assert(std::is_invocable_v<const array_view<float, 2>&, int, int> &&
              !std::is_invocable_v<const array_view<float, 2>&, int> &&
              !std::is_invocable_v<const array_view<float, 2>&, int, int, int>);

}  // namespace
