// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors: each rank's part of the whole, its storage, and the results of local mathematics on uneven or empty parts.
#include "support/text.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/parallel.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using namespace hocket_test;
using hocket::convert;
using hocket::dynamic;
using hocket::extents;
using hocket::invariant;
using hocket::on;
using hocket::replicated;
using hocket::shard;

namespace {

using placement = hocket::placement;
constexpr placement whole_kind = replicated::value;

constexpr placement cut(int dimension) { return {hocket::placement_kind::shard, dimension}; }

/// Returns the problem with the parts that the ranks of a mesh have of a tensor; empty if none.
std::string problem_with_parts(const std::array<std::size_t, 3>& sizes, const std::array<placement, 2>& placed,
                               const std::array<int, 2>& mesh) {
  std::vector<int> seen(sizes[0] * sizes[1] * sizes[2]);
  int copies = 1;
  for (std::size_t axis = 0; axis < 2; ++axis) copies *= placed[axis].whole() ? mesh[axis] : 1;
  std::array<int, 2> at{};
  for (at[0] = 0; at[0] < mesh[0]; ++at[0]) {
    for (at[1] = 0; at[1] < mesh[1]; ++at[1]) {
      const auto part = hocket::part_of<3>(sizes, placed, mesh, at);
      for (std::size_t d = 0; d < 3; ++d) {
        if (part.begin[d] + part.size[d] > sizes[d]) return "a part exceeds the whole";
      }
      hocket::for_each_index(part.size, [&](const auto& local) {
        const std::size_t i = part.begin[0] + local[0], j = part.begin[1] + local[1], k = part.begin[2] + local[2];
        ++seen[(i * sizes[1] + j) * sizes[2] + k];
      });
    }
  }
  for (const int each : seen) {
    if (each != copies) return "an element is there " + std::to_string(each) + " times";
  }
  return {};
}

/// Like std::mdspan, also with rows that are not contiguous.
template <class T>
struct matrix_view {
  T* data;
  std::size_t rows, columns, row_stride;

  static constexpr std::size_t rank() noexcept { return 2; }
  T* data_handle() const noexcept { return data; }
  std::size_t extent(std::size_t dimension) const noexcept { return dimension == 0 ? rows : columns; }
  std::size_t stride(std::size_t dimension) const noexcept { return dimension == 0 ? row_stride : 1; }
};
static_assert(hocket::mdspan_like<matrix_view<float>>);

/// Like std::mdspan with extents of another integer type.
struct narrow_view {
  const double* data;
  int size;

  static constexpr unsigned rank() noexcept { return 1; }
  const double* data_handle() const noexcept { return data; }
  int extent(unsigned) const noexcept { return size; }
  int stride(unsigned) const noexcept { return 1; }
};
static_assert(hocket::mdspan_like<narrow_view>);

/// Returns the text of the error that `make` throws on rank 0 of two ranks along "tp".
template <class Make>
std::string refusal(const Make& make) {
  std::string text;
  on_ranks(2, [&](thread_rank& me) {
    const auto ranks = hocket::mesh<"tp">(me.comm(), {2});
    const auto found = me.expect(hocket::errc::invalid_argument, [&] { make(ranks); });
    if (me.rank() == 0 && found) text = found->what();
  });
  return text;
}

double value(std::size_t i) { return std::sin(12.9898 * static_cast<double>(i + 1)) - 2; }  // all are negative

/// A user-defined rule, whose result is partial by an operation for which the library has no rule.
struct minimum_of_rows {
  static constexpr hocket::subscripts labels = "nm->n";
  using reduction = hocket::minimum;
  template <class T>
  static constexpr T initial() noexcept {
    return std::numeric_limits<T>::infinity();
  }
  static constexpr hocket::rule_result result(std::span<const placement> operands) {
    return hocket::maximum_over<"nm->n">::result(operands);
  }
};

}  // namespace

TEST_CASE("the parts of all ranks contain each element once per copy of the whole") {
  std::mt19937 random(1);
  const std::vector<std::size_t> some_sizes = {0, 1, 2, 3, 5, 7, 8, 11};
  const std::vector<placement> some_placements = {whole_kind, cut(0), cut(1), cut(2)};
  for (int round = 0; round < 3000; ++round) {
    const auto size = [&] { return some_sizes[random() % some_sizes.size()]; };
    const auto placed = [&] { return some_placements[random() % some_placements.size()]; };
    const std::array<std::size_t, 3> sizes{size(), size(), size()};
    const std::array<placement, 2> placements{placed(), placed()};
    const std::array<int, 2> mesh{1 + static_cast<int>(random() % 5), 1 + static_cast<int>(random() % 4)};
    const std::string problem = problem_with_parts(sizes, placements, mesh);
    INFO(sizes[0] << " x " << sizes[1] << " x " << sizes[2] << ", cut along " << placements[0].dimension << " and "
                  << placements[1].dimension << " on " << mesh[0] << " x " << mesh[1]);
    REQUIRE(problem == "");
  }
}

TEST_CASE("fill sets each rank's summand of a partial sum") {
  on_ranks(3, [](thread_rank& me) {
    const auto ranks = hocket::mesh<"tp">(me.comm(), {3});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    hocket::tensor<double, extents<2>, mesh_type, on<"tp", hocket::partial<hocket::sum>>> summands(ranks);
    hocket::fill(summands, [](const auto&) { return 1.0; });
    const auto whole = convert<"tp", replicated>(summands);
    me.check(whole.elements()[0] == 3 && whole.elements()[1] == 3, "three ones");
    hocket::fill(summands, [&](const auto& at) { return me.rank() == 0 ? static_cast<double>(at[0]) : 0.0; });
    const auto once = convert<"tp", replicated>(summands);
    me.check(once.elements()[0] == 0 && once.elements()[1] == 1, "one rank's value");
  });
}

TEST_CASE("extents that are missing, negative, too large or different from the type are refused") {
  on_ranks(2, [](thread_rank& me) {
    const auto ranks = hocket::mesh<"tp">(me.comm(), {2});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    using matrix = hocket::tensor<double, extents<dynamic, dynamic>, mesh_type, on<"tp", shard<0>>>;
    using rows = hocket::tensor<double, extents<dynamic, 3>, mesh_type, on<"tp", shard<0>>>;
    const auto says = [&](const std::string& text, auto call) {
      const auto found = me.expect(hocket::errc::invalid_argument, call);
      me.check(found && std::string(found->what()).find(text) != std::string::npos,
               [&] { return "expected '" + text + "', not: " + (found ? found->what() : "nothing"); });
    };
    const std::vector<std::size_t> one{64};
    says("1 extents are given, and the tensor's type leaves 2 open", [&] { matrix(ranks, std::span(one)); });
    me.check(rows(ranks, std::span(one)).sizes() == std::array<std::size_t, 2>{64, 3}, "one extent");
    says("an extent is negative", [&] { matrix(ranks, {4, -1}); });
    constexpr std::size_t large = std::size_t{1} << 32;
    says("the tensor has 4294967296 x 4294967296 elements of 8 bytes", [&] { matrix(ranks, {large, large}); });
    says("which exceeds the limit", [&] { matrix::of_sizes(ranks, {large, large / 16}); });
    says("which exceeds the limit", [&] { matrix::unwritten(ranks, {3, large * (large / 8)}); });
    me.check(matrix(ranks, {large, 0}).elements().empty(), "a tensor without elements is accepted");
    using cube = hocket::tensor<double, extents<dynamic, dynamic, dynamic>, mesh_type, on<"tp", replicated>>;
    me.check(cube(ranks, {large, large, 0}).elements().empty(), "accepted if other extents overflow");
    std::vector<double> data(8);
    says("extent 1 is 4; the tensor's type has 3", [&] { rows::of_sizes(ranks, {2, 4}); });
    says("extent 1 is 4; the tensor's type has 3", [&] { rows::unwritten(ranks, {2, 4}); });
    says("extent 1 is 4; the tensor's type has 3", [&] { rows::over(ranks, {2, 4}, data.data()); });
    me.check(rows::over(ranks, {2, 3}, data.data()).elements().size() == 3, "the extents of the type");
  });
}

TEST_CASE("chunks have ceil(n / ranks) elements, the last ones fewer or none") {
  const auto sizes = [](std::size_t n, std::size_t ranks) {
    std::vector<std::size_t> all;
    for (std::size_t rank = 0; rank < ranks; ++rank) all.push_back(hocket::chunk(n, ranks, rank).size);
    return all;
  };
  CHECK(sizes(10, 4) == std::vector<std::size_t>{3, 3, 3, 1});
  CHECK(sizes(5, 4) == std::vector<std::size_t>{2, 2, 1, 0});
  CHECK(sizes(2, 4) == std::vector<std::size_t>{1, 1, 0, 0});
  CHECK(sizes(0, 3) == std::vector<std::size_t>{0, 0, 0});
  CHECK(sizes(7, 1) == std::vector<std::size_t>{7});
}

TEST_CASE("a tensor has its part of the whole, initially zero, and fill passes indices of the whole") {
  on_ranks(6, [](thread_rank& me) {
    const auto ranks = hocket::mesh<"dp", "tp">(me.comm(), {2, 3});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    // Both axes shard the rows, dp first: dp=0 has 4 of 7 rows, which tp divides into 2, 2, 0.
    hocket::tensor<int, extents<dynamic, 3>, mesh_type, on<"tp", shard<0>>, on<"dp", shard<0>>> rows(ranks, {7});
    const std::vector<std::size_t> begins = {0, 2, 4, 4, 5, 6}, counts = {2, 2, 0, 1, 1, 1};
    const auto rank = static_cast<std::size_t>(me.rank());
    me.check(rows.sizes() == std::array<std::size_t, 2>{7, 3}, "another whole");
    me.check(rows.part().begin[0] == begins[rank] && rows.part().size[0] == counts[rank], "another part");
    me.check(rows.part().size[1] == 3 && rows.elements().size() == 3 * counts[rank], "other columns");
    me.check(std::all_of(rows.elements().begin(), rows.elements().end(), [](int each) { return each == 0; }),
             "no zeros");
    hocket::fill(rows, [](const auto& where) { return static_cast<int>(10 * where[0] + where[1]); });
    for (std::size_t i = 0; i < counts[rank]; ++i) {
      for (std::size_t j = 0; j < 3; ++j) {
        me.check(rows.local()(i, j) == static_cast<int>(10 * (begins[rank] + i) + j), "another value");
      }
    }
  });
}

TEST_CASE("a scalar is a tensor without dimensions") {
  on_ranks(2, [](thread_rank& me) {
    const auto ranks = hocket::mesh<"tp">(me.comm(), {2});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    hocket::tensor<double, extents<>, mesh_type, on<"tp", hocket::partial<hocket::sum>>> scalar(ranks);
    me.check(scalar.elements().size() == 1 && scalar.local().rank() == 0, "no scalar");
    hocket::fill(scalar, [&](const auto&) { return me.rank() + 1.0; });
    const auto sum = convert<"tp", invariant>(std::move(scalar));
    me.check(sum.local()() == 3, "another sum");
  });
}

TEST_CASE("a user-defined view is adopted as storage without a copy") {
  on_ranks(2, [](thread_rank& me) {
    const auto ranks = hocket::mesh<"tp">(me.comm(), {2});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    using matrix = hocket::tensor<float, extents<dynamic, dynamic>, mesh_type, on<"tp", shard<0>>>;
    const std::size_t rows = me.rank() == 0 ? 2 : 1;
    std::vector<float> storage(rows * 4);
    matrix adopted(ranks, {3, 4}, matrix_view<float>{storage.data(), rows, 4, 4});
    me.check(adopted.elements().data() == storage.data(), "a copy");
    hocket::fill(adopted, [](const auto& where) { return static_cast<float>(10 * where[0] + where[1]); });
    me.check(storage.back() == (me.rank() == 0 ? 13.0F : 23.0F), "not in the caller's storage");

    // With one row, any stride is dense.
    matrix one(ranks, {2, 2}, matrix_view<float>{storage.data(), 1, 2, 77});
    me.check(one.elements().data() == storage.data(), "one row");

    const std::vector<double> constants = {1, 2, 3};
    const hocket::tensor<const double, extents<dynamic>, mesh_type, on<"tp", replicated>> vector(
        ranks, {3}, narrow_view{constants.data(), 3});
    me.check(vector.elements().data() == constants.data(), "a view with other numbers");

    // array_view is such a view, so that a tensor can adopt the elements of another one.
    const matrix again(ranks, {3, 4}, adopted.local());
    me.check(again.elements().data() == storage.data(), "array_view");
  });
}

TEST_CASE("a view that is not dense, or has other extents, is refused with an explanation") {
  std::vector<float> storage(100);
  const auto adopt = [&](std::size_t rows, std::size_t columns, std::size_t stride) {
    return refusal([&, rows, columns, stride](const auto& ranks) {
      using mesh_type = std::remove_cvref_t<decltype(ranks)>;
      hocket::tensor<float, extents<dynamic, dynamic>, mesh_type, on<"tp", shard<0>>>(
          ranks, {4, 3}, matrix_view<float>{storage.data(), rows, columns, stride});
    });
  };
  CHECK(contains(adopt(2, 3, 5), "not dense and row-major: dimension 0 has the stride 5 instead of 3"));
  CHECK(contains(adopt(3, 3, 3), "dimension 0 of the view has 3 elements, and this rank's part of the tensor has 2"));
  CHECK(contains(adopt(2, 4, 4), "dimension 1 of the view has 4 elements, and this rank's part of the tensor has 3"));
}

TEST_CASE("storage of the wrong size is refused with an explanation") {
  std::vector<float> storage(5);
  const std::string text = refusal([&](const auto& ranks) {
    using mesh_type = std::remove_cvref_t<decltype(ranks)>;
    hocket::tensor<float, extents<dynamic, dynamic>, mesh_type, on<"tp", shard<0>>>(ranks, {4, 3}, std::span(storage));
  });
  CHECK(contains(text, "the storage has 5 elements, and this rank's part of the tensor has 6"));
}

TEST_CASE("copied tensors have separate storage, borrowed tensors do not") {
  on_ranks(2, [](thread_rank& me) {
    const auto ranks = hocket::mesh<"tp">(me.comm(), {2});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    using vector = hocket::tensor<double, extents<dynamic>, mesh_type, on<"tp", invariant>>;
    std::vector<double> storage{1, 2, 3};
    const vector original(ranks, {3}, std::span(storage));
    auto copied = copy(original);
    static_assert(std::is_same_v<decltype(copied), vector>);
    copied.local()(1) = 7;
    me.check(storage[1] == 2 && copied.local()(1) == 7 && copied.local()(2) == 3, "the copy");

    const auto borrowed = borrow(original);
    static_assert(std::is_same_v<std::remove_const_t<decltype(borrowed)>::element_type, const double>);
    me.check(borrowed.elements().data() == storage.data(), "borrowed elsewhere");
    const auto used = convert<"tp", replicated>(borrow(original));
    me.check(used.elements().data() == storage.data(), "a conversion that moves nothing copies");
    const auto copy_of_borrowed = copy(borrowed);
    static_assert(std::is_same_v<std::remove_const_t<decltype(copy_of_borrowed)>, vector>);

    const double* const before = copied.elements().data();
    const vector moved = std::move(copied);
    me.check(moved.elements().data() == before, "moving copies");
  });
}

TEST_CASE("a moved tensor passes its storage on and has none") {
  on_ranks(1, [](thread_rank& me) {
    const auto ranks = hocket::mesh<"tp">(me.comm(), {1});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    using summands = hocket::tensor<double, extents<3>, mesh_type, on<"tp", hocket::partial<hocket::sum>>>;
    summands x(ranks);
    const double* const storage = x.elements().data();
    summands y(std::move(x));
    me.check(x.elements().data() == nullptr && y.elements().data() == storage, "moved");
    x = std::move(y);
    me.check(y.elements().data() == nullptr && x.elements().data() == storage, "assigned");
    const auto z = convert<"tp", replicated>(std::move(x));
    me.check(x.elements().data() == nullptr && z.elements().data() == storage, "converted");
  });
}

TEST_CASE("a tensor that was moved from is empty, and all operations refuse it") {
  on_ranks(2, [](thread_rank& me) {
    const auto ranks = hocket::mesh<"tp">(me.comm(), {2});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    using summands = hocket::partial<hocket::sum>;
    hocket::tensor<double, extents<dynamic, 3>, mesh_type, on<"tp", summands>> x(ranks, {4});
    const auto y = convert<"tp", replicated>(std::move(x));
    me.check(x.elements().empty() && x.local().empty() && x.part().volume() == 0, "moved from");
    me.check(y.elements().size() == 12 && y.part().volume() == 12, "moved to");
    hocket::tensor<double, extents<4>, mesh_type, on<"tp", summands>> known(ranks);
    const auto other = std::move(known);
    const auto says_so = [&](auto call) {
      const auto found = me.expect(hocket::errc::invalid_argument, call);
      me.check(found && contains(found->what(), "was moved from"), "no explanation");
    };
    says_so([&] { convert<"tp", replicated>(x); });
    says_so([&] { convert<"tp", replicated>(known); });
    says_so([&] { convert<"tp", shard<0>>(known); });
    says_so([&] { hocket::redistribute<on<"tp", shard<0>>>(known); });
    says_so([&] { copy(known); });
    says_so([&] { convert<"tp", replicated>(std::move(x)); });
    says_so([&] { convert<"tp", replicated>(std::move(known)); });
    says_so([&] { hocket::redistribute<on<"tp", summands>>(std::move(known)); });
    says_so([&] { hocket::accumulate(known, known); });
    says_so([&] {
      hocket::apply(
          hocket::linear<"n,n->n">(), [](auto...) {}, known, other);
    });

    hocket::tensor<double, extents<4>, mesh_type, on<"tp", invariant>> whole(ranks);
    const auto kept = std::move(whole);
    says_so([&] { convert<"tp", replicated>(std::move(whole)); });
    says_so([&] { hocket::norm(whole); });
    says_so([&] { hocket::norm(kept, whole); });
    const auto there = hocket::mesh<"q">(me.comm(), {2});
    using on_there = hocket::tensor<double, extents<4>, std::remove_const_t<decltype(there)>, on<"q", shard<0>>>;
    says_so([&] { hocket::redistribute<on_there>(whole, there); });
    says_so([&] { hocket::redistribute<on_there>(known, there); });
  });
}

TEST_CASE("partial means without counts are refused on all ranks") {
  on_ranks(2, [](thread_rank& me) {
    const auto ranks = hocket::mesh<"tp">(me.comm(), {2});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    hocket::tensor<double, extents<4>, mesh_type, on<"tp", hocket::partial<hocket::mean>>> means(ranks);
    for (int counted = 0; counted < 2; ++counted) {
      if (counted == 1 && me.rank() == 0) means.set_count(3);  // on one rank only
      const auto found = me.expect(hocket::errc::invalid_argument, [&] { convert<"tp", replicated>(means); });
      me.check(found && std::string(found->what()).find("call set_count on every rank") != std::string::npos, "text");
      me.expect(hocket::errc::invalid_argument, [&] { convert<"tp", shard<0>>(means); });
    }
    const auto negative = me.expect(hocket::errc::invalid_argument, [&] { means.set_count(-1); });
    me.check(negative && contains(negative->what(), "means can't stand for -1"), "negative");
    me.expect(hocket::errc::invalid_argument, [&] { means.set_count(std::numeric_limits<double>::infinity()); });
    me.expect(hocket::errc::invalid_argument, [&] { means.set_count(std::numeric_limits<double>::quiet_NaN()); });
    means.set_count(1);
    me.check(convert<"tp", replicated>(means).count() == 2, "counted");
  });
}

TEST_CASE("partial means without counts are also refused along an axis of one rank") {
  on_ranks(2, [](thread_rank& me) {
    const auto ranks = hocket::mesh<"dp", "tp">(me.comm(), {2, 1});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    hocket::tensor<double, extents<4>, mesh_type, on<"dp", shard<0>>, on<"tp", hocket::partial<hocket::mean>>> means(
        ranks);
    me.expect(hocket::errc::invalid_argument, [&] { convert<"tp", replicated>(means); });
    const auto refused = [&](auto call) {
      const auto found = me.expect(hocket::errc::invalid_argument, call);
      me.check(found && contains(found->what(), "call set_count on every rank"), "no explanation");
    };
    refused([&] { hocket::redistribute<on<"tp", replicated>>(means); });
    refused([&] { hocket::redistribute<on<"dp", replicated>, on<"tp", replicated>>(means); });
    means.set_count(3);
    me.check(hocket::redistribute<on<"tp", replicated>>(means).count() == 3, "counted");
  });
}

TEST_CASE("the mean of uneven parts is the mean of the whole, also if a rank has no elements") {
  const auto local_mean = [](auto x, auto to) {  // of nothing: not a number
    double sum = 0;
    for (const double each : x.elements()) sum += each;
    to() = sum / static_cast<double>(x.size());
  };
  for (const int size : {1, 2, 3, 4}) {
    for (const std::size_t n : {1U, 2U, 5U, 7U, 12U}) {
      on_ranks(size, [&](thread_rank& me) {
        const auto ranks = hocket::mesh<"tp">(me.comm(), {size});
        using mesh_type = std::remove_const_t<decltype(ranks)>;
        hocket::tensor<double, extents<dynamic>, mesh_type, on<"tp", shard<0>>> x(ranks, {n});
        hocket::fill(x, [](const auto& where) { return value(where[0]); });
        auto mean = hocket::apply(hocket::mean_over<"n->">(), local_mean, x);
        double wanted = 0;
        for (std::size_t i = 0; i < n; ++i) wanted += value(i) / static_cast<double>(n);
        const auto found = convert<"tp", invariant>(std::move(mean));
        me.check(std::abs(found.local()() - wanted) < 1e-14 * static_cast<double>(n),
                 [&] { return "mean of " + std::to_string(n) + ": " + std::to_string(found.local()()); });
        me.check(found.count() == static_cast<double>(n), "the count is not the number of elements");
      });
    }
  }
}

TEST_CASE("means of a matrix are correct if two axes shard both dimensions, or the same dimension twice") {
  const auto mean_of_all = [](auto x, auto to) {
    double sum = 0;
    for (const double each : x.elements()) sum += each;
    to() = sum / static_cast<double>(x.size());
  };
  const auto mean_of_rows = [](auto x, auto to) {
    for (std::size_t i = 0; i < x.extent(0); ++i) {
      for (std::size_t j = 0; j < x.extent(1); ++j) to(i) += x(i, j) / static_cast<double>(x.extent(1));
    }
  };
  on_ranks(6, [&](thread_rank& me) {
    const auto ranks = hocket::mesh<"dp", "tp">(me.comm(), {2, 3});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    using shape = extents<dynamic, dynamic>;
    for (const auto& [rows, columns] :
         std::vector<std::pair<std::size_t, std::size_t>>{{5, 7}, {1, 4}, {3, 2}, {2, 1}}) {
      double wanted = 0;
      for (std::size_t i = 0; i < rows * columns; ++i) wanted += value(i) / static_cast<double>(rows * columns);
      const auto check = [&]<class Tensor>(Tensor x, const char* what) {
        hocket::fill(x, [&](const auto& where) { return value(where[0] * columns + where[1]); });
        auto mean = hocket::apply(hocket::mean_over<"nm->">(), mean_of_all, x);
        const auto found = convert<"tp", invariant>(convert<"dp", invariant>(std::move(mean)));
        me.check(std::abs(found.local()() - wanted) < 1e-13, what);
      };
      check(hocket::tensor<double, shape, mesh_type, on<"dp", shard<0>>, on<"tp", shard<1>>>(ranks, {rows, columns}),
            "cut in both dimensions");
      check(hocket::tensor<double, shape, mesh_type, on<"dp", shard<0>>, on<"tp", shard<0>>>(ranks, {rows, columns}),
            "cut twice in one dimension");

      hocket::tensor<double, shape, mesh_type, on<"dp", shard<0>>, on<"tp", shard<1>>> x(ranks, {rows, columns});
      hocket::fill(x, [&](const auto& where) { return value(where[0] * columns + where[1]); });
      const auto means = convert<"tp", invariant>(hocket::apply(hocket::mean_over<"nm->n">(), mean_of_rows, x));
      for (std::size_t i = 0; i < means.local().extent(0); ++i) {
        double of_row = 0;
        for (std::size_t j = 0; j < columns; ++j) {
          of_row += value((means.part().begin[0] + i) * columns + j) / static_cast<double>(columns);
        }
        me.check(std::abs(means.local()(i) - of_row) < 1e-13, "the mean of a row");
      }
    }
  });
}

TEST_CASE("the maximum of uneven parts is that of the whole, also if a rank has no elements") {
  const auto largest = [](auto x, auto to) {
    for (const auto& each : x.elements()) to() = std::max(to(), each);
  };
  for (const int size : {1, 3, 4}) {
    for (const std::size_t n : {1U, 2U, 5U, 9U}) {
      on_ranks(size, [&](thread_rank& me) {
        const auto ranks = hocket::mesh<"tp">(me.comm(), {size});
        using mesh_type = std::remove_const_t<decltype(ranks)>;
        hocket::tensor<double, extents<dynamic>, mesh_type, on<"tp", shard<0>>> x(ranks, {n});
        hocket::fill(x, [](const auto& where) { return value(where[0]); });
        hocket::tensor<int, extents<dynamic>, mesh_type, on<"tp", shard<0>>> numbers(ranks, {n});
        hocket::fill(numbers, [](const auto& where) { return -5 - static_cast<int>(where[0]); });
        double wanted = -std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < n; ++i) wanted = std::max(wanted, value(i));
        const auto found = convert<"tp", invariant>(hocket::apply(hocket::maximum_over<"n->">(), largest, x));
        me.check(found.local()() == wanted, "another maximum");
        const auto number = convert<"tp", replicated>(hocket::apply(hocket::maximum_over<"n->">(), largest, numbers));
        me.check(number.local()() == -5, "another maximum of integers");
      });
    }
  }
}

TEST_CASE("a user-defined rule computes the minimum, also if a rank has no elements") {
  on_ranks(4, [](thread_rank& me) {
    const auto ranks = hocket::mesh<"tp">(me.comm(), {4});
    hocket::tensor<double, extents<2, 5>, std::remove_const_t<decltype(ranks)>, on<"tp", shard<1>>> x(ranks);
    hocket::fill(x, [](const auto& at) { return static_cast<double>(3 + at[0] + at[1]); });
    const auto smallest = [](auto part, auto to) {
      hocket::for_each_index(part.sizes(), [&](const auto& at) { to(at[0]) = std::min(to(at[0]), part[at]); });
    };
    const auto found = convert<"tp", invariant>(hocket::apply(minimum_of_rows(), smallest, x));
    me.check(found.elements()[0] == 3 && found.elements()[1] == 4, "the last rank has no columns");
  });
}

TEST_CASE("run-time extents that differ are refused with an explanation") {
  const std::string text = refusal([](const auto& ranks) {
    using mesh_type = std::remove_cvref_t<decltype(ranks)>;
    const hocket::tensor<double, extents<dynamic, 3>, mesh_type, on<"tp", replicated>> x(ranks, {4});
    const hocket::tensor<double, extents<dynamic>, mesh_type, on<"tp", replicated>> y(ranks, {5});
    hocket::apply(
        hocket::multilinear<"nm,n->nm">(), [](auto...) {}, x, y);
  });
  CHECK(contains(text, "dimension 'n' has 4 elements in one operand and 5 in another"));

  const std::string unequal = refusal([](const auto& ranks) {
    using mesh_type = std::remove_cvref_t<decltype(ranks)>;
    hocket::tensor<double, extents<dynamic>, mesh_type, on<"tp", invariant>> total(ranks, {4});
    const hocket::tensor<double, extents<dynamic>, mesh_type, on<"tp", invariant>> addend(ranks, {5});
    hocket::accumulate(total, addend);
  });
  CHECK(contains(unequal, "different extents"));
}

TEST_CASE("a static extent that differs from a run-time extent is refused in either order of the operands") {
  const auto words = [](auto rule, bool dynamic_first) {
    return refusal([=](const auto& ranks) {
      using mesh_type = std::remove_cvref_t<decltype(ranks)>;
      const hocket::tensor<double, extents<dynamic>, mesh_type, on<"tp", invariant>> x(ranks, {7});
      const hocket::tensor<double, extents<5>, mesh_type, on<"tp", invariant>> y(ranks);
      const auto nothing = [](auto...) {};
      if (dynamic_first) {
        hocket::apply(rule, nothing, x, y);
      } else {
        hocket::apply(rule, nothing, y, x);
      }
    });
  };
  const std::string refused = "dimension 'n' has 5 elements in one operand and 7 in another";
  for (const bool dynamic_first : {true, false}) {
    CHECK(contains(words(hocket::linear<"n,n->n">(), dynamic_first), refused));
    CHECK(contains(words(hocket::multilinear<"n,n->">(), dynamic_first), refused));
  }

  const std::string of_bias = refusal([](const auto& ranks) {
    using mesh_type = std::remove_cvref_t<decltype(ranks)>;
    const hocket::tensor<double, extents<dynamic, dynamic>, mesh_type, on<"tp", invariant>> x(ranks, {4, 7});
    hocket::plus_bias(x, hocket::tensor<double, extents<5>, mesh_type, on<"tp", invariant>>(ranks));
  });
  CHECK(contains(of_bias, "has 5 elements in one operand and 7 in another"));
}

TEST_CASE("operands on two meshes of one type are refused with an explanation") {
  std::string text;
  on_ranks(2, [&](thread_rank& me) {
    const auto here = hocket::mesh<"tp">(me.comm(), {2});
    const auto there = hocket::mesh<"tp">(me.comm(), {2});
    using vector = hocket::tensor<double, extents<dynamic>, std::remove_const_t<decltype(here)>, on<"tp", replicated>>;
    const vector x(here, {4}), y(there, {4});
    const auto found = me.expect(hocket::errc::invalid_argument, [&] {
      hocket::apply(
          hocket::linear<"n,n->n">(), [](auto...) {}, x, y);
    });
    if (me.rank() == 0 && found) text = found->what();
  });
  CHECK(contains(text, "different meshes"));
}

TEST_CASE("accumulate adds gradients element by element") {
  on_ranks(3, [](thread_rank& me) {
    const auto ranks = hocket::mesh<"tp">(me.comm(), {3});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    hocket::tensor<double, extents<dynamic>, mesh_type, on<"tp", shard<0>>> total(ranks, {5}), addend(ranks, {5});
    hocket::fill(addend, [](const auto& where) { return static_cast<double>(where[0]); });
    hocket::accumulate(total, addend);
    hocket::accumulate(total, borrow(addend));
    for (std::size_t i = 0; i < total.local().extent(0); ++i) {
      me.check(total.local()(i) == 2 * addend.local()(i), "another sum");
    }
  });
}
