// The table of the kinds of data and of sources: every row is whole, and every word leads to its row and back.
#include "planner/plan/data_kinds.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "planner/plan/plan_json.h"

namespace planwright {
namespace {

TEST(DataKinds, HaveAWholeRowEach) {
  std::set<std::string_view> words, keys;
  for (size_t i = 0; i < DataKinds().size(); ++i) {
    const DataKindRow& row = DataKinds()[i];
    EXPECT_EQ(static_cast<size_t>(row.kind), i) << row.word;
    EXPECT_EQ(&RowOf(row.kind), &row);
    EXPECT_EQ(DataKindFromName(row.word), row.kind);
    EXPECT_EQ(DataKindName(row.kind), row.word);
    EXPECT_TRUE(words.insert(row.word).second) << row.word;
    EXPECT_FALSE(row.meaning.empty()) << row.word;
    // How samples come to be: exactly one of these.
    EXPECT_EQ(row.drawn + row.batch_file + row.mixed, 1) << row.word;
    // Of what documents bring along, only a mixture of them has something.
    EXPECT_TRUE(row.mixed || (!row.indexed && !row.tokenized && !row.resized)) << row.word;
    EXPECT_TRUE(keys.insert(row.set.key).second) << "two kinds have evaluation sets with the key " << row.set.key;
    EXPECT_FALSE(row.set.what.empty()) << row.word;
    EXPECT_TRUE(row.set.example.starts_with(std::string(row.set.key) + ": ")) << row.set.example;
  }
  EXPECT_EQ(DataKindFromName("Mock"), std::nullopt);
}

TEST(SourceKinds, HaveAWholeRowEach) {
  std::set<std::string_view> words;
  for (size_t i = 0; i < SourceKinds().size(); ++i) {
    const SourceKindRow& row = SourceKinds()[i];
    EXPECT_EQ(static_cast<size_t>(row.kind), i) << row.word;
    EXPECT_EQ(&RowOf(row.kind), &row);
    EXPECT_EQ(SourceKindFromName(row.word), row.kind);
    EXPECT_EQ(SourceKindName(row.kind), row.word);
    EXPECT_TRUE(words.insert(row.word).second) << row.word;
    EXPECT_FALSE(row.meaning.empty()) << row.word;
  }
  EXPECT_EQ(SourceKindFromName("sources"), std::nullopt);
}

TEST(DataKinds, ThatAreGoneAreNoKindsAndRefusedInPlans) {
  ASSERT_FALSE(GoneDataKinds().empty());
  for (const GoneDataKind& gone : GoneDataKinds()) {
    EXPECT_EQ(FindGoneDataKind(gone.word), &gone);
    EXPECT_EQ(DataKindFromName(gone.word), std::nullopt);
    EXPECT_FALSE(gone.help.empty() || gone.in_plan.empty());
    Plan plan;
    std::string text = WritePlan(plan);
    const std::string kind = "\"kind\":\"mock\"";
    ASSERT_NE(text.find(kind), std::string::npos);
    text.replace(text.find(kind), kind.size(), "\"kind\":\"" + std::string(gone.word) + "\",\"shards\":[\"a.tar\"]");
    const absl::Status status = ReadPlan(text).status();
    // As a plan of another format: its checkpoint can still be loaded.
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(status.message(), "the plan has data of kind " + std::string(gone.word) +
                                    ", which this version of Planwright (" + kToolVersion + ") does not have; " +
                                    std::string(gone.in_plan));
  }
  EXPECT_EQ(FindGoneDataKind("mock"), nullptr);
}

TEST(DataKinds, OfPlansAreWords) {
  Plan plan;
  plan.optimizer = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .clip_grad_norm = 1.0};
  std::string text = WritePlan(plan);
  const std::string kind = "\"kind\":\"mock\"";
  text.replace(text.find(kind), kind.size(), "\"kind\":\"tapes\"");
  EXPECT_EQ(ReadPlan(text).status(), absl::InvalidArgumentError("data.kind: no kind of data: \"tapes\""));
}

}  // namespace
}  // namespace planwright
