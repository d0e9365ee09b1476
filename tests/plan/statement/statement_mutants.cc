#include "tests/plan/statement/statement_mutants.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/plan/op_table.h"
#include "planner/plan/statement/prime_module.h"
#include "tests/plan/statement/key_lines.h"

namespace planwright::testing {
namespace {

using std::string;
using Form = StatedWeight::Form;

string FormulaList(const std::vector<Expression>& formulas) {
  return absl::StrCat(
      "[",
      absl::StrJoin(formulas, ", ",
                    [](string* out, const Expression& formula) { absl::StrAppend(out, formula.text()); }),
      "]");
}

string WhenText(const std::optional<Expression>& when) { return when ? absl::StrCat("when ", when->text(), ": ") : ""; }

string WeightLine(const StatedWeight& weight) {
  constexpr const char* kForms[] = {"weight", "experts", "buffer"};
  const string word = weight.joined ? "joined" : WhenText(weight.when) + kForms[static_cast<int>(weight.form)];
  string line = absl::StrCat(word, " ", weight.slot, " ", weight.name, " ", FormulaList(weight.shape));
  if (weight.cut >= 0) absl::StrAppend(&line, " cut ", weight.cut);
  if (!weight.segments.empty()) absl::StrAppend(&line, " segments ", FormulaList(weight.segments));
  if (weight.padded) line += " padded";
  absl::StrAppend(&line, " ", string(InitKindName(weight.draw)));
  if (!weight.numbers.empty()) absl::StrAppend(&line, " ", FormulaList(weight.numbers));
  return absl::StrCat(line, " in ", weight.file_prefix, weight.projection ? " of the projection" : "");
}

string ComputeLine(const StatedCompute& compute) {
  string line = WhenText(compute.when);
  if (compute.each) line += "each ";
  std::vector<string> words = compute.outputs;
  words.push_back("=");
  words.emplace_back(OpName(compute.kind));
  words.insert(words.end(), compute.inputs.begin(), compute.inputs.end());
  if (!compute.slots.empty() || !compute.settings.empty())
    words.push_back(absl::StrCat("[", absl::StrJoin(compute.slots, " "), "]"));
  for (const StatedSetting& setting : compute.settings)
    words.push_back(absl::StrCat(setting.attribute, " ", setting.text));
  return line + absl::StrJoin(words, " ");
}

string NeedLine(const StatedNeed& need) {
  const string when = WhenText(need.when);
  if (need.relation == StatedNeed::Relation::kAxisAtMost)
    return absl::StrCat(when, "needs ", string(AxisName(need.axes.front())), " at most ", need.right->text());
  if (!need.axes.empty()) {
    const string axes =
        absl::StrJoin(need.axes, " x ", [](string* out, Axis axis) { absl::StrAppend(out, string(AxisName(axis))); });
    const bool multiple = need.relation == StatedNeed::Relation::kDividesOrMultiple;
    return absl::StrCat(when, "needs ", axes, " divides ", need.left.text(), multiple ? " or is a multiple" : "");
  }
  return absl::StrCat(when, "needs ", need.left.text(),
                      need.relation == StatedNeed::Relation::kMultiple ? " multiple of " : " at most ",
                      need.right->text(), need.called.empty() ? "" : " called ", need.called);
}

string TypeText(const StatedType& type) {
  const string sizes = absl::StrJoin(type.sizes, ", ", [](string* out, const StatedType::Size& size) {
    const auto* formula = std::get_if<Expression>(&size);
    absl::StrAppend(out, formula ? formula->text() : absl::StrCat(".", std::get<string>(size)));
  });
  if (type.cut < 0) return absl::StrCat("[", sizes, "]");
  const string over =
      absl::StrJoin(type.over, " ", [](string* out, Axis axis) { absl::StrAppend(out, string(AxisName(axis))); });
  return absl::StrCat("[", sizes, "] cut ", type.cut, " over ", over);
}

StatedPiece& PieceOf(ModelStatement& statement, const string& name) {
  return const_cast<StatedPiece&>(*PiecesOf(statement).at(name));
}

class Mutations {
 public:
  explicit Mutations(const ModelStatement& statement) : statement_(statement) { seen_.insert(Text(statement)); }

  std::vector<StatementMutant> All() {
    for (const StatedNumber& let : statement_.lets) MutateLet(let.name);
    for (const auto& [name, piece] : PiecesOf(statement_)) {
      piece_ = name;
      for (size_t i = 0; i < piece->weights.size(); ++i) MutateWeight(*piece, i);
      for (size_t i = 0; i < piece->shared.size(); ++i) MutateShare(*piece, i);
      for (size_t i = 0; i < piece->needs.size(); ++i) MutateNeed(*piece, i);
      for (size_t i = 0; i < piece->computes.size(); ++i) MutateCompute(*piece, i);
    }
    return std::move(mutants_);
  }

 private:
  static string Text(const ModelStatement& statement) { return absl::StrJoin(StatementLines(statement), "\n"); }

  // Adds the mutant unless it says the same as the statement or as another one.
  void Add(const string& name, const std::function<void(ModelStatement&)>& change) {
    ModelStatement mutant = statement_;
    change(mutant);
    if (seen_.insert(Text(mutant)).second) mutants_.push_back({piece_, name, std::move(mutant), lines_});
  }

  void AddPiece(const string& name, const std::function<void(StatedPiece&)>& change) {
    Add(name, [&](ModelStatement& mutant) { change(PieceOf(mutant, piece_)); });
  }

  // Formulas with one constant in place of another: the two before and after it in the statement.
  std::vector<Expression> OtherFormulas(const Expression& formula) const {
    std::vector<Expression> others;
    for (const string& name : formula.names()) {
      for (const string& other : Neighbours(name)) {
        string text = formula.text();
        const size_t at = text.find(name);
        text.replace(at, name.size(), other);
        others.push_back(*Expression::Parse(text));
      }
    }
    return others;
  }

  std::vector<string> Neighbours(const string& name) const {
    std::vector<string> numbers;
    for (const StatedConstant& constant : statement_.constants) numbers.push_back(constant.name);
    for (const auto& let : statement_.lets) numbers.push_back(let.name);
    const auto at = std::find(numbers.begin(), numbers.end(), name);
    std::vector<string> neighbours;
    if (at != numbers.end() && at != numbers.begin()) neighbours.push_back(*std::prev(at));
    if (at != numbers.end() && std::next(at) != numbers.end()) neighbours.push_back(*std::next(at));
    return neighbours;
  }

  void MutateLet(const string& name) {
    piece_ = "let";
    const auto it =
        std::find_if(statement_.lets.begin(), statement_.lets.end(), [&](const auto& let) { return let.name == name; });
    for (const Expression& other : OtherFormulas(it->formula)) {
      // A formula may use what is before it only.
      const bool later = std::any_of(other.names().begin(), other.names().end(), [&](const string& used) {
        return std::any_of(it, statement_.lets.end(), [&](const auto& let) { return let.name == used; });
      });
      if (later) continue;
      Add(absl::StrCat("makes ", name, " of ", other.text()), [&](ModelStatement& mutant) {
        mutant.lets[static_cast<size_t>(it - statement_.lets.begin())].formula = other;
      });
    }
  }

  void MutateWeight(const StatedPiece& piece, size_t i) {
    const StatedWeight& weight = piece.weights[i];
    lines_ = {weight.line};
    const auto add = [&](const string& name, const std::function<void(StatedWeight&)>& change) {
      AddPiece(absl::StrCat(name, " of ", weight.name), [&](StatedPiece& mutant) { change(mutant.weights[i]); });
    };
    AddPiece("leaves out " + weight.name, [&](StatedPiece& mutant) {
      mutant.weights.erase(mutant.weights.begin() + static_cast<std::ptrdiff_t>(i));
    });
    if (i + 1 < piece.weights.size()) {
      const string both = absl::StrCat(weight.name, " and ", piece.weights[i + 1].name);
      lines_.push_back(piece.weights[i + 1].line);
      AddPiece("exchanges the names of " + both,
               [&](StatedPiece& mutant) { std::swap(mutant.weights[i].name, mutant.weights[i + 1].name); });
      AddPiece("exchanges the slots of " + both,
               [&](StatedPiece& mutant) { std::swap(mutant.weights[i].slot, mutant.weights[i + 1].slot); });
      AddPiece("exchanges " + both, [&](StatedPiece& mutant) { std::swap(mutant.weights[i], mutant.weights[i + 1]); });
      lines_.pop_back();
    }
    for (int cut = -1; cut < static_cast<int>(weight.shape.size()); ++cut) {
      if (weight.form == Form::kExperts && cut < 0) continue;  // without a cut it is no stack of experts
      add(absl::StrCat("has the cut ", cut), [&](StatedWeight& mutant) {
        mutant.cut = cut;
        if (cut < 0) mutant.segments.clear();
      });
    }
    for (size_t s = 0; s + 1 < weight.segments.size(); ++s) {
      add(absl::StrCat("exchanges the segments ", s, " and ", s + 1),
          [&](StatedWeight& mutant) { std::swap(mutant.segments[s], mutant.segments[s + 1]); });
    }
    if (!weight.segments.empty()) add("has one segment", [](StatedWeight& mutant) { mutant.segments.clear(); });
    if (weight.shape.size() > 1)
      add("exchanges the dims 0 and 1", [](StatedWeight& mutant) { std::swap(mutant.shape[0], mutant.shape[1]); });
    for (size_t d = 0; d < weight.shape.size(); ++d) {
      for (const Expression& other : OtherFormulas(weight.shape[d]))
        add(absl::StrCat("has a dim ", other.text()), [&](StatedWeight& mutant) { mutant.shape[d] = other; });
    }
    for (size_t n = 0; n < weight.numbers.size(); ++n) {
      for (const Expression& other : OtherFormulas(weight.numbers[n]))
        add(absl::StrCat("draws with ", other.text()), [&](StatedWeight& mutant) { mutant.numbers[n] = other; });
    }
    add("draws zeros", [](StatedWeight& mutant) { mutant.draw = Init::Kind::kZeros, mutant.numbers.clear(); });
    add("draws ones", [](StatedWeight& mutant) { mutant.draw = Init::Kind::kOnes, mutant.numbers.clear(); });
    add("is no buffer, or one",
        [](StatedWeight& mutant) { mutant.form = mutant.form == Form::kBuffer ? Form::kWeight : Form::kBuffer; });
    if (i > 0) add(weight.joined ? "is not joined" : "is joined", [](StatedWeight& mutant) { mutant.joined ^= true; });
    add(weight.padded ? "is not padded" : "is padded", [](StatedWeight& mutant) { mutant.padded = !mutant.padded; });
    add("is in the other part", [](StatedWeight& mutant) { mutant.projection = !mutant.projection; });
    MutateCondition(weight.when, add);
  }

  void MutateShare(const StatedPiece& piece, size_t i) {
    const StatedShare& share = piece.shared[i];
    lines_ = {share.line};
    const auto add = [&](const string& name, const std::function<void(StatedShare&)>& change) {
      AddPiece(absl::StrCat(name, " of shared ", share.slot), [&](StatedPiece& mutant) { change(mutant.shared[i]); });
    };
    AddPiece("leaves out shared " + share.slot,
             [&](StatedPiece& mutant) { mutant.shared.erase(mutant.shared.begin() + static_cast<std::ptrdiff_t>(i)); });
    for (const string& other : Slots(piece))
      add("has the slot " + other, [&](StatedShare& mutant) { mutant.slot = other; });
    for (const string& other : Slots(piece)) add("is embed." + other, [&](StatedShare& mutant) { mutant.of = other; });
    MutateCondition(share.when, add);
  }

  // Lines that ask of an axis. What sizes need, other mutants show: of weights that are cut otherwise.
  void MutateNeed(const StatedPiece& piece, size_t i) {
    const StatedNeed& need = piece.needs[i];
    if (need.relation != StatedNeed::Relation::kAxisAtMost) return;
    lines_ = {need.line};
    const auto add = [&](const string& name, const std::function<void(StatedNeed&)>& change) {
      AddPiece(absl::StrCat(name, " of ", NeedLine(need)), [&](StatedPiece& mutant) { change(mutant.needs[i]); });
    };
    AddPiece("leaves out " + NeedLine(need),
             [&](StatedPiece& mutant) { mutant.needs.erase(mutant.needs.begin() + static_cast<std::ptrdiff_t>(i)); });
    add("has more",
        [&](StatedNeed& mutant) { mutant.right = Expression::Parse(absl::StrCat(need.right->text(), " + 1")); });
    add("is of another axis",
        [](StatedNeed& mutant) { mutant.axes = {mutant.axes.front() == Axis::kPp ? Axis::kCp : Axis::kPp}; });
    MutateCondition(need.when, add);
  }

  void MutateCompute(const StatedPiece& piece, size_t i) {
    const StatedCompute& compute = piece.computes[i];
    lines_ = {compute.line};
    const string of = absl::StrCat(" of ", ComputeLine(compute));
    const auto add = [&](const string& name, const std::function<void(StatedCompute&)>& change) {
      AddPiece(name + of, [&](StatedPiece& mutant) { change(mutant.computes[i]); });
    };
    AddPiece("leaves out" + of.substr(3), [&](StatedPiece& mutant) {
      mutant.computes.erase(mutant.computes.begin() + static_cast<std::ptrdiff_t>(i));
    });
    MutateNames("input", &StatedCompute::inputs, compute, EarlierValues(piece, i), add);
    MutateNames("slot", &StatedCompute::slots, compute, Slots(piece), add);
    if (!compute.slots.empty()) {
      const bool marked = compute.slots.back().ends_with('?');
      add(marked ? "always reads the last slot" : "reads the last slot where it exists", [&](StatedCompute& mutant) {
        string& slot = mutant.slots.back();
        slot = marked ? PlainSlot(slot) : slot + "?";
      });
    }
    MutateNames("result", &StatedCompute::outputs, compute, {}, add);
    for (size_t n = 0; compute.each && n < compute.outputs.size(); ++n) {
      if (!IsRead(compute.outputs[n])) continue;
      add(absl::StrCat("has the result ", n, " once, or for each encoder,"), [&](StatedCompute& mutant) {
        string& output = mutant.outputs[n];
        output.ends_with('*') ? output.pop_back() : output.push_back('*');
      });
    }
    for (size_t s = 0; s < compute.settings.size(); ++s) {
      const StatedSetting& setting = compute.settings[s];
      for (const string& other : Neighbours(setting.text))
        add(absl::StrCat("has the setting ", other), [&](StatedCompute& mutant) { mutant.settings[s].text = other; });
      for (const Expression& other : setting.formula ? OtherFormulas(*setting.formula) : std::vector<Expression>()) {
        add(absl::StrCat("has the setting ", other.text()), [&](StatedCompute& mutant) {
          mutant.settings[s] = {setting.attribute, other.text(), other};
        });
      }
      add(absl::StrCat("lacks the setting ", setting.attribute), [&](StatedCompute& mutant) {
        mutant.settings.erase(mutant.settings.begin() + static_cast<std::ptrdiff_t>(s));
      });
    }
    MutateCondition(compute.when, add);
    for (OpKind kind : {OpKind::kGelu, OpKind::kSquaredRelu, OpKind::kRmsNorm, OpKind::kAdd}) {
      if (!compute.outputs.empty() && (kind == OpKind::kRmsNorm) == (compute.outputs.size() == 2))
        add(absl::StrCat("has the kind ", string(OpName(kind))), [&](StatedCompute& mutant) { mutant.kind = kind; });
    }
  }

  template <typename AddChange>
  static void MutateCondition(const std::optional<Expression>& when, const AddChange& add) {
    if (when) {
      add("is always there", [](auto& mutant) { mutant.when.reset(); });
      add("has the opposite condition",
          [&](auto& mutant) { mutant.when = Expression::Parse(absl::StrCat("1 - (", when->text(), ")")); });
    } else {
      add("has a condition", [](auto& mutant) { mutant.when = Expression::Parse("trains_backbone"); });
    }
  }

  // Two exchanged, one left out, one replaced by the nearest of `others` on each side.
  template <typename AddChange>
  void MutateNames(const char* what, std::vector<string> StatedCompute::*list, const StatedCompute& compute,
                   const std::vector<string>& others, const AddChange& add) {
    const std::vector<string>& names = compute.*list;
    for (size_t n = 0; n < names.size(); ++n) {
      // Names of results that nothing reads mean nothing.
      const bool results = list == &StatedCompute::outputs;
      if (n + 1 < names.size() && !(results && !IsRead(names[n]) && !IsRead(names[n + 1])))
        add(absl::StrCat("exchanges the ", what, "s ", n, " and ", n + 1),
            [&](StatedCompute& mutant) { std::swap((mutant.*list)[n], (mutant.*list)[n + 1]); });
      add(absl::StrCat("leaves out the ", what, " ", n), [&](StatedCompute& mutant) {
        (mutant.*list).erase((mutant.*list).begin() + static_cast<std::ptrdiff_t>(n));
      });
      const string name = list == &StatedCompute::slots ? PlainSlot(names[n]) : names[n];
      const auto at = std::find(others.begin(), others.end(), name);
      if (at == others.end()) continue;
      const auto replace = [&](const string& other) {
        add(absl::StrCat("has the ", what, " ", other, " in place of ", names[n]),
            [&](StatedCompute& mutant) { (mutant.*list)[n] = other; });
      };
      if (at != others.begin()) replace(*std::prev(at));
      if (std::next(at) != others.end()) replace(*std::next(at));
    }
  }

  bool IsRead(const string& value) const {
    const StatedPiece& piece = *PiecesOf(statement_).at(piece_);
    const auto has = [&](const std::vector<string>& names) {
      return std::find(names.begin(), names.end(), value) != names.end();
    };
    return has(piece.outputs) || piece.counts == value ||
           std::any_of(piece.computes.begin(), piece.computes.end(),
                       [&](const StatedCompute& compute) { return has(compute.inputs); });
  }

  static std::vector<string> EarlierValues(const StatedPiece& piece, size_t compute) {
    std::vector<string> values = piece.inputs;
    for (size_t i = 0; i < compute; ++i) {
      for (const string& output : piece.computes[i].outputs) values.push_back(output);
    }
    return values;
  }

  static std::vector<string> Slots(const StatedPiece& piece) {
    std::vector<string> slots;
    for (const StatedWeight& weight : piece.weights) slots.push_back(weight.slot);
    return slots;
  }

  const ModelStatement& statement_;
  string piece_;
  std::vector<StatedLine> lines_;  // that the mutation changes
  std::set<string> seen_;
  std::vector<StatementMutant> mutants_;
};

}  // namespace

std::vector<StatementMutant> MutantsOf(const ModelStatement& statement) { return Mutations(statement).All(); }

std::vector<string> StatementLines(const ModelStatement& statement) {
  std::vector<string> lines;
  lines.push_back(absl::StrCat("kind ", statement.kind));
  if (statement.has_images) lines.emplace_back("can has_images");
  if (statement.carries_loss) lines.emplace_back("can carries_loss");
  for (const string& line : KeyLines(statement)) lines.push_back(line);
  for (const StatedNumber& let : statement.lets)
    lines.push_back(absl::StrCat("let ", let.name, " = ", let.formula.text()));
  lines.push_back(absl::StrCat("stream ", TypeText(statement.stream), statement.zigzag ? " zigzag" : ""));
  for (const StatedCarry& carry : statement.carries)
    lines.push_back(absl::StrCat("carry ", carry.name, " ", TypeText(carry.type), carry.partial ? " partial" : ""));
  for (const auto& [name, type] : statement.given) {
    lines.push_back(absl::StrCat("given ", name, type.dtype ? absl::StrCat(" ", string(DTypeName(*type.dtype))) : "",
                                 type.host ? " host" : "", " ", TypeText(type), type.learns ? " learns" : ""));
  }
  for (const auto& [part, whole] : statement.gathered) lines.push_back(absl::StrCat("gathered ", part, " ", whole));
  for (const StatedNumber& size : statement.sizes)
    lines.push_back(absl::StrCat("size ", size.name, " = ", size.formula.text()));
  for (const auto& [name, piece] : PiecesOf(statement)) {
    const auto add = [&, &piece_name = name](const string& line) {
      lines.push_back(absl::StrCat(piece_name, ": ", line));
    };
    if (!piece->prefix.empty()) add("prefix " + piece->prefix);
    for (const StatedWeight& weight : piece->weights) add(WeightLine(weight));
    for (const StatedShare& share : piece->shared)
      add(absl::StrCat(WhenText(share.when), "shared ", share.slot, " = embed.", share.of));
    for (const StatedNeed& need : piece->needs) add(NeedLine(need));
    for (const auto& [word, names] : {std::pair("inputs", &piece->inputs), std::pair("outputs", &piece->outputs)})
      add(absl::StrCat(word, names->empty() ? "" : " ", absl::StrJoin(*names, " ")));
    for (const StatedCompute& compute : piece->computes) add(ComputeLine(compute));
    if (!piece->counts.empty()) add("counts " + piece->counts);
    for (const auto& [value, parts] : piece->parts) add(absl::StrCat("split ", value, " ", absl::StrJoin(parts, " ")));
    for (const StatedProbe& probe : piece->probes)
      add(absl::StrCat(WhenText(probe.when), "probe ", probe.value, " ", probe.name));
    for (const auto& [word, order] :
         {std::pair("forward", &piece->overlap_forward), std::pair("backward", &piece->overlap_backward)}) {
      if (!order->empty()) add(absl::StrCat("order overlap ", word, ": ", absl::StrJoin(*order, " ")));
    }
  }
  return lines;
}

}  // namespace planwright::testing
