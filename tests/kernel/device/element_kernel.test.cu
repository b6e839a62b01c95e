// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of kernels gives the bits of the host's table for any number of sources. The code of a thread for more than
// 8 sources runs on the host, for every alignment.
#include "kernel/device/gpu.cuh"
#include "support/catch.hpp"
#include "support/elements.hpp"

#include <hocket/kernel/device/element_kernel.cuh>
#include <hocket/kernel/host/element_kernel.hpp>
#include <hocket/operation/operations.hpp>
#include <hocket/scalar/scalar.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

using namespace hocket_test;
namespace device = hocket::kernel::device;

namespace {

template <class Op>
hocket::detail::in_fixed_tree<Op> in_tree(const Op& op) {
  return {op};
}

/// Result of the host's element kernel, between prepare and finish if the operation has these.
template <class Op, class T>
std::vector<T> by_host(const Op& op, const std::vector<std::vector<T>>& sources, std::size_t count) {
  using reduction = hocket::reduction<Op, T>;
  using partial = typename reduction::partial;
  std::vector<std::vector<partial>> prepared;
  for (const auto& each : sources) {
    prepared.emplace_back();
    for (const T& value : each) {
      if constexpr (reduction::prepares) {
        prepared.back().push_back(reduction::prepare(op, value));
      } else {
        prepared.back().push_back(value);
      }
    }
  }
  std::vector<const void*> from;
  for (const auto& each : prepared) from.push_back(each.data());
  std::vector<partial> sums = prepared[0];
  if (from.size() > 1)
    hocket::kernel::element_kernel_of<Op, T>.combine_many(&op, sums.data(), from.data(), from.size(), count);
  std::vector<T> result;
  for (const partial& sum : sums) {
    if constexpr (reduction::prepares) {
      result.push_back(reduction::finish(op, sum, static_cast<int>(sources.size())));
    } else {
      result.push_back(sum);
    }
  }
  return result;
}

template <class T, class Op>
bool same_on_host(const Op& op, unsigned sources, std::size_t count, std::size_t offset, int alias) {
  std::vector<std::vector<T>> values;
  std::vector<guarded<T>> buffers;
  for (unsigned k = 0; k < sources; ++k) {
    values.push_back(samples<T>(static_cast<int>(k), count));
    buffers.emplace_back(values.back(), (offset * (k + 1)) % 16);
  }
  guarded<T> apart(count, (offset * 5) % 16);
  guarded<T>& to = alias < 0 ? apart : buffers[static_cast<std::size_t>(alias)];
  device::long_combination<Op, T> body{op, to.elements().data(), sources, {}};
  for (unsigned k = 0; k < sources; ++k) body.from[k] = buffers[k].elements().data();
  for (std::size_t thread = 0; thread < 3; ++thread) {
    device::visit(
        body.parts(count), thread, 3, [&](std::size_t first) { body.on_group(first); },
        [&](std::size_t i) { body.on_element(i); });
  }
  bool intact = apart.intact();
  for (const auto& each : buffers) intact = intact && each.intact();
  return intact && same_bytes<T>(to.elements(), by_host(op, values, count));
}

template <class T, class Op>
void check_on_host(const Op& op) {
  for (const unsigned sources : {1U, 2U, 9U, 17U, 64U, 255U, 256U}) {
    if (sources > 64 && sizeof(T) > 4) continue;
    bool good = true;
    for (const std::size_t count : {0U, 1U, 7U, 33U, 131U}) {
      for (std::size_t offset = 0; offset < 16; ++offset) {
        good = good && same_on_host<T>(op, sources, count, offset, -1);
        good = good && same_on_host<T>(op, sources, count, offset, static_cast<int>(sources) - 1);
      }
    }
    INFO(sources << " sources");
    CHECK(good);
  }
}

/// Runs the body of one launch for all ranks, in place on odd ranks.
template <class T, class Body, class Op>
bool fused_on_host(const Op& op, unsigned ranks, std::size_t count, std::size_t offset) {
  std::vector<std::vector<T>> values;
  std::vector<guarded<T>> in, out;
  for (unsigned k = 0; k < ranks; ++k) {
    values.push_back(samples<T>(static_cast<int>(k), count));
    in.emplace_back(values.back(), (offset * (k + 1)) % 16);
    out.emplace_back(count, (offset * (k + 3)) % 16);
  }
  const auto to = [&](unsigned k) { return (k % 2 == 1 ? in[k] : out[k]).elements(); };
  Body body{};
  if constexpr (std::is_same_v<Body, device::long_fused_combination<Op, T>>) {
    body.op = op;
    body.ranks = ranks;
    for (unsigned k = 0; k < ranks; ++k) body.from[k] = in[k].elements().data();
  } else {
    body.sources.op = op;
    body.sources.to = to(0).data();
    for (unsigned k = 0; k < ranks; ++k) body.sources.from[k] = in[k].elements().data();
  }
  for (unsigned k = 0; k < ranks; ++k) body.to[k] = to(k).data();
  for (std::size_t thread = 0; thread < 3; ++thread) {
    device::visit(
        body.parts(count), thread, 3, [&](std::size_t first) { body.on_group(first); },
        [&](std::size_t i) { body.on_element(i); });
  }
  const std::vector<T> expected = by_host(op, values, count);
  bool good = true;
  for (unsigned k = 0; k < ranks; ++k) {
    good = good && in[k].intact() && out[k].intact() && same_bytes<T>(to(k), expected);
  }
  return good;
}

template <class T, class Op>
void check_fused_on_host(const Op& op) {
  bool good = true;
  for (const std::size_t count : {0U, 1U, 7U, 33U, 131U}) {
    for (std::size_t offset = 0; offset < 16; ++offset) {
      good = good && fused_on_host<T, device::fused_combination<Op, T, 2>>(op, 2, count, offset);
      good = good && fused_on_host<T, device::fused_combination<Op, T, 4>>(op, 4, count, offset);
      good = good && fused_on_host<T, device::fused_combination<Op, T, 8>>(op, 8, count, offset);
      good = good && fused_on_host<T, device::long_fused_combination<Op, T>>(op, 3, count, offset);
      good = good && fused_on_host<T, device::long_fused_combination<Op, T>>(op, 20, count, offset);
    }
  }
  CHECK(good);
}

template <class T, class Op>
void check_on_gpu(const char* name, const Op& op) {
  for (const std::size_t sources : {2U, 3U, 4U, 5U, 6U, 7U, 8U, 9U, 33U}) {
    for (const std::size_t count : {1U, 1'001U, 100'003U}) {
      std::vector<std::vector<T>> values;
      std::vector<std::unique_ptr<device_vector<T>>> buffers;
      std::vector<const void*> from;
      for (std::size_t k = 0; k < sources; ++k) {
        values.push_back(samples<T>(static_cast<int>(k), count));
        buffers.push_back(std::make_unique<device_vector<T>>(values.back(), k % 5));
        from.push_back(buffers.back()->data());
      }
      device_vector<T> result(count, 1);
      cudaStream_t stream = nullptr;
      check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      CHECK_FALSE(
          device::stream_kernel_of<Op, T>.combine_many(stream, &op, result.data(), from.data(), sources, count));
      const std::vector<T> got = result.values();
      const std::vector<T> expected = by_host(op, values, count);
      INFO(name << ", " << sources << " sources: " << first_difference<T>(got, expected));
      CHECK(same_bytes<T>(got, expected));
      check_cuda(cudaStreamDestroy(stream));
    }
  }
}

}  // namespace

TEST_CASE("many sources are combined to the host's bits, rounded once") {
  check_on_host<float>(std::plus<>());
  check_on_host<hocket::half>(std::plus<>());
  check_on_host<hocket::bfloat16>(std::plus<>());
  check_on_host<affine_map>(compose());
  check_on_host<float>(hocket::average{});
  check_on_host<hocket::half>(hocket::average{});
  check_on_host<float>(hocket::detail::exact_plus{});
}

TEST_CASE("many sources are combined in the fixed tree to the host's bits") {
  check_on_host<float>(in_tree(std::plus<>()));
  check_on_host<hocket::bfloat16>(in_tree(std::plus<>()));
  check_on_host<float>(in_tree(hocket::average{}));
  check_on_host<affine_map>(in_tree(compose()));
}

TEST_CASE("one launch for all ranks writes the host's bits to each rank's buffer, in place or not") {
  check_fused_on_host<float>(std::plus<>());
  check_fused_on_host<hocket::half>(std::plus<>());
  check_fused_on_host<affine_map>(compose());
  check_fused_on_host<float>(hocket::average{});
  check_fused_on_host<float>(hocket::detail::exact_plus{});
  check_fused_on_host<float>(in_tree(std::plus<>()));
  check_fused_on_host<hocket::half>(in_tree(std::plus<>()));
}

TEST_CASE("the table rejects more sources than it can hold, and does nothing for zero elements") {
  const std::plus<> op;
  const auto& element_kernel = device::stream_kernel_of<std::plus<>, float>;
  CHECK(element_kernel.size == sizeof(float));
  const std::vector<const void*> many(element_kernel.most_sources + 1);
  float to = 0;
  CHECK(element_kernel.combine_many(nullptr, &op, &to, many.data(), many.size(), 1).code ==
        hocket::errc::invalid_argument);
  CHECK_FALSE(element_kernel.combine_many(nullptr, &op, &to, many.data(), many.size(), 0));
}

TEST_CASE("the table's kernels give the host's bits", "[gpu]") {
  if (gpu_is_missing()) return;
  check_on_gpu<float>("float, plus", std::plus<>());
  check_on_gpu<hocket::half>("half, plus", std::plus<>());
  check_on_gpu<affine_map>("affine_map, compose", compose());
  check_on_gpu<float>("float, average", hocket::average{});
  check_on_gpu<float>("float, exact_plus", hocket::detail::exact_plus{});
  check_on_gpu<hocket::bfloat16>("bfloat16, plus in the tree", in_tree(std::plus<>()));
}
