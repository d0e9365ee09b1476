#include "planner/compile/schedule/derive/gradient_uses.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/compile/schedule/derive/gradient_rules.h"

namespace planwright {

GradientUses::GradientUses(const DerivedPiece& piece) : piece_(piece) {
  for (size_t input : piece.inputs) {
    if (piece.type(input).gradient) takes_.insert(input);
  }
  for (size_t step = 0; step < piece.forward.size(); ++step) {
    const DerivedStep& forward = piece.forward[step];
    bool learns = !forward.parameters.empty();
    for (size_t i = 0; i < forward.inputs.size(); ++i) {
      if (!TakesGradient(forward.inputs[i]) || !GivesGradient(piece, step, i)) continue;
      learns = true;
      ++counts_[forward.inputs[i]];
    }
    for (size_t i = 0; learns && i < forward.outputs.size(); ++i) {
      if (WantsGradient(piece, step, i)) takes_.insert(forward.outputs[i]);
    }
  }
  for (size_t output : piece.outputs) ++counts_[output];
}

size_t GradientUses::CountOf(size_t value) const {
  const auto count = counts_.find(value);
  return count == counts_.end() ? 0 : count->second;
}

std::string GradientUses::NameOfTerm(size_t value, const DerivedStep& reader, const ValueType& type) const {
  const DerivedValue& of = piece_.values[value];
  std::string name = "d" + of.name;
  for (Axis axis : {Axis::kTp, Axis::kCp, Axis::kExpertTp}) {
    const bool term = IsTermOver(type, axis), of_term = IsTermOver(of.type, axis);
    if (term && !of_term) name = absl::StrCat("d", of.stated, "_part");
    if (of_term && !term) name = absl::StrCat("d", of.stated, axis == Axis::kTp ? "_full" : "_all");
  }
  if (CountOf(value) > 1) absl::StrAppend(&name, "_", MadeBy(reader));
  return name;
}

// What a step makes; of a conversion, what its reader makes.
const std::string& GradientUses::MadeBy(const DerivedStep& step) const {
  const size_t made = step.outputs.front();
  for (const DerivedStep& next : piece_.forward) {
    const bool reads = std::find(next.inputs.begin(), next.inputs.end(), made) != next.inputs.end();
    if (step.reader >= 0 && reads) return MadeBy(next);
  }
  return piece_.values[made].stated;
}

bool IsTermOver(const ValueType& type, Axis axis) {
  const auto along = type.layout.find(axis);
  return along != type.layout.end() && along->second.state == AxisLayout::State::kPartial;
}

std::vector<size_t> StepsInReverse(const DerivedPiece& piece) {
  std::vector<size_t> steps;
  for (size_t end = piece.forward.size(); end > 0;) {
    size_t first = end - 1;
    const int reader = piece.forward[first].reader;
    while (reader >= 0 && first > 0 && piece.forward[first - 1].reader == reader) --first;
    std::vector<size_t> run;
    for (size_t step = first; step < end; ++step) run.push_back(step);
    std::stable_sort(run.begin(), run.end(),
                     [&](size_t a, size_t b) { return piece.forward[a].pass > piece.forward[b].pass; });
    steps.insert(steps.end(), run.begin(), run.end());
    end = first;
  }
  return steps;
}

}  // namespace planwright
