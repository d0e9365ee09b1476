// Words of other programs, keys of another level, and numbers in another way of writing.
#include "planner/recipe/field_words.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/recipe/other_devices.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/scalar.h"
#include "planner/recipe/units.h"
#include "tests/recipe/temp_recipes.h"

namespace planwright {
namespace {

TEST(FieldWords, NameKeysOfTheTableAndAreNone) {
  std::set<std::string_view> words, paths;
  for (const KeySpec& spec : RecipeKeys()) paths.insert(spec.path);
  EXPECT_GE(FieldWords().size(), 400u);
  for (const FieldWord& word : FieldWords()) {
    EXPECT_TRUE(words.insert(word.word).second) << word.word;
    EXPECT_EQ(word.keys.empty(), word.unit == FieldUnit::None) << word.word;
    for (const std::string& key : KeysOfWord(word)) {
      EXPECT_TRUE(paths.contains(key)) << word.word << " " << key;
      if (word.unit != FieldUnit::Constant)
        EXPECT_NE(key.substr(key.rfind('.') + 1), word.word) << "a key of this name is known by its level";
    }
    // A word without a key, or with other values, says why.
    if (word.unit == FieldUnit::None || word.unit == FieldUnit::Words || word.unit == FieldUnit::Follows)
      EXPECT_FALSE(word.why.empty()) << word.word;
    EXPECT_EQ(FindFieldWord(word.word), &word);
  }
}

TEST(FieldWords, AreFoundHoweverTheyAreWritten) {
  for (const char* written : {"train_iters", "--train-iters", "train-iters", "trainIters"}) {
    const FieldWord* word = FindFieldWord(written);
    ASSERT_NE(word, nullptr) << written;
    EXPECT_EQ(word->keys, "budget.train_samples");
  }
  EXPECT_EQ(FindFieldWord("train"), nullptr);
  EXPECT_EQ(FindChoiceWord("models.<name>.kind", "GPT2")->choice, "decoder");
  EXPECT_EQ(FindChoiceWord("data.kind", "gpt2"), nullptr);
}

TEST(FieldWords, AreFoundInTheMapsOfTheirPrograms) {
  const std::pair<const char*, const char*> paths[] = {
      {"training.seq_len", "batch.sequence_length"},
      {"--parallelism.tensor_parallel_degree", "modules.<name>.parallel.tp"},
      {"model.optim.lr", "budget.learning_rate.peak|optimizer.parts[].learning_rate"},
      {"trainer.max_steps", "budget.train_samples"},
      {"checkpoint.interval", "checkpoint.every_steps"},
      {"trainer.precision", "precision.params"},
      {"activation_checkpoint.mode", "modules.<name>.recompute"}};
  for (const auto& [path, key] : paths) {
    const FieldWord* word = FindFieldWord(path);
    ASSERT_NE(word, nullptr) << path;
    EXPECT_EQ(word->keys, key) << path;
  }
  for (const char* other : {"interval", "mode", "other.mode", "checkpoint.interval.x", ".", ""})
    EXPECT_EQ(FindFieldWord(other), nullptr) << other;
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

TEST(FieldWords, DeepStackIsInPatternsAndVideosAreRefusedByName) {
  EXPECT_THAT(Said({"models.lm.deepstack_visual_indexes=[5]"}),
              ::testing::HasSubstr("a letter D behind each of these blocks"));
  EXPECT_THAT(Said({"data.video_token_id=5"}), ::testing::HasSubstr("videos are not trained"));
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
  EXPECT_EQ(Said({"optimizer.parts=[{match: language, lr: 1e-4}]"}),
            "unknown key \"lr\" in `optimizer.parts[0]`: `lr` of Megatron-LM is `learning_rate` here: write "
            "learning_rate: 1e-4\n");
  EXPECT_EQ(Said({"budget.learning_rate.vision_tower_lr=1e-6"}),
            "unknown key \"vision_tower_lr\" in `budget.learning_rate`: `vision_tower_lr` of LLaVA is "
            "`optimizer.parts` here: its item {match: ENCODER.backbone, learning_rate: RATE}\n");
  EXPECT_EQ(Said({"optimizer.adam_beta2=0.98"}),
            "unknown key \"adam_beta2\" in `optimizer`: `adam_beta2` of Megatron-LM is `betas` here: write "
            "optimizer.betas=[0.9, 0.98]\n");
  EXPECT_EQ(Said({"parallelism.tensor_parallel_degree=1"}),
            "unknown key \"tensor_parallel_degree\" in `parallelism`: `tensor_parallel_degree` of torchtitan is "
            "`modules.language.parallel.tp` here: write modules.language.parallel.tp=1\n");
  EXPECT_EQ(Said({"modules.language.sequence_parallel=true"}),
            "unknown key \"sequence_parallel\" in `modules.language`: remove it: `sequence_parallel` of Megatron-LM is "
            "no key "
            "here: with tp above 1, a language model always cuts activations between layers along the sequence\n");
  EXPECT_EQ(Said({"modules.language.tp=1"}),
            "unknown key \"tp\" in `modules.language`: did you mean `modules.language.parallel.tp=1`?\n");
  EXPECT_EQ(Said({"seed=7"}), "unknown key \"seed\": did you mean `data.seed=7`?\n");
}

// `train_steps` is near to `train_samples` by letters, which would make samples of steps.
TEST(FieldWords, StepsAreNeverTakenForSamples) {
  for (const char* steps : {"budget.train_steps", "train_steps", "budget.max_steps", "budget.num_steps",
                            "budget.total_steps", "budget.num_train_steps", "budget.max_train_steps"}) {
    const std::string said = Said({"batch.global_samples=8", std::string(steps) + "=100"});
    EXPECT_NE(said.find("write budget.train_samples=800 (100 x global_samples)"), std::string::npos) << said;
  }
}

TEST(FieldWords, FamiliesOfModelsAreToldTheirKindAndWhatIsMissing) {
  const auto said = [](const std::string& family) { return Said({"models.lm.kind=" + family}); };
  for (const char* family : {"llama", "llama3", "qwen2", "qwen3", "qwen3_moe"})
    EXPECT_NE(said(family).find("did you mean `decoder`?\n"), std::string::npos) << said(family);
  const std::pair<const char*, const char*> others[] = {{"mistral", "Attention has no window."},
                                                        {"gpt", "Its blocks are those of Llama and Qwen3"},
                                                        {"deepseek_v3", "Attention has grouped queries, and no latent"},
                                                        {"qwen3_next", "Gated-delta layers are not built yet."}};
  for (const auto& [family, why] : others)
    EXPECT_NE(said(family).find("did you mean `decoder`? " + std::string(why)), std::string::npos) << said(family);
}

// A word is a key of some kinds of models, and is removed from the others.
TEST(FieldWords, OfModelsAreAnsweredByTheKind) {
  const std::string decoder =
      "models.lm={kind: decoder, layers: 1, hidden: 32, vocabulary: 64, attention: {heads: 4, head_dim: 8, kv_groups: "
      "2}, mlp: {ffn: 64}}";
  const auto said = [&](const std::string& word) { return Said({decoder, word}); };
  EXPECT_EQ(Said({"models.lm.rope_theta=5e5"}),
            "unknown key \"rope_theta\" in `models.lm`: remove it: `rope_theta` of Transformers is "
            "`models.lm.rope.theta` here, which exists only for kind decoder, but the kind here is hybrid_lm\n");
  EXPECT_EQ(
      said("models.lm.moe={experts: 4, top_k: 1, ffn: 8, normalized: true, "
           "moe_shared_expert_intermediate_size: 8}"),
      "unknown key \"moe_shared_expert_intermediate_size\" in `models.lm.moe`: remove it: "
      "`moe_shared_expert_intermediate_size` of Megatron-LM is `models.lm.moe.shared_ffn` here, which exists only "
      "for kind hybrid_lm, but the kind here is decoder\n");
  EXPECT_EQ(said("models.lm.rope_theta=5e5"),
            "unknown key \"rope_theta\" in `models.lm`: `rope_theta` of Transformers is `models.lm.rope.theta` here: "
            "write models.lm.rope.theta=5e5\n");
  EXPECT_EQ(said("models.lm.attention_bias=true"),
            "unknown key \"attention_bias\" in `models.lm`: `attention_bias` of Transformers is "
            "`models.lm.attention.biases` here: write models.lm.attention.biases=all\n");
  EXPECT_EQ(said("models.lm.untie_embeddings_and_output_weights=true"),
            "unknown key \"untie_embeddings_and_output_weights\" in `models.lm`: `untie_embeddings_and_output_weights` "
            "of Megatron-LM is `tied` here: write models.lm.tied=false\n");
  EXPECT_EQ(said("models.lm.num_hidden_layers=2"),
            "unknown key \"num_hidden_layers\" in `models.lm`: `num_hidden_layers` of Transformers is `layers` here: "
            "write models.lm.layers=2\n");
  EXPECT_EQ(said("models.lm.attention.num_key_value_heads=4"),
            "unknown key \"num_key_value_heads\" in `models.lm.attention`: `num_key_value_heads` of Transformers is "
            "`kv_groups` here: write models.lm.attention.kv_groups=4\n");
  EXPECT_EQ(said("models.lm.rope_scaling={rope_type: llama3, factor: 8.0}"),
            "unknown key \"rope_type\" in `models.lm.rope_scaling`: `rope_type` of Transformers is "
            "`models.lm.rope.scaling` here: write models.lm.rope.scaling=llama3\n"
            "unknown key \"factor\" in `models.lm.rope_scaling`: `rope_scaling.factor` of Transformers is "
            "`models.lm.rope.factor` here: write models.lm.rope.factor=8.0\n");
}

TEST(FieldWords, DataOfOtherProgramsAreSources) {
  EXPECT_NE(Said({"data={path: corpus_text_document}"})
                .find("ids of Megatron-LM (PATH.bin and PATH.idx) are data: {kind: sources, sources: [{kind: tokens, "
                      "path: corpus_text_document}]}"),
            std::string::npos);
  EXPECT_NE(Said({"data={kind: megatron}"}).find("did you mean `sources`? Ids in PATH.bin"), std::string::npos);
  for (const char* kind : {"hf", "jsonl", "parquet"}) {
    const std::string said = Said({"data={kind: " + std::string(kind) + "}"});
    EXPECT_NE(said.find("[./dev] prepare --tokenizer FOLDER -o shards FILE makes shards of it before the run; then "
                        "write data: {kind: sources, sources: [{kind: webdataset, shards: \"shards/*.tar\"}]}"),
              std::string::npos)
        << said;
  }
  EXPECT_NE(Said({"modules.language.recompute=[moe_act]"}).find("did you mean `elementwise`? It repeats norms"),
            std::string::npos);
}

// What is said of a word in a recipe is what `plan explain` says of it, and nothing else is told.
TEST(FieldWords, AreOneProblemWhateverTheirValue) {
  EXPECT_EQ(Said({"training.mixed_precision_param=bfloat16"}),
            "unknown key \"mixed_precision_param\" in `training`: `mixed_precision_param` of torchtitan is "
            "`precision.params` here: write precision.params=bf16\n");
  EXPECT_EQ(Said({"torch_dtype=auto"}),
            "unknown key \"torch_dtype\": `torch_dtype` of Transformers is `precision.params` here: bf16, fp32, fp64; "
            "found the text \"auto\"\n");
  EXPECT_EQ(Said({"training.seed=7"}), "unknown key \"seed\" in `training`: did you mean `data.seed=7`?\n");
  EXPECT_EQ(Said({"models.lm.max_position_embeddings=4096"}),
            "unknown key \"max_position_embeddings\" in `models.lm`: remove it: `max_position_embeddings` of "
            "Megatron-LM is no key here: language models have no table of positions; the length of a sample is "
            "batch.sequence_length\n");
  EXPECT_EQ(Said({"modules.language.recompute_granularity=selective"}),
            "unknown key \"recompute_granularity\" in `modules.language`: `recompute_granularity` of Megatron-LM is "
            "`recompute` here: write modules.language.recompute=none; `full` stays, and `selective` is none: flash "
            "attention keeps no scores; elementwise and kinds of layers are other choices\n");
  for (const char* removed : {"deepspeed={zero_optimization: {stage: 3}}", "lora={r: 8}", "save=/checkpoints",
                              "model.converters=[float8]", "parallelism.fsdp_reshard_after_forward=always"}) {
    const std::string said = Said({removed});
    EXPECT_NE(said.find("remove it: `"), std::string::npos) << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  }
  // A key that the recipe has only by such a word is not missing, too.
  std::string recipe = kSmallRecipe;
  const size_t at = recipe.find("train_samples:");
  ASSERT_NE(at, std::string::npos);
  recipe.replace(at, recipe.find_first_of(",\n}", at) - at, "num_train_epochs: 3");
  TempRecipes files;
  Diagnostics problems;
  ReadRecipe(files.Write("r.yaml", recipe), {}, problems);
  ASSERT_EQ(problems.as_found().size(), 1u);
  EXPECT_EQ(
      problems.as_found()[0].help,
      "`num_train_epochs` of Transformers is `budget.train_samples` here: the samples of an epoch times the epochs");
}

// PEFT's own words, in our section. One in another place is moved first.
TEST(FieldWords, OfPeftAreKeysOfOurSection) {
  TempRecipes files;
  const auto mended = [&](const std::string& words) {
    Diagnostics problems;
    ReadRecipe(files.Write("r.yaml", kSmallRecipe), {words, "modules.language.train.backbone=frozen"}, problems);
    std::string edits;
    for (const Diagnostic& problem : problems.as_found()) {
      for (const Edit& edit : problem.edits) edits += edit.path + "=" + edit.value + "; ";
    }
    return edits;
  };
  EXPECT_EQ(mended("modules.language.adapter={r: 8, alpha: 16, target_modules: [q_proj]}"),
            "modules.language.adapter.r=; modules.language.adapter.rank=8; "
            "modules.language.adapter.target_modules=; modules.language.adapter.targets=[q_proj]; ");
  EXPECT_EQ(mended("adapter={r: 8}"), "adapter=; modules.language.adapter={r: 8}; ");
}

// A recipe with a word of another program gets the answer that `plan explain` gives (tests/recipe/explain).
TEST(FieldWords, AreAllAnsweredWithTheirKeyOrWhyThereIsNone) {
  TempRecipes files;
  for (const FieldWord& word : FieldWords()) {
    const std::string path = word.word.find('.') == std::string_view::npos ? "of_another.x." + std::string(word.word)
                                                                           : std::string(word.word);
    std::string text = kSmallRecipe, maps = path, indent;
    if (path.starts_with("evaluation.") || path.starts_with("optimizer.") || path.starts_with("checkpoint.")) {
      text += path.substr(0, path.find('.')) + ": {" + path.substr(path.find('.') + 1) + ": 1}\n";
    } else {
      for (size_t dot; (dot = maps.find('.')) != std::string::npos; maps = maps.substr(dot + 1), indent += "  ")
        text += indent + maps.substr(0, dot) + ":\n";
      text += indent + maps + ": 1\n";
    }
    Diagnostics problems;
    ReadRecipe(files.Write("r.yaml", text), {}, problems);
    const std::string message = "unknown key \"" + path.substr(path.rfind('.') + 1) + "\"";
    const auto told = std::find_if(problems.as_found().begin(), problems.as_found().end(),
                                   [&](const Diagnostic& problem) { return problem.message.starts_with(message); });
    ASSERT_NE(told, problems.as_found().end()) << path;
    const std::string last(word.keys.substr(word.keys.rfind('.') + 1));
    EXPECT_NE(told->help.find(word.keys.empty() ? word.why : std::string_view(last)), std::string::npos)
        << path << ": " << told->help;
  }
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
            size + "batch.global_samples` here: 64; the recipe has 8: keep one of the two; batch.global_batch_size=");
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

// A row of other_devices.cc goes when its word becomes a device of cluster.gpu, whose figures the program has then.
TEST(FieldWords, NoDeviceOfClusterGpuHasOnlyADataSheet) {
  const KeySpec* gpu = FindKey("cluster", "gpu", "");
  ASSERT_NE(gpu, nullptr);
  for (const std::string& choice : ChoicesOf(*gpu)) {
    EXPECT_EQ(FiguresOfDevice(choice), "") << choice << ": remove its row in other_devices.cc";
    EXPECT_EQ(Said({"cluster={gpu: " + choice + "}"}).find("data sheet"), std::string::npos) << choice;
  }
  EXPECT_NE(FiguresOfDevice("b200"), "");
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
  EXPECT_EQ(RewrittenNumber("1" + std::string(60, '_'), true, false), "1");
  EXPECT_EQ(RewrittenNumber("1" + std::string(100'000, '_'), true, false), "") << "too long to be one";
  EXPECT_EQ(RewrittenNumber("0.5", true, false), "");
  EXPECT_EQ(RewrittenNumber("96.0", true, false), "96");
}

}  // namespace
}  // namespace planwright
