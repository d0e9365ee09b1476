#include "planner/model/bucket_layout.h"

#include <gtest/gtest.h>

#include "tests/golden.h"

namespace planwright {
namespace {

using nlohmann::json;

TEST(BucketLayout, EqualsTheReference) {
  for (const json& c : Golden().at("ddp_bucket_layouts")) {
    std::optional<int64_t> size;
    if (!c.at("bucket_size").is_null()) size = c.at("bucket_size").get<int64_t>();
    const BucketLayout layout =
        LayOutBuckets(c.at("param_numels"), c.at("shared_embedding_indices"), size, c.at("dp"), c.at("pad_high_busbw"));
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
}

TEST(BucketLayout, StartsAndEndsAreAligned) {
  const BucketLayout layout = LayOutBuckets({100, 200, 300}, {}, std::nullopt, 2, false);
  EXPECT_EQ(layout.parameters[0].start, 576);
  EXPECT_EQ(layout.parameters[1].end, 520);
  ASSERT_EQ(layout.buckets.size(), 1u);
  EXPECT_EQ(layout.buckets[0].end, 768);
  EXPECT_EQ(layout.buckets[0].unpadded, 676);
  EXPECT_EQ(layout.buckets[0].shard, 384);
}

// The bucket in progress ends at the aligned start of the parameter that must be alone, so that the gap belongs to it.
TEST(BucketLayout, SharedParameterClosesTheBucketInProgress) {
  const BucketLayout layout = LayOutBuckets({10, 20, 30}, {1}, std::nullopt, 2, false);
  ASSERT_EQ(layout.buckets.size(), 3u);
  EXPECT_EQ(layout.buckets[0].unpadded, 64);
  EXPECT_EQ(layout.parameters[1].start, 128);
  EXPECT_EQ(layout.buckets[1].unpadded, 20);
  EXPECT_EQ(layout.parameters[0].bucket, 2);
}

TEST(BucketLayout, BandwidthPaddingRoundsTo65536) {
  EXPECT_EQ(LayOutBuckets({10}, {}, std::nullopt, 3, true).buckets[0].end, 3 * 65536);
}

TEST(BucketSize, EqualsTheReference) {
  for (const json& c : Golden().at("ddp_bucket_size")) {
    auto optional = [&](const char* key) {
      return c.at(key).is_null() ? std::nullopt : std::optional<int64_t>(c.at(key).get<int64_t>());
    };
    EXPECT_EQ(BucketSize(c.at("num_parameters"), optional("num_buckets"), optional("bucket_size"), c.at("dp_cp"),
                         c.at("overlap")),
              optional("result"));
  }
  EXPECT_EQ(BucketSize(1000, 8, std::nullopt, 4, true), 125);
  EXPECT_EQ(BucketSize(3, 8, std::nullopt, 4, true), 0);  // every parameter has its own bucket
  EXPECT_EQ(BucketSize(1000, std::nullopt, std::nullopt, 128, true), 128'000'000);
  EXPECT_EQ(BucketSize(1000, 8, std::nullopt, 128, false), std::nullopt);
}

}  // namespace
}  // namespace planwright
