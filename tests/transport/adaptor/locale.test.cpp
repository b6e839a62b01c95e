// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files for programs are the same in every locale, also in one whose decimal point is a comma.
#include <hocket/collective/all_reduce.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/draw/plan_svg.hpp>
#include <hocket/draw/schedule_svg.hpp>
#include <hocket/group/sim.hpp>
#include <hocket/plan/collective/ring_all_reduce.hpp>
#include <hocket/schedule/gpipe.hpp>
#include <hocket/transport/adaptor/traced.hpp>
#include <hocket/transport/link_costs.hpp>
#include <hocket/transport/link_costs_text.hpp>

#include <clocale>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace {

/// Sets a locale with a decimal comma, until it is destroyed.
class decimal_comma {
 public:
  decimal_comma() : previous_(std::setlocale(LC_ALL, nullptr)) {
    if (std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr) return;
    const std::string command = "localedef -i de_DE -f UTF-8 '" + folder_.path() + "/de_DE.UTF-8' >/dev/null 2>&1";
    if (std::system(command.c_str()) != 0) return;
    ::setenv("LOCPATH", folder_.path().c_str(), 1);
    static_cast<void>(std::setlocale(LC_ALL, "de_DE.UTF-8"));
  }
  decimal_comma(const decimal_comma&) = delete;
  decimal_comma& operator=(const decimal_comma&) = delete;
  ~decimal_comma() {
    std::setlocale(LC_ALL, previous_.c_str());
    ::unsetenv("LOCPATH");
  }

  bool is_set() const {
    char text[8];
    std::snprintf(text, sizeof text, "%.1f", 0.5);
    return text == std::string("0,5");
  }

 private:
  hocket_test::scratch_directory folder_;
  std::string previous_;
};

std::string trace_of_simulation() {
  using traced_domain = hocket::adaptor::traced<hocket::sim::domain>;
  hocket::sim::world world(3);
  std::vector<std::shared_ptr<hocket::adaptor::trace_log>> logs;
  auto comms = world.group_on<traced_domain>({0, 1, 2}, [&](const auto& domain, int rank) {
    logs.push_back(std::make_shared<hocket::adaptor::trace_log>(rank));
    return std::make_shared<traced_domain>(domain, logs.back());
  });
  std::vector<std::vector<double>> data(3, std::vector<double>(1000, 1.0));
  std::vector<hocket::request> requests;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    requests.push_back(hocket::all_reduce_async(comms[rank], hocket::in_place(data[rank]), std::plus<>{}));
  }
  world.run();
  std::vector<std::string> parts;
  for (const auto& log : logs) parts.push_back(log->events(0.25));
  return hocket::adaptor::trace_json(parts);
}

std::string text_of_costs() {
  hocket::transport::link_costs costs;
  costs.message_latency = 1.5e-6;
  return hocket::transport::to_text(costs);
}

std::string drawn_plan() {
  hocket::plan::cost_model costs;
  costs.latency = 1.25e-6;
  return hocket::plan::draw_svg(hocket::plan::ring_all_reduce{}, 3, 1000, costs) +
         hocket::plan::detail::decimal(1.5e20, 2);
}

std::string drawn_schedule() {
  namespace pipeline = hocket::plan::pipeline;
  return pipeline::draw_svg(pipeline::gpipe(2, 3), pipeline::costs(pipeline::stage_cost{1.5, 2.25}));
}

TEST_CASE("traces, pictures and files of costs do not depend on the locale") {
  struct writer {
    const char* what;
    std::string (*text)();
  };
  constexpr writer writers[] = {{"a trace", trace_of_simulation},
                                {"the costs of links", text_of_costs},
                                {"a drawing of a plan", drawn_plan},
                                {"a drawing of a schedule", drawn_schedule}};
  std::vector<std::string> texts;
  for (const writer& each : writers) texts.push_back(each.text());

  const decimal_comma locale;
  if (!locale.is_set()) {
    std::puts("skipped: files in another locale: there is no de_DE.UTF-8, and localedef can't make it");
    return;
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    INFO(writers[i].what);
    CHECK(writers[i].text() == texts[i]);
  }
  hocket::transport::link_costs read;
  CHECK(hocket::transport::read_costs(text_of_costs(), read) == "");
  CHECK(read.message_latency == 1.5e-6);
}

}  // namespace
