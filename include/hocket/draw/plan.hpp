// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Drawings of plans: `draw_text` for a terminal, `draw_svg` for a page; both use the virtual clock of plan/trace.hpp.
#pragma once

#include <hocket/draw/plan_svg.hpp>
#include <hocket/draw/plan_text.hpp>
