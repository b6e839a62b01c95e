// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: eigen
//
// A model of all layers: its loss equals that on whole matrices, and its gradients equal the central differences of
// that loss, for several numbers of ranks along tp and dp, with activations whole or sharded by sequence.
#include "shard/layer/block.hpp"

#include <string>
#include <type_traits>
#include <vector>

using namespace hocket_test;

namespace {

/// Sizes are not multiples of the numbers of ranks; the second vocabulary is smaller than most of these.
const std::vector<block_shape> block_shapes = {{7, 11, 5, 9}, {3, 2, 3, 1}};

template <class Activation, class Mesh>
void check_block(thread_rank& me, const Mesh& ranks, const block_shape& shape, const block_parameters& wanted) {
  const parallel_block<Mesh, Activation> block(ranks, shape);
  double loss = 0;
  const auto found = block.run([](const char*) {},
                               [&](const auto& losses) {
                                 for (const double each : losses.elements()) loss += each;
                               });
  if constexpr (Mesh::dimensions == 2) {
    const double own = loss;
    hocket::all_reduce(ranks.template along<"dp">(), std::span(&own, 1), std::span(&loss, 1));
  }
  const double wanted_loss = whole_loss(shape, block_parameters(shape));
  me.check(std::abs(loss - wanted_loss) <= 1e-12 * wanted_loss, [&] { return "the loss is " + std::to_string(loss); });
  // Central differences with steps of 1e-5 have errors of about 1e-10.
  const double allowed = 1e-8;
  check_part(me, found.table, wanted.table, "the table's gradient", allowed);
  check_part(me, found.up, wanted.up, "the first weight's gradient", allowed);
  check_part(me, found.up_bias, wanted.up_bias, "the first bias' gradient", allowed);
  check_part(me, found.down, wanted.down, "the second weight's gradient", allowed);
  check_part(me, found.down_bias, wanted.down_bias, "the second bias' gradient", allowed);
  check_part(me, found.out, wanted.out, "the last weight's gradient", allowed);

  double squares = 0;
  for (const whole_matrix* each :
       {&wanted.table, &wanted.up, &wanted.up_bias, &wanted.down, &wanted.down_bias, &wanted.out}) {
    for (const double one : each->elements) squares += one * one;
  }
  const double norm = hocket::norm(found.table, found.up, found.up_bias, found.down, found.down_bias, found.out);
  me.check(std::abs(norm - std::sqrt(squares)) <= 1e-8 * norm, [&] { return "the norm is " + std::to_string(norm); });
}

}  // namespace

TEST_CASE("a model of parallel layers has the gradients of the whole model, along tp") {
  for (const block_shape& shape : block_shapes) {
    const block_parameters wanted = whole_gradient(shape);
    for (const int tp : {1, 2, 3, 4}) {
      on_ranks(tp, [&](thread_rank& me) {
        me.at([&] { return "tp " + std::to_string(tp); });
        const auto ranks = hocket::mesh<"tp">(me.comm(), {tp});
        check_block<hocket::invariant>(me, ranks, shape, wanted);
        check_block<hocket::shard<0>>(me, ranks, shape, wanted);
      });
    }
  }
}

TEST_CASE("a model of parallel layers has the gradients of the whole model, along dp and tp") {
  for (const block_shape& shape : block_shapes) {
    const block_parameters wanted = whole_gradient(shape);
    for (const auto& extents : std::vector<std::vector<int>>{{2, 2}, {2, 3}, {3, 1}}) {
      on_ranks(extents[0] * extents[1], [&](thread_rank& me) {
        me.at([&] { return "dp " + std::to_string(extents[0]) + ", tp " + std::to_string(extents[1]); });
        const auto ranks = hocket::mesh<"dp", "tp">(me.comm(), extents);
        check_block<hocket::invariant>(me, ranks, shape, wanted);
        check_block<hocket::shard<0>>(me, ranks, shape, wanted);
      });
    }
  }
}
