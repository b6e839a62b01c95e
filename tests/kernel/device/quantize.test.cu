// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Quantisation to blocks of 8-bit numbers with a scale; the code of threads runs on the host. The scale is right, the
// error is bounded, the largest number is exact, infinities are not hidden; for all alignments and last blocks.
#include "kernel/device/gpu.cuh"
#include "support/catch.hpp"
#include "support/elements.hpp"

#include <hocket/kernel/device/quantize.cuh>
#include <hocket/scalar/scalar.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

using namespace hocket_test;
namespace device = hocket::kernel::device;

namespace {

/// Like the kernel: the lanes agree on a magnitude, and each lane writes its group.
template <class T, class Quantized, std::size_t Block>
void run(const device::quantization<T, Quantized, Block>& body) {
  using body_type = device::quantization<T, Quantized, Block>;
  for (std::size_t block = 0; block < body.blocks(); ++block) {
    std::uint32_t magnitude = 0;
    const auto first = [&](std::size_t lane) { return block * Block + lane * body_type::group_size; };
    for (std::size_t lane = 0; lane < body_type::lanes; ++lane) {
      magnitude = std::max(magnitude, body_type::magnitude_of(body.load(first(lane))));
    }
    body.scales[block] = body_type::scale_of(magnitude);
    for (std::size_t lane = 0; lane < body_type::lanes; ++lane) {
      body.store(first(lane), body.load(first(lane)), body.scales[block]);
    }
  }
}

template <class T, class Quantized, std::size_t Block>
void run(const device::dequantization<T, Quantized, Block>& body) {
  for (std::size_t thread = 0; thread < 3; ++thread) {
    device::visit(
        body.parts(), thread, 3, [&](std::size_t first) { body.on_group(first); },
        [&](std::size_t i) { body.on_element(i); });
  }
}

/// The largest error of a number in a block with this scale.
template <class Quantized>
double allowed(double value, double scale) {
  const double rounding = std::is_same_v<Quantized, std::int8_t> ? 0.5 * scale : std::fabs(value) / 16 + scale / 512;
  return rounding * (1 + 1e-5);
}

template <class T, class Quantized, std::size_t Block>
bool survives(const std::vector<T>& values, std::size_t offset) {
  const std::size_t count = values.size();
  const std::size_t blocks = count / Block + (count % Block != 0 ? 1 : 0);
  guarded<T> from(values, offset);
  guarded<Quantized> to(count, (5 * offset) % 16);
  guarded<float> scales(blocks, offset % 3);
  guarded<T> back(count, (7 * offset) % 16);
  run(device::quantization<T, Quantized, Block>{to.elements().data(), scales.elements().data(), from.elements().data(),
                                                count});
  run(device::dequantization<T, Quantized, Block>{back.elements().data(), to.elements().data(),
                                                  scales.elements().data(), count});
  bool good = from.intact() && to.intact() && scales.intact() && back.intact();
  for (std::size_t block = 0; block < blocks; ++block) {
    float largest = 0;
    const std::size_t end = std::min(count, (block + 1) * Block);
    for (std::size_t i = block * Block; i < end; ++i) largest = std::max(largest, std::fabs(float{values[i]}));
    const float scale = scales.elements()[block];
    float expected = largest / device::quantized_number<Quantized>::largest;
    if (std::isinf(expected * device::quantized_number<Quantized>::largest)) expected = std::nextafter(expected, 0.0F);
    good = good && scale == std::max(expected, 0x1p-126F);
    for (std::size_t i = block * Block; i < end; ++i) {
      const double value = static_cast<double>(float{values[i]});
      const double result = static_cast<double>(float{back.elements()[i]});
      const double of_type = std::fabs(value) * static_cast<double>(float{std::numeric_limits<T>::epsilon()});
      good = good && std::fabs(result - value) <= allowed<Quantized>(value, static_cast<double>(scale)) + of_type;
    }
  }
  return good;
}

template <class T, class Quantized, std::size_t Block>
void check() {
  bool good = true;
  for (std::size_t count : {std::size_t{0}, std::size_t{1}, Block - 1, Block, Block + 1, 3 * Block + 17}) {
    for (std::size_t offset = 0; offset < 16; ++offset) {
      if (survives<T, Quantized, Block>(samples<T>(0, count), offset)) continue;
      good = false;
      UNSCOPED_INFO("count " << count << ", offset " << offset);
    }
  }
  INFO(hocket::scalar_name<T>() << " to " << hocket::scalar_name<Quantized>() << " in blocks of " << Block);
  CHECK(good);
}

}  // namespace

TEST_CASE("quantised values come back within the rounding error") {
  check<float, std::int8_t, 128>();
  check<float, std::int8_t, 16>();
  check<hocket::bfloat16, std::int8_t, 64>();
  check<float, hocket::float8_e4m3, 128>();
  check<hocket::half, hocket::float8_e4m3, 512>();
}

TEST_CASE("the largest number of a block and zeros come back unchanged") {
  std::vector<float> values(128, 0.0F);
  values[77] = -508;  // 4 * 127
  std::vector<std::int8_t> to(128);
  std::vector<float> back(128);
  float scale = 0;
  run(device::quantization<float, std::int8_t, 128>{to.data(), &scale, values.data(), 128});
  run(device::dequantization<float, std::int8_t, 128>{back.data(), to.data(), &scale, 128});
  CHECK(scale == 4);
  CHECK(to[77] == -127);
  CHECK(back == values);
}

TEST_CASE("numbers near the limits of float's range come back within the rounding error") {
  for (float largest : {std::numeric_limits<float>::max(), std::numeric_limits<float>::min(), 0x1p-130F,
                        std::numeric_limits<float>::denorm_min(), 0.0F}) {
    std::vector<float> values(40, largest / 2);
    values[3] = -largest;
    CHECK(survives<float, std::int8_t, 16>(values, 1));
    CHECK(survives<float, hocket::float8_e4m3, 16>(values, 1));
  }
}

TEST_CASE("a block with an infinity or NaN comes back as NaNs, and no other block does") {
  for (float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> values(48, 1.0F);
    values[20] = bad;
    std::vector<std::int8_t> to(48);
    std::vector<float> scales(3);
    std::vector<float> back(48);
    run(device::quantization<float, std::int8_t, 16>{to.data(), scales.data(), values.data(), 48});
    run(device::dequantization<float, std::int8_t, 16>{back.data(), to.data(), scales.data(), 48});
    for (std::size_t i = 0; i < 48; ++i) CHECK(std::isnan(back[i]) == (i / 16 == 1));
  }
}

TEST_CASE("kernels quantise to the host's bits, and back", "[gpu]") {
  if (gpu_is_missing()) return;
  const std::size_t count = 100003;
  const std::size_t blocks = (count + 127) / 128;
  const auto values = samples<float>(0, count);
  for (std::size_t offset : {0U, 1U, 3U}) {
    std::vector<hocket::float8_e4m3> expected(count);
    std::vector<float> expected_scales(blocks);
    std::vector<float> expected_back(count);
    run(device::quantization<float, hocket::float8_e4m3, 128>{expected.data(), expected_scales.data(), values.data(),
                                                              count});
    run(device::dequantization<float, hocket::float8_e4m3, 128>{expected_back.data(), expected.data(),
                                                                expected_scales.data(), count});
    device_vector<float> from(values, offset);
    device_vector<hocket::float8_e4m3> to(count, (3 * offset) % 16);
    device_vector<float> scales(blocks);
    device_vector<float> back(count, offset);
    cudaStream_t stream = nullptr;
    check_cuda(cudaStreamCreate(&stream));
    const cuda::stream_ref on(stream);
    const auto there = device::quantize<128>(on, to.data(), scales.data(), from.data(), count);
    const hocket::float8_e4m3* const quantized = to.data();
    const auto and_back = device::dequantize<128>(on, back.data(), quantized, scales.data(), count);
    CHECK_FALSE((there || and_back));
    CHECK(same_bytes<hocket::float8_e4m3>(to.values(), expected));
    CHECK(same_bytes<float>(scales.values(), expected_scales));
    CHECK(same_bytes<float>(back.values(), expected_back));
    check_cuda(cudaStreamDestroy(stream));
  }
}

TEST_CASE("int8 kernels quantise to the host's bits", "[gpu]") {
  if (gpu_is_missing()) return;
  const std::size_t count = 1000;
  const auto values = samples<hocket::bfloat16>(0, count);
  std::vector<std::int8_t> expected(count);
  std::vector<float> expected_scales(4);
  run(device::quantization<hocket::bfloat16, std::int8_t, 256>{expected.data(), expected_scales.data(), values.data(),
                                                               count});
  device_vector<hocket::bfloat16> from(values, 1);
  device_vector<std::int8_t> to(count);
  device_vector<float> scales(4);
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreate(&stream));
  const auto there = device::quantize<256>(cuda::stream_ref(stream), to.data(), scales.data(), from.data(), count);
  CHECK_FALSE(static_cast<bool>(there));
  CHECK(to.values() == expected);
  CHECK(same_bytes<float>(scales.values(), expected_scales));
  check_cuda(cudaStreamDestroy(stream));
}
