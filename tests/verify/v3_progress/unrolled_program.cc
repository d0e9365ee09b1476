#include "tests/verify/v3_progress/unrolled_program.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace planwright::testing {
namespace {

using std::string;
using std::vector;

// "bf16x4x2688", without the first `skip` dims.
string TypeText(const ValueType& type, size_t skip) {
  string text(DTypeName(type.dtype));
  for (size_t i = skip; i < type.dims.size(); ++i) {
    const Dim& dim = type.dims[i];
    absl::StrAppend(
        &text, "x",
        std::holds_alternative<int64_t>(dim) ? absl::StrCat(std::get<int64_t>(dim)) : std::get<string>(dim));
  }
  return text;
}

class Unroller {
 public:
  explicit Unroller(const Plan& plan) : plan_(plan) {}

  Program Unroll(const Role& role, int steps) {
    program_ = {};
    for (const RoleList& part : kRoleLists) {
      const int times = part.list == &Role::step || part.list == &Role::evaluate ? steps : 1;
      for (int time = 0; time < times; ++time) UnrollBody(role.*part.list, {}, 0);
    }
    return std::move(program_);
  }
  int streams() const { return static_cast<int>(streams_.size()); }

 private:
  void UnrollBody(const vector<Instruction>& body, const vector<const vector<Output>*>& given, int depth) {
    if (depth > 50) throw std::runtime_error("blocks call each other in a circle");
    for (const Instruction& instruction : body) {
      if (instruction.kind == OpKind::kCall) {
        const Block* block = plan_.FindBlock(instruction.block);
        if (!block) throw std::runtime_error("no block " + instruction.block);
        UnrollBody(block->body, {&block->inputs, &block->takes}, depth + 1);
        continue;
      }
      if (OpClassOf(instruction.kind) != OpClass::kCommunication) continue;
      const int stream = streams_.emplace(instruction.stream, static_cast<int>(streams_.size())).first->second;
      Op& op = program_.ops.emplace_back(Op{&instruction, stream});
      if (instruction.kind == OpKind::kExchange) {
        for (const ExchangePart& part : instruction.parts) op.contents.push_back(ContentOf(part, body, given));
      } else {
        op.group = GroupOf(instruction.group);
        op.content = ContentOf(instruction);
      }
    }
  }

  int GroupOf(const string& name) const {
    for (size_t i = 0; i < plan_.groups.size(); ++i) {
      if (plan_.groups[i].name == name) return static_cast<int>(i);
    }
    return -1;
  }

  static string ContentOf(const Instruction& instruction) {
    string text(OpName(instruction.kind));
    const auto kinds = {OpKind::kAllToAllV, OpKind::kBroadcast, OpKind::kReduceScatterV};
    const bool own_rows = std::count(kinds.begin(), kinds.end(), instruction.kind) > 0;
    for (const Output& output : instruction.outputs)
      absl::StrAppend(&text, " ", TypeText(output.type, own_rows ? 1 : 0));
    for (const auto& [key, value] : instruction.attributes) {
      absl::StrAppend(&text, " ", key);
      if (const auto* number = std::get_if<int64_t>(&value)) absl::StrAppend(&text, "=", *number);
      if (const auto* real = std::get_if<double>(&value)) absl::StrAppend(&text, "=", *real);
      if (const auto* word = std::get_if<string>(&value)) absl::StrAppend(&text, "=", *word);
      if (const auto* list = std::get_if<vector<int64_t>>(&value))
        absl::StrAppend(&text, "=", absl::StrJoin(*list, ","));
    }
    return text;
  }

  // What both ends of a transfer must agree on.
  static string ContentOf(const ExchangePart& part, const vector<Instruction>& body,
                          const vector<const vector<Output>*>& given) {
    const ValueType* type = nullptr;
    const auto look = [&](const vector<Output>& values) {
      for (const Output& value : values) {
        if (value.name == part.value) type = &value.type;
      }
    };
    for (const auto* values : given) look(*values);
    for (const Instruction& maker : body) look(maker.outputs);
    const bool bridged = !part.bridge.empty();
    return absl::StrCat(part.backward ? "gradient" : "value",
                        bridged ? "" : absl::StrCat(" by ", part.send ? part.shift : -part.shift), " ",
                        type ? TypeText(*type, bridged ? 1 : 0) : "?");
  }

  const Plan& plan_;
  Program program_;
  std::map<string, int> streams_ = {{"", 0}};
};

}  // namespace

vector<Program> Unroll(const Plan& plan, int steps) {
  vector<Program> programs;
  Unroller unroller(plan);
  for (const Role& role : plan.roles) programs.push_back(unroller.Unroll(role, steps));
  for (Program& program : programs) program.streams = unroller.streams();
  return programs;
}

}  // namespace planwright::testing
