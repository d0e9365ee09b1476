#include "planner/plan/statement/rank_piece.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/limits.h"
#include "planner/base/text/near_name.h"
#include "planner/plan/op_table.h"
#include "planner/plan/statement/operand_sizes.h"

namespace planwright {
namespace {

using std::string;
using Shape = RankPiece::Shape;

// Of so many problems the nearest names are looked for: it takes the square of their number.
constexpr size_t kToldNear = 16;

string CountProblem(const RankPiece::Compute& compute, const OpInfo& info) {
  const Instruction& op = compute.instruction;
  const auto check = [&](const std::vector<OperandSignature>& list, size_t count, const char* what) -> string {
    return CountFits(list, count, op) ? "" : absl::StrCat("has ", count, " ", what, ", not ", list.size());
  };
  for (const string& problem : {check(info.signature->inputs, op.inputs.size(), "inputs"),
                                check(info.signature->parameters, op.parameters.size(), "slots"),
                                check(info.signature->outputs, compute.stated->outputs.size(), "outputs")}) {
    if (!problem.empty()) return problem;
  }
  return "";
}

// The sizes that lines `size` and `parts` of the kind give to names.
string FormulaProblem(const Instruction& op, const OpInfo& info, OperandSizes& sizes) {
  const auto value_of = [&](const string& name) {
    const int64_t* attribute = op.FindInteger(name);
    return attribute ? static_cast<double>(*attribute) : sizes.Find(name);
  };
  string problem;
  const auto fix = [&](const string& name, double size) {
    if (std::isnan(size) || sizes.Fix(name, size) || !problem.empty()) return;
    problem = absl::StrCat("has ", name, " = ", sizes.Find(name), ", where it must be ", size);
  };
  for (const OpInfo::Size& size : info.sizes) {
    const double value = size.value.Evaluate(value_of);
    fix(size.name, size.rounded_up ? std::ceil(value) : value);
  }
  for (const OpInfo::Parts& parts : info.parts) {
    if (parts.sizes.empty() || parts.more) continue;  // those of the weight, or of an input
    double sum = 0;
    for (const Expression& part : parts.sizes) sum += part.Evaluate(value_of);
    fix(parts.name, sum);
  }
  return problem;
}

// Of which operand a problem is.
struct Operand {
  string name;  // empty: of all of them together
  bool slot = false;
};

// Gives names their sizes. Returns the first thing that does not fit, or "".
string OperandsProblem(const RankPiece::Compute& compute, const OpInfo& info, OperandSizes& sizes, Operand& of) {
  const Instruction& op = compute.instruction;
  string problem = CountProblem(compute, info);
  const auto bind = [&](const std::vector<OperandSignature>& list, const std::vector<string>& names,
                        const std::vector<Shape>& shapes) {
    for (size_t i = 0; i < shapes.size() && problem.empty(); ++i) {
      const string wrong = sizes.Bind(*OperandAt(list, i), shapes[i]);
      if (wrong.empty()) continue;
      of = {names[i], &list == &info.signature->parameters};
      problem = absl::StrCat("reads ", names[i], " ", ShapeText(shapes[i]), ", ", wrong);
    }
  };
  bind(info.signature->inputs, op.inputs, compute.inputs);
  bind(info.signature->parameters, op.parameters, compute.slots);
  if (problem.empty()) problem = FormulaProblem(op, info, sizes);
  return problem.empty() && !sizes.ProductsFit() ? "reads rows of another number" : problem;
}

// Whether the two differ in no dim but this one.
bool FitBeside(Shape shape, const Shape& other, size_t along) {
  if (shape.size() != other.size() || along >= shape.size()) return false;
  shape[along] = other[along];
  return shape == other;
}

}  // namespace

string ShapeText(const Shape& shape) { return absl::StrCat("[", absl::StrJoin(shape, ","), "]"); }

RankPiece::RankPiece(const ModelStatement& statement, const StatedPiece& piece, const ModelNumbers& numbers,
                     const std::map<string, double>& data)
    : statement_(statement), numbers_(numbers.OnOneRank(data)) {
  for (const string& input : piece.inputs) {
    if (const StatedCarry* carry = statement.FindCarry(input)) {
      Shape shape = ShapeOf(*carry, numbers.TapsBefore(piece));
      if (shape.back() == 0) {
        absent_[input].push_back(PlaceOf(carry->type.line, carry->name));
      } else {
        Define(input, std::move(shape), piece.inputs_line);
      }
      continue;
    }
    const StatedType* type = GivenType(input);
    if (!type)
      problems_.push_back({PlaceOf(piece.inputs_line, input), absl::StrCat("input ", input, " has no line given"), {}});
    Define(input, type ? ShapeOf(*type, numbers_) : Shape(), piece.inputs_line);
  }
  AddSlots(piece, numbers);
  for (const StatedCompute& compute : piece.computes) {
    if (numbers.Hold(compute.when)) {
      Add(compute, numbers.SlotsOf(piece, compute));
    } else if (compute.line) {
      for (const string& output : compute.outputs) absent_[output].push_back(PlaceOf(compute.line, output));
    }
  }
}

const Shape* RankPiece::shape(const string& value) const {
  const auto found = values_.find(value);
  return found == values_.end() ? nullptr : &found->second;
}

bool RankPiece::IsStream(const Shape& shape) const { return shape == ShapeOf(statement_.stream, numbers_); }

Shape RankPiece::ShapeOf(const StatedCarry& carry, int64_t count) const {
  return ShapeOf(carry.type, numbers_.Counting(count));
}

void RankPiece::AddSlots(const StatedPiece& piece, const ModelNumbers& numbers) {
  for (const StatedWeight& weight : piece.weights) {
    if (numbers.Hold(weight.when)) {
      AddToSlot(weight.slot, weight, PlaceOf(weight.line, weight.slot));
    } else if (weight.line) {
      absent_[weight.slot].push_back(PlaceOf(weight.line, weight.slot));
    }
  }
  for (const StatedShare& share : piece.shared) {
    const Location where = PlaceOf(share.line, share.slot);
    if (!numbers.Hold(share.when)) {
      if (share.line) absent_[share.slot].push_back(where);
      continue;
    }
    for (const StatedWeight* weight : numbers.WeightsOf(statement_.embed, share.of))
      AddToSlot(share.slot, *weight, where);
  }
}

void RankPiece::AddToSlot(const string& slot, const StatedWeight& weight, const Location& where) {
  Shape shape;
  for (const Expression& size : weight.shape) shape.push_back(numbers_.Of(size));
  const bool experts = weight.form == StatedWeight::Form::kExperts;
  if (experts) shape.insert(shape.begin(), numbers_("moe.experts"));
  const size_t along = experts ? 1 : 0;  // what is joined to it
  const auto [known, first] = slots_.emplace(slot, shape);
  if (!weight.joined) {
    if (!first) problems_.push_back({where, absl::StrCat("slot ", slot, " is there twice"), slot_lines_[slot]});
  } else if (first || !FitBeside(shape, known->second, along)) {
    problems_.push_back({PlaceOf(weight.line, weight.name),
                         absl::StrCat("weight ", weight.name, " does not fit what it is joined to"),
                         slot_lines_[slot]});
  } else {
    known->second[along] += shape[along];
  }
  if (!weight.line) return;
  slot_lines_[slot].push_back(where);
  if (weight.slot != slot) slot_lines_[slot].push_back(PlaceOf(weight.line, weight.slot));
}

void RankPiece::Define(const string& value, Shape shape, const StatedLine& line) {
  if (!values_.emplace(value, std::move(shape)).second)
    problems_.push_back({PlaceOf(line, value), absl::StrCat("makes ", value, " twice"), value_lines_[value]});
  if (line) value_lines_[value].push_back(PlaceOf(line, value));
}

// "rows*" and "document_ends?" are given without their marks.
const StatedType* RankPiece::GivenType(const string& input) const {
  if (input == "x") return &statement_.stream;
  const auto found = statement_.given.find(input.substr(0, input.find_first_of("*?")));
  return found == statement_.given.end() ? nullptr : &found->second;
}

Shape RankPiece::ShapeOf(const StatedType& type, const ModelNumbers& numbers) {
  Shape shape;
  for (const StatedType::Size& size : type.sizes) {
    const auto* formula = std::get_if<Expression>(&size);
    shape.push_back(formula ? numbers.Of(*formula) : numbers(std::get<string>(size)));
  }
  return shape;
}

// A dim that no operand and no line `size` of ops.def gives: a run-time size, or one of which nothing is known.
double RankPiece::Counted(const Compute& compute, const SignatureDim& dim) {
  const string* rows = InfoOf(compute.instruction.kind).FindRows(dim.name);
  const double size = rows ? numbers_(*rows) : std::nan("");
  return std::isnan(size) ? --unknown_ : size;
}

// Integers that follow from the numbers of the model: sizes are made of no others.
Attributes RankPiece::AttributesOf(OpKind kind, const StatedCompute& stated) const {
  Attributes attributes;
  for (const AttributeSpec& spec : InfoOf(kind).attributes) {
    if (!spec.of_model() || spec.type != AttributeType::kInteger) continue;
    if (spec.when && numbers_.Of(*spec.when) == 0) continue;
    const StatedSetting* setting = stated.FindSetting(spec.name);
    if (!setting && spec.values.empty()) continue;
    const double value = setting ? numbers_.Of(*setting) : numbers_.Of(spec.values.front());
    if (spec.source == AttributeSource::kStated && value == 0) continue;
    const bool fits = value >= 0 && value <= static_cast<double>(kLargestNumber) && value == std::floor(value);
    if (fits) attributes[spec.name] = static_cast<int64_t>(value);
  }
  return attributes;
}

void RankPiece::Problem(const Compute& compute, std::string_view word, const string& text, std::vector<Location> from) {
  const Instruction& instruction = compute.instruction;
  problems_.push_back({PlaceOf(compute.stated->line, word, "="),
                       absl::StrCat(string(OpName(instruction.kind)), " of ", absl::StrJoin(instruction.inputs, ", "),
                                    instruction.parameters.empty() ? "" : " with ",
                                    absl::StrJoin(instruction.parameters, ", "), " ", text),
                       std::move(from)});
}

std::vector<Shape> RankPiece::ShapesOf(const std::vector<string>& names, const std::map<string, Shape>& known,
                                       std::string_view what, const Compute& compute) {
  std::vector<Shape> shapes;
  for (const string& name : names) {
    const auto found = known.find(name);
    shapes.push_back(found == known.end() ? Shape() : found->second);
    if (found != known.end()) continue;
    std::vector<string> others;
    for (const auto& [other, shape] : known) others.push_back(other);
    const auto absent = absent_.find(name);
    const bool near_helps = absent == absent_.end() && name.size() > 2 && problems_.size() < kToldNear;
    const string near = near_helps ? NearNameHelp(name, others) : "";
    Problem(compute, name,
            absl::StrCat("reads ", string(what), name, ", which is not there", near.empty() ? "" : "; ", near),
            absent == absent_.end() ? std::vector<Location>() : absent->second);
  }
  return shapes;
}

void RankPiece::Add(const StatedCompute& stated, std::vector<string> slots) {
  const OpKind kind = InfoOf(stated.kind).on_one_rank.value_or(stated.kind);
  const OpInfo& info = InfoOf(kind);
  Compute& compute = computes_.emplace_back();
  compute.stated = &stated;
  Instruction& op = compute.instruction;
  op = {
      .kind = kind, .inputs = stated.inputs, .parameters = std::move(slots), .attributes = AttributesOf(kind, stated)};
  // What stands in place of another kind may read more than that, of where the rows are.
  const size_t before = problems_.size();
  if (kind != stated.kind && op.inputs.size() > info.signature->inputs.size()) {
    ShapesOf({op.inputs.begin() + static_cast<std::ptrdiff_t>(info.signature->inputs.size()), op.inputs.end()}, values_,
             "", compute);
    op.inputs.resize(info.signature->inputs.size());
  }
  compute.inputs = ShapesOf(op.inputs, values_, "", compute);
  compute.slots = ShapesOf(op.parameters, slots_, "slot ", compute);
  if (!info.signature) {
    for (const string& output : stated.outputs) Define(output, {}, stated.line);
    return;
  }
  OperandSizes sizes;
  const bool known =
      std::none_of(op.inputs.begin(), op.inputs.end(), [&](const string& input) { return doubtful_.contains(input); });
  if (problems_.size() == before && known) {
    Operand of;
    const string problem = OperandsProblem(compute, info, sizes, of);
    if (!problem.empty()) {
      const auto lines = [](const auto& known, const string& name) {
        const auto found = known.find(name);
        return found == known.end() ? std::vector<Location>() : found->second;
      };
      std::vector<Location> from = lines(of.slot ? slot_lines_ : value_lines_, of.name);
      for (const string& input : of.name.empty() ? op.inputs : std::vector<string>()) {
        for (const Location& line : lines(value_lines_, input)) from.push_back(line);
      }
      for (const string& slot : of.name.empty() ? op.parameters : std::vector<string>()) {
        for (const Location& line : lines(slot_lines_, slot)) from.push_back(line);
      }
      Problem(compute, of.name.empty() ? OpName(stated.kind) : std::string_view(of.name), problem, std::move(from));
    }
  }
  if (problems_.size() > before || !known) doubtful_.insert(stated.outputs.begin(), stated.outputs.end());
  for (size_t i = 0; i < stated.outputs.size(); ++i) {
    const string& name = stated.outputs[i];
    const OperandSignature* operand = OperandAt(info.signature->outputs, i);
    Shape shape = operand ? sizes.Make(*operand) : Shape();
    // Leading dims are those of an operand, and known.
    const size_t leading = operand ? shape.size() - operand->dims.size() : 0;
    for (size_t d = leading; d < shape.size(); ++d) {
      if (!std::isnan(shape[d])) continue;
      shape[d] = Counted(compute, operand->dims[d - leading]);
      if (!operand->dims[d - leading].name.empty()) sizes.Fix(operand->dims[d - leading].name, shape[d]);
    }
    compute.outputs.push_back(std::move(shape));
    // What runs for each encoder hands a value on from one to the next, of one shape. A carry that is read is made anew
    // under its name.
    const auto known = values_.find(name);
    const bool again =
        known != values_.end() && std::find(stated.inputs.begin(), stated.inputs.end(), name) != stated.inputs.end();
    if (again && statement_.FindCarry(name)) {
      known->second = compute.outputs.back();
    } else if (!(again && stated.each && known->second == compute.outputs.back())) {
      Define(name, compute.outputs.back(), stated.line);
    }
  }
}

}  // namespace planwright
