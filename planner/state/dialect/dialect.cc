#include "planner/state/dialect/dialect.h"

#include <algorithm>

#include "planner/plan/statement/built_in_kinds.h"
#include "planner/plan/statement/parse_statement.h"
#include "planner/state/dialect/dialect_problems.h"
#include "planner/state/dialect/parse_dialect.h"

namespace planwright {
namespace {

const DialectHint* FindHint(std::span<const Dialect> dialects, std::vector<DialectHint> Dialect::*hints,
                            std::string_view tensor) {
  for (const Dialect& dialect : dialects) {
    for (const DialectHint& hint : dialect.*hints) {
      if (std::find(hint.names.begin(), hint.names.end(), tensor) != hint.names.end()) return &hint;
    }
  }
  return nullptr;
}

bool IsExtra(const DialectExtra& extra, std::string_view tensor) {
  if (MatchesPattern(extra.pattern, tensor)) return true;
  for (size_t dot = tensor.find('.'); extra.anywhere && dot != std::string_view::npos;
       dot = tensor.find('.', dot + 1)) {
    if (MatchesPattern(extra.pattern, tensor.substr(dot + 1))) return true;
  }
  return false;
}

}  // namespace

bool HasType(const std::vector<std::string>& names, std::string_view model_type) {
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
    return name.ends_with('*') ? model_type.starts_with(name.substr(0, name.size() - 1)) : name == model_type;
  });
}

bool MatchesPattern(std::string_view pattern, std::string_view text) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  const std::string_view begin = pattern.substr(0, star), rest = pattern.substr(star + 1);
  if (!text.starts_with(begin)) return false;
  if (rest.empty()) return text.size() > begin.size();
  for (size_t at = begin.size() + 1; at < text.size(); ++at) {
    if (MatchesPattern(rest, text.substr(at))) return true;
  }
  return false;
}

const std::string* DialectExtra::Original(const std::function<bool(const std::string&)>& has) const {
  const auto found = std::find_if(copy_of.begin(), copy_of.end(), has);
  return found == copy_of.end() ? nullptr : &*found;
}

bool Dialect::composite() const {
  return std::any_of(lines.begin(), lines.end(),
                     [](const DialectLine& line) { return std::holds_alternative<DialectPart>(line); });
}

const DialectPart* Dialect::language() const {
  for (const DialectLine& line : lines) {
    if (const auto* part = std::get_if<DialectPart>(&line); part && !part->encoder) return part;
  }
  return nullptr;
}

const Dialect* DialectSet::Find(std::string_view name) const {
  const auto found =
      std::find_if(dialects_.begin(), dialects_.end(), [&](const Dialect& dialect) { return dialect.name() == name; });
  return found == dialects_.end() ? nullptr : &*found;
}

const Dialect* DialectSet::OfType(std::string_view model_type) const {
  for (const Dialect& dialect : dialects_) {
    if (!dialect.where.empty()) continue;
    if (HasType(dialect.names, model_type)) return &dialect;
  }
  return nullptr;
}

const std::string* DialectSet::RefusalOf(std::string_view model_type) const {
  const auto found = std::find_if(refused_.begin(), refused_.end(),
                                  [&](const DialectRefusal& refusal) { return HasType(refusal.names, model_type); });
  return found == refused_.end() ? nullptr : &found->why;
}

const Dialect& DialectSet::RootOf(const Dialect& dialect) const {
  const Dialect* root = dialect.like.empty() ? nullptr : Find(dialect.like);
  return root ? *root : dialect;
}

std::vector<const Dialect*> DialectSet::ToWrite(std::string_view kind, std::string_view language) const {
  std::vector<const Dialect*> found;
  for (const Dialect& dialect : dialects_) {
    if (dialect.kind != kind || !dialect.where.empty() || dialect.composite() == language.empty()) continue;
    if (!dialect.folder) continue;
    const DialectPart* part = dialect.language();
    const Dialect* inner = part ? Find(part->dialects.front()) : nullptr;
    if (language.empty() || (inner && inner->kind == language)) found.push_back(&dialect);
  }
  return found;
}

const DialectExtra* DialectSet::FindExtra(std::string_view tensor) const {
  for (const Dialect& dialect : dialects_) {
    for (const DialectExtra& extra : dialect.extras) {
      if (IsExtra(extra, tensor)) return &extra;
    }
  }
  return nullptr;
}

const DialectHint* DialectSet::FindOptional(std::string_view published) const {
  return FindHint(dialects_, &Dialect::optional, published);
}
const DialectHint* DialectSet::FindMissing(std::string_view published) const {
  return FindHint(dialects_, &Dialect::missing, published);
}

const DialectSet& BuiltInDialects() {
  static const DialectSet set = [] {
    std::vector<Dialect> dialects;
    std::vector<DialectRefusal> refused;
    for (const KindText& kind : BuiltInKinds()) {
      const ParsedStatement parsed = ParseStatement(kind.file, kind.text);
      ParsedDialects read = ParseDialects(kind.file, kind.text, parsed.statement);
      BuiltInText(read.problems);
      std::move(read.dialects.begin(), read.dialects.end(), std::back_inserter(dialects));
      std::move(read.refused.begin(), read.refused.end(), std::back_inserter(refused));
    }
    DialectSet all(std::move(dialects), std::move(refused));
    BuiltInText(DialectProblems(all));
    return all;
  }();
  return set;
}

}  // namespace planwright
