// `plan weights` as people and scripts use it: the table, JSON, exit statuses (docs/weights.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "planner/base/files/exit_status.h"
#include "tests/cli/plan_program.h"
#include "tests/state/weights/published.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class WeightsCommand : public PlanProgram {
 protected:
  void SetUp() override {
    PlanProgram::SetUp();
    RawTensors language;
    for (const auto& [name, tensor] : TensorsOf(CompiledFile(recipe_), "BF16")) {
      if (name.starts_with("language_model.")) language[name.substr(15)] = tensor;
    }
    language["mtp.norm.weight"] = Numbers("BF16", {64}, [](int64_t) { return 1; });
    WriteFolder(folder_ + "/nano", language, 2);
    words_ = "weights " + recipe_ +
             " modules.language.placement.first_rank=1 modules.language.placement.ranks=4"
             " modules.language.parallel.tp=2 modules.language.parallel.ep=4"
             " 'initialize={sources: [{for: language, from: " +
             folder_ + "/nano}, {for: radio_encoder, from: drawn}]}'";
  }

  const std::string recipe_ = InSource("recipes/nemotron_moe_vlm_tiny.yaml");
  std::string words_;
};

TEST_F(WeightsCommand, SaysWhatFitsAndWhoReadsWhat) {
  const ProgramResult told = Plan(words_);
  EXPECT_EQ(told.status, kExitSuccess) << told.err;
  EXPECT_THAT(told.out, AllOf(HasSubstr("radio_encoder.backbone"), HasSubstr("drawn"), HasSubstr("fits"),
                              HasSubstr("its names lack language_model."),
                              HasSubstr("passed through: mtp.*, 1 tensor: multi-token prediction layers"),
                              HasSubstr("the weights fit\n")));
  const json told_json = json::parse(Plan(words_ + " --json").out);
  EXPECT_TRUE(told_json["fits"]);
  EXPECT_EQ(told_json["parts"].size(), 3U);
  EXPECT_EQ(told_json["sources"][0]["passed_through"][0]["tensors"], json({"mtp.norm.weight"}));
  ASSERT_EQ(told_json["reads"].size(), 2U);  // the encoder's rank, and the four of the language model
  EXPECT_EQ(told_json["reads"][0]["bytes"], json({0}));
  EXPECT_EQ(told_json["reads"][1]["ranks"], json({1, 2, 3, 4}));
  EXPECT_GT(told_json["reads"][1]["bytes"][0], 0);
  EXPECT_FALSE(told_json["values_read"]);
}

TEST_F(WeightsCommand, ReadsValuesIfItIsToldTo) {
  EXPECT_THAT(Plan(words_ + " --read").out, HasSubstr("the weights fit; "));
  const std::string shard = folder_ + "/nano/" + ShardName(1, 2);
  std::string bytes = ReadText(shard);
  bytes[bytes.size() - 1] = 0x7f, bytes[bytes.size() - 2] = static_cast<char>(0xc0);  // NaN
  WriteText(shard, bytes);
  EXPECT_EQ(Plan(words_).status, kExitSuccess);
  const ProgramResult told = Plan(words_ + " --read");
  EXPECT_EQ(told.status, kExitInvalid);
  EXPECT_THAT(told.out, AllOf(HasSubstr("error: " + shard + ": tensor "), HasSubstr("is infinite or no number (NaN)"),
                              HasSubstr("the weights do not fit")));
}

TEST_F(WeightsCommand, EndsWithTheStatusOfWhatItFound) {
  const ProgramResult other = Plan(words_ + " models.hybrid_moe_tiny.moe.ffn=32");
  EXPECT_EQ(other.status, kExitInvalid);
  EXPECT_THAT(other.out, AllOf(HasSubstr("is [48, 64], the model's is [32, 64]"), HasSubstr("the weights do not fit"),
                               Not(HasSubstr("what each rank reads"))));
  EXPECT_FALSE(json::parse(Plan(words_ + " models.hybrid_moe_tiny.moe.ffn=32 --json").out)["fits"]);
  EXPECT_EQ(Plan("weights " + recipe_ + " initialize.from=" + folder_ + "/gone").status, kExitInvalid);
  EXPECT_EQ(Plan("weights " + recipe_).status, kExitSuccess);  // all are drawn
  EXPECT_EQ(Plan("weights").status, kExitUsage);
  EXPECT_EQ(Plan("weights " + recipe_ + " --raed").status, kExitUsage);
}

// People see the first lines of a long list and how many there are beside; scripts see all. Names of a file write no
// lines of their own.
TEST_F(WeightsCommand, CutsLongListsAndShowsNamesOnOneLine) {
  RawTensors other;
  for (int i = 0; i < 150; ++i) other["stray" + std::to_string(i)] = Numbers("F32", {1}, [](int64_t) { return 1; });
  other["\x1b[8mstray\nthe weights fit"] = Numbers("F32", {1}, [](int64_t) { return 1; });
  for (const auto& [name, tensor] : TensorsOf(CompiledFile(recipe_), "BF16")) other[name] = tensor;
  WriteFolder(folder_ + "/other", other, 1);
  const std::string words = "weights " + recipe_ + " initialize.from=" + folder_ + "/other";
  const ProgramResult told = Plan(words);
  EXPECT_EQ(told.status, kExitInvalid);
  int64_t errors = 0;
  for (size_t at = told.out.find("error: "); at != std::string::npos; at = told.out.find("\nerror: ", at + 1)) ++errors;
  EXPECT_EQ(errors, 101);
  EXPECT_THAT(told.out, AllOf(HasSubstr("error: and 51 more (--json has all)\nthe weights do not fit\n"),
                              HasSubstr("\\x1b[8mstray\\x0athe weights fit [1]"), Not(HasSubstr("\x1b")),
                              Not(HasSubstr("\nthe weights fit"))));
  EXPECT_EQ(json::parse(Plan(words + " --json").out)["problems"].size(), 151U);
}

}  // namespace
}  // namespace planwright::testing
