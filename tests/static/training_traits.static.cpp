// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether gradients, parameters, optimizers and stages of pipelines can be made of some arguments can be asked without an
// error, and the answer is the compiler's.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/gradient/norm.hpp>
#include <hocket/gradient/typed.hpp>
#include <hocket/group/local.hpp>
#include <hocket/mesh/mesh.hpp>
#include <hocket/optimizer/optimizer.hpp>
#include <hocket/optimizer/parameters.hpp>
#include <hocket/optimizer/rule/adamw.hpp>
#include <hocket/pipeline/any_stage.hpp>
#include <hocket/shard/tensor.hpp>

#include <cstddef>
#include <memory_resource>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace hocket;

using comm = const local::communicator&;
using layout = const parameter_layout&;
using replicated_group = hybrid_group<local::domain>;

// ── gradients and parameters ───────────────────────────────────────────────────────────────────────────────────────

template <class T, class... Given>
concept summed = requires(Given&&... given) { gradients<T>(static_cast<Given&&>(given)...); };
template <class P, class... Given>
concept stored = requires(Given&&... given) { parameters<P>(static_cast<Given&&>(given)...); };
template <class... Given>
concept summed_as_nothing = requires(Given&&... given) { gradients(static_cast<Given&&>(given)...); };

using last = last_microbatch_t;
using every = every_microbatch_t;
using scattered = scatter_every_reduce_last_t;
using by_ring = decltype(with(ring));
using by_one_shot = decltype(with(one_shot));
using as_bfloat16 = decltype(with(wire<bfloat16>));

static_assert(summed<float, comm, layout, last, zero_t<0>> && summed<double, comm, layout, every, zero_t<2>>);
static_assert(!summed_as_nothing<comm, layout, last, zero_t<0>> && !summed<float, comm, layout, last>);
static_assert(!summed<float, local::communicator, layout, last, zero_t<0>> &&
              !summed<float, int, layout, last, zero_t<0>>);
static_assert(!summed<bfloat16, comm, layout, last, zero_t<0>> && !summed<int, comm, layout, last, zero_t<0>>);
static_assert(!summed<float, comm, layout, bool, zero_t<0>> && !summed<float, comm, layout, last, int>);
static_assert(!summed<float, comm, layout, last, zero_t<2>> && !summed<float, comm, layout, every, zero_t<1>>);
static_assert(!summed<float, comm, layout, scattered, zero_t<0>> &&
              !summed<float, comm, layout, scattered, zero_t<2>> &&
              summed<float, replicated_group, layout, scattered, zero_t<2>>);
static_assert(summed<float, comm, layout, last, zero_t<0>, by_ring> &&
              !summed<float, comm, layout, last, zero_t<0>, int>);
static_assert(summed<float, comm, layout, last, zero_t<0>, by_one_shot> &&
              !summed<float, comm, layout, last, zero_t<1>, by_one_shot>);
static_assert(summed<float, comm, layout, last, zero_t<0>, as_bfloat16> &&
              !summed<exact_sum<float>, comm, layout, last, zero_t<0>, as_bfloat16>);
static_assert(summed<float, comm, layout, last, zero_t<0>, options<>, piecewise_reduction> &&
              !summed<float, comm, layout, last, zero_t<0>, options<>, int>);
static_assert(summed<float, comm, layout, last, zero_t<0>, options<>, plain_reduction, std::pmr::memory_resource*> &&
              !summed<float, comm, layout, last, zero_t<0>, options<>, plain_reduction, int>);

static_assert(stored<float, comm, layout, zero_t<1>> && stored<bfloat16, replicated_group, layout, zero_t<3>>);
static_assert(!stored<float, comm, layout, int> && !stored<float, comm, layout> &&
              !stored<void, comm, layout, zero_t<0>>);
static_assert(!stored<float, local::communicator, layout, zero_t<0>> && !stored<float, comm, int, zero_t<0>>);
static_assert(stored<float, comm, layout, zero_t<1>, by_ring> && !stored<float, comm, layout, zero_t<1>, by_one_shot> &&
              !stored<float, comm, layout, zero_t<1>, as_bfloat16>);

// ── add ────────────────────────────────────────────────────────────────────────────────────────────────────────────

using sums = decltype(gradients<float>(std::declval<comm>(), parameter_layout(), last(), zero<0>));
template <class Gradient>
concept added = requires(sums& accumulator, const Gradient& gradient) { accumulator.add(0, gradient); };

static_assert(added<std::vector<float>> && added<std::vector<bfloat16>> && added<std::span<const float>>);
static_assert(!added<std::vector<double>> && !added<float> && !added<std::vector<std::string>>);

using ranks = rank_mesh<local::domain, "dp", "tp">;
template <class OnData, class OnModel, class T = float>
using placed = tensor<T, extents<dynamic>, ranks, on<"dp", OnData>, on<"tp", OnModel>>;

template <class Gradient, axis_name... DataAxes>
concept added_along =
    requires(sums& accumulator, const Gradient& gradient) { add_gradient<DataAxes...>(accumulator, 0, gradient); };
template <class Given, axis_name... DataAxes>
concept described = requires(const Given& given) {
  parameter_of<DataAxes...>("weights", given);
  holds_first_copy<DataAxes...>(given);
};

static_assert(added_along<placed<partial<sum>, invariant>, "dp"> && added_along<placed<varying, shard<0>>, "dp">);
static_assert(!added_along<placed<invariant, invariant>, "dp"> && !added_along<placed<shard<0>, invariant>, "dp"> &&
              !added_along<placed<partial<mean>, invariant>, "dp">);
static_assert(!added_along<placed<partial<sum>, partial<sum>>, "dp"> &&
              added_along<placed<partial<sum>, partial<sum>>, "dp", "tp"> &&
              !added_along<placed<partial<sum>, varying>, "dp">);
static_assert(!added_along<placed<partial<sum>, invariant>, "pp"> && !added_along<std::vector<float>, "dp"> &&
              !added_along<placed<partial<sum>, invariant, double>, "dp">);
static_assert(described<placed<invariant, shard<0>>, "dp"> && !described<placed<invariant, varying>, "dp"> &&
              described<placed<varying, invariant>, "dp"> && !described<std::vector<float>, "dp"> &&
              !described<placed<invariant, shard<0>>, "pp">);

// ── Optimizers ─────────────────────────────────────────────────────────────────────────────────────────────────────

template <class P, int Stage = 0, class Group = comm>
using stored_parameters = decltype(parameters<P>(std::declval<Group>(), parameter_layout(), zero<Stage>));
template <class F, class... Given>
concept optimized = requires(Given&&... given) { make_optimizer<F>(static_cast<Given&&>(given)...); };

static_assert(optimized<float, stored_parameters<float>&, adamw> &&
              optimized<double, stored_parameters<float>&, adamw> &&
              optimized<float, stored_parameters<bfloat16>&, adamw, std::pmr::memory_resource*>);
static_assert(!optimized<int, stored_parameters<float>&, adamw> && !optimized<void, stored_parameters<float>&, adamw>);
static_assert(!optimized<float, stored_parameters<double>&, adamw> &&
              !optimized<float, stored_parameters<float>&, int>);
static_assert(!optimized<float, stored_parameters<float>, adamw> && !optimized<float, std::vector<float>&, adamw> &&
              !optimized<float, stored_parameters<float>&> && !optimized<float, stored_parameters<float>&, adamw, int>);

using optimizer_of_floats = optimizer<float, adamw, stored_parameters<float>>;
using optimizer_of_replicas = optimizer<float, adamw, stored_parameters<float, 0, replicated_group>>;
using sharded_sums = decltype(gradients<float>(std::declval<comm>(), parameter_layout(), every(), zero<2>));
template <class Optimizer, class... Given>
concept stepped = requires(Optimizer& optimizer, Given&&... given) { optimizer.step(static_cast<Given&&>(given)...); };

static_assert(stepped<optimizer_of_floats, sums&, double, double> && stepped<optimizer_of_floats, sums&, float, int>);
static_assert(!stepped<optimizer_of_floats, sums&, double> &&
              !stepped<optimizer_of_floats, sharded_sums&, double, double> &&
              !stepped<optimizer_of_floats, std::vector<float>&, double, double> &&
              !stepped<optimizer_of_replicas, sums&, double, double>);

static_assert(!optimized<float, sums&, adamw> && !optimized<float, const stored_parameters<float>&, adamw> &&
              !stepped<optimizer_of_floats, stored_parameters<float>&, double, double> &&
              !stepped<optimizer_of_floats, const sums&, double, double>);
static_assert(!stored<std::string, comm, layout, zero_t<0>> && !stored<const float, comm, layout, zero_t<0>> &&
              !summed<const float, comm, layout, last, zero_t<0>>);

template <class Accumulator>
concept adds_typed = requires(Accumulator& accumulator, const placed<partial<sum>, invariant>& gradient) {
  add_gradient<"dp">(accumulator, 0, gradient);
};
static_assert(adds_typed<sums> && !adds_typed<int> && !adds_typed<std::vector<float>> && !adds_typed<const sums> &&
              !adds_typed<stored_parameters<float>>);

// ── norm ───────────────────────────────────────────────────────────────────────────────────────────────────────────

template <class Gradients, class... Given>
concept has_norm = requires(Gradients& gradients, const Given&... given) { norm(gradients, given...); };
using by_pairwise = decltype(with(pairwise));
static_assert(has_norm<sums> && has_norm<sharded_sums, by_ring> && has_norm<sums, local::communicator, by_ring>);
static_assert(!has_norm<sharded_sums, by_pairwise> && !has_norm<sums, local::communicator, by_pairwise> &&
              !has_norm<sums, int> && !has_norm<stored_parameters<float>> && !has_norm<const sums>);

// ── Stages ─────────────────────────────────────────────────────────────────────────────────────────────────────────

struct whole_stage {
  using input_type = float;
  using output_type = float;
  std::size_t input_size() const;
  std::size_t output_size() const;
  void forward(int, std::span<const float>, std::span<float>);
  void backward(int, std::span<const float>, std::span<const float>, std::span<float>);
};
struct stage_without_backward {
  using input_type = float;
  using output_type = float;
  std::size_t input_size() const;
  std::size_t output_size() const;
  void forward(int, std::span<const float>, std::span<float>);
};
struct stage_of_strings : whole_stage {
  using input_type = std::string;
};

static_assert(std::is_convertible_v<whole_stage&, pipeline::any_stage> && pipeline::stage<whole_stage>);
static_assert(!std::is_constructible_v<pipeline::any_stage, stage_without_backward&> &&
              !std::is_constructible_v<pipeline::any_stage, stage_of_strings&> &&
              !std::is_constructible_v<pipeline::any_stage, const whole_stage&> &&
              !std::is_convertible_v<int&, pipeline::any_stage>);

}  // namespace
