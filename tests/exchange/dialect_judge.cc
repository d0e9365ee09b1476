#include "tests/exchange/dialect_judge.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/exchange/like_source.h"
#include "planner/exchange/made_tensors.h"
#include "planner/exchange/read_model.h"
#include "planner/exchange/recipe_text.h"
#include "planner/exchange/run_model.h"
#include "planner/exchange/write_config.h"
#include "planner/plan/statement/built_in_kinds.h"
#include "planner/recipe/yaml/yaml_text.h"
#include "planner/state/dialect/dialect_problems.h"
#include "planner/state/dialect/parse_dialect.h"

namespace planwright::testing {
namespace {

using nlohmann::ordered_json;

std::string FindingsOf(const Findings& findings) {
  std::string text;
  for (const Finding& one : findings.problems)
    absl::StrAppend(&text, one.where, "|", one.value, "|", one.message, "\n");
  return absl::StrCat(text, absl::StrJoin(findings.notes, "\n"), "\n");
}

// What import says of a folder, and export of a run that is like it.
std::string OfImport(const ordered_json& config, const TensorShapes& shapes, const DialectSet& dialects) {
  Findings findings;
  ReadFolder folder;
  folder.said = ReadModel(config, {}, findings, dialects);
  std::string text;
  if (findings.problems.empty()) {
    if (!shapes.empty()) CompareTensors(folder.said, shapes, findings);
    text = YamlText(ModelsTree(folder.said, "folder", "kind"));
    SaidModel run = folder.said;
    for (std::optional<SaidPart>* part : {&run.encoder, &run.language}) {
      for (size_t i = 0; *part && i < (*part)->numbers.size(); ++i) {
        auto& value = (*part)->numbers[i].second.value;
        if (auto* real = std::get_if<double>(&value)) *real *= 2;
        if (auto* integer = std::get_if<int64_t>(&value)) *integer += 1;
      }
    }
    CompareWithSource(run, folder, findings);
  }
  return absl::StrCat(text, FindingsOf(findings));
}

// What export writes of a run.
std::string OfExport(const Plan& plan, const std::string& module, const DialectSet& dialects) {
  Findings findings;
  RunModel run = ModelOfRun(plan, module, findings);
  run.said.dialects = &dialects;
  const WrittenConfig written = ConfigOf(plan, run.said, DType::kBf16, findings);
  if (written.dialect == nullptr) return "no dialect";
  std::vector<std::string> made_up;
  std::string text = absl::StrCat(written.config.dump(1), absl::StrJoin(written.made_up, "\n"));
  if (findings.problems.empty()) {
    for (const OutTensor& tensor : MadeTensors(written.read, DType::kBf16, made_up)) {
      std::string bytes(static_cast<size_t>(tensor.bytes), '\0');
      EXPECT_TRUE(tensor.read(0, std::as_writable_bytes(std::span(bytes))).ok());
      absl::StrAppend(&text, tensor.name, " ", tensor.type, " ", absl::StrJoin(tensor.shape, ","), tensor.parameter,
                      bytes);
    }
    for (const auto& [name, shape] : ExpectedTensors(written.read)) absl::StrAppend(&text, name, " ");
  }
  return absl::StrCat(text, absl::StrJoin(made_up, "\n"), FindingsOf(findings));
}

// The objects of a config that dialects read, each with its dialect.
static std::vector<std::pair<ordered_json::json_pointer, const Dialect*>> ObjectsOf(const ordered_json& config,
                                                                                    const Dialect& dialect) {
  std::vector<std::pair<ordered_json::json_pointer, const Dialect*>> objects = {{{}, &dialect}};
  const DialectSet& set = BuiltInDialects();
  for (const DialectLine& line : dialect.lines) {
    const auto* part = std::get_if<DialectPart>(&line);
    for (size_t i = 0; part != nullptr && i < part->paths.size(); ++i) {
      if (!config.contains(part->paths[i])) continue;
      const bool args = config[part->paths[i]].contains("args");
      objects.emplace_back(ordered_json::json_pointer() / part->paths[i],
                           set.Find(args ? part->dialects.back() : part->dialects.front()));
    }
  }
  return objects;
}

static ordered_json::json_pointer PointerOf(ordered_json::json_pointer at, std::string path) {
  if (path.starts_with('/')) at = {}, path = path.substr(1);  // of the whole
  for (const auto word : absl::StrSplit(path, '.')) at /= std::string(word);
  return at;
}

// The dialects of all kinds, with another text of one of them; none: it is refused.
std::optional<DialectSet> DialectsWith(size_t changed, const std::string& text) {
  std::vector<Dialect> dialects;
  std::vector<DialectRefusal> refused;
  for (size_t i = 0; i < BuiltInKinds().size(); ++i) {
    const KindText& kind = BuiltInKinds()[i];
    const std::string_view name = kind.file.substr(kind.file.rfind('/') + 1);
    const ModelStatement& statement = *StatementOf(name.substr(0, name.rfind('.')));
    ParsedDialects parsed = ParseDialects(kind.file, i == changed ? std::string_view(text) : kind.text, statement);
    if (!parsed.problems.empty()) return std::nullopt;
    std::move(parsed.dialects.begin(), parsed.dialects.end(), std::back_inserter(dialects));
    std::move(parsed.refused.begin(), parsed.refused.end(), std::back_inserter(refused));
  }
  DialectSet set(std::move(dialects), std::move(refused));
  if (!DialectProblems(set).empty()) return std::nullopt;
  return set;
}

// Lines of a text from its first dialect on, each with those that continue it; what is before is not judged here.
std::vector<std::string> LinesOf(std::string_view text) {
  std::vector<std::string> lines;
  for (const auto line : absl::StrSplit(std::string(text.substr(text.find("\ndialect ") + 1)), '\n')) {
    const std::string each(line);
    if (each.empty() || each.find_first_not_of(' ') == std::string::npos || each[each.find_first_not_of(' ')] == '#')
      continue;
    if (each.starts_with("    ") && !lines.empty()) {
      absl::StrAppend(&lines.back(), " ", each.substr(4));
    } else {
      lines.push_back(each);
    }
  }
  return lines;
}

// Another word, or another number.
std::string Changed(const std::string& word) {
  double number = 0;
  if (!absl::SimpleAtod(word, &number) || !std::isfinite(number)) return word + "q";
  int64_t integer = 0;
  return absl::SimpleAtoi(word, &integer) ? absl::StrCat(integer + 1) : absl::StrCat(number * 1.5);
}

bool IsText(const std::string& line) { return line.starts_with("  silent ") || line.starts_with("  unwritten "); }

}  // namespace

void DialectJudge::AddImport(const ordered_json& config, const TensorShapes& shapes) {
  cases_.emplace_back([config, shapes](const DialectSet& dialects) { return OfImport(config, shapes, dialects); });
}

void DialectJudge::AddImport(const Toy& toy) {
  TensorShapes shapes;
  for (const auto& [name, tensor] : toy.tensors) shapes[name] = tensor.shape;
  AddImport(toy.config, shapes);
}

void DialectJudge::AddExport(Plan plan, const std::vector<std::string>& modules) {
  plans_.push_back(std::make_unique<Plan>(std::move(plan)));
  for (const std::string& module : modules)
    cases_.emplace_back(
        [plan = plans_.back().get(), module](const DialectSet& dialects) { return OfExport(*plan, module, dialects); });
}

void DialectJudge::Vary(const Toy& toy, const Dialect& whole) {
  for (const auto& [object, dialect] : ObjectsOf(toy.config, whole)) {
    ordered_json loud = toy.config;
    for (const std::string& where : dialect->where) {
      ordered_json without = toy.config;
      without.at(object).erase(where.substr(0, where.find('.')));
      AddImport(without);
    }
    for (const DialectLine& line : dialect->lines) {
      if (const auto* rule = std::get_if<DialectRule>(&line)) {
        for (const std::string& path : rule->paths) VaryRule(toy, object, *rule, path, loud);
      } else if (const auto* number = std::get_if<DialectNumber>(&line)) {
        VaryNames(toy, object, number->paths);
        for (const auto& [word, ours] : number->words) AddWith(toy, object, number->paths[0], word);
      } else if (const auto* layers = std::get_if<DialectLayers>(&line)) {
        VaryNames(toy, object, layers->paths);
        for (const auto& [word, letter] : layers->words) AddWith(toy, object, layers->paths[0], {word});
        AddWith(toy, object, layers->paths[0], {"nothing like it"});
      } else if (const auto* check = std::get_if<DialectCheck>(&line)) {
        ordered_json differ = toy.config;
        for (size_t i = 0; i < check->paths.size(); ++i) {
          AddWith(toy, object, check->paths[i], 7777);
          differ[PointerOf(object, check->paths[i])] = 7777 + i;
        }
        AddImport(differ);
        VaryNames(toy, object, check->paths);
      } else if (const auto* token = std::get_if<DialectImageToken>(&line)) {
        VaryNames(toy, object, token->paths);
      } else if (const auto* part = std::get_if<DialectPart>(&line)) {
        VaryNames(toy, object, part->paths);
      }
    }
    AddImport(loud);
  }
}

void DialectJudge::VaryRule(const Toy& toy, const ordered_json::json_pointer& object, const DialectRule& rule,
                            const std::string& path, ordered_json& loud) {
  if (path.ends_with(".*")) return;
  const auto at = PointerOf(object, path);
  if (path.find('.') != std::string::npos && !loud.contains(at.parent_pointer())) return;
  loud[at] = rule.unless ? ordered_json(-1) : ordered_json("surprise");
  if (rule.each) AddWith(toy, object, path, {ordered_json::parse(rule.value), "surprise"});
  if (rule.unless) AddWith(toy, object, path, *rule.unless), AddWith(toy, object, path, *rule.unless + 0.5);
  if (rule.value.empty()) return AddWith(toy, object, path, 3);
  ordered_json value = ordered_json::parse(rule.value);
  AddWith(toy, object, path, value);
  if (!rule.within) return;
  for (const double off : {0.9e-6, 1.1e-6}) {
    ordered_json near = value;
    near[1] = near[1].get<double>() + off;
    AddWith(toy, object, path, near);
  }
}

void DialectJudge::AddWith(const Toy& toy, const ordered_json::json_pointer& object, const std::string& path,
                           const ordered_json& value) {
  ordered_json config = toy.config;
  if (path.find('.') != std::string::npos && !config.contains(PointerOf(object, path).parent_pointer())) return;
  config[PointerOf(object, path)] = value;
  AddImport(config);
}

// Without the key, and under each of its names.
void DialectJudge::VaryNames(const Toy& toy, const ordered_json::json_pointer& object, const DialectPaths& paths) {
  ordered_json without = toy.config, value;
  for (const std::string& path : paths) {
    const auto at = PointerOf(object, path);
    if (!without.contains(at)) continue;
    value = without[at];
    ordered_json& parent = without[at.parent_pointer()];
    parent.is_array() ? void(without[at] = nullptr) : void(parent.erase(at.back()));
  }
  AddImport(without);
  if (value.is_null()) return;
  for (const std::string& path : paths) {
    ordered_json config = without;
    config[PointerOf(object, path)] = value;
    AddImport(config);
  }
}

// What has noticed the last mutant comes first, as the next one is of the same line.
bool DialectJudge::Notices(const DialectSet& dialects) {
  for (auto each = order_.begin(); each != order_.end(); ++each) {
    if (cases_[*each](dialects) == right_[*each]) continue;
    std::rotate(order_.begin(), each, each + 1);
    return true;
  }
  return false;
}

void DialectJudge::ExpectEachLineCounts(const std::vector<std::string>& kinds, int least_mutants) {
  for (const DialectRefusal& refusal : BuiltInDialects().refused()) {
    for (const std::string& name : refusal.names)
      AddImport(ordered_json({{"model_type", name.substr(0, name.size() - (name.ends_with('*') ? 1 : 0))}}));
  }
  right_.clear();
  for (const Case& one : cases_) right_.push_back(one(BuiltInDialects()));
  order_.resize(cases_.size());
  std::iota(order_.begin(), order_.end(), 0);
  int mutants = 0;
  std::vector<std::string> unnoticed;
  for (size_t kind = 0; kind < BuiltInKinds().size(); ++kind) {
    const std::string_view file = BuiltInKinds()[kind].file;
    const std::string_view name = file.substr(file.rfind('/') + 1);
    if (std::find(kinds.begin(), kinds.end(), name.substr(0, name.rfind('.'))) == kinds.end()) continue;
    const std::vector<std::string> lines = LinesOf(BuiltInKinds()[kind].text);
    const auto check = [&](size_t index, const std::string& line, const std::string& what) {
      std::vector<std::string> mutant = lines;
      mutant[index] = line;
      ++mutants;
      const std::optional<DialectSet> dialects = DialectsWith(kind, absl::StrJoin(mutant, "\n"));
      if (dialects && !Notices(*dialects)) unnoticed.push_back(absl::StrCat(what, ": ", lines[index]));
    };
    for (size_t i = 0; i < lines.size(); ++i) {
      check(i, "# gone", "without the line");
      // Why a key says nothing is for people alone.
      const std::string& line = lines[i];
      const size_t end = IsText(line) ? line.find(": ") : line.size();
      for (size_t begin = line.find_first_not_of(' '); begin < end;) {
        const auto in_word = [&](size_t at) {
          const char c = line[at];
          return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' ||
                 (c == '-' && at > 0 && line[at - 1] == 'e' && at + 1 < line.size() &&
                  std::isdigit(static_cast<unsigned char>(line[at + 1])));
        };
        size_t behind = begin;
        while (behind < end && in_word(behind)) ++behind;
        if (behind > begin) {
          const std::string word = line.substr(begin, behind - begin);
          check(i, absl::StrCat(line.substr(0, begin), Changed(word), line.substr(behind)), word);
        }
        begin = std::max(behind, begin + 1);
      }
    }
  }
  EXPECT_GT(mutants, least_mutants);
  EXPECT_EQ(absl::StrJoin(unnoticed, "\n"), "") << unnoticed.size() << " of " << mutants;
}

}  // namespace planwright::testing
