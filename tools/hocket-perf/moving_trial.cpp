// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Trials of collectives that move elements without combining them. Only the size of an element matters, so types of the
// same size share code. Also selects among all trials.
#include "buffered_trial.hpp"

#include <hocket/collective/all_gather.hpp>
#include <hocket/collective/all_gather_v.hpp>
#include <hocket/collective/all_to_all.hpp>
#include <hocket/collective/all_to_all_v.hpp>
#include <hocket/collective/barrier.hpp>
#include <hocket/collective/broadcast.hpp>
#include <hocket/collective/device/staged.hpp>
#include <hocket/collective/explain.hpp>
#include <hocket/collective/gather.hpp>
#include <hocket/collective/gather_v.hpp>
#include <hocket/collective/scatter.hpp>
#include <hocket/collective/scatter_v.hpp>
#include <hocket/collective/send_recv.hpp>
#include <hocket/core/options.hpp>

namespace perf {

namespace {

template <class Domain, class T>
class moving_trial final : public buffered_trial<Domain, T> {
  using base = buffered_trial<Domain, T>;
  using base::block_;
  using base::comm_;
  using base::what_;

 public:
  using base::base;

  void run(placement where) override {
    if (this->device() != nullptr && what_.what != collective::barrier) {
      run_on_device_memory(where);
    } else if (what_.what == collective::send_recv) {
      hocket::send_recv(comm_, this->input(where), hocket::peer{this->next()}, this->output(where),
                        hocket::peer{this->previous()});
    } else if (what_.algorithm) {
      call(where, hocket::with(hocket::algorithm(*what_.algorithm)));
    } else {
      call(where, hocket::with());
    }
  }

  std::string explain() const override {
    switch (what_.what) {
      case collective::all_gather: return hocket::explain<T>(comm_, hocket::all_gather, block_);
      case collective::all_to_all: return hocket::explain<T>(comm_, hocket::all_to_all, block_);
      case collective::broadcast: return hocket::explain<T>(comm_, hocket::broadcast, block_, root());
      case collective::barrier: return hocket::explain<T>(comm_, hocket::barrier, 0);
      case collective::all_gather_v: return hocket::explain<T>(comm_, hocket::all_gather_v, this->counts());
      case collective::all_to_all_v: return hocket::explain<T>(comm_, hocket::all_to_all_v);
      case collective::gather: return hocket::explain<T>(comm_, hocket::gather, block_, root());
      case collective::scatter: return hocket::explain<T>(comm_, hocket::scatter, block_, root());
      case collective::gather_v: return hocket::explain<T>(comm_, hocket::gather_v, this->counts(), root());
      case collective::scatter_v: return hocket::explain<T>(comm_, hocket::scatter_v, this->counts(), root());
      case collective::reduce:
      case collective::all_reduce:
      case collective::reduce_scatter:
      case collective::reduce_scatter_v:
      case collective::send_recv: break;
    }
    return "send_recv: sends to the next rank and receives from the previous one; it has no algorithms to choose "
           "from\n";
  }

 private:
  hocket::root root() const { return {what_.root}; }

  template <class Options>
  void call(placement where, const Options& options) {
    switch (what_.what) {
      case collective::all_gather: return hocket::all_gather(comm_, this->input(where), this->output(where), options);
      case collective::all_to_all: return hocket::all_to_all(comm_, this->input(where), this->output(where), options);
      case collective::broadcast: return hocket::broadcast(comm_, this->output(where), root(), options);
      case collective::barrier: return hocket::barrier(comm_, options);
      case collective::all_gather_v:
        return hocket::all_gather_v(comm_, this->input(where), this->output(where), this->counts(), options);
      case collective::all_to_all_v:
        return hocket::all_to_all_v(comm_, this->input(where), this->output(where), this->send_counts(),
                                    this->receive_counts(), options);
      case collective::gather: return hocket::gather(comm_, this->input(where), this->output(where), root(), options);
      case collective::scatter: return hocket::scatter(comm_, this->input(where), this->output(where), root(), options);
      case collective::gather_v:
        return hocket::gather_v(comm_, this->input(where), this->output(where), this->counts(), root(), options);
      case collective::scatter_v:
        return hocket::scatter_v(comm_, this->input(where), this->output(where), this->counts(), root(), options);
      case collective::reduce:
      case collective::all_reduce:
      case collective::reduce_scatter:
      case collective::reduce_scatter_v:
      case collective::send_recv: break;
    }
  }

  void run_on_device_memory(placement where) {
    const hocket::cuda::stream_ref stream(this->device()->stream());
    if (what_.what == collective::send_recv) {
      this->placed([&](const auto& place) {
        hocket::send_recv(comm_, place(this->input(where)), hocket::peer{this->next()}, place(this->output(where)),
                          hocket::peer{this->previous()}, hocket::tag{0}, hocket::with(stream));
      });
    } else if (what_.algorithm) {
      call_on_device_memory(where, hocket::with(hocket::algorithm(*what_.algorithm), stream));
    } else {
      call_on_device_memory(where, hocket::with(stream));
    }
    this->device()->wait();
  }

  template <class Options>
  void call_on_device_memory(placement where, const Options& options) {
    this->placed([&](const auto& place) {
      const auto out = place(this->output(where));
      switch (what_.what) {
        case collective::all_gather: return hocket::all_gather(comm_, place(this->input(where)), out, options);
        case collective::all_to_all: return hocket::all_to_all(comm_, place(this->input(where)), out, options);
        case collective::broadcast: return hocket::broadcast(comm_, out, root(), options);
        case collective::gather: return hocket::gather(comm_, place(this->input(where)), out, root(), options);
        case collective::scatter: return hocket::scatter(comm_, place(this->input(where)), out, root(), options);
        case collective::gather_v:
        case collective::scatter_v:
        case collective::reduce:
        case collective::all_reduce:
        case collective::reduce_scatter:
        case collective::reduce_scatter_v:
        case collective::all_gather_v:
        case collective::all_to_all_v:
        case collective::barrier:
        case collective::send_recv: break;
      }
    });
  }

  T value(int rank, std::size_t position, contents values) const override {
    return static_cast<T>(scramble(rank, position, values.salt));
  }
  T combined(std::size_t, contents) const override { return {}; }
};

}  // namespace

std::unique_ptr<trial> make_moving_trial(any_communicator comm, const subject& what) {
  return std::visit(
      [&]<class Domain>(const hocket::communicator<Domain>* on) -> std::unique_ptr<trial> {
        switch (size_of(what.type)) {
          case 1: return std::make_unique<moving_trial<Domain, std::uint8_t>>(*on, what);
          case 2: return std::make_unique<moving_trial<Domain, std::uint16_t>>(*on, what);
          case 4: return std::make_unique<moving_trial<Domain, std::uint32_t>>(*on, what);
          default: return std::make_unique<moving_trial<Domain, std::uint64_t>>(*on, what);
        }
      },
      comm);
}

std::unique_ptr<trial> make_trial(any_communicator comm, const subject& what) {
  if (!reduces(what.what)) return make_moving_trial(comm, what);
  switch (what.type) {
    case datatype::int8:
    case datatype::uint8:
    case datatype::int32:
    case datatype::uint32:
    case datatype::int64:
    case datatype::uint64: return make_integer_trial(comm, what);
    case datatype::half:
    case datatype::bfloat16:
    case datatype::float32:
    case datatype::float64:
    case datatype::float8_e4m3:
    case datatype::float8_e5m2: return make_float_trial(comm, what);
  }
  return nullptr;
}

}  // namespace perf
