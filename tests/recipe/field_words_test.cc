// Words of other programs, keys of another level, and numbers in another way of writing.
#include "planner/recipe/field_words.h"

#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/scalar.h"
#include "tests/recipe/temp_recipes.h"

namespace planwright {
namespace {

TEST(FieldWords, NameKeysOfTheTableAndAreNone) {
  std::set<std::string_view> words, paths;
  for (const KeySpec& spec : RecipeKeys()) paths.insert(spec.path);
  EXPECT_GE(FieldWords().size(), 80u);
  for (const FieldWord& word : FieldWords()) {
    EXPECT_TRUE(words.insert(word.word).second) << word.word;
    for (const std::string& key : std::vector<std::string>(absl::StrSplit(std::string(word.keys), '|'))) {
      EXPECT_TRUE(paths.contains(key) || (key.empty() && word.unit == FieldUnit::Always)) << word.word << " " << key;
      if (word.unit != FieldUnit::Constant)
        EXPECT_NE(key.substr(key.rfind('.') + 1), word.word) << "a key of this name is known by its level";
    }
  }
}

TEST(FieldWords, AreFoundHoweverTheyAreWritten) {
  for (const char* written : {"train_iters", "--train-iters", "train-iters", "trainIters"}) {
    const FieldWord* word = FindFieldWord(written);
    ASSERT_NE(word, nullptr) << written;
    EXPECT_EQ(word->keys, "budget.train_samples");
  }
  EXPECT_EQ(FindFieldWord("train"), nullptr);
  EXPECT_EQ(ChoiceMeant("models.<name>.kind", "GPT2"), "hybrid_lm");
  EXPECT_EQ(ChoiceMeant("data.kind", "gpt2"), "");
}

// The problems of a small recipe with these overrides, each with its help.
std::string Said(const std::vector<std::string>& overrides) {
  TempRecipes files;
  const std::string path = files.Write("r.yaml", kSmallRecipe);
  Diagnostics problems;
  ReadRecipe(path, overrides, problems);
  std::string said;
  for (const Diagnostic& problem : problems.as_found()) said += problem.message + ": " + problem.help + "\n";
  return said;
}

TEST(FieldWords, AreAnsweredWithTheKeyAndItsUnit) {
  EXPECT_EQ(Said({"optimizer.lr=1e-4"}),
            "unknown key \"lr\" in `optimizer`: `lr` of Megatron-LM is `budget.learning_rate.peak` here: write "
            "budget.learning_rate.peak=1e-4\n");
  EXPECT_EQ(
      Said({"batch.global_samples=8", "budget.train_iters=100"}),
      "unknown key \"train_iters\" in `budget`: `train_iters` of Megatron-LM is `budget.train_samples` here, counted "
      "in samples, not in steps: write budget.train_samples=800 (100 x global_samples)\n");
  EXPECT_EQ(Said({"optimizer.weight_decay=0.1"}),
            "unknown key \"weight_decay\" in `optimizer`: `weight_decay` of Megatron-LM is `budget.weight_decay` here: "
            "write budget.weight_decay={start: 0.1, end: 0.1}\n");
  EXPECT_EQ(Said({"optimizer.adam_beta2=0.98"}),
            "unknown key \"adam_beta2\" in `optimizer`: `adam_beta2` of Megatron-LM is `betas` here: write "
            "optimizer.betas=[0.9, 0.98]\n");
  EXPECT_EQ(Said({"parallelism.tensor_parallel_degree=1"}),
            "unknown key \"tensor_parallel_degree\" in `parallelism`: `tensor_parallel_degree` of torchtitan is "
            "`modules.language.parallel.tp` here: write modules.language.parallel.tp=1\n");
  EXPECT_EQ(
      Said({"modules.language.sequence_parallel=true"}),
      "unknown key \"sequence_parallel\" in `modules.language`: remove it: what `sequence_parallel` of Megatron-LM "
      "says holds always here, or follows\n");
  EXPECT_EQ(Said({"modules.language.tp=1"}),
            "unknown key \"tp\" in `modules.language`: did you mean `modules.language.parallel.tp=1`?\n");
  EXPECT_EQ(Said({"seed=7"}), "unknown key \"seed\": did you mean `data.seed=7`?\n");
}

// The help and the edits of the first problem of a recipe that extends the small one.
std::string SaidOfExtending(const std::string& base, const std::string& text) {
  TempRecipes files;
  files.Write("base.yaml", base);
  Diagnostics problems;
  ReadRecipe(files.Write("r.yaml", "extends: [base.yaml]\n" + text), {}, problems);
  if (problems.as_found().empty()) return "";
  const Diagnostic& problem = problems.as_found()[0];
  std::string said = problem.help;
  for (const Edit& edit : problem.edits) said += "; " + edit.path + "=" + edit.value;
  return said;
}

TEST(FieldWords, WinOverTheFilesThatTheirFileExtends) {
  const std::string size = "`global_batch_size` of Megatron-LM is `";
  EXPECT_EQ(SaidOfExtending(kSmallRecipe, "batch: {global_batch_size: 64}\n"),
            size + "global_samples` here: write global_samples: 64; batch.global_batch_size=; batch.global_samples=64");
  EXPECT_EQ(SaidOfExtending(kSmallRecipe, "batch: {global_batch_size: 64, global_samples: 8}\n"),
            size + "batch.global_samples` here, which the recipe has: remove this; batch.global_batch_size=");
  EXPECT_EQ(SaidOfExtending(std::string(kSmallRecipe) + "optimizer: {betas: [0.8, 0.9]}\n",
                            "optimizer: {adam_beta2: 0.98}\n"),
            "`adam_beta2` of Megatron-LM is `betas` here: write betas: [0.8, 0.98]; optimizer.adam_beta2=; "
            "optimizer.betas=[0.8, 0.98]");
  // The other way round the value of the recipe stays.
  std::string base = kSmallRecipe;
  base.replace(base.find("global_samples: 4"), 17, "global_batch_size: 64");
  EXPECT_EQ(SaidOfExtending(base, "batch: {global_samples: 8}\n"),
            size + "global_samples` here: write global_samples: 64; batch.global_batch_size=");
}

TEST(FieldWords, NamesOfOverridesAreNearToThoseOfTheRecipe) {
  EXPECT_EQ(Said({"modules.langage.parallel.tp=1"}),
            "there is no module \"langage\": did you mean `modules.language.parallel.tp=1`?\n");
  EXPECT_EQ(Said({"modules.eyes.parallel.tp=1"}), "there is no module \"eyes\": the modules are language\n");
}

TEST(FieldWords, DevicesThatHaveOnlyADataSheetAreTold) {
  for (const std::string device : {"h100_pcie", "h200_nvl", "b200", "gb200", "mi300x"}) {
    const std::string said = Said({"cluster={nodes: 1, gpus_per_node: 8, gpu: " + device + "}"});
    EXPECT_NE(said.find(device + " is known by its data sheet only"), std::string::npos) << said;
    EXPECT_NE(said.find("write gpu: other, and device: {memory: "), std::string::npos) << said;
  }
}

TEST(Numbers, AreRewrittenExactly) {
  const std::pair<const char*, const char*> numbers[] = {{".0003", "0.0003"},
                                                         {"5.", "5"},
                                                         {"+5", "5"},
                                                         {"1_000", "1000"},
                                                         {"1e6", "1000000"},
                                                         {"2.5e-3", "0.0025"},
                                                         {"8k", "8000"},
                                                         {"10M", "10000000"},
                                                         {"1.5B", "1500000000"},
                                                         {"1,000,000", "1000000"},
                                                         {"two", "2"},
                                                         {"1,5", ""},
                                                         {"1e-30", ""},
                                                         {"x", ""},
                                                         {"-.5", "-0.5"}};
  for (const auto& [written, meant] : numbers) EXPECT_EQ(RewrittenNumber(written, false, false), meant) << written;
  EXPECT_EQ(RewrittenNumber("8k", true, true), "8192");
  EXPECT_EQ(RewrittenNumber("0.5", true, false), "");
  EXPECT_EQ(RewrittenNumber("96.0", true, false), "96");
}

}  // namespace
}  // namespace planwright
