// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "draw/count.hpp"
#include "draw/picture.hpp"

#include <hocket/draw/plan.hpp>

#include <hocket/plan/collective/all_to_all.hpp>
#include <hocket/plan/collective/barrier.hpp>
#include <hocket/plan/collective/broadcast.hpp>
#include <hocket/plan/collective/double_tree.hpp>
#include <hocket/plan/collective/halving_doubling.hpp>
#include <hocket/plan/collective/one_shot.hpp>
#include <hocket/plan/collective/push.hpp>
#include <hocket/plan/collective/recursive_doubling.hpp>
#include <hocket/plan/collective/ring_all_reduce.hpp>
#include <hocket/plan/collective/two_shot.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace {

namespace plan = hocket::plan;
using draw_test::count;
using draw_test::faint_words;
using draw_test::malformed;
using draw_test::unfit_for_pages;

template <class Check>
void for_each_drawing(Check check) {
  const std::vector<plan::any_algorithm> plans{plan::ring_all_reduce{},
                                               plan::recursive_doubling{},
                                               plan::halving_doubling{},
                                               plan::double_tree{3},
                                               plan::one_shot{},
                                               plan::two_shot{},
                                               plan::push_all_reduce{},
                                               plan::binomial_broadcast{},
                                               plan::direct_broadcast{},
                                               plan::pairwise_all_to_all{},
                                               plan::dissemination_barrier{}};
  for (const plan::any_algorithm& algorithm : plans) {
    for (const int ranks : {1, 2, 3, 5, 8, 16}) {
      INFO(algorithm.name() << " over " << ranks << " ranks");
      check(algorithm, ranks);
    }
  }
}

std::size_t actions_of(const plan::any_algorithm& algorithm, int ranks) {
  std::size_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank)
    for (unsigned lane = 0; lane < algorithm.shape(ranks).lanes; ++lane) sum += algorithm.length(ranks, rank, lane);
  return sum;
}

}  // namespace

TEST_CASE("to_string describes an action in words", "[plan][to_string]") {
  using plan::to_string;
  CHECK(to_string(plan::joined(plan::send(2, {3, 2}, plan::out(3), 1))) ==
        "send out[3..5) to rank 2 on channel 1 (join)");
  CHECK(to_string(plan::receive(0, {7}, plan::scratch(1))) ==
        "receive scratch[1] from rank 0, with the length of chunk[7]");
  CHECK(to_string(plan::receive_reduce(1, {4}, plan::in(4), plan::out(4), plan::operand_order::message_first)) ==
        "receive_reduce out[4] = message op in[4] from rank 1");
  CHECK(to_string(plan::receive_reduce(1, {4}, plan::in(4), plan::out(4), plan::operand_order::local_first)) ==
        "receive_reduce out[4] = in[4] op message from rank 1");
  CHECK(to_string(plan::load(3, {1}, plan::out(1), plan::out(1))) == "load rank 3's out[1] to out[1]");
  CHECK(to_string(plan::load_reduce({0}, plan::in(0), plan::out(0))) ==
        "load_reduce out[0] = op over all ranks' in[0]");
  CHECK(to_string(plan::signal(plan::all_peers, 2)) == "signal tag 2 to all peers");
  CHECK(to_string(plan::send(1, {0, 0}, plan::in(0))) == "send nothing to rank 1");
}

TEST_CASE("different actions of a plan have different texts", "[plan][to_string][law]") {
  for_each_drawing([](const plan::any_algorithm& algorithm, int ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      for (unsigned lane = 0; lane < algorithm.shape(ranks).lanes; ++lane) {
        std::map<std::string, plan::action> seen;
        for (unsigned i = 0; i < algorithm.length(ranks, rank, lane); ++i) {
          const plan::action what = algorithm.at(ranks, rank, lane, i);
          REQUIRE(seen.emplace(to_string(what), what).first->second == what);
        }
      }
    }
    const std::string table = to_string(algorithm, ranks);
    const std::size_t lanes = algorithm.shape(ranks).lanes;
    const std::size_t headings = 1 + static_cast<std::size_t>(ranks) * (lanes == 1 ? 1 : 1 + lanes);
    REQUIRE(count(table, "\n") == headings + actions_of(algorithm, ranks));
  });
}

TEST_CASE("the text drawing shows each action once, in the order of its lane", "[plan][draw]") {
  CHECK(plan::draw_text(plan::ring_all_reduce{}, 2) ==
        "ring over 2 ranks: all_reduce\n"
        "  step    0    1    2    3\n"
        "rank 0 >1:0 +1:1 >1:1 <1:0\n"
        "rank 1 >0:1 +0:0 >0:0 <0:1\n"
        "  >r:c   send chunk c to rank r\n"
        "  <r:c   receive chunk c from rank r\n"
        "  +r:c   receive chunk c from rank r and combine\n");
  for_each_drawing([](const plan::any_algorithm& algorithm, int ranks) {
    const std::string drawing = plan::draw_text(algorithm, ranks);
    REQUIRE(std::all_of(drawing.begin(), drawing.end(), [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
    REQUIRE(drawing.find(" \n") == std::string::npos);
    std::istringstream lines(drawing);
    std::string line;
    std::getline(lines, line);
    std::getline(lines, line);
    for (int rank = 0; rank < ranks; ++rank) {
      for (unsigned lane = 0; lane < algorithm.shape(ranks).lanes; ++lane) {
        REQUIRE(std::getline(lines, line));
        std::istringstream words(line);
        std::vector<std::string> symbols;
        for (std::string word; words >> word;)
          if (word.find_first_of("=><+@#^!?") != std::string::npos) symbols.push_back(word);
        REQUIRE(symbols.size() == algorithm.length(ranks, rank, lane));
        for (unsigned i = 0; i < symbols.size(); ++i)
          REQUIRE(symbols[i] == plan::to_symbol(algorithm.at(ranks, rank, lane, i)));
      }
    }
  });
}

TEST_CASE("the SVG is well-formed, self-contained, and shows each action once", "[plan][draw]") {
  for_each_drawing([](const plan::any_algorithm& algorithm, int ranks) {
    const std::string drawing = plan::draw_svg(algorithm, ranks);
    REQUIRE(malformed(drawing) == "");
    REQUIRE(unfit_for_pages(drawing) == "");
    REQUIRE(count(drawing, "<g class=\"action\">") == actions_of(algorithm, ranks));
    REQUIRE(count(drawing, "<script") + count(drawing, "href") + count(drawing, "@import") == 0);
    REQUIRE(count(drawing, "nan") + count(drawing, "inf") + count(drawing, "=\"-") == 0);
    REQUIRE(count(drawing, "aria-label=") == 1);
    for (std::size_t at = drawing.find("<g class=\"action\">"); at != std::string::npos;
         at = drawing.find("<g class=\"action\">", at + 1)) {
      const std::string group = drawing.substr(at, drawing.find("</g>", at) - at);
      REQUIRE(count(group, "<rect") >= 1);  // a visible part
    }
  });
}

TEST_CASE("the SVG names each action and draws each message", "[plan][draw]") {
  const std::string drawing = plan::draw_svg(plan::ring_all_reduce{}, 4);
  CHECK(count(drawing, "class=\"message\"") == 24);
  CHECK(count(drawing, "rank 2, step 0: send in[2] to rank 3, 256 KiB, 0 ns to 0 ns") == 1);
  CHECK(count(plan::draw_svg(plan::two_shot{}, 4), "class=\"load\"") == 4 * 3 + 4 * 3);
  CHECK(count(plan::draw_svg(plan::one_shot{}, 4), "class=\"flag\"") == 2 * 4 * 3);
  CHECK(count(plan::draw_svg(plan::push_all_reduce{}, 4), "class=\"load\"") == 0);
}

TEST_CASE("the words of a plan are readable on light and on dark pages", "[plan][draw]") {
  for (const plan::any_algorithm& algorithm :
       {plan::any_algorithm(plan::ring_all_reduce{}), plan::any_algorithm(plan::double_tree{3}),
        plan::any_algorithm(plan::two_shot{}), plan::any_algorithm(plan::push_all_reduce{})}) {
    CHECK(faint_words(plan::draw_svg(algorithm, 4)) == "");
  }
}

TEST_CASE("a plan with zero costs and an empty vector can be drawn", "[plan][draw]") {
  const std::string drawing = plan::draw_svg(plan::ring_all_reduce{}, 3, 0, plan::cost_model{});
  CHECK(malformed(drawing) == "");
  CHECK(count(drawing, "<g class=\"action\">") == 3 * 8);
}

TEST_CASE("numbers, times and sizes have short texts with a decimal point", "[plan][draw]") {
  using plan::detail::decimal;
  CHECK(decimal(0, 2) == "0");
  CHECK(decimal(1.5, 2) == "1.5");
  CHECK(decimal(-0.001, 2) == "0");
  CHECK(decimal(-2.25, 1) == "-2.3");
  CHECK(decimal(10.05, 2) == "10.05");
  CHECK(plan::detail::time_text(3.2e-5) == "32 \xC2\xB5s");
  CHECK(plan::detail::bytes_text(1536) == "1.5 KiB");
}

TEST_CASE("the check for well-formed XML can fail", "[plan][draw]") {
  CHECK(malformed("<a><b/></a>") == "");
  CHECK(malformed("<a><b></a>") != "");
  CHECK(malformed("<a b=\"></a>") != "");
  CHECK(malformed("<a>1 & 2</a>") != "");
}

TEST_CASE("the checks of pictures can fail", "[plan][draw]") {
  const std::string drawing = plan::draw_svg(plan::ring_all_reduce{}, 4);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = drawing;
    REQUIRE(count(text, from) >= 1);
    return text.replace(text.find(from), from.size(), to);
  };
  CHECK(unfit_for_pages(drawing) == "");
  CHECK(unfit_for_pages(changed("width=\"1200\"", "width=\"1300\"")) != "");
  CHECK(unfit_for_pages(changed("max-width:100%;", "")) != "");
  CHECK(unfit_for_pages(changed("@media (prefers-color-scheme:dark)", "@media (print)")) != "");
  CHECK(unfit_for_pages(changed("class=\"edge\"", "class=\"egde\"")) != "");
  CHECK(unfit_for_pages(changed("x=\"24\"", "x=\"1224\"")) != "");
  CHECK(faint_words(drawing) == "");
  CHECK(faint_words(changed(".hocket .heading{fill:#f3f4f6}", "")) != "");
  CHECK(faint_words(changed(".hocket .inside{fill:#ffffff}", ".hocket .inside{fill:#888888}")) != "");
  CHECK(faint_words(changed("fill-opacity:.26", "fill-opacity:1")) != "");
}
