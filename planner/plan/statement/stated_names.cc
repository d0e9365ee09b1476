#include "planner/plan/statement/stated_names.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "planner/base/text/near_name.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/statement/prime_module.h"

namespace planwright {
namespace {

using std::string;
using Names = std::set<string>;

// What each module has beside its constants (ModelNumbers).
const Names& GivenNumbers() {
  static const Names names = {"tp",
                              "cp",
                              "dp",
                              "pp",
                              "expert_tp",
                              "ep",
                              "expert_dp",
                              "layers",
                              "taps",
                              "sequence",
                              "samples",
                              "trains_backbone",
                              "gathers_tokens"};
  return names;
}

// What formulas of ops.def have beside.
const Names& OtherGivenNumbers() {
  static const Names names = {"image_token", "in_step"};
  return names;
}

// "hidden" of "sqrt(hidden)".
string Argument(const string& name) {
  constexpr std::string_view kRoot = "sqrt(";
  return name.starts_with(kRoot) && name.ends_with(')') ? name.substr(kRoot.size(), name.size() - kRoot.size() - 1)
                                                        : name;
}

}  // namespace

StatedNames::StatedNames(const ModelStatement& statement) : statement_(statement) {
  for (const string& name : GivenNumbers()) numbers_[name];
  for (const StatedConstant& constant : statement.constants) {
    std::set<char>& kinds = numbers_[constant.name];
    if (constant.of != 0) kinds.insert(constant.of);
  }
  for (const StatedNumber& let : statement.lets) {
    std::set<char> kinds;
    for (const string& name : let.formula.names()) {
      const auto used = numbers_.find(Argument(name));
      if (used != numbers_.end()) kinds.insert(used->second.begin(), used->second.end());
    }
    numbers_[let.name].insert(kinds.begin(), kinds.end());
  }
}

bool StatedNames::Knows(const string& name, char piece) const {
  const auto number = numbers_.find(name);
  return number != numbers_.end() &&
         std::all_of(number->second.begin(), number->second.end(), [&](char kind) { return kind == piece; });
}

const StatedConstant* StatedNames::FindConstant(const string& name) const {
  const auto found = std::find_if(statement_.constants.begin(), statement_.constants.end(),
                                  [&](const StatedConstant& constant) { return constant.name == name; });
  return found == statement_.constants.end() ? nullptr : &*found;
}

Names StatedNames::NumbersOfPiece(char piece) const {
  return piece != 0 && piece == statement_.TapLetter() ? Names{"tap"} : Names();
}

std::vector<string> StatedNames::Constants() const {
  std::vector<string> names;
  for (const StatedConstant& constant : statement_.constants) names.push_back(constant.name);
  return names;
}

void StatedNames::Check(const Expression& formula, const StatedLine& line, char piece, const Names& others,
                        ProblemList& problems) const {
  for (const string& name : formula.names()) CheckName(Argument(name), line, piece, others, problems);
}

void StatedNames::CheckName(const string& name, const StatedLine& line, char piece, const Names& others,
                            ProblemList& problems) const {
  if (problems.full() || others.contains(name) || Knows(name, piece)) return;
  const Location where = PlaceOf(line, name);
  if (const auto number = numbers_.find(name); number != numbers_.end()) {
    const char kind =
        *std::find_if(number->second.begin(), number->second.end(), [&](char each) { return each != piece; });
    return problems.Add(where, Cat(Quoted(name), " has no value in a module without layers ", string(1, kind)));
  }
  std::vector<string> known = Constants();
  for (const auto& [each, kinds] : numbers_) known.push_back(each);
  known.insert(known.end(), others.begin(), others.end());
  const string near = NearNameHelp(name, known);
  problems.Add(
      where, Cat(Quoted(name), " is no constant, no axis and no number of the model", near.empty() ? "" : "; ", near));
}

namespace {

// The numbers of the whole model, each of which uses those before it.
void CheckNumbers(const ModelStatement& statement, const StatedNames& names, ProblemList& problems) {
  Names taken = GivenNumbers();
  taken.insert(OtherGivenNumbers().begin(), OtherGivenNumbers().end());
  for (const char* name : {"tap", "count"}) taken.insert(name);
  Names lets, later;
  for (const StatedNumber& let : statement.lets) later.insert(let.name);
  for (const StatedConstant& constant : statement.constants) {
    if (!taken.insert(constant.name).second)
      problems.Add(PlaceOf(constant.line, constant.name), Cat("constant ", constant.name, " is there twice"));
  }
  for (const StatedNumber& let : statement.lets) {
    for (const string& name : let.formula.names()) {
      const string used = Argument(name);
      if (later.contains(used) && !lets.contains(used) && !names.FindConstant(used)) {
        problems.Add(PlaceOf(let.line, used, "="), Cat(Quoted(used), " is a number of a line that comes later"));
      } else if (!taken.contains(used)) {
        names.CheckName(used, let.line, 0, {}, problems);
      }
    }
    if (!taken.insert(let.name).second)
      problems.Add(PlaceOf(let.line, let.name), Cat("number ", let.name, " is there twice"));
    lets.insert(let.name);
  }
  Names sizes = {"images", "patches"};
  for (const StatedNumber& size : statement.sizes) {
    names.Check(size.formula, size.line, 0, sizes, problems);
    if (!sizes.insert(size.name).second || taken.contains(size.name))
      problems.Add(PlaceOf(size.line, size.name), Cat("number ", size.name, " is there twice"));
  }
}

// `others`: as in StatedNames::Check.
void CheckType(const StatedType& type, const StatedNames& names, const Names& others, ProblemList& problems) {
  for (const StatedType::Size& size : type.sizes) {
    if (const auto* formula = std::get_if<Expression>(&size)) names.Check(*formula, type.line, 0, others, problems);
  }
}

}  // namespace

void CheckModelNames(const ModelStatement& statement, const StatedNames& names, ProblemList& problems) {
  CheckNumbers(statement, names, problems);
  CheckType(statement.stream, names, {}, problems);
  for (const auto& [name, type] : statement.given) CheckType(type, names, {}, problems);
  for (const StatedCarry& carry : statement.carries) CheckType(carry.type, names, {"count"}, problems);
}

void CheckPieceNames(const StatedPiece& piece, char kind, const StatedNames& names, ProblemList& problems) {
  const auto check = [&](const Expression& formula, const StatedLine& line, const Names& others = {}) {
    names.Check(formula, line, kind, others, problems);
  };
  for (const StatedWeight& weight : piece.weights) {
    if (weight.when) check(*weight.when, weight.line);
    for (const auto* formulas : {&weight.shape, &weight.segments, &weight.numbers}) {
      for (const Expression& formula : *formulas) check(formula, weight.line);
    }
    if (weight.form == StatedWeight::Form::kExperts && !names.FindConstant("moe.experts"))
      problems.Add(PlaceOf(weight.line, "experts"),
                   "experts are as many as the constant moe.experts, which is not there");
  }
  for (const StatedShare& share : piece.shared) {
    if (share.when) check(*share.when, share.line);
  }
  for (const StatedNeed& need : piece.needs) {
    for (const string& name : need.when ? need.when->names() : std::vector<string>()) {
      const StatedConstant* constant = names.FindConstant(name);
      if (!constant || (constant->of != 0 && constant->of != kind))
        problems.Add(PlaceOf(need.line, name), Cat("the line has a condition of ", name,
                                                   ", which is no constant of each module with this piece"));
    }
    check(need.left, need.line);
    if (need.right) check(*need.right, need.line, {"most_tokens", "largest_dim"});
  }
  for (const StatedProbe& probe : piece.probes) {
    if (probe.when) check(*probe.when, probe.line, names.NumbersOfPiece(kind));
  }
  for (const StatedCompute& compute : piece.computes) {
    if (compute.when) check(*compute.when, compute.line, names.NumbersOfPiece(kind));
  }
}

}  // namespace planwright
