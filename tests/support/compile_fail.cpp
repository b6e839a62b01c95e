// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Checks that misuses do not compile, and that the first error explains the misuse.
///
///     compile_fail [--cases FOLDER] [--include FOLDER] [--most-lines N] [--batch SOURCE] CASE...
///
/// CASE is the name of a source below tests/compile_fail, without .cpp: shard/storage_twice. A folder stands for the
/// sources directly in it. The compiler must reject each case, and its first error must match the regular expression in
/// the line `// expect: REGEX` of the case; if clang rejects a deleted function, the first note belongs to that error.
/// For a case in a folder, the compiler may print at most N lines (0: any number).
///
/// Without `--batch`, each case is compiled alone, and the compiler's output is shown. With `--batch`, one call of the
/// compiler compiles all cases. Their text goes into SOURCE, which looks like this:
///
///     #include <...>                  each header that any of the cases includes, once
///     namespace case_shard_one {
///     #line 1 "own_types.hpp"         names of the library that denote different types in each case
///     #line 1 "shard/one.cpp"         so that errors name the file and the line of the case
///     ...                             the text of the case, and of headers of tests/compile_fail that it includes
///     }
///     namespace case_shard_two {
///     ...
///
/// An error belongs to the case whose file, or else namespace, is named in the line of the error or in the lines about
/// the instantiation of a template. Compilers report an error in a template once for each list of arguments, so a
/// second case with the same list has no error, and fails. It needs other types. Types that a case declares differ from
/// all others, like those of headers of tests/compile_fail, because they are members of the case's namespace. A case
/// without such types in the instantiation, or one that can't be compiled with others, must have one of these lines:
///
///     // again: why   the compiler is called again for all cases with this line, until each has had a separate error
///     // alone: why   the case is compiled alone, for example because it has macros or its error does not name it

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace fs = std::filesystem;

namespace {

using lines = std::vector<std::string>;

lines split(const std::string& text) {
  lines found;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) found.push_back(line);
  return found;
}

lines read(const fs::path& file) {
  std::ifstream stream(file);
  if (!stream) throw std::runtime_error("can't read " + file.string());
  return split(std::string(std::istreambuf_iterator<char>(stream), {}));
}

void append(lines& to, const lines& from) { to.insert(to.end(), from.begin(), from.end()); }

struct settings {
  fs::path cases = HOCKET_COMPILE_FAIL_CASES;
  fs::path include = HOCKET_COMPILE_FAIL_INCLUDE;
  std::size_t most_lines = HOCKET_COMPILE_FAIL_MOST_LINES;
  fs::path batch;
  lines names;
};

struct misuse {
  std::string file;  ///< relative to the folder of all cases
  std::string expectation;
  bool alone = false;
  bool again = false;

  /// The namespace of the case if it is compiled with others.
  std::string scope() const {
    std::string name = "case_" + fs::path(file).replace_extension().string();
    std::replace_if(
        name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
    return name;
  }
};

/// Returns the text after `// <name>: ` in the first line that begins with it, or an empty string.
std::string marker(const lines& text, const std::string& name) {
  const std::string begin = "// " + name + ": ";
  const auto line = std::find_if(text.begin(), text.end(), [&](const auto& each) { return each.starts_with(begin); });
  return line == text.end() ? std::string() : line->substr(begin.size());
}

std::vector<misuse> read_cases(const settings& given) {
  lines files;
  for (const auto& name : given.names) {
    if (!fs::is_directory(given.cases / name)) {
      files.push_back(name + ".cpp");
      continue;
    }
    lines in_folder;
    for (const auto& each : fs::directory_iterator(given.cases / name)) {
      const fs::path file = each.path().lexically_normal().lexically_relative(given.cases);
      if (file.extension() == ".cpp") in_folder.push_back(file.string());
    }
    std::sort(in_folder.begin(), in_folder.end());
    append(files, in_folder);
  }
  std::vector<misuse> cases;
  for (const auto& file : files) {
    const lines text = read(given.cases / file);
    cases.push_back({file, marker(text, "expect"), !marker(text, "alone").empty(), !marker(text, "again").empty()});
  }
  return cases;
}

// ---- the source of a batch --------------------------------------------------------------------------------------

class batch_source {
 public:
  explicit batch_source(fs::path folder) : folder_(std::move(folder)) {}

  void add(const misuse& which) {
    bodies_ += "namespace " + which.scope() + " {\n";
    pasted_.clear();
    if (fs::exists(folder_ / "own_types.hpp")) paste("own_types.hpp");
    paste(which.file);
    bodies_ += "}\n";
  }

  std::string text() const { return includes_ + bodies_; }

 private:
  /// Adds the text of `file`, unless this case contains it already.
  void paste(const std::string& file) {
    if (!pasted_.insert(file).second) return;
    say_place(1, file);
    const lines text = read(folder_ / file);
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (!text[i].starts_with('#')) {
        bodies_ += text[i] + '\n';
        continue;
      }
      if (text[i] != "#pragma once") include(text[i], file);
      say_place(i + 2, file);
    }
  }

  /// Replaces the include `line` of `file` by the text of a header of this folder, or moves it to the beginning.
  void include(const std::string& line, const std::string& file) {
    static const std::regex form("#include ([<\"])([^>\"]+)[>\"].*");
    std::smatch match;
    if (!std::regex_match(line, match, form)) {
      throw std::runtime_error(file +
                               " needs a line `// alone: why`, because this line would change other cases: " + line);
    }
    const std::string name = match[2];
    const fs::path beside = fs::path(file).parent_path() / name;
    if (match[1] == "\"" && fs::exists(folder_ / beside)) {
      paste(beside.lexically_normal().string());
    } else if (fs::exists(folder_ / name)) {
      paste(name);
    } else if (included_.insert(name).second) {
      includes_ += "#include <" + name + ">\n";
    }
  }

  void say_place(std::size_t line, const std::string& file) {
    bodies_ += "#line " + std::to_string(line) + " \"" + file + "\"\n";
  }

  fs::path folder_;
  std::string includes_;
  std::string bodies_;
  std::set<std::string> included_;
  std::set<std::string> pasted_;
};

// ---- the compiler -----------------------------------------------------------------------------------------------

/// Returns the compiler's output. The compiler runs in the folder of all cases, to find the lines that it quotes.
std::string compile(const settings& given, const fs::path& source) {
  lines words = {HOCKET_COMPILE_FAIL_COMPILER,
                 "-std=c++20",
                 "-fsyntax-only",
                 HOCKET_COMPILE_FAIL_ALL_ERRORS,
                 "-I",
                 given.cases.string(),
                 "-I",
                 given.include.string(),
                 source.string()};
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::runtime_error("can't make a pipe");
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    setenv("LC_ALL", "C", 1);
    if (chdir(given.cases.c_str()) == 0) execvp(arguments[0], arguments.data());
    std::perror(arguments[0]);
    _exit(127);
  }
  close(ends[1]);
  std::string output;
  std::array<char, 4096> part{};
  for (ssize_t count = 0; (count = ::read(ends[0], part.data(), part.size())) > 0;) {
    output.append(part.data(), static_cast<std::size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || (WIFEXITED(status) && WEXITSTATUS(status) == 127)) {
    throw std::runtime_error("can't run the compiler: " + output);
  }
  return output;
}

// ---- the compiler's output --------------------------------------------------------------------------------------

/// An error or a warning, with the lines before it that state its context, and the notes after it.
struct diagnostic {
  lines before;
  lines text;

  bool is_error() const { return !text.empty() && text[0].find("error: ") != std::string::npos; }
  lines all() const {
    lines result = before;
    append(result, text);
    return result;
  }
};

bool says_who_includes(const std::string& line) {
  static const std::regex form("^(In file included|  +)? ?from ");
  return std::regex_search(line, form);
}

std::string file_of(const std::string& place) { return place.substr(0, place.find(':')); }

/// g++ prints the line that includes a header only once, and does not quote a line again for the next diagnostic of the
/// same place. Restores these lines, as they are printed for a case that is compiled alone.
void put_back_what_is_left_out(std::vector<diagnostic>& all) {
  std::map<std::string, std::string> includer;  // by included file, such as rules.hpp:12
  std::map<std::string, lines> quoted;
  for (auto& [before, text] : all) {
    if (text.empty()) continue;
    const auto first = std::find_if_not(before.begin(), before.end(), says_who_includes);
    std::string file = file_of(first == before.end() ? text[0] : *first);
    const std::string begin = file;
    for (auto line = before.begin(); line != first; ++line) {
      const std::string place = line->substr(line->find("from ") + 5);
      includer[file] = place.substr(0, place.find_last_not_of(",:") + 1);
      file = file_of(place);
    }
    lines chain;
    for (auto at = includer.find(begin); at != includer.end() && chain.size() < includer.size();
         at = includer.find(file_of(at->second))) {
      if (!chain.empty()) chain.back().back() = ',';
      chain.push_back((chain.empty() ? "In file included from " : "                 from ") + at->second + ':');
    }
    before.erase(before.begin(), first);
    before.insert(before.begin(), chain.begin(), chain.end());

    lines& quote = quoted[text[0]];
    const auto end =
        std::find_if_not(text.begin() + 1, text.end(), [](const auto& line) { return line.starts_with(' '); });
    if (end == text.begin() + 1) {
      text.insert(end, quote.begin(), quote.end());
    } else {
      quote.assign(text.begin() + 1, end);
    }
  }
}

std::vector<diagnostic> diagnostics(const std::string& output) {
  static const std::regex begins(": (fatal error|internal compiler error|error|warning): ");
  static const std::regex leads_to_one("^[^ ]+: (In |At )|:   (required |in |recursively )|^ *\\[ skipping ");
  static const std::regex sum("^[0-9]+ (error|warning)s?.* generated\\.$");
  std::vector<diagnostic> found;
  lines pending;
  const auto add_pending = [&] {
    if (found.empty()) found.emplace_back();
    append(found.back().text, std::exchange(pending, {}));
  };
  for (const auto& line : split(output)) {
    if (std::regex_search(line, begins)) {
      found.push_back({std::exchange(pending, {}), {line}});
    } else if (!std::regex_search(line, sum)) {
      pending.push_back(line);
      if (!says_who_includes(line) && !std::regex_search(line, leads_to_one)) add_pending();
    }
  }
  if (!pending.empty()) add_pending();
  return found;
}

/// Returns the number of the case that `which` belongs to, or the number of cases if there is none. clang does not
/// always print where the first template was instantiated: then a type of the case identifies it. `previous` is the
/// result for the previous diagnostic: compilers do not repeat the instantiation if both have the same one.
std::size_t owner(const diagnostic& which, const std::vector<misuse>& cases, std::size_t previous) {
  static const std::regex scope("\\bcase_\\w+(?=::)");
  lines places(which.text.begin(), std::next(which.text.begin(), which.text.empty() ? 0 : 1));
  append(places, which.before);
  append(places, which.text);
  const auto number_of = [&](const auto& fits) {
    return static_cast<std::size_t>(std::find_if(cases.begin(), cases.end(), fits) - cases.begin());
  };
  for (const auto& line : places) {
    const auto number = number_of([file = file_of(line)](const misuse& each) { return each.file == file; });
    if (number < cases.size()) return number;
  }
  for (const auto& line : places) {
    std::smatch match;
    if (!std::regex_search(line, match, scope)) continue;
    const auto number = number_of([name = match.str()](const misuse& each) { return each.scope() == name; });
    if (number < cases.size()) return number;
  }
  const bool says_nothing = std::all_of(which.before.begin(), which.before.end(), says_who_includes);
  return says_nothing ? previous : cases.size();
}

/// Returns the line that explains the error. clang names a deleted function in the first note that does not describe an
/// instantiation, not in the error as g++ does: then joins both, rejoins a string that core/explanation.hpp has cut for
/// clang, and removes backslashes.
std::string error_line(const diagnostic& error) {
  static const std::regex deleted(R"(error: .*\bdeleted )");
  static const std::regex names_it(": note: (?!in instantiation |while )");
  static const std::regex cut(" *\", \"");
  static const std::regex escaped(R"(\\(['"]))");
  std::string line = error.text[0];
  if (!std::regex_search(line, deleted)) return line;
  const auto note = std::find_if(error.text.begin(), error.text.end(),
                                 [](const auto& each) { return std::regex_search(each, names_it); });
  if (note != error.text.end()) line += "; " + std::regex_replace(*note, cut, " ");
  return std::regex_replace(line, escaped, "$1");
}

/// The compiler's output for one case.
struct printed {
  std::string first_error;
  lines all;

  void add(const diagnostic& next) {
    if (next.is_error() && first_error.empty()) first_error = error_line(next);
    append(all, next.all());
  }
};

// ---- the check --------------------------------------------------------------------------------------------------

class check {
 public:
  explicit check(settings given) : given_(std::move(given)), cases_(read_cases(given_)) {}

  /// Returns true if there are no faults.
  bool run() {
    std::vector<misuse> once;
    std::vector<misuse> again;
    for (const auto& each : cases_) {
      if (given_.batch.empty() || each.alone) {
        check_alone(each);
      } else {
        (each.again ? again : once).push_back(each);
      }
    }
    if (!once.empty()) explain_why_none(check_together(once));
    while (!again.empty()) {
      const std::size_t before = again.size();
      again = check_together(again);
      if (again.size() == before) explain_why_none(std::exchange(again, {}));
    }
    std::cout << (faults_.empty() ? messages_ : faults_) << cases_.size() << " cases checked in " << calls_
              << " calls of the compiler, " << faulty_ << " faults\n";
    return faulty_ == 0;
  }

 private:
  void report(const std::string& where, const std::string& what, const std::string& expectation, const lines& output) {
    ++faulty_;
    faults_ += '\n' + where + ": " + what + '\n';
    if (!expectation.empty()) faults_ += "  expected: " + expectation + '\n';
    faults_ += output.empty() ? "  printed: nothing\n" : "  printed:\n";
    for (const auto& line : output) faults_ += "    " + line + '\n';
    faults_ += '\n';
  }

  /// Checks a case that has an error.
  void judge(const misuse& which, const printed& output) {
    const bool in_subfolder = which.file.find('/') != std::string::npos;
    std::string fault;
    if (which.expectation.empty()) {
      fault = "it lacks a line `// expect: REGEX`";
    } else if (!std::regex_search(output.first_error, std::regex(which.expectation))) {
      fault = "the first error is not the one that is expected";
    } else if (in_subfolder && given_.most_lines != 0 && output.all.size() > given_.most_lines) {
      fault = "the compiler printed " + std::to_string(output.all.size()) + " lines, and should print at most " +
              std::to_string(given_.most_lines);
    }
    if (!fault.empty()) report(which.file, fault, which.expectation, output.all);
    messages_ += which.file + ": " + output.first_error.substr(output.first_error.find("error: ")) + '\n';
  }

  std::vector<diagnostic> printed_by_compiler(const fs::path& source) {
    ++calls_;
    auto result = diagnostics(compile(given_, source));
    if (given_.most_lines != 0) put_back_what_is_left_out(result);
    return result;
  }

  printed compiled_alone(const misuse& which) {
    printed result;
    for (const auto& each : printed_by_compiler(which.file)) result.add(each);
    return result;
  }

  void check_alone(const misuse& which) {
    const printed output = compiled_alone(which);
    if (given_.batch.empty()) {
      for (const auto& line : output.all) std::cout << line << '\n';
      std::cout << '\n';
    }
    if (output.first_error.empty()) {
      report(which.file, "it compiles, and should not", which.expectation, output.all);
    } else {
      judge(which, output);
    }
  }

  /// Compiles `cases` in one call, checks those that have an error, and returns the others.
  std::vector<misuse> check_together(const std::vector<misuse>& cases) {
    fs::path file = given_.batch;
    if (++batches_ > 1) file.replace_filename(file.stem().string() + "_" + std::to_string(batches_) + ".cpp");
    batch_source source(given_.cases);
    for (const auto& each : cases) source.add(each);
    fs::create_directories(file.parent_path());
    std::ofstream(file) << source.text();

    std::vector<printed> output(cases.size());
    std::size_t number = cases.size();
    for (const auto& each : printed_by_compiler(file)) {
      number = owner(each, cases, number);
      if (number < cases.size()) {
        output[number].add(each);
      } else if (each.is_error()) {
        report(file.string(), "this error belongs to none of its cases", {}, each.all());
      }
    }
    std::vector<misuse> without;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (output[i].first_error.empty()) {
        without.push_back(cases[i]);
      } else {
        judge(cases[i], output[i]);
      }
    }
    return without;
  }

  void explain_why_none(const std::vector<misuse>& cases) {
    for (const auto& each : cases) {
      const printed output = compiled_alone(each);
      std::string what = "it compiles, and should not";
      if (!output.first_error.empty()) {
        what =
            "it has no error in the batch: the error that it has alone is reported for another case, with the same "
            "instantiation. One of the two needs other types, or a line `// again: why`";
      }
      report(each.file, what, each.expectation, output.all);
    }
  }

  settings given_;
  std::vector<misuse> cases_;
  std::string messages_;
  std::string faults_;
  int calls_ = 0;
  int batches_ = 0;
  int faulty_ = 0;
};

/// Returns settings without names if `words` are invalid.
settings parse(const lines& words) {
  settings given;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("--")) {
      given.names.push_back(words[i]);
      continue;
    }
    const std::string& option = words[i];
    if (++i == words.size()) return {};
    if (option == "--cases") {
      given.cases = fs::absolute(words[i]).lexically_normal();
    } else if (option == "--include") {
      given.include = fs::absolute(words[i]).lexically_normal();
    } else if (option == "--most-lines") {
      given.most_lines = std::stoul(words[i]);
    } else if (option == "--batch") {
      given.batch = fs::absolute(words[i]).lexically_normal();
    } else {
      return {};
    }
  }
  return given;
}

}  // namespace

int main(int argument_count, char* arguments[]) try {
  const settings given = parse(lines(arguments + 1, arguments + argument_count));
  if (given.names.empty()) {
    std::cerr << "usage: compile_fail [--cases FOLDER] [--include FOLDER] [--most-lines N] [--batch SOURCE] "
                 "CASE_OR_FOLDER...\n";
    return 2;
  }
  return check(given).run() ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "compile_fail: " << error.what() << '\n';
  return 1;
}
