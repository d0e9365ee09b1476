#include "planner/plan/instruction.h"

#include "planner/diagnostics/bug.h"

namespace planwright {
namespace {

constexpr std::string_view kDTypeNames[] = {"int64", "fp32", "fp64", "bf16"};
constexpr int64_t kDTypeBytes[] = {8, 4, 8, 2};

struct OpInfo {
  std::string_view name;
  OpClass op_class;
};

using enum OpClass;
constexpr OpInfo kOps[] = {
#define OP(id, name, op_class, text) {name, op_class},
#include "planner/plan/ops.def"
#undef OP
};

template <typename T>
const T* Find(const Attributes& attributes, std::string_view name) {
  const auto it = attributes.find(name);
  return it == attributes.end() ? nullptr : std::get_if<T>(&it->second);
}

[[noreturn]] void Lacks(const Instruction& instruction, std::string_view name, const char* what) {
  Bug("instruction " + std::string(OpName(instruction.kind)) + " has no attribute " + std::string(name) + " that is " +
      what);
}

}  // namespace

std::string_view DTypeName(DType dtype) { return kDTypeNames[static_cast<int>(dtype)]; }
int64_t DTypeBytes(DType dtype) { return kDTypeBytes[static_cast<int>(dtype)]; }

std::optional<DType> DTypeFromName(std::string_view name) {
  for (size_t i = 0; i < std::size(kDTypeNames); ++i) {
    if (kDTypeNames[i] == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::string_view OpName(OpKind kind) { return kOps[static_cast<int>(kind)].name; }
OpClass OpClassOf(OpKind kind) { return kOps[static_cast<int>(kind)].op_class; }

std::optional<OpKind> OpFromName(std::string_view name) {
  for (size_t i = 0; i < std::size(kOps); ++i) {
    if (kOps[i].name == name) return static_cast<OpKind>(i);
  }
  return std::nullopt;
}

const int64_t* Instruction::FindInteger(std::string_view name) const { return Find<int64_t>(attributes, name); }
const std::string* Instruction::FindText(std::string_view name) const { return Find<std::string>(attributes, name); }
const std::vector<int64_t>* Instruction::FindIntegers(std::string_view name) const {
  return Find<std::vector<int64_t>>(attributes, name);
}

int64_t Instruction::integer(std::string_view name) const {
  const int64_t* value = FindInteger(name);
  if (!value) Lacks(*this, name, "an integer");
  return *value;
}

double Instruction::real(std::string_view name) const {
  if (const int64_t* integer = FindInteger(name)) return static_cast<double>(*integer);
  const auto* value = Find<double>(attributes, name);
  if (!value) Lacks(*this, name, "a number");
  return *value;
}

const std::string& Instruction::text(std::string_view name) const {
  const std::string* value = FindText(name);
  if (!value) Lacks(*this, name, "text");
  return *value;
}

bool Instruction::over_cp() const {
  const int64_t* cp = FindInteger("cp");
  return cp && *cp > 1;
}

}  // namespace planwright
