// What a job asks for against what the cluster has.
#include "planner/run/slurm/cluster_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ClusterLimits : public ::testing::Test {
 protected:
  ClusterLimits() {
    plan_.world_size = 8;
    plan_.cluster.gpus_per_node = 4;
    plan_.cluster.gpu = "none";
  }
  std::vector<std::string> Problems() { return ClusterProblems(plan_, partitions_); }

  Plan plan_;
  const std::vector<Partition> partitions_ =
      ReadPartitions("batch*|1-00:00:00|8\nbatch*|1-00:00:00|16\nlong|infinite|8\nshort|30:00|64\n");
};

TEST_F(ClusterLimits, PartitionsAreRead) {
  ASSERT_EQ(partitions_.size(), 3U);
  EXPECT_EQ(partitions_[0].name, "batch");
  EXPECT_TRUE(partitions_[0].is_default);
  EXPECT_EQ(partitions_[0].most_seconds, 24 * 3600);
  EXPECT_EQ(partitions_[0].most_cores, 16);
  EXPECT_FALSE(partitions_[1].is_default);
  EXPECT_EQ(partitions_[1].most_seconds, std::nullopt);
  EXPECT_EQ(partitions_[2].most_seconds, 1800);
  const std::vector<Partition> odd = ReadPartitions("a|n/a|8+\n\nb\n");
  ASSERT_EQ(odd.size(), 2U);
  for (const Partition& one : odd) {
    EXPECT_EQ(one.most_seconds, std::nullopt);
    EXPECT_EQ(one.most_cores, 0);
  }
}

TEST_F(ClusterLimits, ATimeThatNoAskedPartitionAllows) {
  plan_.launch.time = "2-00:00:00";
  EXPECT_THAT(Problems(), ElementsAre("launch.slurm.time is `2-00:00:00`, and partition batch gives a job 1-00:00:00 "
                                      "at most: it would wait for ever"));
  plan_.launch.partition = "short,batch";
  EXPECT_THAT(Problems(),
              ElementsAre("launch.slurm.time is `2-00:00:00`, and each of the partitions batch, short gives "
                          "a job 1-00:00:00 at most: it would wait for ever"));
  plan_.launch.partition = "short,long";
  EXPECT_THAT(Problems(), IsEmpty());
  plan_.launch.partition = "";
  plan_.launch.time = "1-00:00:00";
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST_F(ClusterLimits, CoresThatNoNodeHas) {
  plan_.launch.cpus_per_task = 17;
  EXPECT_THAT(Problems(),
              ElementsAre("launch.slurm.cpus_per_task is 17, and the largest node of partition batch has 16 cores"));
  plan_.launch.partition = "short";
  EXPECT_THAT(Problems(), IsEmpty());
  plan_.launch.partition = "long";
  plan_.launch.cpus_per_task = 0;
  plan_.world_size = 32, plan_.cluster.gpus_per_node = 16;
  EXPECT_THAT(Problems(), ElementsAre("each node has 16 ranks, with a core for each, and the largest node of partition "
                                      "long has 8 cores; write launch.slurm.cpus_per_task"));
  plan_.cluster.gpu = "h100_sxm";
  EXPECT_THAT(Problems(), IsEmpty()) << "it has whole nodes";
}

TEST_F(ClusterLimits, APartitionThatIsNotThere) {
  plan_.launch.partition = "lnog,batch";
  EXPECT_THAT(Problems(), ElementsAre("launch.slurm.partition: this cluster has no partition lnog; it has batch, long, "
                                      "short; did you mean `long`?"));
}

}  // namespace
}  // namespace planwright
