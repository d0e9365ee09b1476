#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/verify/mutants/mutants.h"

namespace planwright::testing {
namespace {

using std::string;

// Damages the setup of one role, and a list that runs samples: its step, or its round of an evaluation.
class RoleDamage {
 public:
  RoleDamage(const Plan& plan, size_t role, const RoleList& list, std::vector<Mutant>& mutants)
      : plan_(plan), role_(role), list_(list.list), evaluates_(list_ == &Role::evaluate),
        origins_(OriginsOf(plan, plan.roles[role])), mutants_(mutants) {}

  void Make() {
    for (size_t i = 0; i < Step().size(); ++i) {
      const Instruction& op = Step()[i];
      DamageTypes(i);
      switch (op.kind) {
        case OpKind::kCall: DamageCall(i); break;
        case OpKind::kReadTokens:
        case OpKind::kReadPositions:
        case OpKind::kReadImages:
        case OpKind::kReadImageSizes:
        case OpKind::kReadSources: DamageRead(i); break;
        case OpKind::kExchange: DamageExchange(i); break;
        case OpKind::kBroadcast: break;  // in communication_mutants.cc
        case OpKind::kAccumulate: DamageCount(i); break;
        case OpKind::kAccumulateRows: DamageRows(i); break;
        default: DamageState(i);
      }
    }
    if (!evaluates_) DamageSetup();
  }

 private:
  const Role& Here() const { return plan_.roles[role_]; }
  const std::vector<Instruction>& Step() const { return Here().*list_; }
  int64_t Microbatches() const { return evaluates_ ? 1 : plan_.budget.microbatches; }
  string Kind(const char* kind) const { return absl::StrCat(evaluates_ ? "evaluation_" : "", kind); }

  void Add(const char* kind, size_t i, const string& what, std::vector<string> rules,
           std::function<void(Instruction&)> change) {
    const size_t role = role_;
    mutants_.push_back({Kind(kind), absl::StrCat(Here().name, " ", i, " ", string(OpName(Step()[i].kind)), " ", what),
                        std::move(rules), origins_,
                        [role, i, change, list = list_](Plan& p) { change((p.roles[role].*list)[i]); }});
  }
  void AddToRole(const char* kind, const string& what, std::vector<string> rules, std::function<void(Role&)> change) {
    const size_t role = role_;
    mutants_.push_back({Kind(kind), absl::StrCat(Here().name, " ", what), std::move(rules), origins_,
                        [role, change](Plan& p) { change(p.roles[role]); }});
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

  // Types of what reads and calls make. (communication_mutants.cc has the types of communications.)
  void DamageTypes(size_t i) {
    const Instruction& op = Step()[i];
    if (OpClassOf(op.kind) == OpClass::kCommunication) return;
    for (size_t k = 0; k < op.outputs.size(); ++k) {
      Add("change_dtype", i, op.outputs[k].name, {"V4", "V5"}, [k](Instruction& x) {
        DType& dtype = x.outputs[k].type.dtype;
        dtype = dtype == DType::kInt64 ? DType::kFp32 : DType::kInt64;
      });
      Add("change_memory", i, op.outputs[k].name, {"V4", "V5"},
          [k](Instruction& x) { x.outputs[k].type.host = !x.outputs[k].type.host; });
      for (Axis axis : {Axis::kTp, Axis::kCp, Axis::kDp, Axis::kEp}) {
        Add("layout_of_another_axis", i, absl::StrCat(op.outputs[k].name, " ", string(AxisName(axis))),
            {"V4", "V5", "V6"}, [k, axis](Instruction& x) {
              const auto now = x.outputs[k].type.layout.find(axis);
              const bool partial =
                  now != x.outputs[k].type.layout.end() && now->second.state == AxisLayout::State::kPartial;
              x.outputs[k].type.layout[axis] = {partial ? AxisLayout::State::kSharded : AxisLayout::State::kPartial, 0};
            });
      }
      for (size_t d = 0; d < op.outputs[k].type.dims.size(); ++d) {
        Add("change_dim", i, absl::StrCat(op.outputs[k].name, " ", d), {"V4", "V5"},
            [k, d](Instruction& x) { x.outputs[k].type.dims[d] = int64_t{77}; });
      }
    }
  }

  void DamageCall(size_t i) {
    const Instruction& call = Step()[i];
    const int64_t microbatches = Microbatches();
    for (size_t k = 0; k + 1 < call.inputs.size(); ++k) {
      Add("swap_inputs", i, call.inputs[k], {"V4", "V5"},
          [k](Instruction& x) { std::swap(x.inputs[k], x.inputs[k + 1]); });
    }
    for (size_t k = 0; k + 1 < call.outputs.size(); ++k) {
      // If nothing uses either output, as in the sibling of a leader, a swap only renames them.
      if (!Used(call.outputs[k].name) && !Used(call.outputs[k + 1].name)) continue;
      Add("swap_outputs", i, call.outputs[k].name, {"V4", "V5"},
          [k](Instruction& x) { std::swap(x.outputs[k].name, x.outputs[k + 1].name); });
    }
    Add("unknown_block", i, call.block, {"V4"}, [](Instruction& x) { x.block = "nothing"; });
    if (microbatches > 1) {
      Add("another_microbatch", i, call.frame, {"V4", "V5"},
          [microbatches](Instruction& x) { x.microbatch = (x.microbatch + 1) % static_cast<int>(microbatches); });
    }
    Add("no_such_microbatch", i, call.frame, {"V4", "V5"},
        [microbatches](Instruction& x) { x.microbatch = static_cast<int>(microbatches); });
    AddToRole("repeat_call", Label(i), {"V4", "V5"}, [i, list = list_](Role& r) {
      Repeat((r.*list), i);
      for (Output& output : (r.*list)[i].outputs) output.name += ".again";
      for (const Output& output : (r.*list)[i].outputs) (r.*list)[i].frees.push_back(output.name);
    });
    if (!call.inputs.empty()) {
      // An addition between the maker of a value and the block that takes it: a program may not compute outside blocks.
      AddToRole("compute_outside_a_block", absl::StrCat(Label(i), " ", call.inputs[0]), {"V4"},
                [i, list = list_](Role& r) {
                  const string given = (r.*list)[i].inputs[0], sum = given + ".sum";
                  for (const Instruction& maker : std::vector<Instruction>((r.*list))) {
                    for (const Output& output : maker.outputs) {
                      if (output.name != given) continue;
                      (r.*list)[i].inputs[0] = sum;
                      (r.*list)[i].frees.push_back(sum);
                      Instruction add{.kind = OpKind::kAdd, .inputs = {given, given}, .outputs = {{sum, output.type}}};
                      (r.*list).insert((r.*list).begin() + static_cast<std::ptrdiff_t>(i), std::move(add));
                      return;
                    }
                  }
                });
    }
    if (call.outputs.empty())
      AddToRole("drop_call", Label(i), {"V4", "V5"}, [i, list = list_](Role& r) { Erase((r.*list), i); });
    // Two calls exchange their inputs: each runs on the samples of the other's microbatch.
    for (size_t j = i + 1; j < Step().size(); ++j) {
      if (Step()[j].kind != OpKind::kCall || Step()[j].block != call.block || call.inputs.empty()) continue;
      AddToRole("swap_samples", absl::StrCat(i, " and ", j), {"V4", "V5"},
                [i, j, list = list_](Role& r) { std::swap((r.*list)[i].inputs, (r.*list)[j].inputs); });
      break;
    }
  }

  // Whether some instruction of the step reads or sends the value.
  bool Used(const string& value) const {
    return std::any_of(Step().begin(), Step().end(), [&](const Instruction& op) {
      const auto sends = [&](const ExchangePart& part) { return part.send && part.value == value; };
      return std::find(op.inputs.begin(), op.inputs.end(), value) != op.inputs.end() ||
             std::any_of(op.parts.begin(), op.parts.end(), sends);
    });
  }

  void DamageRead(size_t i) {
    const int64_t microbatches = Microbatches();
    if (microbatches > 1) {
      Add("read_another_microbatch", i, "", {"V5"},
          [microbatches](Instruction& x) { x.microbatch = (x.microbatch + 1) % static_cast<int>(microbatches); });
    }
    Add("read_from_a_value", i, "", {"V4"}, [](Instruction& x) { x.inputs.push_back("$integers"); });
    Add("read_for_nobody", i, "", {"V5"}, [](Instruction& x) { x.attributes["module"] = string("nobody"); });
    AddToRole("drop_read", Label(i), {"V4", "V5"}, [i, list = list_](Role& r) { Erase((r.*list), i); });
    AddToRole("read_twice", Label(i), {"V5"}, [i, list = list_](Role& r) {
      Repeat((r.*list), i);
      for (Output& output : (r.*list)[i].outputs) output.name += ".again";
      for (const Output& output : (r.*list)[i].outputs) (r.*list)[i].frees.push_back(output.name);
    });
  }

  // Values that parts send and count rows by. (communication_mutants.cc has the transfers themselves.)
  void DamageExchange(size_t i) {
    const Instruction& op = Step()[i];
    for (size_t k = 0; k < op.parts.size(); ++k) {
      const string what = absl::StrCat("part ", k);
      if (op.parts[k].shift == 0)
        Add("unknown_rows", i, what, {"V4"}, [k](Instruction& x) { x.parts[k].sizes = "nothing"; });
      const bool sized = op.parts[k].shift != 0 && !op.parts[k].sizes.empty();
      if (sized) {
        Add("stage_without_sizes", i, what, {"V4"}, [k](Instruction& x) { x.parts[k].sizes.clear(); });
        Add("sizes_are_row_counts", i, what, {"V4", "V5"}, [k](Instruction& x) {
          string& sizes = x.parts[k].sizes;
          sizes = sizes.substr(0, sizes.rfind('.')) + ".sample_rows";
        });
        Add("sizes_of_another_microbatch", i, what, {"V4", "V5"}, [k](Instruction& x) {
          string& sizes = x.parts[k].sizes;
          const size_t at = sizes.find(".m") + 2;
          sizes[at] = sizes[at] == '0' ? '1' : '0';
        });
      } else if (op.parts[k].shift != 0) {
        Add("stage_with_sizes", i, what, {"V4"}, [k](Instruction& x) { x.parts[k].sizes = x.parts[k].value; });
      }
      for (size_t j = 0; j < k; ++j) {
        if (op.parts[j].bridge == op.parts[k].bridge || op.parts[j].shift != 0 || op.parts[k].shift != 0) continue;
        Add("swap_row_counts", i, what, {"V5"},
            [j, k](Instruction& x) { std::swap(x.parts[j].sizes, x.parts[k].sizes); });
      }
      if (op.parts[k].send) Add("send_nothing", i, what, {"V4"}, [k](Instruction& x) { x.parts[k].value = "nothing"; });
    }
  }

  void DamageCount(size_t i) {
    for (const Module& module : plan_.modules) {
      if (module.name == Step()[i].text("module")) continue;
      Add("count_as_another_module", i, module.name, {"V5"},
          [name = module.name](Instruction& x) { x.attributes["module"] = name; });
    }
    Add("count_as_no_module", i, "", {"V4"}, [](Instruction& x) { x.attributes.erase("module"); });
    Add("count_two", i, "", {"V4"}, [](Instruction& x) { x.inputs.push_back(x.inputs.front()); });
    AddToRole("drop_count", Label(i), {"V5"}, [i, list = list_](Role& r) { Erase((r.*list), i); });
    AddToRole("count_twice", Label(i), {"V5"}, [i, list = list_](Role& r) { Repeat((r.*list), i); });
    Add("count_into_another", i, "", {"V5"}, [](Instruction& x) { x.attributes["into"] = string("$reals.loss"); });
    for (const char* more : {"tp", "cp", "tp,tp", ""}) {
      const string* now = Step()[i].FindText("once_over");
      const string other = absl::StrCat(now ? *now : "", now ? "," : "", more);
      Add("count_once_over_more", i, other, {"V6"}, [other](Instruction& x) { x.attributes["once_over"] = other; });
    }
    Add("count_once_over_lanes", i, "", {"V6"}, [](Instruction& x) { x.attributes["once_over"] = string("dp"); });
    if (Step()[i].attributes.contains("once_over")) {
      Add("count_on_every_rank", i, "", {"V6"}, [](Instruction& x) { x.attributes.erase("once_over"); });
    }
  }

  // Losses and loss tokens, added up by source.
  void DamageRows(size_t i) {
    const Instruction& op = Step()[i];
    Add("rows_into_a_sum_of_the_step", i, "", {"V5"},
        [](Instruction& x) { x.attributes["into"] = string("$reals.loss"); });
    Add("rows_into_the_other_sum", i, "", {"V5"}, [](Instruction& x) {
      string& into = std::get<string>(x.attributes["into"]);
      into = into.ends_with("_losses") ? into.substr(0, into.size() - 6) + "tokens"
                                       : into.substr(0, into.size() - 6) + "losses";
    });
    Add("rows_of_no_module", i, "", {"V4"}, [](Instruction& x) { x.attributes.erase("module"); });
    Add("rows_swapped", i, "", {"V5", "V6"}, [](Instruction& x) { std::swap(x.inputs[0], x.inputs[1]); });
    Add("rows_by_themselves", i, "", {"V5"}, [](Instruction& x) { x.inputs[1] = x.inputs[0]; });
    Add("rows_without_parts", i, "", {"V4"}, [](Instruction& x) { x.inputs.pop_back(); });
    AddToRole("drop_rows", Label(i), {"V5"}, [i, list = list_](Role& r) { Erase((r.*list), i); });
    AddToRole("rows_twice", Label(i), {"V5"}, [i, list = list_](Role& r) { Repeat((r.*list), i); });
    for (const char* more : {"tp", "cp", "dp"}) {
      const string* now = op.FindText("once_over");
      const string other = absl::StrCat(now ? *now : "", now ? "," : "", more);
      Add("rows_once_over_more", i, other, {"V6"}, [other](Instruction& x) { x.attributes["once_over"] = other; });
    }
    if (op.attributes.contains("once_over"))
      Add("rows_on_every_rank", i, "", {"V6"}, [](Instruction& x) { x.attributes.erase("once_over"); });
  }

  // The rules that may refuse a missing, repeated or misplaced instruction at the end of a step.
  static std::vector<string> RulesOf(const Instruction& op) {
    return OpClassOf(op.kind) == OpClass::kCommunication ? RulesOfStateCollective(op) : std::vector<string>{"V7"};
  }

  // Instructions at the end of a step, and collectives on gradients, parameters and sums.
  void DamageState(size_t i) {
    const Instruction& op = Step()[i];
    const string subject = op.inputs.empty() ? "" : op.inputs[0];
    if (i > 0 && Dependent(Step()[i - 1], op)) {
      std::vector<string> rules = RulesOf(op);
      for (const string& rule : RulesOf(Step()[i - 1])) rules.push_back(rule);
      AddToRole("swap_order", absl::StrCat(i - 1, " and ", i), rules,
                [i, list = list_](Role& r) { std::swap((r.*list)[i - 1], (r.*list)[i]); });
    }
    if (op.attributes.contains("module")) {
      Add("another_module", i, "", RulesOf(op), [](Instruction& x) { x.attributes["module"] = string("nobody"); });
    }
    if (op.attributes.contains("bucket")) {
      Add("another_bucket", i, "", RulesOf(op), [](Instruction& x) { ++std::get<int64_t>(x.attributes["bucket"]); });
      Add("drop_attribute", i, "bucket", {"V4"}, [](Instruction& x) { x.attributes.erase("bucket"); });
    }
    Add("unknown_attribute", i, "", {"V4"}, [](Instruction& x) { x.attributes["nobody_knows"] = int64_t{1}; });
    if (OpClassOf(op.kind) == OpClass::kCommunication) {
      Add("another_value", i, subject, RulesOf(op), [](Instruction& x) { x.inputs[0] += "0"; });
      Add("unknown_group", i, op.group, RulesOf(op), [](Instruction& x) { x.group = "nowhere"; });
      Add("repeat_input", i, subject, {"V4"}, [](Instruction& x) { x.inputs.push_back(x.inputs.back()); });
      Add("repeat_output", i, subject, {"V4"}, [](Instruction& x) { x.outputs.push_back(Output(x.outputs.back())); });
      Add("state_in_other_memory", i, subject, {"V4"}, [](Instruction& x) { x.outputs[0].type.host = true; });
      Add("state_with_a_layout", i, subject, {"V4"}, [](Instruction& x) {
        x.outputs[0].type.layout[Axis::kTp] = {AxisLayout::State::kPartial, 0};
      });
      return;
    }
    AddToRole("drop_instruction", absl::StrCat(Label(i), " ", subject), RulesOf(op),
              [i, list = list_](Role& r) { Erase((r.*list), i); });
    AddToRole("repeat_instruction", absl::StrCat(Label(i), " ", subject), RulesOf(op),
              [i, list = list_](Role& r) { Repeat((r.*list), i); });
  }

  // Whether the result depends on the order of two neighbours. Instructions of different buckets do not depend on each
  // other.
  static bool Dependent(const Instruction& first, const Instruction& second) {
    const auto is = [&](OpKind a, OpKind b) { return first.kind == a && second.kind == b; };
    const auto touch = [&] {
      return !first.outputs.empty() && !second.inputs.empty() && first.outputs[0].name == second.inputs[0];
    };
    const auto same_module = [&] {
      return first.attributes.contains("module") && first.attributes == second.attributes;
    };
    return (is(OpKind::kReduceScatter, OpKind::kAllReduce) && touch()) ||
           (is(OpKind::kScaleGradients, OpKind::kSquareNorm) && same_module()) ||
           is(OpKind::kClipAndGate, OpKind::kAdamW) ||
           (first.kind == OpKind::kAllReduce && second.kind == OpKind::kScaleGradients) ||
           (first.kind == OpKind::kSquareNorm && second.kind == OpKind::kAllReduce);
  }

  void DamageSetup() {
    for (size_t i = 0; i < Here().setup.size(); ++i) {
      const OpKind kind = Here().setup[i].kind;
      AddToRole("drop_setup", absl::StrCat(i, " ", string(OpName(kind))), {"V7"}, [i](Role& r) { Erase(r.setup, i); });
      AddToRole("setup_of_another", absl::StrCat(i, " ", string(OpName(kind))), {"V7"},
                [i](Role& r) { r.setup[i].attributes["module"] = string("nobody"); });
      if (kind == OpKind::kRefreshMasters || kind == OpKind::kInitializeParameters || kind == OpKind::kLoadParameters) {
        AddToRole("setup_order", absl::StrCat(i), {"V7"}, [i](Role& r) { std::swap(r.setup[i - 1], r.setup[i]); });
      }
      if (kind == OpKind::kAllocateParameters)
        AddToRole("allocate_twice", absl::StrCat(i), {"V7"}, [i](Role& r) { Repeat(r.setup, i); });
    }
  }

  const Plan& plan_;
  const size_t role_;
  std::vector<Instruction> Role::*const list_;
  const bool evaluates_;
  const std::vector<string> origins_;
  std::vector<Mutant>& mutants_;
};

}  // namespace

std::vector<Mutant> ProgramMutants(const Plan& plan) {
  std::vector<Mutant> mutants;
  for (size_t role = 0; role < plan.roles.size(); ++role) {
    for (const RoleList& list : kRoleLists) {
      if (list.list == &Role::step || list.list == &Role::evaluate) RoleDamage(plan, role, list, mutants).Make();
    }
  }
  return mutants;
}

}  // namespace planwright::testing
