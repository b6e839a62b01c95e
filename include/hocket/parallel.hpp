// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Umbrella header for parallel training: hocket.hpp, meshes of ranks with named axes, tensors with their
/// distribution in the type, layers, gradients summed over microbatches and ranks, and optimizers that divide work.
#pragma once

#include <hocket/hocket.hpp>

#include <hocket/gradient/accumulator.hpp>
#include <hocket/gradient/loss_scale.hpp>
#include <hocket/gradient/norm.hpp>
#include <hocket/gradient/typed.hpp>
#include <hocket/mesh/mesh.hpp>
#include <hocket/optimizer/memory.hpp>
#include <hocket/optimizer/optimizer.hpp>
#include <hocket/optimizer/parameters.hpp>
#include <hocket/optimizer/rule/adamw.hpp>
#include <hocket/optimizer/rule/lion.hpp>
#include <hocket/optimizer/rule/sgd.hpp>
#include <hocket/shard/apply.hpp>
#include <hocket/shard/change_mesh.hpp>
#include <hocket/shard/convert.hpp>
#include <hocket/shard/layer/cross_entropy.hpp>
#include <hocket/shard/layer/embedding.hpp>
#include <hocket/shard/layer/linear.hpp>
#include <hocket/shard/norm.hpp>
#include <hocket/shard/redistribute.hpp>
#include <hocket/shard/row_exchange.hpp>
#include <hocket/shard/tensor.hpp>
