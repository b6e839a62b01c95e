// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Block lengths for tests, and checks of calls with counts that all ranks know against the sequential evaluation of
/// their plans.
#pragma once

#include "collective/cases.hpp"

#include <hocket/plan/layout.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hocket_test {

using lengths = std::vector<std::size_t>;

inline std::string text_of(const lengths& all) {
  std::string text;
  for (const std::size_t each : all) text += (text.empty() ? "" : ", ") + std::to_string(each);
  return '{' + text + '}';
}

/// Lengths below `end` for `count` blocks, about a third of them 0.
inline lengths random_lengths(std::size_t count, std::size_t end, int seed) {
  lengths all(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = random_bits(seed, i);
    all[i] = bits % 3 == 0 ? 0 : (bits >> 8) % end;
  }
  return all;
}

/// Lengths for `ranks` blocks: all 0, one above 0 (the first, the last), all equal, odd, decreasing, random, and random
/// with large values.
inline std::vector<lengths> lengths_for(int ranks) {
  const auto count = static_cast<std::size_t>(ranks);
  lengths first(count), last(count), odd(count), falling(count);
  first.front() = 41;
  last.back() = 1003;
  for (std::size_t i = 0; i < count; ++i) {
    odd[i] = 2 * i + 1;
    falling[i] = 255 / (i + 1);
  }
  return {lengths(count),
          first,
          last,
          lengths(count, 7),
          odd,
          falling,
          random_lengths(count, 300, 1),
          random_lengths(count, 40, 2),
          random_lengths(count, 50'000, 3)};
}

inline std::size_t sum_of(const lengths& all) { return std::accumulate(all.begin(), all.end(), std::size_t{0}); }

/// Begin of each block, and end of the last one.
inline lengths offsets_of(const lengths& all) {
  lengths offsets(all.size() + 1);
  std::partial_sum(all.begin(), all.end(), offsets.begin() + 1);
  return offsets;
}

/// Tables with the number of elements that rank s sends to rank d: table[s][d].
inline std::vector<std::vector<lengths>> tables_for(int ranks) {
  const auto count = static_cast<std::size_t>(ranks);
  std::vector<lengths> none(count, lengths(count)), one = none, triangle = none, many = none, large = none;
  one.back().front() = 65;
  for (std::size_t s = 0; s < count; ++s) {
    for (std::size_t d = 0; d <= s; ++d) triangle[s][d] = 3 * s + d;
    many[s] = random_lengths(count, 300, static_cast<int>(s) + 4);
    large[s] = random_lengths(count, 40'000, static_cast<int>(s) + 40);
  }
  return {none, one, triangle, many, large};
}

inline lengths column_of(const std::vector<lengths>& table, std::size_t d) {
  lengths column;
  for (const lengths& row : table) column.push_back(row[d]);
  return column;
}

struct uneven_case {
  plan::any_algorithm chosen;
  lengths blocks;
  bool in_place = false;
  std::size_t offset = 0;  ///< elements after an aligned address

  std::string text() const {
    return std::string(plan::to_string(chosen.collective().kind)) + "_v by " + chosen.name() + " of " +
           text_of(blocks) + (in_place ? ", in place" : "") + (offset != 0 ? ", misaligned" : "");
  }
};

inline std::vector<uneven_case> cases_for(int ranks, const std::vector<plan::any_algorithm>& plans) {
  std::vector<uneven_case> cases;
  for (const plan::any_algorithm& chosen : plans) {
    for (lengths each : lengths_for(ranks)) {
      for (std::size_t& length : each) length = bearable(length);
      cases.push_back({chosen, each, cases.size() % 2 == 1, cases.size() / 2 % 2});
    }
  }
  return cases;
}

/// Runs `call(me, in, out, lengths, options)` for each case and compares the results.
template <class T, class Op, class Call>
void check_uneven(int ranks, const std::vector<plan::any_algorithm>& plans, const Op& op, Call call) {
  struct expected {
    uneven_case call;
    lengths offsets;
    plan::layout layout;
    std::vector<std::vector<T>> inputs, outputs;
  };
  std::vector<expected> all;
  for (const uneven_case& each : cases_for(ranks, plans)) {
    all.push_back({each, offsets_of(each.blocks), {}, {}, {}});
    expected& made = all.back();
    made.layout = plan::layout::given(made.offsets.data(), static_cast<std::uint32_t>(ranks),
                                      each.chosen.shape(ranks).chunks_per_block);
    for (int rank = 0; rank < ranks; ++rank) {
      made.inputs.push_back(samples<T>(rank, input_size(each.chosen, made.layout, rank)));
    }
    made.outputs = evaluate<T, Op>(each.chosen, ranks, made.layout, made.inputs, op, each.in_place);
  }
  on_ranks(ranks, [&](thread_rank& me) {
    const auto rank = static_cast<std::size_t>(me.rank());
    for (const expected& each : all) {
      me.at([&] { return each.call.text(); });
      const std::vector<T>& input = each.inputs[rank];
      const std::vector<T>& output = each.outputs[rank];
      const plan::extent own = each.layout.block(static_cast<std::uint32_t>(rank));
      const plan::collective what = each.call.chosen.collective();
      const bool gathers = what.in_part(me.rank()) == plan::buffer_part::own_block;
      guarded<T> whole(each.layout.size(), each.call.offset);
      guarded<T> block(own.size, each.call.offset);
      const auto part = each.call.in_place ? whole.elements().subspan(own.begin, own.size) : block.elements();
      const auto held = [&](plan::buffer_part which) {
        return which == plan::buffer_part::nothing     ? std::span<T>()
               : which == plan::buffer_part::own_block ? part
                                                       : whole.elements();
      };
      const std::span<T> in = held(what.in_part(me.rank()));
      const std::span<T> out = held(what.out_part(me.rank()));
      std::copy(input.begin(), input.end(), in.begin());
      trace steps;
      lengths counts = each.call.blocks;
      call(me, std::span<const T>(in), out, counts,
           hocket::with(hocket::algorithm(each.call.chosen), hocket::observe_steps(steps.observer())));

      const std::span<const T> found = out;
      me.check(same_bytes(found, std::span<const T>(output)),
               [&] { return first_difference(found, std::span<const T>(output)); });
      me.check(whole.intact() && block.intact(), "wrote outside the buffers");
      // In place, only the result may have changed; otherwise, only `out`.
      for (std::size_t i = 0; i < in.size(); ++i) {
        if (each.call.in_place && !out.empty() && (gathers || i - own.begin < own.size)) continue;
        if (!me.check(std::memcmp(&in[i], &input[i], sizeof(T)) == 0, "changed `in`")) break;
      }
      const bool one_buffer = each.call.in_place || hocket::reduction<Op, T>::prepares;
      const std::string wrong =
          difference(steps.events(),
                     {one_buffer ? each.call.chosen.for_in_place() : each.call.chosen, ranks, me.rank(), 0,
                      sizeof(typename hocket::reduction<Op, T>::partial), static_cast<std::size_t>(-1), &each.layout});
      me.check(wrong.empty(), wrong);
    }
  });
}

}  // namespace hocket_test
