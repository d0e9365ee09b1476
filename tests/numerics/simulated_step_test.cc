// The simulation of a step against steps that ran: it gets the times of a traced step, each communication's from the
// arrival of its last member on, and has to find the step's length and how long each rank waited for others. Real ranks
// over Gloo, however busy the machine.
#include <absl/cleanup/cleanup.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "planner/base/files/file_io.h"
#include "planner/plan/plan_json.h"
#include "planner/predict/simulate/replayed_step.h"
#include "tests/numerics/layouts.h"
#include "tests/numerics/run.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

constexpr double kTolerance = 0.03;
constexpr int kTraced = 3;  // a step without what only first steps do

Layout LayoutNamed(const std::string& name) {
  for (Layout& layout : AllLayouts()) {
    if (layout.name == name) return std::move(layout);
  }
  throw std::runtime_error("no layout " + name);
}

class Replay : public ::testing::TestWithParam<std::pair<const char*, std::vector<std::string>>> {};

TEST_P(Replay, FindsTheStepAndEachRanksWaiting) {
  const Layout layout = LayoutNamed(GetParam().first);
  std::string folder = (std::filesystem::temp_directory_path() / "planwright_simulated_XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const absl::Cleanup removed = [&] { std::filesystem::remove_all(folder); };
  const std::string run_dir = folder + "/run";
  const TrainingRun run = Launch({.recipe = layout.recipe,
                                  .overrides = Join(layout.training, layout.overrides, GetParam().second),
                                  .steps = kTraced,
                                  .run_dir = run_dir,
                                  .options = {"--trace", std::to_string(kTraced)},
                                  .probes = false});
  ASSERT_EQ(run.exit_code, 0) << run.output;
  absl::StatusOr<Plan> read = ReadPlan(*ReadWholeFile(run_dir + "/plan.json", int64_t{1} << 30));
  ASSERT_TRUE(read.ok()) << read.status();
  const RankPrograms ranks(*read);
  const Plan& plan = ranks.plan();
  std::vector<Trace> traces;
  for (int rank = 0; rank < plan.world_size; ++rank) {
    absl::StatusOr<Trace> trace = ReadTrace(*ReadWholeFile(TracePath(run_dir, rank), int64_t{1} << 30));
    ASSERT_TRUE(trace.ok()) << trace.status();
    traces.push_back(*std::move(trace));
  }
  const ReplayedStep measured = ReplayOf(ranks, traces, kTraced, HostModel::kRunsMainStream);
  const SimulatedStep simulated =
      SimulateStep(ranks.programs(), ranks.waits(), ranks.matches(), measured.times, HostModel::kRunsMainStream);
  ASSERT_TRUE(simulated.complete);
  EXPECT_NEAR(simulated.length, measured.length, kTolerance * measured.length);
  for (int rank = 0; rank < plan.world_size; ++rank) {
    // Of the step, where a rank hardly waits.
    EXPECT_NEAR(simulated.roles[rank].waiting, measured.waiting[rank], kTolerance * measured.length) << "rank " << rank;
  }
}

const std::vector<std::string> kOverlap = {"gradients.overlap_reduce=true", "gradients.overlap_gather=true"};

const std::vector<std::string> kPlain;

INSTANTIATE_TEST_SUITE_P(
    Layouts, Replay,
    ::testing::Values(std::pair{"one_and_one", kPlain}, std::pair{"uneven", kPlain}, std::pair{"pp4", kPlain},
                      std::pair{"encoder_pp2_pp2", kPlain}, std::pair{"pp2_dp2_ep2", kOverlap},
                      std::pair{"cp4_ep4", kPlain}, std::pair{"cp2_dp2_ep4", kOverlap}, std::pair{"ep4", kOverlap},
                      std::pair{"colocated_4", kOverlap}, std::pair{"expert_tp2_ep2_uneven", kPlain},
                      std::pair{"two_encoders_uneven_lanes", kPlain}, std::pair{"gathered_pp2_ep2", kPlain}),
    [](const auto& info) { return std::string(info.param.first) + (info.param.second.empty() ? "" : "_overlap"); });

}  // namespace
}  // namespace planwright::testing
