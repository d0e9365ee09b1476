// `plan status` and `plan report` of real runs: done, killed and taken up again, in progress, and without their launch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "planner/base/files/exit_status.h"
#include "tests/end_to_end/checkpoint_run.h"
#include "tests/support/eventually.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AnyOf;
using ::testing::HasSubstr;

class Report : public CheckpointRun {
 protected:
  json Json(const std::string& command, int status = 0) {
    const Ended ended = Plan({command, RunDir(), "--json"});
    EXPECT_EQ(ended.status, status) << ended.output;
    const json parsed = json::parse(ended.output, nullptr, false);
    EXPECT_TRUE(parsed.is_object()) << ended.output;
    return parsed;
  }
  std::vector<pid_t> Ranks() { return ProcessesWith("executor --plan " + RunDir() + "/"); }
  // Where rank 1 stops, however fast or slow the machine is: seven steps are done, and a checkpoint of the sixth.
  KillPoint InStep8() const { return {.rank = 1, .list = "step", .step = 8, .number = 1, .waits = FirstManifest(6)}; }
};

TEST_F(Report, OfARunThatIsDone) {
  ASSERT_EQ(Run(6).status, 0);
  const json status = Json("status");
  EXPECT_EQ(status["state"], "ended");
  EXPECT_EQ(status["step"]["step"], 6);
  EXPECT_EQ(status["plan"]["ranks"], 2);
  EXPECT_EQ(status["checkpoint"]["step"], 6);
  const Ended text = Plan({"status", RunDir()});
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.output, HasSubstr("\ndone with the steps that were asked for; last sign "));
  EXPECT_THAT(text.output, HasSubstr("\nstep 6 of 40 (15 %), 48 samples, "));

  const json report = Json("report");
  ASSERT_EQ(report["steps"].size(), 6U);
  EXPECT_EQ(report["steps"][5]["loss"].get<double>(), json::parse(Curve()[5])["loss"].get<double>());
  ASSERT_EQ(report["checkpoints"].size(), 3U);
  for (const json& checkpoint : report["checkpoints"]) {
    EXPECT_EQ(checkpoint["state"], "usable");
    EXPECT_GT(checkpoint["bytes"], 100'000);
    EXPECT_GT(checkpoint["write_seconds"], 0);
    EXPECT_GE(checkpoint["write_seconds"], checkpoint["copy_seconds"]);
  }
  ASSERT_EQ(report["lives"].size(), 1U);
  EXPECT_TRUE(report["lives"][0]["began"].is_string());
  const json& time = report["time"];
  EXPECT_GT(time["goodput"], 0);
  EXPECT_LE(time["goodput"], 1);
  EXPECT_EQ(time["steps_done_again"], 0);
  EXPECT_TRUE(report["notes"].empty()) << report["notes"];
  EXPECT_THAT(Plan({"report", RunDir()}).output, HasSubstr("\nloss\n"));
}

TEST_F(Report, OfARunThatWasKilledAndTakenUpAgain) {
  ASSERT_EQ(RunUntilKilled(kSteps, InStep8()).status, kExitPeerLost);
  const Ended failed = Plan({"status", RunDir()});
  EXPECT_EQ(failed.status, kExitPeerLost);
  EXPECT_THAT(failed.output, HasSubstr("was killed by SIGKILL"));
  EXPECT_THAT(failed.output, HasSubstr("\n  at "));
  EXPECT_EQ(Plan({"report", RunDir()}).status, 0);
  const size_t before = Curve().size();
  ASSERT_EQ(Run(kSteps).status, 0);
  ExpectCurve(kSteps);

  const json report = Json("report");
  ASSERT_EQ(report["lives"].size(), 2U);
  const json &first = report["lives"][0], &second = report["lives"][1];
  EXPECT_EQ(first["outcome"]["exit_code"], kExitPeerLost);
  EXPECT_EQ(first["last_step"], before);
  EXPECT_EQ(second["from_life"], 1);
  EXPECT_EQ(second["first_step"], second["from_step"].get<int>() + 1);
  EXPECT_EQ(second["last_step"], kSteps);
  EXPECT_EQ(report["steps"].size(), kSteps);
  // The records of the steps that were lost are kept, and they were the same.
  const json& again = report["steps_done_again"];
  ASSERT_EQ(again.size(), before - second["from_step"].get<size_t>());
  for (const json& step : again)
    EXPECT_EQ(step["loss"], report["steps"][step["step"].get<size_t>() - 1]["loss"]) << step;
  const json& time = report["time"];
  EXPECT_EQ(time["steps_done_again"].get<double>() > 0, !again.empty());
  EXPECT_NEAR(time["seconds"].get<double>(),
              time["steps_that_count"].get<double>() + time["steps_done_again"].get<double>() +
                  time["start_loading_end"].get<double>() + time["between_lives"].get<double>(),
              0.01 * time["seconds"].get<double>());
  std::set<std::pair<int, int>> checkpoints;
  for (const json& checkpoint : report["checkpoints"]) {
    if (checkpoint["state"] == "usable") checkpoints.emplace(checkpoint["life"], checkpoint["step"]);
  }
  EXPECT_TRUE(checkpoints.contains({1, second["from_step"]}));
  EXPECT_TRUE(checkpoints.contains({2, kSteps}));

  const std::string page = Folder() + "/page.html";
  EXPECT_EQ(Plan({"report", RunDir(), "--html", page}).status, 0);
  EXPECT_THAT(ReadAll(page), HasSubstr("was killed by SIGKILL"));
}

TEST_F(Report, OfARunInProgress) {
  const Started launch = BeginPaused(kSteps, InStep8());
  WaitForPause(1);
  const json status = Json("status");
  EXPECT_EQ(status["state"], "running");
  EXPECT_THAT(status["launch"].get<std::string>(), HasSubstr("process " + std::to_string(launch.pid) + " on "));
  EXPECT_GT(status["pace"]["seconds_left"], 0);
  std::set<int> seen;
  for (const json& activity : status["ranks"]) {
    EXPECT_THAT(activity["state"], AnyOf("computes", "communicates", "saves or loads", "has done"));
    EXPECT_THAT(activity["at"].get<std::string>(), HasSubstr("step "));
    for (const json& rank : activity["ranks"]) seen.insert(rank.get<int>());
  }
  EXPECT_EQ(seen, (std::set<int>{0, 1}));
  EXPECT_THAT(Plan({"status", RunDir()}).output, HasSubstr("\nruns (process "));
  EXPECT_EQ(Json("report")["state"], "running");
  // Who follows it sees it end.
  const Started follows =
      StartProgram({InBuild("bin/plan"), "status", RunDir(), "--follow", "--json"}, {}, Folder() + "/follow");
  ASSERT_TRUE(Eventually([&] { return ReadAll(Folder() + "/follow").find('\n') != std::string::npos; }));
  const Ended ended = GoOn(launch);
  EXPECT_EQ(ended.status, 0) << ended.output;
  const Ended followed = End(follows);
  EXPECT_EQ(followed.status, 0) << followed.output;
  const std::string last = followed.output.substr(followed.output.rfind('\n', followed.output.size() - 2) + 1);
  EXPECT_EQ(json::parse(last, nullptr, false)["state"], "ended") << last;
}

// A run that is killed and starts itself again, and its followers: one that sees all of it, one that is killed and
// begins again, and one that comes when all is over. Each gets every event once, and all get the same.
TEST_F(Report, AStreamGoesThroughARestartAndIsTheSameLater) {
  const std::string evaluation = "evaluation={every_samples: 24, sets: [{name: held_out, seed: 7, samples: 8}]}";
  const Started launch = BeginPaused(kSteps, InStep8(), {"launch.restarts=3", evaluation});
  WaitForPause(1);
  const auto follow = [&](const std::string& name) {
    return StartProgram({InBuild("bin/plan"), "status", RunDir(), "--follow", "--json"}, {}, Folder() + "/" + name);
  };
  const auto has = [&](const std::string& name, const std::string& text) {
    return Eventually([&] { return ReadAll(Folder() + "/" + name).find(text) != std::string::npos; });
  };
  const Started whole = follow("whole"), killed = follow("killed");
  const std::string last = "\"step\":7,";  // before the pause
  for (const char* name : {"whole", "killed"}) ASSERT_TRUE(has(name, last)) << name;
  ASSERT_TRUE(has("whole", "\"event\":\"checkpoint\",\"life\":1,\"step\":6,"));

  // Life 2 stops at the same place.
  fs::remove(Folder() + "/mark");
  ASSERT_EQ(Ranks().size(), 2U);
  for (pid_t rank : Ranks()) kill(rank, SIGKILL);
  ASSERT_TRUE(Eventually([&] { return fs::exists(Folder() + "/mark"); }));
  ASSERT_TRUE(has("whole", "\"event\":\"step\",\"life\":2,\"again\":true,\"step\":7,"));
  kill(killed.pid, SIGKILL);
  EXPECT_EQ(End(killed).status, 128 + SIGKILL);
  const Started again = follow("again");
  ASSERT_TRUE(has("again", last));
  const Ended ended = GoOn(launch);
  EXPECT_EQ(ended.status, 0) << ended.output;
  const Ended late = End(follow("late"));
  EXPECT_EQ(late.status, 0) << late.output;

  // Checkpoints stand where they were seen.
  const auto parts = [](const std::string& text) {
    std::pair<std::vector<std::string>, std::set<std::string>> all;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (json::parse(line, nullptr, false).value("event", "") != "checkpoint")
        all.first.push_back(line);
      else
        EXPECT_TRUE(all.second.insert(line).second) << "twice: " << line;
    }
    return all;
  };
  const auto [events, checkpoints] = parts(late.output);
  for (const Started& follower : {whole, again}) {
    const Ended followed = End(follower);
    EXPECT_EQ(followed.status, 0) << followed.output;
    EXPECT_EQ(parts(followed.output), std::pair(events, checkpoints));
  }
  const std::vector<std::string> cut = parts(ReadAll(Folder() + "/killed")).first;
  ASSERT_LT(cut.size(), events.size());
  EXPECT_TRUE(std::equal(cut.begin(), cut.end(), events.begin())) << "it was told the same until it was killed";

  std::map<int, std::vector<int>> steps, evaluations;  // by life
  std::vector<std::string> others;
  for (const std::string& line : events) {
    const json event = json::parse(line, nullptr, false);
    ASSERT_TRUE(event.is_object()) << line;
    if (event["event"] != "step" && event["event"] != "evaluation") {
      others.push_back(event["event"]);
      continue;
    }
    const int life = event["life"], step = event["step"];
    (event["event"] == "step" ? steps : evaluations)[life].push_back(step);
    EXPECT_EQ(event["again"].get<bool>(), life == 2 && step <= 7) << line;
  }
  EXPECT_THAT(others, ::testing::ElementsAre("run", "life", "end", "life", "outcome"));
  const auto numbers = [](int first, int last, int every) {
    std::vector<int> all;
    for (int step = first; step <= last; ++step) {
      if (step % every == 0) all.push_back(step);
    }
    return all;
  };
  EXPECT_EQ(steps, (std::map<int, std::vector<int>>{{1, numbers(1, 7, 1)}, {2, numbers(7, kSteps, 1)}}));
  std::map<int, std::vector<int>> wanted = {{1, numbers(0, 7, 3)}, {2, numbers(7, kSteps, 3)}};
  wanted[2].push_back(kSteps);
  EXPECT_EQ(evaluations, wanted);
  EXPECT_EQ(checkpoints.size(), static_cast<size_t>(kSteps / 2));

  // The example, with the output that needs no package.
  const std::string example = InSource("docs/examples/follow_run.py");
  const Ended fed = End(StartProgram({"/bin/sh", "-c", "exec python3 " + example + " plain < " + Folder() + "/late"},
                                     {}, Folder() + "/fed"));
  EXPECT_EQ(fed.status, 0) << fed.output;
  EXPECT_THAT(fed.output, ::testing::MatchesRegex("begin nemotron_moe_vlm_tiny as [0-9a-f]+, 40 steps on 2 ranks\n"
                                                  "0 evaluation/held_out=(.|\n)*\nend: good, done\n"));
  EXPECT_EQ(std::count(fed.output.begin(), fed.output.end(), '\n'), 2 + kSteps + 1 + kSteps / 3 + 1) << "each once";
}

TEST_F(Report, OfARunWhoseLaunchWasKilled) {
  const Started launch = BeginPaused(kSteps, InStep8());
  WaitForPause(1);
  kill(launch.pid, SIGKILL);
  EXPECT_EQ(End(launch).status, 128 + SIGKILL);
  ASSERT_TRUE(Eventually([&] {
    for (pid_t rank : Ranks()) kill(rank, SIGCONT);  // one is stopped
    return Ranks().empty();
  }));
  EXPECT_EQ(Json("status", kExitPeerLost)["state"], "vanished");
  const Ended text = Plan({"status", RunDir()});
  EXPECT_EQ(text.status, kExitPeerLost);
  EXPECT_THAT(text.output, HasSubstr("ended without a word: its launch was killed, or its machine died"));
  ASSERT_EQ(Run(kSteps).status, 0);
  const json report = Json("report");
  ASSERT_EQ(report["lives"].size(), 2U);
  EXPECT_TRUE(report["lives"][0]["outcome"].is_null());
  EXPECT_TRUE(report["lives"][0]["last_sign"].is_string());
}

TEST_F(Report, OfADamagedRun) {
  ASSERT_EQ(Run(4).status, 0);
  const std::string metrics = RunDir() + "/metrics.jsonl";
  std::string text = ReadAll(metrics);
  text.replace(text.find('\n') + 1, 5, "\0\xff{[\"", 5);
  std::ofstream(metrics) << text.substr(0, text.size() - 30);
  std::ofstream(RunDir() + "/plan.json") << "{";
  const json report = Json("report");
  EXPECT_EQ(report["steps"].size(), 2U) << "of four lines one is damaged and one cut off";
  EXPECT_EQ(report["notes"].size(), 3U) << report["notes"];
  EXPECT_THAT(Plan({"report", RunDir()}).output, HasSubstr("line 2"));
  EXPECT_EQ(Plan({"status", RunDir()}).status, 0);
}

TEST_F(Report, OfWhatIsNoRun) {
  fs::create_directories(RunDir());
  for (const std::string command : {"status", "report"}) {
    const Ended empty = Plan({command, RunDir()});
    EXPECT_EQ(empty.status, kExitUsage);
    EXPECT_THAT(empty.output, HasSubstr("is no run directory"));
    EXPECT_EQ(Plan({command, Folder() + "/none"}).status, kExitUsage);
    EXPECT_EQ(Plan({command}).status, kExitUsage);
  }
}

TEST_F(Report, OfAJobThatHasNotBegun) {
  fs::create_directories(RunDir() + "/job");
  std::ofstream(RunDir() + "/job/launch.json") << "{}";
  EXPECT_EQ(Json("status")["state"], "submitted");
  const Ended text = Plan({"status", RunDir()});
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.output, HasSubstr("was submitted to Slurm and has not begun"));
  EXPECT_EQ(Plan({"report", RunDir()}).status, kExitUsage);
}

}  // namespace
}  // namespace planwright::testing
