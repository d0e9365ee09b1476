// Families of damaged programs: every instruction that touches state, reads samples or calls a block is put into every
// list of every role, taken out, repeated, and moved to other indices of its list. What VerifyPlan accepts must be the
// same plan: an instruction that was moved only past others with which it shares no value and no state. Prints how many
// plans were tried.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/plan/op_table.h"
#include "planner/plan/state_table.h"
#include "planner/plan/stream_dependencies.h"
#include "planner/verify/verify.h"
#include "tests/numerics/layouts.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using testing::CompiledFile;
using testing::EncoderOn;
using testing::Join;
using testing::LanguageOn;

using Body = std::vector<Instruction>;

struct Case {
  const char* name;
  std::vector<std::string> overrides;
  int every = 1;  // of so many mutants of a family one is tried
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

using Overrides = std::vector<std::string>;

Overrides All(const std::vector<Overrides>& parts) {
  Overrides all;
  for (const Overrides& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::vector<Case> Cases() {
  const Overrides checkpoints = {"checkpoint.every_steps=2"}, initialize = {"initialize.from=weights.safetensors"};
  const Overrides bf16 = {"precision.params=bf16"}, fp32 = {"precision.params=fp32"};
  const Overrides evaluation = {"evaluation={every_samples: 8, sets: [{name: held_out, samples: 7, seed: 99}]}"};
  // Few microbatches: a longer step brings nothing new.
  const Overrides one = {"batch.global_samples=2"},
                  several = All({{"batch.global_samples=4"}, EncoderOn(2, 2), LanguageOn(2, 4, 2, 4)});
  const auto trains = [](const char* backbone, const char* projection) {
    return Overrides{
        absl::StrCat("modules.radio_encoder.train={backbone: ", backbone, ", projection: ", projection, "}")};
  };
  return {
      {"one_rank_fp32", All({one, fp32})},
      {"one_rank_bf16_with_checkpoints", All({one, bf16, checkpoints}), 3},
      {"one_rank_initialized", All({one, bf16, initialize, checkpoints}), 3},
      {"one_rank_frozen_backbone", All({one, bf16, checkpoints, trains("frozen", "trained")}), 3},
      {"one_rank_frozen_language", All({one, fp32, {"modules.language.train.backbone=frozen"}}), 3},
      {"one_rank_evaluated", All({one, fp32, evaluation}), 3},
      {"ranks_evaluated", All({several, bf16, checkpoints, evaluation}), 6},
      {"ranks_fp32", All({several, fp32}), 6},
      {"ranks_bf16_with_checkpoints", All({several, bf16, checkpoints}), 6},
      {"ranks_initialized", All({several, bf16, initialize, checkpoints}), 6},
      {"ranks_frozen_encoder", All({several, bf16, checkpoints, trains("frozen", "frozen")}), 6},
      {"ranks_overlapped",
       All({several, fp32, {"gradients.overlap_reduce=true", "gradients.overlap_gather=true", "gradients.buckets=2"}}),
       6},
  };
}

// What an instruction touches: state with what is called, and values.
struct Touched {
  std::vector<StateAccess> states;
  std::set<std::string> reads, makes_or_frees;
};

class Commutation {
 public:
  Commutation(const Plan& plan, const Role& role) : plan_(plan), role_(role) {}

  // Whether the two may stand in either order.
  bool Commute(const Instruction& a, const Instruction& b) {
    const Touched x = TouchedBy(a), y = TouchedBy(b);
    const auto meet = [](const std::set<std::string>& some, const std::set<std::string>& others) {
      return std::any_of(some.begin(), some.end(), [&](const std::string& name) { return others.contains(name); });
    };
    if (meet(x.makes_or_frees, y.makes_or_frees) || meet(x.makes_or_frees, y.reads) || meet(x.reads, y.makes_or_frees))
      return false;
    // Integers are added in any order.
    if (a.kind == OpKind::kAccumulate && b.kind == OpKind::kAccumulate && absl::StartsWith(a.text("into"), "$integers"))
      return true;
    for (const StateAccess& one : x.states) {
      for (const StateAccess& other : y.states) {
        if ((one.writes || other.writes) && Overlap(one.resource, other.resource)) return false;
      }
    }
    return true;
  }

 private:
  static bool Overlap(const std::string& a, const std::string& b) {
    return absl::StartsWith(absl::StrCat(a, "."), absl::StrCat(b, ".")) ||
           absl::StartsWith(absl::StrCat(b, "."), absl::StrCat(a, "."));
  }

  Touched TouchedBy(const Instruction& op) {
    Touched touched;
    if (op.kind == OpKind::kCall) {
      touched.states = StatesOf(*plan_.FindBlock(op.block));
    } else {
      touched.states = StateAccessesOf(op, role_.modules);
    }
    const auto add = [](const std::string& name, std::set<std::string>& names) {
      if (!IsStateName(name) && !name.empty()) names.insert(name);
    };
    for (const std::string& name : op.inputs) add(name, touched.reads);
    for (const ExchangePart& part : op.parts) {
      add(part.sizes, touched.reads);
      add(part.value, part.send ? touched.reads : touched.makes_or_frees);
    }
    for (const Output& output : op.outputs) add(output.name, touched.makes_or_frees);
    for (const std::string& name : op.frees) add(name, touched.makes_or_frees);
    // A backward takes what its forward saved.
    if (op.kind == OpKind::kCall) touched.makes_or_frees.insert(absl::StrCat(op.frame, " ", op.microbatch));
    return touched;
  }

  const std::vector<StateAccess>& StatesOf(const Block& block) {
    const auto [known, fresh] = of_blocks_.try_emplace(block.name);
    if (!fresh) return known->second;
    std::vector<StateAccess> states;
    for (const Instruction& op : block.body) {
      const Block* called = op.kind == OpKind::kCall ? plan_.FindBlock(op.block) : nullptr;
      for (const StateAccess& access : called ? StatesOf(*called) : StateAccessesOf(op, role_.modules))
        states.push_back(access);
      if (!op.parameters.empty()) {
        states.push_back({absl::StrCat("%", block.module, ".parameters"), false});
        states.push_back({absl::StrCat("%", block.module, ".buffers"), false});
      }
      if (!op.gradients.empty()) states.push_back({absl::StrCat("%", block.module, ".gradients"), true});
    }
    return of_blocks_[block.name] = std::move(states);
  }

  const Plan& plan_;
  const Role& role_;
  std::map<std::string, std::vector<StateAccess>> of_blocks_;
};

bool OnState(const Instruction& op) {
  const OpClass of = OpClassOf(op.kind);
  const bool moves = of == OpClass::kCommunication && !op.inputs.empty() && IsStateName(op.inputs.front());
  return moves || of == OpClass::kState || of == OpClass::kStorage;
}

// Instructions to put into lists: one of each kind on state for each module of the role, and one of each kind that some
// list of some role has.
Body Donors(const Plan& plan, const Role& role) {
  Body donors;
  std::set<std::string> seen;
  const auto add = [&](const Instruction& op) {
    const std::string* module = op.FindText("module");
    if (seen.insert(absl::StrCat(std::string(OpName(op.kind)), module ? *module : "", " ", op.block,
                                 op.inputs.empty() ? 0 : 1))
            .second)
      donors.push_back(op);
  };
  for (const StateInfo& state : AllStates()) {
    for (const StateLife& life : state.lives) {
      for (const StateStep& step : life.steps) {
        for (OpKind kind : step.kinds) {
          if (OpClassOf(kind) != OpClass::kState && OpClassOf(kind) != OpClass::kStorage) continue;
          if (kind == OpKind::kAccumulate || kind == OpKind::kAccumulateRows) continue;  // they need values: below
          for (const std::string& module : role.modules) {
            Instruction op{.kind = kind};
            const OpInfo& info = InfoOf(kind);
            if (info.FindAttribute("module")) op.attributes["module"] = module;
            if (info.FindAttribute("bucket")) op.attributes["bucket"] = int64_t{0};
            add(op);
          }
        }
      }
    }
  }
  for (const Role& other : plan.roles) {
    for (const RoleList& part : kRoleLists) {
      for (const Instruction& op : other.*part.list) add(op);
    }
  }
  return donors;
}

// Some of the indices [0, size]: all of a short list; of a step the first ones, the end, and some between.
std::vector<size_t> IndicesIn(size_t size) {
  std::vector<size_t> indices;
  for (size_t i = 0; i <= size; ++i) {
    if (size < 12 || i < 3 || i + 3 > size || i % 5 == 0) indices.push_back(i);
  }
  return indices;
}

class StateMutants : public ::testing::TestWithParam<Case> {
 protected:
  // Whether VerifyPlan accepts the plan in which a list of a role is `body`. The plan is the same afterwards.
  static bool Accepts(Plan& plan, size_t role, const RoleList& part, Body body) {
    std::swap(plan.roles[role].*part.list, body);
    const bool accepted = VerifyPlan(plan).empty();
    std::swap(plan.roles[role].*part.list, body);
    return accepted;
  }

  static std::string Where(const Plan& plan, size_t role, const RoleList& part, const Instruction& op, size_t index) {
    const std::string* module = op.FindText("module");
    return absl::StrCat(std::string(OpName(op.kind)), " ", module ? *module : "", op.block, " at ", index, " of the ",
                        part.name, " of ", plan.roles[role].name);
  }
};

TEST_P(StateMutants, WhatIsAcceptedIsTheSamePlan) {
  const Plan plan = CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml"), GetParam().overrides);
  ASSERT_FALSE(plan.roles.empty());
  ASSERT_TRUE(VerifyPlan(plan).empty());
  Plan damaged = plan;
  int inserted = 0, removed = 0, repeated = 0, moved = 0, same = 0;
  size_t family = 0;
  const auto tried = [&] { return family++ % static_cast<size_t>(GetParam().every) == 0; };
  for (size_t role = 0; role < plan.roles.size(); ++role) {
    Commutation commutation(plan, plan.roles[role]);
    const Body donors = Donors(plan, plan.roles[role]);
    for (const RoleList& part : kRoleLists) {
      const Body& list = plan.roles[role].*part.list;
      const std::vector<size_t> indices = IndicesIn(list.size());
      for (const Instruction& donor : donors) {
        for (size_t index : indices) {
          if (!tried()) continue;
          Body body = list;
          body.insert(body.begin() + static_cast<std::ptrdiff_t>(index), donor);
          ++inserted;
          EXPECT_FALSE(Accepts(damaged, role, part, std::move(body)))
              << "inserted " << Where(plan, role, part, donor, index);
        }
      }
      for (size_t i = 0; i < list.size(); ++i) {
        const auto at = [](Body& body, size_t index) { return body.begin() + static_cast<std::ptrdiff_t>(index); };
        Body without = list;
        without.erase(at(without, i));
        Body twice = list;
        twice.insert(at(twice, i), list[i]);
        ++removed, ++repeated;
        EXPECT_FALSE(Accepts(damaged, role, part, std::move(twice))) << "twice " << Where(plan, role, part, list[i], i);
        EXPECT_FALSE(Accepts(damaged, role, part, without)) << "without " << Where(plan, role, part, list[i], i);
        if (part.list == &Role::save || part.list == &Role::resume) {  // what is in files has an order there only
          Body beside = list;
          beside[i].stream = "another";
          EXPECT_FALSE(Accepts(damaged, role, part, std::move(beside)))
              << "beside " << Where(plan, role, part, list[i], i);
        }
        if (!OnState(list[i])) continue;
        for (size_t to = 0; to < list.size(); ++to) {
          if (to == i || !tried()) continue;
          Body body = without;
          body.insert(at(body, to), list[i]);
          ++moved;
          if (!Accepts(damaged, role, part, std::move(body))) continue;
          ++same;
          const auto [first, last] = std::minmax(i, to);
          for (size_t passed = first; passed <= last; ++passed) {
            if (passed == i) continue;
            EXPECT_TRUE(commutation.Commute(list[i], list[passed]))
                << "moved " << Where(plan, role, part, list[i], i) << " to " << to << ", past "
                << Where(plan, role, part, list[passed], passed);
          }
        }
      }
    }
  }
  std::cout << "refused: " << inserted << " insertions, " << removed << " removals, " << repeated << " repetitions and "
            << moved - same << " of " << moved << " moves; the other " << same << " moves are the same plan\n";
  EXPECT_GT(inserted, 100);
  EXPECT_GT(moved - same, 40);
}

// Damage that was accepted once, each with what it did.
struct Defect {
  const char* name;
  std::string recipe;
  std::vector<std::string> overrides;
  std::function<void(Plan&)> inflict;
  const char* rule;
  const char* says;
  friend void PrintTo(const Defect& defect, std::ostream* out) { *out << defect.name; }
};

constexpr char kTiny[] = "nemotron_moe_vlm_tiny";

Instruction Of(OpKind kind, const char* module) {
  Instruction op{.kind = kind};
  if (*module) op.attributes["module"] = std::string(module);
  return op;
}

// Puts the instruction at the end of a list of every role that has the module.
std::function<void(Plan&)> Append(std::vector<Instruction> Role::*list, const Instruction& op) {
  return [list, op](Plan& plan) {
    const std::string* module = op.FindText("module");
    for (Role& role : plan.roles) {
      const auto& modules = role.modules;
      if (!module || std::find(modules.begin(), modules.end(), *module) != modules.end()) (role.*list).push_back(op);
    }
  };
}

std::vector<Defect> Defects() {
  const Overrides bf16 = {"precision.params=bf16"}, several = Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2));
  return {
      // Weights were drawn anew in each step.
      {"initializes_in_a_step",
       kTiny,
       {},
       Append(&Role::step, Of(OpKind::kInitializeParameters, "language")),
       "V7",
       "initialize_parameters"},
      // The fp32 masters were lost in each step.
      {"refreshes_masters_in_a_step", kTiny, bf16, Append(&Role::step, Of(OpKind::kRefreshMasters, "language")), "V7",
       "refresh_masters"},
      // Each rank waited for the others to take the copies.
      {"saves_in_a_step", kTiny, {}, Append(&Role::step, Of(OpKind::kSaveState, "language")), "V7", "save_state"},
      // The program ended by a signal.
      {"loads_in_a_step",
       kTiny,
       {},
       Append(&Role::step, Of(OpKind::kLoadParameters, "language")),
       "V7",
       "load_parameters"},
      {"publishes_in_a_step",
       kTiny,
       {},
       Append(&Role::step, Of(OpKind::kPublishCheckpoint, "")),
       "V7",
       "it belongs to: save"},
      {"loads_state_in_a_step", kTiny, {}, Append(&Role::step, Of(OpKind::kLoadState, "language")), "V7", "load_state"},
      // The last checkpoint was written from weights that were drawn again.
      {"initializes_at_the_end",
       kTiny,
       {"checkpoint.every_steps=2"},
       Append(&Role::teardown, Of(OpKind::kInitializeParameters, "language")),
       "V7",
       "it belongs to: setup"},
      {"logs_at_the_end", kTiny, {}, Append(&Role::teardown, Of(OpKind::kLogStep, "")), "V7", "log_step"},
      {"runs_a_backward_at_the_end",
       kTiny,
       {},
       [](Plan& p) {
         for (const Instruction& op : p.roles[0].step) {
           if (op.kind == OpKind::kCall && op.block == "language.s0.backward") p.roles[0].teardown = {op};
         }
       },
       "V4",
       "in the list teardown"},
      {"reads_samples_at_the_end",
       kTiny,
       {},
       [](Plan& p) {
         for (const Instruction& op : p.roles[0].step) {
           if (op.kind != OpKind::kReadTokens) continue;
           p.roles[0].teardown = {op};
           p.roles[0].teardown[0].frees.clear();
           for (const Output& output : op.outputs) p.roles[0].teardown[0].frees.push_back(output.name);
         }
       },
       "V4",
       "in the list teardown"},
      // Another loss curve: gradients were divided by the tokens of fewer microbatches.
      {"counts_loss_tokens_after_scaling",
       kTiny,
       {},
       [](Plan& p) {
         std::vector<Instruction>& step = p.roles[0].step;
         const auto last = std::find_if(step.rbegin(), step.rend(),
                                        [](const Instruction& op) { return op.kind == OpKind::kAccumulate; });
         const Instruction count = *last;
         step.erase(std::next(last).base());
         const auto clip = std::find_if(step.begin(), step.end(),
                                        [](const Instruction& op) { return op.kind == OpKind::kClipAndGate; });
         step.insert(clip, count);
       },
       "V7",
       "the order for $integers"},
      // A rank received rows that the table sends to another.
      {"sibling_receives_as_its_leader", kTiny, several,
       [](Plan& p) {
         const auto named = [&](const char* name) -> Role& {
           return *std::find_if(p.roles.begin(), p.roles.end(), [&](const Role& role) { return role.name == name; });
         };
         named("language.s0.sibling").step = named("language.s0").step;
       },
       "V5", "has no rows"},
      // Other tokens were padding, or ended documents.
      {"ends_tar_documents_with_a_byte",
       "icons_8r_toy",
       {},
       [](Plan& p) { p.data.end_token = 10; },
       "V11",
       "end_token"},
      {"pads_sources_of_bytes_with_a_byte",
       "icons_8r_toy",
       {},
       [](Plan& p) { p.data.pad_token = 65; },
       "V11",
       "pad_token"},
      // Memory was planned for images where rows of images are.
      {"rows_counted_as_images", kTiny, several,
       [](Plan& p) {
         for (Role& role : p.roles) {
           for (Instruction& op : role.step) {
             for (Output& output : op.outputs) {
               for (Dim& dim : output.type.dims) {
                 if (dim == Dim(std::string("radio_encoder.image_rows"))) dim = std::string("radio_encoder.images");
               }
             }
           }
         }
       },
       "V4", "radio_encoder.image"},
      {"received_rows_counted_as_those_of_the_sender", kTiny, several,
       [](Plan& p) {
         for (Role& role : p.roles) {
           for (Instruction& op : role.step) {
             for (Output& output : op.outputs) {
               for (Dim& dim : output.type.dims) {
                 if (dim == Dim(std::string("language.image_rows"))) dim = std::string("radio_encoder.image_rows");
               }
             }
           }
         }
       },
       "V11", "language.image_rows"},
      // Ranks ended at once, as hung.
      {"deadline_below_zero", kTiny, {}, [](Plan& p) { p.launch.deadline_floor = -1; }, "V11", "deadline_floor"},
      {"deadline_of_the_first_step_below_zero",
       kTiny,
       {},
       [](Plan& p) { p.launch.deadline_first_step = -1; },
       "V11",
       "deadline_first_step"},
      {"deadline_factor_below_zero",
       kTiny,
       {},
       [](Plan& p) { p.launch.deadline_factor = -1; },
       "V11",
       "deadline_factor"},
      {"predicted_step_below_zero", kTiny, {}, [](Plan& p) { p.launch.predicted_step = -1; }, "V11", "predicted_step"},
      // Others of their kind.
      {"host_memory_below_zero", kTiny, {}, [](Plan& p) { p.cluster.host_memory = -1; }, "V11", "host_memory"},
      {"limit_of_rows_below_zero",
       kTiny,
       {},
       [](Plan& p) { p.bridges[0].max_mean_square = -1; },
       "V11",
       "max_mean_square"},
      {"collective_on_state_inside_a_layer", kTiny, Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 1)),
       [](Plan& p) {
         const auto is = [](const Instruction& op) { return op.kind == OpKind::kReduceScatter; };
         for (Role& role : p.roles) {
           const auto reduce = std::find_if(role.step.begin(), role.step.end(), is);
           if (reduce == role.step.end()) continue;
           for (Block& block : p.blocks) {
             if (block.name == "language.head.backward") block.body.push_back(*reduce);
           }
           return;
         }
       },
       "V7", "reduce_scatter"},
      {"modules_set_up_in_another_order",
       kTiny,
       {},
       [](Plan& p) {
         std::vector<Instruction>& setup = p.roles[0].setup;
         std::rotate(setup.begin(), setup.begin() + 3, setup.end());
       },
       "V11",
       "after instructions of language"},
  };
}

class OnceAccepted : public ::testing::TestWithParam<Defect> {};

TEST_P(OnceAccepted, IsRefused) {
  const Defect& defect = GetParam();
  const Plan sound = CompiledFile(absl::StrCat(InSource("recipes/"), defect.recipe, ".yaml"), defect.overrides);
  ASSERT_TRUE(VerifyPlan(sound).empty());
  Plan plan = sound;
  defect.inflict(plan);
  const std::vector<Violation> found = VerifyPlan(plan);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front().rule, defect.rule) << found.front().message;
  EXPECT_TRUE(absl::StrContains(found.front().message, defect.says)) << found.front().message;
  EXPECT_GE(found.front().origin, 0);
}

INSTANTIATE_TEST_SUITE_P(Defects, OnceAccepted, ::testing::ValuesIn(Defects()),
                         [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(Plans, StateMutants, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace planwright
