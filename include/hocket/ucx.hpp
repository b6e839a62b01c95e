// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The door to processes as ranks, over UCX. Link with `-lucp -lucs`, or with the CMake target `hocket::ucx`.
#pragma once

#include <hocket/communicator/allocate.hpp>
#include <hocket/communicator/ucx.hpp>
#include <hocket/hocket.hpp>
