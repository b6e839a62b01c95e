// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bounds of a step: time, if another rank does not arrive, and memory, if the network is slower than the backward
// pass. The time of communication is reported once.
#include <hocket/gradient/accumulator.hpp>

#include "gradient/step.hpp"
#include "support/catch.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/core/memory_ledger.hpp>
#include <hocket/gradient/norm.hpp>
#include <hocket/group/split.hpp>
#include <hocket/optimizer/memory.hpp>
#include <hocket/optimizer/optimizer.hpp>
#include <hocket/optimizer/rule/sgd.hpp>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <exception>
#include <functional>
#include <source_location>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace hocket_test::gradient;
using namespace std::chrono_literals;
using hocket_test::on_ranks;
using hocket_test::thread_rank;
using clock_type = std::chrono::steady_clock;

/// Rank 0 makes a call that rank 1 does not make. It must fail with `expected`, long before the communicator's timeout.
template <class Call>
void check_alone(hocket::errc expected, Call call) {
  std::atomic<bool> elsewhere{false}, over{false};
  on_ranks(2, [&](thread_rank& me) {
    if (me.rank() == 0) {
      call(me, [&](auto last) {
        elsewhere.wait(false);  // earlier calls have completed on both ranks
        const auto begin = clock_type::now();
        me.expect(expected, last);
        me.check(clock_type::now() - begin < hocket_test::rank_timeout / 3, "it waited for the default timeout");
        over = true;
        over.notify_all();
      });
    } else {
      call(me, [&](auto) {
        elsewhere = true;
        elsewhere.notify_all();
        over.wait(false);
      });
    }
  });
}

TEST_CASE("a timeout and a stop token of gradients also apply to the sums of totals and norms") {
  const hocket::parameter_layout none;  // without buckets, so that only the sums are sent
  const auto soon = hocket::with(hocket::timeout(300ms));
  const auto step = [](auto& gradients) {
    gradients.begin_microbatch(0, 1);
    gradients.end_microbatch(1, 1);
  };
  check_alone(hocket::errc::timeout, [&](thread_rank& me, auto last) {
    auto made = hocket::gradients<float>(me.comm(), none, hocket::last_microbatch, hocket::zero<0>, soon);
    step(made);
    last([&] { made.finish(); });
  });
  check_alone(hocket::errc::timeout, [&](thread_rank& me, auto last) {
    const auto alone = hocket::split(me.comm(), hocket::color{me.rank()}, hocket::key{0});
    auto made = hocket::gradients<float>(hocket::hybrid(alone, me.comm()), none, hocket::last_microbatch,
                                         hocket::zero<0>, soon);
    step(made);
    last([&] { made.finish(); });
  });
  check_alone(hocket::errc::timeout, [&](thread_rank& me, auto last) {
    auto made = hocket::gradients<float>(me.comm(), none, hocket::last_microbatch, hocket::zero<1>, soon);
    step(made);
    made.finish();
    last([&] { hocket::norm(made); });
  });
  check_alone(hocket::errc::timeout, [&](thread_rank& me, auto last) {
    const auto alone = hocket::split(me.comm(), hocket::color{me.rank()}, hocket::key{0});
    auto made = hocket::gradients<float>(alone, none, hocket::last_microbatch, hocket::zero<0>, soon);
    step(made);
    made.finish();
    last([&] { hocket::norm(made, me.comm()); });
  });
  check_alone(hocket::errc::timeout, [&](thread_rank& me, auto last) {
    const auto alone = hocket::split(me.comm(), hocket::color{me.rank()}, hocket::key{0});
    auto made = hocket::gradients<float>(alone, none, hocket::last_microbatch, hocket::zero<0>);
    step(made);
    made.finish();
    last([&] { hocket::norm(made, me.comm(), soon); });
  });
  check_alone(hocket::errc::aborted, [&](thread_rank& me, auto last) {
    std::stop_source stop;
    auto made = hocket::gradients<float>(me.comm(), none, hocket::last_microbatch, hocket::zero<0>,
                                         hocket::with(stop.get_token()));
    step(made);
    stop.request_stop();
    last([&] { made.finish(); });
  });
}

TEST_CASE("the comparison of layouts ends within the timeout") {
  check_alone(hocket::errc::timeout, [&](thread_rank& me, auto last) {
    last([&] {
      hocket::gradients<float>(me.comm(), small_layout(), hocket::last_microbatch, hocket::zero<0>,
                               hocket::with(hocket::timeout(300ms)));
    });
  });
}

// ── Memory ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/// The request of a bucket that does not complete before `wait` is called, and then takes some time.
struct late {
  hocket::request started;
  std::chrono::milliseconds takes{};
  std::size_t bucket = 0;
  std::vector<std::size_t>* waited = nullptr;
  const bool* shows = nullptr;  ///< if true, `test` reports completion

  bool test() { return shows != nullptr && *shows && started.test(); }
  void wait() {
    std::this_thread::sleep_for(takes);
    if (waited != nullptr) waited->push_back(bucket);
    started.wait();
  }
};

struct late_reduction {
  std::chrono::milliseconds takes{};
  std::vector<std::size_t>* left = nullptr;
  std::vector<std::size_t>* waited = nullptr;
  const bool* shows = nullptr;

  template <class Domain, class T, class Options>
  late all_reduce(const hocket::communicator<Domain>& comm, std::size_t bucket, std::span<T> values,
                  const Options& options, const std::source_location& site) const {
    if (left != nullptr) left->push_back(bucket);
    return {hocket::plain_reduction().all_reduce(comm, bucket, values, options, site), takes, bucket, waited, shows};
  }
  template <class Domain, class T, class Options>
  late reduce_scatter(const hocket::communicator<Domain>& comm, std::size_t bucket, std::span<T> values,
                      std::span<T> own, hocket::counts lengths, const Options& options,
                      const std::source_location& site) const {
    if (left != nullptr) left->push_back(bucket);
    return {hocket::plain_reduction().reduce_scatter(comm, bucket, values, own, lengths, options, site), takes, bucket,
            waited, shows};
  }
};

hocket::parameter_layout uneven_layout(std::size_t in_flight) {
  std::vector<hocket::parameter> parameters;
  for (const std::size_t elements : {700U, 64U, 1U, 0U, 1300U, 300U, 65U, 128U, 900U}) {
    parameters.push_back({"p" + std::to_string(parameters.size()), elements});
  }
  return hocket::parameter_layout(parameters, {.first_elements = 1, .elements = 1, .in_flight = in_flight});
}

template <class Sharding>
void check_peak(thread_rank& me, std::size_t in_flight, Sharding stage) {
  const auto layout = uneven_layout(in_flight);
  hocket::memory_ledger ledger;
  auto gradients = hocket::gradients<float>(me.comm(), layout, hocket::every_microbatch, stage, hocket::options<>{},
                                            late_reduction(), ledger.account("gradients"));
  for (int m = 0; m < 3; ++m) {
    gradients.begin_microbatch(m, 3);
    for (std::size_t i = layout.parameters(); i-- > 0;) {
      for (float& each : gradients.of(i)) each += 1;
      gradients.ready(i);
    }
    gradients.end_microbatch(0, 1);
  }
  gradients.finish();
  const auto buckets = layout.bucket_elements();
  const std::size_t stays =
      hocket::bytes_of_training<float, float, float, hocket::sgd>(buckets, me.rank(), me.size(), stage).gradients;
  const std::size_t expected = stays + hocket::consecutive_bucket_bytes<float>(buckets, in_flight + 1);
  me.check(ledger.peak_bytes() == expected, [&] {
    return std::to_string(in_flight) + " in flight, stage " + std::to_string(Sharding::stage) + ": at most " +
           std::to_string(ledger.peak_bytes()) + " bytes, by the formula " + std::to_string(expected);
  });
  for (std::size_t b = 0; b < layout.buckets(); ++b) {
    for (const std::size_t i : layout.members(b)) {
      const auto part = hocket::common_part(layout.of(i), gradients.own_range(b));
      for (std::size_t at = part.first; at < part.end(); ++at) {
        me.check(gradients.result(b)[at - gradients.own_range(b).first] == 3.0F * static_cast<float>(me.size()),
                 "sums");
      }
    }
  }
}

TEST_CASE("the limit of buckets in flight holds: the peak of memory equals the formula, to the byte") {
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    on_ranks(ranks, [](thread_rank& me) {
      for (const std::size_t in_flight : {0U, 1U, 2U, 4U, 100U}) {
        check_peak(me, in_flight, hocket::zero<0>);
        check_peak(me, in_flight, hocket::zero<2>);
        check_peak(me, in_flight, hocket::zero<3>);
      }
    });
  }
}

// ── Time ───────────────────────────────────────────────────────────────────────────────────────────────────────────

double seconds_since(clock_type::time_point begin) {
  return std::chrono::duration<double>(clock_type::now() - begin).count();
}

TEST_CASE("a wait before a launch counts only as exposed time: no time counts twice") {
  on_ranks(1, [](thread_rank& me) {
    const auto layout = uneven_layout(100);
    auto gradients = hocket::gradients<float>(me.comm(), layout, hocket::every_microbatch, hocket::zero<0>,
                                              hocket::options<>{}, late_reduction{20ms});
    const auto begin = clock_type::now();
    for (int m = 0; m < 2; ++m) {  // nothing is computed: the second launch of a bucket waits for the first
      gradients.begin_microbatch(m, 2);
      gradients.end_microbatch(0, 1);
    }
    const auto totals = gradients.finish();
    const double took = seconds_since(begin), waited = 2 * 0.02 * static_cast<double>(layout.buckets());
    me.check(totals.exposed_seconds >= waited, [&] { return "waited " + std::to_string(totals.exposed_seconds); });
    me.check(totals.exposed_seconds + totals.driving_seconds <= took, [&] {
      return std::to_string(totals.exposed_seconds) + " s of waiting and " + std::to_string(totals.driving_seconds) +
             " s of driving in " + std::to_string(took) + " s";
    });
  });
}

TEST_CASE("the time of waits for parameters is reported") {
  std::atomic<bool> waits{false};
  on_ranks(2, [&](thread_rank& me) {
    auto parameters = hocket::parameters<float>(me.comm(), small_layout(), hocket::zero<3>);
    me.check(parameters.take_time().exposed_seconds == 0, "time without a wait");
    if (me.rank() == 1) {
      waits.wait(false);
      std::this_thread::sleep_for(100ms);
    }
    const auto begin = clock_type::now();
    parameters.gather(0);
    waits = true;
    waits.notify_all();
    parameters.wait(0);
    const double took = seconds_since(begin);
    const auto time = parameters.take_time();
    me.check(time.exposed_seconds + time.driving_seconds <= took, "more than elapsed");
    if (me.rank() == 0) me.check(time.exposed_seconds > 0.05, [&] { return std::to_string(time.exposed_seconds); });
    me.check(parameters.take_time().exposed_seconds == 0, "the time is reported twice");
  });
}

// ── Order ──────────────────────────────────────────────────────────────────────────────────────────────────────────

TEST_CASE("buckets are sent and awaited in the layout's order, backward or forward") {
  on_ranks(3, [](thread_rank& me) {
    for (const auto order : {hocket::bucket_order::backward, hocket::bucket_order::forward}) {
      std::vector<std::size_t> left, waited, expected;
      const hocket::parameter_layout layout({{"a", 100}, {"b", 64}, {"c", 1}},
                                            {.first_elements = 1, .elements = 1, .order = order});
      const bool forward = order == hocket::bucket_order::forward;
      expected = forward ? std::vector<std::size_t>{2, 1, 0} : std::vector<std::size_t>{0, 1, 2};
      auto parameters = hocket::parameters<float>(me.comm(), layout, hocket::zero<1>);
      auto optimizer = hocket::make_optimizer<float>(parameters, hocket::sgd{.momentum = 0});
      auto gradients = hocket::gradients<float>(me.comm(), layout, hocket::last_microbatch, hocket::zero<1>,
                                                hocket::options<>{}, late_reduction{0ms, &left, &waited});
      for (int step = 1; step <= 2; ++step) {
        gradients.begin_microbatch(0, 1);
        for (std::size_t i = 3; i-- > 0;) {
          for (float& each : gradients.of(i)) each = static_cast<float>(i + 1);
          gradients.ready(i);
          me.check(left.size() == (forward ? (i == 0 ? 3 : 0) : 3 - i), "when buckets are sent");
        }
        gradients.end_microbatch(0, 1);
        const auto totals = gradients.finish_counts();
        me.check(totals.count == 3, "the count");
        me.check(waited.empty(), "a bucket was awaited");
        optimizer.step(gradients, 1, 1 / totals.count);
        for (std::size_t i = 0; i < 3; ++i) {
          for (const float each : parameters.of(i)) {
            me.check(each == -static_cast<float>(step) * static_cast<float>(i + 1), "parameters");
          }
        }
        me.check(left == expected, "the order of sends");
        me.check(waited == expected, "the order of waits");
        left.clear();
        waited.clear();
      }
    }
  });
}

TEST_CASE("calls on replicas match, even if buckets arrive on some ranks before the counts and on others after") {
  on_ranks(4, [](thread_rank& me) {
    const auto inside = hocket::split(me.comm(), hocket::color{me.rank() / 2}, hocket::key{me.rank()});
    const auto across = hocket::split(me.comm(), hocket::color{me.rank() % 2}, hocket::key{me.rank()});
    bool shows = false;
    auto gradients =
        hocket::gradients<float>(hocket::hybrid(inside, across), uneven_layout(4), hocket::last_microbatch,
                                 hocket::zero<1>, hocket::options<>{}, late_reduction{0ms, nullptr, nullptr, &shows});
    for (int step = 1; step <= 3; ++step) {
      gradients.begin_microbatch(0, 1);
      for (std::size_t i = gradients.layout().parameters(); i-- > 0;) {
        for (float& each : gradients.of(i)) each = static_cast<float>(step);
      }
      shows = me.rank() < 2;
      gradients.end_microbatch(1, 1);
      for (int i = 0; i < 100; ++i) {
        std::this_thread::sleep_for(100us);
        gradients.progress();
      }
      shows = true;
      me.check(gradients.finish_counts().count == 4, "counts");
      me.check(std::isfinite(hocket::norm(gradients).value), "norm");
      for (std::size_t b = 0; b < gradients.layout().buckets(); ++b) {
        gradients.layout().visit_parts(b, gradients.own_range(b), [&](std::size_t, const hocket::element_range& part) {
          const float found = gradients.result(b)[part.first - gradients.own_range(b).first];
          me.check(found == 4.0F * static_cast<float>(step), [&] { return "a sum is " + std::to_string(found); });
        });
      }
    }
  });
}

// ── Abandoned steps ────────────────────────────────────────────────────────────────────────────────────────────────

/// Begins a step of three microbatches, and stops at position `where`: between, in, or after the microbatches.
template <class Gradients>
void leave_a_step(Gradients& gradients, int where) {
  const auto& layout = gradients.layout();
  for (int m = 0; m < 3; ++m) {
    gradients.begin_microbatch(m, 3);
    for (std::size_t i = layout.parameters(); i-- > 0;) {
      for (auto& each : gradients.of(i)) each += 1;
      gradients.ready(i);
      if (where-- == 0) return;
    }
    gradients.end_microbatch(1, 1);
    if (where-- == 0) return;
  }
}

template <class Make>
void check_abandon(int ranks, Make make) {
  on_ranks(ranks, [&](thread_rank& me) {
    make(me, [&](auto& gradients) {
      for (const int where : {-1, 0, 4, 9, 10, 15, 29}) {
        for (const int culprit : {0, ranks - 1}) {
          me.at([&] { return "left at " + std::to_string(where) + " by " + std::to_string(culprit); });
          const auto totals = [&] {
            if (me.rank() != culprit) return take_step(gradients, {me.rank(), ranks, 3, 0});
            if (where < 0) return gradients.abandon(3);  // the step has not begun
            leave_a_step(gradients, where);
            return where % 2 == 0 ? gradients.abandon() : gradients.abandon(3);
          }();
          me.check(totals.abandoned == 1, [&] { return std::to_string(totals.abandoned) + " abandoned"; });
          me.check(!hocket::norm(gradients).finite, "the norm of an abandoned step");
          me.expect(hocket::errc::invalid_argument, [&] { gradients.use(); });
          me.check(take_step(gradients, {me.rank(), ranks, 2, 1}).abandoned == 0, "the next step is abandoned");
          const auto expected = sequential_sum(gradients.layout(), {0, ranks, 2, 1});
          for (std::size_t b = 0; b < gradients.layout().buckets(); ++b) {
            const auto range = gradients.own_range(b);
            for (std::size_t at = 0; at < range.size; ++at) {
              const double wanted = expected.gradient[range.first + at];
              if (!me.check(std::abs(gradients.result(b)[at] - wanted) <= 1e-12 * magnitude, "the next sum")) return;
            }
          }
        }
      }
      gradients.abandon();  // between steps: on this rank alone
      me.expect(hocket::errc::invalid_argument, [&] { hocket::norm(gradients); });
      me.expect(hocket::errc::invalid_argument, [&] { gradients.abandon(0); });
      gradients.begin_microbatch(0, 2);
      me.expect(hocket::errc::invalid_argument, [&] { gradients.abandon(3); });
      gradients.abandon(2);
    });
  });
}

TEST_CASE("a step that one rank abandons is abandoned on all ranks, and the next step is correct") {
  for (const int ranks : {1, 2, 3, 5}) {
    check_abandon(ranks, [](thread_rank& me, auto use) {
      auto made = hocket::gradients<double>(me.comm(), small_layout(), hocket::last_microbatch, hocket::zero<0>);
      use(made);
    });
    check_abandon(ranks, [](thread_rank& me, auto use) {
      auto made = hocket::gradients<double>(me.comm(), small_layout(), hocket::last_microbatch, hocket::zero<1>);
      use(made);
    });
    check_abandon(ranks, [](thread_rank& me, auto use) {
      auto made = hocket::gradients<double>(me.comm(), small_layout(), hocket::every_microbatch, hocket::zero<2>);
      use(made);
    });
  }
  check_abandon(4, [](thread_rank& me, auto use) {
    const auto inside = hocket::split(me.comm(), hocket::color{me.rank() / 2}, hocket::key{me.rank()});
    const auto across = hocket::split(me.comm(), hocket::color{me.rank() % 2}, hocket::key{me.rank()});
    auto made = hocket::gradients<double>(hocket::hybrid(inside, across), small_layout(),
                                          hocket::scatter_every_reduce_last, hocket::zero<3>);
    use(made);
  });
}

/// One step of a model whose parameters are gathered for each layer. After `computed` of its computations, forward and
/// backward, this rank stops computing, but continues through the layers with the other ranks.
template <class Gradients, class Parameters>
void go_through(Gradients& gradients, Parameters& parameters, int microbatches, int computed) {
  const std::size_t layers = gradients.layout().parameters();
  const auto computes = [&] { return computed-- > 0; };
  for (int m = 0; m < microbatches; ++m) {
    gradients.begin_microbatch(m, microbatches);
    for (std::size_t i = 0; i < layers; ++i) {
      parameters.hold(i, 1);
      if (computes()) static_cast<void>(parameters.of(i));
      parameters.end_hold(i, 1);
    }
    for (std::size_t i = layers; i-- > 0;) {
      parameters.hold(i, 1);
      if (computes()) {
        for (double& each : gradients.of(i)) each += 1 + parameters.of(i)[0];
      }
      gradients.ready(i);
      parameters.end_hold(i, 1);
    }
    gradients.end_microbatch(0, computed > 0 ? 1 : 0);
  }
}

TEST_CASE("zero<3>: a rank that abandons a step or has no data can pass through the layers with the others") {
  constexpr std::size_t layers = 9;  // more than can be in flight at the same time
  constexpr int all_of_it = 1 << 20;
  for (const int ranks : {2, 3, 5}) {
    on_ranks(ranks, [&](thread_rank& me) {
      const auto fetching = hocket::split(me.comm(), hocket::color{0}, hocket::key{me.rank()});
      std::vector<hocket::parameter> each;
      for (std::size_t i = 0; i < layers; ++i) each.push_back({"layer " + std::to_string(i), 7});
      const hocket::parameter_layout layout(each, {1, 1});
      auto gradients = hocket::gradients<double>(me.comm(), layout, hocket::every_microbatch, hocket::zero<3>);
      auto parameters = hocket::parameters<double>(fetching, layout, hocket::zero<3>);
      for (const int microbatches : {1, 3}) {
        for (const int computed : {0, 3, 9, 10, 17}) {
          me.at([&] {
            return std::to_string(microbatches) + " microbatches, " + std::to_string(computed) + " computed";
          });
          const bool stops = me.rank() == ranks - 1;
          go_through(gradients, parameters, microbatches, stops ? computed : all_of_it);
          const auto totals = stops ? gradients.abandon(microbatches) : gradients.finish();
          me.check(totals.abandoned == 1 && !hocket::norm(gradients).finite, "the step is not abandoned");

          const bool idle = stops && computed == 0;
          go_through(gradients, parameters, microbatches, idle ? 0 : all_of_it);
          me.check(gradients.finish().abandoned == 0, "the next step is abandoned");
          const double wanted = microbatches * (computed == 0 ? ranks - 1 : ranks);
          for (std::size_t b = 0; b < layers; ++b) {
            const hocket::element_range own = gradients.own_range(b), whole = layout.of(layout.members(b).front());
            for (std::size_t at = 0; at < own.size; ++at) {
              const bool padding = own.first + at >= whole.first + whole.size;
              me.check(gradients.result(b)[at] == (padding ? 0 : wanted), "the next sum");
            }
          }
        }
      }
    });
  }
}

/// Throws when rank `at` of the group begins to reduce bucket 1.
struct throwing_reduction : hocket::plain_reduction {
  int at = 0;

  template <class Domain, class T, class Options>
  hocket::request all_reduce(const hocket::communicator<Domain>& comm, std::size_t bucket, std::span<T> values,
                             const Options& options, const std::source_location& site) const {
    if (bucket == 1 && comm.rank() == at) throw std::runtime_error("no codebook");
    return plain_reduction::all_reduce(comm, bucket, values, options, site);
  }
};

TEST_CASE("a reduction that throws when it begins ends the step on all ranks, with its message") {
  for (const int ranks : {2, 3, 5}) {
    on_ranks(ranks, [&](thread_rank& me) {
      throwing_reduction reduction;
      reduction.at = ranks - 1;
      std::string said;
      try {
        auto gradients = hocket::gradients<float>(me.comm(), small_layout(), hocket::last_microbatch, hocket::zero<0>,
                                                  {}, reduction);
        take_step(gradients, {me.rank(), ranks, 1, 0});
      } catch (const std::exception& caught) {
        said = caught.what();
      }
      const bool culprit = me.rank() == reduction.at;
      me.check(culprit ? said == "no codebook" : said.find("bucket 1 did not begin: no codebook") != std::string::npos,
               [&] { return said; });
      me.check(me.comm().revoked(), "the communicator is not revoked");
    });
  }
}

}  // namespace
