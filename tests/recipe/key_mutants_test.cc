// Each line of a kind of model that says what recipes give is needed: one that is left out or says something else is a
// problem with a place, or makes other keys.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/plan/statement/built_in_kinds.h"
#include "planner/plan/statement/parse_statement.h"
#include "planner/plan/statement/statement_problems.h"
#include "planner/recipe/keys_of_kinds.h"

namespace planwright {
namespace {

// What recipes, pages and tables have of a statement: rows of keys, layers, and constants that choices set, that
// plans lack, or that other models give.
std::string WhatIsSeen(const ModelStatement& statement) {
  std::string text = absl::StrCat("of ", statement.kind, "\n");
  const KindRows rows({&statement, 1});
  for (const KeySpec& row : rows.rows()) {
    absl::StrAppend(&text, std::string(row.path), " ", static_cast<int>(row.type), row.need == Need::kRequired, " ",
                    std::string(row.default_text), " ", RangeText(row.range), row.range.or_zero, " ",
                    std::string(row.choices), ": ", std::string(row.help), "\n");
  }
  for (const auto* layers : {&statement.layer_kinds, &statement.unbuilt}) {
    for (const StatedLayer& layer : *layers) {
      absl::StrAppend(&text, std::string(1, layer.letter), " ", layer.word, " ", layer.title, layer.opens, " ",
                      layer.not_with, "\n");
    }
  }
  for (const StatedKey& key : statement.keys) {
    const StatedKey* section = key.of != 0 ? statement.SectionOf(key.of) : nullptr;
    absl::StrAppend(&text, key.name, " sets ", key.sets, section ? absl::StrCat(" of ", std::string(1, key.of)) : "",
                    absl::StrJoin(key.words, ",", absl::PairFormatter(" ")), "\n");
  }
  for (const StatedConstant& constant : statement.constants) {
    if (constant.given) absl::StrAppend(&text, constant.name, constant.real ? " is real\n" : " is whole\n");
    if (constant.otherwise) absl::StrAppend(&text, constant.name, " is ", constant.otherwise->text(), " without it\n");
  }
  return absl::StrCat(text, statement.repeated, " ", statement.example);
}

struct KeyMutant {
  std::string name, text;
};

// A line with another word in the place of one.
std::vector<std::string> OtherLines(const std::string& line) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
  const std::map<std::string, std::string> others = {{"int", "real"}, {"real", "int"},     {"flag", "int"},
                                                     {"of", "not"},   {"to", "below"},     {"from", "above"},
                                                     {"=", "=="},     {"required", "need"}};
  std::vector<std::string> lines;
  for (size_t i = 1; i < words.size(); ++i) {
    std::vector<std::string> changed = words;
    const auto other = others.find(words[i]);
    const bool number = words[i].find_first_not_of("0123456789.e-") == std::string::npos;
    if (other != others.end()) {
      changed[i] = other->second;
    } else {
      // The mark at the end of the word stays.
      const size_t at = words[i].find_last_not_of(":,") == std::string::npos ? 0 : words[i].find_last_not_of(":,") + 1;
      changed[i].insert(at, number ? "1" : "q");
    }
    lines.push_back(absl::StrJoin(changed, " "));
    changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
    lines.push_back(absl::StrJoin(changed, " "));
  }
  return lines;
}

std::vector<KeyMutant> KeyMutantsOf(const std::string& text) {
  const std::set<std::string> keys = {"kind", "layer", "unbuilt", "layers", "section", "constant", "choice", "key"};
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  std::vector<KeyMutant> mutants;
  for (size_t i = 0; i < lines.size() && !lines[i].starts_with("piece "); ++i) {
    if (!keys.contains(lines[i].substr(0, lines[i].find(' ')))) continue;
    std::vector<std::string> without = lines;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    mutants.push_back({absl::StrCat("without ", lines[i]), absl::StrJoin(without, "\n")});
    for (const std::string& other : OtherLines(lines[i])) {
      std::vector<std::string> changed = lines;
      changed[i] = other;
      mutants.push_back({absl::StrCat(lines[i], "\n  as ", other), absl::StrJoin(changed, "\n")});
    }
  }
  return mutants;
}

TEST(KeyMutants, AreAllSeen) {
  int all = 0, refused = 0;
  for (const KindText& kind : BuiltInKinds()) {
    const std::string text(kind.text);
    const std::string seen = WhatIsSeen(ParseStatement(kind.file, text).statement);
    for (const KeyMutant& mutant : KeyMutantsOf(text)) {
      ++all;
      const ParsedStatement parsed = ParseStatement(kind.file, mutant.text);
      if (!parsed.problems.empty()) {
        for (const TextProblem& problem : parsed.problems) EXPECT_TRUE(problem.where.known()) << mutant.name;
        ++refused;
      } else if (WhatIsSeen(parsed.statement) == seen) {
        const TextProblems problems = StatementProblems(parsed.statement);
        EXPECT_FALSE(problems.empty()) << "nothing sees " << mutant.name;
        for (const TextProblem& problem : problems) EXPECT_TRUE(problem.where.known()) << mutant.name;
        ++refused;
      }
    }
  }
  EXPECT_GT(all, 500);
  EXPECT_GT(refused, all / 5);
}

}  // namespace
}  // namespace planwright
