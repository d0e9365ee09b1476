// Names of what no file system has, and the commands that fetch it.
#include "planner/plan/remote_names.h"

#include <gtest/gtest.h>

namespace planwright {
namespace {

TEST(RemoteNames, AreToldFromPaths) {
  for (const char* url : {"s3://bucket/model", "gs://b/m", "hf://org/m", "https://huggingface.co/org/m", "~/weights"})
    EXPECT_NE(NotMounted(url), "") << url;
  for (const char* path : {"weights", "./org/model", "/lustre/a://b", "a/b://c", "org/Model-8B", ""})
    EXPECT_EQ(NotMounted(path), "") << path;
}

TEST(RemoteNames, OfTheHubHaveTwoWordsAndMostlyASizeOrACapital) {
  for (const char* name : {"nvidia/Nano-30B", "org/a-7b-base", "google/gemma-270M", "nvidia/C-RADIOv2-H"}) {
    EXPECT_TRUE(LooksLikeHubName(name)) << name;
    EXPECT_TRUE(MayBeHubName(name)) << name;
  }
  for (const char* name : {"runs/before", "runs/2026-11-29-A", "org/8Bit"}) {
    EXPECT_FALSE(LooksLikeHubName(name)) << name;
    EXPECT_TRUE(MayBeHubName(name)) << name;
  }
  for (const char* name : {"./org/Nano-30B", "/org/Nano-30B", "org/deeper/Nano-30B", "Nano-30B", "../Nano-30B",
                           "org/model-8B.safetensors", "org/", "a b/Nano-30B"}) {
    EXPECT_FALSE(LooksLikeHubName(name)) << name;
    EXPECT_FALSE(MayBeHubName(name)) << name;
  }
}

TEST(RemoteNames, HaveACommandThatFetches) {
  EXPECT_EQ(HowToFetch("from", "nvidia/Nano-30B"),
            "fetch it: hf download nvidia/Nano-30B --local-dir Nano-30B, and write from: Nano-30B");
  EXPECT_EQ(HowToFetch("from", "https://huggingface.co/nvidia/Nano-30B"), HowToFetch("from", "nvidia/Nano-30B"));
  EXPECT_EQ(HowToFetch("from", "hf://nvidia/Nano-30B"), HowToFetch("from", "nvidia/Nano-30B"));
  EXPECT_EQ(HowToFetch("path", "s3://bucket/data/wiki/"),
            "fetch it: aws s3 sync s3://bucket/data/wiki/ wiki, and write path: wiki");
  EXPECT_EQ(HowToFetch("from", "gs://bucket/m"),
            "fetch it: gcloud storage rsync --recursive gs://bucket/m m, and write from: m");
  EXPECT_EQ(HowToFetch("shards", "s3://bucket/a-{0..9}.tar"),
            "fetch it: aws s3 sync s3://bucket/a-{0..9}.tar FOLDER, and write shards: FOLDER");
  for (const char* other : {"https://example.com/a.tar", "/lustre/weights", "weights"})
    EXPECT_EQ(HowToFetch("from", other), "") << other;
}

}  // namespace
}  // namespace planwright
