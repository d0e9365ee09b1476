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
#define OP(id, name, op_class) {name, op_class},
#include "planner/plan/op_kind.def"
#undef OP
};

const Attribute& Find(const Instruction& instruction, const std::string& key) {
  auto it = instruction.attributes.find(key);
  if (it == instruction.attributes.end()) {
    Bug("instruction " + std::string(OpName(instruction.kind)) + " has no attribute " + key);
  }
  return it->second;
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

int64_t Instruction::integer(const std::string& key) const {
  const auto* value = std::get_if<int64_t>(&Find(*this, key));
  Require(value != nullptr, "attribute " + key + " is not an integer");
  return *value;
}

double Instruction::real(const std::string& key) const {
  const Attribute& attribute = Find(*this, key);
  if (const auto* value = std::get_if<int64_t>(&attribute)) return static_cast<double>(*value);
  const auto* value = std::get_if<double>(&attribute);
  Require(value != nullptr, "attribute " + key + " is not a number");
  return *value;
}

const std::string& Instruction::text(const std::string& key) const {
  const auto* value = std::get_if<std::string>(&Find(*this, key));
  Require(value != nullptr, "attribute " + key + " is not text");
  return *value;
}

}  // namespace planwright
