#include "planner/verify/v4_values/operand_problem.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/plan/limits.h"
#include "planner/plan/op_table.h"
#include "planner/verify/shared/op_signature.h"

namespace planwright {
namespace {

using std::string;

// Sizes by name, bound by the first operand that has them.
class Sizes {
 public:
  // What is wrong, or "".
  string Bind(const OperandSignature& signature, const std::vector<Dim>& dims, const string& who) {
    const size_t own = signature.dims.size();
    if (signature.leading ? dims.size() < own : dims.size() != own) {
      return absl::StrCat(who, " has ", dims.size(), " dims where ", own,
                          signature.leading ? " or more are needed" : " are needed");
    }
    const size_t leading = dims.size() - own;
    for (size_t i = 0; i < leading; ++i) {
      // Operands of one leading shape: the number of leading dims is a size too.
      if (string problem = BindOne(absl::StrCat("*", i), dims[i], who, i); !problem.empty()) return problem;
    }
    if (signature.leading) {
      if (string problem = BindOne("*", Dim(static_cast<int64_t>(leading)), who, 0); !problem.empty()) return problem;
    }
    for (size_t i = 0; i < own; ++i) {
      const DimIndex& index = signature.dims[i];
      const Dim& dim = dims[leading + i];
      string problem;
      if (index.number >= 0 && dim != Dim(index.number))
        problem = Wrong(who, leading + i, dim, absl::StrCat(index.number));
      if (problem.empty() && !index.name.empty()) problem = BindOne(index.name, dim, who, leading + i);
      if (problem.empty() && !index.factors.empty()) problem = Product(index, dim, who, leading + i);
      if (!problem.empty()) return problem;
    }
    return "";
  }

  const int64_t* number(const string& name) const {
    auto it = sizes_.find(name);
    return it == sizes_.end() ? nullptr : std::get_if<int64_t>(&it->second);
  }

 private:
  static string Wrong(const string& who, size_t dim, const Dim& found, const string& wanted) {
    return absl::StrCat("dim ", dim, " of ", who, " is ", DimText(found), " where ", wanted, " is needed");
  }

  string BindOne(const string& name, const Dim& dim, const string& who, size_t place) {
    auto [it, first] = sizes_.emplace(name, dim);
    if (first) {
      binder_[name] = who;
      return "";
    }
    if (it->second == dim) return "";
    return absl::StrCat(Wrong(who, place, dim, DimText(it->second)), ", as in ", binder_[name]);
  }

  string Product(const DimIndex& index, const Dim& dim, const string& who, size_t place) {
    int64_t product = 1;
    string key;
    bool known = true;
    for (const string& factor : index.factors) {
      const int64_t* size = number(factor);
      key += factor;
      if (size && __builtin_mul_overflow(product, *size, &product)) return Wrong(who, place, dim, "a product of sizes");
      known = known && size;
    }
    if (known && dim != Dim(product)) return Wrong(who, place, dim, absl::StrCat(product));
    return BindOne("(" + key + ")", dim, who, place);
  }

  std::map<string, Dim> sizes_;
  std::map<string, string> binder_;
};

// What sizes an attribute fixes: NAME of the attribute and index of the signature it equals.
struct AttributeSize {
  OpKind kind;
  const char* attribute;
  const char* size;
};
constexpr AttributeSize kAttributeSizes[] = {
    {OpKind::kMambaConv, "heads", "heads"},
    {OpKind::kMambaScan, "heads", "fh"},
    {OpKind::kMambaScan, "inner", "fi"},
    {OpKind::kMambaScanGrad, "heads", "fh"},
    {OpKind::kMambaScanGrad, "inner", "fi"},
    {OpKind::kGatedNorm, "inner", "fi"},
    {OpKind::kGatedNormGrad, "inner", "fi"},
    {OpKind::kCausalAttention, "q_heads", "fh"},
    {OpKind::kCausalAttentionGrad, "q_heads", "fh"},
    {OpKind::kRoute, "top_k", "K"},
    {OpKind::kPermuteRowsGrad, "top_k", "K"},
    {OpKind::kRouteGrad, "top_k", "K"},
    {OpKind::kPackedAttention, "heads", "fh"},
    {OpKind::kPackedAttentionGrad, "heads", "fh"},
    {OpKind::kUnpermuteRows, "samples", "B"},
    {OpKind::kPermuteRowsGrad, "samples", "B"},
    {OpKind::kDealBands, "cp", "C"},
    {OpKind::kUnpermuteRows, "sequence", "t"},
    {OpKind::kPermuteRowsGrad, "sequence", "t"},
};

// A size that follows from attributes, and from other sizes.
struct DerivedSize {
  const char* size;
  int64_t value;
};

// -1: there is none, or none that could be a size, whose products would leave 64 bits.
int64_t Attr(const Instruction& instruction, const char* name) {
  const int64_t* value = instruction.FindInteger(name);
  return value && *value >= 0 && *value <= kMostTokens ? *value : -1;
}

std::vector<DerivedSize> Derived(const Instruction& op, const Sizes& sizes) {
  const auto quotient = [](int64_t a, int64_t b) { return a >= 0 && b > 0 ? a / b : -1; };
  switch (op.kind) {
    case OpKind::kMambaConv:
    case OpKind::kMambaConvGrad:
      return {{"f2", Attr(op, "inner") + 2 * Attr(op, "bc")},
              {"f", 2 * Attr(op, "inner") + 2 * Attr(op, "bc") + Attr(op, "heads")}};
    case OpKind::kMambaScan:
    case OpKind::kMambaScanGrad: {
      const int64_t* positions = sizes.number("T");
      const int64_t chunk = Attr(op, "chunk");
      return {{"f2", Attr(op, "inner") + 2 * Attr(op, "bc")},
              {"f", 2 * Attr(op, "inner") + 2 * Attr(op, "bc") + Attr(op, "heads")},
              {"C", positions && *positions <= kMostTokens ? quotient(*positions + chunk - 1, chunk) : -1},
              {"N", Attr(op, "state")},
              {"P", quotient(Attr(op, "inner"), Attr(op, "heads"))}};
    }
    case OpKind::kCausalAttention:
    case OpKind::kCausalAttentionGrad:
      return {{"f", (Attr(op, "q_heads") + 2 * Attr(op, "kv_heads")) * Attr(op, "head_dim")},
              {"f2", 2 * Attr(op, "kv_heads") * Attr(op, "head_dim")},
              {"fa", Attr(op, "q_heads") * Attr(op, "head_dim")}};
    case OpKind::kPackedAttention:
    case OpKind::kPackedAttentionGrad:
      return {{"f", 3 * Attr(op, "heads") * Attr(op, "head_dim")}, {"fa", Attr(op, "heads") * Attr(op, "head_dim")}};
    default: return {};
  }
}

string AttributeProblem(const Instruction& op, const Sizes& sizes) {
  const auto check = [&](const char* name, int64_t value, const string& by) -> string {
    const int64_t* size = sizes.number(name);
    if (!size || *size == value) return "";
    return absl::StrCat("has a dim of ", *size, " where ", by, " makes it ", value);
  };
  for (const AttributeSize& rule : kAttributeSizes) {
    if (rule.kind != op.kind) continue;
    if (!op.attributes.contains(rule.attribute)) return absl::StrCat("lacks the attribute ", rule.attribute);
    if (string problem = check(rule.size, Attr(op, rule.attribute), rule.attribute); !problem.empty()) return problem;
  }
  for (const DerivedSize& rule : Derived(op, sizes)) {
    if (string problem = check(rule.size, rule.value, "the head counts and widths"); !problem.empty()) return problem;
  }
  if (op.kind == OpKind::kGatedNorm || op.kind == OpKind::kGatedNormGrad) {
    const int64_t* groups = sizes.number("fg");
    int64_t inner = 0;
    const bool fits =
        !groups || (!__builtin_mul_overflow(*groups, Attr(op, "group_size"), &inner) && inner == Attr(op, "inner"));
    if (!fits) return "has groups that do not make up its inner width";
  }
  return "";
}

// The joined dim of a concat, or of what a split takes apart, is the sum of its parts; the others are equal.
string JoinProblem(const TypedInstruction& typed) {
  const Instruction& op = *typed.instruction;
  const int64_t dim = Attr(op, "dim");
  if (dim < 0) return absl::StrCat(op.kind == OpKind::kConcat ? "joins" : "splits", " along no declared dim");
  const ValueType& whole = op.kind == OpKind::kConcat ? op.outputs.front().type : *typed.inputs.front();
  std::vector<const ValueType*> parts = typed.inputs;
  if (op.kind == OpKind::kSplit) {
    parts.clear();
    for (const Output& output : op.outputs) parts.push_back(&output.type);
  }
  int64_t sum = 0;
  for (const ValueType* part : parts) {
    if (part->dims.size() != whole.dims.size() || dim >= static_cast<int64_t>(whole.dims.size()))
      return "has parts of other ranks";
    for (size_t i = 0; i < whole.dims.size(); ++i) {
      if (static_cast<int64_t>(i) != dim && part->dims[i] != whole.dims[i])
        return absl::StrCat("has parts that differ along dim ", i);
    }
    const auto* size = std::get_if<int64_t>(&part->dims[static_cast<size_t>(dim)]);
    if (!size) return "";
    sum += *size;
  }
  if (whole.dims[static_cast<size_t>(dim)] == Dim(sum)) return "";
  return absl::StrCat("has ", DimText(whole.dims[static_cast<size_t>(dim)]), " of parts of ", sum);
}

string CountProblem(const TypedInstruction& typed, const OpSignature& signature) {
  const Instruction& op = *typed.instruction;
  const auto check = [&](const std::vector<OperandSignature>& list, size_t count, const char* what) -> string {
    return CountFits(list, count, op) ? "" : absl::StrCat("has ", count, " ", what);
  };
  for (const string& problem :
       {check(signature.inputs, op.inputs.size(), "inputs"),
        check(signature.parameters, op.parameters.size(), "parameters"),
        op.gradients.empty() ? "" : check(signature.gradients, op.gradients.size(), "gradients"),
        check(signature.outputs, op.outputs.size(), "outputs")}) {
    if (!problem.empty()) return problem;
  }
  return "";
}

bool DTypeFits(OperandSignature::Kind kind, DType found, DType precision) {
  switch (kind) {
    case OperandSignature::Kind::kPlan: return found == precision;
    case OperandSignature::Kind::kWide: return found == (precision == DType::kBf16 ? DType::kFp32 : precision);
    case OperandSignature::Kind::kInt64: return found == DType::kInt64;
    case OperandSignature::Kind::kFp64: return found == DType::kFp64;
  }
  return false;
}

// What the instruction uses of a stored parameter: with `parameter_cp` its part along dim 0 (ops.def).
std::vector<Dim> DimsOf(const Storage& storage, const Instruction& op) {
  std::vector<int64_t> shape = storage.shape;
  const int64_t parts = Attr(op, "parameter_cp");
  if (parts > 1 && !shape.empty() && shape[0] % parts == 0) shape[0] /= parts;
  return {shape.begin(), shape.end()};
}

}  // namespace

string SizeProblem(const TypedInstruction& typed) {
  const Instruction& op = *typed.instruction;
  const OpSignature* signature = SignatureOf(op);
  if (!signature) return "";
  if (string problem = CountProblem(typed, *signature); !problem.empty()) return problem;
  if (op.kind == OpKind::kConcat || op.kind == OpKind::kSplit) return JoinProblem(typed);
  Sizes sizes;
  string problem;
  for (size_t i = 0; i < typed.inputs.size() && problem.empty(); ++i) {
    problem = sizes.Bind(*OperandAt(signature->inputs, i), typed.inputs[i]->dims, op.inputs[i]);
  }
  for (size_t i = 0; i < typed.parameters.size() && problem.empty(); ++i) {
    if (!typed.parameters[i].storage) continue;
    problem = sizes.Bind(*OperandAt(signature->parameters, i), DimsOf(*typed.parameters[i].storage, op),
                         "parameter " + op.parameters[i]);
  }
  for (size_t i = 0; i < typed.gradients.size() && problem.empty(); ++i) {
    if (!typed.gradients[i].storage) continue;
    problem = sizes.Bind(*OperandAt(signature->gradients, i), DimsOf(*typed.gradients[i].storage, op),
                         "gradient " + op.gradients[i]);
  }
  for (size_t i = 0; i < op.outputs.size() && problem.empty(); ++i) {
    problem = sizes.Bind(*OperandAt(signature->outputs, i), op.outputs[i].type.dims, op.outputs[i].name);
  }
  return problem.empty() ? AttributeProblem(op, sizes) : problem;
}

string DTypeProblem(const TypedInstruction& typed, DType precision) {
  const Instruction& op = *typed.instruction;
  const OpSignature* signature = SignatureOf(op);
  if (!signature) return "";
  const auto check = [&](const OperandSignature* operand, DType found, const string& who) -> string {
    if (!operand || DTypeFits(operand->dtype, found, precision)) return "";
    return absl::StrCat(who, " is ", string(DTypeName(found)), " in a plan of ", string(DTypeName(precision)));
  };
  for (size_t i = 0; i < typed.inputs.size(); ++i) {
    if (string problem = check(OperandAt(signature->inputs, i), typed.inputs[i]->dtype, op.inputs[i]); !problem.empty())
      return problem;
  }
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    if (string problem = check(OperandAt(signature->outputs, i), op.outputs[i].type.dtype, op.outputs[i].name);
        !problem.empty())
      return problem;
  }
  return "";
}

string PublishedNameProblem(const TypedInstruction& typed, const Module& module) {
  const auto& endings = InfoOf(typed.instruction->kind).published;
  for (size_t i = 0; i < std::min(endings.size(), typed.parameters.size()); ++i) {
    const Storage& storage = *typed.parameters[i].storage;
    if (storage.parameters.empty()) continue;  // VerifyStorage
    const Parameter& parameter = module.parameters[static_cast<size_t>(storage.parameters.front())];
    // A key that collides with another is V9's to name.
    if (!parameter.name.ends_with(endings[i]) && !parameter.file_name.ends_with(endings[i])) {
      return absl::StrCat("reads ", parameter.name, " as its ", endings[i].substr(1));
    }
  }
  return "";
}

}  // namespace planwright
