// A recipe for GPUs runs on CPU ranks only if the user asks for that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "planner/base/files/exit_status.h"
#include "tests/end_to_end/processes.h"
#include "tests/support/eventually.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;

int LaunchForGpus(const std::vector<std::string>& options, std::string& output) {
  std::string folder = (fs::temp_directory_path() / "planwright_device_XXXXXX").string();
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  std::vector<std::string> argv = {InBuild("bin/plan"),
                                   "launch",
                                   InSource("recipes/nemotron_moe_vlm_tiny.yaml"),
                                   "cluster.gpu=h200_sxm",
                                   "--local",
                                   "--steps",
                                   "1",
                                   "--run-dir",
                                   folder + "/run"};
  argv.insert(argv.end(), options.begin(), options.end());
  const Started launch = StartProgram(argv, {"CUDA_VISIBLE_DEVICES="}, folder + "/output");
  const int status = WaitFor(launch.pid, kPatience).value_or(-1);
  output = ReadAll(launch.output);
  fs::remove_all(folder);
  return status;
}

TEST(Device, ARecipeForGpusIsRefusedWithoutThem) {
  std::string output;
  EXPECT_EQ(LaunchForGpus({}, output), kExitUsage) << output;
  EXPECT_THAT(output, ::testing::HasSubstr("for CPU ranks launch with --device cpu or cluster.gpu=none"));
}

TEST(Device, CpuRanksAreThereForTheAsking) {
  std::string output;
  EXPECT_EQ(LaunchForGpus({"--device", "cpu"}, output), kExitSuccess) << output;
}

}  // namespace
}  // namespace planwright::testing
