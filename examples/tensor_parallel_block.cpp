// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Four processes share the two layers of a feed-forward block: the first weight is cut by columns and the second by
// rows, so no exchange is needed between the two. Forward and backward pass together make two collectives. The results
// are compared with the whole block in one process.
// needs: ucx eigen
// expect: forward: all_reduce.*backward: all_reduce.*one process: [0-9.]+e-1[3-9]
#include <hocket/bootstrap/launch.hpp>
#include <hocket/engine/flight_record.hpp>
#include <hocket/parallel.hpp>
#include <hocket/ucx.hpp>

#include <Eigen/Core>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <type_traits>

using hocket::extents, hocket::invariant, hocket::on, hocket::shard;
using matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr std::size_t tokens = 50, features = 96, hidden = 4 * features;

// ── Local mathematics: hocket passes this rank's parts, Eigen computes ─────────────────────────────────────────────

/// Returns a part of a tensor as an Eigen map, without a copy.
template <class View>
auto mapped(View part) {
  constexpr bool constant = std::is_const_v<typename View::element_type>;
  return Eigen::Map<std::conditional_t<constant, const matrix, matrix>>(
      part.data_handle(), static_cast<Eigen::Index>(part.extent(0)), static_cast<Eigen::Index>(part.extent(1)));
}

/// The three products of a linear layer: for its output, and for the gradients of its input and its weight.
struct products {
  void operator()(hocket::multilinear<"tk,kn->tn">, auto x, auto w, auto to) const {
    mapped(to).noalias() = mapped(x) * mapped(w);
  }
  void operator()(hocket::multilinear<"tn,kn->tk">, auto gradient, auto w, auto to) const {
    mapped(to).noalias() = mapped(gradient) * mapped(w).transpose();
  }
  void operator()(hocket::multilinear<"tk,tn->kn">, auto x, auto gradient, auto to) const {
    mapped(to).noalias() = mapped(x).transpose() * mapped(gradient);
  }
};

double gelu(double x) { return 0.5 * x * (1 + std::erf(x * std::sqrt(0.5))); }
double gelu_slope(double x) {
  return 0.5 * (1 + std::erf(x * std::sqrt(0.5))) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0));
}

/// Returns irregular numbers, scaled so that activations neither vanish nor explode.
double number(std::size_t row, std::size_t column, std::size_t columns, double scale) {
  const double x = static_cast<double>(row * columns + column + 1);
  return scale * std::sin(x * x * 0.618034);
}
double input_at(std::size_t t, std::size_t k) { return number(t, k, features, 1.4); }
double up_at(std::size_t k, std::size_t n) { return number(k, n, hidden, 0.14); }
double down_at(std::size_t n, std::size_t k) { return number(n, k, features, 0.1); }

// ── For comparison: the whole block in one process ─────────────────────────────────────────────────────────────────

template <class Value>
matrix whole(std::size_t rows, std::size_t columns, Value value) {
  const auto at = [&](Eigen::Index i, Eigen::Index j) {
    return value(static_cast<std::size_t>(i), static_cast<std::size_t>(j));
  };
  return matrix::NullaryExpr(static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(columns), at);
}

struct whole_block {
  matrix x = whole(tokens, features, input_at), up = whole(features, hidden, up_at),
         down = whole(hidden, features, down_at);
  matrix before = x * up;
  matrix between = before.unaryExpr(&gelu);
  matrix y = between * down;
  // The loss is |y|^2 / 2, so the gradient of y is y.
  matrix of_down = between.transpose() * y;
  matrix of_before = (y * down.transpose()).cwiseProduct(before.unaryExpr(&gelu_slope));
  matrix of_up = x.transpose() * of_before;
  matrix of_x = of_before * up.transpose();
};

/// Returns the largest difference of this rank's part from the whole, relative to the whole's largest element.
template <class Tensor>
double difference(const Tensor& tensor, const matrix& from_whole) {
  const auto& part = tensor.part();
  if (part.volume() == 0) return 0;
  const auto index = [](std::size_t i) { return static_cast<Eigen::Index>(i); };
  const auto same =
      from_whole.block(index(part.begin[0]), index(part.begin[1]), index(part.size[0]), index(part.size[1]));
  return (mapped(tensor.local()) - same).cwiseAbs().maxCoeff() / from_whole.cwiseAbs().maxCoeff();
}

/// Returns the names of the collectives on a communicator from number `first` on, and advances `first`.
std::string collectives(const hocket::ucx::communicator& comm, std::size_t& first) {
  const std::string record = hocket::flight_record(comm), key = "\"operation\":\"";
  std::string names;
  std::size_t count = 0;
  for (std::size_t at = record.find(key); at != std::string::npos; at = record.find(key, at), ++count) {
    at += key.size();
    if (count >= first) names += ' ' + record.substr(at, record.find('"', at) - at);
  }
  first = count;
  return names;
}

int main(int count, char** arguments) {
  if (!hocket::launch::is_rank()) return hocket::launch::spawn(4, {arguments, arguments + count});

  auto comm = hocket::ucx::connect();
  const auto ranks = hocket::mesh<"tp">(comm, {comm.size()});  // one axis: tensor parallel
  using mesh = std::remove_const_t<decltype(ranks)>;
  using column_parallel = hocket::column_parallel_linear<"tp">;
  using row_parallel = hocket::row_parallel_linear<"tp">;
  std::size_t calls = 0;
  collectives(ranks.all(), calls);  // skips those that made the mesh

  // All ranks have the same input, as `invariant` states; each rank has a part of the weights.
  hocket::tensor<double, extents<tokens, features>, mesh, on<"tp", invariant>> x(ranks);
  hocket::tensor<double, extents<features, hidden>, mesh, on<"tp", shard<1>>> up(ranks);
  hocket::tensor<double, extents<hidden, features>, mesh, on<"tp", shard<0>>> down(ranks);
  hocket::fill(x, [](auto at) { return input_at(at[0], at[1]); });
  hocket::fill(up, [](auto at) { return up_at(at[0], at[1]); });
  hocket::fill(down, [](auto at) { return down_at(at[0], at[1]); });

  // Forward. `first.output` has some columns on each rank, and gelu of a column needs no other column. The output of
  // the second layer is a sum over the ranks, which needs an all_reduce.
  const auto first = column_parallel::forward(products(), x, up);
  const auto between = hocket::apply(
      hocket::nonlinear<"tn->tn">(), [](auto in, auto to) { mapped(to) = mapped(in).unaryExpr(&gelu); }, first.output);
  const auto second = row_parallel::forward(products(), between, down);
  const std::string forward = collectives(ranks.all(), calls);

  // Backward, for the loss |y|^2 / 2: the gradient of the output is the output. Every rank used the input and adds to
  // its gradient, which needs the other all_reduce.
  const auto of_second = row_parallel::backward(products(), second.saved, down, second.output);
  const auto of_before = hocket::apply(
      hocket::nonlinear<"tn,tn->tn">(),
      [](auto in, auto gradient, auto to) {
        mapped(to) = mapped(gradient).cwiseProduct(mapped(in).unaryExpr(&gelu_slope));
      },
      first.output, of_second.input);
  const auto of_first = column_parallel::backward(products(), first.saved, up, of_before);
  const std::string backward = collectives(ranks.all(), calls);

  const whole_block one;
  const double own = std::max({difference(second.output, one.y), difference(of_first.input, one.of_x),
                               difference(of_first.weight, one.of_up), difference(of_second.weight, one.of_down)});
  double largest = 0;
  hocket::all_reduce(comm, std::span(&own, 1), std::span(&largest, 1), hocket::maximum{});
  if (comm.rank() == 0) {
    std::printf("collectives forward:%s\ncollectives backward:%s\n", forward.c_str(), backward.c_str());
    std::printf("largest difference from one process: %.1e\n", largest);
  }
  return largest < 1e-12 ? 0 : 1;
}
