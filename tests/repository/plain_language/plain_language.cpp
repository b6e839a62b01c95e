// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Searches comments, strings and pages for phrases with plainer alternatives.
//
//   hocket.tests.plain_language PHRASES ROOT
//
// Reads README.md and the sources and pages in include, docs, tools and examples below ROOT: comments and literals of
// sources, and the text of pages except code. Text between backquotes is code in both. A phrase matches whole words in
// any case, also across the end of a line, but not across punctuation. A line of PHRASES is
//
//   phrase => plainer phrase

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct word {
  std::string text;  ///< in lower case; empty: punctuation or code, which ends a phrase
  std::size_t line = 0;
};

bool is_in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '\'' || c == '-';
}

/// Collects the words of prose.
class prose {
 public:
  void add(std::string_view text, std::size_t line) {
    for (std::size_t i = 0; i < text.size();) {
      const char c = text[i];
      if (c == '`') {
        const std::size_t close = text.find('`', i + 1);
        end_phrase();
        i = close == std::string_view::npos ? text.size() : close + 1;
      } else if (is_in_word(c)) {
        std::size_t end = i;
        while (end < text.size() && is_in_word(text[end])) ++end;
        std::string lower(text.substr(i, end - i));
        for (char& each : lower) each = static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
        words_.push_back({std::move(lower), line});
        i = end;
      } else {
        if (std::isspace(static_cast<unsigned char>(c)) == 0) end_phrase();
        ++i;
      }
    }
  }

  void end_phrase() {
    if (!words_.empty() && !words_.back().text.empty()) words_.push_back({});
  }

  std::vector<word> take() { return std::move(words_); }

 private:
  std::vector<word> words_;
};

/// Returns the text of a comment line without its slashes.
std::string_view text_of_comment(std::string_view line) {
  const std::size_t begin = line.find_first_not_of("/<*");
  return begin == std::string_view::npos ? std::string_view() : line.substr(begin);
}

/// Reads the prose of a source: adjacent comments are one text, and so are literals that the compiler joins.
class source_reader {
 public:
  explicit source_reader(std::string_view text) : text_(text) {}

  std::vector<word> read() {
    while (at_ < text_.size()) step();
    return found_.take();
  }

 private:
  enum class piece { code, comment, literal };

  void begin(piece next) {
    if (last_ != next) found_.end_phrase();
    last_ = next;
  }

  void skip_to(std::size_t end) {
    for (end = std::min(end, text_.size()); at_ < end; ++at_) line_ += static_cast<std::size_t>(text_[at_] == '\n');
  }

  void read_line_comment() {
    begin(piece::comment);
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    found_.add(text_of_comment(text_.substr(at_, end - at_)), line_);
    skip_to(end);
  }

  void read_block_comment() {
    begin(piece::comment);
    const std::size_t end = std::min(text_.find("*/", at_ + 2), text_.size());
    found_.add(text_.substr(at_ + 2, end - at_ - 2), line_);
    skip_to(end + 2);
  }

  void read_literal() {
    begin(piece::literal);
    std::size_t end = at_ + 1;
    std::string content;
    while (end < text_.size() && text_[end] != '"') {
      const bool escaped = text_[end] == '\\';
      content += escaped ? ' ' : text_[end];
      end += escaped ? 2U : 1U;
    }
    found_.add(content, line_);
    skip_to(end + 1);
  }

  void read_raw_literal() {
    const std::size_t open = text_.find('(', at_);
    if (open == std::string_view::npos) return skip_to(text_.size());
    const std::string close = ")" + std::string(text_.substr(at_ + 2, open - at_ - 2)) + "\"";
    const std::size_t end = std::min(text_.find(close, open), text_.size());
    begin(piece::literal);
    found_.add(text_.substr(open + 1, end - open - 1), line_);
    skip_to(end + close.size());
  }

  void skip_line() { skip_to(text_.find('\n', at_)); }

  void step() {
    const std::string_view rest = text_.substr(at_);
    const char c = rest.front();
    if (rest.substr(0, 2) == "//") return read_line_comment();
    if (rest.substr(0, 2) == "/*") return read_block_comment();
    if (rest.substr(0, 8) == "#include") return skip_line();
    if (rest.substr(0, 2) == "R\"") return read_raw_literal();
    if (c == '"') return read_literal();
    if (std::isspace(static_cast<unsigned char>(c)) == 0) begin(piece::code);
    skip_to(at_ + 1 + character_literal(rest));
  }

  /// Returns how many characters of a character literal follow its first quote: 0 for a separator of digits.
  std::size_t character_literal(std::string_view rest) const {
    if (rest.front() != '\'' || (at_ > 0 && is_in_word(text_[at_ - 1]))) return 0;
    const std::size_t close = rest.find('\'', rest.size() > 1 && rest[1] == '\\' ? 3 : 2);
    return close < 8 ? close : 0;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  piece last_ = piece::code;
  prose found_;
};

/// Returns the prose of a page: lines outside fences that are not indented as code.
std::vector<word> prose_of_page(std::string_view text) {
  prose found;
  bool fenced = false, blank = true, indented = false;
  std::size_t number = 1;
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
    const std::string_view mark = line.substr(first, 3);
    const bool is_fence = mark == "```" || mark == "~~~";
    indented = !fenced && !is_fence && first < line.size() && first >= 4 && (blank || indented);
    if (is_fence) fenced = !fenced;
    if (first == line.size() || is_fence) found.end_phrase();
    if (!fenced && !is_fence && !indented) found.add(line, number);
    blank = first == line.size();
  }
  return found.take();
}

struct phrase {
  std::string text;
  std::string plainer;
  std::vector<word> words;

  bool matches(const std::vector<word>& all, std::size_t at) const {
    if (words.size() > all.size() - at) return false;
    return std::equal(words.begin(), words.end(), all.begin() + static_cast<std::ptrdiff_t>(at),
                      [](const word& wanted, const word& each) { return wanted.text == each.text; });
  }
};

/// Phrases by their first words.
using phrases = std::unordered_map<std::string, std::vector<phrase>>;

bool read_phrases(const fs::path& file, phrases& result) {
  std::ifstream in(file);
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty() || line.front() == '#') continue;
    const std::size_t arrow = line.find(" => ");
    phrase made;
    if (arrow != std::string::npos) {
      made.text = line.substr(0, arrow);
      made.plainer = line.substr(arrow + 4);
      prose words;
      words.add(made.text, 0);
      made.words = words.take();
    }
    if (made.words.empty() || made.words.front().text.empty()) {
      std::printf("%s:%zu: expected \"phrase => plainer phrase\"\n", file.c_str(), number);
      return false;
    }
    const std::string first = made.words.front().text;
    result[first].push_back(std::move(made));
  }
  return !result.empty();
}

std::size_t report(const std::string& path, const std::vector<word>& words, const phrases& unwanted) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto found = unwanted.find(words[i].text);
    if (found == unwanted.end()) continue;
    for (const phrase& each : found->second) {
      if (!each.matches(words, i)) continue;
      std::printf("%s:%zu: \"%s\": write \"%s\"\n", path.c_str(), words[i].line, each.text.c_str(),
                  each.plainer.c_str());
      ++count;
    }
  }
  return count;
}

bool is_source(const fs::path& path) {
  const std::string kind = path.extension().string();
  return kind == ".hpp" || kind == ".ipp" || kind == ".cpp" || kind == ".cuh" || kind == ".cu";
}

std::vector<fs::path> texts_below(const fs::path& root) {
  std::vector<fs::path> all;
  for (const char* folder : {"include", "docs", "tools", "examples"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& each : fs::recursive_directory_iterator(root / folder)) {
      const bool is_text = is_source(each.path()) || each.path().extension() == ".md";
      if (each.is_regular_file() && is_text) all.push_back(each.path());
    }
  }
  if (fs::exists(root / "README.md")) all.push_back(root / "README.md");
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::puts("usage: hocket.tests.plain_language PHRASES ROOT");
    return 2;
  }
  phrases unwanted;
  if (!read_phrases(arguments[1], unwanted)) return 2;
  const fs::path root = arguments[2];
  const std::vector<fs::path> files = texts_below(root);
  if (files.empty()) {
    std::printf("%s has no texts to read\n", root.c_str());
    return 2;
  }
  std::size_t found = 0;
  for (const fs::path& each : files) {
    std::ifstream in(each, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    found += report(each.lexically_relative(root).generic_string(),
                    is_source(each) ? source_reader(text).read() : prose_of_page(text), unwanted);
  }
  std::printf("%zu phrases to replace in %zu files\n", found, files.size());
  return found == 0 ? 0 : 1;
}
