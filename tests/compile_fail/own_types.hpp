// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Stands before each case of a batch, in the namespace of the case: there, hocket is the library with a wire of its own,
// so that what one case instantiates is never what another one does. A case that is compiled alone does without.
#pragma once

#include <hocket/communicator/local.hpp>

#include <memory>

namespace hocket {

using namespace ::hocket;

namespace local {

using namespace ::hocket::local;

class wire : public ::hocket::local::wire {
 public:
  using ::hocket::local::wire::wire;
};
using communicator = ::hocket::communicator<wire>;

}  // namespace local
}  // namespace hocket
