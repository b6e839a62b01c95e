// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Umbrella header for programs that have no training loop yet: `train_distributed`, and models and samples for it.
#pragma once

#include <hocket/train/mlp.hpp>
#include <hocket/train/model.hpp>
#include <hocket/train/report.hpp>
#include <hocket/train/samples.hpp>
#include <hocket/train/train.hpp>
