// Data sections of plans with sources: which are refused, whoever wrote them.
#include "planner/plan/source_rules.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "planner/plan/plan_ranges.h"

namespace planwright {
namespace {

DataPlan Good() {
  DataPlan data;
  data.kind = DataKind::kSources;
  data.tokenizer = "ids";
  data.vocabulary = 100;
  data.image_token = 1;
  data.pad_token = 2;
  data.end_token = 3;
  data.window = 128;
  data.min_patches = 4;
  data.max_patches = 16;
  data.sources = {{"a", SourceKind::kWebdataset, {"a.tar"}, {"json"}, "", 3},
                  {"b", SourceKind::kTokens, {}, {}, "text", 2}};
  return data;
}

TEST(SourceRules, RefuseWhatIsNoDataSection) {
  EXPECT_EQ(RangeProblem(Good()), "");
  const std::pair<const char*, std::function<void(DataPlan&)>> kWrong[] = {
      {"no sources, or more than a plan may have", [](DataPlan& d) { d.sources.clear(); }},
      {"two sources of one name: a", [](DataPlan& d) { d.sources[1].name = "a"; }},
      {"a source with a name that no file can have", [](DataPlan& d) { d.sources[0].name = "../a"; }},
      {"a source with a name that no file can have", [](DataPlan& d) { d.sources[0].name = "a\n"; }},
      {"a source with a name that no file can have", [](DataPlan& d) { d.sources[0].name = ""; }},
      {"a source that has not what its kind has: a", [](DataPlan& d) { d.sources[0].shards.clear(); }},
      {"a source that has not what its kind has: a", [](DataPlan& d) { d.sources[0].path = "x"; }},
      {"a source that has not what its kind has: b", [](DataPlan& d) { d.sources[1].path = ""; }},
      {"a weight out of range, of source a", [](DataPlan& d) { d.sources[0].weight = 0; }},
      {"weights of sources with a common divisor", [](DataPlan& d) { d.sources[0].weight = 4; }},
      {"weights of sources whose sum is above 1000000", [](DataPlan& d) { d.sources[0].weight = 999999; }},
      {"an unknown tokenizer", [](DataPlan& d) { d.tokenizer = "words"; }},
      {"a source of ids where text is bytes", [](DataPlan& d) { d.tokenizer = "bytes"; }},
      {"a digest that is none", [](DataPlan& d) { d.tokenizer_digest = std::string(63, 'a'); }},
      {"a digest that is none", [](DataPlan& d) { d.template_digest = std::string(64, 'A'); }},
      {"ids without those of padding and of a document's end", [](DataPlan& d) { d.pad_token = -1; }},
      {"one id for images and for padding or the end", [](DataPlan& d) { d.end_token = d.image_token; }},
      {"one id for images and for padding or the end", [](DataPlan& d) { d.image_token = d.pad_token; }},
      {"a token outside the vocabulary", [](DataPlan& d) { d.end_token = 100; }},
      {"an unknown shuffle", [](DataPlan& d) { d.shuffle = "0"; }},
      {"an unknown shuffle", [](DataPlan& d) { d.shuffle = "12x"; }},
      {"an unknown packing", [](DataPlan& d) { d.packing = "best"; }},
      {"an unknown word for long documents", [](DataPlan& d) { d.long_documents = "drop"; }},
      {"an unknown word for damaged documents", [](DataPlan& d) { d.damaged = "cut"; }},
      {"an unknown order of samples within a step", [](DataPlan& d) { d.balance = "text"; }},
      {"a window or limits of patches out of range", [](DataPlan& d) { d.window = 0; }},
      {"a window or limits of patches out of range", [](DataPlan& d) { d.min_patches = 17; }},
      {"sources or ids in data of another kind", [](DataPlan& d) { d.kind = DataKind::kMock; }},
  };
  for (const auto& [problem, damage] : kWrong) {
    DataPlan data = Good();
    damage(data);
    EXPECT_EQ(RangeProblem(data), problem);
  }
}

}  // namespace
}  // namespace planwright
