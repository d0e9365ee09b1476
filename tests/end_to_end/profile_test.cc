// `plan launch --trace` with real ranks on CPUs: every instruction of the steps is in the parts and in the joined trace
// once, the table adds up, and training is the same as without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "planner/base/files/exit_status.h"
#include "planner/plan/link/linked_program.h"
#include "planner/plan/plan_json.h"
#include "planner/predict/estimate/step_time.h"
#include "planner/run/outcome/join_traces.h"
#include "planner/wire/records/trace.h"
#include "tests/end_to_end/processes.h"
#include "tests/support/eventually.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kTiny = InSource("recipes/nemotron_moe_vlm_tiny.yaml");

const std::vector<std::string> kOneAndOne = {"modules.language.placement.first_rank=1"};
// Both modules on both ranks, and gradients reduced on a stream of their own.
const std::vector<std::string> kTwoStreams = {"modules.radio_encoder.placement.ranks=2",
                                              "modules.language.placement.ranks=2", "gradients.overlap_reduce=true"};

struct Profiled {
  int status = -1;
  std::string output;
  nlohmann::json outcome;
  std::vector<std::string> numbers;  // of each step: everything in metrics.jsonl but the time
  Plan plan;
  std::vector<Trace> traces;  // by rank; empty: there are none
  nlohmann::json joined;      // trace.json.gz; null: there is none
};

nlohmann::json Unzipped(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return {};
  std::string text, chunk(1 << 16, '\0');
  for (int read; (read = gzread(file, chunk.data(), static_cast<unsigned>(chunk.size()))) > 0;)
    text.append(chunk, 0, static_cast<size_t>(read));
  EXPECT_EQ(gzclose(file), Z_OK);
  return nlohmann::json::parse(text, nullptr, false);
}

std::vector<std::string> NumbersOf(const std::string& metrics) {
  std::vector<std::string> numbers;
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json step = nlohmann::json::parse(line);
    step.erase("step_seconds"), step.erase("pace"), step.erase("run_id");
    numbers.push_back(step.dump());
  }
  return numbers;
}

Profiled Launch(const std::vector<std::string>& words, const std::vector<std::string>& environment = {}) {
  std::string folder = (fs::temp_directory_path() / "planwright_profile_XXXXXX").string();
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  const std::string run_dir = folder + "/run";
  std::vector<std::string> argv = {InBuild("bin/plan"), "launch", kTiny, "--local", "--yes", "--run-dir", run_dir};
  argv.insert(argv.end(), words.begin(), words.end());
  const Started launch = StartProgram(argv, environment, folder + "/output");
  Profiled run;
  run.status = WaitFor(launch.pid, kPatience).value_or(-1);
  run.output = ReadAll(launch.output);
  run.outcome = nlohmann::json::parse(ReadAll(run_dir + "/outcome.json"), nullptr, false);
  run.numbers = NumbersOf(ReadAll(run_dir + "/metrics.jsonl"));
  if (absl::StatusOr<Plan> plan = ReadPlan(ReadAll(run_dir + "/plan.json")); plan.ok()) run.plan = *std::move(plan);
  for (int rank = 0; fs::exists(TracePath(run_dir, rank)); ++rank) {
    absl::StatusOr<Trace> trace = ReadTrace(ReadAll(TracePath(run_dir, rank)));
    EXPECT_TRUE(trace.ok()) << trace.status();
    if (trace.ok()) run.traces.push_back(*std::move(trace));
  }
  run.joined = Unzipped(RunTracePath(run_dir));
  fs::remove_all(folder);
  return run;
}

std::vector<std::string> With(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Against the program of the plan: each instruction of each step once, in its place and on its stream.
void ExpectEveryInstruction(const Plan& plan, const Trace& trace, StepRange steps) {
  const Role& role = *plan.RoleOf(trace.rank);
  LinkedBlocks blocks(plan);
  const LinkedProgram program(blocks, role);
  const size_t entries = program.step().end - program.step().first;
  EXPECT_EQ(trace.role, role.name);
  ASSERT_EQ(trace.instructions.size(), entries * static_cast<size_t>(steps.count()));
  std::map<int64_t, int64_t> reached;  // by stream: the end of its last instruction
  int64_t launched = 0;
  for (size_t i = 0; i < trace.instructions.size(); ++i) {
    const TraceInstruction& run = trace.instructions[i];
    const LinkedEntry& entry = program.entries()[program.step().first + i % entries];
    const LinkedCall& call = program.calls()[entry.call];
    SCOPED_TRACE("instruction " + std::to_string(i) + ", " + run.text);
    ASSERT_EQ(run.step, steps.first + static_cast<int64_t>(i / entries));
    ASSERT_EQ(run.number, static_cast<int64_t>(i % entries));
    ASSERT_EQ(run.kind, OpName(entry.instruction->source->kind));
    ASSERT_EQ(run.stream, entry.instruction->stream);
    ASSERT_EQ(trace.streams.at(static_cast<size_t>(run.stream)), entry.instruction->source->stream);
    if (call.frame >= 0) {
      ASSERT_EQ(run.frame, blocks.frame(call.frame));
    }
    ASSERT_EQ(run.layer >= 0, run.frame.find(".layers.") != std::string::npos);
    if (call.microbatch >= 0) {
      ASSERT_EQ(run.microbatch, call.microbatch);
    }
    ASSERT_THAT(run.origin, HasSubstr("nemotron_moe_vlm_tiny.yaml:"));
    ASSERT_FALSE(run.part.empty());
    // A machine that has been up for months rounds to some nanoseconds.
    constexpr int64_t kRounding = 10;
    ASSERT_LE(launched, run.launch_begin + kRounding);
    ASSERT_LE(run.launch_begin, run.launch_end);
    ASSERT_LE(run.launch_begin, run.begin + kRounding);
    ASSERT_LE(run.begin, run.end);
    ASSERT_LE(reached[run.stream], run.begin + kRounding);
    launched = run.launch_end, reached[run.stream] = run.end;
  }
}

// A track shows events that lie side by side or inside each other; Perfetto drops others. In file order.
class Track {
 public:
  explicit Track(int64_t rounding) : rounding_(rounding) {}

  void Add(int64_t begin, int64_t end) {
    while (!open_.empty() && open_.back() <= begin + rounding_) open_.pop_back();
    ASSERT_LE(begin, end);
    ASSERT_LE(last_begin_, begin + rounding_);
    if (!open_.empty()) {
      ASSERT_LE(end, open_.back() + rounding_);
    }
    last_begin_ = begin, open_.push_back(end);
  }

 private:
  const int64_t rounding_;
  int64_t last_begin_ = 0;
  std::vector<int64_t> open_;  // ends, the innermost last
};

// trace.json.gz has all that the parts have, with the recipe's lines, and the estimate beside it if there is one.
void ExpectJoined(const Profiled& run, bool estimated) {
  ASSERT_TRUE(run.joined.is_object());
  std::map<std::pair<int, int>, std::string> names;
  std::map<std::pair<int, int>, Track> tracks;
  std::map<int, size_t> runs;  // by rank
  size_t planned = 0, products = 0;
  for (const nlohmann::json& event : run.joined.at("traceEvents")) {
    const std::pair<int, int> track = {event.at("pid"), event.at("tid")};
    if (event.at("ph") == "M") {
      if (event.at("name") == "thread_name") names[track] = event.at("args").at("name");
      continue;
    }
    const int64_t begin = std::llround(event.at("ts").get<double>() * 1e3);
    const int64_t end = begin + std::llround(event.at("dur").get<double>() * 1e3);
    tracks.try_emplace(track, 10).first->second.Add(begin, end);
    const std::string& name = names.at(track);
    if (name == "planned") {
      ++planned;
    } else if (name != "host: launches") {
      ++runs[track.first];
      EXPECT_THAT(event.at("args").at("recipe").get<std::string>(), HasSubstr(".yaml:"));
      products += event.at("args").contains("planned_us");
    }
  }
  for (const Trace& part : run.traces) EXPECT_EQ(runs[part.rank], part.instructions.size());
  EXPECT_EQ(planned > 0, estimated);
  EXPECT_EQ(products > 0, estimated);
  EXPECT_GE(planned, products) << "forwards and backwards, and in them the products";
}

double Sum(const nlohmann::json& rows, const char* key) {
  double sum = 0;
  for (const nlohmann::json& row : rows) sum += row.at(key).get<double>();
  return sum;
}

void ExpectTableAddsUp(const Profiled& run, StepRange steps) {
  const nlohmann::json& profile = run.outcome.at("profile");
  EXPECT_EQ(profile.at("first_step"), steps.first);
  EXPECT_EQ(profile.at("last_step"), steps.last);
  int ranks = 0;
  double instructions = 0;
  for (const nlohmann::json& role : profile.at("roles")) {
    const nlohmann::json& parts = role.at("parts");
    for (const nlohmann::json& part : parts) {
      for (const char* key : {"times", "device_ms", "idle_before_ms", "host_ms"})
        EXPECT_NEAR(part.at(key).get<double>(), Sum(part.at("instructions"), key), 1e-6) << part.at("name") << key;
      EXPECT_THAT(run.output, HasSubstr("\n" + part.at("name").get<std::string>() + " "));
    }
    EXPECT_NEAR(role.at("instructions_ms").get<double>(), Sum(parts, "device_ms"), 1e-6);
    EXPECT_NEAR(role.at("idle_ms").get<double>(), Sum(parts, "idle_before_ms"), 1e-6);
    EXPECT_NEAR(role.at("step_ms").get<double>(),
                role.at("instructions_ms").get<double>() - role.at("overlap_ms").get<double>() +
                    role.at("idle_ms").get<double>(),
                1e-6);
    const double members = static_cast<double>(role.at("ranks").size());
    instructions += Sum(parts, "times") * members * static_cast<double>(steps.count());
    ranks += static_cast<int>(members);
  }
  EXPECT_EQ(ranks, run.plan.world_size);
  double traced = 0;
  for (const Trace& trace : run.traces) traced += static_cast<double>(trace.instructions.size());
  EXPECT_NEAR(instructions, traced, 1e-6);
}

void ExpectProfile(const Profiled& run, int ranks, StepRange steps) {
  ASSERT_EQ(run.status, kExitSuccess) << run.output;
  ASSERT_EQ(run.plan.world_size, ranks);
  ASSERT_EQ(run.traces.size(), static_cast<size_t>(ranks));
  for (const Trace& trace : run.traces) {
    SCOPED_TRACE("rank " + std::to_string(trace.rank));
    ExpectEveryInstruction(run.plan, trace, steps);
  }
  ExpectTableAddsUp(run, steps);
  ExpectJoined(run, run.plan.launch.predicted_step > 0);
  EXPECT_THAT(run.output, HasSubstr("\nprofile of " + StepRangeText(steps) + "\n"));
}

TEST(Profile, OneRank) {
  const Profiled run = Launch({"--steps", "4", "--trace", "2-3"});
  ExpectProfile(run, 1, {2, 3});
  for (const char* name : {"language.mamba", "language.attention", "language.moe", "language.head", "language.embed",
                           "radio_encoder.layer", "optimizer", "data"}) {
    EXPECT_THAT(run.output, HasSubstr(std::string("\n") + name + " "));
  }
  EXPECT_THAT(run.output, Not(HasSubstr("slowest rank")));
  EXPECT_THAT(run.output, Not(HasSubstr("counted twice")));
}

TEST(Profile, TwoRanksOfTwoRoles) {
  const Profiled run = Launch(With(kOneAndOne, {"--steps", "2", "--trace", "2"}));
  ExpectProfile(run, 2, {2, 2});
  EXPECT_EQ(run.outcome.at("profile").at("roles").size(), 2u);
  EXPECT_THAT(run.output, HasSubstr("\ntransfers ")) << "rows that cross the bridge";
}

// A prediction of CPUs by figures that the recipe makes up, however far from the measured times.
const std::vector<std::string> kMadeUp = {
    "cluster.device={peak: 0.02, bandwidth: 10, link: 5}", "cluster.gpus_per_node=2", "--steps", "3", "--trace", "2-3"};

// Every row that was measured has its prediction, and the other way round.
TEST(Profile, HasThePredictionBesideIt) {
  const Profiled run = Launch(With(kOneAndOne, kMadeUp));
  ExpectProfile(run, 2, {2, 3});
  const StepTime time = TimeStep(run.plan);
  ASSERT_TRUE(time.seconds);
  double worst = 0;
  for (const nlohmann::json& role : run.outcome.at("profile").at("roles")) {
    const auto predicted = std::find_if(time.roles.begin(), time.roles.end(), [&](const RoleTime& one) {
      return one.role->name == role.at("role").get<std::string>();
    });
    ASSERT_NE(predicted, time.roles.end());
    EXPECT_NEAR(role.at("predicted_step_ms").get<double>(), 1e3 * time.length, 1e-6);
    size_t rows = 0;
    double communication = 0;
    for (const nlohmann::json& part : role.at("parts")) {
      EXPECT_NEAR(part.at("predicted_ms").get<double>(), Sum(part.at("instructions"), "predicted_ms"), 1e-6);
      for (const nlohmann::json& row : part.at("instructions")) {
        const auto found = std::find_if(predicted->operations.begin(), predicted->operations.end(),
                                        [&](const OperationTime& operation) {
                                          return operation.part == part.at("name").get<std::string>() &&
                                                 operation.kind == row.at("name").get<std::string>();
                                        });
        ASSERT_NE(found, predicted->operations.end()) << part.at("name") << " " << row.at("name");
        EXPECT_EQ(row.at("times").get<double>(), found->times);
        EXPECT_NEAR(row.at("predicted_ms").get<double>(), 1e3 * found->seconds, 1e-6);
        communication += found->communication ? 1e3 * found->seconds : 0;
        worst = std::max(worst, std::abs(row.at("predicted_ms").get<double>() - row.at("device_ms").get<double>()));
        ++rows;
      }
    }
    EXPECT_EQ(rows, predicted->operations.size());
    EXPECT_NEAR(role.at("predicted_communication_ms").get<double>(), communication, 1e-6);
    // Somebody is late for every exchange, and nobody waits longer than communications take.
    EXPECT_GT(role.at("waiting_ms").get<double>(), 0);
    EXPECT_LE(role.at("waiting_ms").get<double>(), role.at("communication_ms").get<double>() + 1e-6);
    EXPECT_LE(role.at("predicted_waiting_ms").get<double>(), communication + 1e-6);
  }
  const nlohmann::json& first = run.outcome.at("profile").at("furthest_off").at(0);
  EXPECT_NEAR(std::abs(first.at("predicted_ms").get<double>() - first.at("device_ms").get<double>()), worst, 1e-6);
  EXPECT_THAT(run.output, HasSubstr("furthest from the prediction, in ms of a step\n"));
}

// What is predicted for a GPU says nothing of CPUs.
TEST(Profile, ARunOnAnotherKindOfDeviceHasNoPrediction) {
  const Profiled run = Launch(With(kOneAndOne, {"cluster.gpu=h200_sxm", "cluster.gpus_per_node=2", "--device", "cpu",
                                                "--steps", "2", "--trace", "2"}));
  ASSERT_EQ(run.status, kExitSuccess) << run.output;
  ExpectJoined(run, false);
  for (const nlohmann::json& role : run.outcome.at("profile").at("roles"))
    EXPECT_FALSE(role.contains("predicted_step_ms"));
  EXPECT_THAT(run.output, Not(HasSubstr("furthest from the prediction")));
}

TEST(Profile, TwoRanksOfOneRoleOnTwoStreams) {
  const Profiled run = Launch(With(kTwoStreams, {"--steps", "3", "--trace", "1-3"}));
  ExpectProfile(run, 2, {1, 3});
  EXPECT_EQ(run.outcome.at("profile").at("roles").size(), 1u);
  EXPECT_THAT(run.output, HasSubstr("slowest rank"));
  for (const Trace& trace : run.traces) EXPECT_EQ(trace.streams.size(), 2u);
}

TEST(Profile, ChangesNoNumber) {
  for (const std::vector<std::string>& layout : {kOneAndOne, kTwoStreams}) {
    const Profiled plain = Launch(With(layout, {"--steps", "3"}));
    const Profiled profiled = Launch(With(layout, {"--steps", "3", "--trace", "1-2"}));
    ASSERT_EQ(plain.numbers.size(), 3u) << plain.output;
    EXPECT_EQ(plain.numbers, profiled.numbers);
    EXPECT_TRUE(plain.traces.empty());
    EXPECT_TRUE(plain.joined.is_null());
    EXPECT_FALSE(plain.outcome.contains("profile"));
  }
}

TEST(Profile, IsThereToRead) {
  const Profiled run = Launch({"--steps", "2", "--trace", "2", "--json"});
  ASSERT_EQ(run.status, kExitSuccess) << run.output;
  EXPECT_THAT(run.output, HasSubstr("\"first_step\": 2"));
  EXPECT_THAT(run.output, Not(HasSubstr("profile of step 2")));
}

// The profile of a run that fails later is there all the same. A run that fails before has none.
TEST(Profile, OutlivesARunThatFailsAfterIt) {
  const std::vector<std::string> launch = {"--executor", InBuild("bin/failing_executor"), "--trace"};
  const std::vector<std::string> fault = {"PLANWRIGHT_FAULT=throw", "PLANWRIGHT_FAULT_RANK=0",
                                          "PLANWRIGHT_FAULT_STEP=3"};
  const Profiled after = Launch(With(launch, {"2"}), fault);
  EXPECT_NE(after.status, kExitSuccess);
  EXPECT_THAT(after.output, HasSubstr("\nprofile of step 2\n"));
  EXPECT_TRUE(after.outcome.contains("profile"));
  const Profiled before = Launch(With(launch, {"3"}), fault);
  EXPECT_EQ(before.status, after.status);
  EXPECT_EQ(before.outcome.at("cause"), after.outcome.at("cause"));
  EXPECT_TRUE(before.traces.empty());
  EXPECT_TRUE(before.joined.is_null());
  EXPECT_FALSE(before.outcome.contains("profile"));
}

}  // namespace
}  // namespace planwright::testing
