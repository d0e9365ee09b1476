#include "planner/plan/statement/piece_judge.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_join.h"
#include "planner/base/text/limits.h"
#include "planner/base/text/text.h"
#include "planner/plan/op_table.h"
#include "planner/plan/statement/cut_judge.h"
#include "planner/plan/statement/gradient_paths.h"
#include "planner/plan/statement/prime_module.h"

namespace planwright {
namespace {

using std::string;
using Form = StatedWeight::Form;

size_t NumbersOfDraw(Init::Kind kind) {
  switch (kind) {
    case Init::Kind::kOnes:
    case Init::Kind::kZeros: return 0;
    case Init::Kind::kNormal: return 1;
    default: return 2;
  }
}

// What the data decides: primes too.
const std::map<string, double>& PrimeData() {
  static const std::map<string, double> sizes = {
      {"samples", 100003}, {"documents", 100019}, {"image_rows*", 100043}, {"images", 100049}, {"patches", 100057}};
  return sizes;
}

}  // namespace

PieceJudge::PieceJudge(const ModelStatement& statement, const string& name, const StatedPiece& piece,
                       const ModelNumbers& numbers, ProblemList& problems)
    : statement_(statement), piece_(piece), name_(name), numbers_(numbers), problems_(problems),
      ranked_(statement, piece, numbers, PrimeData()) {}

void PieceJudge::Judge() {
  for (const auto& [where, message, from] : ranked_.problems())
    problems_.Add(where, Cat("piece ", name_, ": ", message), from);
  const StatedWeight* before = nullptr;
  for (const StatedWeight& weight : piece_.weights) {
    if (weight.joined && (!before || before->slot != weight.slot))
      Problem(weight.line, weight.slot,
              Cat("weight ", weight.name, " is joined, and the line before it is of another slot"));
    if (weight.joined && before && before->form != weight.form)
      Problem(weight.line, weight.slot, Cat("weight ", weight.name, " is joined to a weight of another form"));
    before = &weight;
    JudgeCondition(weight.when, weight.line, Cat("weight ", weight.name));
    if (numbers_.Hold(weight.when)) JudgeWeight(weight);
  }
  for (const StatedShare& share : piece_.shared) {
    JudgeCondition(share.when, share.line, Cat("slot ", share.slot));
    if (numbers_.Hold(share.when)) JudgeShared(share);
  }
  for (const StatedNeed& need : piece_.needs) {
    if (numbers_.Hold(need.when)) JudgeNeed(need);
  }
  if (!problems_.empty()) return;  // what follows asks for shapes that fit
  JudgeUses();
  CheckGradientPaths(name_, piece_, ranked_.computes(), problems_);
  CutJudge cuts(name_, piece_, numbers_, problems_);
  for (const RankPiece::Compute& compute : ranked_.computes()) {
    JudgeSettings(*compute.stated);
    JudgeAttributes(compute);
    JudgeSizes(*compute.stated);
    if (InfoOf(compute.instruction.kind).signature) cuts.Judge(compute);
  }
}

void PieceJudge::Problem(const StatedLine& line, std::string_view word, const string& text, std::string_view behind) {
  problems_.Add(PlaceOf(line, word, behind), Cat("piece ", name_, ": ", text));
}

// Whether a weight is there does not depend on what is trained: checkpoints hold it.
void PieceJudge::JudgeCondition(const std::optional<Expression>& when, const StatedLine& line, const string& what) {
  if (!when) return;
  for (const string& name : when->names()) {
    const auto named = [&](const auto& number) { return number.name == name; };
    if (AxisFromName(name) || std::any_of(statement_.constants.begin(), statement_.constants.end(), named) ||
        std::any_of(statement_.lets.begin(), statement_.lets.end(), named))
      continue;
    Problem(line, name, Cat(what, " has a condition of ", name, ", which is no constant and no axis"));
  }
}

// The gradients that both pieces add to one storage are parts of one cut, so that one bucket takes both.
void PieceJudge::JudgeShared(const StatedShare& share) {
  const std::vector<const StatedWeight*> weights = numbers_.WeightsOf(statement_.embed, share.of);
  const string what = Cat("embed.", share.of);
  if (&piece_ != &statement_.head)
    Problem(share.line, share.slot, "only the head shares slots, those of the embedding");
  if (weights.empty()) Problem(share.line, what, Cat("slot ", share.slot, " is ", what, ", which is not there"));
  for (const StatedWeight* weight : weights) {
    if (weight->form != Form::kWeight || weight->cut < 0)
      problems_.Add(
          PlaceOf(share.line, what),
          Cat("piece ", name_, ": slot ", share.slot, " is ", what, ", which is no weight that is cut over tp"),
          {PlaceOf(weight->line, weight->slot)});
  }
  const auto same = [&](const StatedShare& other) { return other.of == share.of && numbers_.Hold(other.when); };
  if (std::count_if(piece_.shared.begin(), piece_.shared.end(), same) > 1)
    Problem(share.line, what, Cat(what, " is shared with two slots"));
  const auto one_stage = [&](const StatedNeed& need) {
    return need.relation == StatedNeed::Relation::kAxisAtMost && need.axes.front() == Axis::kPp &&
           numbers_.Hold(need.when) && numbers_.Of(*need.right) <= 1;
  };
  if (std::none_of(piece_.needs.begin(), piece_.needs.end(), one_stage))
    Problem(share.line, share.slot,
            Cat("slot ", share.slot, " is ", what, ", and no line here needs pp at most 1, where it is"));
}

void PieceJudge::JudgeWeight(const StatedWeight& weight) {
  const auto problem = [&](std::string_view word, const string& text) {
    Problem(weight.line, word, Cat("weight ", weight.name, " ", text), weight.slot);
  };
  if (weight.projection && !statement_.has_images)
    problem(weight.name, "is of a projection, which only an encoder has");
  for (const Expression& formula : weight.shape) {
    const double size = numbers_.Of(formula);
    if (!(size >= 1) || size != std::floor(size))
      problem(formula.names().empty() ? formula.text() : formula.names().front(), Cat("has the size ", size));
  }
  const std::string_view draw = InitKindName(weight.draw);
  if (weight.numbers.size() != NumbersOfDraw(weight.draw)) problem(draw, "has a draw with another number of numbers");
  for (const Expression& number : weight.numbers) {
    if (!std::isfinite(numbers_.Of(number))) problem(draw, Cat("has a draw with ", number.text()));
  }
  if (weight.joined && (weight.cut > 0 || weight.cut != numbers_.WeightsOf(piece_, weight.slot).front()->cut))
    problem("cut", "is joined, and not cut as what it is joined to, along the dim of joining");
  if (weight.padded && weight.cut != 0) problem("padded", "is padded, and not cut along dim 0");
  if (weight.cut >= 0) JudgeCut(weight, numbers_.Of(weight.shape[static_cast<size_t>(weight.cut)]));
}

void PieceJudge::JudgeCut(const StatedWeight& weight, double size) {
  const auto problem = [&](std::string_view word, const string& text) {
    Problem(weight.line, word, Cat("weight ", weight.name, " ", text), weight.slot);
  };
  const std::vector<double> segments = SegmentsOf(weight, numbers_);
  if (std::accumulate(segments.begin(), segments.end(), 0.0) != size)
    problem("segments", Cat("has segments ", ShapeText(segments), " of another sum"));
  const Axis axis = weight.form == Form::kExperts ? Axis::kExpertTp : Axis::kTp;
  for (double segment : segments) {
    const bool divides = std::fmod(segment, PrimeOf(axis)) == 0;
    if (divides && weight.padded) problem("padded", "is padded, though a line needs that tp divides it");
    if (!divides && !weight.padded)
      problem("cut", Cat("is cut, and no line needs that ", AxisName(axis), " divides it"));
  }
  if (weight.form == Form::kExperts && std::fmod(numbers_("moe.experts"), PrimeOf(Axis::kEp)) != 0)
    problem(weight.name, "is divided over ep, and no line needs that ep divides it");
}

void PieceJudge::JudgeNeed(const StatedNeed& need) {
  if (need.relation == StatedNeed::Relation::kAxisAtMost) {
    const double most = numbers_.Of(*need.right);
    if (!(most >= 1) || most != std::floor(most))
      Problem(need.line, "most",
              Cat("needs ", AxisName(need.axes.front()), " at most ", need.right->text(), " = ", most));
    return;
  }
  const bool limit = need.right && (need.right->text() == "most_tokens" || need.right->text() == "largest_dim");
  const double left = numbers_.Of(need.left), right = need.right && !limit ? numbers_.Of(*need.right) : 0;
  const auto problem = [&](const string& text) {
    Problem(need.line, need.left.names().empty() ? "" : need.left.names().front(), text);
  };
  if (std::isnan(left) || std::isnan(right))
    return problem(Cat("needs something of ", need.left.text(), ", which has no value"));
  for (const Expression* formula : {&need.left, need.right ? &*need.right : nullptr}) {
    for (const string& name : formula == nullptr ? std::vector<string>() : formula->names()) {
      const auto real = [&](const StatedConstant& constant) { return constant.name == name && constant.real; };
      if (std::any_of(statement_.constants.begin(), statement_.constants.end(), real))
        return problem(Cat("needs something of ", name, ", which is real: whole numbers are compared"));
    }
  }
  double divisor = need.relation == StatedNeed::Relation::kMultiple ? right : 1;
  for (Axis axis : need.axes) divisor *= PrimeOf(axis);
  const bool most = need.relation == StatedNeed::Relation::kAtMost;
  if (most ? !limit && left > right : std::fmod(left, divisor) != 0)
    problem("no sizes were found that keep this line and the others that need something");
}

void PieceJudge::JudgeUses() {
  for (const RankPiece::Compute& compute : ranked_.computes())
    reads_.insert(compute.stated->inputs.begin(), compute.stated->inputs.end());
  JudgeSlots();
  for (const StatedProbe& probe : piece_.probes) {
    if (numbers_.Hold(probe.when) && !ranked_.shape(probe.value))
      Problem(probe.line, probe.value, Cat("probes ", probe.value, ", which is not there"));
  }
  for (const string& output : piece_.outputs) {
    const StatedCarry* carry = statement_.FindCarry(output);
    if (carry && ranked_.ShapeOf(*carry, numbers_.TapsBehind(piece_)).back() == 0) continue;  // it ends here
    if (!ranked_.shape(output)) Problem(piece_.outputs_line, output, Cat("returns ", output, ", which is not there"));
    reads_.insert(output);
  }
  if (!piece_.counts.empty()) reads_.insert(piece_.counts);
  for (const RankPiece::Compute& compute : ranked_.computes()) {
    const std::vector<string>& outputs = compute.stated->outputs;
    if (!outputs.empty() && std::none_of(outputs.begin(), outputs.end(), [&](const string& o) { return Reads(o); }))
      Problem(compute.stated->line, outputs.front(),
              Cat("makes ", absl::StrJoin(outputs, ", "), ", which nothing reads"));
  }
}

void PieceJudge::JudgeSlots() {
  std::map<string, std::vector<StatedLine>> readers;
  for (const RankPiece::Compute& compute : ranked_.computes()) {
    for (const string& slot : compute.instruction.parameters) readers[slot].push_back(compute.stated->line);
  }
  const auto judge = [&](const string& slot, const StatedLine& stated) {
    const std::vector<StatedLine>& lines = readers[slot];
    if (lines.empty()) Problem(stated, slot, Cat("slot ", slot, " is read 0 times"));
    if (lines.size() < 2) return;
    std::vector<Location> from = {PlaceOf(stated, slot)};
    for (const StatedLine& line : lines) from.push_back(PlaceOf(line, slot, "="));
    problems_.Add(from.back(), Cat("piece ", name_, ": slot ", slot, " is read ", lines.size(), " times"), from);
  };
  for (const StatedWeight& weight : piece_.weights) {
    if (numbers_.Hold(weight.when)) judge(weight.slot, weight.line);
  }
  for (const StatedShare& share : piece_.shared) {
    if (numbers_.Hold(share.when)) judge(share.slot, share.line);
  }
}

// Where axes divide heads and groups, each rank has whole ones. Sequences are the recipe's, which checks them.
void PieceJudge::JudgeAttributes(const RankPiece::Compute& compute) {
  const OpKind kind = compute.instruction.kind;
  for (const AttributeSpec& spec : InfoOf(kind).attributes) {
    if (spec.source != AttributeSource::kFormula || spec.type != AttributeType::kInteger) continue;
    if (compute.stated->FindSetting(spec.name)) continue;
    const std::vector<string>& names = spec.values.front().names();
    const double value = numbers_.Of(spec.values.front());
    if (std::isnan(value) || std::find(names.begin(), names.end(), "sequence") != names.end()) continue;
    if (value != std::floor(value))
      Problem(compute.stated->line, OpName(compute.stated->kind),
              Cat(OpName(kind), " has ", spec.name, " ", value, ", and no line needs that axes divide ", names.front()),
              "=");
  }
}

// What it makes has sizes by attributes that it has in this case.
void PieceJudge::JudgeSizes(const StatedCompute& compute) {
  const OpInfo& info = InfoOf(compute.kind);
  const auto has = [](const std::vector<OperandSignature>& list, const string& dim) {
    return std::any_of(list.begin(), list.end(), [&](const OperandSignature& operand) {
      return std::any_of(operand.dims.begin(), operand.dims.end(),
                         [&](const SignatureDim& each) { return each.name == dim; });
    });
  };
  for (const OpInfo::Size& size : info.sizes) {
    if (!info.signature || !has(info.signature->outputs, size.name) || has(info.signature->inputs, size.name)) continue;
    for (const string& name : size.value.names()) {
      const AttributeSpec* spec = info.FindAttribute(name);
      if (!spec || !spec->when || numbers_.Of(*spec->when) != 0) continue;
      Problem(compute.line, info.name,
              Cat(info.name, " makes ", size.name, " = ", size.value.text(), ", which it has where ",
                  spec->when->text(), ", and the line is there without it"),
              "=");
    }
  }
}

void PieceJudge::JudgeSettings(const StatedCompute& compute) {
  for (const StatedSetting& setting : compute.settings) {
    const auto problem = [&](const string& text) {
      Problem(compute.line, setting.attribute, Cat(OpName(compute.kind), " has ", text), "]");
    };
    const string what = Cat(setting.attribute, " ", setting.text);
    const AttributeSpec* spec = InfoOf(compute.kind).FindAttribute(setting.attribute);
    if (!spec) {
      problem("no " + what);
      continue;
    }
    const double number = numbers_.Of(setting);
    if (spec->source == AttributeSource::kFormula) {
      // A name is one of those that ops.def has; a formula has the number of one of them, whatever the layout.
      const bool allowed = std::any_of(spec->values.begin(), spec->values.end(), [&](const Expression& value) {
        return setting.formula ? numbers_.Of(value) == number : value.text() == setting.text;
      });
      if (!allowed) problem("no " + what);
    }
    if (spec->when && numbers_.Of(*spec->when) == 0)
      problem(Cat(setting.attribute, " where ", spec->when->text(), ", and the line sets it without that"));
    const bool whole = number >= 0 && number <= static_cast<double>(kLargestNumber) && number == std::floor(number);
    if (spec->of_model() && !(spec->type == AttributeType::kInteger ? whole : std::isfinite(number)))
      problem(Cat(what, ", which is ", number, " on some layout"));
  }
}

}  // namespace planwright
