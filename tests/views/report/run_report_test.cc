// Run directories as they may be found: what is read, what is a note, and what is no run.
#include "planner/views/report/run_report.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/time/clock.h"
#include "planner/base/files/exit_status.h"
#include "planner/plan/plan_json.h"
#include "planner/run/launch/run_directory.h"
#include "planner/run/outcome/outcome_text.h"
#include "planner/state/checkpoint/run_lives.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"
#include "tests/views/report/reports.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const Plan& TinyPlan() {
  static const Plan plan =
      testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml"), {"checkpoint.every_steps=2"});
  return plan;
}

class GatherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "gatherXXXXXX";
    folder_ = mkdtemp(pattern.data());
    run_ = folder_ + "/run";
  }
  void TearDown() override { fs::remove_all(folder_); }
  void Write(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(run_ + "/" + name).parent_path());
    std::ofstream(run_ + "/" + name) << text;
  }
  RunReport Gather(const GatherOptions& options = {}) {
    absl::StatusOr<RunReport> report = GatherRun(run_, options);
    EXPECT_TRUE(report.ok()) << report.status();
    return *report;
  }
  static std::string Steps(int first, int last) {
    std::string text;
    for (int step = first; step <= last; ++step) {
      text += "{\"step\": " + std::to_string(step) + ", \"consumed_samples\": " + std::to_string(8 * step) +
              ", \"loss\": 5, \"step_seconds\": " + std::to_string(step) + ".5}\n";
    }
    return text;
  }

  std::string folder_, run_;
};

TEST_F(GatherTest, RefusesWhatIsNoRun) {
  const auto message = [](const std::string& path) {
    const absl::StatusOr<RunReport> report = GatherRun(path, {});
    EXPECT_TRUE(absl::IsInvalidArgument(report.status())) << report.status();
    return std::string(report.status().message());
  };
  EXPECT_THAT(message(run_), HasSubstr("there is no folder"));
  EXPECT_THAT(message(folder_), HasSubstr("is no run directory: it has no plan.json"));
  Write("plan.json", "{}");
  EXPECT_THAT(message(run_ + "/plan.json"), HasSubstr("is not a folder"));
  Write("manifest.json", "{}");
  EXPECT_THAT(message(run_), HasSubstr("is a checkpoint"));
}

// Files of another run that lie where this one's should be.
TEST_F(GatherTest, FilesOfAnotherRunAreNotThisOnes) {
  const std::string own(32, 'a'), other(32, 'b');
  Write("run.json", "{\"run_id\": \"" + own + "\"}");
  Write("lives/1/start.json",
        "{\"run_id\": \"" + own + "\", \"life\": 1, \"plan_digest\": \"0123\", \"from_life\": 0, \"from_step\": 0}");
  Write("plan.json", WritePlan(TinyPlan()));
  Write("outcome.json", "{\"exit_code\": 12, \"cause\": \"other\", \"run_id\": \"" + other + "\"}");
  Write("logs/launch.log", "2026-11-24 16:45:24.000000 +0000  run " + other + ", life 1\n");
  Write("lives/1/checkpoints.jsonl",
        "{\"step\": 2, \"bytes\": 1, \"copy_seconds\": 0, \"write_seconds\": 0, \"waited_seconds\": 0, "
        "\"published\": 1, \"run_id\": \"" +
            other + "\"}\n");
  const RunReport report = Gather();
  EXPECT_FALSE(report.life().outcome.has_value());
  EXPECT_FALSE(report.life().begin.has_value());
  EXPECT_TRUE(report.checkpoints.empty());
  for (const std::string& note :
       {"outcome.json is of run " + other, "launch.log is of run " + other, std::string("lines are of another run"),
        std::string("plan.json is not that of life 1, whose digest is 0123")})
    EXPECT_THAT(report.notes, Contains(HasSubstr(note)));
}

// However large a file is, a status reads its end.
TEST_F(GatherTest, AStatusReadsTheEndsOfFiles) {
  Write("plan.json", WritePlan(TinyPlan()));
  const std::string first = "2026-11-24 16:45:24.000000 +0000  life 1\n",
                    last = "2026-11-24 16:46:24.000000 +0000  end\n";
  const auto sparse = [&](const std::string& name, const std::string& begin, const std::string& end) {
    Write(name, begin);
    fs::resize_file(run_ + "/" + name, int64_t{1} << 36);  // takes no room
    std::ofstream(run_ + "/" + name, std::ios::app) << "\n" << end;
  };
  sparse("logs/launch.log", first, last);
  sparse("metrics.jsonl", Steps(1, 1), Steps(7, 9));
  fs::create_directories(run_ + "/lives/1");
  sparse("lives/1/checkpoints.jsonl", "", "");
  sparse("lives/1/dropped.jsonl", "", "");
  const RunReport report = Gather({.metrics_bytes = int64_t{256} << 10});
  EXPECT_EQ(report.steps.size(), 3);
  EXPECT_EQ(report.life().last_event, "end");
  EXPECT_EQ(absl::ToInt64Seconds(*report.life().end - *report.life().begin), 60);
}

TEST_F(GatherTest, ALockIsHeldSeenAndNotTaken) {
  {
    const absl::StatusOr<RunDirectory> directory = RunDirectory::Open(TinyPlan(), run_);
    ASSERT_TRUE(directory.ok()) << directory.status();
    for (int i = 0; i < 3; ++i) {
      const RunReport report = Gather();
      EXPECT_EQ(report.state, RunState::kRunning);
      EXPECT_EQ(report.holder, OwnProcessName());
      EXPECT_EQ(ExitStatusOf(report), 0);
    }
    EXPECT_TRUE(absl::IsAlreadyExists(RunDirectory::Open(TinyPlan(), run_).status()));
    Write("outcome.json", "{\"exit_code\": 0, \"cause\": \"done\"}");
    EXPECT_EQ(Gather().state, RunState::kBetween);
  }
  EXPECT_EQ(Gather().state, RunState::kEnded);
  fs::remove(run_ + "/outcome.json");
  EXPECT_EQ(Gather().state, RunState::kVanished);
  EXPECT_EQ(ExitStatusOf(Gather()), kExitPeerLost);
  // The launch was killed: its name is still there.
  Write("lock", OwnProcessName());
  EXPECT_EQ(Gather().state, RunState::kVanished);
  Write("lock", "process 4711 on another-host");
  EXPECT_EQ(Gather().state, RunState::kUnseen);
  EXPECT_TRUE(RunDirectory::Open(TinyPlan(), run_).ok()) << "nothing that was looked at is in the way";
}

TEST_F(GatherTest, WhoOnlyLooksKeepsNoLaunchAway) {
  std::atomic<bool> over{false};
  std::thread looks([&] {
    while (!over) LookAtLock(run_);
  });
  Plan plan = TinyPlan();
  for (int launch = 0; launch < 30; ++launch) {
    const absl::StatusOr<RunDirectory> directory = RunDirectory::Open(plan, run_);
    EXPECT_TRUE(directory.ok()) << directory.status();
  }
  over = true;
  looks.join();
}

TEST_F(GatherTest, TellsLivesApart) {
  Write("plan.json", WritePlan(TinyPlan()));
  const auto start = [](int from_life, int64_t from_step) {
    return LifeStart{from_life, from_step, std::string(32, 'a'), TinyPlan().digest};
  };
  ASSERT_EQ(*TakeLife(run_), 1);
  ASSERT_TRUE(WriteLifeStart(run_, 1, start(0, 0)).ok());
  ASSERT_EQ(*TakeLife(run_), 2);
  ASSERT_TRUE(WriteLifeStart(run_, 2, start(1, 4)).ok());
  ASSERT_EQ(*TakeLife(run_), 3);  // it died before it chose where to begin
  ASSERT_EQ(*TakeLife(run_), 4);
  ASSERT_TRUE(WriteLifeStart(run_, 4, start(2, 8)).ok());
  Write("lives/1/logs/launch.log",
        "not a time  plan\n2026-11-22 22:20:52.872342 +00:00  plan tiny\n2026-11-22 22:20:57.000000 +00:00  rank 0 "
        "ended\nhalf a li");
  Write("lives/1/outcome.json", "{\"exit_code\": 10, \"cause\": \"rank 0 was killed by SIGKILL\", \"rank\": 0}");
  Write("lives/2/dropped.jsonl", Steps(5, 6));
  Write("lives/4/dropped.jsonl", Steps(5, 6) + Steps(9, 9));  // life 2 ended while it dropped 5 and 6
  Write("lives/4/checkpoints.jsonl",
        "{\"step\": 10, \"bytes\": 100, \"copy_seconds\": 0.1, \"write_seconds\": 0.2, \"waited_seconds\": 0.3, "
        "\"published\": 1763850000.5}\nnonsense\n");
  Write("metrics.jsonl", Steps(1, 11));
  Write("outcome.json", "{\"exit_code\": 0, \"cause\": \"done\"}");
  const RunReport report = Gather();
  ASSERT_THAT(report.lives, SizeIs(4));
  const auto steps = [&](int life) {
    return std::pair(report.lives[life - 1].first_step, report.lives[life - 1].last_step);
  };
  EXPECT_EQ(steps(1), std::pair(int64_t{1}, int64_t{6}));
  EXPECT_EQ(steps(2), std::pair(int64_t{5}, int64_t{9}));
  EXPECT_EQ(steps(3), std::pair(int64_t{0}, int64_t{0}));
  EXPECT_EQ(steps(4), std::pair(int64_t{9}, int64_t{11}));
  EXPECT_EQ(report.lives[1].dropped.count(), 2);
  EXPECT_EQ(report.lives[3].dropped.count(), 1);
  EXPECT_EQ(report.lives[0].outcome->failure->rank, 0);
  EXPECT_NEAR(absl::ToDoubleSeconds(*report.lives[0].end - *report.lives[0].begin), 4.127658, 1e-6);
  EXPECT_FALSE(report.lives[1].outcome.has_value());
  EXPECT_FALSE(report.lives[2].started);
  ASSERT_THAT(report.checkpoints, SizeIs(1));
  EXPECT_EQ(report.checkpoints[0].state, "removed") << "it is in the log of life 4, and not there";
  EXPECT_EQ(report.checkpoints[0].cost->waited, 0.3);
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr("checkpoints.jsonl: 1 lines cannot be read"),
                                        HasSubstr("metrics.jsonl: 11 records say no run")));
}

// On a full disk the log has room for a line, and there is no outcome.json.
TEST_F(GatherTest, TakesTheEndOfALifeFromItsLogWhereNothingElseSaysIt) {
  const std::string run_id(32, 'a'), time = "2026-12-01 05:11:53.306048 +00:00  ";
  const auto log = [&](const std::string& end, const std::string& of) {
    return time + "run " + of + ", life 1\n" + time + "rank 0 ended with exit status 15\n" + time + end;
  };
  const std::string full = "exit code 15: rank 0 could not write the run directory";
  Write("plan.json", WritePlan(TinyPlan()));
  Write("run.json", "{\"run_id\": \"" + run_id + "\"}");
  ASSERT_TRUE(TakeLife(run_).ok() && TakeLife(run_).ok());
  Write("lives/1/logs/launch.log",
        log(full + "\n" + time + "not started again: no step\n" + time + "restart 1 of 3 in 1 s\n", run_id));
  Write("logs/launch.log", log(full + "\n", run_id));
  const RunReport report = Gather();
  EXPECT_EQ(report.state, RunState::kEnded);
  EXPECT_EQ(ExitStatusOf(report), kExitStorage);
  for (const RunLife& life : report.lives) {
    ASSERT_TRUE(life.outcome.has_value()) << life.number;
    EXPECT_EQ(life.outcome->exit_code, kExitStorage);
    EXPECT_EQ(life.outcome->cause, "rank 0 could not write the run directory");
  }
  EXPECT_EQ(report.lives[0].last_event, "restart 1 of 3 in 1 s");
  EXPECT_THAT(report.notes, Contains(HasSubstr("outcome.json is missing, as on a full disk: how the life ended is")));
  // A line that was cut off, another run's, and one whose launch has still to write the file.
  const auto unknown = [&](const std::string& text) {
    Write("logs/launch.log", text);
    return !Gather().life().outcome.has_value();
  };
  EXPECT_TRUE(unknown(log("exit code 1", run_id)));
  EXPECT_TRUE(unknown(log(full + "\n", std::string(32, 'b'))));
  Write("lock", "");
  const int held = open((run_ + "/lock").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(flock(held, LOCK_EX), 0);
  EXPECT_TRUE(unknown(log(full + "\n", run_id)));
  EXPECT_EQ(Gather().state, RunState::kRunning);
  close(held);
  // What outcome.json says counts.
  Write("outcome.json", "{\"exit_code\": 10, \"cause\": \"other\"}");
  EXPECT_EQ(Gather().life().outcome->cause, "other");
}

// A life whose launch could not move the files of the one before it: they would count as its own.
TEST_F(GatherTest, ALifeThatCouldNotBeginIsNone) {
  ASSERT_TRUE(RunDirectory::Open(TinyPlan(), run_).ok());
  fs::create_symlink("/nowhere", run_ + "/lives/1/plan.json");  // to which nothing is written
  for (int launch = 0; launch < 2; ++launch) EXPECT_FALSE(RunDirectory::Open(TinyPlan(), run_).ok());
  EXPECT_THAT(*LivesOf(run_), ElementsAre(1));
  fs::remove(run_ + "/lives/1/plan.json");
  EXPECT_EQ(RunDirectory::Open(TinyPlan(), run_)->life(), 2);
}

// Lives that lost the same steps each lost them; only records that were never removed from metrics.jsonl count once.
TEST_F(GatherTest, CountsStepsThatWereLostTwiceTwice) {
  const auto steps = [](int64_t first, int64_t last, double seconds) {
    std::string text;
    for (int64_t step = first; step <= last; ++step) {
      text += "{\"step\": " + std::to_string(step) + ", \"consumed_samples\": " + std::to_string(8 * step) +
              ", \"loss\": 1, \"step_seconds\": " + std::to_string(seconds + 0.001 * static_cast<double>(step)) + "}\n";
    }
    return text;
  };
  Write("plan.json", WritePlan(TinyPlan()));
  for (int life = 1; life <= 6; ++life) ASSERT_EQ(*TakeLife(run_), life);
  Write("metrics.jsonl", steps(1, 4, 5));
  Write("lives/2/dropped.jsonl", steps(5, 9, 1));
  Write("lives/3/dropped.jsonl", steps(5, 8, 2));                   // life 2 had done them again
  Write("lives/4/dropped.jsonl", steps(3, 4, 1) + steps(5, 8, 2));  // life 3 ended while it dropped; one more is lost
  Write("lives/5/dropped.jsonl", steps(7, 8, 2));                   // so did life 4
  Write("lives/6/dropped.jsonl", steps(7, 8, 3));
  const RunReport report = Gather();
  std::vector<int64_t> counts;
  for (const RunLife& life : report.lives) counts.push_back(life.dropped.count());
  EXPECT_THAT(counts, ElementsAre(0, 5, 4, 2, 0, 2));
  EXPECT_THAT(report.again.points(), SizeIs(13));
  const nlohmann::ordered_json json = testing::JsonOf(report, StepsOnFile(report));
  EXPECT_EQ(json["steps"].size(), 4U);
  EXPECT_EQ(json["steps"][3]["step_seconds"], 5.004);
  ASSERT_EQ(json["steps_done_again"].size(), 13U);
  EXPECT_EQ(json["steps_done_again"][9]["step"], 3);
  EXPECT_THAT(report.notes, IsEmpty());
}

TEST_F(GatherTest, TellsEvaluationsThatCountFromThoseThatAreDoneAgain) {
  const auto evaluation = [](int64_t step, double loss, double seconds) {
    return EvaluationJson({.step = step,
                           .consumed_samples = 8 * step,
                           .seconds = seconds,
                           .sets = {{"held_out", {loss, 10}, {}}}}) +
           "\n";
  };
  Write("plan.json", WritePlan(TinyPlan()));
  for (int life = 1; life <= 2; ++life) ASSERT_EQ(*TakeLife(run_), life);
  Write("metrics.jsonl", evaluation(0, 5, 1) + Steps(1, 4) + evaluation(4, 3, 1) + Steps(5, 8) + evaluation(8, 4, 2));
  Write("lives/2/dropped.jsonl", Steps(7, 8) + evaluation(8, 4.5, 16));
  const RunReport report = Gather();
  EXPECT_THAT(report.notes, IsEmpty());
  EXPECT_EQ(report.evaluations.count(), 3);
  EXPECT_EQ(report.evaluations.seconds(), 4);
  EXPECT_EQ(report.evaluations.newest().step, 8);
  EXPECT_EQ(report.evaluations.best().at("held_out").step, 4);
  EXPECT_EQ(report.lives[1].dropped.count(), 2);
  EXPECT_EQ(report.lives[1].dropped_evaluations, 16);
  const nlohmann::ordered_json json = testing::JsonOf(report, StepsOnFile(report));
  EXPECT_EQ(json["evaluations"].size(), 3U);
  EXPECT_EQ(json["evaluation"]["best"]["held_out"]["loss"], 3);
}

// `plan status` reads the end of the file; evaluations are rarer than steps.
TEST_F(GatherTest, FindsTheNewestEvaluationBeforeTheEndThatIsRead) {
  Write("metrics.jsonl",
        EvaluationJson({.step = 1, .consumed_samples = 8, .sets = {{"held_out", {2, 10}, {}}}}) + "\n" + Steps(2, 400));
  const absl::StatusOr<RunReport> report = GatherRun(run_, {.metrics_bytes = 1000});
  ASSERT_TRUE(report.ok());
  ASSERT_FALSE(report->evaluations.empty());
  EXPECT_EQ(report->evaluations.newest().step, 1);
}

TEST_F(GatherTest, KnowsThatALaunchStartsItAgain) {
  Write("metrics.jsonl", "");
  Write("outcome.json", "{\"exit_code\": 10, \"cause\": \"rank 0 was killed by SIGKILL\"}");
  const auto log = [&](absl::Time time) {
    const std::string stamp = absl::FormatTime("%Y-%m-%d %H:%M:%E6S %Ez", time, absl::UTCTimeZone());
    Write("logs/launch.log", stamp + "  exit code 10\n" + stamp + "  restart 1 of 3 in 100000 s\n");
  };
  log(absl::Now());
  EXPECT_EQ(Gather().state, RunState::kBetween);
  EXPECT_GT(Gather().restart.value(), absl::Now() + absl::Hours(20));
  EXPECT_EQ(ExitStatusOf(Gather()), 0);
  log(absl::Now() - absl::Hours(48));  // it is no longer there
  EXPECT_EQ(Gather().state, RunState::kEnded);
  EXPECT_EQ(ExitStatusOf(Gather()), 10);
}

TEST_F(GatherTest, DamageBecomesNotes) {
  Write("plan.json", "{\"name\": ");
  Write("metrics.jsonl", Steps(1, 2) + "{broken\n" + Steps(3, 3) + "{\"step\": 4, \"con");
  Write("outcome.json", "[]");
  Write("lives/1/start.json", "garbage");
  Write("lives/x/start.json", "garbage");
  Write("recorder/rank0000", "too short");
  Write("recorder/rankX", "");
  const RunReport report = Gather({.metrics_bytes = 0, .ranks = true});
  EXPECT_THAT(report.notes,
              AllOf(Contains(HasSubstr("plan.json")), Contains(HasSubstr("line 3")),
                    Contains(HasSubstr("its last line is cut off")),
                    Contains(HasSubstr("outcome.json is not a JSON object")), Contains(HasSubstr("start.json"))));
  EXPECT_EQ(report.steps.size(), 3);
  EXPECT_FALSE(report.plan.has_value());
  ASSERT_THAT(report.ranks, SizeIs(1));
  EXPECT_FALSE(report.ranks[0].position.has_value());
}

TEST_F(GatherTest, ARunThatHasJustBegunHasNoNotesButForItsPlan) {
  Write("lock", "");
  const RunReport report = Gather();
  EXPECT_TRUE(report.steps.empty());
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr("plan.json")));
}

TEST_F(GatherTest, AnyExitCodeBecomesAnExitStatus) {
  for (const auto& [written, expected] :
       {std::pair("75", 75), {"-1", 2}, {"256", 2}, {"1e3", 2}, {"99999999999999", 2}}) {
    Write("outcome.json", std::string("{\"exit_code\": ") + written + ", \"cause\": 7, \"others\": [1, \"rank 2\"]}");
    Write("metrics.jsonl", "");
    const RunReport report = Gather();
    if (std::string(written) == "1e3") {
      EXPECT_EQ(report.state, RunState::kVanished) << "it is no integer";
      continue;
    }
    EXPECT_EQ(ExitStatusOf(report), expected) << written;
    EXPECT_EQ(report.life().outcome->cause, "");
    EXPECT_THAT(report.life().outcome->failure->others, ElementsAre("rank 2"));
  }
}

TEST_F(GatherTest, RanksThatWereSlowAreToldAndDamagedOnesAreNot) {
  Write("outcome.json",
        R"({"exit_code": 0, "cause": "done", "slow_ranks": [7, {"rank": "x"},
            {"rank": 3, "role": "language.s0", "first_step": 81, "last_step": 100, "step_seconds": 0.4,
             "median_seconds": 0.2}]})");
  Write("metrics.jsonl", "");
  const RunReport report = Gather();
  ASSERT_THAT(report.life().outcome->slow, SizeIs(1));
  EXPECT_EQ(SlowRankText(report.life().outcome->slow[0]),
            "rank 3 (language.s0) is slow: it computed 0.400 s a step, 2.0 times the median of its role, in steps "
            "81-100");
}

}  // namespace
}  // namespace planwright
