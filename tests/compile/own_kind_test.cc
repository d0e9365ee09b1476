// A third kind of models, which no code knows: a published family that was written from the pages on kinds alone
// (tests/kinds/mamba2_lm.model). The program of these tests has it beside its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "planner/base/files/file_io.h"
#include "planner/plan/statement/built_in_kinds.h"
#include "planner/plan/statement/parse_statement.h"
#include "planner/plan/statement/statement_problems.h"
#include "planner/verify/verify.h"
#include "tests/plan/statement/toy_kind.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

std::string OwnKind() { return ReadWholeFile(InSource("tests/kinds/mamba2_lm.model"), 1 << 20).value_or(""); }

// The same for text alone: it is given nothing of an encoder.
std::string TextKind() {
  return absl::StrReplaceAll(OwnKind(),
                             {{"kind mamba2_lm", "kind text_lm"},
                              {"given rows [.image_rows*, hidden] learns\n", ""},
                              {"  inputs tokens rows*\n", "  inputs tokens\n"},
                              {"  each x positions = merge_images x rows* tokens [] image_token token*\n", ""},
                              {"dialect mamba2", "dialect mamba2_text"}});
}

// And with blocks: a Mamba layer opens one, and behind it may be a norm, of which there are two kinds. Names have the
// number of the block.
std::string BlockKind() {
  constexpr char kNorms[] = R"(piece N
  prefix backbone.layers.{block}.
  weight norm norm_f.weight [hidden] ones
  inputs x
  n n_scale = rms_norm x [norm] eps norm_eps
  outputs n
  probe n block_lm.block{block}.out

piece O
  prefix backbone.layers.{block}.
  weight norm norm_f.weight [hidden] ones
  inputs x
  n n_scale = rms_norm x [norm] eps norm_eps
  x_out = add x n
  outputs x_out

piece head)";
  return absl::StrReplaceAll(TextKind(), {{"kind text_lm", "kind block_lm"},
                                          {"layer M mamba: Mamba-2\n",
                                           "layer M mamba opens: Mamba-2\nlayer N norm: norm\n"
                                           "layer O other: norm beside the stream\n"},
                                          {"layers M: Mamba-2 layers", "layers pattern such as MNMO: layers"},
                                          {"backbone.layers.{layer}.", "backbone.layers.{block}."},
                                          {"piece head", kNorms},
                                          {"dialect mamba2_text", "dialect mamba2_blocks"}});
}

}  // namespace

std::span<const KindText> BuiltInKinds() {
  static const std::string encoder = testing::StatementText("radio_vit"),
                           language = testing::StatementText("hybrid_lm");
  static const std::string own = OwnKind(), text = TextKind(), blocks = BlockKind();
  static const KindText kinds[] = {{"radio_vit.model", encoder},
                                   {"hybrid_lm.model", language},
                                   {"own.model", own},
                                   {"text.model", text},
                                   {"blocks.model", blocks}};
  return kinds;
}

namespace {

using ::testing::HasSubstr;

constexpr char kRecipe[] = R"(
name: own
cluster: {nodes: 1, gpus_per_node: RANKS, gpu: none}
models:
  lm:
    kind: KIND
    layers: 4
    hidden: 24
    vocabulary: 100
    mamba: {heads: 12, head_dim: 4, groups: 6, state: 5, chunk: 8}
  eye:
    kind: radio_vit
    layers: 2
    hidden: 16
    heads: 4
    ffn: 24
    patch: 2
    class_tokens: 2
    max_image: 16
    projector: {hidden: 16}
modules:
  language:
    model: lm
    placement: {first_rank: 0, ranks: RANKS}
    parallel: {AXES}
    recompute: mamba
MOREbatch: {global_samples: 8, micro_samples: 2, sequence_length: 24}
budget: {train_samples: 32, learning_rate: {peak: 1.0e-3, min: 0.0, style: constant}}
data: {kind: mock, seed: 1, classes: 4, text_tokens: 4IMAGES}
)";
constexpr char kEncoder[] = R"(  eye:
    model: eye
    placement: {first_rank: 0, ranks: RANKS}
bridges: [{from: eye, to: language}]
)";

std::string RecipeOf(const std::string& kind, const std::string& ranks, const std::string& axes, bool images = false) {
  const std::string text = absl::StrReplaceAll(
      kRecipe, {{"MORE", images ? kEncoder : ""},
                {"IMAGES", images ? ", image_token: 3, image_grids: [[4, 4]], min_images: 1, max_images: 1" : ""}});
  return absl::StrReplaceAll(text, {{"KIND", kind}, {"RANKS", ranks}, {"AXES", axes}});
}

Plan PlanOf(const std::string& recipe) {
  Diagnostics problems;
  const std::optional<Recipe> read = ReadRecipeText(recipe, "own.yaml", problems);
  return testing::Compiled(read, problems);
}

std::string ProblemsOf(const std::string& recipe) {
  Diagnostics problems;
  const std::optional<Recipe> read = ReadRecipeText(recipe, "own.yaml", problems);
  EXPECT_FALSE(read && CompileRecipe(*read, problems));
  SourceTexts texts;
  return RenderText(problems.sorted(), texts, false);
}

TEST(OwnKind, ItsTextHasNoProblem) {
  for (const std::string& text : {OwnKind(), TextKind(), BlockKind()}) {
    const ParsedStatement parsed = ParseStatement("own.model", text);
    EXPECT_EQ(ProblemsText(parsed.problems), "");
    EXPECT_EQ(ProblemsText(StatementProblems(parsed.statement)), "");
  }
}

// verify runs on every plan that is compiled.
TEST(OwnKind, IsPlannedOnEveryAxis) {
  for (const auto& [ranks, axes] : std::vector<std::pair<std::string, std::string>>{
           {"1", "tp: 1"}, {"6", "tp: 3"}, {"6", "cp: 2, tp: 3"}, {"4", "pp: 4"}, {"4", "pp: 2, tp: 2"}}) {
    SCOPED_TRACE(axes);
    const Plan plan = PlanOf(RecipeOf("mamba2_lm", ranks, axes));
    EXPECT_EQ(plan.modules.at(0).kind, "mamba2_lm");
    EXPECT_EQ(plan.modules.at(0).layers.size(), 4u);
    EXPECT_THAT(VerifyPlan(plan), ::testing::IsEmpty());
  }
  EXPECT_THAT(VerifyPlan(PlanOf(RecipeOf("mamba2_lm", "2", "tp: 2", true))), ::testing::IsEmpty());
  EXPECT_THAT(VerifyPlan(PlanOf(RecipeOf("text_lm", "2", "tp: 2"))), ::testing::IsEmpty());
}

TEST(OwnKind, AnEncoderBesideAKindOfTextAloneIsToldAtItsBridge) {
  const std::string told = ProblemsOf(RecipeOf("text_lm", "2", "tp: 2", true));
  EXPECT_THAT(told, HasSubstr("a bridge to language, but a text_lm takes no image rows"));
  EXPECT_THAT(told, HasSubstr("PW0302"));
}

std::string PatternOf(const std::string& pattern, const std::string& axes = "tp: 1") {
  return absl::StrReplaceAll(RecipeOf("block_lm", "2", axes), {{"layers: 4", "pattern: \"" + pattern + "\""}});
}

// Of one block no two layers have one name; what stands before the first layer that opens one is a block too.
TEST(OwnKind, LayersOfABlockHaveNamesOfTheirOwn) {
  for (const char* pattern : {"MNMO", "M", "MMN", "NMN", "OMO"}) {
    SCOPED_TRACE(pattern);
    const Plan plan = PlanOf(PatternOf(pattern));
    EXPECT_EQ(plan.modules.at(0).layers.size(), std::string(pattern).size());
    EXPECT_THAT(VerifyPlan(plan), ::testing::IsEmpty());
  }
  const std::string name = "both have backbone.layers.1.norm_f.weight";
  const std::string alternatives = ProblemsOf(PatternOf("MMNO"));
  EXPECT_THAT(alternatives, HasSubstr("O (norm beside the stream) is in one block with N (norm), and " + name));
  EXPECT_THAT(alternatives, HasSubstr("PW0502"));
  EXPECT_THAT(alternatives, HasSubstr("own.yaml:7:18"));
  EXPECT_THAT(alternatives, HasSubstr("own.yaml:7:17"));
  EXPECT_THAT(alternatives, HasSubstr("begin another block between them, with M (Mamba-2)"));
  EXPECT_THAT(ProblemsOf(PatternOf("MM|NN", "pp: 2")), HasSubstr("own.yaml:7:19"));
  EXPECT_THAT(ProblemsOf(PatternOf("NNM")), HasSubstr("N (norm) is in one block with N (norm), and both have "
                                                      "backbone.layers.0.norm_f.weight"));
}

TEST(OwnKind, NeedsCompareWholeNumbers) {
  const ParsedStatement parsed =
      ParseStatement("own.model", absl::StrReplaceAll(OwnKind(), {{"  needs mamba.heads multiple of mamba.groups\n",
                                                                   "  needs mamba.heads multiple of mamba.groups\n"
                                                                   "  needs mamba.dt_min at most mamba.dt_max\n"}}));
  EXPECT_THAT(ProblemsText(StatementProblems(parsed.statement)),
              HasSubstr("needs something of mamba.dt_min, which is real: whole numbers are compared"));
}

}  // namespace
}  // namespace planwright
