// Each mistake in a statement shows. The checker refuses it, or the table of draws is another one, or some graph is
// that rule V11 compares forward blocks with: then every plan that was made of the other statement is refused, and an
// oracle of another implementation has the values to compare.
#include "tests/plan/statement/statement_mutants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/plan/statement/built_in_kinds.h"
#include "planner/plan/statement/prime_module.h"
#include "planner/plan/statement/statement_problems.h"
#include "planner/plan/table_text.h"
#include "planner/verify/v11_what_follows/piece_graph.h"
#include "tests/plan/statement/notation_kind.h"
#include "tests/plan/statement/small_modules.h"
#include "tests/plan/statement/toy_kind.h"

namespace planwright {
namespace {

std::string SettingText(const Attribute& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return absl::StrCat(*integer);
  if (const auto* real = std::get_if<double>(&value)) return absl::StrCat(*real);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return "numbers";
}

void AppendGraph(const PieceGraph& graph, std::string* text) {
  const auto numbers = [](const std::vector<int>& values) { return absl::StrJoin(values, ","); };
  absl::StrAppend(text, numbers(graph.inputs()), " -> ", numbers(graph.outputs()), " counts ", graph.counts(), "\n");
  for (const PieceGraph::Compute& compute : graph.computes()) {
    absl::StrAppend(text, numbers(compute.outputs), " = ", std::string(OpName(compute.kind)), " ",
                    numbers(compute.inputs), " [", absl::StrJoin(compute.slots, " "), "]");
    for (const auto& [attribute, value] : compute.settings)
      absl::StrAppend(text, " ", std::string(attribute), " ", SettingText(value));
    *text += "\n";
  }
}

void AppendGraphs(const ModelStatement& statement, Plan& plan, std::string* text) {
  Module& module = plan.modules.front();
  for (int which = 0; which < 16; ++which) {
    module.trains_backbone = (which & 1) == 0;
    module.dispatch = (which & 2) == 0 ? "all_to_all" : "all_gather";
    module.grid.cp = (which & 4) == 0 ? 1 : 2;
    module.grid.tp = (which & 8) == 0 ? 2 : 4;  // more than key heads
    const ModelNumbers numbers({.sequence_length = 96}, module, statement);
    AppendGraph(PieceGraph(plan, module, numbers, statement.embed), text);
    AppendGraph(PieceGraph(plan, module, numbers, statement.head), text);
    for (const auto& [letter, piece] : statement.layers) AppendGraph(PieceGraph(plan, module, numbers, piece), text);
  }
}

// The graphs of all pieces, in every case of what `when` asks for, with packed documents and two encoders.
std::string Graphs(const ModelStatement& statement) {
  Plan plan;
  plan.data.packed_documents = true;
  std::string text;
  for (Module& module : InEveryCase(statement, testing::SmallModule(statement))) {
    plan.bridges = {{.name = "a", .to = module.name, .token = 3}, {.name = "b", .to = module.name, .token = 4}};
    plan.modules = {std::move(module)};
    AppendGraphs(statement, plan, &text);
  }
  return text;
}

// Whether the place is in the line, or in one that continues it.
bool IsIn(const Location& where, const TextLine& line) {
  return where.line >= line.At(0).line && where.line <= line.At(line.text().size() - 1).line;
}

// Whether some problem is in one of the lines, or names it.
bool IsTold(const TextProblems& problems, const std::vector<StatedLine>& lines) {
  const auto in_lines = [&](const Location& where) {
    return std::any_of(lines.begin(), lines.end(), [&](const StatedLine& line) { return IsIn(where, *line); });
  };
  return std::any_of(problems.begin(), problems.end(), [&](const TextProblem& problem) {
    return in_lines(problem.where) || std::any_of(problem.from.begin(), problem.from.end(), in_lines);
  });
}

// Whether the place is behind the line `piece` and before the next one.
bool IsInPiece(const Location& where, const StatedPiece& piece, const ModelStatement& statement) {
  const auto begin = [](const StatedPiece& each) { return each.line->At(0).line; };
  int end = std::numeric_limits<int>::max();
  for (const auto& [name, other] : PiecesOf(statement)) {
    if (begin(*other) > begin(piece)) end = std::min(end, begin(*other));
  }
  return where.line >= begin(piece) && where.line < end;
}

// Whether it is of a slot of the head that is one of the embedding.
bool IsOfShared(const TextProblem& problem, const ModelStatement& statement) {
  return !statement.head.shared.empty() && IsInPiece(problem.where, statement.head, statement);
}

// Whether the mutant only exchanges two weights of which no module has both.
bool ExchangesAlternatives(const ModelStatement& statement, const testing::StatementMutant& mutant) {
  if (!mutant.name.starts_with("exchanges ") || mutant.piece == "let") return false;
  const std::vector<StatedWeight>&was = PiecesOf(statement).at(mutant.piece)->weights,
        &is = PiecesOf(mutant.statement).at(mutant.piece)->weights;
  const auto same = [](const StatedWeight& a, const StatedWeight& b) { return a.slot == b.slot && a.name == b.name; };
  const auto first = std::mismatch(was.begin(), was.end(), is.begin(), same).first;
  if (was.end() - first < 2 || !first->when || !(first + 1)->when) return false;
  const auto not_both = [](const Expression& a, const Expression& b) { return a.text() == "1 - " + b.text(); };
  return not_both(*first->when, *(first + 1)->when) || not_both(*(first + 1)->when, *first->when);
}

// Of the toy: pieces and weights that are not those of the language model. Adapters are in no part of an encoder.
bool IsJudged(const std::string& name, const ModelStatement& statement, const testing::StatementMutant& mutant) {
  const bool of_adapter = mutant.name.find(".lora_") != std::string::npos;
  if (of_adapter && (mutant.name.starts_with("is in the other part of ") || ExchangesAlternatives(statement, mutant)))
    return false;
  return name != "toy" || mutant.piece == "embed" || mutant.piece == "head" ||
         (mutant.piece == "E" && mutant.name.find("mixer.experts.") != std::string::npos);
}

// `name`: of the statement (StatementNamed).
void ExpectAllSeen(const std::string& name) {
  const ModelStatement& statement = testing::StatementNamed(name);
  ASSERT_EQ(ProblemsText(StatementProblems(statement)), "");
  const std::string draws = testing::DrawTables(statement), graphs = Graphs(statement);
  int refused = 0, at_line = 0;
  std::map<std::string, std::map<std::string, int>> counts;  // by piece and by what sees the mutant
  for (const testing::StatementMutant& mutant : testing::MutantsOf(statement)) {
    if (!IsJudged(name, statement, mutant)) continue;
    std::string seen;
    if (const TextProblems problems = StatementProblems(mutant.statement); !problems.empty()) {
      seen = "refused";
      ++refused;
      at_line += IsTold(problems, mutant.lines);
      // Sizes of the whole model show in each piece; all else is told where it is.
      for (const TextProblem& problem : mutant.piece == "let" ? TextProblems() : problems)
        EXPECT_TRUE(IsInPiece(problem.where, *PiecesOf(statement).at(mutant.piece), statement) ||
                    (mutant.piece == "embed" && IsOfShared(problem, statement)))
            << mutant.name << "\n"
            << ProblemsText(problems);
    } else if (testing::DrawTables(mutant.statement) != draws) {
      seen = "other draws";
    } else if (Graphs(mutant.statement) != graphs) {
      seen = "another graph";
    } else {
      ADD_FAILURE() << "nothing sees piece " << mutant.piece << ": " << mutant.name;
    }
    ++counts[mutant.piece][seen];
  }
  // What is left out has no line, and of two sizes that do not fit either may be wrong.
  ::testing::Test::RecordProperty("refused", refused);
  ::testing::Test::RecordProperty("told at the line", at_line);
  EXPECT_GE(at_line, refused * 3 / 4) << refused;
  for (const auto& [piece, by] : counts) {
    int all = 0;
    for (const auto& [seen, count] : by) {
      ::testing::Test::RecordProperty(absl::StrCat("piece ", piece, " ", seen), count);
      all += count;
    }
    EXPECT_GE(all, name == "notation" ? 1 : piece == "let" ? 10 : 30) << piece;
  }
}

class StatementMutants : public ::testing::TestWithParam<std::string> {};
TEST_P(StatementMutants, AreAllSeen) { ExpectAllSeen(GetParam()); }

// Of statements that are rewritten for adapters.
class AdaptedMutants : public ::testing::TestWithParam<std::string> {};
TEST_P(AdaptedMutants, AreAllSeen) { ExpectAllSeen(GetParam()); }

// The file of a statement, line by line, in the form of StatementLines.
std::vector<std::string> LinesOfFile(const std::string& text) {
  std::vector<std::string> lines;
  constexpr const char* kForms[] = {"weight", "joined", "experts", "buffer"};
  std::string piece, file, part;
  TextProblems problems;
  for (const TextLine& each : LogicalLines(text, nullptr, problems)) {
    const std::string& line = each.text();
    LineReader reader(line);
    const std::string word = reader.Take();
    if (word == "piece") {
      piece = reader.Take() + ": ";
      part.clear();
    } else if (word == "file") {
      file = reader.Take();
    } else if (word == "part") {
      part = " of the projection";
    } else {
      const std::string form = word == "when" ? line.substr(line.find(": ") + 2) : line;
      const bool weight = std::any_of(std::begin(kForms), std::end(kForms),
                                      [&](const char* each) { return form.starts_with(std::string(each) + " "); });
      lines.push_back(piece + line + (weight ? absl::StrCat(" in ", file, part) : ""));
    }
  }
  return lines;
}

// The parser drops nothing: what it has read, written again, is the file.
TEST_P(StatementMutants, TheParserReadsEveryLine) {
  std::vector<std::string> wanted = LinesOfFile(GetParam() == "notation" ? testing::NotationText()
                                                : GetParam() == "toy"    ? testing::ToyKind()
                                                                         : "");
  for (const KindText& kind : BuiltInKinds()) {
    if (kind.file.ends_with("/" + GetParam() + ".model"))
      wanted = LinesOfFile(std::string(kind.text.substr(0, kind.text.find("\ndialect "))));
  }
  std::vector<std::string> read = testing::StatementLines(testing::StatementNamed(GetParam()));
  std::sort(wanted.begin(), wanted.end());
  std::sort(read.begin(), read.end());
  EXPECT_EQ(absl::StrJoin(read, "\n"), absl::StrJoin(wanted, "\n"));
}

INSTANTIATE_TEST_SUITE_P(Kinds, StatementMutants, ::testing::Values("hybrid_lm", "radio_vit", "notation", "toy"),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Kinds, AdaptedMutants, ::testing::Values("adapted_hybrid_lm", "adapted_radio_vit"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace planwright
