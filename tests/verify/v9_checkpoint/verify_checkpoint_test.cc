// V9: the checkpoint manifest of every layout passes. A manifest that leaves a hole, writes an element twice, or gives
// two tensors one key is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "planner/compile/compile.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/shard_map.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/verify/rules.h"
#include "tests/support/folders.h"
#include "tests/support/recipes.h"

namespace planwright::verify_checkpoint_test {
namespace {

using testing::TinyLayout;
using testing::TinyRecipe;

Plan Compiled(const TinyLayout& layout, const std::string& precision = "bf16") {
  Diagnostics diagnostics;
  Recipe recipe = TinyRecipe(layout);
  recipe.precision = precision;
  recipe.checkpoint.every_steps = Located<int64_t>{2};
  return *CompileRecipe(recipe, diagnostics);
}

// Encoder with tp2 dp1 on ranks 0 and 1, language model with tp2 dp2 ep2 (so expert_dp2) on ranks 2 to 5.
const Plan& Sound() {
  static const Plan plan = Compiled({2, 2, 4, 2, 2, false});
  return plan;
}

// The rule of a module and view; in the dense view with or without tp in `cut`; with or without optimizer states.
CheckpointRule& RuleOf(Plan& plan, const std::string& module, View view, bool cut, bool states) {
  for (CheckpointRule& rule : plan.checkpoint.rules) {
    const bool tensor = std::find(rule.cut.begin(), rule.cut.end(), Axis::kTp) != rule.cut.end();
    if (rule.module == module && rule.view == view && (view == View::kExpert || tensor == cut) &&
        !rule.states.empty() == states)
      return rule;
  }
  throw std::runtime_error("no such rule");
}

Parameter& Named(Plan& plan, const std::string& name) {
  for (Module& module : plan.modules) {
    for (Parameter& parameter : module.parameters) {
      if (parameter.name == name) return parameter;
    }
  }
  throw std::runtime_error("no " + name);
}

// The instruction that draws the first role's weights.
Instruction& Draw(Plan& plan) {
  for (Instruction& instruction : plan.roles[0].setup) {
    if (instruction.kind == OpKind::kInitializeParameters) return instruction;
  }
  throw std::logic_error("no weights are drawn");
}

void Drop(std::vector<Instruction>& list, OpKind kind) {
  std::erase_if(list, [&](const Instruction& op) { return op.kind == kind; });
}

struct Damage {
  const char* name;
  const char* says;  // part of a violation's message
  std::function<void(Plan&)> inflict;
  friend void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }
};

CheckpointRule& CutDense(Plan& p) { return RuleOf(p, "language", View::kDense, true, true); }
CheckpointRule& WholeDense(Plan& p) { return RuleOf(p, "language", View::kDense, false, true); }
CheckpointRule& Experts(Plan& p) { return RuleOf(p, "language", View::kExpert, false, true); }
constexpr char kExpert[] = "language.backbone.layers.1.mixer.experts.{expert}.up_proj.weight";
constexpr char kHead[] = "language.lm_head.weight";

void Move(Axis axis, std::vector<Axis>& from, std::vector<Axis>& to) {
  std::erase(from, axis);
  to.push_back(axis);
}

std::vector<Damage> Damages() {
  return {
      // Names.
      {"key_of_another_module", "exists twice",
       [](Plan& p) { p.modules[0].parameters[0].name = p.modules[1].parameters[0].name; }},
      {"key_of_a_state", "also that of a state",
       [](Plan& p) { Named(p, kHead).name = "language.backbone.norm_f.weight.exp_avg"; }},
      {"key_of_an_expert", "also that of an expert",
       [](Plan& p) { Named(p, kHead).name = "language.backbone.layers.1.mixer.experts.7.up_proj.weight"; }},
      {"experts_share_a_key", "share one checkpoint key",
       [](Plan& p) { Named(p, kExpert).name = "language.up_proj.weight"; }},
      {"file_name_twice", "file name",
       [](Plan& p) { p.modules[0].parameters[0].file_name = p.modules[1].parameters[0].file_name; }},
      {"common_key_twice", "common.step exists twice", [](Plan& p) { p.checkpoint.common.push_back("common.step"); }},
      {"common_key_of_a_parameter", "exists twice", [](Plan& p) { Named(p, kHead).name = "common.step"; }},
      {"step_not_kept", "does not keep common.step", [](Plan& p) { std::erase(p.checkpoint.common, "common.step"); }},
      {"samples_not_kept", "does not keep common.consumed_samples",
       [](Plan& p) { std::erase(p.checkpoint.common, "common.consumed_samples"); }},
      // Axes of a rule, and the writers that follow from them.
      {"writer_axis_missing", "make up its ranks", [](Plan& p) { std::erase(CutDense(p).replicated, Axis::kDp); }},
      {"axis_twice", "make up its ranks", [](Plan& p) { CutDense(p).replicated.push_back(Axis::kTp); }},
      {"axis_of_the_other_view", "make up its ranks", [](Plan& p) { CutDense(p).replicated.push_back(Axis::kEp); }},
      {"hole_over_tp", "a hole", [](Plan& p) { Move(Axis::kTp, CutDense(p).cut, CutDense(p).replicated); }},
      {"hole_over_ep", "a hole", [](Plan& p) { Move(Axis::kEp, Experts(p).cut, Experts(p).replicated); }},
      {"double_writer_over_tp", "all of them would write it",
       [](Plan& p) { Move(Axis::kTp, WholeDense(p).replicated, WholeDense(p).cut); }},
      {"double_writer_over_dp", "all of them would write it",
       [](Plan& p) { Move(Axis::kDp, CutDense(p).replicated, CutDense(p).cut); }},
      // Parameters of a rule.
      {"parameter_in_no_rule", "no rank writes it",
       [](Plan& p) { CutDense(p).parameters.erase(CutDense(p).parameters.begin()); }},
      {"parameter_in_two_rules", "more than once",
       [](Plan& p) { WholeDense(p).parameters.push_back(CutDense(p).parameters.front()); }},
      {"rule_dropped", "no rank writes it", [](Plan& p) { p.checkpoint.rules.pop_back(); }},
      {"rule_of_no_module", "unknown module", [](Plan& p) { CutDense(p).module = "nobody"; }},
      {"rule_past_the_parameters", "does not exist", [](Plan& p) { CutDense(p).parameters.back().first += 10000; }},
      {"written_by_another_stage", "is to write it", [](Plan& p) { CutDense(p).stage = 1; }},
      {"written_in_the_other_view", "other view",
       [](Plan& p) {
         CheckpointRule& rule = Experts(p);
         rule.view = View::kDense;
         rule.cut = {Axis::kTp};
         rule.replicated = {Axis::kCp, Axis::kDp};
         rule.flat = {Axis::kDp};
       }},
      // Parts of a tensor.
      {"segments_short_of_the_tensor", "do not tile it",
       [](Plan& p) { Named(p, kHead).segments = {Named(p, kHead).shape[0] - 2}; }},
      {"segment_that_does_not_divide", "do not divide",
       [](Plan& p) {
         Named(p, kHead).segments = {1, Named(p, kHead).shape[0] - 1};
       }},
      // Optimizer states and the buckets that hold them.
      {"state_forgotten", "the checkpoint keeps", [](Plan& p) { CutDense(p).states.pop_back(); }},
      {"state_of_a_buffer", "the checkpoint keeps",
       [](Plan& p) { RuleOf(p, "language", View::kDense, false, false).states = {"exp_avg"}; }},
      {"state_ranges_over_too_few", "the checkpoint writes", [](Plan& p) { CutDense(p).flat.clear(); }},
      {"state_ranges_over_a_cut_axis", "not a replicated axis", [](Plan& p) { CutDense(p).flat.push_back(Axis::kTp); }},
      {"state_sharded_over_another_group", "sharded over",
       [](Plan& p) { p.modules[1].buckets[0].reduce_group = "language.tp"; }},
      {"shards_that_do_not_divide", "do not divide", [](Plan& p) { p.modules[1].buckets[0].elements += 1; }},
      {"bucket_too_small", "too small", [](Plan& p) { p.modules[1].buckets[0].elements = 128; }},
      {"storages_overlap", "overlaps its neighbour",
       [](Plan& p) {
         for (Storage& storage : p.modules[1].storages) {
           if (storage.bucket >= 0 && storage.offset > 0) return void(storage.offset -= 1);
         }
       }},
      {"storage_in_two_frames", "lies in two storages",
       [](Plan& p) { p.modules[1].storages.push_back(p.modules[1].storages.front()); }},
  };
}

class DamagedCheckpoint : public ::testing::TestWithParam<Damage> {};

TEST_P(DamagedCheckpoint, IsRefused) {
  Plan plan = Sound();
  GetParam().inflict(plan);
  std::vector<std::string> messages;
  for (const Violation& violation : VerifyCheckpoint(plan)) {
    EXPECT_EQ(violation.rule, "V9");
    messages.push_back(violation.message);
  }
  EXPECT_THAT(messages, ::testing::Contains(::testing::HasSubstr(GetParam().says)));
}

INSTANTIATE_TEST_SUITE_P(All, DamagedCheckpoint, ::testing::ValuesIn(Damages()),
                         [](const auto& info) { return std::string(info.param.name); });

// What a role draws, loads and saves. Rule V7 holds it against the table of state.
std::vector<Damage> DamagesOfFiles() {
  return {
      // Where the first values come from.
      {"no_source", "initialize_parameters 0 times",
       [](Plan& p) {
         std::erase_if(p.roles[0].setup, [](const Instruction& i) { return i.kind == OpKind::kInitializeParameters; });
       }},
      {"two_sources", "before initialize_parameters", [](Plan& p) { p.roles[0].setup.push_back(Draw(p)); }},
      {"load_from_no_file", "initialize_parameters 0 times", [](Plan& p) { Draw(p).kind = OpKind::kLoadParameters; }},
      // What a role saves and loads.
      {"module_not_saved", "save_state 0 times", [](Plan& p) { Drop(p.roles[1].save, OpKind::kSaveState); }},
      {"saved_twice", "save_state 2 times", [](Plan& p) { p.roles[1].save.push_back(p.roles[1].save[1]); }},
      {"counters_not_saved", "save_counters 0 times", [](Plan& p) { Drop(p.roles[0].save, OpKind::kSaveCounters); }},
      {"never_published", "publish_checkpoint 0 times",
       [](Plan& p) { Drop(p.roles[0].save, OpKind::kPublishCheckpoint); }},
      {"module_not_loaded", "load_state 0 times", [](Plan& p) { Drop(p.roles[1].resume, OpKind::kLoadState); }},
      {"counters_not_loaded", "load_counters 0 times", [](Plan& p) { Drop(p.roles[0].resume, OpKind::kLoadCounters); }},
      {"one_role_saves_nothing", "save_state 0 times", [](Plan& p) { p.roles[1].save.clear(); }},
      {"saves_without_being_asked", "runs save_state of", [](Plan& p) { p.checkpoint.every_steps = 0; }},
  };
}

class DamagedFiles : public ::testing::TestWithParam<Damage> {};

TEST_P(DamagedFiles, AreRefused) {
  Plan plan = Sound();
  GetParam().inflict(plan);
  std::vector<std::string> messages;
  for (const Violation& violation : VerifyStates(PlanIndex(plan))) {
    EXPECT_EQ(violation.rule, "V7");
    messages.push_back(violation.message);
  }
  EXPECT_THAT(messages, ::testing::Contains(::testing::HasSubstr(GetParam().says)));
}

INSTANTIATE_TEST_SUITE_P(All, DamagedFiles, ::testing::ValuesIn(DamagesOfFiles()),
                         [](const auto& info) { return std::string(info.param.name); });

// Counts rank by rank what V9 proves by axes: every element of every tensor and state is written once.
void ExpectWrittenOnce(const Plan& plan) {
  std::map<std::string, std::vector<int>> written;
  for (const CheckpointRule& rule : plan.checkpoint.rules) {
    const Module& module = *plan.FindModule(rule.module);
    std::map<int, const Storage*> holders;
    for (const Storage& storage : module.storages) {
      for (int index : storage.parameters) holders[index] = &storage;
    }
    const auto writes = [&](int rank, const std::vector<Axis>& except) {
      return std::all_of(rule.replicated.begin(), rule.replicated.end(), [&](Axis axis) {
        return std::find(except.begin(), except.end(), axis) != except.end() ||
               CoordinateOf(module.grid, rank, axis) == 0;
      });
    };
    for (int rank = module.grid.first_rank; rank < module.grid.first_rank + module.grid.ranks(); ++rank) {
      if (CoordinateOf(module.grid, rank, Axis::kPp) != rule.stage) continue;
      for (int index : Expand(rule.parameters)) {
        const Storage& storage = *holders.at(index);
        for (const PublishedSlice& slice : SlicesOf(module, storage, CoordinatesOf(module.grid, rank))) {
          if (slice.parameter != index) continue;
          const auto write = [&](const std::string& key, const std::vector<ElementRun>& runs) {
            std::vector<int>& elements = written[key];
            elements.resize(ElementsOf(module.parameters[index].shape));
            for (const ElementRun& run : runs) {
              for (int64_t i = 0; i < run.count; ++i) ++elements[run.whole + i];
            }
          };
          if (writes(rank, {})) write(slice.name, slice.runs);
          if (rule.states.empty() || !writes(rank, rule.flat)) continue;
          const Bucket& bucket = module.buckets[storage.bucket];
          const int64_t owned = bucket.elements / bucket.shards,
                        first = owned * ShardIndexOf(plan, module, bucket, rank) - storage.offset;
          for (const std::string& state : rule.states)
            write(slice.name + "." + state, ClipRuns(slice.runs, first, first + owned));
        }
      }
    }
  }
  // The weight itself, and for a trained one exp_avg, exp_avg_sq and, in bf16, the master.
  int64_t keys = 0;
  for (const Module& module : plan.modules) {
    for (const Parameter& parameter : module.parameters) {
      const int64_t tensors = std::max<int64_t>(1, parameter.experts);
      keys += tensors * (parameter.trained && !parameter.buffer ? plan.precision == "bf16" ? 4 : 3 : 1);
    }
  }
  EXPECT_EQ(static_cast<int64_t>(written.size()), keys);
  for (const auto& [key, elements] : written) {
    EXPECT_TRUE(std::all_of(elements.begin(), elements.end(), [](int count) { return count == 1; })) << key;
  }
}

TEST(Checkpoint, EveryElementIsWrittenByOneRank) {
  for (const TinyLayout& layout :
       {TinyLayout{1, 1, 1, 1, 1, true}, TinyLayout{2, 2, 4, 2, 2, false}, TinyLayout{4, 2, 4, 2, 4, false},
        TinyLayout{4, 2, 4, 2, 2, true}, TinyLayout{2, 1, 8, 2, 4, false}}) {
    ExpectWrittenOnce(Compiled(layout));
    ExpectWrittenOnce(Compiled(layout, "fp32"));
  }
}

// Two key heads and 259 ids on 4 tp ranks: one rank writes keys and values, and no rank its padding.
TEST(Checkpoint, WhatTpDoesNotDivideIsWrittenOnce) {
  Recipe recipe = TinyRecipe({1, 1, 8, 4, 2, false});
  Give(recipe.modules[1].model, {{"vocabulary", 259}, {"mamba.groups", 4}});
  for (const char* precision : {"bf16", "fp32"}) {
    recipe.precision = std::string(precision);
    Diagnostics diagnostics;
    const auto plan = CompileRecipe(recipe, diagnostics);
    ASSERT_TRUE(plan.has_value());
    ExpectWrittenOnce(*plan);
  }
}

TEST(Checkpoint, EveryStageWritesItsOwn) {
  Recipe recipe = TinyRecipe({2, 1, 8, 2, 2, false});
  recipe.modules[1].pp = int64_t{2};
  recipe.precision = std::string("bf16");
  Diagnostics diagnostics;
  const auto plan = CompileRecipe(recipe, diagnostics);
  ASSERT_TRUE(plan.has_value());
  ExpectWrittenOnce(*plan);
}

TEST(Checkpoint, TheManifestIsATenthOfThePlanAtMost) {
  Diagnostics diagnostics;
  const auto recipe = ReadRecipe(InSource("recipes/nemotron_moe_vlm_20l_mock_8r.yaml"), {}, diagnostics);
  Plan plan = *CompileRecipe(*recipe, diagnostics);
  const size_t with = WritePlan(plan).size();
  plan.checkpoint = {};
  EXPECT_LT(with - WritePlan(plan).size(), WritePlan(plan).size() / 10);
}

TEST(Checkpoint, SoundManifestsPass) {
  for (const Violation& violation : VerifyCheckpoint(Sound())) ADD_FAILURE() << violation.message;
}

}  // namespace
}  // namespace planwright::verify_checkpoint_test
