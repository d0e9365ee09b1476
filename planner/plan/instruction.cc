#include "planner/plan/instruction.h"

#include <iterator>

#include "planner/base/text/bug.h"

namespace planwright {
namespace {

// The part of ops.def that is needed before the table is parsed (op_table.h): reading a plan needs names alone.
struct NameAndClass {
  std::string_view name;
  OpClass op_class;
};

using enum OpClass;
constexpr NameAndClass kOps[] = {
#define OP(id, name, op_class, text) {name, op_class},
#include "planner/plan/ops.def"
#undef OP
};

// Null: the attribute is absent, or has another type.
template <typename T>
const T* Find(const Attributes& attributes, std::string_view name) {
  const auto it = attributes.find(name);
  return it == attributes.end() ? nullptr : std::get_if<T>(&it->second);
}

[[noreturn]] void NoAttribute(const Instruction& instruction, std::string_view name, const char* type) {
  Bug("instruction " + std::string(OpName(instruction.kind)) + " has no attribute " + std::string(name) + " that is " +
      type);
}

}  // namespace

std::string_view OpName(OpKind kind) { return kOps[static_cast<int>(kind)].name; }
OpClass OpClassOf(OpKind kind) { return kOps[static_cast<int>(kind)].op_class; }

std::optional<OpKind> OpFromName(std::string_view name) {
  for (size_t i = 0; i < std::size(kOps); ++i) {
    if (kOps[i].name == name) return static_cast<OpKind>(i);
  }
  return std::nullopt;
}

std::vector<std::string> AllOpNames() {
  std::vector<std::string> names;
  for (const NameAndClass& op : kOps) names.emplace_back(op.name);
  return names;
}

const int64_t* Instruction::FindInteger(std::string_view name) const { return Find<int64_t>(attributes, name); }
const std::string* Instruction::FindText(std::string_view name) const { return Find<std::string>(attributes, name); }
const std::vector<int64_t>* Instruction::FindIntegers(std::string_view name) const {
  return Find<std::vector<int64_t>>(attributes, name);
}

int64_t Instruction::integer(std::string_view name) const {
  const int64_t* value = FindInteger(name);
  if (!value) NoAttribute(*this, name, "an integer");
  return *value;
}

double Instruction::real(std::string_view name) const {
  if (const int64_t* integer = FindInteger(name)) return static_cast<double>(*integer);
  const auto* value = Find<double>(attributes, name);
  if (!value) NoAttribute(*this, name, "a number");
  return *value;
}

const std::string& Instruction::text(std::string_view name) const {
  const std::string* value = FindText(name);
  if (!value) NoAttribute(*this, name, "text");
  return *value;
}

bool Instruction::over_cp() const {
  const int64_t* cp = FindInteger("cp");  // absent where the axis has one rank (ops.def)
  return cp && *cp > 1;
}

}  // namespace planwright
