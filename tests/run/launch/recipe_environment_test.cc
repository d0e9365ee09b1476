// What a recipe gives the processes of its ranks: variables, and lines that a real bash runs.
#include "planner/run/launch/recipe_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <cstdio>
#include <fstream>

#include "planner/run/launch/program_output.h"
#include "planner/run/launch/rank_environment.h"
#include "tests/support/eventually.h"

namespace planwright {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

LaunchPlan WithLines(std::vector<std::string> lines) {
  LaunchPlan launch;
  launch.setup = std::move(lines);
  return launch;
}

class RecipeEnvironment : public ::testing::Test {
 protected:
  RecipeEnvironment() {
    setenv("TOKEN_OF_TEST", "a secret", 1);
    setenv("UCX_OF_TEST", "shell", 1);
    setenv(kSecretVariable, "the caller's secret", 1);
  }
  ~RecipeEnvironment() override {
    for (const char* name : {"TOKEN_OF_TEST", "UCX_OF_TEST", kSecretVariable}) unsetenv(name);
  }
};

TEST_F(RecipeEnvironment, HasItsOwnValuesAndThoseOfTheShell) {
  LaunchPlan launch;
  launch.env = {"NCCL_DEBUG=INFO", "EMPTY=", "EQUAL=a=b", "TOKEN_OF_TEST"};
  const absl::StatusOr<Variables> variables = VariablesOfRecipe(launch);
  ASSERT_TRUE(variables.ok()) << variables.status();
  EXPECT_THAT(*variables, UnorderedElementsAre(Pair("NCCL_DEBUG", "INFO"), Pair("EMPTY", ""), Pair("EQUAL", "a=b"),
                                               Pair("TOKEN_OF_TEST", "a secret")));
}

TEST_F(RecipeEnvironment, APassedOnVariableMustBeThere) {
  LaunchPlan launch;
  launch.env = {"NO_SUCH_ONE", "TOKEN_OF_TEST", "NOR_THIS"};
  EXPECT_THAT(std::string(VariablesOfRecipe(launch).status().message()),
              HasSubstr("launch.env passes on NO_SUCH_ONE, NOR_THIS, and this shell has no such variables"));
}

// Whoever tries the lines waits for them, and not for what they leave behind, which has their output open.
TEST_F(RecipeEnvironment, WhatLinesLeaveInTheBackgroundEndsWithTheirTrial) {
  const LaunchPlan launch = WithLines({"sleep 100000 & echo $! >&2", "yes &"});
  const absl::StatusOr<std::string> printed =
      OutputOf(WithSetup(launch, {"/bin/sh", "-c", "echo program; exit 3"}), {"PATH=/usr/bin:/bin"});
  ASSERT_FALSE(printed.ok());
  const std::string said(printed.status().message());
  int left = 0;
  ASSERT_EQ(sscanf(said.c_str(), "bash failed: %d", &left), 1) << said;
  EXPECT_TRUE(testing::Eventually([&] {
    std::string id, name, state;
    std::ifstream("/proc/" + std::to_string(left) + "/stat") >> id >> name >> state;
    return state.empty() || state == "Z";  // init reaps it
  }));
}

// A batch system ends a job by SIGTERM for all its processes: their launcher asks ranks to save. `timeout` needs it.
TEST_F(RecipeEnvironment, LinesHearSigtermAndTheirRankDoesNot) {
  const LaunchPlan launch = WithLines({"timeout 1 sleep 100000 || true"});
  const absl::StatusOr<std::string> printed =
      OutputOf(WithSetup(launch, {"/bin/sh", "-c", "kill -TERM $$; echo goes on"}), {"PATH=/usr/bin:/bin"});
  ASSERT_TRUE(printed.ok()) << printed.status();
  EXPECT_EQ(*printed, "goes on\n");
}

TEST_F(RecipeEnvironment, AProgramThatDoesNotEndIsGivenUp) {
  const absl::StatusOr<std::string> printed =
      OutputOf({"/bin/sh", "-c", "echo waiting >&2; exec sleep 100000"}, {"PATH=/bin"}, std::chrono::seconds(1));
  EXPECT_EQ(printed.status().code(), absl::StatusCode::kDeadlineExceeded) << printed.status();
  EXPECT_THAT(std::string(printed.status().message()), HasSubstr("sh has not answered within 1 s"));
}

TEST_F(RecipeEnvironment, AJobTakesLittleOfTheShell) {
  const Variables taken = VariablesOfShell();
  EXPECT_TRUE(taken.contains("PATH"));
  for (const char* name : {"TOKEN_OF_TEST", "UCX_OF_TEST", kSecretVariable}) EXPECT_FALSE(taken.contains(name)) << name;
  LaunchPlan launch;
  EXPECT_THAT(LibraryVariablesLeftBehind(launch), AllOf(Contains("UCX_OF_TEST"), Not(Contains("TOKEN_OF_TEST"))));
  launch.env = {"UCX_OF_TEST"};
  EXPECT_THAT(LibraryVariablesLeftBehind(launch), Not(Contains("UCX_OF_TEST")));
}

TEST(Setup, WithoutLinesTheCommandIsItself) {
  EXPECT_THAT(WithSetup({}, {"/bin/executor", "--plan", "p"}), ElementsAre("/bin/executor", "--plan", "p"));
}

TEST(Setup, LinesGoBeforeTheProgram) {
  const LaunchPlan launch = WithLines({"export SET_BY_LINE=\"it's $GIVEN\"", "cd /", "answer() { echo \"$1\"; }"});
  const absl::StatusOr<std::string> printed =
      OutputOf(WithSetup(launch, {"/bin/sh", "-c", "echo \"$SET_BY_LINE in $PWD: $1\"", "sh", "a  b"}),
               {"PATH=/usr/bin:/bin", "GIVEN=there"});
  ASSERT_TRUE(printed.ok()) << printed.status();
  EXPECT_EQ(*printed, "it's there in /: a  b\n");
}

// The same process: what the launcher knows of it holds.
TEST(Setup, TheShellBecomesTheProgram) {
  const absl::StatusOr<std::string> printed =
      OutputOf(WithSetup(WithLines({"echo $$"}), {"/bin/sh", "-c", "echo $$"}), {"PATH=/usr/bin:/bin"});
  ASSERT_TRUE(printed.ok()) << printed.status();
  EXPECT_EQ(printed->substr(0, printed->find('\n')) + "\n", printed->substr(printed->find('\n') + 1));
}

TEST(Setup, ALineMayRunTheProgramInSomethingElse) {
  const absl::StatusOr<std::string> printed =
      OutputOf(WithSetup(WithLines({"exec env WRAPPED=yes \"$@\""}), {"/bin/sh", "-c", "echo $WRAPPED"}),
               {"PATH=/usr/bin:/bin"});
  ASSERT_TRUE(printed.ok()) << printed.status();
  EXPECT_EQ(*printed, "yes\n");
}

TEST(Setup, TheFirstLineThatFailsIsTold) {
  const auto failure = [](std::vector<std::string> lines) {
    return std::string(OutputOf(WithSetup(WithLines(std::move(lines)), {"/bin/echo", "begun"}), {"PATH=/usr/bin:/bin"})
                           .status()
                           .message());
  };
  EXPECT_THAT(failure({"true", "no_such_command cuda", "true"}),
              AllOf(HasSubstr("launch.setup: line 2: no_such_command: command not found"),
                    HasSubstr("launch.setup: line 2 ended with status 127 before the program of the rank")));
  EXPECT_THAT(failure({"true", "false"}), HasSubstr("launch.setup: line 2 ended with status 1 before"));
  EXPECT_THAT(failure({"if true; then"}), HasSubstr("syntax error"));
  // As `module` is: bash says nothing of a command that fails in a function, or in a subshell.
  EXPECT_THAT(failure({"load() {", "  [ $1 = cuda ]", "}", "load cuda", "load none", "true"}),
              HasSubstr("launch.setup: line 5 ended with status 1 before"));
  EXPECT_THAT(failure({"true", "( exit 4 )"}), HasSubstr("launch.setup: line 2 ended with status 4 before"));
  // A rank that did nothing did not do its work.
  EXPECT_THAT(failure({"exit 0"}), HasSubstr("launch.setup: line 1 ended with status 0 before"));
}

}  // namespace
}  // namespace planwright
