// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: an invariant operand is used beside one that is not
//
// The rows are sharded and the bias is invariant: the error is that of an operation within plus_bias.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/linear.hpp>

void train() {
  local::run(2, [](auto comm) {
    const auto mesh_of_two = mesh<"tp">(comm, {2});
    using mesh_type = std::remove_cvref_t<decltype(mesh_of_two)>;
    const tensor<double, extents<4, 6>, mesh_type, on<"tp", shard<0>>> x(mesh_of_two);
    const tensor<double, extents<6>, mesh_type, on<"tp", invariant>> bias(mesh_of_two);
    auto result = plus_bias(x, bias);
    auto gathered = convert<"tp", replicated>(result);
  });
}
