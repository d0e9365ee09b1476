#include "planner/verify/v4_values/feature_parts.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace planwright {
namespace {

using std::string;

string PartsText(const std::vector<int64_t>& parts) { return absl::StrCat("[", absl::StrJoin(parts, ","), "]"); }

// The size of the last dim of a value that has features: more than one dim, and a size that is known. Null: none.
const int64_t* Features(const ValueType& type) {
  return type.dims.size() > 1 ? std::get_if<int64_t>(&type.dims.back()) : nullptr;
}

const OpInfo::Parts* StatedParts(const Instruction& op, const string& name) {
  for (const OpInfo::Parts& parts : InfoOf(op.kind).parts) {
    if (parts.name == name) return &parts;
  }
  return nullptr;
}

// The slots of an instruction with what the table says of them: parameters that it reads, then those whose gradient it
// adds to. `use` returns whether to go on.
template <typename Use>
void ForEachSlot(const TypedInstruction& typed, const OpSignature& signature, const Use& use) {
  const auto each = [&](const std::vector<Slot>& slots, const std::vector<OperandSignature>& list,
                        const std::vector<string>& names) {
    for (size_t i = 0; i < slots.size(); ++i) {
      const OperandSignature* operand = OperandAt(list, i);
      const Slot& slot = slots[i];
      if (!operand || !slot.storage || slot.dim < 0 || slot.dim >= static_cast<int>(operand->dims.size())) continue;
      if (!use(slot, operand->dims[static_cast<size_t>(slot.dim)], names[i])) return false;
    }
    return true;
  };
  if (each(typed.parameters, signature.parameters, typed.instruction->parameters))
    each(typed.gradients, signature.gradients, typed.instruction->gradients);
}

}  // namespace

string FeatureParts::Problem(const TypedInstruction& typed) {
  switch (typed.instruction->kind) {
    case OpKind::kConcat: return ConcatProblem(typed);
    case OpKind::kSplit: return SplitProblem(typed);
    case OpKind::kReshard: return ReshardProblem(typed);
    default: break;
  }
  const OpSignature* signature = SignatureOf(*typed.instruction);
  return signature ? ComputeProblem(typed, *signature) : MoveProblem(typed);
}

const FeatureParts::Parts* FeatureParts::Find(const string& value) const {
  const auto it = parts_.find(value);
  return it == parts_.end() ? nullptr : &it->second;
}

void FeatureParts::Note(const string& value, std::optional<Parts> parts) {
  if (parts) parts_.insert_or_assign(value, *std::move(parts));
}

std::optional<FeatureParts::Parts> FeatureParts::SegmentsOf(const Slot& slot, const Instruction& op) const {
  if (slot.dim < 0) return std::nullopt;
  int64_t ranks = module_.grid.size(slot.axis);
  if (InfoOf(op.kind).cp_by_features) ranks *= module_.grid.cp;
  Parts segments;
  for (int index : slot.storage->parameters) {
    const Parameter& parameter = module_.parameters[static_cast<size_t>(index)];
    if (parameter.segments.empty()) segments.push_back(parameter.shape[static_cast<size_t>(parameter.shard_dim)]);
    segments.insert(segments.end(), parameter.segments.begin(), parameter.segments.end());
  }
  // A padded parameter is one segment, of which each rank has room for the largest part.
  const bool padded = module_.parameters[static_cast<size_t>(slot.storage->parameters.front())].padded;
  for (int64_t& segment : segments) segment = segment / ranks + (padded && segment % ranks > 0 ? 1 : 0);
  return segments;
}

FeatureParts::Wanted FeatureParts::WantedOf(const TypedInstruction& typed, const OpSignature& signature,
                                            const SignatureDim& dim, int64_t size) const {
  const Instruction& op = *typed.instruction;
  const OpInfo::Parts* stated = StatedParts(op, dim.name);
  if (!stated) return {Parts{size}};
  Wanted wanted{{}, stated->more};
  if (stated->passed) return wanted;  // of an input: any
  if (stated->sizes.empty()) {
    ForEachSlot(typed, signature, [&](const Slot& slot, const SignatureDim& cut, const string&) {
      if (cut.name == dim.name) wanted.parts = SegmentsOf(slot, op);
      return !wanted.parts;
    });
    return wanted;
  }
  wanted.parts.emplace();
  for (const Expression& formula : stated->sizes) {
    // SizeProblem has compared their sum with the dim.
    const double value = formula.Evaluate([&](const string& name) {
      const int64_t* attribute = op.FindInteger(name);
      return attribute ? static_cast<double>(*attribute) : std::numeric_limits<double>::quiet_NaN();
    });
    const bool inside = value >= 0 && value <= static_cast<double>(size);
    if (value != 0) wanted.parts->push_back(inside ? static_cast<int64_t>(value) : -1);
  }
  return wanted;
}

string FeatureParts::SlotsProblem(const TypedInstruction& typed, const OpSignature& signature) const {
  string problem;
  ForEachSlot(typed, signature, [&](const Slot& slot, const SignatureDim& cut, const string& name) {
    const Parts segments = *SegmentsOf(slot, *typed.instruction);
    const int64_t size = std::accumulate(segments.begin(), segments.end(), int64_t{0});
    const Wanted wanted = WantedOf(typed, signature, cut, size);
    if (wanted.parts && *wanted.parts != segments)
      problem = absl::StrCat("uses parameter ", name, " in parts of ", PartsText(*wanted.parts),
                             ", but its segments are ", PartsText(segments));
    return problem.empty();
  });
  return problem;
}

string FeatureParts::ComputeProblem(const TypedInstruction& typed, const OpSignature& signature) {
  const Instruction& op = *typed.instruction;
  if (string problem = SlotsProblem(typed, signature); !problem.empty()) return problem;
  const auto dim_of = [](const OperandSignature* operand, const ValueType& type) -> const SignatureDim* {
    if (!operand || operand->dims.empty() || operand->dims.back().name.empty() || !Features(type)) return nullptr;
    const bool cut = std::islower(static_cast<unsigned char>(operand->dims.back().index)) != 0;
    return cut ? &operand->dims.back() : nullptr;
  };
  for (size_t i = 0; i < typed.inputs.size(); ++i) {
    const SignatureDim* dim = dim_of(OperandAt(signature.inputs, i), *typed.inputs[i]);
    const Parts* found = dim ? Find(op.inputs[i]) : nullptr;
    if (!found) continue;
    const Wanted wanted = WantedOf(typed, signature, *dim, *Features(*typed.inputs[i]));
    if (!wanted.parts) continue;
    const bool fits = wanted.more ? found->size() >= wanted.parts->size() &&
                                        std::equal(wanted.parts->begin(), wanted.parts->end(), found->begin())
                                  : *found == *wanted.parts;
    if (!fits)
      return absl::StrCat("reads ", op.inputs[i], " in parts of ", PartsText(*wanted.parts), ", but it is made of ",
                          PartsText(*found));
  }
  if (string problem = AddedProblem(typed); !problem.empty()) return problem;
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    const Output& output = op.outputs[i];
    const SignatureDim* dim = dim_of(OperandAt(signature.outputs, i), output.type);
    if (!dim) continue;
    const OpInfo::Parts* stated = StatedParts(op, dim->name);
    if (!stated || !stated->passed) {
      Note(output.name, WantedOf(typed, signature, *dim, *Features(output.type)).parts);
      continue;
    }
    for (size_t input = 0; input < typed.inputs.size(); ++input) {
      const SignatureDim* from = dim_of(OperandAt(signature.inputs, input), *typed.inputs[input]);
      const Parts* found = from && from->name == dim->name ? Find(op.inputs[input]) : nullptr;
      if (found) Note(output.name, *found);
    }
  }
  return "";
}

// The features of an added product lie inside of those that it is added to. Where they are cut, they are whole parts of
// them, of just these sizes: only then do all ranks add to the same features.
string FeatureParts::AddedProblem(const TypedInstruction& typed) const {
  const Instruction& op = *typed.instruction;
  const bool backward = op.kind == OpKind::kAddLinearInputGrad || op.kind == OpKind::kAddLinearWeightGrad;
  if (op.kind != OpKind::kAddLinear && !backward) return "";
  const int64_t *width = op.FindInteger("width"), *first = op.FindInteger("first");
  const int64_t *features = Features(*typed.inputs.front()), begin = first ? *first : 0;
  if (!width || *width <= 0) return absl::StrCat("adds to no features of ", op.inputs.front());
  if (!features || begin < 0 || begin > *features || *width > *features - begin)
    return absl::StrCat("adds to the features ", begin, " to ", begin + *width, " of ", op.inputs.front(),
                        ", which has ", features ? *features : 0);
  const std::vector<Slot>& slots = op.kind == OpKind::kAddLinearWeightGrad ? typed.gradients : typed.parameters;
  const Parts* found = Find(op.inputs.front());
  if (!found || slots.empty() || !slots.front().storage || slots.front().dim != 0) return "";
  const Parts segments = *SegmentsOf(slots.front(), op);
  int64_t before = 0;
  auto part = found->begin();
  while (part != found->end() && before < begin) before += *part++;
  const bool whole = before == begin && segments.size() <= static_cast<size_t>(found->end() - part) &&
                     std::equal(segments.begin(), segments.end(), part);
  if (whole) return "";
  return absl::StrCat("adds a product of parts ", PartsText(segments), " from feature ", begin, " on to ",
                      op.inputs.front(), ", which is made of ", PartsText(*found));
}

string FeatureParts::ConcatProblem(const TypedInstruction& typed) {
  const Instruction& op = *typed.instruction;
  const Output& whole = op.outputs.front();
  const int64_t* dim = op.FindInteger("dim");
  const bool features = dim && *dim + 1 == static_cast<int64_t>(whole.type.dims.size());
  Parts joined;
  for (const string& input : op.inputs) {
    const Parts* parts = Find(input);
    if (!parts) return "";
    if (!features && !joined.empty() && joined != *parts)
      return absl::StrCat("joins rows of ", PartsText(joined), " and of ", PartsText(*parts));
    if (features) {
      joined.insert(joined.end(), parts->begin(), parts->end());
    } else {
      joined = *parts;
    }
  }
  Note(whole.name, std::move(joined));
  return "";
}

string FeatureParts::SplitProblem(const TypedInstruction& typed) {
  const Instruction& op = *typed.instruction;
  const Parts* parts = Find(op.inputs.front());
  const int64_t* dim = op.FindInteger("dim");
  if (!parts || !dim) return "";
  const bool features = *dim + 1 == static_cast<int64_t>(typed.inputs.front()->dims.size());
  auto next = parts->begin();
  for (const Output& output : op.outputs) {
    if (!features) {
      Note(output.name, *parts);
      continue;
    }
    const int64_t* size = Features(output.type);
    if (!size) return "";
    if (parts->size() == 1) {
      Note(output.name, Parts{*size});
      continue;
    }
    Parts taken;
    int64_t sum = 0;
    while (next != parts->end() && sum < *size) {
      taken.push_back(*next);
      sum += *next++;
    }
    if (sum != *size)
      return absl::StrCat("makes ", output.name, " of ", *size, " features of parts ", PartsText(*parts),
                          ", which it does not take whole");
    Note(output.name, std::move(taken));
  }
  return "";
}

// The dim that is not the sequence is cut in segments, and joined from them. They are what the value is made of.
string FeatureParts::ReshardProblem(const TypedInstruction& typed) {
  const Instruction& op = *typed.instruction;
  const auto* segments = op.FindIntegers("segments");
  const int64_t *to = op.FindInteger("to_dim"), *sequence = op.FindInteger("zigzag_dim");
  if (!segments || !to || !sequence) return "";  // CommunicationProblem
  Parts whole = *segments, cut = *segments;
  for (int64_t& part : cut) part /= module_.grid.cp;
  const bool cuts = *to != *sequence;
  const Parts& given = cuts ? whole : cut;
  const Parts* found = Find(op.inputs.front());
  if (!found) return absl::StrCat("moves ", op.inputs.front(), ", of which nothing says what parts its features have");
  if (*found != given)
    return absl::StrCat("moves ", op.inputs.front(), " in segments of ", PartsText(given), ", but it is made of ",
                        PartsText(*found));
  Note(op.outputs.front().name, cuts ? std::move(cut) : std::move(whole));
  return "";
}

// What moves rows or reduces them leaves features as they are. Features themselves are joined and cut as one.
string FeatureParts::MoveProblem(const TypedInstruction& typed) {
  const Instruction& op = *typed.instruction;
  const Parts* found = op.inputs.empty() || op.outputs.size() != 1 ? nullptr : Find(op.inputs.front());
  const int64_t* size = found ? Features(op.outputs.front().type) : nullptr;
  if (!size) return "";
  if (found->size() == 1) {
    Note(op.outputs.front().name, Parts{*size});
    return "";
  }
  const int64_t* dim = op.FindInteger("dim");
  if (dim && *dim + 1 == static_cast<int64_t>(op.outputs.front().type.dims.size()))
    return absl::StrCat("joins or cuts ", op.inputs.front(), " as one, but it is made of ", PartsText(*found));
  Note(op.outputs.front().name, *found);
  return "";
}

}  // namespace planwright
