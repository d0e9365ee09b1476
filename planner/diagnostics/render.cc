#include "planner/diagnostics/render.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "planner/diagnostics/text.h"
#include "planner/diagnostics/utf8.h"

namespace planwright {
namespace {

constexpr size_t kWidestSource = 160;  // bytes of a source line that are shown

struct Style {
  std::string_view bold, error, warning, note, caret, end;
};
constexpr Style kPlain{};
constexpr Style kColored{"\033[1m", "\033[1;31m", "\033[1;35m", "\033[1;36m", "\033[1;32m", "\033[0m"};

// One column of output per code point, so that the caret stands under its letter.
struct Shown {
  std::string text;
  size_t columns = 0;
};

Shown ShowSource(std::string_view source) {
  Shown shown;
  for (size_t at = 0; at < source.size();) {
    const size_t length = CodePointLength(source, at);
    if (length == 0 || IsHiddenControl(source, at, length)) {
      shown.text += '?';
    } else if (source[at] == '\t' || source[at] == '\r') {
      shown.text += ' ';
    } else {
      shown.text.append(source.substr(at, length));
    }
    shown.columns += 1;
    at += std::max<size_t>(length, 1);
  }
  return shown;
}

void AppendSource(std::string& out, const Location& where, SourceTexts& texts, const Style& style) {
  const std::string* line = where.file ? texts.Line(*where.file, where.line) : nullptr;
  if (line == nullptr || line->empty()) return;
  std::string_view source = *line;
  size_t at = std::min<size_t>(std::max(where.column - 1, 0), source.size());
  std::string_view before_cut;
  if (source.size() > kWidestSource && at > kWidestSource / 2) {
    size_t cut = at - kWidestSource / 2;
    while (cut < at && CodePointLength(source, cut) == 0) ++cut;
    source.remove_prefix(cut);
    at -= cut;
    before_cut = "...";
  }
  if (source.size() > kWidestSource) source = source.substr(0, kWidestSource);
  at = std::min(at, source.size());
  const Shown before = ShowSource(source.substr(0, at));
  const Shown marked = ShowSource(source.substr(at, std::max(where.length, 1)));
  const Shown whole = ShowSource(source);
  absl::StrAppendFormat(&out, "%4d | ", where.line);
  Append(out, before_cut, whole.text, "\n");
  Append(out, "     | ", std::string(before_cut.size() + before.columns, ' '), style.caret, "^",
         std::string(marked.columns > 1 ? marked.columns - 1 : 0, '~'), style.end, "\n");
}

std::string Place(const Location& where) {
  if (!where.file) return "";
  if (!where.known()) return Cat(Printable(*where.file), ": ");
  return Cat(Printable(*where.file), ":", where.line, ":", where.column, ": ");
}

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
  Append(out, style.bold, Place(problem.where), style.end, is_error ? style.error : style.warning,
         is_error ? "error: " : "warning: ", style.end, style.bold, Printable(problem.message), style.end, " [",
         KindNumber(problem.kind), " ", KindName(problem.kind), "]\n");
  AppendSource(out, problem.where, texts, style);
  AppendHelp(out, problem.help, style);
  for (const Note& note : problem.notes) {
    Append(out, style.bold, Place(note.where), style.end, style.note, "note: ", style.end, Printable(note.message),
           "\n");
    AppendSource(out, note.where, texts, style);
  }
}

void AddPlace(nlohmann::ordered_json& object, const Location& where) {
  object["file"] = where.file ? nlohmann::ordered_json(Printable(*where.file)) : nlohmann::ordered_json(nullptr);
  object["line"] = where.line;
  object["column"] = where.column;
  object["length"] = where.known() ? where.length : 0;
}

}  // namespace

std::string RenderText(const std::vector<Diagnostic>& problems, SourceTexts& texts, bool color) {
  std::string out;
  for (const Diagnostic& problem : problems) AppendProblem(out, problem, texts, color ? kColored : kPlain);
  return out;
}

nlohmann::ordered_json RenderJson(const std::vector<Diagnostic>& problems) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Diagnostic& problem : problems) {
    nlohmann::ordered_json object;
    object["kind"] = KindNumber(problem.kind);
    object["name"] = KindName(problem.kind);
    object["severity"] = problem.severity == Severity::kError ? "error" : "warning";
    object["message"] = Printable(problem.message);
    AddPlace(object, problem.where);
    object["help"] = problem.help;
    object["notes"] = nlohmann::ordered_json::array();
    for (const Note& note : problem.notes) {
      nlohmann::ordered_json entry;
      entry["message"] = Printable(note.message);
      AddPlace(entry, note.where);
      object["notes"].push_back(entry);
    }
    list.push_back(object);
  }
  return list;
}

}  // namespace planwright
