#include "planner/wire/records/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "nlohmann/json.hpp"

namespace planwright {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string ProblemOf(const std::string& text) { return std::string(ReadStepRange(text).status().message()); }

TEST(StepRange, IsOneStepOrAFirstAndALastOne) {
  EXPECT_EQ(ReadStepRange("5")->first, 5);
  EXPECT_EQ(ReadStepRange("5")->last, 5);
  EXPECT_EQ(ReadStepRange("5-7")->first, 5);
  EXPECT_EQ(ReadStepRange("5-7")->last, 7);
  EXPECT_EQ(ReadStepRange("1-16")->count(), kMostProfiledSteps);
  EXPECT_EQ(StepRangeText({5, 5}), "step 5");
  EXPECT_EQ(StepRangeText({5, 7}), "steps 5-7");
}

TEST(StepRange, IsNothingElse) {
  for (const char* text : {"", "0", "-1", "x", "5x", "5-", "-", "7-5", "5--7", "5-7-9", "0-3", "1.5", " 5", "+5",
                           "99999999999999999999"}) {
    EXPECT_THAT(ProblemOf(text), HasSubstr(std::string("found `") + text + "`")) << text;
  }
  EXPECT_EQ(ProblemOf("1-17"), "option `--trace` takes at most 16 steps; 1-17 are 17");
  EXPECT_THAT(ProblemOf("1-9223372036854775807"), HasSubstr("at most 16 steps"));
}

TEST(StepRange, MustBeInTheRun) {
  EXPECT_TRUE(CheckStepRange({5, 7}, 7).ok());
  EXPECT_EQ(CheckStepRange({5, 7}, 6).message(), "option `--trace` asks for steps 5-7, and the run has 6 steps");
  EXPECT_EQ(CheckStepRange({2, 2}, 1).message(), "option `--trace` asks for step 2, and the run has 1 step");
}

Trace Toy() {
  Trace trace{.rank = 3,
              .role = "m.s0",
              .host = "node\"7\"",
              .wall_of_zero = 1'700'000'000'123'456'789,
              .steps = {5, 6},
              .streams = {"", "reduce \"0\""}};
  for (int64_t i = 0; i < 4; ++i) {
    TraceInstruction instruction;
    instruction.step = 5 + i / 2, instruction.number = i % 2, instruction.stream = i % 2;
    instruction.kind = i % 2 == 0 ? "linear" : "reduce_scatter", instruction.part = "m.mamba";
    instruction.op_class = "compute", instruction.text = "linear x -> y";
    // A machine that has been up for a day.
    instruction.launch_begin = 86'400'000'000'001 + 1000 * i, instruction.launch_end = instruction.launch_begin + 999;
    instruction.begin = instruction.launch_begin + 7, instruction.end = instruction.begin + 1'000'000;
    trace.instructions.push_back(instruction);
  }
  trace.instructions[0].frame = "m.layers.1", trace.instructions[0].layer = 1, trace.instructions[0].microbatch = 0;
  trace.instructions[0].path = "m.s0 m.s0.forward > m.layers.1 m.mamba.forward";
  trace.instructions[2].waited = 500;
  trace.instructions[0].origin = "r\\\"1\".yaml:7";
  return trace;
}

TEST(Trace, ReadsWhatItWrote) {
  const Trace made = Toy();
  const absl::StatusOr<Trace> trace = ReadTrace(TraceJson(made));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->rank, 3);
  EXPECT_EQ(trace->host, "node\"7\"");
  EXPECT_EQ(trace->wall_of_zero, 1'700'000'000'123'456'789);
  EXPECT_EQ(trace->role, "m.s0");
  EXPECT_EQ(trace->steps.first, 5);
  EXPECT_EQ(trace->steps.last, 6);
  EXPECT_EQ(trace->streams, made.streams);
  ASSERT_EQ(trace->instructions.size(), made.instructions.size());
  for (size_t i = 0; i < made.instructions.size(); ++i) {
    const TraceInstruction &read = trace->instructions[i], &written = made.instructions[i];
    EXPECT_EQ(read.step, written.step);
    EXPECT_EQ(read.number, written.number);
    EXPECT_EQ(read.kind, written.kind);
    EXPECT_EQ(read.frame, written.frame);
    EXPECT_EQ(read.part, written.part);
    EXPECT_EQ(read.text, written.text);
    EXPECT_EQ(read.op_class, written.op_class);
    EXPECT_EQ(read.path, written.path);
    EXPECT_EQ(read.origin, written.origin);
    EXPECT_EQ(read.layer, written.layer);
    EXPECT_EQ(read.microbatch, written.microbatch);
    EXPECT_EQ(read.stream, written.stream);
    EXPECT_EQ(read.launch_begin, written.launch_begin);
    EXPECT_EQ(read.launch_end, written.launch_end);
    EXPECT_EQ(read.waited, written.waited);
    EXPECT_EQ(read.begin, written.begin);
    EXPECT_EQ(read.end, written.end);
  }
}

TEST(Trace, IsChromesFormat) {
  const nlohmann::json json = nlohmann::json::parse(TraceJson(Toy()));
  std::map<int, std::string> tracks;
  size_t spans = 0;
  for (const nlohmann::json& event : json.at("traceEvents")) {
    EXPECT_EQ(event.at("pid"), 3);
    if (event.at("name") == "thread_name") tracks[event.at("tid")] = event.at("args").at("name");
    spans += event.at("ph") == "X";
  }
  EXPECT_EQ(tracks,
            (std::map<int, std::string>{{1, "host: launches"}, {2, "main stream"}, {3, "stream reduce \"0\""}}));
  EXPECT_EQ(spans, 8u) << "a launch and a run for each instruction";
  const nlohmann::json& run = json.at("traceEvents").at(8);
  EXPECT_EQ(run.at("name"), "linear m.layers.1");
  EXPECT_DOUBLE_EQ(run.at("ts").get<double>(), 86'400'000'000.008);  // microseconds
  EXPECT_DOUBLE_EQ(run.at("dur").get<double>(), 1000);
}

TEST(Trace, ShowsWhatWasPlanned) {
  Trace trace = Toy();
  trace.instructions[0].planned = 1'234'567;
  trace.planned = {{"m forward, microbatch 0", "", 5'000, 9'000}, {"linear m.layers.1", "r.yaml:7", 5'000, 6'000}};
  const nlohmann::json events = nlohmann::json::parse("[" + TraceEvents(trace) + "]");
  const nlohmann::json& outer = events.at(events.size() - 2);
  EXPECT_EQ(outer.at("name"), "m forward, microbatch 0");
  EXPECT_EQ(outer.at("tid"), 4) << "after the tracks of the streams";
  EXPECT_DOUBLE_EQ(outer.at("dur").get<double>(), 4);
  EXPECT_EQ(events.back().at("args").at("recipe"), "r.yaml:7");
  EXPECT_THAT(TraceEvents(trace), HasSubstr("\"planned_us\": 1234.567"));
  EXPECT_THAT(TraceJson(Toy()), Not(HasSubstr("planned")));
}

TEST(Trace, WithoutInstructionsIsValidToo) {
  EXPECT_TRUE(ReadTrace(TraceJson({.rank = 0, .role = "m", .steps = {}, .streams = {""}, .instructions = {}})).ok());
}

TEST(Trace, RefusesWhatIsNone) {
  for (const char* text : {"", "{", "[]", "{}", "{\"otherData\": {}, \"traceEvents\": []}"})
    EXPECT_THAT(ReadTrace(text).status().message(), HasSubstr("no trace: ")) << text;
  std::string unlaunched = TraceJson(Toy());
  unlaunched.replace(unlaunched.find("\"number\": 0"), 11, "\"number\": 9");
  EXPECT_THAT(ReadTrace(unlaunched).status().message(), HasSubstr("never launched"));
}

// Predicted times have no end, and a file may say anything: sums of them still fit 64 bits.
TEST(Trace, HasTimesUpToThirtyYears) {
  EXPECT_EQ(WholeNanoseconds(1.4), 1);
  EXPECT_EQ(WholeNanoseconds(1e69), 1'000'000'000'000'000'000);
  EXPECT_EQ(WholeNanoseconds(-HUGE_VAL), -1'000'000'000'000'000'000);
  EXPECT_EQ(WholeNanoseconds(std::nan("")), 0);
  const auto with = [](const std::string& field, const std::string& value) {
    std::string text = TraceJson(Toy());
    const size_t at = text.find(field) + field.size();
    return ReadTrace(text.replace(at, text.find_first_of(",}", at) - at, value));
  };
  EXPECT_EQ(with("\"ts\": ", "1e300")->instructions[0].launch_begin, 1'000'000'000'000'000'000);
  EXPECT_THAT(with("\"wall_of_zero\": ", "9223372036854775807").status().message(), HasSubstr("another century"));
  EXPECT_THAT(with("\"wall_of_zero\": ", "-9223372036854775808").status().message(), HasSubstr("another century"));
}

}  // namespace
}  // namespace planwright
