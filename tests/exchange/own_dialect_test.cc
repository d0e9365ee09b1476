// A dialect as somebody writes it first: without lines `write`, with numbers that are computed. What import reads of a
// config.json, export writes again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/exchange/read_model.h"
#include "planner/exchange/write_config.h"
#include "planner/state/dialect/dialect_problems.h"
#include "planner/state/dialect/parse_dialect.h"
#include "tests/exchange/toy_folder.h"

namespace planwright {
namespace {

using nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const char kDense[] = R"(dialect dense
  architecture DenseForCausalLM
  layers = kinds words attn *, ffn -
  hidden = d_model
  vocabulary = rope.vocab else 100
  norm_eps is 1e-6: default of dense
  attention.heads = n_head
  attention.kv_groups = n_kv | n_groups else attention.heads
  read ratio real = ratio else 2.0
  read wide flag = wide else false
  refuse wide when wide and hidden > 100: cannot be expressed, only with d_model up to 100
  attention.head_dim when wide is hidden: {wide} x {hidden}
  attention.head_dim is hidden / attention.heads: {hidden} / {attention.heads}
  mlp.ffn is hidden * ratio: {hidden} x {ratio}
  only act relu2: the activation
  only norm rms: the norm
  nothing bias: there is none
  note old unless 0: it is old
  unwritten norm: it is of an older program
)";

DialectSet SetOf(const std::string& text) {
  ParsedDialects parsed = ParseDialects("f", text, *StatementOf("hybrid_lm"));
  EXPECT_EQ(ProblemsText(parsed.problems), "");
  DialectSet set(std::move(parsed.dialects));
  EXPECT_EQ(ProblemsText(DialectProblems(set)), "");
  return set;
}

// Blocks of two layers each, and numbers that are there in some models alone.
const char kBlocks[] = R"(dialect plain
  architecture PlainForCausalLM
  blocks depth
  place *
  place -
  hidden = d_model
  vocabulary is 100
  attention.heads = n_head
  attention.head_dim is 4
  attention.kv_groups is 1
  mlp.ffn is 8
  norm_eps = eps when hidden > 12
dialect sparse
  architecture SparseForCausalLM
  read step int = moe_step else 1
  read dense list = dense_blocks
  blocks depth
  place *
  place E when (i + 1) % step = 0 and not i in dense, -
  hidden = d_model
  vocabulary is 100
  attention.heads = n_head
  attention.head_dim is 4
  attention.kv_groups is 1
  moe.experts = experts
  moe.top_k is 1
  moe.ffn is 8
  moe.shared_ffn is 8
  mlp.ffn is 8
  nothing window else 4096: attention sees all
  only each kinds full: attention is the same in each block
  write dense_blocks blocks -
  write window null
)";

class OwnDialect : public ::testing::Test {
 protected:
  SaidModel Read(const ordered_json& config) {
    findings_ = {};
    return ReadModel(config, {}, findings_, set_);
  }
  // What export writes of a run that is as this config says.
  ordered_json Written(SaidModel model) {
    findings_ = {};
    return ConfigOf(Plan(), model, DType::kFp32, findings_).config;
  }

  const DialectSet set_ = SetOf(kDense);
  const ordered_json config_ = {
      {"model_type", "dense"}, {"kinds", {"attn", "ffn", "attn"}}, {"d_model", 12}, {"n_head", 3}};
  Findings findings_;
};

TEST_F(OwnDialect, NumbersComeInTheOrderOfItsLines) {
  const SaidModel model = Read(config_);
  EXPECT_THAT(findings_.problems, IsEmpty());
  std::vector<std::string> text;
  for (const auto& [key, said] : model.language->numbers) text.push_back(key + ": " + said.text() + "  # " + said.from);
  EXPECT_THAT(text, ElementsAre("pattern: *-*  # kinds", "hidden: 12  # d_model", "vocabulary: 100  # default of dense",
                                "norm_eps: 1e-06  # default of dense", "attention.heads: 3  # n_head",
                                "attention.kv_groups: 3  # n_head", "attention.head_dim: 4  # d_model / n_head",
                                "mlp.ffn: 24  # d_model x default of dense"));
}

TEST_F(OwnDialect, WhatItReadsItWrites) {
  ordered_json config = config_;
  config["n_kv"] = 1, config["rope"]["vocab"] = 40, config["act"] = "relu2";
  const ordered_json written = Written(Read(config));
  EXPECT_THAT(findings_.problems, IsEmpty());
  EXPECT_EQ(written.dump(), R"({"model_type":"dense","kinds":["attn","ffn","attn"],"d_model":12,"rope":{"vocab":40},)"
                            R"("n_head":3,"n_kv":1,"act":"relu2","architectures":["DenseForCausalLM"],)"
                            R"("dtype":"float32","transformers_version":"5.23.0"})");
}

// There is no line that writes a local number, and the config says another one then.
TEST_F(OwnDialect, WhatComesBackAsAnotherNumberIsRefused) {
  ordered_json config = config_;
  config["ratio"] = 3.0;
  SaidModel run = Read(config);
  run.language->Set("norm_eps", Said{1e-5, "module m norm_eps"});
  Written(run);
  EXPECT_THAT(
      findings_.problems,
      ElementsAre(AllOf(Field(&Finding::where, "module m norm_eps"), Field(&Finding::value, "1e-05"),
                        Field(&Finding::message, "cannot be expressed: dense has 1e-06")),
                  AllOf(Field(&Finding::value, "36"), Field(&Finding::message, "cannot be expressed: dense has 24"))));
}

TEST_F(OwnDialect, ConditionsAndWhatIsComputed) {
  ordered_json config = config_;
  config["wide"] = true;
  EXPECT_EQ(Read(config).language->Find("attention.head_dim")->text(), "12");
  config["d_model"] = 102;
  Read(config);
  EXPECT_THAT(findings_.problems,
              ElementsAre(AllOf(Field(&Finding::where, "wide"), Field(&Finding::value, "true"),
                                Field(&Finding::message, HasSubstr("only with d_model up to 100")))));
  config["wide"] = false, config["d_model"] = 13;
  Read(config);
  EXPECT_THAT(findings_.problems,
              ElementsAre(AllOf(Field(&Finding::where, "d_model / n_head"),
                                Field(&Finding::message, HasSubstr("makes attention.head_dim 4.33")))));
}

class OwnBlocks : public ::testing::Test {
 protected:
  // The pattern, or the problems.
  std::string PatternOf(const ordered_json& config) {
    findings_ = {};
    const SaidModel model = ReadModel(config, {}, findings_, set_);
    if (findings_.problems.empty()) return model.language->Find("pattern")->text();
    std::string text;
    for (const Finding& problem : findings_.problems)
      text += problem.where + "|" + problem.value + "|" + problem.message + "\n";
    return text;
  }
  // What export writes of a run of these layers.
  ordered_json Written(const std::string& pattern) {
    Findings findings;
    SaidModel run = ReadModel(config_, {}, findings, set_);
    run.language->letters = pattern;
    run.language->layers = static_cast<int64_t>(pattern.size());
    run.language->Set("pattern", Said{pattern, "module m pattern"});
    findings_ = {};
    return ConfigOf(Plan(), run, DType::kFp32, findings_).config;
  }

  const DialectSet set_ = SetOf(kBlocks);
  const ordered_json config_ = {{"model_type", "sparse"}, {"depth", 4},       {"d_model", 12}, {"n_head", 3},
                                {"experts", 5},           {"window", nullptr}};
  Findings findings_;
};

TEST_F(OwnBlocks, EachBlockHasItsLayers) {
  ordered_json config = config_;
  EXPECT_EQ(PatternOf(config), "*E*E*E*E");
  config["dense_blocks"] = {0, 2};
  EXPECT_EQ(PatternOf(config), "*-*E*-*E");
  config["moe_step"] = 2, config["dense_blocks"] = {3, 9};
  EXPECT_EQ(PatternOf(config), "*-*E*-*-");
  config["dense_blocks"] = {-1};
  EXPECT_EQ(PatternOf(config), "dense_blocks[0]|-1|is no integer from 0 to 16777216\n");
  config["dense_blocks"] = 3;
  EXPECT_EQ(PatternOf(config), "dense_blocks|3|is no list\n");
}

TEST_F(OwnBlocks, WhatItIsWithoutAKeyMayNotBeWhatIsRefused) {
  ordered_json config = config_;
  config.erase("window");
  EXPECT_EQ(PatternOf(config), "window||is missing, and is then 4096, which cannot be expressed: attention sees all\n");
  config["window"] = 8;
  EXPECT_EQ(PatternOf(config), "window|8|cannot be expressed, only null, false or 0: attention sees all\n");
  config["window"] = nullptr, config["kinds"] = {"full", "sliding"};
  EXPECT_EQ(PatternOf(config),
            "kinds[1]|\"sliding\"|cannot be expressed, only \"full\": attention is the same in each block\n");
  config["kinds"] = "full";
  EXPECT_EQ(PatternOf(config), "kinds|\"full\"|is no list\n");
}

// The first dialect that can say it; a key of some models alone is read and written of these alone.
TEST_F(OwnBlocks, ARunLeavesInTheDialectThatCanSayIt) {
  EXPECT_EQ(Written("*-*E").dump(),
            R"({"model_type":"sparse","dense_blocks":[0],"window":null,"depth":2,"d_model":12,"n_head":3,"experts":5,)"
            R"("architectures":["SparseForCausalLM"],"dtype":"float32","transformers_version":"5.23.0"})");
  EXPECT_THAT(findings_.problems, IsEmpty());
  EXPECT_EQ(Written("*-*-").dump(),
            R"({"model_type":"plain","depth":2,"d_model":12,"n_head":3,"architectures":["PlainForCausalLM"],)"
            R"("dtype":"float32","transformers_version":"5.23.0"})");
  EXPECT_THAT(findings_.problems, IsEmpty());
  Written("**-E");
  EXPECT_THAT(findings_.problems,
              ElementsAre(AllOf(Field(&Finding::where, "module m pattern"), Field(&Finding::value, "**-E"),
                                Field(&Finding::message, "cannot be expressed: plain has *-*-"))));
  ordered_json config = {{"model_type", "plain"}, {"depth", 1}, {"d_model", 12}, {"n_head", 3}, {"eps", 1e-4}};
  EXPECT_EQ(PatternOf(config), "eps|0.0001|is not known\n");
  config["d_model"] = 16;
  EXPECT_EQ(PatternOf(config), "*-");
}

TEST_F(OwnDialect, ObjectsInAConfigAreReadKeyByKey) {
  ordered_json config = config_;
  config["rope"] = {{"vocab", 40}, {"vocabs", 41}, {"empty", nullptr}};
  Read(config);
  EXPECT_THAT(findings_.problems, ElementsAre(AllOf(Field(&Finding::where, "rope.vocabs"),
                                                    Field(&Finding::message, HasSubstr("did you mean `vocab`")))));
  EXPECT_THAT(findings_.notes, ElementsAre("rope.empty = null is not known"));
  config["rope"] = 4;
  Read(config);
  EXPECT_THAT(findings_.problems,
              ElementsAre(AllOf(Field(&Finding::where, "rope"), Field(&Finding::message, "is no object"))));
}

}  // namespace
}  // namespace planwright
