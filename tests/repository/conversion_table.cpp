// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prints the table "which conversion do I need" of docs/sharding.md, computed from the library's types.
//
//   conversion_table [--check PAGE]    with --check: fails if the page has another table

#include <hocket/shard/convert.hpp>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace {

using hocket::detail::conversion_kind;

template <class Placement>
const char* name_of();
template <>
const char* name_of<hocket::invariant>() {
  return "`invariant`";
}
template <>
const char* name_of<hocket::replicated>() {
  return "`replicated`";
}
template <>
const char* name_of<hocket::varying>() {
  return "`varying`";
}
template <>
const char* name_of<hocket::shard<0>>() {
  return "`shard<d>`";
}
template <>
const char* name_of<hocket::shard<1>>() {
  return "`shard<e>`";
}
template <>
const char* name_of<hocket::partial<hocket::sum>>() {
  return "`partial<sum>`";
}

const char* work_of(conversion_kind kind) {
  switch (kind) {
    case conversion_kind::nothing: return "nothing moves";
    case conversion_kind::slice: return "each takes its slice";
    case conversion_kind::keep_on_first: return "one rank keeps it, zeros on the others";
    case conversion_kind::pad_with_zeros: return "each puts its slice among zeros";
    case conversion_kind::gather_to_all: return "all_gather";
    case conversion_kind::exchange: return "all_to_all";
    case conversion_kind::reduce_to_all: return "all_reduce";
    case conversion_kind::reduce_to_slices: return "reduce_scatter";
    default: return nullptr;
  }
}

template <class From, class To>
void add_row(std::string& table) {
  using conversion = hocket::conversion<"axis", From, To>;
  if constexpr (conversion::allowed) {
    using backward = hocket::backward_t<conversion>;
    static_assert(backward::allowed, "each conversion must have a backward pass");
    table += std::string("| ") + name_of<From>() + " | " + name_of<To>() + " | " + work_of(conversion::kind) + " | " +
             work_of(backward::kind) + " |\n";
  }
}

template <class From>
void add_rows(std::string& table) {
  add_row<From, hocket::invariant>(table);
  add_row<From, hocket::replicated>(table);
  add_row<From, hocket::shard<0>>(table);
  if constexpr (From::value.sharded()) add_row<From, hocket::shard<1>>(table);
  add_row<From, hocket::partial<hocket::sum>>(table);
  add_row<From, hocket::varying>(table);
}

std::string conversion_table() {
  std::string table = "| from | to | forward | backward |\n|---|---|---|---|\n";
  add_rows<hocket::invariant>(table);
  add_rows<hocket::replicated>(table);
  add_rows<hocket::shard<0>>(table);
  add_rows<hocket::partial<hocket::sum>>(table);
  add_rows<hocket::varying>(table);
  return table;
}

/// Returns the table on a page, between its two markers.
std::string table_on(const char* path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  const std::string page = text.str();
  const std::string_view begin = "<!-- table: tests/repository/conversion_table.cpp -->\n";
  const std::size_t from = page.find(begin);
  const std::size_t to = page.find("<!-- end of table -->");
  if (from == std::string::npos || to == std::string::npos) return {};
  return page.substr(from + begin.size(), to - from - begin.size());
}

}  // namespace

int main(int argument_count, char** arguments) {
  const std::string table = conversion_table();
  if (argument_count == 3 && std::string_view(arguments[1]) == "--check") {
    if (table_on(arguments[2]) == table) return 0;
    std::fprintf(stderr, "%s has another table; put this one between its markers:\n", arguments[2]);
  }
  std::fputs(table.c_str(), stdout);
  return argument_count == 1 ? 0 : 1;
}
