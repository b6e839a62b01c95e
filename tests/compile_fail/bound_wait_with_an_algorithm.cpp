// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this call takes only a timeout
//
// The algorithm was chosen when the call was bound.
#include <hocket/group/peers.hpp>
#include <hocket/hocket.hpp>

using bound = hocket::cuda::bound_call<hocket::local::domain, hocket::cuda_ipc::driver>;

void misuse(bound& call) { call.wait(hocket::with(hocket::ring)); }
