#include "planner/recipe/diagnostics/diagnostic.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "planner/base/text/bug.h"

namespace planwright {
namespace {

struct KindInfo {
  DiagnosticKind kind;
  std::string_view number, name, summary;
  bool is_lint;
};

constexpr KindInfo kKinds[] = {
#define KIND(id, number, summary) {DiagnosticKind::k##id, number, #id, summary, false},
#define LINT(id, number, summary) {DiagnosticKind::k##id, number, #id, summary, true},
#include "planner/recipe/diagnostics/diagnostic_kind.def"
#undef KIND
};

// The enumerators and kKinds come from the same file, so that the value of a kind is its index.
const KindInfo& Info(DiagnosticKind kind) { return kKinds[static_cast<int>(kind)]; }

}  // namespace

std::string_view KindNumber(DiagnosticKind kind) { return Info(kind).number; }
std::string_view KindName(DiagnosticKind kind) { return Info(kind).name; }
std::string_view KindSummary(DiagnosticKind kind) { return Info(kind).summary; }
bool IsLint(DiagnosticKind kind) { return Info(kind).is_lint; }

// A constant array, made once from the table.
std::span<const DiagnosticKind> AllKinds() {
  static constexpr auto kAll = [] {
    std::array<DiagnosticKind, std::size(kKinds)> all{};
    for (size_t i = 0; i < all.size(); ++i) all[i] = kKinds[i].kind;
    return all;
  }();
  return kAll;
}

std::optional<DiagnosticKind> FindKind(std::string_view number_or_name) {
  for (const KindInfo& info : kKinds) {
    if (info.number == number_or_name || info.name == number_or_name) return info.kind;
  }
  return std::nullopt;
}

std::string MessageWithoutNumbers(const Diagnostic& problem) {
  std::string text = problem.message;
  std::erase_if(text, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  return text;
}

Diagnostic& Diagnostics::Error(DiagnosticKind kind, const Location& where, std::string message, std::string help) {
  list_.push_back({kind, Severity::kError, std::move(message), where, std::move(help), {}});
  return list_.back();
}

Diagnostic& Diagnostics::Warning(DiagnosticKind kind, const Location& where, std::string message, std::string help) {
  Require(IsLint(kind), "every warning is a lint");
  const auto asked = levels_.find(kind);
  const LintLevel level = asked == levels_.end() ? LintLevel::kWarn : asked->second.level;
  Diagnostic warning = {kind, Severity::kWarning, std::move(message), where, std::move(help), {}};
  // The caller may add notes to the result, so that a silenced warning needs an object too.
  if (level == LintLevel::kOff) return silenced_ = std::move(warning);
  list_.push_back(std::move(warning));
  if (level == LintLevel::kError) {
    list_.back().severity = Severity::kError;
    list_.back().notes.push_back({asked->second.where, "`lints` makes this warning an error here"});
  }
  return list_.back();
}

void Diagnostics::SetLevel(DiagnosticKind lint, LintLevel level, const Location& where) {
  Require(IsLint(lint), "only lints have levels");
  levels_[lint] = {level, where};
}

bool Diagnostics::has_errors() const {
  return std::any_of(list_.begin(), list_.end(), [](const Diagnostic& d) { return d.severity == Severity::kError; });
}

std::vector<Diagnostic> Diagnostics::sorted() const {
  std::map<std::string, int> file_order;
  for (const Diagnostic& d : list_) {
    if (d.where.file) file_order.emplace(*d.where.file, static_cast<int>(file_order.size()));
  }
  // Problems without a file come first: they concern the whole command.
  auto key = [&](const Diagnostic& d) {
    return std::tuple(d.where.file ? file_order.at(*d.where.file) : -1, d.where.line, d.where.column);
  };
  std::vector<Diagnostic> result = list_;
  std::stable_sort(result.begin(), result.end(),
                   [&](const Diagnostic& a, const Diagnostic& b) { return key(a) < key(b); });
  return result;
}

}  // namespace planwright
