// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// hocket::ucx brings UCX itself along: its headers and its libraries.
#include <hocket/core/error.hpp>

#include <ucp/api/ucp.h>

int main() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  ucp_get_version(&major, &minor, &release);
  return major >= 1 ? 0 : 1;
}
