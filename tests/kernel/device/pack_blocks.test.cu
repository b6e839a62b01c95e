// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packing and unpacking of blocks, run on the host: every element is copied to its place and back, and no other byte is
// changed.
#include "kernel/device/gpu.cuh"
#include "support/catch.hpp"
#include "support/elements.hpp"

#include <hocket/kernel/device/pack_blocks.cuh>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <vector>

using namespace hocket_test;
namespace device = hocket::kernel::device;

namespace {

/// Blocks with gaps of different sizes between them, not in memory order; some are empty.
template <class Index>
struct scattered {
  std::vector<Index> counts;
  std::vector<Index> displacements;
  std::size_t size = 0;    ///< of the buffer that contains them
  std::size_t packed = 0;  ///< elements in all of them

  scattered(std::size_t blocks, std::size_t longest) : counts(blocks), displacements(blocks) {
    for (std::size_t k = 0; k < blocks; ++k) {
      const std::size_t at = (k * 7 + 3) % blocks;  // blocks is not a multiple of 7
      const std::size_t count = random_bits(0, at) % 4 == 0 ? 0 : random_bits(1, at) % (longest + 1);
      displacements[at] = static_cast<Index>(size + k % 3);
      counts[at] = static_cast<Index>(count);
      size += k % 3 + count;
      packed += count;
    }
    size += 5;
  }

  template <class T>
  std::vector<T> pack(const std::vector<T>& from) const {
    std::vector<T> result;
    for (std::size_t k = 0; k < counts.size(); ++k) {
      const auto begin = from.begin() + static_cast<std::ptrdiff_t>(displacements[k]);
      result.insert(result.end(), begin, begin + static_cast<std::ptrdiff_t>(counts[k]));
    }
    return result;
  }
  template <class T>
  std::vector<T> unpack(const std::vector<T>& from, std::vector<T> to) const {
    std::size_t next = 0;
    for (std::size_t k = 0; k < counts.size(); ++k) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(counts[k]); ++i) {
        to[static_cast<std::size_t>(displacements[k]) + i] = from[next++];
      }
    }
    return to;
  }
};

/// Does the work of the scan and the batched copy with the functions that the kernels use.
template <class T, class Index>
void copy_blocks(T* to, const Index* to_places, const T* from, const Index* from_places,
                 const std::vector<Index>& counts) {
  std::vector<std::size_t> packed_places(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), packed_places.begin(), std::size_t{0});
  const device::block_begin<const T, Index> source{from, from_places, packed_places.data()};
  const device::block_begin<T, Index> destination{to, to_places, packed_places.data()};
  const device::block_bytes<T, Index> bytes{counts.data()};
  for (std::size_t k = 0; k < counts.size(); ++k) {
    if (bytes(k) != 0) std::memcpy(destination(k), source(k), bytes(k));
  }
}

template <class T, class Index>
void check(std::size_t blocks) {
  const scattered<Index> where(blocks, 9);
  const std::vector<T> values = samples<T>(0, where.size), before = samples<T>(1, where.size);
  guarded<T> from(values, 1), packed(where.packed, 3), back(before, 2);
  copy_blocks<T, Index>(packed.elements().data(), nullptr, from.elements().data(), where.displacements.data(),
                        where.counts);
  copy_blocks<T, Index>(back.elements().data(), where.displacements.data(), packed.elements().data(), nullptr,
                        where.counts);
  INFO(blocks << " blocks of elements of " << sizeof(T) << " bytes, counts of " << sizeof(Index));
  CHECK(same_bytes<T>(packed.elements(), where.pack(values)));
  CHECK(same_bytes<T>(back.elements(), where.unpack(where.pack(values), before)));
  CHECK(packed.intact());
  CHECK(back.intact());
}

template <class T, class Index>
void check_on_gpu(std::size_t blocks, std::size_t longest) {
  const scattered<Index> where(blocks, longest);
  const std::vector<T> values = samples<T>(0, where.size), before = samples<T>(1, where.size);
  device_vector<T> from(values, 1), packed(where.packed, 3), back(before, 2);
  device_vector<Index> counts(where.counts), displacements(where.displacements);
  std::size_t bytes = 0;
  REQUIRE_FALSE(static_cast<bool>(device::pack_blocks_workspace<T, Index>(blocks, bytes)));
  device_vector<std::byte> memory(bytes);
  const device::workspace lent{memory.data(), bytes};
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreate(&stream));
  const auto packing = device::pack_blocks(cuda::stream_ref(stream), lent, packed.data(),
                                           static_cast<const T*>(from.data()), static_cast<const Index*>(counts.data()),
                                           static_cast<const Index*>(displacements.data()), blocks);
  const auto unpacking = device::unpack_blocks(
      cuda::stream_ref(stream), lent, back.data(), static_cast<const T*>(packed.data()),
      static_cast<const Index*>(counts.data()), static_cast<const Index*>(displacements.data()), blocks);
  INFO(packing.message() << unpacking.message());
  CHECK_FALSE(static_cast<bool>(packing));
  CHECK_FALSE(static_cast<bool>(unpacking));
  CHECK(same_bytes<T>(packed.values(), where.pack(values)));
  CHECK(same_bytes<T>(back.values(), where.unpack(where.pack(values), before)));
  check_cuda(cudaStreamDestroy(stream));
}

}  // namespace

TEST_CASE("blocks are packed in order and unpacked to their places, and the gaps do not change") {
  for (std::size_t blocks : {0U, 1U, 2U, 5U, 64U, 129U}) {
    check<float, std::int32_t>(blocks);
    check<triple, std::uint64_t>(blocks);
    check<affine_map, std::int64_t>(blocks);
    check<std::uint8_t, std::uint16_t>(blocks);
  }
}

TEST_CASE("offsets of more than 4 GiB are not truncated, for each type of counts") {
  const std::size_t far = 0x123456789;
  const std::uint32_t places[] = {0xffffffff};
  const std::int32_t counts[] = {0x7fffffff};
  double* const data = nullptr;
  const auto bytes_behind = [&](const double* at) {
    return reinterpret_cast<std::uintptr_t>(at) - reinterpret_cast<std::uintptr_t>(data);
  };
  CHECK(bytes_behind(device::block_begin<double, std::uint32_t>{data, nullptr, &far}(0)) == far * 8);
  CHECK(bytes_behind(device::block_begin<double, std::uint32_t>{data, places, &far}(0)) == std::size_t{0xffffffff} * 8);
  CHECK(device::block_bytes<double, std::int32_t>{counts}(0) == std::size_t{0x7fffffff} * 8);
}

TEST_CASE("a workspace is divided into aligned arrays that do not overlap") {
  device::workspace_cut cut;
  CHECK(cut.bytes() == 0);
  CHECK(cut.take(1) == 0);
  CHECK(cut.take(0) == 256);
  CHECK(cut.take(256) == 256);
  CHECK(cut.take(257) == 512);
  CHECK(cut.bytes() == 1024);
}

TEST_CASE("a workspace that is too small or misaligned is rejected with a message") {
  alignas(256) std::byte memory[512];
  CHECK_FALSE(static_cast<bool>(device::check_workspace({memory, 512}, 512, "pack_blocks")));
  CHECK_FALSE(static_cast<bool>(device::check_workspace({}, 0, "pack_blocks")));
  const auto small = device::check_workspace({memory, 511}, 512, "pack_blocks");
  CHECK(small.code == hocket::errc::invalid_argument);
  CHECK(small.message().find("the workspace has 511 bytes, but needs 512: use the size") != std::string::npos);
  const auto shifted = device::check_workspace({memory + 8, 300}, 256, "pack_blocks");
  CHECK(shifted.code == hocket::errc::invalid_argument);
  CHECK(shifted.message().find("must begin at a multiple of 256 bytes") != std::string::npos);
}

TEST_CASE("zero blocks succeed without work, and without a GPU, blocks fail with a message") {
  const device::workspace none;
  const cuda::stream_ref stream{static_cast<cudaStream_t>(nullptr)};
  float elements[2] = {};
  const float* const from = elements;
  const int counts[] = {1};
  CHECK_FALSE(static_cast<bool>(device::pack_blocks(stream, none, elements, from, counts, counts, 0)));
  std::size_t bytes = 1;
  CHECK_FALSE(static_cast<bool>(device::pack_blocks_workspace<float, int>(0, bytes)));
  CHECK(bytes == 0);
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess && devices != 0) return;
  const auto cause = device::unpack_blocks(stream, none, elements, from, counts, counts, 1);
  CHECK(cause.code == hocket::errc::system);
  CHECK(cause.message().find("unpack_blocks: system error: CUDA reported cudaError") == 0);
}

TEST_CASE("kernels pack and unpack like the host", "[gpu]") {
  if (gpu_is_missing()) return;
  check_on_gpu<float, std::int32_t>(1, 3000000);
  check_on_gpu<float, std::int32_t>(8, 1000000);
  check_on_gpu<triple, std::uint64_t>(129, 5000);
  check_on_gpu<affine_map, std::int64_t>(4097, 40);
}
