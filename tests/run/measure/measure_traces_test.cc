// What the traces of a run say of its communications, how long they are and for which rank, and of its host.
#include "planner/run/measure/measure_traces.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/base/files/file_io.h"
#include "planner/plan/link/host_waits.h"
#include "planner/predict/simulate/replayed_step.h"
#include "planner/run/measure/gloo_spans.h"
#include "planner/run/measure/step_uses.h"
#include "planner/wire/records/trace.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

class MeasureTracesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "tracesXXXXXX";
    run_dir_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(run_dir_); }

  static constexpr int64_t kNanoseconds = 1000;  // of a microsecond

  static Plan Compiled(std::vector<std::string> more) {
    more.insert(more.begin(), {"cluster.nodes=2", "cluster.gpus_per_node=1"});
    return testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml"), more);
  }

  // All ranks begin an instruction each millisecond, on one clock, and a rank as many microseconds late as `late` says.
  // Each takes as many microseconds as `took` says.
  void Trace(const Plan& plan, const std::vector<int64_t>& took, const std::vector<int64_t>& late = {}) const {
    const RankPrograms ranks(plan);
    ASSERT_TRUE(MakeDirectories(run_dir_ + "/trace").ok());
    for (size_t rank = 0; rank < took.size(); ++rank) {
      const LinkedProgram& program = *ranks.programs()[rank];
      planwright::Trace trace{.rank = static_cast<int>(rank), .host = "one", .steps = {3, 4}, .streams = {""}};
      const auto [first, end] = program.step();
      for (int64_t step = 3; step <= 4; ++step) {
        for (size_t i = 0; i < end - first; ++i) {
          const int64_t at =
              ((step * 100'000 + static_cast<int64_t>(i)) * 1'000 + (late.empty() ? 0 : late[rank])) * kNanoseconds;
          trace.instructions.push_back(
              {.step = step,
               .number = static_cast<int64_t>(i),
               .kind = std::string(OpName(program.entries()[first + i].instruction->source->kind)),
               .op_class = "compute",
               .launch_begin = at,
               .launch_end = at,
               .begin = at,
               .end = at + took[rank] * kNanoseconds});
        }
      }
      const std::string path = TracePath(run_dir_, trace.rank);
      ASSERT_TRUE(WriteFileAtomically(path, TraceJson(trace)).ok()) << path;
    }
  }

  DeviceProfile Measured(const Plan& plan, bool on_host) const {
    Measurements measurements;
    const absl::Status status = MeasureTraces(plan, run_dir_, on_host, measurements);
    EXPECT_TRUE(status.ok()) << status;
    DeviceProfile profile;
    measurements.Fill(profile);
    return profile;
  }

  std::string run_dir_;
};

std::map<OpKind, std::set<double>> MediansOf(const DeviceProfile& profile) {
  std::map<OpKind, std::set<double>> medians;  // in microseconds
  for (const MeasuredCommunication& point : profile.communication)
    medians[point.kind].insert(std::round(point.seconds.median * 1e6));
  return medians;
}

// A member of Gloo goes on when its own part is done; the last one keeps it waiting at the next communication. Members
// of NCCL are done together, so what differs is chance.
TEST_F(MeasureTracesTest, ACommunicationOfGlooLastsUntilItsLastMemberIsDone) {
  const Plan plan = Compiled({"modules.language.placement.ranks=2", "modules.radio_encoder.placement.ranks=2"});
  Trace(plan, {60, 100});
  const std::map<OpKind, std::set<double>> on_host = MediansOf(Measured(plan, true)),
                                           on_device = MediansOf(Measured(plan, false));
  ASSERT_TRUE(on_host.contains(OpKind::kAllReduce) && on_host.contains(OpKind::kReduceScatter));
  for (const auto& [kind, medians] : on_host) EXPECT_EQ(medians, std::set<double>{100}) << OpName(kind);
  for (const auto& [kind, medians] : on_device) EXPECT_EQ(medians, std::set<double>{80}) << OpName(kind);
}

// Two ranks of a node, each in a group with a rank of the other node, do the same at the same time: whose messages came
// first into the network is done first. All four take until the last one is done, from when the last one came.
TEST_F(MeasureTracesTest, GroupsThatShareANetworkAreOneCommunication) {
  const Plan plan = Compiled({"cluster.gpus_per_node=2", "modules.language.placement.ranks=4",
                              "modules.radio_encoder.placement.ranks=4", "modules.language.parallel.tp=2",
                              "modules.radio_encoder.parallel.tp=2"});
  // Ranks 0 and 2 are a group of data parallelism, 1 and 3 are another one.
  Trace(plan, {60, 100, 60, 100});
  std::vector<planwright::Trace> traces;
  for (int rank = 0; rank < 4; ++rank) traces.push_back(*ReadTrace(*ReadWholeFile(TracePath(run_dir_, rank), 1 << 28)));
  const RankPrograms ranks(plan);
  std::set<int64_t> lasted;  // microseconds
  for (const auto& of_rank : GlooSpans(ranks).Of(traces, 3)) {
    for (const std::optional<double>& seconds : of_rank) {
      if (seconds) lasted.insert(std::llround(*seconds * 1e6));
    }
  }
  EXPECT_EQ(lasted, std::set<int64_t>{100});
}

// The host of a GPU is far ahead of it: an instruction takes the GPU a millisecond and the host 8 microseconds, 3 of
// them before its launch. Where the host needs a number, it goes on 2 microseconds after the device has it.
TEST_F(MeasureTracesTest, WhatTheHostTakesIsItsOwnTimeWhileTheDeviceIsBehind) {
  const Plan plan = Compiled({"modules.language.placement.ranks=2", "modules.radio_encoder.placement.ranks=2",
                              "modules.language.parallel={ep: 2, dispatch: all_to_all}"});
  const RankPrograms ranks(plan);
  ASSERT_TRUE(MakeDirectories(run_dir_ + "/trace").ok());
  std::map<OpKind, std::set<double>> expected, found;  // in microseconds
  for (int rank = 0; rank < 2; ++rank) {
    const LinkedProgram& program = *ranks.programs()[static_cast<size_t>(rank)];
    planwright::Trace trace{.rank = rank, .host = "one", .steps = {3, 3}, .streams = {""}};
    const auto [first, end] = program.step();
    int64_t host = 0, device = 0;
    for (size_t i = 0; i < end - first; ++i) {
      const LinkedEntry& entry = program.entries()[first + i];
      const OpKind kind = entry.instruction->source->kind;
      const int64_t launched = host + 3, begin = std::max(device, launched + 5);
      device = begin + 1000, host = launched + 5;
      const bool waits = HostWaitsFor(*program.calls()[entry.call].block, *entry.instruction);
      if (waits) host = device + 2;
      // At every 16th the executor looks how far it is ahead.
      const int64_t for_device = i % 16 == 0 ? 300 : 0;
      host += for_device;
      expected[kind].insert(waits ? 5 : 8);
      trace.instructions.push_back({.step = 3,
                                    .number = static_cast<int64_t>(i),
                                    .kind = std::string(OpName(kind)),
                                    .op_class = "compute",
                                    .launch_begin = launched * kNanoseconds,
                                    .launch_end = host * kNanoseconds,
                                    .waited = for_device * kNanoseconds,
                                    .begin = begin * kNanoseconds,
                                    .end = device * kNanoseconds});
    }
    ASSERT_TRUE(WriteFileAtomically(TracePath(run_dir_, rank), TraceJson(trace)).ok());
  }
  std::erase_if(expected, [](const auto& kind) { return kind.second.size() > 1; });  // some wait, others do not
  EXPECT_TRUE(expected.contains(OpKind::kLinear));
  EXPECT_TRUE(std::any_of(expected.begin(), expected.end(), [](const auto& kind) { return kind.second.contains(5); }));
  for (const MeasuredLaunch& point : Measured(plan, false).launch) {
    if (expected.contains(point.kind)) found[point.kind].insert(std::round(point.seconds.median * 1e6));
  }
  // The first one comes after nothing.
  const OpKind first_kind = ranks.programs()[0]->entries()[ranks.programs()[0]->step().first].instruction->source->kind;
  expected.erase(first_kind), found.erase(first_kind);
  EXPECT_EQ(found, expected);
}

// What a GPU does as one has the time and the launches of both, whether it had a form for them or did one after the
// other. A CPU does each by itself.
TEST_F(MeasureTracesTest, TwoAsOneTakeTheTimeOfBoth) {
  for (const bool gpu : {true, false}) {
    std::vector<std::string> more = {"modules.language.placement.ranks=1", "modules.radio_encoder.placement.ranks=1",
                                     "cluster.nodes=1", "precision.params=bf16"};
    if (gpu) more.push_back("cluster.gpu=h100_sxm");
    const Plan plan = Compiled(more);
    Trace(plan, {100});
    std::map<OpKind, std::set<double>> medians;  // in microseconds
    std::map<OpKind, int> points;
    for (const MeasuredCompute& point : Measured(plan, false).compute)
      medians[point.kind].insert(std::round(point.seconds.median * 1e6)), ++points[point.kind];
    using Times = std::set<double>;
    EXPECT_EQ(medians[OpKind::kLinear], gpu ? (Times{100, 200}) : Times{100});
    EXPECT_EQ(medians[OpKind::kLayerNormGrad], gpu ? (Times{100, 200}) : Times{100});
    EXPECT_EQ(medians[OpKind::kAddResidualBias], gpu ? Times{} : Times{100});
    EXPECT_EQ(medians[OpKind::kGelu], gpu ? Times{} : Times{100});
  }
}

// Rows of experts are of sizes that a trace does not say.
TEST_F(MeasureTracesTest, RowsThatNobodyCountedTellNothingOnCpus) {
  const Plan plan = Compiled({"modules.language.placement.ranks=2", "modules.radio_encoder.placement.ranks=2",
                              "modules.language.parallel={ep: 2, dispatch: all_to_all}"});
  Trace(plan, {60, 100});
  EXPECT_FALSE(MediansOf(Measured(plan, true)).contains(OpKind::kAllToAllV));
  EXPECT_TRUE(MediansOf(Measured(plan, false)).contains(OpKind::kAllToAllV));
}

// A rank that only sends goes on when its host has the message, so who receives it tells how long it is on its way. The
// others of an exchange do not lengthen it: each has its own messages.
TEST_F(MeasureTracesTest, OfAnExchangeWhoReceivesTells) {
  // Nothing comes back to a frozen encoder.
  const Plan plan =
      Compiled({"modules.radio_encoder.placement={first_rank: 0, ranks: 1}",
                "modules.radio_encoder.train={backbone: frozen, projection: frozen}",
                "models.radio_vit_tiny.positions=interpolate", "modules.language.placement={first_rank: 1, ranks: 1}"});
  for (const auto& [sends, receives] : {std::pair(60, 100), std::pair(100, 60)}) {
    Trace(plan, {sends, receives});
    EXPECT_EQ(MediansOf(Measured(plan, true))[OpKind::kExchange], (std::set<double>{static_cast<double>(receives)}));
  }
}

// What a probe weighs uses with: as many as the ranks have in a step, on average.
TEST_F(MeasureTracesTest, StepUsesCountTheInstructionsOfAStep) {
  const Plan plan = Compiled({"modules.language.placement.ranks=2", "modules.radio_encoder.placement.ranks=2"});
  Trace(plan, {60, 60});
  const DeviceProfile profile = Measured(plan, true);
  StepUses uses;
  uses.Add(plan);
  std::map<OpKind, double> there;  // entries of a step, the mean of both ranks
  const RankPrograms ranks(plan);
  for (const LinkedProgram* program : ranks.programs()) {
    const auto [first, end] = program->step();
    for (size_t i = first; i < end; ++i) there[program->entries()[i].instruction->source->kind] += 0.5;
  }
  for (const OpKind kind : {OpKind::kCausalAttention, OpKind::kMambaScanGrad, OpKind::kLinear, OpKind::kAdamW}) {
    double counted = 0;
    for (const MeasuredCompute& point : profile.compute) counted += point.kind == kind ? uses.Of(point) : 0;
    EXPECT_GT(there[kind], 1) << OpName(kind);
    EXPECT_DOUBLE_EQ(counted, there[kind]) << OpName(kind);
  }
  for (const MeasuredLaunch& point : profile.launch)
    EXPECT_DOUBLE_EQ(uses.Of(point), there[point.kind]) << OpName(point.kind);
  // With another number of ranks on a node they are other uses.
  MeasuredLaunch of_four = profile.launch.front();
  of_four.ranks = 4;
  EXPECT_EQ(uses.Of(of_four), 1);
  // Of several recipes it is the sum. What no step has counts once.
  const MeasuredCompute other = {.kind = OpKind::kLinear, .flops = 3, .bytes = 5};
  const double before = uses.Of(profile.compute.front());
  uses.Add(plan);
  EXPECT_DOUBLE_EQ(uses.Of(profile.compute.front()), 2 * before);
  EXPECT_EQ(uses.Of(other), 1);
}

}  // namespace
}  // namespace planwright
