// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the weight of a row-parallel layer must be cut by its inputs
//
// The weight is the only error, although the rest of the function depends on it.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/linear.hpp>

void train() {
  local::run(2, [](auto comm) {
    const auto mesh_of_two = mesh<"tp">(comm, {2});
    using mesh_type = std::remove_cvref_t<decltype(mesh_of_two)>;
    const tensor<double, extents<4, 6>, mesh_type, on<"tp", invariant>> x(mesh_of_two);
    const tensor<double, extents<6, 8>, mesh_type, on<"tp", shard<1>>> w(mesh_of_two);
    auto up = column_parallel_linear<"tp">::forward(compute, x, w);
    auto activated = apply(nonlinear<"tn->tn">(), compute, up.output);
    const tensor<double, extents<8, 6>, mesh_type, on<"tp", replicated>> v(mesh_of_two);
    auto down = row_parallel_linear<"tp">::forward(compute, activated, v);
    auto of_down = row_parallel_linear<"tp">::backward(compute, down.saved, v, down.output);
    auto of_up = column_parallel_linear<"tp">::backward(compute, up.saved, w, of_down.input);
  });
}
