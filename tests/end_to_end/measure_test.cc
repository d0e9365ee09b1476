// `plan measure` with real ranks on CPUs: every use of a recipe's instructions is in the profile that it writes, plans
// take their times from it, and a measurement that was interrupted goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "planner/base/files/exit_status.h"
#include "planner/plan/plan_json.h"
#include "planner/predict/estimate/instruction_times.h"
#include "planner/predict/estimate/step_time.h"
#include "planner/run/measure/measurements.h"
#include "tests/data/samples/shard_files.h"
#include "tests/end_to_end/processes.h"
#include "tests/support/eventually.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kTiny = InSource("recipes/nemotron_moe_vlm_tiny.yaml");

struct Ended {
  int status = -1;
  std::string output;
};

class Measure : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(folder_.data()), nullptr); }
  void TearDown() override { fs::remove_all(folder_); }

  Started Start(std::vector<std::string> words) const {
    words.insert(words.begin(), InBuild("bin/plan"));
    return StartProgram(words, {}, folder_ + "/output");
  }
  Ended Run(const std::vector<std::string>& words) const {
    const Started started = Start(words);
    const int status = WaitFor(started.pid, kPatience).value_or(-1);
    return {status, ReadAll(started.output)};
  }
  // A recipe as a plan: of it alone there are no other sizes.
  std::string Compiled(std::vector<std::string> overrides, const std::string& recipe = kTiny) const {
    const std::string path = folder_ + "/plan.json";
    std::vector<std::string> words = {"compile", recipe};
    words.insert(words.end(), overrides.begin(), overrides.end());
    words.insert(words.end(), {"-o", path});
    const Ended compiled = Run(words);
    EXPECT_EQ(compiled.status, 0) << compiled.output;
    return path;
  }
  std::vector<std::string> PartsDone() const {
    std::vector<std::string> done;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(profile_ + ".parts", error)) {
      if (entry.path().extension() == ".json") done.push_back(entry.path());
    }
    return done;
  }

  std::string folder_ = (fs::temp_directory_path() / "planwright_measure_XXXXXX").string();
  std::string profile_;
};

// Whether the rates know each use of the plan as measured. Returns the kinds of communications among them.
std::set<OpKind> ExpectMeasured(const Plan& plan) {
  const Rates rates = RatesOf(plan);
  LinkedBlocks blocks(plan);
  const InstructionCosts costs(blocks);
  CommunicationUses communications(plan);
  std::set<OpKind> kinds;
  for (const RankClass& ranks : ClassesOf(plan)) {
    const LinkedProgram program(blocks, plan.roles[static_cast<size_t>(ranks.role)]);
    const InstructionTimes times(program, costs, rates, communications, ranks);
    int uses = 0;
    for (size_t i = program.step().first; i < program.step().end; ++i) {
      const LinkedEntry& entry = program.entries()[i];
      const OpKind kind = entry.instruction->source->kind;
      // The first instruction of a step comes after nothing.
      if (i > program.step().first) EXPECT_EQ(rates.HostLaunch(kind).known, Known::kMeasured) << OpName(kind);
      Seconds seconds{0, Known::kMeasured};
      if (const auto computes = times.ComputeOf(entry)) {
        if (computes->flops > 0 || computes->bytes > 0) seconds = rates.Compute(*computes), ++uses;
      } else if (const auto communicates = times.CommunicationOf(entry)) {
        if (communicates->members < 2 || communicates->bytes == 0) continue;
        if (communicates->sends_only) continue;  // those who receive tell what it takes
        if (kind == OpKind::kAllToAllV) {        // how many rows it had, nobody told: what it takes alone counts
          EXPECT_EQ(rates.Communication(*communicates).known, Known::kBetween);
          kinds.insert(kind);
          continue;
        }
        seconds = rates.Communication(*communicates), ++uses;
        kinds.insert(kind);
      }
      EXPECT_EQ(seconds.known, Known::kMeasured) << OpName(kind);
    }
    EXPECT_GT(uses, 100);
  }
  return kinds;
}

Plan WithProfile(const std::string& plan_path, const std::string& profile_path) {
  absl::StatusOr<Plan> plan = ReadPlan(ReadAll(plan_path));
  absl::StatusOr<DeviceProfile> profile = ReadProfile(ReadAll(profile_path));
  EXPECT_TRUE(plan.ok() && profile.ok()) << plan.status() << profile.status();
  if (!plan.ok() || !profile.ok()) return {};
  plan->cluster.profile = *std::move(profile);
  return *std::move(plan);
}

TEST_F(Measure, KnowsEveryUseOnOneRank) {
  profile_ = folder_ + "/profile.json";
  const std::string plan = Compiled({});
  const Ended measured = Run({"measure", plan, "-o", profile_});
  ASSERT_EQ(measured.status, kExitSuccess) << measured.output;
  EXPECT_THAT(measured.output, HasSubstr("part 1 of 1: " + plan + ", 1 rank\n"));
  EXPECT_FALSE(fs::exists(profile_ + ".parts"));
  const Plan known = WithProfile(plan, profile_);
  EXPECT_TRUE(ExpectMeasured(known).empty());
  const DeviceProfile& profile = known.cluster.profile;
  EXPECT_EQ(profile.gpu, "none");
  EXPECT_FALSE(profile.device.empty());
  EXPECT_THAT(profile.libraries, ::testing::MatchesRegex("LibTorch .*, Gloo"));
  EXPECT_THAT(profile.hosts, ::testing::StartsWith("1 host, "));
  EXPECT_TRUE(profile.communication.empty());
}

// A probe of the processor that was measured: each time is the base's times the factor of its class, and each class of
// this recipe has one of many uses. How fast the processor was then and now decides nothing.
TEST_F(Measure, AProbeScalesAProfile) {
  const std::string base_path = folder_ + "/base.json";
  profile_ = folder_ + "/profile.json";
  const std::string plan = Compiled({});
  const Ended measured = Run({"measure", plan, "-o", base_path});
  ASSERT_EQ(measured.status, kExitSuccess) << measured.output;
  // A recipe and not its compiled plan: a probe has no sizes around it.
  const Ended probed = Run({"measure", kTiny, "--probe", base_path, "-o", profile_});
  ASSERT_EQ(probed.status, kExitSuccess) << probed.output;
  EXPECT_THAT(probed.output, HasSubstr("part 1 of 1: " + kTiny + ", 1 rank\n"));
  EXPECT_THAT(probed.output, HasSubstr(", scaled from " + base_path + " of "));
  const absl::StatusOr<DeviceProfile> base = ReadProfile(ReadAll(base_path)), scaled = ReadProfile(ReadAll(profile_));
  ASSERT_TRUE(base.ok() && scaled.ok()) << base.status() << scaled.status();
  std::map<std::string, ScaledUses> factors;
  for (const ScaledUses& of : scaled->scaled_by) factors[of.uses] = of;
  EXPECT_EQ(factors.size(), 4U);
  for (const char* uses : {"products", "attention", "the rest", "launches"}) EXPECT_GE(factors[uses].count, 4) << uses;
  ASSERT_EQ(scaled->compute.size(), base->compute.size());
  for (size_t i = 0; i < base->compute.size(); ++i) {
    const MeasuredCompute &before = base->compute[i], &after = scaled->compute[i];
    const double times = after.seconds.median / before.seconds.median;
    EXPECT_TRUE(std::any_of(factors.begin(), factors.end(),
                            [&](const auto& of) { return std::abs(times / of.second.factor - 1) < 1e-9; }))
        << OpName(before.kind) << " " << times;
  }
  // How far off it is for the steps of the probe: a row for the recipe.
  EXPECT_THAT(probed.output, ContainsRegex("\n[0-9.e]+ [mu]?s +[0-9.e]+ [mu]?s +[+-][0-9.]+ % +" + kTiny + "\n"));
  // Known, and said to be scaled. Lines are broken where the name of the profile lets them.
  Ended shown = Run({"show", kTiny, "time", "cluster.profile=" + profile_});
  EXPECT_EQ(shown.status, kExitSuccess) << shown.output;
  std::replace(shown.output.begin(), shown.output.end(), '\n', ' ');
  EXPECT_THAT(shown.output, HasSubstr("scaled by a probe of this device: products "));
  EXPECT_THAT(shown.output, Not(HasSubstr("known: measured")));
  const auto refusal = [&](const std::vector<std::string>& words) {
    const Ended ended = Run(words);
    EXPECT_EQ(ended.status, kExitUsage) << ended.output;
    return ended.output;
  };
  const std::string other = folder_ + "/other.json";
  EXPECT_THAT(refusal({"measure", kTiny, "--probe", profile_, "-o", other}), HasSubstr("is scaled itself"));
  EXPECT_THAT(refusal({"measure", kTiny, "--probe", base_path, "-o", base_path}), HasSubstr("-o names another file"));
  EXPECT_THAT(refusal({"measure", kTiny, "--probe", kTiny, "-o", other}),
              HasSubstr("is damaged or of another version"));
  EXPECT_THAT(refusal({"measure", kTiny, "--probe", base_path, "-o", other, "--slurm"}), HasSubstr("not --slurm"));
  EXPECT_THAT(refusal({"measure", kTiny, "--probe", InSource("recipes/profiles/h200_sxm.json"), "-o", other}),
              HasSubstr("was measured on h200_sxm, and the recipe runs on CPU ranks"));
  // What is known only once the probe has run: its parts are of no use to anybody.
  DeviceProfile of_another = *base;
  of_another.device = "another processor";
  std::ofstream(folder_ + "/another.json") << WriteProfile(of_another);
  EXPECT_THAT(refusal({"measure", kTiny, "--probe", folder_ + "/another.json", "-o", other}),
              HasSubstr("was measured on another processor, and this device is "));
  EXPECT_FALSE(fs::exists(other + ".parts"));
  EXPECT_FALSE(fs::exists(other));
}

// Of each recipe its own step, and what `plan show time` says with the new profile. How near they are is not judged:
// the machine may be busy with something else.
TEST_F(Measure, AProbeSaysHowFarOffTheProfileIsForItsSteps) {
  const std::string base = folder_ + "/base.json", longer = "batch.micro_samples=2";
  profile_ = folder_ + "/profile.json";
  const Ended measured = Run({"measure", Compiled({}), "-o", base});
  ASSERT_EQ(measured.status, kExitSuccess) << measured.output;
  const Ended probed = Run({"measure", kTiny, kTiny, longer, "--probe", base, "-o", profile_, "--json"});
  ASSERT_EQ(probed.status, kExitSuccess) << probed.output;
  ASSERT_THAT(probed.output, HasSubstr("\n{"));
  const nlohmann::json steps =
      nlohmann::json::parse(probed.output.substr(probed.output.find("\n{"))).value("steps", nlohmann::json());
  ASSERT_EQ(steps.size(), 2U) << probed.output;
  std::vector<std::string> overrides = {"cluster.profile=" + profile_};
  for (const nlohmann::json& step : steps) {
    EXPECT_EQ(step["part"], &step == &steps[0] ? kTiny : kTiny + " " + longer);
    std::vector<std::string> show = {"show", kTiny, "time", "--json"};
    show.insert(show.end(), overrides.begin(), overrides.end());
    const Ended shown = Run(show);
    ASSERT_EQ(shown.status, kExitSuccess) << shown.output;
    const double took = step["step_seconds"], predicted = step["predicted_step_seconds"];
    EXPECT_EQ(predicted, nlohmann::json::parse(shown.output)["seconds"]);
    EXPECT_GT(took, 0);
    EXPECT_NEAR(step["off_percent"], 100 * (predicted - took) / took, 1e-9);
    overrides.push_back(longer);
  }
}

TEST_F(Measure, KnowsEveryUseOnTwoRanks) {
  profile_ = folder_ + "/profile.json";
  const std::string together = folder_ + "/together.json";
  fs::rename(Compiled({"cluster.gpus_per_node=2", "modules.language.placement.ranks=2",
                       "modules.language.parallel.ep=2", "modules.radio_encoder.placement.ranks=2"}),
             together);
  const std::string apart = Compiled({"cluster.gpus_per_node=2", "modules.language.placement.first_rank=1"});
  const Ended measured = Run({"measure", together, apart, "--local", "-o", profile_, "--json"});
  ASSERT_EQ(measured.status, kExitSuccess) << measured.output;
  // On stdout, after the progress on stderr.
  ASSERT_THAT(measured.output, HasSubstr("\n{"));
  const nlohmann::json printed = nlohmann::json::parse(measured.output.substr(measured.output.find("\n{")));
  const absl::StatusOr<DeviceProfile> profile = ReadProfile(ReadAll(profile_));
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(printed["path"], profile_);
  EXPECT_EQ(printed["device"], profile->device);
  EXPECT_EQ(printed["compute"], profile->compute.size());
  EXPECT_EQ(printed["communication"], profile->communication.size());
  std::set<OpKind> kinds = ExpectMeasured(WithProfile(together, profile_));
  kinds.merge(ExpectMeasured(WithProfile(apart, profile_)));
  for (OpKind kind :
       {OpKind::kAllToAllV, OpKind::kReduceScatter, OpKind::kAllGather, OpKind::kAllReduce, OpKind::kExchange}) {
    EXPECT_TRUE(kinds.contains(kind)) << OpName(kind);
    // Around the sizes of the steps they were timed alone, and scaled by what steps take.
    const auto alone = [&](const MeasuredCommunication& point) { return point.kind == kind && point.scaled > 0; };
    EXPECT_GE(std::count_if(profile->communication.begin(), profile->communication.end(), alone), 2) << OpName(kind);
  }
  for (const MeasuredCompute& point : profile->compute) EXPECT_EQ(point.ranks, 2);
}

// Softmax routers are told whom to choose, as other routers are, so that products of unequal experts are measured.
TEST_F(Measure, KnowsEveryUseOfADecoderAndItsUnequalExperts) {
  profile_ = folder_ + "/profile.json";
  const std::string recipe = InSource("recipes/qwen3_moe_tiny.yaml");
  const Ended measured = Run({"measure", recipe, "-o", profile_});
  ASSERT_EQ(measured.status, kExitSuccess) << measured.output;
  const Plan known = WithProfile(Compiled({}, recipe), profile_);
  EXPECT_TRUE(ExpectMeasured(known).empty());
  std::set<std::pair<OpKind, double>> skews;
  for (const MeasuredSkew& point : known.cluster.profile.skew) skews.emplace(point.kind, point.fullest);
  EXPECT_THAT(skews, ::testing::ElementsAre(
                         ::testing::Pair(OpKind::kGatedExperts, 2), ::testing::Pair(OpKind::kGatedExperts, 4),
                         ::testing::Pair(OpKind::kGatedExpertsGrad, 2), ::testing::Pair(OpKind::kGatedExpertsGrad, 4)));
}

// FLOPs beside times of packed documents are of these, also where a size around the recipe's has other samples. All
// documents have 11 tokens, so attention over 96 tokens takes less than it takes over one document of 48.
TEST_F(Measure, KnowsThePackedDocumentsOfEverySize) {
  profile_ = folder_ + "/profile.json";
  std::ofstream shard(folder_ + "/a.tar", std::ios::binary);
  for (int i = 0; i < 400; ++i) shard << TarMemberOf("d" + std::to_string(1000 + i) + ".txt", "ten tokens");
  shard << kTarEnd;
  shard.close();
  const Ended measured =
      Run({"measure", InSource("recipes/llama_tiny.yaml"), "models.decoder_tiny.vocabulary=260",
           "data={kind: sources, tokenizer: bytes, packed_documents: true, index: " + folder_ +
               "/index, sources: [{name: texts, kind: webdataset, shards: [" + folder_ + "/a.tar]}]}",
           "-o", profile_});
  ASSERT_EQ(measured.status, kExitSuccess) << measured.output;
  const absl::StatusOr<DeviceProfile> profile = ReadProfile(ReadAll(profile_));
  ASSERT_TRUE(profile.ok()) << profile.status();
  std::set<double> flops;
  for (const MeasuredCompute& point : profile->compute) {
    if (point.kind == OpKind::kCausalAttention) flops.insert(point.flops);
  }
  // Of the recipe, and of half and twice its tokens.
  ASSERT_GE(flops.size(), 3u);
  constexpr double kWhole = 2.0 * 48 * 48 * 64;  // of one sample that is one document
  EXPECT_LT(*flops.rbegin(), 0.6 * kWhole);
}

// The head of a measurement waits for agents, here two on this machine, and each recipe runs through them.
TEST_F(Measure, MeasuresAcrossNodesThroughAgents) {
  profile_ = folder_ + "/profile.json";
  const std::string plan =
      Compiled({"cluster.nodes=2", "cluster.gpus_per_node=1", "modules.language.placement.first_rank=1"});
  const Started head = Start({"measure", plan, "--agents", "-o", profile_});
  const std::string file = profile_ + ".job/job/head.json";
  ASSERT_TRUE(Eventually([&] { return fs::exists(file); })) << ReadAll(head.output);
  std::vector<Started> agents;
  for (int node = 0; node < 2; ++node) {
    agents.push_back(StartProgram({InBuild("bin/plan"), "agent", file, "--node", std::to_string(node)}, {},
                                  folder_ + "/agent" + std::to_string(node)));
  }
  ASSERT_EQ(WaitFor(head.pid, kPatience).value_or(-1), kExitSuccess) << ReadAll(head.output);
  for (const Started& agent : agents) EXPECT_EQ(WaitFor(agent.pid, kPatience).value_or(-1), 0);
  EXPECT_FALSE(fs::exists(profile_ + ".job") || fs::exists(profile_ + ".parts"));
  const absl::StatusOr<DeviceProfile> profile = ReadProfile(ReadAll(profile_));
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_THAT(profile->hosts, ::testing::StartsWith("2 hosts, "));
  ASSERT_FALSE(profile->communication.empty());
  for (const MeasuredCommunication& point : profile->communication) {
    EXPECT_EQ(point.members, 2);
    EXPECT_EQ(point.nodes, 2) << OpName(point.kind);
  }
  ExpectMeasured(WithProfile(plan, profile_));
}

TEST_F(Measure, ShowsWhatItWouldSubmit) {
  const Ended shown =
      Run({"measure", kTiny, "cluster.gpus_per_node=1", "-o", folder_ + "/p.json", "--slurm", "--dry-run"});
  EXPECT_EQ(shown.status, kExitSuccess) << shown.output;
  EXPECT_THAT(shown.output, HasSubstr("#SBATCH --nodes=1\n"));
  EXPECT_THAT(shown.output, HasSubstr("job '" + folder_ + "/p.json.job'"));
  EXPECT_THAT(shown.output, HasSubstr("batch.micro_samples=2"));
  EXPECT_FALSE(fs::exists(folder_ + "/p.json.job"));
}

TEST_F(Measure, GoesOnAfterAnInterruptionAndARecipeTakesItsProfile) {
  profile_ = folder_ + "/profile.json";
  const std::vector<std::string> words = {"measure", kTiny, "-o", profile_};
  const Started first = Start(words);
  ASSERT_TRUE(Eventually([&] { return !PartsDone().empty(); })) << ReadAll(first.output);
  kill(first.pid, SIGINT);
  EXPECT_EQ(WaitFor(first.pid, kPatience).value_or(-1), 128 + SIGINT);
  EXPECT_FALSE(fs::exists(profile_));
  const size_t done = PartsDone().size();
  const Ended second = Run(words);
  ASSERT_EQ(second.status, kExitSuccess) << second.output;
  size_t before = 0;
  for (size_t at = 0; (at = second.output.find(": measured before", at)) != std::string::npos; ++at) ++before;
  EXPECT_EQ(before, done) << second.output;
  EXPECT_FALSE(fs::exists(profile_ + ".parts"));
  // Sizes around those of the recipe are measured too.
  const absl::StatusOr<DeviceProfile> profile = ReadProfile(ReadAll(profile_));
  ASSERT_TRUE(profile.ok()) << profile.status();
  std::set<double> products;
  for (const MeasuredCompute& point : profile->compute) {
    if (point.kind == OpKind::kCausalAttention) products.insert(point.flops);
  }
  EXPECT_GE(products.size(), 2u);
  // And how much longer products of unequal experts take.
  std::set<std::pair<OpKind, double>> skews;
  for (const MeasuredSkew& point : profile->skew) skews.emplace(point.kind, point.fullest);
  for (OpKind kind : {OpKind::kExperts, OpKind::kExpertsGrad}) EXPECT_TRUE(skews.contains({kind, 2})) << OpName(kind);
  // A run on what was measured says nothing of it, and one on another device does.
  const auto launch = [&] {
    const std::string run_dir = folder_ + "/run";
    fs::remove_all(run_dir);
    return Run(
        {"launch", kTiny, "cluster.profile=" + profile_, "--local", "--yes", "--steps", "1", "--run-dir", run_dir});
  };
  const Ended same = launch();
  EXPECT_EQ(same.status, kExitSuccess) << same.output;
  EXPECT_THAT(same.output, Not(HasSubstr("cluster.profile was measured elsewhere")));
  DeviceProfile elsewhere = *profile;
  elsewhere.device = "another processor";
  std::ofstream(profile_) << WriteProfile(elsewhere);
  const Ended other = launch();
  EXPECT_EQ(other.status, kExitSuccess) << other.output;
  EXPECT_THAT(other.output,
              HasSubstr("cluster.profile was measured elsewhere: the device another processor, and here"));
}

TEST_F(Measure, SaysWhatItCannotDo) {
  const auto refusal = [&](const std::vector<std::string>& words) {
    const Ended ended = Run(words);
    EXPECT_EQ(ended.status, kExitUsage);
    return ended.output;
  };
  EXPECT_THAT(refusal({"measure", kTiny, "-o", "p.json", "--slurm", "--agents"}),
              HasSubstr("--local, --slurm and --agents exclude each other"));
  EXPECT_THAT(refusal({"measure", kTiny, "-o", "p.json", "--dry-run"}), HasSubstr("add --slurm"));
  EXPECT_THAT(refusal({"measure", kTiny}), HasSubstr("give -o PROFILE.json"));
  EXPECT_THAT(refusal({"measure", kTiny, "-o", folder_ + "/p.json", "--device", "cuda"}),
              HasSubstr("cluster.gpu is none, so nothing says which GPU is measured"));
  EXPECT_THAT(refusal({"measure", kTiny, kTiny, "cluster.gpu=h200_sxm", "-o", folder_ + "/p.json"}),
              HasSubstr("the recipes are of different devices: cluster.gpu is none in "));
  EXPECT_THAT(refusal({"measure", kTiny, "-o", ""}), HasSubstr("`-o` needs the name of a file"));
  EXPECT_THAT(refusal({"measure", "-o", "p.json"}), HasSubstr("needs a RECIPE"));
  EXPECT_THAT(refusal({"measure", "batch.micro_samples=2", kTiny, "-o", "p.json"}),
              HasSubstr("`batch.micro_samples=2` stands before every recipe"));
}

// Layouts of the tiny recipe, on one and on two ranks.
const std::vector<std::vector<std::string>> kLayouts = [] {
  std::vector<std::vector<std::string>> layouts = {{},
                                                   {"batch.micro_samples=2"},
                                                   {"batch.micro_samples=4"},
                                                   {"batch.global_samples=4"},
                                                   {"batch.sequence_length=96"},
                                                   {"modules.language.recompute=full"}};
  const std::string encoder = "modules.radio_encoder.", language = "modules.language.";
  for (const std::vector<std::string>& two :
       {std::vector<std::string>{language + "placement.first_rank=1"},
        {encoder + "placement.ranks=2", language + "placement.ranks=2"},
        {encoder + "placement.ranks=2", language + "placement.ranks=2", language + "parallel.ep=2"},
        {encoder + "placement.ranks=2", language + "placement.ranks=2", encoder + "parallel.tp=2",
         language + "parallel.tp=2"}}) {
    layouts.push_back(two);
    layouts.back().push_back("cluster.gpus_per_node=2");
  }
  return layouts;
}();

// Of pairs that are in the same order in both lists, and pairs that are not.
double KendallTau(const std::vector<double>& a, const std::vector<double>& b) {
  double agree = 0, pairs = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < i; ++j, ++pairs) agree += (a[i] - a[j]) * (b[i] - b[j]) > 0 ? 1 : -1;
  }
  return agree / pairs;
}

// Judges by the clock, so it runs alone.
TEST_F(Measure, SoakPredictsTheOrderOfTenLayouts) {
  profile_ = folder_ + "/profile.json";
  std::vector<std::string> plans, measure = {"measure"};
  for (const std::vector<std::string>& overrides : kLayouts) {
    plans.push_back(folder_ + "/plan" + std::to_string(plans.size()) + ".json");
    fs::rename(Compiled(overrides), plans.back());
    measure.push_back(plans.back());
  }
  measure.insert(measure.end(), {"-o", profile_});
  const Ended measured = Run(measure);
  ASSERT_EQ(measured.status, kExitSuccess) << measured.output;
  // Runs take turns, so that all of them meet the same machine.
  constexpr int kRounds = 5, kSteps = 8, kFirst = 3;
  std::vector<std::vector<double>> took(plans.size());
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < plans.size(); ++i) {
      const std::string run_dir = folder_ + "/run";
      const Ended run =
          Run({"launch", plans[i], "--local", "--yes", "--steps", std::to_string(kSteps), "--run-dir", run_dir});
      ASSERT_EQ(run.status, kExitSuccess) << run.output;
      std::istringstream lines(ReadAll(run_dir + "/metrics.jsonl"));
      int step = 0;
      for (std::string line; std::getline(lines, line);) {
        if (++step >= kFirst) took[i].push_back(nlohmann::json::parse(line)["step_seconds"]);
      }
      fs::remove_all(run_dir);
    }
  }
  std::vector<double> predicted, real;
  for (size_t i = 0; i < plans.size(); ++i) {
    predicted.push_back(TimeStep(WithProfile(plans[i], profile_)).length);
    real.push_back(TimeOf(took[i]).median);
    std::cout << "predicted " << predicted.back() << " s, measured " << real.back()
              << " s: " << ::testing::PrintToString(kLayouts[i]) << "\n";
  }
  const double tau = KendallTau(predicted, real);
  std::cout << "Kendall tau " << tau << "\n";
  EXPECT_GE(tau, 0.8);
}

}  // namespace
}  // namespace planwright::testing
