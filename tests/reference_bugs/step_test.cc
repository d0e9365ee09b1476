// What a step does, in every shipped plan: what is counted and scaled, which instructions read gradients, and that
// every microbatch is read once. Bug numbers are those of docs/reference_bugs.md.
#include <map>
#include <set>
#include <tuple>

#include "planner/recipe/recipe_keys.h"
#include "tests/reference_bugs/shipped_plans.h"

namespace planwright {
namespace {

using testing::ForEachInstruction;
using testing::ForEachShipped;
using testing::Site;

// Bug 10: generators of several libraries were seeded in several places, some with the rank added. Here there is one
// seed, and no instruction has another.
TEST(Step, DrawsFromOneSeed) {
  ForEachShipped([](const Plan& plan) {
    EXPECT_EQ(plan.seed, plan.data.seed);
    ForEachInstruction(plan, [](const Instruction& op, const Site& site) {
      for (const auto& [key, value] : op.attributes)
        EXPECT_EQ(key.find("seed"), std::string::npos) << site.name << " " << OpName(op.kind);
    });
  });
}

// Bug 13: encoder gradients were divided by all tokens although few ranks saw images, and a factor that should correct
// this was never applied. Here the gradients of all modules are divided by one number, the loss tokens of the world
// (docs/training/step.md#gradient-reduction). There is no factor to forget.
TEST(Step, ScalesEveryModuleByTheSameTokens) {
  ForEachShipped([](const Plan& plan) {
    for (const Role& role : plan.roles) {
      int64_t sums = 0;
      std::set<std::pair<std::string, int64_t>> scaled;
      for (const Instruction& op : role.step) {
        if (!op.inputs.empty() && op.inputs[0] == "$integers" && op.group == "world") ++sums;
        if (op.kind != OpKind::kScaleGradients) continue;
        EXPECT_TRUE(scaled.insert({op.text("module"), op.integer("bucket")}).second)
            << role.name << " scales a bucket twice";
        EXPECT_EQ(op.attributes.size(), 2u) << "only the module and its bucket";
        EXPECT_EQ(sums, plan.world_size > 1 ? 1 : 0) << role.name << " scales by a sum that is not finished";
      }
    }
  });
  for (const KeySpec& key : RecipeKeys()) EXPECT_EQ(key.path.find("particip"), std::string_view::npos) << key.path;
}

// Bug 14: a fused kernel summed router scores in bf16.
TEST(Step, RoutesInFp32OrWider) {
  int routed = 0;
  ForEachShipped([&](const Plan& plan) {
    ForEachInstruction(plan, [&](const Instruction& op, const Site& site) {
      if (op.kind != OpKind::kRoute) return;
      ++routed;
      for (const Output& output : op.outputs)
        EXPECT_NE(output.type.dtype, DType::kBf16) << site.name << " " << output.name;
    });
  });
  EXPECT_GT(routed, 0);
}

// Bug 16: the encoder ended in its norm only if another setting was 0 and not absent.
TEST(Step, EncodersEndInTheirNorm) {
  ForEachShipped([](const Plan& plan) {
    for (const Module& module : plan.modules) {
      if (module.kind != "radio_vit") continue;
      const Block* head = plan.FindBlock(module.name + ".head.forward");
      ASSERT_NE(head, nullptr);
      const auto norm = std::find_if(head->body.begin(), head->body.end(),
                                     [](const Instruction& op) { return op.kind == OpKind::kLayerNorm; });
      const auto shuffle = std::find_if(head->body.begin(), head->body.end(),
                                        [](const Instruction& op) { return op.kind == OpKind::kPixelShuffle; });
      ASSERT_TRUE(norm != head->body.end() && norm < shuffle) << module.name;
      EXPECT_EQ(norm->parameters.at(0), "final_norm_weight");
    }
  });
}

bool Reads(const Instruction& op) { return OpClassOf(op.kind) == OpClass::kData; }

// Bug 19: an encoder rank opened a loader for each language lane that it serves. Here a rank reads a microbatch of a
// module once, for any number of lanes.
TEST(Step, ReadsEveryMicrobatchOnce) {
  ForEachShipped([](const Plan& plan) {
    for (const Role& role : plan.roles) {
      // What is read of a microbatch, its tokens or its images' sizes, is read once.
      std::map<std::pair<std::string, OpKind>, std::multiset<int>> read;
      for (const Instruction& op : role.step) {
        if (Reads(op)) read[{op.text("module"), op.kind}].insert(op.microbatch);
      }
      for (const auto& [what, microbatches] : read) {
        EXPECT_EQ(static_cast<int64_t>(microbatches.size()), plan.budget.microbatches)
            << role.name << " " << what.first;
        EXPECT_EQ(std::set<int>(microbatches.begin(), microbatches.end()).size(), microbatches.size())
            << role.name << " " << what.first;
      }
    }
  });
}

// Bug 23: the auxiliary loss was logged only if an option was set whose name does not exist.
TEST(Step, LogsTheAuxiliaryLossOfEveryExpertLayer) {
  ForEachShipped([](const Plan& plan) {
    for (const Module& module : plan.modules) {
      const Block* moe = plan.FindBlock(module.name + ".moe.forward");
      if (moe == nullptr || !module.trains_backbone || module.real("moe.aux_loss") == 0) continue;
      const auto logs = [](const Instruction& op) {
        return op.kind == OpKind::kAccumulate && op.text("into") == "$reals.aux";
      };
      EXPECT_EQ(std::count_if(moe->body.begin(), moe->body.end(), logs), 1) << module.name;
    }
  });
}

// Bug 29: the loss was summed over all tp ranks of a module. Loss and loss tokens are the same on all tp ranks of a
// lane, so one of these ranks adds them.
TEST(Step, CountsLossTokensOnOneRankOfALane) {
  ForEachShipped([](const Plan& plan) {
    int counted = 0;
    ForEachInstruction(plan, [&](const Instruction& op, const Site& site) {
      if (op.kind != OpKind::kAccumulate) return;
      const std::string& into = op.text("into");
      if (into != "$integers.loss_tokens" && into != "$reals.loss") return;
      ++counted;
      const Grid& grid =
          site.plan.FindModule(op.attributes.contains("module") ? op.text("module") : site.modules.front())->grid;
      // Over cp a rank has the loss of its part of the sequence, but it reads the tokens of the whole lane.
      std::string whole = grid.tp > 1 ? "tp" : "";
      if (into == "$integers.loss_tokens" && grid.cp > 1) whole += whole.empty() ? "cp" : ",cp";
      EXPECT_EQ(op.attributes.contains("once_over") ? op.text("once_over") : "", whole) << site.name << " " << into;
    });
    EXPECT_GE(counted, 2);
  });
}

// Bug 30: a scan of the gradient buffers found out which ranks had seen images. Here only the sums, the scale, the norm
// and the optimizer read gradients, each once.
TEST(Step, ReadsGradientsForTheUpdateAlone) {
  const std::set<OpKind> readers = {OpKind::kAllReduce, OpKind::kReduceScatter};
  ForEachShipped([&](const Plan& plan) {
    ForEachInstruction(plan, [&](const Instruction& op, const Site& site) {
      for (const std::string& input : op.inputs) {
        const bool gradient = testing::IsStateName(input) && input.find(".gradient") != std::string::npos;
        EXPECT_TRUE(!gradient || readers.contains(op.kind)) << site.name << " " << OpName(op.kind);
      }
    });
    for (const Role& role : plan.roles) {
      std::map<std::tuple<OpKind, std::string, int64_t>, int> updates;
      for (const Instruction& op : role.step) {
        const bool update =
            op.kind == OpKind::kScaleGradients || op.kind == OpKind::kSquareNorm || op.kind == OpKind::kAdamW;
        if (update) ++updates[{op.kind, op.text("module"), op.integer("bucket")}];
      }
      for (const auto& [update, times] : updates)
        EXPECT_EQ(times, 1) << role.name << " " << OpName(std::get<0>(update)) << " of " << std::get<1>(update);
    }
  });
}

// Bug 26: on some ranks the learning rate went on after skipped steps. Here one gate comes before every update and
// after the norm of the world.
TEST(Step, IsGatedOnceBehindTheWorldsNorm) {
  ForEachShipped([](const Plan& plan) {
    for (const Role& role : plan.roles) {
      bool norm = plan.world_size == 1, gate = false;
      for (const Instruction& op : role.step) {
        if (op.group == "world" && op.inputs.at(0) == "$reals") norm = true;
        if (op.kind == OpKind::kClipAndGate) {
          EXPECT_TRUE(norm && !gate) << role.name;
          gate = true;
        }
        const bool updates = op.kind == OpKind::kAdamW || op.kind == OpKind::kUpdateExpertBias;
        EXPECT_TRUE(gate || !updates) << role.name << " " << OpName(op.kind);
      }
      EXPECT_TRUE(gate) << role.name;
    }
  });
}

}  // namespace
}  // namespace planwright
