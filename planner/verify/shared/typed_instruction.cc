#include "planner/verify/shared/typed_instruction.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace planwright {

using std::string;
using State = AxisLayout::State;

Held HeldOver(const Layout& layout, Axis axis) {
  auto it = layout.find(axis);
  if (it == layout.end()) return {};
  if (it->second.state != State::kSharded) return {it->second.state};
  return {State::kSharded, it->second.dim, it->second.zigzag};
}

Held HeldOver(const ValueType& type, Axis axis) { return HeldOver(type.layout, axis); }

string HeldText(const Held& held) {
  switch (held.state) {
    case State::kReplicated: return "whole";
    case State::kPartial: return "a partial sum";
    case State::kSharded: return absl::StrCat("cut along dim ", held.dim, held.zigzag ? " in zigzag order" : "");
  }
  return "";
}

bool SameType(const ValueType& a, const ValueType& b) {
  return a.dtype == b.dtype && a.dims == b.dims && a.layout == b.layout && a.gradient == b.gradient && a.host == b.host;
}

const ValueType* TypeOfValue(const Block& block, const string& name) {
  for (const Instruction& instruction : block.body) {
    for (const Output& output : instruction.outputs) {
      if (output.name == name) return &output.type;
    }
  }
  for (const auto* list : {&block.inputs, &block.takes}) {
    for (const Output& output : *list) {
      if (output.name == name) return &output.type;
    }
  }
  return nullptr;
}

string DimText(const Dim& dim) {
  const auto* number = std::get_if<int64_t>(&dim);
  return number ? absl::StrCat(*number) : std::get<string>(dim);
}

string ShapeText(const ValueType& type) {
  const auto append = [](string* out, const Dim& dim) { out->append(DimText(dim)); };
  return absl::StrCat(string(DTypeName(type.dtype)), "[", absl::StrJoin(type.dims, ",", append), "]");
}

}  // namespace planwright
