// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: only replicated data and slices can be made partial
//
// The redistribution is the only error, although the rest of the function depends on it.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/redistribute.hpp>

void train() {
  local::run(2, [](auto comm) {
    const auto mesh_of_two = mesh<"tp">(comm, {2});
    using mesh_type = std::remove_cvref_t<decltype(mesh_of_two)>;
    const tensor<double, extents<dynamic>, mesh_type, on<"tp", shard<0>>> x(mesh_of_two, {4});
    auto result = redistribute<on<"tp", partial<maximum>>>(x);
    auto used = convert<"tp", replicated>(result);
    accumulate(used, used);
  });
}
