#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/verify/mutants.h"

namespace planwright::testing {
namespace {

using std::string;

class RoleDamage {
 public:
  RoleDamage(const Plan& plan, size_t role, std::vector<Mutant>& mutants) : plan_(plan), role_(role), mutants_(mutants) {}

  void Make() {
    for (size_t i = 0; i < Step().size(); ++i) {
      const Instruction& op = Step()[i];
      switch (op.kind) {
        case OpKind::kCall: Call(i); break;
        case OpKind::kReadTokens:
        case OpKind::kReadImages:
        case OpKind::kReadImageSizes: Read(i); break;
        case OpKind::kExchange: Exchange(i); break;
        case OpKind::kBroadcast:
          Add("another_root", i, "root", {"V3", "V5"}, [](Instruction& x) { ++std::get<int64_t>(x.attributes["root"]); });
          break;
        case OpKind::kAccumulate: Accumulate(i); break;
        default: State(i);
      }
    }
    Setup();
  }

 private:
  const Role& Here() const { return plan_.roles[role_]; }
  const std::vector<Instruction>& Step() const { return Here().step; }

  void Add(const char* kind, size_t i, const string& what, std::vector<string> rules, std::function<void(Instruction&)> change) {
    const size_t role = role_;
    mutants_.push_back({kind, absl::StrCat(Here().name, " ", i, " ", string(OpName(Step()[i].kind)), " ", what), std::move(rules),
                        [role, i, change](Plan& p) { change(p.roles[role].step[i]); }});
  }
  void AddToRole(const char* kind, const string& what, std::vector<string> rules, std::function<void(Role&)> change) {
    const size_t role = role_;
    mutants_.push_back({kind, absl::StrCat(Here().name, " ", what), std::move(rules), [role, change](Plan& p) { change(p.roles[role]); }});
  }

  static void Erase(std::vector<Instruction>& list, size_t i) {
    if (i > 0) list[i - 1].frees.insert(list[i - 1].frees.end(), list[i].frees.begin(), list[i].frees.end());
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
  }
  static void Repeat(std::vector<Instruction>& list, size_t i) {
    Instruction again = list[i];
    again.frees.clear();
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(i), std::move(again));
  }

  string Label(size_t i) const { return absl::StrCat(i, " ", string(OpName(Step()[i].kind))); }

  void Call(size_t i) {
    const Instruction& call = Step()[i];
    const int64_t microbatches = plan_.budget.microbatches;
    Add("unknown_block", i, call.block, {"V4"}, [](Instruction& x) { x.block = "nothing"; });
    if (microbatches > 1) {
      Add("another_microbatch", i, call.frame, {"V4", "V5"},
          [microbatches](Instruction& x) { x.microbatch = (x.microbatch + 1) % static_cast<int>(microbatches); });
    }
    Add("no_such_microbatch", i, call.frame, {"V4", "V5"}, [microbatches](Instruction& x) { x.microbatch = static_cast<int>(microbatches); });
    AddToRole("repeat_call", Label(i), {"V4", "V5"}, [i](Role& r) {
      Repeat(r.step, i);
      for (Output& output : r.step[i].outputs) output.name += ".again";
      for (const Output& output : r.step[i].outputs) r.step[i].frees.push_back(output.name);
    });
    if (call.outputs.empty()) AddToRole("drop_call", Label(i), {"V4", "V5"}, [i](Role& r) { Erase(r.step, i); });
    // The same call on values of another microbatch: its samples are lost, others are read twice.
    for (size_t j = i + 1; j < Step().size(); ++j) {
      if (Step()[j].kind != OpKind::kCall || Step()[j].block != call.block || call.inputs.empty()) continue;
      AddToRole("swap_samples", absl::StrCat(i, " and ", j), {"V4", "V5"}, [i, j](Role& r) { std::swap(r.step[i].inputs, r.step[j].inputs); });
      break;
    }
  }

  void Read(size_t i) {
    const int64_t microbatches = plan_.budget.microbatches;
    if (microbatches > 1) {
      Add("read_another_microbatch", i, "", {"V5"},
          [microbatches](Instruction& x) { x.microbatch = (x.microbatch + 1) % static_cast<int>(microbatches); });
    }
    Add("read_for_nobody", i, "", {"V5"}, [](Instruction& x) { x.attributes["module"] = string("nobody"); });
    AddToRole("drop_read", Label(i), {"V4", "V5"}, [i](Role& r) { Erase(r.step, i); });
    AddToRole("read_twice", Label(i), {"V5"}, [i](Role& r) {
      Repeat(r.step, i);
      for (Output& output : r.step[i].outputs) output.name += ".again";
      for (const Output& output : r.step[i].outputs) r.step[i].frees.push_back(output.name);
    });
  }

  void Exchange(size_t i) {
    const Instruction& op = Step()[i];
    for (size_t k = 0; k < op.parts.size(); ++k) {
      const ExchangePart& part = op.parts[k];
      const string what = absl::StrCat("part ", k);
      Add("turn_transfer", i, what, {"V3", "V5"}, [k](Instruction& x) { x.parts[k].backward = !x.parts[k].backward; });
      if (part.shift != 0) {
        Add("another_stage", i, what, {"V3", "V5"}, [k](Instruction& x) { x.parts[k].shift = -x.parts[k].shift; });
        Add("transfer_over_nothing", i, what, {"V3", "V5"}, [k](Instruction& x) { x.parts[k].group = "nowhere"; });
      } else {
        Add("transfer_over_nothing", i, what, {"V3", "V5"}, [k](Instruction& x) { x.parts[k].bridge = "nowhere"; });
        Add("unknown_rows", i, what, {"V4"}, [k](Instruction& x) { x.parts[k].sample_rows = "nothing"; });
      }
      if (part.send) {
        Add("send_nothing", i, what, {"V4"}, [k](Instruction& x) { x.parts[k].value = "nothing"; });
        Add("drop_send", i, what, {"V3", "V5"}, [k](Instruction& x) { x.parts.erase(x.parts.begin() + static_cast<std::ptrdiff_t>(k)); });
        Add("send_twice", i, what, {"V3", "V5"}, [k](Instruction& x) { x.parts.push_back(ExchangePart(x.parts[k])); });
      }
    }
  }

  void Accumulate(size_t i) {
    AddToRole("drop_count", Label(i), {"V5"}, [i](Role& r) { Erase(r.step, i); });
    AddToRole("count_twice", Label(i), {"V5"}, [i](Role& r) { Repeat(r.step, i); });
    Add("count_into_another", i, "", {"V5"}, [](Instruction& x) { x.attributes["into"] = string("$reals.loss"); });
    Add("count_once_over_lanes", i, "", {"V6"}, [](Instruction& x) { x.attributes["once_over"] = string("dp"); });
    if (Step()[i].attributes.contains("once_over")) {
      Add("count_on_every_rank", i, "", {"V6"}, [](Instruction& x) { x.attributes.erase("once_over"); });
    }
  }

  // Instructions of the end of a step, and collectives on gradients, parameters and sums.
  void State(size_t i) {
    const Instruction& op = Step()[i];
    const std::vector<string> rules = {"V3", "V5", "V6", "V7"};
    AddToRole("drop_instruction", absl::StrCat(Label(i), " ", op.inputs.empty() ? "" : op.inputs[0]), rules, [i](Role& r) { Erase(r.step, i); });
    AddToRole("repeat_instruction", absl::StrCat(Label(i), " ", op.inputs.empty() ? "" : op.inputs[0]), rules, [i](Role& r) { Repeat(r.step, i); });
    if (i > 0 && Dependent(Step()[i - 1], op) && Step()[i - 1].stream == op.stream) {
      AddToRole("swap_order", absl::StrCat(i - 1, " and ", i), rules, [i](Role& r) { std::swap(r.step[i - 1], r.step[i]); });
    }
    if (op.attributes.contains("module")) Add("another_module", i, "", rules, [](Instruction& x) { x.attributes["module"] = string("nobody"); });
    if (OpClassOf(op.kind) != OpClass::kCommunication) return;
    Add("another_value", i, op.inputs[0], rules, [](Instruction& x) { x.inputs[0] += "0"; });
    Add("unknown_group", i, op.group, rules, [](Instruction& x) { x.group = "nowhere"; });
    for (const Group& group : plan_.groups) {
      const Group* now = plan_.FindGroup(op.group);
      if (group.used && now && MembersOf(plan_, group) != MembersOf(plan_, *now)) {
        Add("retarget_group", i, group.name, rules, [name = group.name](Instruction& x) { x.group = name; });
      }
    }
    Add("change_dim", i, op.inputs[0], rules, [](Instruction& x) { ++std::get<int64_t>(x.outputs[0].type.dims[0]); });
    Add("change_dtype", i, op.inputs[0], rules,
        [](Instruction& x) { x.outputs[0].type.dtype = x.outputs[0].type.dtype == DType::kBf16 ? DType::kInt64 : DType::kBf16; });
    if (op.attributes.contains("reduce")) {
      Add("another_reduction", i, op.inputs[0], rules, [](Instruction& x) { x.attributes["reduce"] = string("max"); });
    }
    if (op.attributes.contains("dim")) Add("another_dim", i, op.inputs[0], rules, [](Instruction& x) { x.attributes["dim"] = int64_t{1}; });
  }

  // Whether the order of two neighbours matters to what they compute: buckets beside each other do not touch.
  static bool Dependent(const Instruction& first, const Instruction& second) {
    const auto is = [&](OpKind a, OpKind b) { return first.kind == a && second.kind == b; };
    const auto touch = [&] { return !first.outputs.empty() && !second.inputs.empty() && first.outputs[0].name == second.inputs[0]; };
    const auto same_module = [&] { return first.attributes.contains("module") && first.attributes == second.attributes; };
    return (is(OpKind::kReduceScatter, OpKind::kAllReduce) && touch()) || (is(OpKind::kScaleGradients, OpKind::kSquareNorm) && same_module()) ||
           is(OpKind::kClipAndGate, OpKind::kAdamW) || (first.kind == OpKind::kAllReduce && second.kind == OpKind::kScaleGradients) ||
           (first.kind == OpKind::kSquareNorm && second.kind == OpKind::kAllReduce);
  }

  void Setup() {
    for (size_t i = 0; i < Here().setup.size(); ++i) {
      const OpKind kind = Here().setup[i].kind;
      AddToRole("drop_setup", absl::StrCat(i, " ", string(OpName(kind))), {"V7"}, [i](Role& r) { Erase(r.setup, i); });
      AddToRole("setup_of_another", absl::StrCat(i, " ", string(OpName(kind))), {"V7"},
                [i](Role& r) { r.setup[i].attributes["module"] = string("nobody"); });
      if (kind == OpKind::kRefreshMasters || kind == OpKind::kInitializeParameters || kind == OpKind::kLoadParameters) {
        AddToRole("setup_order", absl::StrCat(i), {"V7"}, [i](Role& r) { std::swap(r.setup[i - 1], r.setup[i]); });
      }
      if (kind == OpKind::kAllocateParameters) AddToRole("allocate_twice", absl::StrCat(i), {"V7"}, [i](Role& r) { Repeat(r.setup, i); });
    }
  }

  const Plan& plan_;
  const size_t role_;
  std::vector<Mutant>& mutants_;
};

}  // namespace

std::vector<Mutant> ProgramMutants(const Plan& plan) {
  std::vector<Mutant> mutants;
  for (size_t role = 0; role < plan.roles.size(); ++role) RoleDamage(plan, role, mutants).Make();
  return mutants;
}

}  // namespace planwright::testing
