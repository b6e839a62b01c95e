// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the function object of local products lacks this product
//
// The product for the gradient of the weight is missing.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/linear.hpp>

struct two_products {
  template <class X, class W, class Y>
  void operator()(multilinear<"tk,kn->tn">, X, W, Y) const {}
  template <class D, class W, class X>
  void operator()(multilinear<"tn,kn->tk">, D, W, X) const {}
};

auto backward(const matrix_on_tp<shard<1>>& x, const matrix_on_tp<shard<0>>& w, const matrix_on_tp<invariant>& g) {
  return row_parallel_linear<"tp">::backward(two_products(), x, w, g);
}
