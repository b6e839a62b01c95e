// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a non-linear function of partial results is not the partial result of the function
//
// The missing reduction is the only error, although the rest of the function depends on it.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/norm.hpp>

void train() {
  local::run(2, [](auto comm) {
    const auto mesh_of_two = mesh<"tp">(comm, {2});
    using mesh_type = std::remove_cvref_t<decltype(mesh_of_two)>;
    const tensor<double, extents<4, 6>, mesh_type, on<"tp", shard<1>>> x(mesh_of_two);
    const tensor<double, extents<6, 8>, mesh_type, on<"tp", shard<0>>> w(mesh_of_two);
    auto activated = apply(nonlinear<"tn->tn">(), compute, apply(multilinear<"tk,kn->tn">(), compute, x, w));
    auto doubled = apply(linear<"tn,tn->tn">(), compute, activated, activated);
    auto result = convert<"tp", invariant>(std::move(doubled));
    accumulate(result, result);
    norm(result);
  });
}
