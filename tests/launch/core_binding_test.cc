#include "planner/launch/core_binding.h"

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
    std::filesystem::create_directories(root + "/proc/driver/nvidia/gpus/" + gpu);
  write("/sys/bus/pci/devices/0000:1b:00.0/numa_node", "0");
  write("/sys/bus/pci/devices/0000:9d:00.0/numa_node", "1");
  write("/sys/devices/system/node/node1/cpulist", "4-6,9");
  EXPECT_THAT(NodesOfGpus(root), ElementsAre(0, -1, 1));
  EXPECT_THAT(CoresOfNode(1, root), ElementsAre(4, 5, 6, 9));
  EXPECT_THAT(CoresOfNode(-1, root), IsEmpty());
  EXPECT_THAT(CoresOfNode(7, root), IsEmpty());
  std::filesystem::remove_all(root);
}

TEST(CoreBinding, ThisMachineHasCores) { EXPECT_FALSE(OwnCores().empty()); }

}  // namespace
}  // namespace planwright
