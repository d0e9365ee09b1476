#include "planner/recipe/diagnostics/render.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string_view>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"

namespace planwright {
namespace {

constexpr uintmax_t kLargestFile = 16 << 20;  // bytes; of a larger file no lines are shown

std::vector<std::string> SplitLines(const std::string& text) {
  std::vector<std::string> lines(1);
  for (char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  for (std::string& line : lines) {
    if (!line.empty() && line.back() == '\r') line.pop_back();  // Windows line ends
  }
  return lines;
}

// The lines of a file; none if it is not a regular file (reading a pipe could block) or too large.
std::vector<std::string> ReadLines(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error) || std::filesystem::file_size(file, error) > kLargestFile)
    return {};
  std::ifstream in(file, std::ios::binary);
  return SplitLines(std::string(std::istreambuf_iterator<char>(in), {}));
}

constexpr size_t kWidestSource = 160;  // bytes of a source line that are shown

// Escape sequences of a terminal; all empty without color.
struct Style {
  std::string_view bold, error, warning, note, caret, end;
};
constexpr Style kPlain{};
constexpr Style kColored{"\033[1m", "\033[1;31m", "\033[1;35m", "\033[1;36m", "\033[1;32m", "\033[0m"};

// A source line as it is printed. Each code point takes one column, so that the caret is under the right letter.
struct PrintedSource {
  std::string text;
  size_t columns = 0;
};

PrintedSource PrintSource(std::string_view source) {
  PrintedSource printed;
  for (size_t at = 0; at < source.size();) {
    const size_t length = CodePointLength(source, at);
    if (length == 0 || IsHiddenControl(source, at, length)) {
      printed.text += '?';
    } else if (source[at] == '\t' || source[at] == '\r') {
      printed.text += ' ';
    } else {
      printed.text.append(source.substr(at, length));
    }
    printed.columns += 1;
    at += std::max<size_t>(length, 1);
  }
  return printed;
}

// The line of `where` and a caret below it. A long line is cut around the caret.
void AppendSource(std::string& out, const Location& where, SourceTexts& texts, const Style& style) {
  const std::string* line = where.file ? texts.Line(*where.file, where.line) : nullptr;
  if (line == nullptr || line->empty()) return;
  std::string_view source = *line;
  size_t at = std::min<size_t>(std::max(where.column - 1, 0), source.size());
  std::string_view before_cut;
  if (source.size() > kWidestSource && at > kWidestSource / 2) {
    size_t cut = at - kWidestSource / 2;
    while (cut < at && CodePointLength(source, cut) == 0) ++cut;  // to the start of a code point
    source.remove_prefix(cut);
    at -= cut;
    before_cut = "...";
  }
  if (source.size() > kWidestSource) source = source.substr(0, kWidestSource);
  at = std::min(at, source.size());
  const PrintedSource before = PrintSource(source.substr(0, at));
  const PrintedSource marked = PrintSource(source.substr(at, std::max(where.length, 1)));
  const PrintedSource whole = PrintSource(source);
  absl::StrAppendFormat(&out, "%4d | ", where.line);
  Append(out, before_cut, whole.text, "\n");
  Append(out, "     | ", std::string(before_cut.size() + before.columns, ' '), style.caret, "^",
         std::string(marked.columns > 1 ? marked.columns - 1 : 0, '~'), style.end, "\n");
}

// The start of a message: "file:line:column: ". Editors and terminals make a link of it.
std::string LocationText(const Location& where) {
  if (!where.file) return "";
  if (!where.known()) return Cat(Printable(*where.file), ": ");
  return Cat(Printable(*where.file), ":", where.line, ":", where.column, ": ");
}

// A help of several lines is indented under its first line.
void AppendHelp(std::string& out, const std::string& help, const Style& style) {
  if (help.empty()) return;
  std::string_view lead = "help: ";
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(help, '\n'))) {
    Append(out, "  ", style.bold, lead, style.end, Printable(line), "\n");
    lead = "      ";
  }
}

void AppendProblem(std::string& out, const Diagnostic& problem, SourceTexts& texts, const Style& style) {
  const bool is_error = problem.severity == Severity::kError;
  Append(out, style.bold, LocationText(problem.where), style.end, is_error ? style.error : style.warning,
         is_error ? "error: " : "warning: ", style.end, style.bold, Printable(problem.message), style.end, " [",
         KindNumber(problem.kind), " ", KindName(problem.kind), "]\n");
  AppendSource(out, problem.where, texts, style);
  AppendHelp(out, problem.help, style);
  for (const Note& note : problem.notes) {
    Append(out, style.bold, LocationText(note.where), style.end, style.note, "note: ", style.end,
           Printable(note.message), "\n");
    AppendSource(out, note.where, texts, style);
  }
}

// A lint takes one line: `plan explain` has the rest.
void AppendLint(std::string& out, const Diagnostic& lint, const Style& style) {
  std::string help = lint.help;
  std::replace(help.begin(), help.end(), '\n', ' ');
  Append(out, style.bold, LocationText(lint.where), style.end, style.warning, "warning: ", style.end, style.bold,
         Printable(lint.message), style.end, help.empty() ? "" : ": ", Printable(help), " [", KindNumber(lint.kind),
         " ", KindName(lint.kind), "]\n");
}

// Locations in JSON always have the same keys, also if there is no location.
void AddLocation(nlohmann::ordered_json& object, const Location& where) {
  object["file"] = where.file ? nlohmann::ordered_json(Printable(*where.file)) : nlohmann::ordered_json(nullptr);
  const bool known = where.file && where.known();
  object["line"] = known ? where.line : 0;
  object["column"] = known ? where.column : 0;
  object["length"] = known ? where.length : 0;
}

}  // namespace

void SourceTexts::Add(const std::string& name, const std::string& text) { lines_[name] = SplitLines(text); }

const std::string* SourceTexts::Line(const std::string& file, int number) {
  auto found = lines_.find(file);
  if (found == lines_.end()) found = lines_.emplace(file, ReadLines(file)).first;
  if (number < 1 || number > static_cast<int>(found->second.size())) return nullptr;
  return &found->second[number - 1];
}

std::string RenderText(const std::vector<Diagnostic>& problems, SourceTexts& texts, bool color) {
  std::string out, lints;
  std::set<std::string> numbers;
  int64_t count = 0;
  for (const Diagnostic& problem : problems) {
    if (problem.severity == Severity::kError) {
      AppendProblem(out, problem, texts, color ? kColored : kPlain);
      continue;
    }
    AppendLint(lints, problem, color ? kColored : kPlain);
    numbers.emplace(KindNumber(problem.kind));
    ++count;
  }
  if (count == 0) return out;
  return Cat(out, lints, count, count == 1 ? " warning" : " warnings", ": `plan explain ", *numbers.begin(),
             "` says more", numbers.size() > 1 ? ", and so of each\n" : "\n");
}

nlohmann::ordered_json RenderJson(const std::vector<Diagnostic>& problems) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Diagnostic& problem : problems) {
    nlohmann::ordered_json object;
    object["kind"] = KindNumber(problem.kind);
    object["name"] = KindName(problem.kind);
    object["severity"] = problem.severity == Severity::kError ? "error" : "warning";
    object["message"] = Printable(problem.message);
    AddLocation(object, problem.where);
    object["help"] = problem.help;
    object["notes"] = nlohmann::ordered_json::array();
    for (const Note& note : problem.notes) {
      nlohmann::ordered_json entry;
      entry["message"] = Printable(note.message);
      AddLocation(entry, note.where);
      object["notes"].push_back(entry);
    }
    // What to change, as overrides: path=value, or without a value to remove the key.
    object["edits"] = nlohmann::ordered_json::array();
    for (const Edit& edit : problem.edits) {
      nlohmann::ordered_json entry;
      entry["path"] = Printable(edit.path);
      entry["value"] =
          edit.value.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(Printable(edit.value));
      object["edits"].push_back(entry);
    }
    list.push_back(object);
  }
  return list;
}

}  // namespace planwright
