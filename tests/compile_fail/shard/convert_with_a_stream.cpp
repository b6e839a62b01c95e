// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a stream or cuda::staging is valid only with tagged buffers
//
// Tensors are in host memory.
#include <hocket/collective/device/memory.hpp>
#include <shard/setting_with_domains.hpp>

auto whole(const matrix_on_tp<shard<0>>& x, CUstream_st* stream) {
  return convert<"tp", replicated>(x, with(cuda::stream_ref(stream)));
}
