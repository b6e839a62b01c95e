// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: (use of deleted function|call to deleted member function).*line
//
// The line is part of the mapped file, which is gone at the end of the statement.
#include <hocket/data/text_lines.hpp>

#include <string_view>

std::string_view misuse() { return hocket::data::text_lines("train.jsonl").line(0); }
