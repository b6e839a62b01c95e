// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The door to parallelism: meshes of ranks with named axes, tensors whose types say how they are spread over them, and
/// layers made of these.
#pragma once

#include <hocket/hocket.hpp>

#include <hocket/gradient/accumulator.hpp>
#include <hocket/mesh/mesh.hpp>
#include <hocket/shard/apply.hpp>
#include <hocket/shard/convert.hpp>
#include <hocket/shard/layer/cross_entropy.hpp>
#include <hocket/shard/layer/embedding.hpp>
#include <hocket/shard/layer/linear.hpp>
#include <hocket/shard/norm.hpp>
#include <hocket/shard/redistribute.hpp>
#include <hocket/shard/tensor.hpp>
