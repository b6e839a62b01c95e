// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Exchanges of rows that the program routes: tokens to the ranks of their experts, and the results back. A placement
/// can't express which rank has which row, only counts can. The forward and the backward pass are one exchange and its
/// transpose; if a program mixes the counts of one with the order of the other, gradients are wrong without any error.
///
/// @code
/// // x: tokens in rows, cut along ep, and sorted by the rank of their expert, `sent[r]` of them for rank r.
/// const auto to_experts = hocket::route_rows<"ep">(x, sent);    // the ranks exchange the counts
/// const auto tokens = to_experts(x);                            // varying: this rank's experts' tokens, by rank
/// const auto y = to_experts.backward()(results);                // cut as x was: each token where it came from
/// @endcode
///
/// The gradient of `tokens` goes through `to_experts.backward()`, that of `y` through `to_experts`.
///
/// Source: the all-to-all of expert parallelism with output and input splits, as in GShard (Lepikhin et al., 2020).
#pragma once

#include <hocket/collective/all_to_all.hpp>
#include <hocket/collective/all_to_all_v.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/not_understood.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/shard/agreed_extents.hpp>
#include <hocket/shard/convert.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/row_diagnostics.hpp>
#include <hocket/shard/tensor.hpp>

#include <cstddef>
#include <functional>
#include <numeric>
#include <source_location>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// A tensor's extents, for `with_extents`.
template <class Tensor>
struct extents_of_rows {
  using extents_type = typename Tensor::extents_type;
  typename Tensor::sizes_type all;
  const auto& sizes() const noexcept { return all; }
};

/// For `route_rows`.
struct row_exchange_access {
  template <class Exchange>
  static Exchange make(std::vector<std::size_t> sent, std::vector<std::size_t> received, std::size_t rows_before,
                       std::size_t rows_after) {
    return Exchange(std::move(sent), std::move(received), rows_before, rows_after);
  }
};

inline std::size_t sum_of(std::span<const std::size_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

}  // namespace detail

/// The exchange of rows along the axis `Axis`, of tensors placed as `From`; the result is placed as `To`. Both are
/// `shard<0>` or `varying`. Made by `route_rows`. A value: it stores counts, but no rows and no mesh.
template <axis_name Axis, placement_type From, placement_type To>
class row_exchange {
 public:
  /// Numbers of rows by rank. Their sums are the numbers of rows on this rank before and after the exchange.
  const std::vector<std::size_t>& sent() const noexcept { return sent_; }
  /// Rows that this rank receives, by rank.
  const std::vector<std::size_t>& received() const noexcept { return received_; }

  /// Sends the first `sent()[0]` rows of `tensor` to rank 0 along the axis, the next to rank 1, and so on; returns the
  /// received rows in the order of the sending ranks. Along the other axes the tensor is placed as before.
  ///
  /// Collective over the ranks along `Axis`, by one `all_to_all_v`, with its options, cost, order, progress and errors:
  /// `invalid_argument` if the number of rows differs from the sum of the counts.
  template <tensor_type Tensor, call_options Options = options<>>
    requires detail::is_exchanged<Axis, From, Tensor, Options>
  auto operator()(const Tensor& tensor, const Options& options = {},
                  const std::source_location& site = std::source_location::current()) const {
    constexpr int position = detail::position_of<typename Tensor::axes, Axis>();
    using placed = typename detail::with_placement<position, To, typename Tensor::placements_type>::type;
    using to_type = detail::placed_as<Tensor, placed>;
    const auto& comm = detail::checked_mesh(tensor.mesh()).along(detail::axis_set{1} << position);
    auto sizes = tensor.sizes();
    sizes[0] = rows_after_;
    to_type to = to_type::unwritten(tensor.mesh(), sizes);
    to.copy_count(tensor);
    const std::size_t row = elements_of_row(tensor);
    const std::vector<std::size_t> out = scaled(sent_, row);
    const std::vector<std::size_t> in = scaled(received_, row);
    all_to_all_v(comm, tensor.elements(), to.elements(), send_counts{out}, receive_counts{in},
                 with_equal_extents(options, tensor), site);
    return to;
  }

  /// Deleted: the template argument `Why` is the reason.
  template <class Given, class... Rest, auto Why = detail::why_not_exchanged<Axis, From, Given, Rest...>()>
  detail::not_understood operator()(const Given&, const Rest&...) const = delete;

  /// Returns the reverse exchange, which returns every row to the rank that sent it, as for gradients.
  auto backward() const {
    return row_exchange<Axis, gradient_placement_t<To>, gradient_placement_t<From>>(received_, sent_, rows_after_,
                                                                                    rows_before_);
  }

 private:
  template <axis_name, placement_type, placement_type>
  friend class row_exchange;
  friend struct detail::row_exchange_access;

  row_exchange(std::vector<std::size_t> sent, std::vector<std::size_t> received, std::size_t rows_before,
               std::size_t rows_after)
      : sent_(std::move(sent)), received_(std::move(received)), rows_before_(rows_before), rows_after_(rows_after) {}

  template <class Tensor>
  static std::size_t elements_of_row(const Tensor& tensor) {
    const auto& sizes = tensor.part().size;
    return std::accumulate(sizes.begin() + 1, sizes.end(), std::size_t{1}, std::multiplies<>());
  }

  static std::vector<std::size_t> scaled(std::vector<std::size_t> rows, std::size_t elements) {
    for (std::size_t& each : rows) each *= elements;
    return rows;
  }

  /// Returns `options` with the extents on which ranks must agree: all except the number of rows.
  template <class Options, class Tensor>
  static constexpr decltype(auto) with_equal_extents(const Options& options, const Tensor& tensor) {
    detail::extents_of_rows<Tensor> row{tensor.sizes()};
    row.all[0] = 0;
    return detail::with_extents(options, row);
  }

  std::vector<std::size_t> sent_;
  std::vector<std::size_t> received_;
  std::size_t rows_before_;  ///< first extent of the argument, of the whole tensor as this rank sees it
  std::size_t rows_after_;
};

/// Returns the exchange that sends the next `sent[r]` rows of `tensor` to rank r along the axis `Axis`, and receives
/// `received[r]` rows from it. Local. The number that rank s passes as sent to d, rank d must pass as received from s.
template <axis_name Axis, tensor_type Tensor>
  requires detail::has_rows<Axis, Tensor>
auto route_rows(const Tensor& tensor, std::vector<std::size_t> sent, std::vector<std::size_t> received) {
  const std::size_t rows_after = detail::sum_of(received);
  using exchange = row_exchange<Axis, typename Tensor::template placement_on<Axis>, varying>;
  return detail::row_exchange_access::make<exchange>(std::move(sent), std::move(received), tensor.sizes()[0],
                                                     rows_after);
}

/// Like the above, if only the senders know the counts: the ranks exchange these first.
///
/// Collective over the ranks along `Axis`, by one all_to_all of one count for each rank, with its options, order,
/// progress and errors: `invalid_argument` if the number of counts differs from the number of ranks.
template <axis_name Axis, tensor_type Tensor, call_options Options = options<>>
  requires detail::has_rows<Axis, Tensor> && detail::accepted_with<Options, detail::row_options, void>
auto route_rows(const Tensor& tensor, std::vector<std::size_t> sent, const Options& options = {},
                const std::source_location& site = std::source_location::current()) {
  constexpr int position = detail::position_of<typename Tensor::axes, Axis>();
  const auto& comm = detail::checked_mesh(tensor.mesh()).along(detail::axis_set{1} << position);
  std::vector<std::size_t> received(static_cast<std::size_t>(comm.size()));
  all_to_all(comm, std::span<const std::size_t>(sent), std::span(received), options, site);
  return route_rows<Axis>(tensor, std::move(sent), std::move(received));
}

// Deleted: the compiler prints the reason as a template argument.
template <class... Axes, auto Why = detail::why_not_along_no_axis<Axes...>()>
detail::not_understood route_rows(const detail::any_argument&, const auto&...) = delete;
template <axis_name Axis, class Given, class Counts, class... Rest,
          auto Why = detail::why_not_routed<Axis, Given, Counts, Rest...>()>
detail::not_understood route_rows(const Given&, const Counts&, const Rest&...) = delete;
/// Like the above, for counts in braces.
template <axis_name Axis, class Given, class... Rest,
          auto Why = detail::why_not_routed<Axis, Given, std::vector<std::size_t>, Rest...>()>
detail::not_understood route_rows(const Given&, const std::vector<std::size_t>&, const Rest&...) = delete;

HOCKET_END_NAMESPACE
