// First recipes: valid as they are, for every model that the program contains and on any number of GPUs.
#include "planner/search/results/started_recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "planner/base/files/file_io.h"
#include "planner/recipe/model_facts.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/recipe/yaml/yaml_text.h"
#include "planner/search/results/tunable_keys.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

std::optional<Recipe> ReadStarted(const StartedRecipe& started, const std::vector<std::string>& changes) {
  const auto text = TextOfStarted(started, changes, "about", "recipe.yaml");
  EXPECT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, ::testing::StartsWith("# about\n"));
  Diagnostics problems;
  std::optional<Recipe> recipe = ReadRecipeText(*text, "recipe.yaml", problems);
  for (const Diagnostic& problem : problems.sorted()) ADD_FAILURE() << problem.message << "\n" << *text;
  return recipe;
}

TEST(StartedRecipe, KnowsEveryModelOfTheRecipes) {
  std::set<std::string> names, files;
  for (const BuiltInModel& model : BuiltInModels()) {
    names.insert(model.name);
    EXPECT_EQ(model.text, ReadWholeFile(InSource("recipes/models/" + model.name + ".yaml"), 1 << 17).value_or(""));
  }
  for (const auto& entry : std::filesystem::directory_iterator(InSource("recipes/models")))
    files.insert(entry.path().stem());
  EXPECT_EQ(names, files) << "planner/search/results/CMakeLists.txt lists them";
}

// Whether a file of models has one of a kind, as its text says.
bool HasKind(const BuiltInModel& model, const std::string& kind) {
  return model.text.find("kind: " + kind) != std::string::npos;
}

TEST(StartedRecipe, IsReadWithoutProblems) {
  for (const BuiltInModel& model : BuiltInModels()) {
    const size_t encoders = HasKind(model, "radio_vit") || HasKind(model, "qwen_vit") ? 1 : 0;
    for (const int64_t gpus : {1, 6, 8, 264, 4096, 1 << 17}) {
      Diagnostics problems;
      const auto started = StartRecipe(model.name, gpus, problems);
      ASSERT_TRUE(started.ok()) << started.status();
      const auto recipe = ReadStarted(*started, {"batch.global_samples=64", "modules.language.parallel.tp=2"});
      ASSERT_TRUE(recipe);
      EXPECT_EQ(*recipe->batch.global_samples, 64);
      EXPECT_EQ(*recipe->cluster.nodes * *recipe->cluster.gpus_per_node, gpus);
      ASSERT_EQ(recipe->modules.size(), encoders + 1);
      EXPECT_EQ(*recipe->modules[encoders].name, "language");
      EXPECT_EQ(*recipe->modules[encoders].tp, 2);
      EXPECT_EQ(recipe->bridges.size(), encoders);
    }
  }
}

// A key is written once, and what is not overridden stays.
TEST(StartedRecipe, TakesOverridesOfItsModels) {
  for (const BuiltInModel& model : BuiltInModels()) {
    if (!HasKind(model, "radio_vit")) continue;
    Diagnostics problems;
    const auto started = StartRecipe(model.name, 8, problems);
    ASSERT_TRUE(started.ok()) << started.status();
    const auto plain = ReadStarted(*started, {});
    const auto recipe =
        ReadStarted(*started, {"models.radio_vit_h.layers=16", "models.radio_vit_h.projector.hidden=512"});
    ASSERT_TRUE(plain && recipe);
    for (size_t m = 0; m < 2; ++m) {
      const ModelRecipe &now = recipe->modules[m].model, &was = plain->modules[m].model;
      const auto size = [](const ModelRecipe& model, const char* name) { return *SizeOf(model.numbers, name); };
      EXPECT_EQ(size(now, "hidden"), size(was, "hidden"));
      if (!CarriesLoss(now)) {
        EXPECT_EQ(now.pattern->size(), 16u);
        EXPECT_EQ(size(now, "projector.hidden"), 512);
        EXPECT_NE(was.pattern->size(), 16u);
        continue;
      }
      EXPECT_EQ(*now.pattern, *was.pattern);
      EXPECT_EQ(*RealOf(now.numbers, "moe.scale"), *RealOf(was.numbers, "moe.scale"));
      EXPECT_EQ(size(now, "vocabulary"), size(was, "vocabulary"));
    }
    const auto text = TextOfStarted(*started, {"models.radio_vit_h.layers=16"}, "", "recipe.yaml");
    ASSERT_TRUE(text.ok());
    EXPECT_THAT(*text, HasSubstr("\n    heads: 16\n")) << "the text of the file";
    EXPECT_THAT(*text, HasSubstr("# 16 heads of 80")) << "comments stay";
    EXPECT_FALSE(TextOfStarted(*started, {"models.radio_vit_h"}, "", "recipe.yaml").ok()) << "it is no override";
  }
}

TEST(StartedRecipe, TakesOverridesOfADecoder) {
  Diagnostics problems;
  const auto started = StartRecipe("llama_3_1_8b", 8, problems);
  ASSERT_TRUE(started.ok()) << started.status();
  const auto plain = ReadStarted(*started, {});
  const auto recipe = ReadStarted(*started, {"models.llama_3_1_8b.layers=4", "models.llama_3_1_8b.rope.factor=32.0"});
  ASSERT_TRUE(plain && recipe);
  const ModelRecipe &now = recipe->modules[0].model, &was = plain->modules[0].model;
  EXPECT_EQ(was.pattern->size(), 64u);
  EXPECT_EQ(*now.pattern, "*-*-*-*-");
  EXPECT_EQ(*RealOf(now.numbers, "rope.factor"), 32);
  EXPECT_EQ(*RealOf(now.numbers, "rope.theta"), 500000);
  EXPECT_THAT(YamlText(started->own), Not(HasSubstr("lints"))) << "it has no experts";
}

// The models of another program have a token of their own, which `plan import` writes beside them.
TEST(StartedRecipe, KeepsTheImageTokenOfTheFile) {
  const BuiltInModel& model = BuiltInModels().front();
  const std::string path = ::testing::TempDir() + "/models_with_token.yaml";
  std::ofstream(path) << model.text << "\ndata: {image_token: 256}\n";
  Diagnostics problems;
  const auto own = StartRecipe(model.name, 8, problems), of_file = StartRecipe(path, 8, problems);
  ASSERT_TRUE(own.ok() && of_file.ok()) << of_file.status();
  EXPECT_THAT(YamlText(own->own), HasSubstr("image_token: 511"));
  EXPECT_THAT(YamlText(of_file->own), Not(HasSubstr("image_token")));
}

TEST(StartedRecipe, HasANameThatCanBeWritten) {
  for (const auto& [file, name] : std::vector<std::pair<std::string, std::string>>{
           {"my model", "my_model_8g"}, {"m\xc3\xbc", "m__8g"}, {"m(1)", "m_1__8g"}, {"1.5-b", "1.5-b_8g"}}) {
    const std::string path = ::testing::TempDir() + "/" + file + ".yaml";
    std::ofstream(path) << BuiltInModels().front().text;
    Diagnostics problems;
    const auto started = StartRecipe(path, 8, problems);
    ASSERT_TRUE(started.ok()) << started.status();
    EXPECT_EQ(started->own.Find("name")->value.text, name);
    EXPECT_TRUE(TextOfStarted(*started, {}, "", "recipe.yaml").ok()) << file;
    std::filesystem::remove(path);
  }
}

TEST(StartedRecipe, SaysWhichModelsThereAre) {
  Diagnostics problems;
  EXPECT_THAT(std::string(StartRecipe("nemotron_moe_vlm_20", 8, problems).status().message()),
              HasSubstr("did you mean `nemotron_moe_vlm_20l`"));
  EXPECT_THAT(std::string(StartRecipe("llama", 8, problems).status().message()), HasSubstr("nemotron_moe_vlm_54l"));
  EXPECT_FALSE(StartRecipe("none.yaml", 8, problems).ok());
  EXPECT_TRUE(problems.has_errors()) << "the file is not there";
}

TEST(TunableKeys, AreThoseThatFixMayName) {
  Diagnostics problems;
  const auto recipe = ReadRecipe(InSource("recipes/nemotron_moe_vlm_tiny.yaml"), {}, problems);
  ASSERT_TRUE(recipe);
  EXPECT_THAT(TunableKeys(*recipe), Contains("modules.radio_encoder.parallel.tp"));
  EXPECT_TRUE(CheckFixedKeys(*recipe, {"modules", "modules.language", "modules.language.parallel", "gradients",
                                       "batch.micro_samples", "modules.language.recompute"})
                  .ok());
  const std::string problem(CheckFixedKeys(*recipe, {"modules.language.parallel.tq", "batch.global_samples", "",
                                                     "modules.language.parallel.dp"})
                                .message());
  EXPECT_THAT(problem, HasSubstr("did you mean `modules.language.parallel.tp`"));
  EXPECT_THAT(problem, HasSubstr("does not change `batch.global_samples`"));
  EXPECT_THAT(problem, HasSubstr("does not change ``"));
  EXPECT_THAT(problem, HasSubstr("dp` follows from placement.ranks, tp, cp and pp: fix these"));
}

}  // namespace
}  // namespace planwright
