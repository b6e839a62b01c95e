// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Files of samples: what is read from them, and the errors that damaged ones have.
#include <hocket/core/error.hpp>
#include <hocket/data/indexed_dataset.hpp>
#include <hocket/data/npy_file.hpp>
#include <hocket/data/permutation.hpp>
#include <hocket/data/text_lines.hpp>
#include <hocket/data/token_file.hpp>

#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace std::string_literals;
using hocket::errc;
using namespace hocket::data;

template <class Number>
std::string bytes_of_numbers(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

template <class Number>
std::string little_endian(Number number) {
  return bytes_of_numbers(std::vector<Number>{number});
}

std::string written(const hocket_test::scratch_directory& scratch, const std::string& name, std::string_view bytes) {
  scratch.write(name, std::string(bytes));
  return scratch.path() + '/' + name;
}

/// Returns the message of the error that `body` raises, which must have the code; empty if it raises none.
std::string error_of(errc code, const std::function<void()>& body) {
  try {
    body();
  } catch (const hocket::error& cause) {
    CHECK(cause.code() == make_error_code(code));
    return cause.reason();
  }
  return "";
}

/// An indexed data set: sequences {1, 2, 3}, {}, {4}, {5, 6}, in documents of 2, 0 and 2 sequences.
struct indexed_bytes {
  std::string index, tokens;
};
template <class Token>
indexed_bytes make_indexed(std::uint8_t type) {
  const std::vector<std::int64_t> offsets{0, 3 * sizeof(Token), 3 * sizeof(Token), 4 * sizeof(Token)};
  return {"MMIDIDX\0\0"s + little_endian<std::uint64_t>(1) + little_endian(type) + little_endian<std::uint64_t>(4) +
              little_endian<std::uint64_t>(4) + bytes_of_numbers<std::int32_t>({3, 0, 1, 2}) +
              bytes_of_numbers(offsets) + bytes_of_numbers<std::int64_t>({0, 2, 2, 4}),
          bytes_of_numbers<Token>({1, 2, 3, 4, 5, 6})};
}

template <class Token>
void check_indexed(const hocket_test::scratch_directory& scratch, std::uint8_t type) {
  const indexed_bytes bytes = make_indexed<Token>(type);
  const std::string name = scratch.path() + "/set";
  written(scratch, "set.idx", bytes.index);
  written(scratch, "set.bin", bytes.tokens);
  const indexed_dataset tested(name);
  indexed_dataset::batch_type found;
  for (std::uint64_t i = 0; i < tested.size(); ++i) tested.append(i, found);
  CHECK(found == indexed_dataset::batch_type{{1, 2, 3}, {}, {4}, {5, 6}});
  const indexed_sequences& all = tested.sequences();
  REQUIRE(all.documents() == 3);
  CHECK(all.document(0) == positions{0, 2});
  CHECK(all.document(1) == positions{2, 2});
  CHECK(all.document(2) == positions{2, 4});
  CHECK(all.tokens_of(3) == 2);
}

std::string npy(std::string header, std::string_view elements, char version = 1) {
  const std::string length = version == 1 ? little_endian(static_cast<std::uint16_t>(header.size()))
                                          : little_endian(static_cast<std::uint32_t>(header.size()));
  return "\x93NUMPY"s + version + '\0' + length + header + std::string(elements);
}

std::vector<std::string> lines_of(std::string_view text) {
  const line_index index(text);
  std::vector<std::string> result;
  for (std::uint64_t i = 0; i < index.size(); ++i) result.emplace_back(index[i]);
  return result;
}

}  // namespace

TEST_CASE("samples of a token file overlap by the token that the model predicts last") {
  const hocket_test::scratch_directory scratch;
  const std::vector<std::uint32_t> numbers{0, 1, 2, 3, 4, 5, 65535, 7, 8, 9};
  const std::string narrow =
      written(scratch, "16", bytes_of_numbers(std::vector<std::uint16_t>(numbers.begin(), numbers.end())));
  const std::string wide = written(scratch, "32", bytes_of_numbers(numbers));
  for (const auto& [path, type] : {std::pair(narrow, token_type::u16), std::pair(wide, token_type::u32)}) {
    const token_file tested(path, type);
    CHECK(tested.size() == numbers.size());
    const token_samples samples = tested.samples(3);
    REQUIRE(samples.size() == 3);
    token_samples::batch_type batch;
    for (const std::uint64_t sample : {1U, 0U, 2U}) samples.append(sample, batch);
    CHECK(batch == std::vector<std::uint32_t>{3, 4, 5, 65535, 0, 1, 2, 3, 65535, 7, 8, 9});
    for (std::uint64_t length = 1; length <= 11; ++length)
      CHECK(tested.samples(length).size() == (numbers.size() - 1) / length);
    CHECK_THROWS_WITH(samples.append(3, batch), Catch::Contains("sample 3 is asked for, and there are 3"));
    CHECK_THROWS_WITH(tested.samples(0), Catch::Contains("at least one token"));
    CHECK_THROWS_WITH(tested.tokens().append(8, 3, batch), Catch::Contains("has 10 tokens, and 3 from number 8"));
  }
  const token_file empty(written(scratch, "empty", ""));
  CHECK(empty.samples(1).size() == 0);
  CHECK(error_of(errc::corrupted, [&] { token_file(written(scratch, "odd", "12345"), token_type::u32); }) ==
        "'" + scratch.path() + "/odd" + "' at byte 4: the file ends within a token of 4 bytes");
}

TEST_CASE("files that can't be mapped are errors that name them") {
  const hocket_test::scratch_directory scratch;
  const std::string missing = scratch.path() + "/missing", folder = scratch.path();
  const auto message = [](const std::string& path) { return error_of(errc::system, [&] { token_file tested(path); }); };
  CHECK(message(missing) == "cannot map '" + missing + "': No such file or directory");
  CHECK(message(folder) == "cannot map '" + folder + "': it is not a regular file");
  CHECK(error_of(errc::system, [&] { npy_file tested(missing); }) != "");
  CHECK(error_of(errc::system, [&] { text_lines tested(missing); }) != "");
  CHECK(error_of(errc::system, [&] { indexed_dataset tested(missing); }) ==
        "cannot map '" + missing + ".idx': No such file or directory");
}

TEST_CASE("indexed data sets have sequences and documents, in each type of integers") {
  const hocket_test::scratch_directory scratch;
  check_indexed<std::uint8_t>(scratch, 1);
  check_indexed<std::int8_t>(scratch, 2);
  check_indexed<std::int16_t>(scratch, 3);
  check_indexed<std::int32_t>(scratch, 4);
  check_indexed<std::int64_t>(scratch, 5);
  check_indexed<std::uint16_t>(scratch, 8);
}

TEST_CASE("a damaged index is refused, with file and offset, before any of its numbers is used") {
  struct fault {
    std::size_t at;     // offset in the index, or in the tokens
    std::string bytes;  // put there
    std::string expected;
    bool in_tokens = false;
  };
  const std::string most = little_endian(~std::uint64_t{0});
  const std::vector<fault> faults{
      {0, "X", "'x.idx' at byte 0: it is no index"},
      {8, "X", "'x.idx' at byte 0: it is no index"},
      {9, little_endian<std::uint64_t>(2), "'x.idx' at byte 9: version 2 is unknown"},
      {17, "\x06", "'x.idx' at byte 17: type 6 is no type of integers"},
      {17, "\xff", "'x.idx' at byte 17: type 255"},
      {18, most, "'x.idx' at byte 18: 18446744073709551615 sequences need more than the 80 bytes"},
      {18, little_endian<std::uint64_t>(7), "'x.idx' at byte 18: 7 sequences need more"},
      {26, most, "'x.idx' at byte 26: 18446744073709551615 document entries need more than the 32 bytes"},
      {26, little_endian<std::uint64_t>(5), "'x.idx' at byte 26: 5 document entries need more"},
      {106, most, "'x.idx' at byte 106: the last document ends at sequence -1 instead of 4"},
      {38, little_endian<std::int32_t>(-1), "'x.idx' at byte 38: sequence 1 has -1 tokens"},
      {46, little_endian<std::int32_t>(3), "'x.idx' at byte 74: sequence 3 has 12 bytes at 16, but 'x.bin' has 24"},
      {46, little_endian<std::int32_t>(0x7fffffff), "'x.idx' at byte 74: sequence 3 has 8589934588 bytes"},
      {50, most, "'x.idx' at byte 50: sequence 0 has 12 bytes at -1"},
      {50, little_endian<std::int64_t>(INT64_MAX),
       "'x.idx' at byte 50: sequence 0 has 12 bytes at 9223372036854775807"},
      {90, little_endian<std::int64_t>(5), "'x.idx' at byte 82: document 0 has sequences 0 to 5, of 4"},
      {82, little_endian<std::int64_t>(-1), "'x.idx' at byte 82: document 0 has sequences -1 to 2"},
      {90, little_endian<std::int64_t>(3), "'x.idx' at byte 90: document 1 has sequences 3 to 2"},
      {4, little_endian<std::int32_t>(-7), "'x.bin' at byte 4: token -7 is no number of 32 bits", true},
  };
  const indexed_bytes valid = make_indexed<std::int32_t>(4);
  const auto read_all = [](const indexed_bytes& from) {
    const auto view = [](const std::string& text) { return std::as_bytes(std::span(text)); };
    const indexed_sequences all({"x.idx", view(from.index)}, {"x.bin", view(from.tokens)});
    indexed_sequences::batch_type batch;
    for (std::uint64_t i = 0; i < all.size(); ++i) all.append(i, batch);
    for (std::uint64_t i = 0; i < all.documents(); ++i) all.document(i);
  };
  CHECK_NOTHROW(read_all(valid));
  for (const fault& each : faults) {
    indexed_bytes damaged = valid;
    (each.in_tokens ? damaged.tokens : damaged.index).replace(each.at, each.bytes.size(), each.bytes);
    CHECK_THAT(error_of(errc::corrupted, [&] { read_all(damaged); }), Catch::StartsWith(each.expected));
  }
  for (std::size_t length = 0; length < valid.index.size(); ++length) {
    if (error_of(errc::corrupted, [&] { read_all({valid.index.substr(0, length), valid.tokens}); }).empty())
      FAIL("an index of " << length << " bytes is accepted");
  }
  for (std::size_t more = 0; more < 20; ++more) {  // 4 bytes are the modes of 4 sequences
    const indexed_bytes longer{valid.index + std::string(more, '\0'), valid.tokens};
    const std::string expected = "'x.idx' at byte 114: " + std::to_string(more) + " bytes follow the documents";
    const std::string found = error_of(errc::corrupted, [&] { read_all(longer); });
    CHECK_THAT(found, Catch::StartsWith(more == 0 || more == 4 ? "" : expected));
    CHECK(found.empty() == (more == 0 || more == 4));
  }
  CHECK_THROWS_WITH(read_all({valid.index, valid.tokens.substr(1)}), Catch::Contains("'x.bin' has 23"));
  const indexed_bytes wide = make_indexed<std::int64_t>(5);
  CHECK_THROWS_WITH(
      read_all({wide.index, wide.tokens.substr(0, 8) + little_endian(INT64_MAX) + wide.tokens.substr(16)}),
      Catch::Contains("'x.bin' at byte 8: token 9223372036854775807"));
}

TEST_CASE("rows of .npy files are read, of each version of the format") {
  const hocket_test::scratch_directory scratch;
  const std::vector<float> numbers{1, 2, 3, 4, 5, 6};
  const std::string elements = bytes_of_numbers(numbers);
  for (const char version : {'\1', '\2', '\3'}) {
    const npy_file tested(written(
        scratch, "a.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }   \n", elements, version)));
    CHECK(tested.size() == 3);
    CHECK(tested.row_bytes() == 8);
    const npy_rows<float> rows(tested);
    std::vector<float> batch;
    for (const std::uint64_t row : {2U, 0U}) rows.append(row, batch);
    CHECK(batch == std::vector<float>{5, 6, 1, 2});
    CHECK_THROWS_WITH(rows.append(3, batch), Catch::Contains("row 3 of '") && Catch::Contains("there are 3"));
    CHECK_THROWS_WITH(npy_rows<double>(tested), Catch::Contains("'f' with 4 bytes, and the program reads 'f' with 8"));
    CHECK_THROWS_WITH(npy_rows<int>(tested), Catch::Contains("the program reads 'i'"));
  }
  struct accepted {
    std::string header;
    std::uint64_t rows, row_bytes;
  };
  for (const accepted& each : {
           accepted{"{\"shape\":(6,),\"fortran_order\":True,\"descr\":\"=f4\"}", 6, 4},
           accepted{"{'descr': '|u1', 'fortran_order': False, 'shape': (), }", 1, 1},
           accepted{"{'descr': '|b1', 'fortran_order': False, 'shape': (2, 3, 4), }", 2, 12},
           accepted{"{'descr': '<c8', 'fortran_order': False, 'shape': (3, 0), }", 3, 0},
           accepted{"{'descr': '<i8', 'fortran_order': False, 'shape': (0, 99999999999999), }", 0, 0},
       }) {
    const npy_file tested(written(scratch, "b.npy", npy(each.header, elements)));
    CHECK(tested.size() == each.rows);
    CHECK(tested.row_bytes() == each.row_bytes);
  }
}

TEST_CASE("a damaged .npy file is refused, with file and offset") {
  struct fault {
    std::string bytes, expected;
    errc code = errc::corrupted;
  };
  const std::string order = "'fortran_order': False, ";
  for (const fault& each : {
           fault{"", "at byte 0: it is no .npy file"},
           fault{"\x93NUMPX\1\0"s, "at byte 0: it is no .npy file"},
           fault{"\x93NUMPY\4\0\0\0"s, "at byte 6: version 4"},
           fault{"\x93NUMPY\1\0\1"s, "at byte 9: the file ends before the length"},
           fault{"\x93NUMPY\1\0\xff\xff{}"s, "at byte 8: a header of 65535 bytes is more than the 2 that follow"},
           fault{"\x93NUMPY\2\0\xff\xff\xff\xff{}"s, "at byte 8: a header of 4294967295 bytes"},
           fault{npy("", ""), "at byte 10: the header has no '{' here"},
           fault{npy("{}", ""), "at byte 12: the header lacks descr"},
           fault{npy("{" + order + "'shape': (1,)}", "x"), "the header lacks descr"},
           fault{npy("{'descr'", ""), "at byte 18: the header has no ':' here"},
           fault{npy("{'descr", ""), "at byte 12: the header ends within a text"},
           fault{npy("{'other': 1}", ""), "the header has an unknown key"},
           fault{npy("{'descr': [('a', '<f4')], }", ""), "at byte 20: elements with fields are not supported",
                 errc::invalid_argument},
           fault{npy("{'descr': '|O', }", ""), "is no number of a supported size", errc::invalid_argument},
           fault{npy("{'descr': '<f3', }", ""), "is no number of a supported size", errc::invalid_argument},
           fault{npy("{'descr': '<U8', }", ""), "is no number of a supported size", errc::invalid_argument},
           fault{npy("{'descr': '<f99999999999999999999', }", ""), "is no number of a supported size",
                 errc::invalid_argument},
           fault{npy("{'descr': '>f4', }", ""), "the elements are big-endian", errc::invalid_argument},
           fault{npy("{'fortran_order': 0, }", ""), "neither True nor False"},
           fault{npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2)}", "1234"), "is in Fortran order",
                 errc::invalid_argument},
           fault{npy("{'shape': (-1,), }", ""), "something else than numbers"},
           fault{npy("{'shape': (99999999999999999999,), }", ""), "something else than numbers"},
           fault{npy("{'shape': (1 2), }", ""), "has no ')' here"},
           fault{npy("{'shape': (" + std::string(200, '1') + ")}", ""), "something else than numbers"},
           fault{npy("{'descr': '<f4', " + order + "'shape': (2,)} x", "12345678"), "continues after its end"},
           fault{npy("{'descr': '<f4', " + order + "'shape': (2,)}", "1234567"), "more bytes than the 7 that follow"},
           fault{npy("{'descr': '<f8', " + order + "'shape': (4294967296, 4294967296, 4294967296)}", "12345678"),
                 "more bytes than the 8 that follow"},
           fault{npy("{'descr': '<f8', " + order + "'shape': (2305843009213693952,)}", "12345678"),
                 "more bytes than the 8"},
           fault{npy("{'descr': '<f4', " + order + "'shape': (4611686018427387904, 0)}", ""),
                 "4611686018427387904 rows without elements, and the file has", errc::invalid_argument},
           fault{npy("{'descr': '|u1', " + order + "'shape': (2000, 7, 0)}", std::string(1900, 'x')),
                 "2000 rows without elements, and the file has", errc::invalid_argument},
       }) {
    const auto bytes = std::as_bytes(std::span(each.bytes));
    const std::string found = error_of(each.code, [&] { read_npy_header({"x.npy", bytes}); });
    CHECK_THAT(found, Catch::StartsWith("'x.npy' at byte ") && Catch::Contains(each.expected));
  }
}

TEST_CASE("lines of text are found, whatever ends them") {
  using list = std::vector<std::string>;
  CHECK(lines_of("").empty());
  CHECK(lines_of("a") == list{"a"});
  CHECK(lines_of("a\n") == list{"a"});
  CHECK(lines_of("\n") == list{""});
  CHECK(lines_of("\n\nb\r\n\r\n\rc\r") == list{"", "", "b", "", "\rc\r"});
  std::string text;
  list expected;
  for (std::size_t i = 0; i < 100; ++i) {
    expected.emplace_back(i % 7, 'x');
    text += expected.back() + "\n";
    CHECK(lines_of(text) == expected);
  }
  const hocket_test::scratch_directory scratch;
  const text_lines tested(written(scratch, "a.txt", text));
  text_lines::batch_type batch;
  tested.append(99, batch);
  tested.append(6, batch);
  CHECK(batch == text_lines::batch_type{"x", "xxxxxx"});
  CHECK_THROWS_WITH(tested.line(100), Catch::Contains("line 100 of '") && Catch::Contains("there are 100"));
}
