#include "planner/plan/op_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "planner/base/files/exit_status.h"
#include "planner/plan/state_table.h"
#include "planner/plan/table_text.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

double Value(const char* formula) {
  return Expression::Parse(formula).value().Evaluate([](const std::string& name) {
    return name == "mamba.heads" ? 8.0 : name == "tp" ? 2.0 : std::nan("");
  });
}

TEST(Expression, Evaluates) {
  EXPECT_EQ(Value("2 + 3 * 4"), 14);
  EXPECT_EQ(Value("(2 + 3) * 4 - 1"), 19);
  EXPECT_EQ(Value("mamba.heads / tp / 2"), 2);
  EXPECT_EQ(Value("tp > 1"), 1);
  EXPECT_EQ(Value("3 * (tp > 1) + (1 > tp)"), 3);
  EXPECT_EQ(Value("tp > 2"), 0);
  EXPECT_TRUE(std::isnan(Value("mamba.heads * nobody")));
  EXPECT_TRUE(std::isnan(Value("nobody > 1")));
  EXPECT_EQ(Expression::Parse("rows(i0) * tp * rows(i0)")->names(), (std::vector<std::string>{"rows(i0)", "tp"}));
}

TEST(LineReader, TakesALineApart) {
  LineReader line(" weight w.{layer}.x [2 * rows(i0), b] cut 1: linear a? -> b ");
  EXPECT_EQ(line.Take(), "weight");
  EXPECT_FALSE(line.TakeIf("w"));
  EXPECT_EQ(line.Take(), "w.{layer}.x");
  EXPECT_EQ(line.Peek(), "");
  EXPECT_TRUE(line.TakeIf('['));
  const std::vector<Expression> formulas = line.TakeFormulas();
  ASSERT_EQ(formulas.size(), 2u);
  EXPECT_EQ(formulas[0].text(), "2 * rows(i0)");
  EXPECT_EQ(formulas[1].text(), "b");
  EXPECT_TRUE(line.TakeIf(']'));
  EXPECT_TRUE(line.TakeIf("cut"));
  EXPECT_EQ(line.TakeNumber(), 1u);
  EXPECT_TRUE(line.TakeIf(':'));
  EXPECT_EQ(line.TakeKind(), OpKind::kLinear);
  EXPECT_EQ(line.TakeWords(), (std::vector<std::string>{"a?", "->", "b"}));
  EXPECT_TRUE(line.empty());
}

TEST(LineReader, FormulasEndWhereTheyCanGoOnNoMore) {
  LineReader line("tp * cp or tp when cp > 1: x");
  EXPECT_EQ(line.TakeFormula().text(), "tp * cp");
  EXPECT_TRUE(line.TakeIf("or"));
  EXPECT_EQ(line.TakeFormula().text(), "tp");
  EXPECT_TRUE(line.TakeIf("when"));
  EXPECT_EQ(line.TakeFormula().text(), "cp > 1");
  EXPECT_TRUE(line.TakeIf(':'));
  EXPECT_EQ(line.Rest(), "x");
}

// What is wrong with a line, and from which column on; "": nothing.
template <typename Take>
std::string ProblemOf(const std::string& text, const Take& take) {
  LineReader line(text);
  take(line);
  if (!line.failed()) return "";
  EXPECT_TRUE(line.empty()) << "nothing more is taken";
  return absl::StrCat(line.problem()->where.column, " ", line.problem()->message);
}

TEST(LineReader, TellsWhatDoesNotParse) {
  const auto kind = [](LineReader& line) { line.TakeKind(); };
  EXPECT_EQ(ProblemOf("liner x", kind), "1 \"liner\" is no operation; did you mean `linear`?");
  EXPECT_EQ(ProblemOf(", x", kind), "1 expected the name of an operation, found \",\"");
  const auto formula = [](LineReader& line) { line.TakeFormula(); };
  EXPECT_EQ(ProblemOf("a + ", formula), "4 the formula needs a number or a name here, found the end");
  EXPECT_EQ(ProblemOf("a + (b * c", formula), "5 the bracket of the formula is not closed");
  EXPECT_EQ(ProblemOf("sqrt(b", formula), "1 the bracket behind this name is not closed");
  EXPECT_EQ(ProblemOf("2 * 3x", formula), "5 \"3x\" is no number");
  EXPECT_EQ(ProblemOf(std::string(100000, '('), formula), "65 a formula has at most 64 parts");
  const auto signature = [](LineReader& line) { EXPECT_LE(TakeSignature(line).outputs.size(), 2u); };
  EXPECT_EQ(ProblemOf("* f | f -> * f, w f", signature), "");
  EXPECT_EQ(ProblemOf("!x: f -> f", signature), "1 a mark of an operand is one of + ! ^ # w i d");
  EXPECT_EQ(ProblemOf("(tB -> f", signature), "1 the product of dims has no closing bracket");
  EXPECT_EQ(ProblemOf("f", signature), "2 expected `->`, found the end of the line");
  const auto rule = [](LineReader& line) { TakeGradientRule(line); };
  EXPECT_EQ(ProblemOf("linear: do0 i -> di0", rule),
            "13 an operand of a backward kind is such as i0, o1, do0, di2.1 or 1.i0");
  EXPECT_EQ(ProblemOf("linear: do0 2.i0 -> di0", rule), "21 the chain has no such kind");
}

TEST(LineReader, KnowsItsPlaceInContinuedLines) {
  TextProblems problems;
  const std::vector<TextLine> lines = LogicalLines("# a comment\n  one two\n     three\nfour", nullptr, problems);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].text(), "one two three");
  const auto place = [](const Location& where) { return std::pair(where.line, where.column); };
  EXPECT_EQ(place(lines[0].AtWord("two")), std::pair(2, 7));
  EXPECT_EQ(place(lines[0].AtWord("three")), std::pair(3, 6));
  EXPECT_EQ(place(lines[0].AtWord("hre")), std::pair(2, 3)) << "a part of a word is no word";
  EXPECT_EQ(place(lines[1].AtWord("four")), std::pair(4, 1));
  EXPECT_EQ(lines[0].AtWord("three").length, 5);
  EXPECT_TRUE(problems.empty());
  LogicalLines("    first", nullptr, problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(place(problems[0].where), std::pair(1, 5));
}

TEST(BuiltInText, EndsTheProgramWithEachProblem) {
  BuiltInText({});
  TextProblems problems;
  ReadLines("fine\n  wrong so\nwrong too", "some.model", problems, [](LineReader& line) {
    if (!line.TakeIf("fine")) line.TakeOneOf({"fine"});
    line.NeedEnd();
  });
  EXPECT_EXIT(BuiltInText(problems), ::testing::ExitedWithCode(kExitUsage),
              "^error: some.model:2:3: [^\n]*\nerror: some.model:3:1: [^\n]*\nhelp: [^\n]*\n$");
}

TEST(OpTable, EveryKindSaysWhatItDoes) {
  std::set<std::string_view> names;
  for (const OpInfo& info : AllOps()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(&InfoOf(info.kind), &info);
    EXPECT_EQ(OpName(info.kind), info.name);
    EXPECT_FALSE(info.does.empty()) << info.name;
    // Slices have no index notation: they change a layout, so the rules of communication check them.
    const bool slices = info.kind == OpKind::kLocalSlice || info.kind == OpKind::kSliceRows;
    EXPECT_EQ(info.operands.empty(), info.op_class != OpClass::kCompute || slices) << info.name;
    EXPECT_TRUE(info.op_class == OpClass::kCompute || info.fast.empty()) << info.name;
    const bool changes = info.op_class == OpClass::kState || info.op_class == OpClass::kStorage;
    EXPECT_EQ(info.effects.empty(), !changes || info.kind == OpKind::kPublishCheckpoint) << info.name;
    std::set<std::string> attributes;
    for (const AttributeSpec& spec : info.attributes)
      EXPECT_TRUE(attributes.insert(spec.name).second) << info.name << " " << spec.name;
  }
}

// The names of the dims of all operands, those of products letter by letter.
std::set<std::string> DimNames(const OpInfo& info) {
  std::set<std::string> names;
  for (const auto& signature : {info.signature, info.signature_cp}) {
    if (!signature) continue;
    for (const auto* list : {&signature->inputs, &signature->parameters, &signature->gradients, &signature->outputs}) {
      for (const OperandSignature& operand : *list) {
        for (const SignatureDim& dim : operand.dims) {
          names.insert(dim.name);
          names.insert(dim.factors.begin(), dim.factors.end());
        }
      }
    }
  }
  return names;
}

// Lines `size` and `parts` are of dims that the kind has, and their formulas use nothing but its attributes and dims.
TEST(OpTable, SizesFollowFromAttributesAndDims) {
  int formulas = 0;
  for (const OpInfo& info : AllOps()) {
    const std::set<std::string> dims = DimNames(info);
    for (const AttributeSpec& attribute : info.attributes)
      EXPECT_FALSE(dims.contains(attribute.name)) << info.name << " " << attribute.name;
    const auto check = [&](const std::string& name, const Expression& formula) {
      EXPECT_TRUE(dims.contains(name)) << info.name << " " << name;
      for (const std::string& used : formula.names()) {
        EXPECT_NE(used, name) << info.name << " " << formula.text();
        EXPECT_TRUE(dims.contains(used) || info.FindAttribute(used)) << info.name << " " << formula.text();
      }
      ++formulas;
    };
    for (const OpInfo::Size& size : info.sizes) check(size.name, size.value);
    for (const OpInfo::Parts& parts : info.parts) {
      for (const Expression& part : parts.sizes) check(parts.name, part);
    }
  }
  EXPECT_GT(formulas, 60);
}

// What is overwritten has the type of the output, wherever it is cut. A mark + says nothing of that.
TEST(OpTable, WhatIsOverwrittenIsLikeTheOutput) {
  int kinds = 0;
  for (const OpInfo& info : AllOps()) {
    if (!info.overwrites) continue;
    ++kinds;
    const std::string& line = info.operands;
    const std::vector<std::string> sides = absl::StrSplit(line, " -> ");
    ASSERT_EQ(sides.size(), 2u) << line;
    const std::string read = sides[0].substr(0, sides[0].find(" |"));
    const std::vector<std::string> inputs = absl::StrSplit(read, ", "), outputs = absl::StrSplit(sides[1], ", ");
    ASSERT_LT(*info.overwrites, inputs.size()) << line;
    const auto dims = [](absl::string_view operand) {
      return absl::StripAsciiWhitespace(absl::StripPrefix(absl::StripAsciiWhitespace(operand), "+"));
    };
    EXPECT_EQ(dims(inputs[*info.overwrites]), dims(outputs[0])) << line;
  }
  EXPECT_GT(kinds, 0);
}

// How many operands a line `names` or `operands` lists: inputs, parameters, gradients, outputs. Commas in brackets
// belong to a shape.
std::vector<int> OperandCounts(const std::string& line) {
  std::vector<int> counts;
  bool in_brackets = false, in_operand = false;
  const auto close_section = [&] {
    counts.back() += in_operand;
    in_operand = false;
  };
  counts.push_back(0);
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '[') in_brackets = true;
    if (line[i] == ']') in_brackets = false;
    if (in_brackets) continue;
    if (line[i] == ',') {
      close_section();
    } else if (line[i] == '|') {
      close_section();
      counts.push_back(0);
    } else if (line.compare(i, 2, "->") == 0) {
      close_section();
      counts.resize(3);
      counts.push_back(0);
      ++i;
    } else if (line[i] != ' ') {
      in_operand = true;
    }
  }
  close_section();
  return counts;
}

TEST(OpTable, NamesListTheOperandsOfTheIndexNotation) {
  for (const OpInfo& info : AllOps()) {
    if (info.operands.empty()) continue;
    EXPECT_EQ(OperandCounts(info.names), OperandCounts(info.operands)) << info.name;
    // A kind whose operands are the same with cp may list their names once.
    const std::string& names_cp = info.names_cp.empty() ? info.names : info.names_cp;
    if (!info.operands_cp.empty()) {
      EXPECT_EQ(OperandCounts(names_cp), OperandCounts(info.operands_cp)) << info.name;
    }
  }
}

// One rule of verify/ checks what a kind does to layouts: the general one for lines `moves`, or one for this kind.
TEST(OpTable, EveryCommunicationSaysWhatItMovesOrHasItsOwnRule) {
  const std::set<OpKind> own = {OpKind::kAllToAll,       OpKind::kAllToAllV,    OpKind::kAllGatherV,
                                OpKind::kReduceScatterV, OpKind::kReshard,      OpKind::kBroadcast,
                                OpKind::kExchange,       OpKind::kGatherTokens, OpKind::kScatterTokens};
  for (const OpInfo& info : AllOps()) {
    const bool moves =
        (info.op_class == OpClass::kCommunication && !own.contains(info.kind)) || info.kind == OpKind::kLocalSlice;
    EXPECT_EQ(info.moves.has_value(), moves) << info.name;
    if (info.moves && !info.moves->dim.empty()) {
      EXPECT_NE(info.FindAttribute(info.moves->dim), nullptr) << info.name;
    }
  }
}

// Whether one of two resources contains the other. Both are written as in ops.def and states.def.
bool Overlap(std::string a, std::string b) {
  if (a == "{into}") return b.starts_with("$");  // any sum
  for (std::string* name : {&a, &b}) {
    *name = absl::StrReplaceAll(
        *name, {{"{modules}", "{module}"}, {"gradient_shards", "gradients"}, {"parameter_shards", "parameters"}});
    *name += ".";
  }
  return absl::StartsWith(a, b) || absl::StartsWith(b, a);
}

bool Names(const StateInfo& state, OpKind kind) {
  return std::any_of(state.lives.begin(), state.lives.end(), [&](const StateLife& life) {
    return std::any_of(life.steps.begin(), life.steps.end(), [&](const StateStep& step) {
      return std::find(step.kinds.begin(), step.kinds.end(), kind) != step.kinds.end();
    });
  });
}

TEST(StateTable, EveryEffectOfAnOperationIsInALife) {
  int effects = 0;
  for (const OpInfo& info : AllOps()) {
    if (info.kind == OpKind::kAccumulateCounts) continue;  // it reads a value of a block, so it is inside a call
    for (const StateEffect& effect : info.effects) {
      ++effects;
      EXPECT_TRUE(std::any_of(
          AllStates().begin(), AllStates().end(),
          [&](const StateInfo& state) { return Overlap(effect.resource, state.name) && Names(state, info.kind); }))
          << info.name << " " << effect.resource;
    }
    if (info.op_class == OpClass::kState || info.op_class == OpClass::kStorage) {
      EXPECT_NE(ListsOf(info.kind), "") << info.name;
    }
  }
  EXPECT_GT(effects, 20);
}

TEST(StateTable, EveryStepOfALifeTouchesTheState) {
  for (const StateInfo& state : AllStates()) {
    EXPECT_FALSE(state.is.empty()) << state.name;
    std::set<std::string> lists;
    for (const StateLife& life : state.lives) {
      EXPECT_TRUE(lists.insert(life.list).second) << state.name << " has two lives in " << life.list;
      std::set<OpKind> kinds;
      for (const StateStep& step : life.steps) {
        for (OpKind kind : step.kinds) {
          const OpInfo& info = InfoOf(kind);
          EXPECT_TRUE(kinds.insert(kind).second) << state.name << " " << info.name;
          if (!IsStateName(state.name) || info.effects.empty()) continue;  // by name; a call, or a collective
          EXPECT_TRUE(std::any_of(info.effects.begin(), info.effects.end(),
                                  [&](const StateEffect& effect) { return Overlap(effect.resource, state.name); }))
              << state.name << " " << info.name;
        }
      }
    }
  }
}

TEST(OpTable, ReferenceIsInStep) {
  const std::string path = InSource("docs/operations.md"), made = OperationsReference();
  if (std::getenv("UPDATE_GOLDENS") != nullptr) std::ofstream(path, std::ios::binary) << made;
  std::ifstream in(path, std::ios::binary);
  const std::string written(std::istreambuf_iterator<char>(in), {});
  EXPECT_TRUE(written == made)
      << "docs/operations.md is out of step: write it again with `plan explain --operations > docs/operations.md`";
}

}  // namespace
}  // namespace planwright
