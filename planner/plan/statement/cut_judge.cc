#include "planner/plan/statement/cut_judge.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "planner/base/text/text.h"
#include "planner/plan/op_table.h"

namespace planwright {

using std::string;

std::vector<double> SegmentsOf(const StatedWeight& weight, const ModelNumbers& numbers) {
  std::vector<double> segments;
  for (const Expression& segment : weight.segments) segments.push_back(numbers.Of(segment));
  if (segments.empty()) segments = {numbers.Of(weight.shape[static_cast<size_t>(weight.cut)])};
  return segments;
}

namespace {

// Whether from feature `first` on come parts of just these sizes.
bool HasPartsAt(const std::vector<double>& parts, double first, const std::vector<double>& sizes) {
  double before = 0;
  auto part = parts.begin();
  while (part != parts.end() && before < first) before += *part++;
  return before == first && sizes.size() <= static_cast<size_t>(parts.end() - part) &&
         std::equal(sizes.begin(), sizes.end(), part);
}

}  // namespace

void CutJudge::Problem(const RankPiece::Compute& compute, std::string_view word, const string& text,
                       std::vector<Location> from) {
  problems_.Add(PlaceOf(compute.stated->line, word, "="), Cat("piece ", name_, ": ", text), std::move(from));
}

std::vector<Location> CutJudge::LinesOf(const std::vector<string>& slots) const {
  std::vector<Location> lines;
  for (const string& slot : slots) {
    for (const StatedWeight* weight : numbers_.WeightsOf(piece_, slot)) {
      if (weight->line) lines.push_back(PlaceOf(weight->line, weight->slot));
    }
  }
  return lines;
}

void CutJudge::Judge(const RankPiece::Compute& compute) {
  const std::vector<CutSlot> cuts = CutsOf(compute);
  const string what(OpName(compute.instruction.kind));
  for (const CutSlot& cut : cuts) {
    if (!std::islower(static_cast<unsigned char>(cut.dim->index)))
      Problem(compute, cut.slot,
              Cat(what, " reads a weight that is cut along ", cut.dim->name, ", which must be whole"),
              LinesOf({cut.slot}));
    bool more = false;
    const double size = std::accumulate(cut.segments.begin(), cut.segments.end(), 0.0);
    const std::vector<double> wanted = PartsOf(compute, cuts, *cut.dim, size, &more);
    if (wanted != cut.segments)
      Problem(compute, cut.slot,
              Cat(what, " reads a weight in segments ", ShapeText(cut.segments), ", not ", ShapeText(wanted)),
              LinesOf({cut.slot}));
  }
  JudgeTogether(compute, cuts);
  JudgeAdded(compute, cuts);
  JudgeEndings(compute);
  JudgeInputs(compute, cuts);
}

// What is cut of a compute's slots.
std::vector<CutJudge::CutSlot> CutJudge::CutsOf(const RankPiece::Compute& compute) const {
  const OpSignature& signature = *InfoOf(compute.instruction.kind).signature;
  std::vector<CutSlot> cuts;
  for (size_t i = 0; i < compute.instruction.parameters.size(); ++i) {
    const string& slot = compute.instruction.parameters[i];
    const std::vector<const StatedWeight*> weights = numbers_.WeightsOf(piece_, slot);
    if (weights.front()->cut < 0) continue;
    const int stacked = weights.front()->form == StatedWeight::Form::kExperts ? 1 : 0;
    CutSlot cut = {
        &OperandAt(signature.parameters, i)->dims.at(static_cast<size_t>(weights.front()->cut + stacked)), {}, slot};
    for (const StatedWeight* weight : weights) {
      const std::vector<double> segments = SegmentsOf(*weight, numbers_);
      cut.segments.insert(cut.segments.end(), segments.begin(), segments.end());
    }
    cuts.push_back(std::move(cut));
  }
  return cuts;
}

// The parts of the dims of one name. Empty: any.
std::vector<double> CutJudge::PartsOf(const RankPiece::Compute& compute, const std::vector<CutSlot>& cuts,
                                      const SignatureDim& dim, double size, bool* more) const {
  for (const OpInfo::Parts& parts : InfoOf(compute.instruction.kind).parts) {
    if (parts.name != dim.name) continue;
    *more = parts.more;
    if (parts.passed) return PassedParts(compute, dim);
    std::vector<double> sizes;
    for (const Expression& part : parts.sizes) {
      sizes.push_back(part.Evaluate([&](const string& name) {
        const int64_t* attribute = compute.instruction.FindInteger(name);
        return attribute ? static_cast<double>(*attribute) : std::nan("");
      }));
    }
    for (const CutSlot& cut : cuts) {
      if (parts.sizes.empty() && cut.dim->name == dim.name) sizes = cut.segments;
    }
    std::erase(sizes, 0);  // such as the heads of keys where the queries are by themselves
    return sizes;
  }
  return {size};
}

// The parts of the input with the dim, if they are known.
std::vector<double> CutJudge::PassedParts(const RankPiece::Compute& compute, const SignatureDim& dim) const {
  const Instruction& op = compute.instruction;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const OperandSignature& operand = *OperandAt(InfoOf(op.kind).signature->inputs, i);
    const auto found = parts_.find(op.inputs[i]);
    if (!operand.dims.empty() && operand.dims.back().name == dim.name && found != parts_.end())
      return found->second.sizes;
  }
  return {};
}

// What has an index that is cut is cut along it, and the vocabulary is cut wherever it is.
void CutJudge::JudgeTogether(const RankPiece::Compute& compute, const std::vector<CutSlot>& cuts) {
  const Instruction& op = compute.instruction;
  const string what(OpName(op.kind));
  std::set<char> indices;
  for (const CutSlot& cut : cuts) indices.insert(cut.dim->index);
  if (indices.size() > 1)
    Problem(compute, what, Cat(what, " reads weights cut along several dims"), LinesOf(op.parameters));
  size_t have = 0;
  bool vocabulary = false;
  for (size_t i = 0; i < op.parameters.size(); ++i) {
    const std::vector<SignatureDim>& dims = OperandAt(InfoOf(op.kind).signature->parameters, i)->dims;
    have += std::any_of(dims.begin(), dims.end(), [&](const SignatureDim& dim) { return indices.contains(dim.index); });
    vocabulary |= std::any_of(dims.begin(), dims.end(), [](const SignatureDim& dim) { return dim.index == 'v'; });
  }
  if (have != cuts.size() || (vocabulary && cuts.empty()))
    Problem(compute, what, Cat(what, " reads weights of which some are cut and some are whole"),
            LinesOf(op.parameters));
  const bool summed = indices.contains('i') && op.kind == OpKind::kLinear;
  if (summed && op.parameters.size() > 1)
    Problem(compute, what, "a linear whose product is a term of a sum has a bias, which each rank would add",
            LinesOf(op.parameters));
}

// A product that is added to a part of the features is cut as they are.
void CutJudge::JudgeAdded(const RankPiece::Compute& compute, const std::vector<CutSlot>& cuts) {
  const Instruction& op = compute.instruction;
  const auto found = op.kind == OpKind::kAddLinear && !cuts.empty() ? parts_.find(op.inputs.front()) : parts_.end();
  if (found == parts_.end()) return;
  const int64_t* first = op.FindInteger("first");
  if (cuts.front().dim->index == 'o' &&
      !HasPartsAt(found->second.sizes, first ? static_cast<double>(*first) : 0, cuts.front().segments))
    Problem(compute, op.parameters.front(),
            Cat("add_linear adds to ", op.inputs.front(), " a product of segments ", ShapeText(cuts.front().segments),
                ", but it is made of ", ShapeText(found->second.sizes)),
            LinesOf(op.parameters));
}

void CutJudge::JudgeEndings(const RankPiece::Compute& compute) {
  const Instruction& op = compute.instruction;
  const std::vector<string>& endings = InfoOf(op.kind).published;
  for (size_t i = 0; i < std::min(endings.size(), op.parameters.size()); ++i) {
    const string& name = numbers_.WeightsOf(piece_, op.parameters[i]).front()->name;
    if (!name.ends_with(endings[i]))
      Problem(compute, op.parameters[i], Cat(OpName(op.kind), " reads ", name, " as its ", endings[i].substr(1)),
              LinesOf({op.parameters[i]}));
  }
}

// Each input is made of the parts that the compute takes it for.
void CutJudge::JudgeInputs(const RankPiece::Compute& compute, const std::vector<CutSlot>& cuts) {
  const Instruction& op = compute.instruction;
  const OpSignature& signature = *InfoOf(op.kind).signature;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const OperandSignature& operand = *OperandAt(signature.inputs, i);
    const auto found = parts_.find(op.inputs[i]);
    if (found == parts_.end() || operand.dims.empty() || operand.dims.back().name.empty()) continue;
    // What no axis can cut may be made of any parts.
    if (!std::islower(static_cast<unsigned char>(operand.dims.back().index))) continue;
    bool more = false;
    const std::vector<double> wanted = PartsOf(compute, cuts, operand.dims.back(), compute.inputs[i].back(), &more);
    const bool fits = more ? found->second.sizes.size() >= wanted.size() &&
                                 std::equal(wanted.begin(), wanted.end(), found->second.sizes.begin())
                           : found->second.sizes == wanted;
    if (!fits && !wanted.empty())
      Problem(compute, op.inputs[i],
              Cat(OpName(op.kind), " reads ", op.inputs[i], " in parts ", ShapeText(wanted), ", but it is made of ",
                  ShapeText(found->second.sizes)),
              found->second.from);
  }
  for (size_t i = 0; i < compute.stated->outputs.size(); ++i) {
    const OperandSignature& operand = *OperandAt(signature.outputs, i);
    if (operand.dims.size() + (operand.leading ? 1 : 0) < 2 || operand.dims.back().name.empty()) continue;
    bool more = false;
    const std::vector<double> parts = PartsOf(compute, cuts, operand.dims.back(), compute.outputs[i].back(), &more);
    if (parts.empty() || more) continue;
    std::vector<Location> from = LinesOf(op.parameters);
    if (compute.stated->line) from.push_back(PlaceOf(compute.stated->line, compute.stated->outputs[i]));
    parts_[compute.stated->outputs[i]] = {parts, std::move(from)};
  }
}

}  // namespace planwright
