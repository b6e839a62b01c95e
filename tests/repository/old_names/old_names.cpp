// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Searches the code in include, tools, examples and docs for replaced names, which must not return.
//
//   hocket.tests.old_names NAMES ROOT
//
// Ignores comments and strings in sources, in which words such as "wire" or "port" may have their ordinary meaning. In
// docs, reads code blocks and text between backquotes. A line of NAMES is
//
//   old => new              the word, anywhere in code
//   a::old( => new          these tokens in sequence
//   old => new @ PATH...    the word, only in these files or folders (a folder ends with a slash)

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

struct token {
  std::string text;
  std::size_t line = 0;
};

bool begins_word(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_in_word(char c) { return begins_word(c) || std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// Splits C++ code into words and punctuation, beginning at line `line`.
class reader {
 public:
  reader(std::string_view text, std::size_t line) : text_(text), line_(line) {}

  std::vector<token> read() {
    while (at_ < text_.size()) step();
    return std::move(found_);
  }

 private:
  bool starts_with(std::string_view what) const { return text_.substr(at_, what.size()) == what; }

  void skip_to(std::size_t end) {
    end = std::min(end, text_.size());
    for (; at_ < end; ++at_) line_ += static_cast<std::size_t>(text_[at_] == '\n');
  }

  void skip_past(std::string_view what) {
    const std::size_t end = text_.find(what, at_);
    skip_to(end == std::string_view::npos ? text_.size() : end + what.size());
  }

  void skip_quoted(char quote) {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n') end += text_[end] == '\\' ? 2U : 1U;
    skip_to(end + 1);
  }

  /// Ignores headers of other projects, which may have any name.
  void skip_include() {
    const std::size_t end = text_.find('\n', at_);
    const std::size_t name = text_.find("<hocket/", at_);
    skip_to(name < end ? name : end);
  }

  void step() {
    const char c = text_[at_];
    if (starts_with("//")) return skip_to(text_.find('\n', at_));
    if (starts_with("/*")) return skip_past("*/");
    if (c == '"') return skip_quoted('"');
    if (c == '\'') return skip_quoted('\'');
    if (c == '#') {
      const std::size_t word = text_.find_first_not_of(" \t", at_ + 1);
      if (word != std::string_view::npos && text_.substr(word, 7) == "include") return skip_include();
    }
    if (begins_word(c)) return word();
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) return number();
    if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      const bool is_pair = starts_with("::") || starts_with("->");
      found_.push_back({std::string(text_.substr(at_, is_pair ? 2 : 1)), line_});
      return skip_to(at_ + (is_pair ? 2 : 1));
    }
    skip_to(at_ + 1);
  }

  void word() {
    std::size_t end = at_;
    while (end < text_.size() && is_in_word(text_[end])) ++end;
    const std::string_view name = text_.substr(at_, end - at_);
    if (end < text_.size() && text_[end] == '"' && (name == "R" || name == "u8R" || name == "LR")) {
      const std::size_t open = text_.find('(', end);
      if (open != std::string_view::npos) {
        const std::string close = ")" + std::string(text_.substr(end + 1, open - end - 1)) + "\"";
        skip_to(open);
        return skip_past(close);
      }
    }
    found_.push_back({std::string(name), line_});
    skip_to(end);
  }

  /// Skips a number with its separators, which are not quotes.
  void number() {
    std::size_t end = at_;
    while (end < text_.size() && (is_in_word(text_[end]) || text_[end] == '\'' || text_[end] == '.')) ++end;
    skip_to(end);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_;
  std::vector<token> found_;
};

std::vector<token> tokens_of(std::string_view text, std::size_t line) { return reader(text, line).read(); }

/// Returns the code of a page.
std::vector<token> code_of_page(std::string_view text) {
  std::vector<token> result;
  const auto add = [&](std::string_view code, std::size_t line) {
    std::vector<token> more = tokens_of(code, line);
    result.insert(result.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    result.push_back({"\n", line});  // ends what could match
  };
  bool fenced = false, blank = true, indented = false;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t first = line.find_first_not_of(' ');
    const bool is_fence =
        first != std::string_view::npos && (line.substr(first, 3) == "```" || line.substr(first, 3) == "~~~");
    indented = !fenced && !is_fence && first != std::string_view::npos && first >= 4 && (blank || indented);
    if (is_fence) {
      fenced = !fenced;
    } else if (fenced || indented) {
      add(line, number + 1);
    } else {
      for (std::size_t open = line.find('`'); open != std::string_view::npos; open = line.find('`', open + 1)) {
        const std::size_t close = line.find('`', open + 1);
        if (close == std::string_view::npos) break;
        add(line.substr(open + 1, close - open - 1), number + 1);
        open = close;
      }
    }
    blank = first == std::string_view::npos;
  }
  return result;
}

struct old_name {
  std::string text;
  std::string replacement;
  std::vector<std::string> pattern;
  std::vector<std::string> paths;  ///< empty: all files

  bool applies_to(const std::string& path) const {
    return paths.empty() || std::any_of(paths.begin(), paths.end(), [&](const std::string& each) {
             return each.back() == '/' ? path.substr(0, each.size()) == each : path == each;
           });
  }
  bool matches(const std::vector<token>& code, std::size_t at) const {
    if (pattern.size() > code.size() - at) return false;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      if (code[at + i].text != pattern[i]) return false;
    }
    return true;
  }
};

/// Old names by their first tokens.
using old_names = std::unordered_map<std::string, std::vector<old_name>>;

bool read_names(const std::filesystem::path& file, old_names& result) {
  std::ifstream in(file);
  std::size_t number = 0;
  for (std::string line; std::getline(in, line); ++number) {
    if (line.empty() || line.front() == '#') continue;
    const std::size_t arrow = line.find(" => ");
    if (arrow == std::string::npos) {
      std::printf("%s:%zu: expected \"old => new\"\n", file.c_str(), number + 1);
      return false;
    }
    old_name made;
    made.text = line.substr(0, arrow);
    const std::size_t at = line.find(" @ ", arrow);
    made.replacement = line.substr(arrow + 4, at == std::string::npos ? at : at - arrow - 4);
    if (at != std::string::npos) {
      std::istringstream paths(line.substr(at + 3));
      made.paths.assign(std::istream_iterator<std::string>(paths), {});
    }
    for (token& each : tokens_of(made.text, 0)) made.pattern.push_back(std::move(each.text));
    const std::string first = made.pattern.front();
    result[first].push_back(std::move(made));
  }
  return !result.empty();
}

std::size_t report(const std::string& path, const std::vector<token>& code, const old_names& names) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const auto found = names.find(code[i].text);
    if (found == names.end()) continue;
    for (const old_name& each : found->second) {
      if (!each.applies_to(path) || !each.matches(code, i)) continue;
      std::printf("%s:%zu: %s is now %s\n", path.c_str(), code[i].line, each.text.c_str(), each.replacement.c_str());
      ++count;
      break;
    }
  }
  return count;
}

}  // namespace

int main(int count, char** arguments) {
  namespace fs = std::filesystem;
  if (count != 3) {
    std::puts("usage: hocket.tests.old_names NAMES ROOT");
    return 2;
  }
  old_names names;
  if (!read_names(arguments[1], names)) return 2;
  const fs::path root = arguments[2];
  std::size_t files = 0, found = 0;
  for (const char* folder : {"include", "tools", "examples", "docs"}) {
    if (!fs::exists(root / folder)) continue;
    std::vector<fs::path> all;
    for (const auto& each : fs::recursive_directory_iterator(root / folder)) {
      if (each.is_regular_file()) all.push_back(each.path());
    }
    std::sort(all.begin(), all.end());
    for (const fs::path& each : all) {
      const std::string kind = each.extension().string();
      const bool is_page = kind == ".md";
      if (!is_page && kind != ".hpp" && kind != ".cpp" && kind != ".cuh" && kind != ".cu" && kind != ".ipp") continue;
      std::ifstream in(each, std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
      ++files;
      found += report(each.lexically_relative(root).generic_string(), is_page ? code_of_page(text) : tokens_of(text, 1),
                      names);
    }
  }
  if (files == 0) {
    std::printf("%s has no files to read\n", root.c_str());
    return 2;
  }
  std::printf("%zu old names in %zu files\n", found, files);
  return found == 0 ? 0 : 1;
}
