// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Precedes each case of a batch, in the namespace of the case, and gives it a separate domain, so that no two cases
// instantiate the same templates. A case that is compiled alone does not need it.
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
