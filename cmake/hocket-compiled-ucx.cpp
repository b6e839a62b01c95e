// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/impl/src_ucx.hpp>
