#include "planner/verify/v4_values/operand_problem.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/limits.h"
#include "planner/plan/op_table.h"

namespace planwright {
namespace {

using std::string;

// The sizes of an instruction's named dims. The first operand that has a name gives it its size; each further one must
// have the same.
class NamedSizes {
 public:
  // Binds the dims of one operand, which messages call `who`. Returns what is wrong, or "".
  string Bind(const OperandSignature& signature, const std::vector<Dim>& dims, const string& who) {
    const size_t own = signature.dims.size();
    if (signature.leading ? dims.size() < own : dims.size() != own) {
      return absl::StrCat(who, " has ", dims.size(), " dims where ", own,
                          signature.leading ? " or more are needed" : " are needed");
    }
    const size_t leading = dims.size() - own;
    for (size_t i = 0; i < leading; ++i) {
      if (string problem = BindName(absl::StrCat("*", i), dims[i], who, i); !problem.empty()) return problem;
    }
    // All operands have the same leading dims, so their number is a size too.
    if (signature.leading) {
      if (string problem = BindName("*", Dim(static_cast<int64_t>(leading)), who, 0); !problem.empty()) return problem;
    }
    for (size_t i = 0; i < own; ++i) {
      const SignatureDim& index = signature.dims[i];
      const Dim& dim = dims[leading + i];
      string problem;
      if (index.number >= 0 && dim != Dim(index.number))
        problem = Wrong(who, leading + i, dim, absl::StrCat(index.number));
      if (problem.empty() && !index.name.empty()) problem = BindName(index.name, dim, who, leading + i);
      if (problem.empty() && !index.factors.empty()) problem = BindProduct(index, dim, who, leading + i);
      if (!problem.empty()) return problem;
    }
    return "";
  }

  // By the table the name's size is `value`, NaN if it has none; `formula` is for the message.
  string Fix(const string& name, double value, const string& formula) {
    const Named* found = Find(name);
    if (!found) {
      const bool is_size = value >= 0 && value <= static_cast<double>(kLargestNumber) && value == std::floor(value);
      if (is_size) names_.push_back({name, static_cast<int64_t>(value), ""});
      return "";
    }
    const int64_t* size = std::get_if<int64_t>(&found->size);
    if (!size || static_cast<double>(*size) == value) return "";
    return absl::StrCat("has ", name, " = ", *size, ", but ", formula,
                        std::isnan(value) ? " has no value" : absl::StrCat(" is ", value));
  }

  // Products of which all factors are known.
  string ProductProblem() const {
    for (const Product& product : products_) {
      int64_t value = 1;
      bool known = true, fits = true;
      for (const string& factor : product.index->factors) {
        const int64_t* size = number(factor);
        known = known && size;
        fits = fits && !(size && __builtin_mul_overflow(value, *size, &value));
      }
      if (!fits) return Wrong(product.who, product.at, product.dim, "a product of sizes");
      if (known && product.dim != Dim(value)) return Wrong(product.who, product.at, product.dim, absl::StrCat(value));
    }
    return "";
  }

  // Null: no operand has the name, or its size is known only at run time.
  const int64_t* number(const string& name) const {
    const Named* found = Find(name);
    return found ? std::get_if<int64_t>(&found->size) : nullptr;
  }

 private:
  static string Wrong(const string& who, size_t dim, const Dim& found, const string& wanted) {
    return absl::StrCat("dim ", dim, " of ", who, " is ", DimText(found), " where ", wanted, " is needed");
  }

  string BindName(const string& name, const Dim& dim, const string& who, size_t at) {
    const Named* found = Find(name);
    if (!found) {
      names_.push_back({name, dim, who});
      return "";
    }
    if (found->size == dim) return "";
    return absl::StrCat(Wrong(who, at, dim, DimText(found->size)), ", as in ", found->binder);
  }

  // The product is a name of its own, so that operands with the same product agree even where a factor is unknown.
  string BindProduct(const SignatureDim& index, const Dim& dim, const string& who, size_t at) {
    products_.push_back({&index, dim, who, at});
    return BindName(absl::StrCat("(", absl::StrJoin(index.factors, ""), ")"), dim, who, at);
  }

  struct Product {
    const SignatureDim* index;
    Dim dim;
    string who;
    size_t at;
  };
  struct Named {
    string name;
    Dim size;
    string binder;  // the operand that gave the size, for messages
  };

  // Null: not bound. An instruction has about ten names, so a list is faster than a map.
  const Named* Find(const string& name) const {
    const auto found = std::find_if(names_.begin(), names_.end(), [&](const Named& n) { return n.name == name; });
    return found == names_.end() ? nullptr : &*found;
  }

  std::vector<Product> products_;
  std::vector<Named> names_;
};

// -1: the attribute is missing, or is no size. Sizes are bounded, so that their products fit 64 bits.
int64_t SizeAttribute(const Instruction& instruction, const string& name) {
  const int64_t* value = instruction.FindInteger(name);
  return value && *value >= 0 && *value <= kMostTokens ? *value : -1;
}

// Sizes are what the lines `size` and `parts` of the kind say. Attributes are of the heads and features that the
// instruction sees: a rank's part of them (ops.def).
string FormulaProblem(const Instruction& op, NamedSizes& sizes) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const auto value_of = [&](const string& name) {
    if (op.attributes.contains(name)) {
      const int64_t value = SizeAttribute(op, name);
      return value < 0 ? kNone : static_cast<double>(value);
    }
    const int64_t* size = sizes.number(name);
    return size ? static_cast<double>(*size) : kNone;
  };
  string problem;
  for (const OpInfo::Size& size : InfoOf(op.kind).sizes) {
    const double value = size.value.Evaluate(value_of);
    if (problem.empty()) problem = sizes.Fix(size.name, size.rounded_up ? std::ceil(value) : value, size.value.text());
  }
  for (const OpInfo::Parts& parts : InfoOf(op.kind).parts) {
    if (parts.sizes.empty() || parts.more) continue;
    double sum = 0;
    for (const Expression& part : parts.sizes) sum += part.Evaluate(value_of);
    if (problem.empty()) problem = sizes.Fix(parts.name, sum, "the sum of its parts");
  }
  return problem;
}

// The joined dim of a concat, or of what a split takes apart, is the sum of its parts; the others are equal.
string JoinProblem(const TypedInstruction& typed) {
  const Instruction& op = *typed.instruction;
  const int64_t dim = SizeAttribute(op, "dim");
  if (dim < 0) return absl::StrCat(op.kind == OpKind::kConcat ? "joins" : "splits", " without an attribute dim");
  const ValueType& whole = op.kind == OpKind::kConcat ? op.outputs.front().type : *typed.inputs.front();
  std::vector<const ValueType*> parts = typed.inputs;
  if (op.kind == OpKind::kSplit) {
    parts.clear();
    for (const Output& output : op.outputs) parts.push_back(&output.type);
  }
  int64_t sum = 0;
  for (const ValueType* part : parts) {
    if (part->dims.size() != whole.dims.size() || dim >= static_cast<int64_t>(whole.dims.size()))
      return absl::StrCat("has a part ", ShapeText(*part), " of ", ShapeText(whole), " along dim ", dim);
    for (size_t i = 0; i < whole.dims.size(); ++i) {
      if (static_cast<int64_t>(i) != dim && part->dims[i] != whole.dims[i])
        return absl::StrCat("has a part ", ShapeText(*part), " of ", ShapeText(whole), ", which differs along dim ", i);
    }
    const auto* size = std::get_if<int64_t>(&part->dims[static_cast<size_t>(dim)]);
    if (!size) return "";  // run-time sizes have no sum to compare
    sum += *size;
  }
  if (whole.dims[static_cast<size_t>(dim)] == Dim(sum)) return "";
  return absl::StrCat("has parts of ", sum, " together along dim ", dim, ", and a whole of ",
                      DimText(whole.dims[static_cast<size_t>(dim)]));
}

// How many operands of each list it has.
string CountProblem(const TypedInstruction& typed, const OpSignature& signature) {
  const Instruction& op = *typed.instruction;
  const auto check = [&](const std::vector<OperandSignature>& list, size_t count, const char* what) -> string {
    return CountFits(list, count, op) ? "" : absl::StrCat("has ", count, " ", what, ", not ", list.size());
  };
  for (const string& problem :
       {check(signature.inputs, op.inputs.size(), "inputs"),
        check(signature.parameters, op.parameters.size(), "parameters"),
        // A backward that trains no parameter has no gradient slots.
        op.gradients.empty() ? "" : check(signature.gradients, op.gradients.size(), "gradients"),
        check(signature.outputs, op.outputs.size(), "outputs")}) {
    if (!problem.empty()) return problem;
  }
  return "";
}

DType WantedDType(OperandSignature::DTypeClass dtype, DType precision) {
  switch (dtype) {
    case OperandSignature::DTypeClass::kPlan: return precision;
    case OperandSignature::DTypeClass::kWide: return precision == DType::kBf16 ? DType::kFp32 : precision;
    case OperandSignature::DTypeClass::kInt64: return DType::kInt64;
    case OperandSignature::DTypeClass::kFp64: return DType::kFp64;
  }
  return precision;
}

// What the instruction uses of a stored parameter. With cp_by_features that is its cp coordinate's part along dim 0.
std::vector<Dim> UsedDims(const Storage& storage, const Instruction& op) {
  std::vector<int64_t> shape = storage.shape;
  const int64_t parts = InfoOf(op.kind).cp_by_features ? SizeAttribute(op, "parameter_cp") : -1;
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
  NamedSizes sizes;
  string problem;
  for (size_t i = 0; i < typed.inputs.size() && problem.empty(); ++i) {
    problem = sizes.Bind(*OperandAt(signature->inputs, i), typed.inputs[i]->dims, op.inputs[i]);
  }
  for (size_t i = 0; i < typed.parameters.size() && problem.empty(); ++i) {
    if (!typed.parameters[i].storage) continue;
    problem = sizes.Bind(*OperandAt(signature->parameters, i), UsedDims(*typed.parameters[i].storage, op),
                         "parameter " + op.parameters[i]);
  }
  for (size_t i = 0; i < typed.gradients.size() && problem.empty(); ++i) {
    if (!typed.gradients[i].storage) continue;
    problem = sizes.Bind(*OperandAt(signature->gradients, i), UsedDims(*typed.gradients[i].storage, op),
                         "gradient " + op.gradients[i]);
  }
  for (size_t i = 0; i < op.outputs.size() && problem.empty(); ++i) {
    problem = sizes.Bind(*OperandAt(signature->outputs, i), op.outputs[i].type.dims, op.outputs[i].name);
  }
  if (problem.empty()) problem = FormulaProblem(op, sizes);
  return problem.empty() ? sizes.ProductProblem() : problem;
}

string DTypeProblem(const TypedInstruction& typed, DType precision) {
  const Instruction& op = *typed.instruction;
  const OpSignature* signature = SignatureOf(op);
  if (!signature) return "";
  const auto check = [&](const OperandSignature* operand, DType found, const string& who) -> string {
    if (!operand || WantedDType(operand->dtype, precision) == found) return "";
    return absl::StrCat(who, " is ", string(DTypeName(found)), ", not ",
                        string(DTypeName(WantedDType(operand->dtype, precision))));
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
    // Either name will do: a name that collides with another one is V9's.
    if (!parameter.name.ends_with(endings[i]) && !parameter.file_name.ends_with(endings[i])) {
      return absl::StrCat("reads ", parameter.name, " as its ", endings[i].substr(1));
    }
  }
  return "";
}

}  // namespace planwright
