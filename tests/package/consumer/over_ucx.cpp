// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <ucp/api/ucp.h>
#include <hocket/core/error.hpp>

int main() { return 0; }
