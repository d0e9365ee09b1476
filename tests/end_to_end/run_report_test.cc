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
  // SIGKILL for a rank, when the run has done so many steps.
  Ended KillARank(size_t steps) {
    const Started launch = Begin(kSteps);
    WaitForSteps(steps);
    const std::vector<pid_t> ranks = Ranks();
    EXPECT_FALSE(ranks.empty()) << "the run ended before it could be killed";
    if (!ranks.empty()) kill(ranks.back(), SIGKILL);
    return End(launch);
  }
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
  ASSERT_EQ(KillARank(7).status, kExitPeerLost);
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
  const Started launch = Begin(kSteps);
  WaitForSteps(2);
  // Stopped ranks: the run cannot end while it is looked at.
  const std::vector<pid_t> ranks = Ranks();
  ASSERT_EQ(ranks.size(), 2U) << "the run ended before it could be stopped";
  for (pid_t rank : ranks) kill(rank, SIGSTOP);
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
  for (pid_t rank : ranks) kill(rank, SIGCONT);
  const Ended ended = End(launch);
  EXPECT_EQ(ended.status, 0) << ended.output;
  const Ended followed = End(follows);
  EXPECT_EQ(followed.status, 0) << followed.output;
  const std::string last = followed.output.substr(followed.output.rfind('\n', followed.output.size() - 2) + 1);
  EXPECT_EQ(json::parse(last, nullptr, false)["state"], "ended") << last;
}

// A follower that was there from the first step on, through a restart, and one that comes when all is over.
TEST_F(Report, AStreamGoesThroughARestartAndIsTheSameLater) {
  const Started launch = Begin(kSteps, {"launch.restarts=3"});
  WaitForSteps(1);
  const std::vector<std::string> follow = {InBuild("bin/plan"), "status", RunDir(), "--follow", "--json"};
  const Started follows = StartProgram(follow, {}, Folder() + "/follow");
  WaitForSteps(5);
  const std::vector<pid_t> ranks = Ranks();
  ASSERT_FALSE(ranks.empty()) << "the run ended before it could be killed";
  kill(ranks.back(), SIGKILL);
  EXPECT_EQ(End(launch).status, 0);
  const Ended followed = End(follows), late = End(StartProgram(follow, {}, Folder() + "/late"));
  EXPECT_EQ(followed.status, 0) << followed.output;
  EXPECT_EQ(late.status, 0) << late.output;
  // Checkpoints stand where they were seen.
  const auto parts = [](const std::string& text) {
    std::pair<std::vector<std::string>, std::set<std::string>> all;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (json::parse(line, nullptr, false).value("event", "") == "checkpoint")
        all.second.insert(line);
      else
        all.first.push_back(line);
    }
    return all;
  };
  EXPECT_EQ(parts(followed.output), parts(late.output));
  std::map<int, std::set<int>> steps;  // by life
  std::vector<std::string> others;
  for (const std::string& line : parts(late.output).first) {
    const json event = json::parse(line, nullptr, false);
    ASSERT_TRUE(event.is_object()) << line;
    if (event["event"] != "step") {
      others.push_back(event["event"]);
      continue;
    }
    const int life = event["life"], step = event["step"];
    EXPECT_TRUE(steps[life].insert(step).second) << "twice: " << line;
    EXPECT_EQ(event["again"].get<bool>(), life == 2 && steps[1].contains(step)) << line;
  }
  EXPECT_THAT(others, ::testing::ElementsAre("run", "life", "end", "life", "outcome"));
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_GE(steps[1].size(), 5U);
  EXPECT_EQ(*steps[1].begin(), 1);
  EXPECT_LE(*steps[2].begin(), *steps[1].rbegin() + 1) << "none is left out";
  EXPECT_EQ(*steps[2].rbegin(), kSteps);
  for (auto& [life, done] : steps) EXPECT_EQ(*done.rbegin() - *done.begin() + 1, static_cast<int>(done.size()));
  EXPECT_EQ(parts(late.output).second.size(), static_cast<size_t>(kSteps / 2)) << "each is published once";

  // The example, with the output that needs no package.
  const std::string example = InSource("docs/examples/follow_run.py");
  const Ended fed = End(StartProgram({"/bin/sh", "-c", "exec python3 " + example + " plain < " + Folder() + "/late"},
                                     {}, Folder() + "/fed"));
  EXPECT_EQ(fed.status, 0) << fed.output;
  EXPECT_THAT(fed.output, ::testing::MatchesRegex("begin nemotron_moe_vlm_tiny as [0-9a-f]+, 40 steps on 2 ranks\n"
                                                  "1 loss=(.|\n)*\nend: good, done\n"));
  EXPECT_EQ(std::count(fed.output.begin(), fed.output.end(), '\n'), kSteps + 2) << "each step once";
}

TEST_F(Report, OfARunWhoseLaunchWasKilled) {
  const Started launch = Begin(kSteps);
  WaitForSteps(3);
  kill(launch.pid, SIGKILL);
  EXPECT_EQ(End(launch).status, 128 + SIGKILL);
  ASSERT_TRUE(Eventually([&] { return Ranks().empty(); }));
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
