// What the logs of ranks tell of the lives of a run (docs/logs.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "planner/base/files/exit_status.h"
#include "tests/end_to_end/checkpoint_run.h"

namespace planwright::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class Logs : public CheckpointRun {
 protected:
  std::string Log(int rank, const std::string& life = "") {
    return ReadAll(RunDir() + "/" + life + "logs/rank000" + std::to_string(rank) + ".log");
  }
};

TEST_F(Logs, OfALifeThatEndsWellAndOfOneThatFindsDamage) {
  const Ended first = Run(6, {"checkpoint.keep_last=2"});
  ASSERT_EQ(first.status, 0) << first.output;
  for (int rank : {0, 1}) {
    const std::string me = "rank" + std::to_string(rank) + " [0-9]+ [a-z_]+\\.cc:[0-9]+\\] ";
    EXPECT_THAT(Log(rank), ContainsRegex("^I[0-9]{8} [0-9:.]{15} [+-][0-9]{4} " + me + "planwright [0-9.]+, LibTorch " +
                                         "[0-9.]+: rank " + std::to_string(rank) + " of 2 on .*, life 1\n"));
    for (const char* what :
         {"plan nemotron_moe_vlm_tiny, digest [0-9a-f]{64}, role ", "device cpu\n", "the run begins at step 1\n",
          "join world\n", "[1-9][0-9]* compute instructions, 0 in their fast form\n", "ready in [0-9.]+ s: ",
          "checkpoint of step 4 begins\n", "checkpoint of step 6: a shard of [0-9.]+ GB, copied in "})
      EXPECT_THAT(Log(rank), ContainsRegex(me + what));
    EXPECT_THAT(Log(rank), ContainsRegex(me + "done\n$"));
  }
  EXPECT_THAT(Log(0), ContainsRegex("published: checkpoint of step 6: [0-9.]+ GB, copied in "));
  EXPECT_THAT(Log(0), HasSubstr("removed " + Checkpoints() + "/step-00000002.life-1\n"));
  const std::string before = Log(1);

  std::fstream shard(Checkpoints() + "/step-00000006.life-1/rank-00001.safetensors",
                     std::ios::in | std::ios::out | std::ios::binary);
  shard.seekg(-1, std::ios::end);
  const char last = static_cast<char>(shard.get() ^ 1);
  shard.seekp(-1, std::ios::end);
  shard.put(last);
  shard.close();
  const Ended second = Run(8);
  ASSERT_EQ(second.status, 0) << second.output;
  for (int rank : {0, 1}) {
    EXPECT_THAT(Log(rank), ContainsRegex("W[^\n]*\\] this checkpoint is damaged, an older one is taken: rank 1: "));
    EXPECT_THAT(Log(rank), ContainsRegex("resuming after step 4 from [^\n]*step-00000004.life-1\n"));
    EXPECT_THAT(Log(rank),
                ContainsRegex("loaded and verified [0-9.]+ GB in [0-9.]+ s on rank " + std::to_string(rank)));
    EXPECT_THAT(Log(rank), AllOf(HasSubstr(", life 2\n"), Not(HasSubstr(", life 1\n"))));
  }
  EXPECT_EQ(Log(1, "lives/1/"), before);
}

TEST_F(Logs, OfALifeThatIsAskedToStop) {
  const Ended ended = InterruptAt(kSteps, {.rank = 1, .list = "step", .step = 4});
  ASSERT_EQ(ended.status, kExitPreempted) << ended.output;
  // One rank may stop because of the other's request, before it has looked for its own.
  EXPECT_THAT(Log(0) + Log(1), HasSubstr("] asked to save and stop (SIGUSR1)\n"));
  for (int rank : {0, 1}) {
    EXPECT_THAT(Log(rank), ContainsRegex("\\] a rank was asked to stop: all stop after step [0-9]+\n"));
    EXPECT_THAT(Log(rank), ContainsRegex("\\] stopped as asked\n$"));
  }
}

}  // namespace
}  // namespace planwright::testing
