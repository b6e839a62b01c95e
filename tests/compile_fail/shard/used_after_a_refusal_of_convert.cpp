// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: replicated data can't become invariant
//
// The conversion is the only error, although the rest of the function depends on it.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/norm.hpp>

void train() {
  local::run(2, [](auto comm) {
    const auto mesh_of_two = mesh<"dp">(comm, {2});
    using mesh_type = std::remove_cvref_t<decltype(mesh_of_two)>;
    const tensor<double, extents<dynamic>, mesh_type, on<"dp", replicated>> x(mesh_of_two, {4});
    auto result = convert<"dp", invariant>(x);
    auto used = convert<"dp", replicated>(result);
    accumulate(used, used);
    norm(result);
  });
}
