// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Stands before each case of a batch, in the namespace of the case: there, hocket is the library with a wire of its own,
// so that what one case instantiates is never what another one does. A case that is compiled alone does without.
#pragma once

#include <hocket/group/local.hpp>

#include <memory>

namespace hocket {

using namespace ::hocket;

namespace local {

using namespace ::hocket::local;

class domain : public ::hocket::local::domain {
 public:
  using ::hocket::local::domain::domain;
};
using communicator = ::hocket::communicator<domain>;

}  // namespace local
}  // namespace hocket
