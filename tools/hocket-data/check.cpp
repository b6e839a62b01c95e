// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "check.hpp"

#include <hocket/core/checksum.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/data/indexed_dataset.hpp>
#include <hocket/data/npy_file.hpp>
#include <hocket/data/tar_shards.hpp>
#include <hocket/data/text_lines.hpp>
#include <hocket/data/token_file.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace data_tool {
namespace {

using hocket::detail::concat;

/// The findings of one kind: how many, and the first of them.
class finding_list {
 public:
  finding_list(const char* kind, std::uint64_t most) : kind_(kind), most_(most) {}

  void add(std::string what) {
    if (count_++ < most_) first_.push_back(std::move(what));
  }
  bool print() const {
    if (count_ == 0) return false;
    std::printf("  %s: %llu\n", kind_, static_cast<unsigned long long>(count_));
    for (const std::string& each : first_) std::printf("    %s\n", each.c_str());
    if (count_ > first_.size()) std::printf("    ...\n");
    return true;
  }

 private:
  const char* kind_;
  std::uint64_t most_, count_ = 0;
  std::vector<std::string> first_;
};

/// Finds values that occur again, by 64-bit checksums: two different samples have the same one in 1 of 2^64 cases.
class repetitions {
 public:
  void add(std::span<const std::byte> bytes, std::uint64_t sample) {
    seen_.emplace_back(hocket::detail::checksum(bytes), sample);
  }
  void list_in(finding_list& to, const char* what) {
    std::sort(seen_.begin(), seen_.end());
    std::vector<std::pair<std::uint64_t, std::uint64_t>> found;  // a sample, and the first with the same value
    for (std::size_t i = 1, first = 0; i < seen_.size(); ++i) {
      if (seen_[i].first == seen_[first].first) found.emplace_back(seen_[i].second, seen_[first].second);
      else first = i;
    }
    std::sort(found.begin(), found.end());
    for (const auto& [sample, first] : found) to.add(concat({"sample ", sample, " ", what, " sample ", first}));
  }

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> seen_;
};

class checker {
 public:
  explicit checker(const check_options& options)
      : options_(options), empty_("empty", options.most_listed), out_of_range_("out of range", options.most_listed),
        damaged_("damaged", options.most_listed), duplicates_("duplicates", options.most_listed) {}

  void check(const hocket::data::token_file& file) {
    const auto samples = file.samples(options_.length);
    check_tokens(samples.size(), [&](std::uint64_t i, auto& tokens) { samples.append(i, tokens); });
  }

  void check(const hocket::data::indexed_dataset& file) {
    const auto& sequences = file.sequences();
    check_tokens(sequences.size(), [&](std::uint64_t i, auto& tokens) { sequences.append(i, tokens); });
  }

  void check(const hocket::data::npy_file& file) {
    for_each(file.size(), [&](std::uint64_t i) {
      const auto row = file.row(i);
      add(row, i);
      const auto& header = file.header();
      if (header.kind == 'f' && header.element_bytes == sizeof(float)) check_finite<float>(row, i);
      if (header.kind == 'f' && header.element_bytes == sizeof(double)) check_finite<double>(row, i);
    });
  }

  void check(const hocket::data::text_lines& file) {
    for_each(file.size(), [&](std::uint64_t i) {
      const std::string_view line = file.line(i);
      const bool is_blank = line.find_first_not_of(" \t") == line.npos;
      add(is_blank ? std::span<const std::byte>() : std::as_bytes(std::span(line)), i);
    });
  }

  void check(const hocket::data::tar_shards& file) {
    std::vector<std::byte> all;
    for_each(file.size(), [&](std::uint64_t i) {
      const auto sample = file.sample(i);
      all.clear();
      for (const auto& each : sample.files) {
        if (each.bytes.empty()) empty_.add(concat({"sample ", i, ": ", sample.key, ".", each.kind}));
        const auto kind = std::as_bytes(std::span(each.kind));
        all.insert(all.end(), kind.begin(), kind.end());
        all.insert(all.end(), each.bytes.begin(), each.bytes.end());
      }
      contents_.add(all, i);
      keys_.add(std::as_bytes(std::span(sample.key)), i);
    });
  }

  /// Prints what was found, and returns whether that is anything.
  bool print() {
    contents_.list_in(duplicates_, "equals");
    keys_.list_in(duplicates_, "has the key of");
    std::printf("%s: %llu samples\n", options_.path.c_str(), static_cast<unsigned long long>(samples_));
    bool is_any = false;
    for (const finding_list* const each : {&empty_, &out_of_range_, &damaged_, &duplicates_})
      is_any = each->print() || is_any;
    if (!is_any) std::printf("  nothing found\n");
    return is_any;
  }

 private:
  template <class Check>
  void for_each(std::uint64_t count, Check check_sample) {
    samples_ = count;
    for (std::uint64_t i = 0; i < count; ++i) {
      try {
        check_sample(i);
      } catch (const hocket::error& cause) {
        damaged_.add(concat({"sample ", i, ": ", cause.reason()}));
      }
    }
  }

  template <class Read>
  void check_tokens(std::uint64_t count, Read read) {
    std::vector<std::uint32_t> tokens;
    for_each(count, [&](std::uint64_t i) {
      tokens.clear();
      read(i, tokens);
      add(std::as_bytes(std::span(tokens)), i);
      if (options_.vocabulary == 0) return;
      const auto bad =
          std::find_if(tokens.begin(), tokens.end(), [&](std::uint32_t token) { return token >= options_.vocabulary; });
      if (bad != tokens.end()) {
        out_of_range_.add(concat({"sample ", i, ": token ", bad - tokens.begin(), " is ", *bad, ", and must be below ",
                                  options_.vocabulary}));
      }
    });
  }

  template <class Number>
  void check_finite(std::span<const std::byte> row, std::uint64_t sample) {
    for (std::size_t i = 0; i < row.size() / sizeof(Number); ++i) {
      Number value;
      std::memcpy(&value, row.data() + i * sizeof value, sizeof value);
      if (std::isfinite(value)) continue;
      out_of_range_.add(concat({"sample ", sample, ": element ", i, " is ", std::to_string(value)}));
      return;
    }
  }

  void add(std::span<const std::byte> bytes, std::uint64_t sample) {
    if (bytes.empty()) empty_.add(concat({"sample ", sample}));
    else contents_.add(bytes, sample);
  }

  const check_options& options_;
  std::uint64_t samples_ = 0;
  finding_list empty_, out_of_range_, damaged_, duplicates_;
  repetitions contents_, keys_;
};

file_type type_of(const std::string& path) {
  if (path.ends_with(".npy")) return file_type::npy;
  if (path.ends_with(".tar")) return file_type::tar;
  if (path.ends_with(".idx")) return file_type::indexed;
  return path.ends_with(".bin") ? file_type::tokens16 : file_type::text;
}

}  // namespace

bool has_findings(const check_options& options) {
  checker found(options);
  std::string path = options.path;
  const file_type type = options.type == file_type::by_name ? type_of(path) : options.type;
  switch (type) {
    case file_type::tokens16: found.check(hocket::data::token_file(path, hocket::data::token_type::u16)); break;
    case file_type::tokens32: found.check(hocket::data::token_file(path, hocket::data::token_type::u32)); break;
    case file_type::npy: found.check(hocket::data::npy_file(path)); break;
    case file_type::tar: found.check(hocket::data::tar_shards({path})); break;
    case file_type::indexed:
      if (path.ends_with(".idx") || path.ends_with(".bin")) path.resize(path.size() - 4);
      found.check(hocket::data::indexed_dataset(path));
      break;
    default: found.check(hocket::data::text_lines(path)); break;
  }
  return found.print();
}

}  // namespace data_tool
