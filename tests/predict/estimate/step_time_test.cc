// The predicted time of a step where it can be computed by hand: made-up devices on which one thing takes time.
#include "planner/predict/estimate/step_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "planner/plan/link/linked_program.h"
#include "planner/predict/estimate/step_speed.h"
#include "tests/predict/estimate/made_up_rates.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"
#include "tests/support/recipes.h"

namespace planwright {
namespace {

using testing::CompiledFile;
using testing::OnlyKinds;

const std::string kTiny = InSource("recipes/nemotron_moe_vlm_tiny.yaml");

std::string Name(const char* format, int number) { return absl::StrCat(format, number); }

// The language model with a Mamba layer on each of its stages; the encoder on a rank before it.
Plan Pipeline(int stages, int microbatches) {
  return CompiledFile(
      kTiny, {"models.hybrid_moe_tiny.pattern=" + std::string(static_cast<size_t>(stages), 'M'),
              Name("modules.language.placement={first_rank: 1, ranks: ", stages) + "}",
              Name("modules.language.parallel={pp: ", stages) + "}", Name("cluster.gpus_per_node=", stages + 1),
              Name("batch.global_samples=", microbatches), Name("budget.train_samples=", microbatches * 20),
              "budget.learning_rate.warmup_samples=0", Name("budget.learning_rate.decay_samples=", microbatches * 20)});
}

const std::vector<OpKind> kScans = {OpKind::kMambaScan, OpKind::kMambaScanGrad};

// The four times of a role are all of the step, and so are all costs, and the critical path.
void ExpectWhole(const StepTime& time) {
  for (const RoleTime& role : time.roles) {
    EXPECT_NEAR(role.busy + role.communication + role.waiting + role.launching, time.length, 1e-9 * time.length);
  }
  const auto sum = [](double all, const auto& part) { return all + part.seconds; };
  EXPECT_NEAR(std::accumulate(time.costs.begin(), time.costs.end(), 0.0, sum), time.length, 1e-9 * time.length);
  EXPECT_NEAR(std::accumulate(time.path.begin(), time.path.end(), 0.0, sum), time.length, 1e-9 * time.length);
}

// 1F1B's bubble: stages - 1 forwards and backwards beside those of the microbatches (docs/layouts/pipeline.md).
TEST(StepTime, OneForwardOneBackwardHasItsBubble) {
  for (const auto& [stages, microbatches] :
       {std::pair(1, 4), std::pair(2, 6), std::pair(4, 8), std::pair(4, 4), std::pair(4, 32)}) {
    const Plan plan = Pipeline(stages, microbatches);
    const StepTime one = TimeStep(Pipeline(1, 1), Rates(OnlyKinds(kScans, 1)));
    const double unit = one.length;  // a forward and its backward
    const StepTime time = TimeStep(plan, Rates(OnlyKinds(kScans, 1)));
    SCOPED_TRACE(absl::StrCat(stages, " stages, ", microbatches, " microbatches"));
    EXPECT_NEAR(time.length / unit, microbatches + stages - 1, 1e-9);
    for (const RoleTime& role : time.roles) {
      if (role.role->modules.front() != "language") continue;
      EXPECT_NEAR(role.busy / unit, microbatches, 1e-9);
      EXPECT_NEAR(role.waiting / time.length, (stages - 1.0) / (microbatches + stages - 1.0), 1e-9);
    }
    ExpectWhole(time);
  }
}

TEST(StepTime, ActionsOfARankDoNotOverlapAndWaitForTheirNeeds) {
  const StepTime time = TimeStep(Pipeline(4, 8), Rates(OnlyKinds(kScans, 1)));
  for (const RoleTime& role : time.roles) {
    for (size_t i = 1; i < role.actions.size(); ++i) EXPECT_GE(role.actions[i].start, role.actions[i - 1].end);
    for (const PlannedTime& entry : role.entries) {
      EXPECT_LE(entry.start + entry.length, time.length);
      if (entry.action < 0 || entry.length == 0) continue;
      const StageAction& action = role.actions[static_cast<size_t>(entry.action)];
      EXPECT_GE(entry.start, action.start);
      EXPECT_LE(entry.start + entry.length, action.end);
    }
  }
  EXPECT_GE(time.roles[2].actions[0].start, time.roles[1].actions[0].end);
}

// An encoder in front of a language model of one stage: while the encoder works, the others wait, and it is the path.
TEST(StepTime, ASlowEncoderIsWaitedForAndBoundsTheStep) {
  const Plan plan = CompiledFile(kTiny, {"modules.language.placement.first_rank=1", "cluster.gpus_per_node=2"});
  const StepTime time = TimeStep(plan, Rates(OnlyKinds({OpKind::kPackedAttention}, 1)));
  ASSERT_EQ(time.roles.size(), 2u);
  EXPECT_EQ(time.roles[0].waiting, 0);
  EXPECT_EQ(time.roles[0].busy, time.length);
  EXPECT_EQ(time.roles[1].waiting, time.length);
  EXPECT_EQ(time.roles[1].waits_for, 0);
  EXPECT_DOUBLE_EQ(time.bubble, 0.5);
  ASSERT_EQ(time.path.size(), 1u);
  EXPECT_EQ(time.path[0].role, 0);
  EXPECT_EQ(time.path[0].kind, "packed_attention");
  ExpectWhole(time);
}

// Two encoders on ranks of their own and two colocated ones: the step is that of the slower, or of both.
TEST(StepTime, EncodersApartWorkAtTheSameTime) {
  const std::string recipe = InSource("recipes/nemotron_moe_two_encoders_tiny.yaml");
  const Rates rates(OnlyKinds({OpKind::kPackedAttention, OpKind::kPackedAttentionGrad}, 1));
  const Plan together = CompiledFile(recipe),
             apart = CompiledFile(recipe, {"modules.fine_encoder.placement.first_rank=1",
                                           "modules.language.placement.first_rank=2", "cluster.gpus_per_node=3"});
  const StepTime both = TimeStep(together, rates), alone = TimeStep(apart, rates);
  std::vector<double> busy;
  for (const RoleTime& role : alone.roles) busy.push_back(role.busy);
  ASSERT_EQ(busy.size(), 3u);
  EXPECT_NEAR(both.length, busy[0] + busy[1] + busy[2], 1e-9 * both.length);  // the language model's is 0
  EXPECT_GE(alone.length, *std::max_element(busy.begin(), busy.end()));
  EXPECT_LT(alone.length, both.length);
  ExpectWhole(both), ExpectWhole(alone);
}

// More lanes of a colocated encoder than a microbatch has samples: half of the ranks have nothing to encode.
TEST(StepTime, LanesWithoutASampleWait) {
  const Plan plan = CompiledFile(
      kTiny, {"modules.radio_encoder.placement.ranks=4", "modules.language.placement.ranks=4",
              "modules.language.parallel={tp: 2}", "cluster.gpus_per_node=4", "lints={PW0309: off, PW0605: off}"});
  const StepTime time = TimeStep(plan, Rates(OnlyKinds({OpKind::kPackedAttention, OpKind::kPackedAttentionGrad}, 1)));
  double ranks = 0, idle = 0;
  for (const RoleTime& role : time.roles) {
    ranks += static_cast<double>(role.count());
    if (role.what != "no samples of radio_encoder") {
      EXPECT_EQ(role.what, "1 sample of radio_encoder");
      EXPECT_DOUBLE_EQ(role.busy, time.length);
      continue;
    }
    idle += static_cast<double>(role.count());
    EXPECT_EQ(role.busy, 0);
    EXPECT_DOUBLE_EQ(role.waiting, time.length);
    EXPECT_EQ(role.flops > 0, true) << "the language model's";
  }
  EXPECT_EQ(ranks, 4);
  EXPECT_EQ(idle, 2);
  EXPECT_DOUBLE_EQ(time.bubble, 0.5);
}

// All ranks wait for the one with most rows. Its experts take moe.imbalance times as long as on average.
TEST(StepTime, ExpertsTakeAsLongAsOnTheFullestRank) {
  const std::vector<std::string> layout = {"modules.radio_encoder.placement.ranks=2",
                                           "modules.language.placement.ranks=2", "modules.language.parallel={ep: 2}",
                                           "cluster.gpus_per_node=2"};
  const auto with = [&](const char* imbalance) {
    std::vector<std::string> words = layout;
    words.push_back(absl::StrCat("models.hybrid_moe_tiny.moe.imbalance=", imbalance));
    return CompiledFile(kTiny, words);
  };
  const RateTable table = OnlyKinds({OpKind::kExperts, OpKind::kExpertsGrad}, 1);
  const Rates rates(table);
  const StepTime even = TimeStep(with("1"), rates), uneven = TimeStep(with("1.5"), rates);
  // Where the recipe does not say it, 1.1 is taken, also with a profile. A device of unknown speed, and a rank that has
  // all experts take the mean.
  const Plan unsaid = CompiledFile(kTiny, layout);
  EXPECT_NEAR(TimeStep(unsaid, rates).length, 1.1 * even.length, 1e-9 * even.length);
  const Rates by_profile(table, {.gpu = "none", .skew = {{OpKind::kExperts, 2, {1, 1, 1, 1}}}}, 2);
  EXPECT_NEAR(TimeStep(unsaid, by_profile).length, 1.1 * even.length, 1e-9 * even.length);
  const Rates unknown = RatesOf(Cluster{});
  EXPECT_EQ(TimeStep(unsaid, unknown).length, TimeStep(with("1"), unknown).length);
  const Plan alone = CompiledFile(kTiny);
  EXPECT_EQ(TimeStep(alone, rates).length,
            TimeStep(CompiledFile(kTiny, {"models.hybrid_moe_tiny.moe.imbalance=1"}), rates).length);
  EXPECT_EQ(even.bubble, 0);
  EXPECT_NEAR(uneven.length / even.length, 1.5, 1e-9);
  for (const RoleTime& role : uneven.roles) {
    EXPECT_NEAR(role.busy, even.length, 1e-9 * even.length);
    EXPECT_NEAR(role.waiting, even.length / 2, 1e-9 * even.length);
    EXPECT_EQ(&uneven.roles[static_cast<size_t>(role.waits_for)], &role);
    // A trace of an average rank has its own work, and the waiting in communications.
    double work = 0, communication = 0;
    for (const OperationTime& operation : role.operations)
      (operation.communication ? communication : work) += operation.seconds;
    EXPECT_NEAR(work, even.length, 1e-9 * even.length);
    EXPECT_NEAR(communication, even.length / 2, 1e-9 * even.length);
  }
}

// Gradients are summed over two nodes, and parameters gathered: half of their bytes leave each node.
TEST(StepTime, ASlowNetworkTakesTheBytesThatPassIt) {
  const Plan plan = CompiledFile(
      kTiny, {"modules.radio_encoder.placement.ranks=2", "modules.language.placement.ranks=2", "cluster.nodes=2"});
  RateTable table = OnlyKinds({}, 1);
  table.device.network = 1e6;
  table.network = 1;
  const StepTime time = TimeStep(plan, Rates(table));
  double bytes = 0;
  for (const Module& module : plan.modules) {
    for (const Bucket& bucket : module.buckets) bytes += 0.5 * static_cast<double>(bucket.elements) * (4 + 4);
  }
  EXPECT_NEAR(time.length / (bytes / 1e6), 1, 0.01);
  for (const RoleTime& role : time.roles) EXPECT_NEAR(role.communication / time.length, 1, 1e-9);
  ExpectWhole(time);
}

// Two communications that leave a node at the same time share its way out: overlap makes the network no faster.
TEST(StepTime, CommunicationsBesideEachOtherShareTheNetwork) {
  const auto time = [](const char* overlap) {
    const Plan plan =
        CompiledFile(kTiny, {"modules.radio_encoder.placement.ranks=2", "modules.language.placement.ranks=2",
                             "modules.language.parallel={ep: 2, dispatch: all_to_all}", "cluster.nodes=2",
                             "gradients.buckets=4", absl::StrCat("gradients.overlap_reduce=", overlap)});
    RateTable table = OnlyKinds({}, 1);
    table.device.network = 1e6, table.network = 1;
    return TimeStep(plan, Rates(table));
  };
  const StepTime one_by_one = time("false"), beside = time("true");
  EXPECT_NEAR(beside.length / one_by_one.length, 1, 1e-6);
  ExpectWhole(beside);
}

// An encoder serves four lanes: each of them is at its message until the encoder is through with all four.
TEST(StepTime, AnExchangeLastsUntilItsBusiestRankIsThrough) {
  const Plan plan = CompiledFile(kTiny, {"modules.language.placement={first_rank: 1, ranks: 4}", "cluster.nodes=5",
                                         "batch.global_samples=8", "models.hybrid_moe_tiny.pattern=M"});
  RateTable table = OnlyKinds({}, 1);
  table.device.network = 1e6, table.network = 1;
  const Rates rates(table);
  const StepTime time = TimeStep(plan, rates);
  std::vector<double> longest;
  LinkedBlocks blocks(plan);
  for (const RoleTime& role : time.roles) {
    const LinkedProgram program(blocks, *role.role);
    longest.push_back(0);
    for (size_t i = 0; i < role.entries.size(); ++i) {
      if (program.entries()[program.step().first + i].instruction->source->kind == OpKind::kExchange)
        longest.back() = std::max(longest.back(), role.entries[i].length);
    }
  }
  ASSERT_EQ(longest.size(), 2u);
  EXPECT_GT(longest[0], 0);
  EXPECT_NEAR(longest[1], longest[0], 0.1 * longest[0]);  // rounded numbers of rows
}

// What is launched later goes on slowly: overlap gains less than all that is overlapped.
TEST(StepTime, WorkBesideACommunicationIsSlow) {
  const auto length = [](const char* overlap, double beside) {
    const Plan plan =
        CompiledFile(kTiny, {"modules.radio_encoder.placement.ranks=2", "modules.language.placement.ranks=2",
                             "cluster.nodes=2", "models.hybrid_moe_tiny.pattern=MMMM", "gradients.buckets=4",
                             absl::StrCat("gradients.overlap_reduce=", overlap)});
    RateTable table = OnlyKinds(kScans, 1e7);
    table.device.network = 1e6, table.network = 1, table.beside = beside;
    return TimeStep(plan, Rates(table)).length;
  };
  const double apart = length("false", 1), free = length("true", 1), slow = length("true", 0.25);
  EXPECT_LT(free, slow);
  EXPECT_LT(slow, apart);
  EXPECT_EQ(length("false", 0.25), apart) << "on one stream nothing is beside anything";
}

// The host waits for the device where counts of rows come, and then launches again.
TEST(StepTime, AHostThatWaitsLeavesTheDeviceIdle) {
  const Plan plan =
      CompiledFile(kTiny, {"modules.radio_encoder.placement.ranks=2", "modules.language.placement.ranks=2",
                           "modules.language.parallel={ep: 2}", "cluster.gpus_per_node=2", "cluster.gpu=h200_sxm",
                           "modules.language.parallel.dispatch=all_to_all"});
  RateTable table = OnlyKinds(kScans, 1);
  table.launch[static_cast<size_t>(OpClass::kCompute)] = 1e-9;
  const double without = TimeStep(plan, Rates(OnlyKinds(kScans, 1))).length;
  const StepTime time = TimeStep(plan, Rates(table));
  EXPECT_GT(time.length, without);
  for (const RoleTime& role : time.roles) EXPECT_GT(role.launching, 0);
  ExpectWhole(time);
}

// A language model of text, on so many lanes, whose samples have packed documents of sources that nobody has counted.
Plan PackedText(int lanes, int ep) {
  Plan plan = CompiledFile(InSource("recipes/nemotron_moe_lm_tiny.yaml"),
                           {"data.packed_documents=true", Name("modules.language.placement.ranks=", lanes),
                            Name("modules.language.parallel={ep: ", ep) + "}", Name("cluster.gpus_per_node=", lanes)});
  plan.data.kind = DataKind::kSources;
  return plan;
}

// As if an index had counted this mean, and these squares of the first samples.
void CountDocuments(int64_t mean_squares, const std::vector<int64_t>& first, Plan& plan) {
  plan.data.sources = {{.name = "texts", .weight = 1}};
  plan.data.counted.digest = std::string(64, 'a');
  plan.data.counted.documents = {{"texts", 10, 30, mean_squares}};
  plan.data.counted.first_squares = first;
}

const Rates& AttentionAlone() {
  static const Rates rates(OnlyKinds({OpKind::kCausalAttention, OpKind::kCausalAttentionGrad}, 1));
  return rates;
}

TEST(StepTime, AttentionTakesTheScoresWithinDocuments) {
  Plan plan = PackedText(1, 1);
  const double whole = TimeStep(plan, AttentionAlone()).length;
  CountDocuments(48 * 48 / 4, {}, plan);
  EXPECT_NEAR(TimeStep(plan, AttentionAlone()).length, whole / 4, 1e-9 * whole);
  // Nothing else of the step is shorter.
  Rates scans(OnlyKinds(kScans, 1));
  EXPECT_EQ(TimeStep(plan, scans).length, TimeStep(PackedText(1, 1), scans).length);
  plan.data.packed_documents = false;
  EXPECT_NEAR(TimeStep(plan, AttentionAlone()).length, whole, 1e-9 * whole);
}

// cuDNN's kernel takes one document without cp, in runs that need not be deterministic. All else goes through the flash
// kernel, which is half as fast on this device.
TEST(StepTime, AttentionThatCudnnDoesNotTakeHasTheSpeedOfTheFlashKernel) {
  RateTable table = OnlyKinds({OpKind::kCausalAttention}, 1);
  table.device.cudnn = true;
  table.kinds[static_cast<size_t>(OpKind::kCausalAttention)].flash = 0.5;
  const auto length = [&](const Plan& plan) { return TimeStep(plan, Rates(table)).length; };
  Plan plan = PackedText(1, 1);
  const double documents = length(plan);
  plan.data.packed_documents = false;
  const double one = length(plan);
  EXPECT_NEAR(documents, 2 * one, 1e-9 * one);
  plan.deterministic = true;
  EXPECT_NEAR(length(plan), 2 * one, 1e-9 * one);
  // Two ranks have half of the scores each.
  const auto of_ranks = [&](int ranks, const char* axes) {
    return length(
        CompiledFile(InSource("recipes/nemotron_moe_lm_tiny.yaml"),
                     {Name("modules.language.placement.ranks=", ranks), Name("cluster.gpus_per_node=", ranks), axes}));
  };
  const double whole = of_ranks(1, "modules.language.parallel.cp=1");
  EXPECT_NEAR(of_ranks(2, "modules.language.parallel.cp=2"), whole, 1e-9 * whole);
  EXPECT_NEAR(of_ranks(2, "modules.language.parallel.tp=2"), whole / 2, 1e-9 * whole);
}

// Two lanes of four microbatches. Where experts of both lanes meet, the fuller lane of each microbatch counts, else
// that of the step.
TEST(StepTime, LanesWaitForTheOneWithMostScores) {
  for (const auto& [ep, fullest] : {std::pair(1, 1000.0 / 900), std::pair(2, 1400.0 / 900)}) {
    SCOPED_TRACE(ep);
    Plan plan = PackedText(2, ep);
    const double whole = TimeStep(plan, AttentionAlone()).length;
    CountDocuments(225, {100, 300, 300, 100, 500, 100, 100, 300}, plan);
    const double mean = whole * 225 / (48 * 48);
    const StepTime time = TimeStep(plan, AttentionAlone());
    EXPECT_NEAR(time.length, mean * fullest, 1e-9 * whole);
    for (const RoleTime& role : time.roles) {
      EXPECT_NEAR(role.busy, mean, 1e-9 * whole);
      EXPECT_NEAR(role.waiting, time.length - mean, 1e-9 * whole);
    }
    ExpectWhole(time);
    // No lane has more than samples of one document each.
    CountDocuments(48 * 48, {1, 1000}, plan);
    EXPECT_NEAR(TimeStep(plan, AttentionAlone()).length, whole, 1e-9 * whole);
  }
}

TEST(StepTime, IsInFlopsWhereTheDeviceIsUnknown) {
  const StepTime time = TimeStep(CompiledFile(kTiny));
  EXPECT_FALSE(time.seconds);
  ASSERT_EQ(time.roles.size(), 1u);
  EXPECT_DOUBLE_EQ(time.length, time.roles[0].flops);
  EXPECT_EQ(time.bubble, 0);
}

// A rank that waits for one that waits itself waits for the last of them.
TEST(StepTime, WaitingIsFollowedThrough) {
  const Plan plan = CompiledFile(kTiny, {"modules.language.placement={first_rank: 1, ranks: 2}",
                                         "modules.language.parallel={tp: 2}", "cluster.gpus_per_node=3"});
  const StepTime time = TimeStep(plan, Rates(OnlyKinds({OpKind::kPackedAttention}, 1)));
  ASSERT_EQ(time.roles.size(), 3u);  // encoder, leader, and its sibling, which gets rows from the leader
  for (size_t r : {1, 2}) {
    EXPECT_EQ(time.roles[r].waiting, time.length);
    EXPECT_EQ(time.roles[r].waits_for, 0);
    EXPECT_EQ(time.roles[r].waiting_for_others, time.length);
  }
}

// Lanes are ranks of the same roles: what is simulated does not grow with them.
TEST(StepTime, WorkDoesNotGrowWithLanes) {
  const auto entries = [](int lanes) {
    size_t entries = 0;
    const StepTime time = TimeStep(CompiledFile(
        kTiny, {Name("modules.radio_encoder.placement.ranks=", lanes),
                Name("modules.language.placement={first_rank: ", lanes) + absl::StrCat(", ranks: ", lanes, "}"),
                Name("cluster.gpus_per_node=", 2 * lanes), Name("batch.global_samples=", 2 * lanes),
                Name("budget.train_samples=", 20 * lanes), "budget.learning_rate.warmup_samples=0",
                Name("budget.learning_rate.decay_samples=", 20 * lanes)}));
    for (const RoleTime& role : time.roles) entries += role.entries.size();
    return entries;
  };
  EXPECT_EQ(entries(2), entries(64));
}

// A profile says it for each kind: where work is not slowed down, the step is shorter than where it is.
TEST(StepTime, KindsGoOnBesideOthersAtTheirMeasuredSpeeds) {
  Plan plan = CompiledFile(InSource("recipes/nemotron_moe_vlm_20l_mock_8r.yaml"),
                           {"gradients.overlap_reduce=true", "gradients.buckets=4"});
  const auto length = [&](double speed, OpClass slowed) {
    DeviceProfile& profile = plan.cluster.profile = {.gpu = plan.cluster.gpu};
    for (size_t kind = 0; kind < kOpKinds; ++kind) {
      const auto op = static_cast<OpKind>(kind);
      const double of_kind = OpClassOf(op) == slowed ? speed : 1;
      profile.beside.push_back({op, {of_kind, of_kind, of_kind, 1}});
    }
    const StepTime time = TimeStep(plan);
    ExpectWhole(time);
    return time.length;
  };
  const double free = length(1, OpClass::kCompute);
  EXPECT_GT(length(0.1, OpClass::kCompute), 1.001 * free);
  EXPECT_EQ(length(0.1, OpClass::kControl), free);
  plan.cluster.profile = {};
  EXPECT_GT(TimeStep(plan).length, 1.001 * free);  // 0.15 for all
}

// Those that no product writes: of the embedding, the router, the norms of four layers and the last, and of heads.
TEST(StepTime, BeginStepClearsWhatNoProductWrites) {
  const Plan plan = CompiledFile(InSource("recipes/qwen3_moe_tiny.yaml"), {"cluster.gpu=h100_sxm"});
  constexpr double kElements = 256 * 64 + 8 * 64 + 5 * 64 + 2 * 2 * 16;
  const ComputeUse use = {.kind = OpKind::kBeginStep, .bytes = 4 * kElements, .dtype = plan.dtype()};
  double cleared = 0;
  for (const OperationTime& operation : TimeStep(plan).roles.at(0).operations)
    cleared += operation.kind == "begin_step" ? operation.seconds : 0;
  EXPECT_DOUBLE_EQ(cleared, RatesOf(plan).Compute(use).seconds);
}

TEST(StepTime, SpeedFollowsFromTheStep) {
  const Plan plan = CompiledFile(InSource("recipes/nemotron_moe_vlm_20l_mock_8r.yaml"));
  const StepTime time = TimeStep(plan);
  ASSERT_TRUE(time.seconds);
  ExpectWhole(time);
  // 75.78 TFLOP a sequence, shared by two ranks, four microbatches.
  EXPECT_NEAR(time.roles.back().flops / 1e12, 75.78 / 2 * 4, 0.1);
  const StepSpeed speed = SpeedOf(plan, time);
  EXPECT_DOUBLE_EQ(speed.tokens_per_second,
                   static_cast<double>(plan.budget.global_samples * plan.budget.sequence_length) / time.length / 8);
  EXPECT_GT(speed.mfu, 0.1);
  EXPECT_LT(speed.mfu, 0.66);
  EXPECT_DOUBLE_EQ(speed.rank_hours, 8 * static_cast<double>(plan.budget.steps) * time.length / 3600);
  for (const StepCost& cost : time.costs)
    EXPECT_DOUBLE_EQ(cost.by_known[static_cast<size_t>(Known::kEstimated)], cost.seconds);
}

TEST(StepTime, UtilizationIsOfThePeakThatTheRecipeGives) {
  Plan plan = CompiledFile(InSource("recipes/nemotron_moe_vlm_20l_mock_8r.yaml"));
  const StepTime time = TimeStep(plan);
  const double named = SpeedOf(plan, time).mfu;
  plan.cluster.device.peak = 2 * DeviceOf(plan.cluster.gpu).bf16 / 1e12;
  EXPECT_DOUBLE_EQ(SpeedOf(plan, time).mfu, named / 2);
  plan.cluster = {};  // no peak is known
  EXPECT_EQ(SpeedOf(plan, time).mfu, 0);
}

}  // namespace
}  // namespace planwright
