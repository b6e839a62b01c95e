// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by misuses of functions that communicate: like setting.hpp, with a mesh of threads.
#pragma once

#include <hocket/group/local.hpp>
#include <hocket/mesh/mesh.hpp>
#include <hocket/shard/apply.hpp>
#include <hocket/shard/convert.hpp>

using ranks = hocket::rank_mesh<hocket::local::domain, "dp", "tp">;

#include "tensors.hpp"
