#include "planner/plan/state_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/plan.h"
#include "planner/plan/table_text.h"

namespace planwright {
namespace {

using std::string;

// "NAME or NAME any when FORMULA"
StateStep TakeStep(LineReader& line) {
  StateStep step;
  do {
    step.kinds.push_back(line.TakeKind());
  } while (line.TakeIf("or"));
  step.any = line.TakeIf("any");
  if (line.TakeIf("when")) step.when = line.TakeFormula();
  return step;
}

bool IsList(const string& name) {
  return std::any_of(std::begin(kRoleLists), std::end(kRoleLists),
                     [&](const RoleList& list) { return list.name == name; });
}

// "is TEXT", "LIST STEP, STEP, ..."
void AddLine(LineReader& line, StateInfo& info) {
  const string word = line.Take();
  if (word == "is") {
    info.is = line.Rest();
    return;
  }
  line.Check(IsList(word), Quoted(word) + " is no list of a role");
  StateLife& life = info.lives.emplace_back(StateLife{word, {}});
  do {
    life.steps.push_back(TakeStep(line));
  } while (line.TakeIf(','));
  line.NeedEnd();
}

StateInfo ParseState(std::string_view name, std::string_view text, TextProblems& problems) {
  StateInfo info = {.name = string(name), .is = {}, .lives = {}};
  ReadLines(text, Cat("states.def, entry ", name), problems, [&](LineReader& line) { AddLine(line, info); });
  return info;
}

std::vector<StateInfo> ParseStates() {
  TextProblems problems;
  std::vector<StateInfo> table = {
#define STATE(name, text) ParseState(name, text, problems),
#include "planner/plan/states.def"
#undef STATE
  };
  BuiltInText(problems);
  return table;
}

string StepText(const StateStep& step) {
  const auto name = [](string* out, OpKind kind) { absl::StrAppend(out, string(OpName(kind))); };
  return absl::StrCat(absl::StrJoin(step.kinds, " or ", name), step.any ? " any" : "",
                      step.when ? absl::StrCat(" when ", step.when->text()) : "");
}

}  // namespace

const StateLife* StateInfo::LifeIn(std::string_view list) const {
  const auto found = std::find_if(lives.begin(), lives.end(), [&](const StateLife& life) { return life.list == list; });
  return found == lives.end() ? nullptr : &*found;
}

const std::vector<StateInfo>& AllStates() {
  static const std::vector<StateInfo> table = ParseStates();
  return table;
}

string ListsOf(OpKind kind) {
  std::vector<string> lists;
  for (const RoleList& list : kRoleLists) {
    const bool here = std::any_of(AllStates().begin(), AllStates().end(), [&](const StateInfo& state) {
      const StateLife* life = state.LifeIn(list.name);
      return life && std::any_of(life->steps.begin(), life->steps.end(), [&](const StateStep& step) {
               return std::find(step.kinds.begin(), step.kinds.end(), kind) != step.kinds.end();
             });
    });
    if (here) lists.emplace_back(list.name);
  }
  return absl::StrJoin(lists, ", ");
}

string StatesReference() {
  string page = "\n## What outlives a list\n\n";
  AppendWrapped(
      "Each state, and the instructions of each list of a role that touch it, in their order. This part is made from "
      "the table `planner/plan/states.def`, whose head explains the notation. An instruction stands there once; with "
      "`any`, as often as other rules allow; with `when`, exactly where the formula is not 0. What a list does beyond "
      "this, or in another order, is refused (V7).",
      "", page);
  for (const StateInfo& state : AllStates()) {
    absl::StrAppend(&page, "\n### `", state.name, "`\n\n");
    AppendWrapped(state.is, "", page);
    page += "\n";
    const auto text = [](string* out, const StateStep& step) { absl::StrAppend(out, StepText(step)); };
    for (const StateLife& life : state.lives) {
      AppendWrapped(absl::StrCat("- ", life.list, ": `", absl::StrJoin(life.steps, "`, `", text), "`"), "  ", page);
    }
  }
  return page;
}

}  // namespace planwright
