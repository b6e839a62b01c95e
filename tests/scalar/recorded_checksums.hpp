// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Checksums of the conversions in the headers of CUDA 13.0, written by cuda_checksums.cpp.
#pragma once

// clang-format off
#include "scalar/checksums.hpp"

namespace scalar_checksums {

inline constexpr record recorded_half{
    {0x0cec03c006af494d, 0x82001ec82af012e4, 0x6db55a3f98d617cc, 0xc1e1ee601795100e,
     0x7a9b7810883ed3fd, 0xb6ac0678dc6ea4db, 0x0e204dd082aaf7c2, 0xf9ae6aeae2c807c1,
     0xdf220a1c6d795b73, 0x3c74b0e424b4238e, 0x942352b04aeb7fbb, 0x0368d66a0a2f6e7c,
     0x20725fe9c15ddf86, 0xc64929751e8266aa, 0x2059502630dca35f, 0x0d2acec98c183f86},
    0x2c7d93afb3f1adbc};

inline constexpr record recorded_bfloat16{
    {0xc5ef9ad2c3222090, 0x1fd49e0c4c084bbf, 0x4e2bde00dcb67d67, 0xd723f30ffdcd2922,
     0x519f7354c0435b86, 0x6fd00c44e4e22f19, 0xd901138751aa0188, 0xfe4a836774d41d28,
     0x07926024e77afb7a, 0x24f27d084ff293b9, 0x72e5c22af6f888ca, 0x6c0ca6152f6efe04,
     0xf3e0c9ee8fe4a9b0, 0x5d200d57594ce4c0, 0x7136183d1762fdbb, 0x9339176dc1aead00},
    0xe89d9608365744fb};

inline constexpr record recorded_e4m3{
    {0xa1aaaada9b030348, 0xda635de7c903adb7, 0xba8f495b5c0105f7, 0xcb94df16d2a8c16f,
     0xa024d16f6f7cf088, 0xf1c00d5324c1309d, 0x202d61256adce9b1, 0x95ca6baebf4da0d3,
     0x118b731ce42f8da4, 0xadc3e669d839339f, 0x4369320fd06deba0, 0x6d31166e9b5a6e3c,
     0x108d2eefc440c80b, 0x16ae335ae1f8123d, 0x59a3e0a2a6d68430, 0xe6f2e7025517c7a7},
    0xd12c6d3dcba2125a};

inline constexpr record recorded_e5m2{
    {0xa1aaaada9b030348, 0xda635de7c903adb7, 0xba8f495b5c0105f7, 0x571494747f6c5068,
     0xd22544926e4853b7, 0x4a43b10766f61655, 0xde0eea3991118d3a, 0xb73e5ad584a1a68f,
     0x118b731ce42f8da4, 0xadc3e669d839339f, 0x4369320fd06deba0, 0x9fb210b508f08dc4,
     0xc6bcb87758424d54, 0x5b790ff7ac5be33c, 0x1550ad558df83755, 0x9d012c0060620188},
    0x0edd2a2971314cbf};

}  // namespace scalar_checksums
