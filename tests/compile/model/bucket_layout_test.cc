#include "planner/compile/model/bucket_layout.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace planwright {
namespace {

using nlohmann::json;

TEST(BucketLayout, EqualsTheReference) {
  int compared = 0;
  for (const json& c : Golden().at("ddp_bucket_layouts")) {
    // Not in this project: embeddings shared between stages, and padding to 65536 elements.
    if (!c.at("shared_embedding_indices").empty() || c.at("pad_high_busbw")) continue;
    ++compared;
    std::optional<int64_t> size;
    if (!c.at("bucket_size").is_null()) size = c.at("bucket_size").get<int64_t>();
    const BucketLayout layout = LayOutBuckets(c.at("param_numels"), size, c.at("dp"));
    json params = json::array(), buckets = json::array(), unpadded = json::array(), shards = json::array();
    for (size_t i = 0; i < layout.parameters.size(); ++i) {
      const auto& p = layout.parameters[i];
      params.push_back({{"index", i}, {"start", p.start}, {"end", p.end}, {"bucket", p.bucket}});
    }
    for (const auto& bucket : layout.buckets) {
      buckets.push_back({bucket.start, bucket.end});
      unpadded.push_back(bucket.unpadded);
      shards.push_back(bucket.shard);
    }
    EXPECT_EQ(params, c.at("params")) << c.at("id");
    EXPECT_EQ(buckets, c.at("buckets")) << c.at("id");
    EXPECT_EQ(unpadded, c.at("unpadded")) << c.at("id");
    EXPECT_EQ(shards, c.at("shard_numel")) << c.at("id");
  }
  EXPECT_EQ(compared, 3);
}

TEST(BucketLayout, StartsAndEndsAreAligned) {
  const BucketLayout layout = LayOutBuckets({100, 200, 300}, std::nullopt, 2);
  EXPECT_EQ(layout.parameters[0].start, 576);
  EXPECT_EQ(layout.parameters[1].end, 520);
  ASSERT_EQ(layout.buckets.size(), 1u);
  EXPECT_EQ(layout.buckets[0].end, 768);
  EXPECT_EQ(layout.buckets[0].unpadded, 676);
  EXPECT_EQ(layout.buckets[0].shard, 384);
}

TEST(BucketLayout, ABucketIsClosedAsSoonAsItHasItsSize) {
  const BucketLayout layout = LayOutBuckets({10, 20, 30}, 30, 2);
  ASSERT_EQ(layout.buckets.size(), 2u);
  EXPECT_EQ(layout.parameters[2].bucket, 0);
  EXPECT_EQ(layout.parameters[1].bucket, 1);
  EXPECT_EQ(layout.parameters[0].bucket, 1);
}

}  // namespace
}  // namespace planwright
