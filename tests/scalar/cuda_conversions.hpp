// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// CUDA's own conversions on the host, as functions from float to bits and back. Needs CUDA's headers, nothing else.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>

namespace cuda_conversions {

inline std::uint16_t encode_half(float value) { return __half_raw(__float2half_rn(value)).x; }
inline std::uint16_t encode_bfloat16(float value) { return __nv_bfloat16_raw(__float2bfloat16_rn(value)).x; }
inline std::uint8_t encode_e4m3(float value) { return __nv_fp8_e4m3(value).__x; }
inline std::uint8_t encode_e5m2(float value) { return __nv_fp8_e5m2(value).__x; }

inline float decode_half(std::uint16_t bits) {
  __half_raw raw;
  raw.x = bits;
  return __half2float(raw);
}
inline float decode_bfloat16(std::uint16_t bits) {
  __nv_bfloat16_raw raw;
  raw.x = bits;
  return __bfloat162float(raw);
}
inline float decode_e4m3(std::uint8_t bits) {
  __nv_fp8_e4m3 value;
  value.__x = bits;
  return float(value);
}
inline float decode_e5m2(std::uint8_t bits) {
  __nv_fp8_e5m2 value;
  value.__x = bits;
  return float(value);
}

}  // namespace cuda_conversions
