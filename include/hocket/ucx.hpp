// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Umbrella header for processes as ranks, over UCX. Link with `-lucp -lucs`, or with the CMake target `hocket::ucx`.
#pragma once

#include <hocket/group/allocate.hpp>
#include <hocket/group/ucx.hpp>
#include <hocket/hocket.hpp>
