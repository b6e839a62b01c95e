// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Trials of all_reduce, reduce, reduce_scatter and reduce_scatter_v, for one element type and each operation.
#pragma once

#include "buffered_trial.hpp"

#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/device/staged.hpp>
#include <hocket/collective/explain.hpp>
#include <hocket/collective/reduce.hpp>
#include <hocket/collective/reduce_scatter.hpp>
#include <hocket/collective/reduce_scatter_v.hpp>
#include <hocket/core/options.hpp>

#include <type_traits>

namespace perf {

/// `reduces_elsewhere` at compile time.
template <class T, class Op>
inline constexpr bool is_reduced_elsewhere =
    std::is_same_v<Op, sum<T>> &&
    (std::is_same_v<T, float> || std::is_same_v<T, hocket::half> || std::is_same_v<T, hocket::bfloat16>);

template <class Domain, class T, class Op>
class reduction_trial final : public buffered_trial<Domain, T> {
  using base = buffered_trial<Domain, T>;
  using base::block_;
  using base::comm_;
  using base::what_;

 public:
  using base::base;

  void run(placement where) override {
    if (this->device() != nullptr) {
      run_on_device_memory(where);
    } else if (what_.algorithm) {
      call(where, hocket::with(hocket::algorithm(*what_.algorithm)));
    } else {
      call(where, hocket::with());
    }
  }

  std::string explain() const override {
    if (what_.what == collective::reduce_scatter) {
      return hocket::explain<T>(comm_, hocket::reduce_scatter, block_, Op{});
    }
    if (what_.what == collective::reduce_scatter_v) {
      return hocket::explain<T>(comm_, hocket::reduce_scatter_v, this->counts(), Op{});
    }
    if (what_.what == collective::reduce) {
      return hocket::explain<T>(comm_, hocket::reduce, block_, Op{}, hocket::root{what_.root});
    }
    return hocket::explain<T>(comm_, hocket::all_reduce, block_, Op{});
  }

 private:
  hocket::root root() const { return {what_.root}; }

  template <class Options>
  void call(placement where, const Options& options) {
    if (what_.what == collective::reduce_scatter) {
      hocket::reduce_scatter(comm_, this->input(where), this->output(where), Op{}, options);
    } else if (what_.what == collective::reduce_scatter_v) {
      hocket::reduce_scatter_v(comm_, this->input(where), this->output(where), this->counts(), Op{}, options);
    } else if (what_.what == collective::reduce) {
      where == placement::in_place
          ? hocket::reduce(comm_, hocket::in_place(this->input(where)), Op{}, root(), options)
          : hocket::reduce(comm_, this->input(where), this->output(where), Op{}, root(), options);
    } else if (where == placement::in_place) {
      hocket::all_reduce(comm_, hocket::in_place(this->output(where)), Op{}, options);
    } else {
      hocket::all_reduce(comm_, this->input(where), this->output(where), Op{}, options);
    }
  }

  void run_on_device_memory(placement where) {
    if constexpr (is_reduced_elsewhere<T, Op>) {
      const hocket::cuda::stream_ref stream(this->device()->stream());
      if (what_.algorithm) {
        call_on_device_memory(where, hocket::with(hocket::algorithm(*what_.algorithm), stream));
      } else {
        call_on_device_memory(where, hocket::with(stream));
      }
      this->device()->wait();
    }
  }

  template <class Options>
  void call_on_device_memory(placement where, const Options& options) {
    this->placed([&](const auto& place) {
      const auto out = place(this->output(where));
      if (what_.what == collective::reduce_scatter) {
        hocket::reduce_scatter(comm_, place(this->input(where)), out, Op{}, options);
      } else if (what_.what == collective::reduce) {
        const auto in = place(this->input(where));
        where == placement::in_place ? hocket::reduce(comm_, hocket::in_place(in), Op{}, root(), options)
                                     : hocket::reduce(comm_, in, out, Op{}, root(), options);
      } else if (where == placement::in_place) {
        hocket::all_reduce(comm_, hocket::in_place(out), Op{}, options);
      } else {
        hocket::all_reduce(comm_, place(this->input(where)), out, Op{}, options);
      }
    });
  }

  T value(int rank, std::size_t position, contents values) const override {
    return values.zeros ? T{} : pattern<T, Op>::value(rank, comm_.size(), position, values.salt);
  }
  T combined(std::size_t position, contents values) const override {
    return values.zeros ? T{} : pattern<T, Op>::result(comm_.size(), position, values.salt);
  }
};

template <class T>
std::unique_ptr<trial> make_reduction_trial(any_communicator comm, const subject& what) {
  return std::visit(
      [&]<class Domain>(const hocket::communicator<Domain>* on) -> std::unique_ptr<trial> {
        switch (what.op) {
          case operation::sum: return std::make_unique<reduction_trial<Domain, T, sum<T>>>(*on, what);
          case operation::prod: return std::make_unique<reduction_trial<Domain, T, product<T>>>(*on, what);
          case operation::min: return std::make_unique<reduction_trial<Domain, T, hocket::minimum>>(*on, what);
          case operation::max: return std::make_unique<reduction_trial<Domain, T, hocket::maximum>>(*on, what);
          case operation::avg: return std::make_unique<reduction_trial<Domain, T, hocket::average>>(*on, what);
        }
        return nullptr;
      },
      comm);
}

}  // namespace perf
