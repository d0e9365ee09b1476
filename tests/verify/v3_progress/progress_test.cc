// The proof of V3 against the brute-force simulator. If the proof accepts a plan, no interleaving may break it. If it
// refuses a plan, some interleaving must break it, or the plan is a conservative case (docs/progress.md#limits). Of the
// mutants that are drawn here, none is conservative.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "planner/compile/compile.h"
#include "planner/verify/rules.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"
#include "tests/support/recipes.h"
#include "tests/verify/mutants/mutants.h"
#include "tests/verify/v3_progress/random_programs.h"
#include "tests/verify/v3_progress/simulator.h"

namespace planwright {
namespace {

using testing::AllMutants;
using testing::CommunicationMutants;
using testing::Interleaving;
using testing::Mutant;
using testing::RandomPrograms;
using testing::Simulate;
using testing::TinyRecipe;

std::string ProofProblem(const Plan& plan) {
  const std::vector<Violation> violations = VerifyProgress(plan);
  return violations.empty() ? "" : violations.front().message;
}

// The first problem that some interleaving meets; "" if there is none.
std::string SimulatedProblem(const Plan& plan, uint64_t seeds) {
  std::vector<Interleaving> interleavings;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    for (int host_waits : {0, 30, 100}) interleavings.push_back({seed, host_waits});
  }
  return Simulate(plan, interleavings).problem;
}

// How often proof and simulator agree.
struct Tally {
  int refused = 0, harmless = 0;            // by both; by neither
  std::map<std::string, int> conservative;  // refused only by the proof, by kind of mutant

  void Print() const {
    std::cout << refused << " refused by both, " << harmless << " by neither\n";
    for (const auto& [kind, count] : conservative) std::cout << count << " only by the proof: " << kind << "\n";
  }
};

// Whether V3 may be asked about the plan: V1 and V2 hold and every call names a block. What the plan computes does not
// matter to V3.
bool IsReadyForProgress(const Plan& plan) {
  if (!VerifyPlacement(plan).empty() || !VerifyGroups(plan).empty()) return false;
  const auto unknown = [&](const Instruction& op) { return op.kind == OpKind::kCall && !plan.FindBlock(op.block); };
  const auto sound = [&](const std::vector<Instruction>& body) {
    return std::none_of(body.begin(), body.end(), unknown);
  };
  return std::all_of(plan.blocks.begin(), plan.blocks.end(), [&](const Block& block) { return sound(block.body); }) &&
         std::all_of(plan.roles.begin(), plan.roles.end(), [&](const Role& role) {
           return std::all_of(std::begin(kRoleLists), std::end(kRoleLists),
                              [&](const RoleList& part) { return sound(role.*part.list); });
         });
}

// Draws `count` of the mutants. Proof and simulator must agree on each; `tally` counts how.
void CompareMutants(const Plan& plan, std::vector<Mutant> mutants, uint64_t seed, size_t count, Tally& tally) {
  std::shuffle(mutants.begin(), mutants.end(), std::mt19937_64(seed));
  for (const Mutant& mutant : mutants) {
    if (count == 0) return;
    Plan damaged = plan;
    mutant.inflict(damaged);
    if (!IsReadyForProgress(damaged)) continue;
    --count;
    const std::string name = absl::StrCat(mutant.kind, ", ", mutant.where, ", seed ", seed);
    const std::string proof = ProofProblem(damaged);
    const std::string simulated = SimulatedProblem(damaged, proof.empty() ? 2 : 1);
    if (proof.empty()) {
      EXPECT_EQ(simulated, "") << name << ": the proof accepts it";
      ++tally.harmless;
    } else if (!simulated.empty()) {
      ++tally.refused;
    } else {
      ++tally.conservative[mutant.kind];
      std::cout << name << ", refused only by the proof: " << proof << "\n";
    }
  }
}

// Compares mutants of all kinds, most of them with damaged communication. Returns how many both refuse.
int CompareMutants(const Plan& plan) {
  const size_t count = plan.world_size > 64 ? 20 : 120;  // a simulation of hundreds of ranks takes a second
  Tally tally;
  CompareMutants(plan, CommunicationMutants(plan), 1, count, tally);
  CompareMutants(plan, AllMutants(plan), 2, count / 2, tally);
  tally.Print();
  EXPECT_TRUE(tally.conservative.empty());
  return tally.refused;
}

TEST(Progress, RandomProgramsAgreeWithTheSimulator) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Plan plan = RandomPrograms(seed);
    ASSERT_EQ(ProofProblem(plan), "") << "seed " << seed;
    ASSERT_EQ(SimulatedProblem(plan, 2), "") << "seed " << seed;
  }
}

TEST(Progress, DamagedRandomProgramsAgreeWithTheSimulator) {
  Tally tally;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Plan plan = RandomPrograms(seed);
    CompareMutants(plan, CommunicationMutants(plan), seed, 20, tally);
  }
  tally.Print();
  EXPECT_GT(tally.refused, 1000);
  EXPECT_TRUE(tally.conservative.empty());
}

Plan Compiled(const std::string& recipe_name, const std::vector<std::string>& overrides) {
  return testing::CompiledFile(InSource("recipes/") + recipe_name + ".yaml", overrides);
}

// The model of the 8-rank toy recipe in other layouts: pipeline stages, overlap, and each kind of bridge.
struct Layout {
  const char* name;
  std::vector<std::string> overrides;
  friend void PrintTo(const Layout& layout, std::ostream* out) { *out << layout.name; }
};

std::vector<Layout> Layouts() {
  const auto encoder = [](int first, int ranks, const char* parallel) {
    return std::vector<std::string>{absl::StrCat("modules.radio_encoder.placement.first_rank=", first),
                                    absl::StrCat("modules.radio_encoder.placement.ranks=", ranks),
                                    absl::StrCat("modules.radio_encoder.parallel=", parallel)};
  };
  const auto with = [](std::vector<std::string> all, int first, int ranks, const char* parallel, int samples,
                       bool overlap) {
    all.push_back(absl::StrCat("modules.language.placement.first_rank=", first));
    all.push_back(absl::StrCat("modules.language.placement.ranks=", ranks));
    all.push_back(absl::StrCat("modules.language.parallel=", parallel));
    all.push_back(absl::StrCat("batch.global_samples=", samples));
    all.push_back(absl::StrCat("budget.train_samples=", 10 * samples));
    all.push_back(absl::StrCat("budget.learning_rate.decay_samples=", 10 * samples));
    all.push_back(absl::StrCat("cluster.nodes=", (first + ranks + 7) / 8));
    if (!overlap) return all;
    all.push_back("gradients.overlap_reduce=true");
    all.push_back("gradients.overlap_gather=true");
    return all;
  };
  return {
      {"stages", with(encoder(0, 2, "{tp: 2}"), 2, 8, "{tp: 2, pp: 2, ep: 4}", 8, false)},
      {"stages_overlapped", with(encoder(0, 2, "{tp: 2}"), 2, 8, "{tp: 2, pp: 2, ep: 4}", 8, true)},
      {"four_stages_overlapped", with(encoder(0, 4, "{tp: 1, pp: 2}"), 4, 8, "{tp: 1, pp: 4, ep: 2}", 12, true)},
      {"dispatch_overlapped",
       with(encoder(0, 2, "{tp: 2}"), 2, 8, "{tp: 2, pp: 2, ep: 2, expert_tp: 2, overlap_dispatch: true}", 8, true)},
      {"uneven_bridge", with(encoder(0, 3, "{tp: 1}"), 3, 4, "{tp: 2, ep: 4}", 12, true)},
      {"fan_in", with(encoder(0, 4, "{tp: 1}"), 4, 4, "{tp: 2, ep: 2}", 8, true)},
      {"context_and_expert_tensor_parallel",
       with(encoder(0, 2, "{tp: 2}"), 2, 8, "{tp: 1, cp: 2, pp: 2, ep: 2, expert_tp: 2}", 8, true)},
      {"ranks_264", with(encoder(0, 8, "{tp: 1}"), 8, 256, "{tp: 2, ep: 8}", 256, true)},
      {"ranks_1024_in_stages", with(encoder(0, 64, "{tp: 4}"), 64, 960, "{tp: 2, pp: 4, ep: 8}", 480, true)},
      {"fan_out_over_stages", with(encoder(0, 4, "{tp: 2, pp: 2}"), 4, 16, "{tp: 2, pp: 2, ep: 4}", 16, true)},
  };
}

class LaidOut : public ::testing::TestWithParam<Layout> {};

TEST_P(LaidOut, AgreesWithTheSimulator) {
  const Plan plan = Compiled("nemotron_moe_vlm_20l_mock_8r_toy", GetParam().overrides);
  ASSERT_FALSE(plan.roles.empty());
  EXPECT_EQ(ProofProblem(plan), "");
  EXPECT_EQ(SimulatedProblem(plan, plan.world_size > 64 ? 1 : 5), "");
  if (plan.world_size > 300) return;
  EXPECT_GT(CompareMutants(plan), 10);
}

INSTANTIATE_TEST_SUITE_P(Layouts, LaidOut, ::testing::ValuesIn(Layouts()),
                         [](const auto& info) { return std::string(info.param.name); });

// Names of all shipped recipes.
std::vector<std::string> Shipped() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(InSource("recipes"))) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class ShippedRecipe : public ::testing::TestWithParam<std::string> {};

TEST_P(ShippedRecipe, AgreesWithTheSimulator) {
  // The largest recipe is too large for the simulator. It is shrunk to 1,024 ranks: 1/128 of its lanes and samples.
  std::vector<std::string> overrides;
  if (GetParam() == "nemotron_moe_vlm_54l_131072r") {
    overrides = {"cluster.nodes=128", "modules.radio_encoder.placement.ranks=64",
                 "modules.language.placement.first_rank=64", "modules.language.placement.ranks=960",
                 "batch.global_samples=320"};
  }
  const Plan plan = Compiled(GetParam(), overrides);
  ASSERT_FALSE(plan.roles.empty());
  ASSERT_LE(plan.world_size, 1024);
  EXPECT_EQ(ProofProblem(plan), "");
  EXPECT_EQ(SimulatedProblem(plan, plan.world_size > 64 ? 1 : 5), "");
  if (plan.world_size > 100) return;
  EXPECT_GT(CompareMutants(plan), plan.world_size > 1 ? 10 : -1);
}

INSTANTIATE_TEST_SUITE_P(Recipes, ShippedRecipe, ::testing::ValuesIn(Shipped()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace planwright
