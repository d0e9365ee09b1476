#include "planner/run/launch/core_binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Cores = std::vector<int>;

TEST(CoreBinding, WithoutGpusEachRankGetsAnEqualPart) {
  EXPECT_THAT(DivideCores({0, 1, 2, 3, 4, 5, 6, 7}, 2, {}), ElementsAre(Cores{0, 1, 2, 3}, Cores{4, 5, 6, 7}));
  EXPECT_THAT(DivideCores({1, 3, 5}, 2, {}), ElementsAre(Cores{1}, Cores{3, 5}));
}

TEST(CoreBinding, WithFewerCoresThanRanksNobodyIsBound) { EXPECT_THAT(DivideCores({0, 1}, 3, {}), IsEmpty()); }

TEST(CoreBinding, RanksStayBesideTheirGpus) {
  const Cores first = {0, 1, 2, 3}, second = {4, 5, 6, 7}, all = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_THAT(DivideCores(all, 4, {second, second, first, first}),
              ElementsAre(Cores{4, 5}, Cores{6, 7}, Cores{0, 1}, Cores{2, 3}));
  // Cores of others are left alone.
  EXPECT_THAT(DivideCores({2, 3, 6, 7}, 2, {second, first}), ElementsAre(Cores{6, 7}, Cores{2, 3}));
  // A node without a core for each of its ranks: as if nothing were known.
  EXPECT_THAT(DivideCores({0, 1, 2, 4}, 4, {second, second, first, first}),
              ElementsAre(Cores{0}, Cores{1}, Cores{2}, Cores{4}));
}

TEST(CoreBinding, ReadsGpusAndNodesAsTheKernelTellsThem) {
  std::string root = ::testing::TempDir() + "core_bindingXXXXXX";
  ASSERT_NE(mkdtemp(root.data()), nullptr);
  const auto write = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
    std::ofstream(root + path) << text << "\n";
  };
  for (const char* gpu : {"0000:9d:00.0", "0000:1b:00.0", "0000:5d:00.0"})
    write("/proc/driver/nvidia/gpus/" + std::string(gpu) + "/information",
          "Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-" + std::string(gpu + 5, 2) + "-17");
  write("/sys/bus/pci/devices/0000:1b:00.0/numa_node", "0");
  write("/sys/bus/pci/devices/0000:9d:00.0/numa_node", "1");
  write("/sys/devices/system/node/node1/cpulist", "4-6,9");
  EXPECT_THAT(NodesOfGpus(std::nullopt, root), ElementsAre(0, -1, 1));
  EXPECT_THAT(NodesOfGpus("2", root), ElementsAre(1));
  EXPECT_THAT(NodesOfGpus("2,0", root), ElementsAre(1, 0));
  EXPECT_THAT(NodesOfGpus("GPU-9d,GPU-1b-17", root), ElementsAre(1, 0));
  EXPECT_THAT(NodesOfGpus("3,2,GPU-77,MIG-1,x", root), ElementsAre(-1, 1, -1, -1, -1));
  EXPECT_THAT(NodesOfGpus("", root), IsEmpty());
  EXPECT_THAT(NodesOfGpus(std::nullopt, root + "/nothing"), IsEmpty());
  EXPECT_THAT(CoresOfNode(1, root), ElementsAre(4, 5, 6, 9));
  EXPECT_THAT(CoresOfNode(-1, root), IsEmpty());
  EXPECT_THAT(CoresOfNode(7, root), IsEmpty());
  std::filesystem::remove_all(root);
}

// Each computes on its core. With fixed ones, ranks of two runs would share a core while another one idles.
TEST(CoreBinding, RanksOnCpusAreNotBound) { EXPECT_THAT(BindRanks(1, false), IsEmpty()); }

TEST(CoreBinding, ThisMachineHasCores) { EXPECT_FALSE(OwnCores().empty()); }

}  // namespace
}  // namespace planwright
