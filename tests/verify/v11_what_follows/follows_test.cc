// V11: a field that follows from model, layout and free fields has its one right value. A plan with another value is
// refused, at the recipe line of the module that the field belongs to. The damage here is often consistent in itself:
// names swapped everywhere, or a slot bound to another tensor of the same shape in blocks without a backward.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "planner/plan/plan_json.h"
#include "planner/verify/rules.h"
#include "planner/verify/verify.h"
#include "tests/numerics/layouts.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"
#include "tests/verify/mutants/field_swap.h"
#include "tests/verify/v11_what_follows/follows_damage.h"

namespace planwright {
namespace {

using testing::CompiledFile;
using testing::Damage;
using testing::EncoderOn;
using testing::ExpectRefused;
using testing::Join;
using testing::kTiny;
using testing::Language;
using testing::LanguageOn;
using testing::RoleOf;
using testing::TensorParallel;
using testing::WithEverything;

TEST(Follows, BucketsSumsAndGroupsFollow) {
  const auto expert_bucket = [](Plan& p) -> Bucket& {
    for (Bucket& bucket : Language(p).buckets) {
      if (bucket.view == View::kExpert) return bucket;
    }
    throw std::runtime_error("no bucket of experts");
  };
  ExpectRefused(
      TensorParallel(),
      {{"experts_counted_once", [&](Plan& p) { expert_bucket(p).tp = TpGradient::kReplicated; }, "", "V6"},
       {"norm_of_coordinate_0_alone", [&](Plan& p) { expert_bucket(p).once_over = {Axis::kTp}; }, "once_over"},
       {"masters_as_narrow_as_weights", [](Plan& p) { Language(p).buckets[0].master = DType::kBf16; }, "master"},
       {"weights_of_another_type", [](Plan& p) { Language(p).buckets[0].dtype = DType::kFp64; }, "dtype"},
       {"sum_of_another_name", [](Plan& p) { std::swap(p.accumulators[0].parts[0], p.accumulators[0].parts[1]); },
        "parts"},
       {"sum_of_floats", [](Plan& p) { p.accumulators[2].dtype = DType::kFp64; }},
       {"group_on_another_stream", [](Plan& p) { p.groups[0].streams.push_back("gather"); }, "streams"},
       {"group_of_other_axes",
        [](Plan& p) {
          for (Group& group : p.groups) {
            if (group.name == "language.tp_cp") group.axes = {Axis::kPp};
          }
        },
        "axes"},
       {"bridge_of_another_kind",
        [](Plan& p) { p.bridges[0].kind = p.bridges[0].kind == "equal" ? "fan_in" : "equal"; }},
       {"run_time_size_of_another_mean",
        [](Plan& p) { p.symbols[0].mean = std::max<int64_t>(1, p.symbols[0].mean / 2); }, "mean"},
       {"drawn_where_it_is_loaded",
        [](Plan& p) {
          for (Role& role : p.roles) role.setup[1].kind = OpKind::kLoadParameters;
        },
        "", "V7"},
       {"drawn_and_never_mastered", [](Plan& p) { std::swap(p.roles[0].setup[1], p.roles[0].setup[2]); }, "", "V7"},
       {"set_up_twice", [](Plan& p) { p.roles[0].setup.push_back(p.roles[0].setup.back()); }, "2 times", "V7"}},
      "");
}

// Siblings must run their leader's program, also if another program would be valid by itself.
TEST(Follows, SiblingsOfALaneRunOneProgram) {
  const Plan plan = CompiledFile(kTiny, Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2)));
  const auto sibling = [](Plan& p) -> Role& { return RoleOf(p, "language.s0.sibling"); };
  ExpectRefused(
      plan,
      {{"draws_where_its_leader_loads",
        [&](Plan& p) {
          p.initialize = InitializePlan{.from = "weights.safetensors"};
          for (Role& role : p.roles) role.setup[1].kind = OpKind::kLoadParameters;
          sibling(p).setup[1].kind = OpKind::kInitializeParameters;
        },
        "not never", "V7"},
       {"microbatches_swapped",
        [&](Plan& p) {
          // Microbatches 0 and 1 change places in the sibling alone. Its list of calls is still consistent in itself.
          const auto renumber = [](std::string& name) {
            const size_t at = name.find(".m");
            if (at == std::string::npos || !(name[at + 2] == '0' || name[at + 2] == '1') || name[at + 3] != '.') return;
            name[at + 2] = name[at + 2] == '0' ? '1' : '0';
          };
          for (Instruction& op : sibling(p).step) {
            if (op.microbatch == 0 || op.microbatch == 1) op.microbatch = 1 - op.microbatch;
            for (std::string& name : op.inputs) renumber(name);
            for (Output& output : op.outputs) renumber(output.name);
            for (std::string& name : op.frees) renumber(name);
          }
        }},
       {"leader_hands_on_nothing",
        [](Plan& p) {
          for (Instruction& op : RoleOf(p, "language.s0").step) {
            if (op.kind == OpKind::kBroadcast) return op.inputs.pop_back();
          }
        },
        "nothing reads"},
       {"steps_bucket_by_bucket_otherwise",
        [&](Plan& p) {
          std::vector<Instruction>& step = sibling(p).step;
          for (size_t i = 0; i + 1 < step.size(); ++i) {
            if (step[i].kind != OpKind::kScaleGradients || step[i + 1].kind != OpKind::kScaleGradients) continue;
            return std::swap(step[i], step[i + 1]);
          }
          throw std::runtime_error("one bucket alone");
        }}},
      "");
}

// Two microbatches change their numbers in every role. So all roles do the same, but in another order.
TEST(Follows, MicrobatchesRunInTheOrderOfTheSchedule) {
  const auto swap = [](Plan& p, int a, int b) {
    for (Role& role : p.roles) {
      for (Instruction& op : role.step) {
        if (op.microbatch == a || op.microbatch == b) op.microbatch = op.microbatch == a ? b : a;
      }
    }
  };
  ExpectRefused(
      TensorParallel(),
      {{"first_two", [&](Plan& p) { swap(p, 0, 1); }, "schedule"},
       {"first_and_last", [&](Plan& p) { swap(p, 0, static_cast<int>(p.budget.microbatches) - 1); }, "schedule"}},
      "");
}

// Padding that alignment does not need, at the end of a bucket or before its last storage.
TEST(Follows, BucketsAreNoLongerThanTheirStorages) {
  std::vector<Damage> damages;
  for (const int64_t more : {int64_t{128}, int64_t{1} << 20, int64_t{1} << 31}) {
    damages.push_back({"padded",
                       [more](Plan& p) { Language(p).buckets[0].elements += more * Language(p).buckets[0].shards; },
                       "storages that end", "V7"});
    damages.push_back({"moved",
                       [more](Plan& p) {
                         Storage* last = nullptr;
                         for (Storage& storage : Language(p).storages) {
                           if (storage.bucket == 0 && (!last || storage.offset > last->offset)) last = &storage;
                         }
                         last->offset += more;
                         Language(p).buckets[0].elements += more * Language(p).buckets[0].shards;
                       },
                       "not at", "V7"});
  }
  ExpectRefused(TensorParallel(), damages, "module language");
}

TEST(Follows, UnknownGpusAndEmptyMockDataAreRefused) {
  ExpectRefused(CompiledFile(kTiny),
                {{"no_gpu", [](Plan& p) { p.cluster.gpu.clear(); }, "gpu"},
                 {"unknown_gpu", [](Plan& p) { p.cluster.gpu = "nonex"; }, "gpu"},
                 {"gpu_with_a_space", [](Plan& p) { p.cluster.gpu += " "; }, "gpu"},
                 {"no_class", [](Plan& p) { p.data.classes = 0; }, "mock"},
                 {"no_text", [](Plan& p) { p.data.text_tokens = 0; }, "mock"},
                 {"no_grid", [](Plan& p) { p.data.image_grids.clear(); }, "mock"},
                 {"grid_of_nothing", [](Plan& p) { p.data.image_grids.back() = {}; }, "sizes"},
                 {"grid_of_one", [](Plan& p) { p.data.image_grids.back() = {4}; }, "sizes"},
                 {"grid_of_three",
                  [](Plan& p) {
                    p.data.image_grids.back() = {4, 6, 6};
                  },
                  "sizes"},
                 {"grid_of_zero",
                  [](Plan& p) {
                    p.data.image_grids.back() = {4, 0};
                  },
                  "sizes"},
                 {"grid_below_zero",
                  [](Plan& p) {
                    p.data.image_grids.back() = {-4, 4};
                  },
                  "sizes"}},
                "");
}

TEST(Follows, FreeNumbersAreInTheirRanges) {
  ExpectRefused(CompiledFile(kTiny),
                {{"precision", [](Plan& p) { p.precision = "nonsense"; }, "nonsense"},
                 {"beta", [](Plan& p) { p.optimizer.beta1 = 1.5; }, "beta"},
                 {"eps", [](Plan& p) { p.optimizer.eps = -1; }, "eps"},
                 {"clip", [](Plan& p) { p.optimizer.clip_grad_norm = std::nan(""); }, "clip"},
                 {"seed", [](Plan& p) { p.seed = -1; }, "seed"},
                 {"seed_of_the_data", [](Plan& p) { p.data.seed = -1; }, "seed"},
                 {"rate", [](Plan& p) { p.budget.learning_rate.peak = -1e-3; }, "rate"},
                 {"decay", [](Plan& p) { p.budget.weight_decay.end = -0.1; }, "decay"},
                 {"rate_of_a_part",
                  [](Plan& p) {
                    p.optimizer.parts = {{"language", -1e-3, 0}};
                  },
                  "learning_rate"},
                 {"decay_of_a_part",
                  [](Plan& p) {
                    p.optimizer.parts = {{"language", 1e-3, -0.1}};
                  },
                  "weight_decay"},
                 {"part_without_a_match",
                  [](Plan& p) {
                    p.optimizer.parts = {{"", 1e-3, 0.1}};
                  },
                  "match"},
                 {"parts",
                  [](Plan& p) {
                    p.optimizer.parts.assign(65, {"language", 1e-3, 0.1});
                  },
                  "parts"},
                 {"part_that_there_is_not", [](Plan& p) { p.modules[0].parameters[0].part = 0; }, "part"},
                 {"log", [](Plan& p) { p.log_every_steps = 0; }, "log_every_steps"},
                 {"checkpoint", [](Plan& p) { p.checkpoint.every_steps = -1; }, "steps"},
                 {"token", [](Plan& p) { p.data.image_token = p.data.vocabulary; }, "token"}},
                "");
}

// Of the parts that match a parameter the first counts, and of what no step changes there is none.
TEST(Follows, APartOfRatesHasWhatItMatchesAndNoPartBeforeIt) {
  const Plan plan = WithEverything();
  const auto parameter = [](Plan& p, const std::string& name) -> Parameter& {
    for (Module& module : p.modules) {
      for (Parameter& one : module.parameters) {
        if (one.name == name) return one;
      }
    }
    throw std::runtime_error("no parameter " + name);
  };
  const std::string mixer = "language.backbone.layers.0.mixer.in_proj.weight", norm = "language.backbone.norm_f.weight",
                    bias = "language.backbone.layers.1.mixer.gate.e_score_correction_bias";
  Plan sound = plan;
  EXPECT_EQ(parameter(sound, mixer).part, 1);
  EXPECT_EQ(parameter(sound, norm).part, -1);
  EXPECT_EQ(parameter(sound, bias).part, -1);
  ExpectRefused(plan,
                {{"in_no_part", [&](Plan& p) { parameter(p, mixer).part = -1; }, "part of rates -1, not 1"},
                 {"in_another_part", [&](Plan& p) { parameter(p, mixer).part = 0; }, "part of rates 0, not 1"},
                 {"in_a_part", [&](Plan& p) { parameter(p, norm).part = 1; }, "part of rates 1, not -1"},
                 {"a_buffer_in_a_part", [&](Plan& p) { parameter(p, bias).part = 1; }, "part of rates 1, not -1"},
                 {"another_match", [](Plan& p) { p.optimizer.parts[1].match = "*.mixer.i*"; }, "not -1"},
                 {"another_order", [](Plan& p) { std::swap(p.optimizer.parts[0], p.optimizer.parts[2]); }, "not"}},
                "");
}

// Any field that follows is refused with the value that it has at another place. Tries some occurrences of each field,
// spread over the plan.
TEST(Follows, NoFieldThatFollowsMayHaveTheValueOfAnotherPlace) {
  constexpr size_t kOccurrences = 5;  // of each field, at most
  for (Plan sound : {TensorParallel(), WithEverything()}) {
    const std::string digest = PlanDigest(sound);
    testing::FieldSwap look;
    Describe(look, sound);
    ASSERT_GT(look.seen().size(), 80u);
    for (const auto& [pattern, values] : look.seen()) {
      const size_t step = (values.size() + kOccurrences - 1) / kOccurrences;
      for (size_t at = step / 2; at < values.size(); at += step) {
        for (const std::any& value :
             {values[(at + 1) % values.size()], values[(at + values.size() / 2) % values.size()]}) {
          Plan plan = sound;
          testing::FieldSwap damage(pattern, at, value);
          Describe(damage, plan);
          ASSERT_TRUE(damage.done()) << pattern;
          if (PlanDigest(plan) == digest) continue;
          EXPECT_FALSE(VerifyPlan(plan).empty()) << pattern << " " << at << " of " << values.size();
        }
      }
    }
  }
}

// The rows of an encoder take the places of a token of the language model: no recipe can say another number.
TEST(Follows, ABridgesTokenIsInTheVocabulary) {
  const Plan sound = CompiledFile(InSource("recipes/nemotron_moe_two_encoders_tiny.yaml"));
  ASSERT_EQ(sound.bridges.size(), 2);
  for (size_t i = 0; i < sound.bridges.size(); ++i) {
    const int64_t token = sound.bridges[i].token;
    ASSERT_GE(token, 0);
    Plan plan = sound;
    plan.bridges[i].token = plan.data.encoders[i].token = -1;
    if (plan.data.image_token == token) plan.data.image_token = -1;
    for (Block& block : plan.blocks) {
      for (Instruction& op : block.body) {
        const int64_t* held = op.FindInteger("image_token");
        if (held && *held == token) op.attributes["image_token"] = int64_t{-1};
      }
    }
    const std::vector<Violation> found = VerifyPlan(plan);
    ASSERT_EQ(found.size(), 1);
    EXPECT_EQ(found[0].rule, "V11");
    EXPECT_THAT(found[0].message, ::testing::HasSubstr("has token -1, not one of the vocabulary of language"));
  }
}

}  // namespace
}  // namespace planwright
