// What the operations do to keys and values: as in c10d's stores, and never beyond the bound.
#include <gtest/gtest.h>

#include <vector>

#include "planner/wire/rendezvous/store_contents.h"

namespace planwright {
namespace {

class Contents : public ::testing::Test {
 protected:
  StoreMessage Do(StoreOp op, std::vector<std::string> fields, int64_t number = 0) {
    return contents_.Do({static_cast<uint8_t>(op), number, std::move(fields)});
  }
  std::string Get(const std::string& key) { return contents_.Has(key) ? Do(StoreOp::kGet, {key}).fields[0] : "(none)"; }
  static bool IsRefused(const StoreMessage& reply) {
    return reply.kind == static_cast<uint8_t>(StoreReply::kRefused) && reply.fields.size() == 1;
  }

  std::vector<std::string> appeared_;
  StoreContents contents_{[this](const std::string& key) { appeared_.push_back(key); }, size_t{16} << 20};
};

TEST_F(Contents, SetsAndGets) {
  Do(StoreOp::kSet, {"a", "1", "b", "2"});
  Do(StoreOp::kSet, {"a", "3"});
  EXPECT_EQ(Do(StoreOp::kGet, {"b", "a", "a"}).fields, (std::vector<std::string>{"2", "3", "3"}));
  EXPECT_EQ(Do(StoreOp::kCount, {}).number, 2);
  EXPECT_EQ(appeared_, (std::vector<std::string>{"a", "b"}));
}

TEST_F(Contents, CompareSetIsThatOfC10d) {
  EXPECT_EQ(Do(StoreOp::kCompareSet, {"k", "x", "y"}).fields[0], "x");  // does not exist: nothing happens
  EXPECT_EQ(Get("k"), "(none)");
  EXPECT_EQ(Do(StoreOp::kCompareSet, {"k", "", "first"}).fields[0], "first");
  EXPECT_EQ(Do(StoreOp::kCompareSet, {"k", "", "second"}).fields[0], "first");
  EXPECT_EQ(Do(StoreOp::kCompareSet, {"k", "first", "third"}).fields[0], "third");
  EXPECT_EQ(Get("k"), "third");
}

TEST_F(Contents, AddsToTextOfNumbers) {
  EXPECT_EQ(Do(StoreOp::kAdd, {"n"}, 5).number, 5);
  EXPECT_EQ(Do(StoreOp::kAdd, {"n"}, -7).number, -2);
  EXPECT_EQ(Get("n"), "-2");
  EXPECT_TRUE(IsRefused(Do(StoreOp::kAdd, {"n"}, INT64_MIN)));
  Do(StoreOp::kSet, {"n", "seven"});
  EXPECT_TRUE(IsRefused(Do(StoreOp::kAdd, {"n"}, 1)));
  EXPECT_EQ(Get("n"), "seven");
}

TEST_F(Contents, DeletesChecksAndAppends) {
  EXPECT_EQ(Do(StoreOp::kAppend, {"k", "ab"}).number, 0);
  Do(StoreOp::kAppend, {"k", "c"});
  EXPECT_EQ(Get("k"), "abc");
  EXPECT_EQ(Do(StoreOp::kCheck, {"k"}).number, 1);
  EXPECT_EQ(Do(StoreOp::kCheck, {"k", "l"}).number, 0);
  EXPECT_EQ(Do(StoreOp::kDelete, {"k"}).number, 1);
  EXPECT_EQ(Do(StoreOp::kDelete, {"k"}).number, 0);
  EXPECT_EQ(Do(StoreOp::kCount, {}).number, 0);
}

TEST_F(Contents, RefusesWhatMakesNoSense) {
  for (int kind = 0; kind < 256; ++kind) {
    for (size_t fields : {0u, 1u, 2u, 3u, 4u, 5u}) {
      const auto op = static_cast<StoreOp>(kind);
      if (op == StoreOp::kGet) continue;  // the server looks for the keys before
      contents_.Do({static_cast<uint8_t>(kind), 1, std::vector<std::string>(fields, "7")});
    }
  }
  EXPECT_TRUE(IsRefused(Do(static_cast<StoreOp>(0), {})));
  EXPECT_TRUE(IsRefused(Do(static_cast<StoreOp>(99), {"a"})));
  EXPECT_TRUE(IsRefused(Do(StoreOp::kSet, {"a"})));
  EXPECT_TRUE(IsRefused(Do(StoreOp::kCompareSet, {"a", "b"})));
}

TEST_F(Contents, NeverHoldsMoreThanItsBound) {
  const std::string large(size_t{3} << 20, 'x');
  int stored = 0;
  while (!IsRefused(Do(StoreOp::kSet, {"key" + std::to_string(stored), large}))) ++stored;
  EXPECT_EQ(stored, 5);  // 5 x 3 MiB are below 16 MiB
  EXPECT_TRUE(IsRefused(Do(StoreOp::kAppend, {"key0", large})));
  EXPECT_EQ(Get("key0").size(), large.size());
  EXPECT_TRUE(IsRefused(Do(StoreOp::kSet, {"new", "", "newer", large})));
  EXPECT_EQ(Get("new"), "(none)");  // all or nothing
  EXPECT_EQ(Do(StoreOp::kDelete, {"key0"}).number, 1);
  EXPECT_FALSE(IsRefused(Do(StoreOp::kSet, {"new", large})));  // what was deleted counts no more
}

TEST_F(Contents, EmptyKeysAreBoundedToo) {
  std::vector<std::string> pairs;
  int64_t keys = 0;
  StoreMessage reply;
  do {
    pairs.clear();
    for (int i = 0; i < 10000; ++i) pairs.insert(pairs.end(), {std::to_string(keys++), ""});
    reply = Do(StoreOp::kSet, pairs);
  } while (!IsRefused(reply));
  EXPECT_LT(keys, 140000);
}

}  // namespace
}  // namespace planwright
