// The canonical digest stays where a plan says the same in other words, and changes with everything else.
#include "tests/support/canonical_plan.h"

#include <algorithm>
#include <functional>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "planner/plan/plan_fields.h"
#include "planner/plan/plan_json.h"
#include "tests/numerics/layouts.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

Plan PlanOf(const std::string& recipe, const std::vector<std::string>& overrides) {
  const std::vector<std::string> base = {"cluster.gpus_per_node=16", "batch.global_samples=2"};
  Plan plan = CompiledFile(InSource(recipe), Join(base, overrides));
  // Only blocks and roles are looked at here. Without the rest a digest takes little time.
  plan.modules.clear();
  return plan;
}

// Every kind of layer, cut over every axis, with recompute and with several streams.
Plan Recomputed() {
  return PlanOf(kTinyRecipe,
                Join(Join(EncoderOn(4, 2), Parallel("radio_encoder", {{"cp", 2}})),
                     Join(LanguageOn(4, 8, 2, 4), Parallel("language", {{"cp", 2}, {"expert_tp", 2}})),
                     {"modules.language.recompute=[moe, attention]", "modules.radio_encoder.recompute=[full]",
                      "modules.language.parallel.overlap_dispatch=true", "data.packed_documents=true",
                      "models.hybrid_moe_tiny.mamba.groups=4", "batch.sequence_length=64"}));
}

// Two encoders, pipelines with an empty stage, and ranks that are given rows and gradients by a broadcast.
Plan Pipelined() {
  return PlanOf("recipes/nemotron_moe_two_encoders_tiny.yaml",
                Join(Join(EncoderOn(6, 2), Parallel("radio_encoder", {{"pp", 3}})),
                     Join(LanguageOn(8, 6, 2, 1), Parallel("language", {{"pp", 3}})),
                     {"modules.fine_encoder.placement.first_rank=6", "modules.fine_encoder.placement.ranks=2",
                      "modules.fine_encoder.parallel.tp=2", "modules.language.parallel.stage_layers=[1, 0, 3]",
                      "modules.radio_encoder.parallel.stage_layers=[1, 0, 1]"}));
}

// Calls `visit` with the name of every value that the list mentions.
void ForEachName(std::vector<Instruction>& list, const std::function<void(std::string&)>& visit) {
  for (Instruction& instruction : list) {
    for (std::string& name : instruction.inputs) visit(name);
    for (Output& output : instruction.outputs) visit(output.name);
    for (std::string& name : instruction.frees) visit(name);
    for (ExchangePart& part : instruction.parts) {
      visit(part.value);
      if (!part.sizes.empty()) visit(part.sizes);
    }
  }
}

void ForEachName(Block& block, const std::function<void(std::string&)>& visit) {
  for (Output& input : block.inputs) visit(input.name);
  for (Output& take : block.takes) visit(take.name);
  for (std::string& name : block.outputs) visit(name);
  for (std::string& name : block.saved) visit(name);
  for (Probe& probe : block.probes) visit(probe.value);
  ForEachName(block.body, visit);
}

// Another name, which also sorts in another order. Names of state stay.
void Rename(std::string& name) {
  if (IsStateName(name)) return;
  std::reverse(name.begin(), name.end());
  name += "_";
}

// Sorts the free orders the other way round.
void Reorder(std::vector<Instruction>& list) {
  for (Instruction& instruction : list) std::reverse(instruction.frees.begin(), instruction.frees.end());
}

struct PlanCase {
  const char* name;
  Plan (*make)();
  friend void PrintTo(const PlanCase& c, std::ostream* out) { *out << c.name; }
};

class CanonicalPlanTest : public ::testing::TestWithParam<PlanCase> {
 protected:
  CanonicalPlanTest() : plan_(GetParam().make()), canonical_(CanonicalDigest(plan_)) {}
  Plan plan_;
  std::string canonical_;
};

TEST_P(CanonicalPlanTest, NamesOfValuesDoNotMatter) {
  Plan other = plan_;
  for (Block& block : other.blocks) ForEachName(block, Rename);
  for (Role& role : other.roles) {
    for (const RoleList& list : kRoleLists) ForEachName(role.*list.list, Rename);
  }
  EXPECT_NE(PlanDigest(other), PlanDigest(plan_));
  EXPECT_EQ(CanonicalDigest(other), canonical_);
}

TEST_P(CanonicalPlanTest, NamesWithinOneLayerDoNotMatter) {
  Plan other = plan_;
  for (Block& block : other.blocks) {
    if (block.name.starts_with("radio_encoder.layer.")) ForEachName(block, Rename);
  }
  EXPECT_NE(PlanDigest(other), PlanDigest(plan_));
  EXPECT_EQ(CanonicalDigest(other), canonical_);
}

TEST_P(CanonicalPlanTest, OrdersOfSetsDoNotMatter) {
  Plan other = plan_;
  for (Block& block : other.blocks) {
    std::reverse(block.saved.begin(), block.saved.end());
    std::reverse(block.takes.begin(), block.takes.end());
    Reorder(block.body);
  }
  for (Role& role : other.roles) {
    for (const RoleList& list : kRoleLists) Reorder(role.*list.list);
  }
  EXPECT_NE(PlanDigest(other), PlanDigest(plan_));
  EXPECT_EQ(CanonicalDigest(other), canonical_);
}

// By name, as the lowering calls them: "dx", "language.m0.drows", "de.rows". So this does not depend on what flows
// where.
bool IsGradientByName(const std::string& name) {
  std::istringstream parts(name);
  for (std::string part; std::getline(parts, part, '.');) {
    if (part.starts_with("d") && part != "document_ends") return true;
  }
  return false;
}

// Plans of earlier versions declare them.
TEST_P(CanonicalPlanTest, LayoutsOfGradientsOfGradientsDoNotMatter) {
  Plan other = plan_;
  int declared = 0;
  const auto declare = [&](Output& output) {
    if (!IsGradientByName(output.name) || output.type.gradient) return;
    output.type.gradient = output.type.layout;
    ++declared;
  };
  const auto declare_all = [&](std::vector<Instruction>& list) {
    for (Instruction& instruction : list)
      std::for_each(instruction.outputs.begin(), instruction.outputs.end(), declare);
  };
  for (Block& block : other.blocks) {
    std::for_each(block.inputs.begin(), block.inputs.end(), declare);
    declare_all(block.body);
  }
  for (Role& role : other.roles) {
    for (const RoleList& list : kRoleLists) declare_all(role.*list.list);
  }
  EXPECT_GT(declared, 50);
  EXPECT_EQ(CanonicalDigest(other), canonical_);
}

// What is dropped is the gradients' alone. Names are others in a canonical plan, so this goes by place.
TEST_P(CanonicalPlanTest, LayoutsOfGradientsOfValuesStay) {
  const Plan canonical = CanonicalPlan(plan_);
  int kept = 0;
  const auto compare = [&](const std::vector<Instruction>& list, const std::vector<Instruction>& in_canonical) {
    for (size_t i = 0; i < list.size(); ++i) {
      for (size_t o = 0; o < list[i].outputs.size(); ++o) {
        const Output& output = list[i].outputs[o];
        const bool stays = output.type.gradient && !IsGradientByName(output.name);
        EXPECT_EQ(in_canonical[i].outputs[o].type.gradient.has_value(), stays) << output.name;
        kept += stays;
      }
    }
  };
  for (size_t b = 0; b < plan_.blocks.size(); ++b) compare(plan_.blocks[b].body, canonical.blocks[b].body);
  for (size_t r = 0; r < plan_.roles.size(); ++r) compare(plan_.roles[r].step, canonical.roles[r].step);
  EXPECT_GT(kept, 40);
}

// A visitor of plan_fields.h that changes one field of a block or instruction, or one item of a list in it. Fields are
// counted in their order; the change of number `target` is made.
class ChangeOne {
 public:
  static constexpr bool kFills = true;
  explicit ChangeOne(int target) : target_(target) {}
  bool done() const { return target_ < 0; }
  const std::string& what() const { return what_; }  // the field that was changed

  template <typename T>
  void operator()(const char* key, FieldClass, T& value) {
    key_ = key;
    Change(value);
  }
  template <typename T>
  void Omittable(const char* key, FieldClass, T& value, const std::type_identity_t<T>&) {
    key_ = key;
    Change(value);
  }
  template <typename T>
  void OutsideDigest(const char*, T&, const std::type_identity_t<T>&) {}

 private:
  // Whether this is the change to make.
  bool Now(const std::string& what = "") {
    if (target_-- != 0) return false;
    what_ = key_ + what;
    return true;
  }

  template <typename T>
  void Change(T& value) {
    Describe(*this, value);
  }
  void Change(std::string& value) {
    if (Now()) value += "x";
  }
  void Change(bool& value) {
    if (Now()) value = !value;
  }
  void Change(int& value) {
    if (Now()) ++value;
  }
  void Change(OpKind& value) {
    if (Now()) value = value == OpKind::kGelu ? OpKind::kSquaredRelu : OpKind::kGelu;
  }
  void Change(Attribute& value) {
    if (Now()) std::visit([](auto& held) { Other(held); }, value);
  }
  void Change(Attributes& values) {
    for (auto& [name, value] : values) Change(value);
    if (Now(": one more")) values["a"] = int64_t{1};
    if (!values.empty() && Now(": one less")) values.erase(values.begin());
  }
  void Change(Output& output, bool whole_type) {
    Change(output.name);
    ValueType& type = output.type;
    if (whole_type) ChangeBeforeGradient(type);
    // Of a gradient it may be another one.
    if (!type.gradient || IsGradientByName(output.name)) return;
    if (Now(": gradient gone")) type.gradient = std::nullopt;
    if (type.gradient) Change(*type.gradient, ": gradient");
  }
  void ChangeBeforeGradient(ValueType& type) {
    if (Now(": dtype")) type.dtype = type.dtype == DType::kFp32 ? DType::kBf16 : DType::kFp32;
    if (Now(": host")) type.host = !type.host;
    if (Now(": rank")) type.dims.emplace_back(int64_t{7});
    if (!type.dims.empty() && Now(": dim")) type.dims.back() = int64_t{1234567};
    Change(type.layout, ": layout");
  }
  void Change(planwright::Layout& layout, const std::string& what) {
    if (Now(what + " over one axis more or less")) {
      if (!layout.erase(Axis::kTp)) layout[Axis::kTp] = {AxisLayout::State::kPartial, 0};
    }
    if (layout.empty()) return;
    AxisLayout& axis = layout.begin()->second;
    if (axis.state == AxisLayout::State::kSharded) {
      if (Now(what + ": dim")) ++axis.dim;
      if (Now(what + ": zigzag")) axis.zigzag = !axis.zigzag;
    }
    if (Now(what + ": state"))
      axis.state =
          axis.state == AxisLayout::State::kPartial ? AxisLayout::State::kSharded : AxisLayout::State::kPartial;
  }
  template <typename T>
  void Change(std::vector<T>& values) {
    // What an instruction is, is changed item by item; the body of a block is not gone through.
    if constexpr (!std::is_same_v<T, Instruction>) {
      const std::string key = key_;
      for (T& value : values) {
        if constexpr (std::is_same_v<T, Output>) {
          Change(value, &value == values.data());  // whole types of the first ones are enough
        } else {
          Change(value);
        }
      }
      key_ = key;
    }
    if (!values.empty() && Now(": one less")) values.pop_back();
    if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, Instruction>) {
      const bool is_set = key_ == "saved" || key_ == "frees";
      if (!is_set && values.size() > 1 && Differ(values[0], values[1]) && Now(": order"))
        std::swap(values[0], values[1]);
    }
  }

  static bool Differ(const std::string& a, const std::string& b) { return a != b; }
  static bool Differ(const Instruction& a, const Instruction& b) { return a.kind != b.kind; }
  static void Other(int64_t& value) { ++value; }
  static void Other(double& value) { value += 1; }
  static void Other(std::string& value) { value += "x"; }
  static void Other(std::vector<int64_t>& values) { values.push_back(1); }

  int target_;
  std::string key_, what_;
};

// Each change of `part`, a part of `plan`, changes the canonical digest. Returns their number; adds what was changed.
template <typename T>
int EachChangeCounts(Plan& plan, T& part, const std::string& canonical, const std::string& where,
                     std::set<std::string>& changed) {
  for (int target = 0;; ++target) {
    const T before = part;
    ChangeOne change(target);
    Describe(change, part);
    if (!change.done()) return target;
    changed.insert(change.what());
    EXPECT_NE(CanonicalDigest(plan), canonical) << where << ": " << change.what();
    part = before;
  }
}

TEST_P(CanonicalPlanTest, EverythingElseMatters) {
  std::set<std::string> changed;
  std::set<OpKind> kinds;
  int changes = 0;
  const auto each_kind_once = [&](std::vector<Instruction>& list, const std::string& where) {
    for (Instruction& instruction : list) {
      if (!kinds.insert(instruction.kind).second) continue;
      const std::string place = where + " " + std::string(OpName(instruction.kind));
      changes += EachChangeCounts(plan_, instruction, canonical_, place, changed);
    }
  };
  for (Block& block : plan_.blocks) {
    // The second encoder has the pieces of the first.
    if (block.module != "fine_encoder") changes += EachChangeCounts(plan_, block, canonical_, block.name, changed);
    each_kind_once(block.body, block.name);
  }
  for (Role& role : plan_.roles) each_kind_once(role.step, role.name);
  EXPECT_GT(changes, 500);
  for (const char* what : {"op",
                           "inputs",
                           "inputs: order",
                           "parameters",
                           "gradients",
                           "outputs",
                           "group",
                           "stream",
                           "frees",
                           "attributes",
                           "block",
                           "frame",
                           "microbatch",
                           "value",
                           "probes: one less",
                           "saved",
                           "takes: one less",
                           "body: order",
                           "outputs: dtype",
                           "outputs: dim",
                           "outputs: layout: dim",
                           "outputs: layout: state",
                           "outputs: gradient gone"})
    EXPECT_TRUE(changed.contains(what)) << what;
}

// A value that is freed later is alive longer: it is not the same work.
TEST_P(CanonicalPlanTest, WhereValuesAreFreedMatters) {
  for (Block& block : plan_.blocks) {
    for (size_t i = 0; i + 1 < block.body.size(); ++i) {
      if (block.body[i].frees.empty()) continue;
      block.body[i + 1].frees.push_back(block.body[i].frees.back());
      block.body[i].frees.pop_back();
      EXPECT_NE(CanonicalDigest(plan_), canonical_) << block.name << " " << i;
      return;
    }
  }
  FAIL() << "no block frees a value";
}

// The backward takes what the forward saved under a name. Another value under that name is another plan.
TEST_P(CanonicalPlanTest, WhatIsSavedMatters) {
  for (Block& block : plan_.blocks) {
    if (block.saved.size() < 2) continue;
    const std::string a = block.saved[0], b = block.saved[1];
    for (std::string& name : block.saved) name = name == a ? b : name == b ? a : name;
    EXPECT_EQ(CanonicalDigest(plan_), canonical_) << "the same set";
    ForEachName(block, [&](std::string& name) { name = name == a ? b : name == b ? a : name; });
    EXPECT_NE(CanonicalDigest(plan_), canonical_) << "the values have changed names, those that take them have not";
    return;
  }
  FAIL() << "no block saves two values";
}

INSTANTIATE_TEST_SUITE_P(Plans, CanonicalPlanTest,
                         ::testing::Values(PlanCase{"Recomputed", Recomputed}, PlanCase{"Pipelined", Pipelined}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace planwright::testing
