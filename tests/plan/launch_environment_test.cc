// What a recipe may give its ranks as variables and lines, and what it may not.
#include "planner/plan/launch_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace planwright {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(LaunchEnvironment, AVariableHasAValueOrThatOfTheShell) {
  for (const char* entry : {"NCCL_DEBUG=INFO", "HF_TOKEN", "_x=", "A=b=c", "UCX_TLS=rc,sm", "T=a b", "P=é"}) {
    EXPECT_EQ(EnvironmentEntryProblem(entry).what, "") << entry;
  }
  EXPECT_EQ(VariableOf("A=b=c"), "A");
  EXPECT_EQ(VariableOf("A"), "A");
  EXPECT_TRUE(IsPassedOn("A"));
  EXPECT_FALSE(IsPassedOn("A="));
}

TEST(LaunchEnvironment, WhatIsNoVariableIsRefused) {
  for (const char* entry : {"", "=a", "1A=b", "A-B=c", "A B", "A=b\nC=d", "A=\x1b[0m", "mlx5_1:1"}) {
    const EnvironmentProblem problem = EnvironmentEntryProblem(entry);
    EXPECT_THAT(problem.what, HasSubstr("is no variable")) << entry;
    EXPECT_FALSE(problem.taken);
  }
}

TEST(LaunchEnvironment, WhatTheLauncherSetsIsRefusedByName) {
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
                           "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "CUDA_VISIBLE_DEVICES", "PLANWRIGHT_NONCE",
                           "PLANWRIGHT_SECRET", "PLANWRIGHT_OWN_CORES", "PLANWRIGHT_FORK_RANKS", "SLURM_PROCID"}) {
    for (const std::string& entry : {std::string(name), std::string(name) + "=1"}) {
      const EnvironmentProblem problem = EnvironmentEntryProblem(entry);
      EXPECT_TRUE(problem.taken) << entry;
      EXPECT_THAT(problem.what, HasSubstr("`" + entry + "`: ")) << entry;
      EXPECT_NE(problem.help, "") << entry;
    }
  }
  EXPECT_THAT(EnvironmentEntryProblem("NCCL_SOCKET_IFNAME=ib0").help, HasSubstr("launch.interface"));
  for (const char* entry : {"RANKED=1", "MASTER=1", "CUDA_DEVICE_ORDER=PCI_BUS_ID", "NCCL_SOCKET_NTHREADS=2",
                            "PLANWRIGHT_TIMEOUT_SECONDS=9", "SLURMY=1"})
    EXPECT_EQ(EnvironmentEntryProblem(entry).what, "") << entry;
}

// Lines of scripts for torchrun, which many have.
TEST(LaunchEnvironment, LinesMayNotSetWhatTheLauncherSets) {
  for (const char* text :
       {"export MASTER_ADDR=$(scontrol show hostnames | head -1)", "MASTER_PORT=29500",
        "module load cuda; RANK=$SLURM_PROCID", "ulimit -l unlimited && export CUDA_VISIBLE_DEVICES=0",
        "(LOCAL_RANK=0)", "a=1 WORLD_SIZE=2 b"})
    EXPECT_TRUE(SetupLineProblem(text).taken) << text;
  for (const char* text :
       {"module load cuda/12.4", "export NCCL_DEBUG=INFO", "echo $RANK", "[ \"$RANK\" = 0 ]", "export MY_RANK=1",
        "exec apptainer exec --env=RANK image.sif \"$@\"", "# rank", "[ -z \"$SLURM_JOB_ID\" ] || module load a", ""})
    EXPECT_EQ(SetupLineProblem(text).what, "") << text;
}

TEST(LaunchEnvironment, OfAPlanIsJudgedAsThatOfARecipe) {
  LaunchPlan launch;
  launch.env = {"A=1", "B"};
  launch.setup = {"module load a"};
  EXPECT_EQ(EnvironmentProblemOf(launch), "");
  launch.env = {"A=1", "A"};
  EXPECT_THAT(EnvironmentProblemOf(launch), HasSubstr("launch.env has A twice"));
  launch.env = {"RANK=1"};
  EXPECT_THAT(EnvironmentProblemOf(launch), AllOf(HasSubstr("launch.env: `RANK=1`: "), HasSubstr("; remove it")));
  launch.env = {};
  launch.setup = {"a", "export RANK=1"};
  EXPECT_THAT(EnvironmentProblemOf(launch), HasSubstr("launch.setup: it sets RANK"));
}

TEST(LaunchEnvironment, KnowsWhatLibrariesRead) {
  for (const char* name : {"NCCL_DEBUG", "UCX_TLS", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH",
                           "TORCH_NCCL_BLOCKING_WAIT", "PYTORCH_CUDA_ALLOC_CONF", "CUBLAS_WORKSPACE_CONFIG",
                           "NVIDIA_TF32_OVERRIDE", "PLANWRIGHT_TIMEOUT_SECONDS"})
    EXPECT_TRUE(IsLibraryVariable(name)) << name;
  for (const char* name : {"PATH", "HOME", "CUDA_HOME", "NCCL_VERSION", "HF_TOKEN", "RANK", "MASTER_ADDR",
                           "PLANWRIGHT_SECRET", "PLANWRIGHT_NONCE", "SLURM_JOB_ID", ""})
    EXPECT_FALSE(IsLibraryVariable(name)) << name;
}

}  // namespace
}  // namespace planwright
