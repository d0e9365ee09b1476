#include "tests/cli/any_bytes.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "planner/base/text/bug.h"
#include "planner/base/text/limits.h"
#include "planner/recipe/yaml/yaml_tree.h"
#include "tests/cli/any_bytes_inputs.h"
#include "tests/support/folders.h"
#include "tests/support/longest_recipes.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;

const std::string kRecipes = InSource("recipes/");
const std::string kRecipe = kRecipes + "nemotron_moe_vlm_20l_mock_8r.yaml";

// The longest recipes that limits allow, made of each piece that could slow a scanner, a parser or a problem list.
void AsMuchAsThereMayBeOfAnything(const Inputs& in) {
  const char* pieces[] = {"[",
                          "{",
                          "{a: ",
                          "- ",
                          "? ",
                          ": ",
                          "a: ",
                          "- - ",
                          "\n",
                          " ",
                          "\"",
                          "'",
                          "''",
                          "\\",
                          "\"\\",
                          "#",
                          "# \n",
                          "|\n",
                          ">\n ",
                          "%",
                          "@",
                          "`",
                          "!",
                          "!a ",
                          "&a ",
                          "*a ",
                          "*a\n",
                          "<<: ",
                          "---\n",
                          "...\n",
                          "]",
                          "}",
                          ",",
                          "[],",
                          "{},",
                          "a\n",
                          "a: b\n",
                          "? a\n",
                          "- a\n",
                          "-\n",
                          "a:\n",
                          "a: [",
                          "x",
                          "1",
                          "\t",
                          "\xc3\xa4",
                          "\xe2\x80\x8b",
                          "\xf0\x9f\x9a\x80",
                          "a: 'b\n",
                          "a: \"b\n",
                          "[a, b]\n",
                          "[[], ",
                          "{a: 1}\n",
                          "a: {b: c}\n",
                          "modules:\n",
                          "&a [*a, ",
                          "-1.5e300, "};
  for (const char* piece : pieces) {
    for (const char* before : {"", "x: [", "models: {a: {", "- "}) {
      in.Refused({"validate", in.Write("r.yaml", before + Times(kLargestRecipe - 16, piece))},
                 std::string(before) + piece);
    }
  }
}

void KeysThatDiffer(const Inputs& in) {
  std::string keys, nested = "modules:\n", names = "models: {";
  for (int i = 0; keys.size() < kLargestRecipe - 32; ++i) keys += "k" + std::to_string(i) + ": 1\n";
  for (int i = 0; nested.size() < kLargestRecipe - 64; ++i)
    nested += " m" + std::to_string(i) + ": {modle: x, placment: {ranks: -1}}\n";
  for (int i = 0; names.size() < kLargestRecipe - 64; ++i) names += "m" + std::to_string(i) + ": {kind: hybrid_lm}, ";
  std::string models = "models: {", modules = "modules: {";
  for (int i = 0; models.size() < kLargestRecipe / 2 - 64; ++i)
    models += "model_of_a_long_name_" + std::to_string(i) + ": {kind: hybrid_lm}, ";
  for (int i = 0; modules.size() < kLargestRecipe / 2 - 64; ++i)
    modules += "m" + std::to_string(i) + ": {model: model_of_long_name_" + std::to_string(i) + "}, ";
  in.Refused({"validate", in.Write("references.yaml", models + "}\n" + modules + "}\n")});
  for (const char* number : {",111", "_1", "1,", " two", "9", "0"})
    in.Refused({"validate", kRecipe, "batch.global_samples=1" + Times(100000, number)}, number);
  // Few problems, so that values are tried, in a recipe that takes long to read.
  std::string few = keys.substr(0, keys.find("k150:")) + "extends: [" + kRecipe + "]\nbig: [1";
  few += Times(kLargestRecipe - few.size() - fs::file_size(kRecipe) - 16, ", 1") + "]\n";
  in.Refused({"validate", in.Write("few.yaml", few), "batch.global_samples=7", "modules.language.parallel.tp=3"});
  in.Refused({"validate", in.Write("keys.yaml", keys)});
  in.Refused({"validate", in.Write("nested.yaml", nested)});
  in.Refused({"validate", in.Write("names.yaml", names + "}")});
  in.Refused({"validate", in.Write("keys.yaml", keys), "--json"});
}

void NestingAndAliasBombs(const Inputs& in) {
  std::string block, bomb = "a: &a [x, x]\n";
  for (int depth = 0; depth < 1000; ++depth) block += std::string(depth, ' ') + "a:\n";
  for (char c = 'b'; c < 'z'; ++c)
    bomb += std::string(1, c) + ": &" + c + " [*" + char(c - 1) + ", *" + char(c - 1) + ", *" + char(c - 1) + "]\n";
  in.Refused({"validate", in.Write("block.yaml", block)});
  in.Refused({"validate", in.Write("bomb.yaml", bomb)});
}

void WrongEncodings(const Inputs& in) {
  std::ifstream file(kRecipe);
  const std::string good((std::istreambuf_iterator<char>(file)), {});
  std::string wide_little = "\xff\xfe", wide_big = "\xfe\xff", with_nul = good;
  for (char c : good) (wide_little += c) += '\0', (wide_big += '\0') += c;
  with_nul[good.size() / 2] = '\0';
  for (const std::string& bytes :
       {wide_little, wide_big, wide_little.substr(2), with_nul, "\xef\xbb\xbf" + good, good + "\xe9",
        std::string("\0", 1), std::string(1000, '\0'), std::string("\xff"), std::string()}) {
    in.Refused({"validate", in.Write("r.yaml", bytes)});
    in.Refused({"validate", in.Write("p.json", bytes)});
  }
}

void HugeFiles(const Inputs& in) {
  const std::string kHundred = Times(100 << 20, "a: 1234567\n");
  in.Refused({"validate", in.Write("r.yaml", kHundred)});
  in.Refused({"validate", in.Write("p.json", kHundred)});
  for (const char* name : {"hole.yaml", "hole.json"}) {
    const std::string path = in.Write(name, "");
    fs::resize_file(path, uintmax_t{1} << 40);
    in.Refused({"validate", path});
  }
}

void PathsThatAreNoPlainFiles(const Inputs& in) {
  Require(mkfifo((in.folder() + "/fifo").c_str(), 0600) == 0, "no fifo in " + in.folder());
  fs::create_symlink("loop", in.folder() + "/loop");
  fs::create_directory(in.folder() + "/folder");
  const std::vector<std::string> targets = {"/dev/zero",
                                            "/dev/full",
                                            "/proc/self/mem",
                                            "/proc/kmsg",
                                            "/proc/self/fd/0",
                                            in.folder() + "/fifo",
                                            in.folder() + "/loop",
                                            in.folder() + "/folder",
                                            in.folder() + "/absent",
                                            std::string(5000, 'x'),
                                            "\xff\xfe",
                                            ""};
  for (const std::string& target : targets) {
    in.Refused({"validate", target});
    in.Refused({"validate", in.Write("r.yaml", "extends: [\"" + target + "\"]\n")}, target);
    if (target.size() > 100 || target.empty()) continue;
    for (const char* name : {"/link.yaml", "/link.json"}) {
      fs::remove(in.folder() + name);
      fs::create_symlink(target, in.folder() + name);
      in.Refused({"validate", in.folder() + name});
      in.Ends({"compile", kRecipe, "-o", in.folder() + name + "/below"});  // a folder of that name may be created
    }
  }
}

void RecipesThatExtendEachOther(const Inputs& in) {
  in.Refused({"validate", in.Write("self.yaml", "extends: [self.yaml]\n")});
  in.Write("b.yaml", "extends: [c.yaml]\n");
  in.Write("c.yaml", "extends: [./../" + fs::path(in.folder()).filename().string() + "/b.yaml]\n");
  in.Refused({"validate", in.folder() + "/b.yaml"});
  for (int i = 0; i < 40; ++i) {  // 2^40 paths through `extends`
    const std::string next = std::to_string(i + 1) + ".yaml";
    in.Write(std::to_string(i) + ".yaml", "extends: [" + next + ", " + next + "]\n");
  }
  in.Write("40.yaml", "name: x\n");
  in.Refused({"validate", in.folder() + "/0.yaml"});
  in.Refused(
      {"validate", in.Write("many.yaml", "extends: [" + Times(kLargestRecipe - 64, "40.yaml, ") + "40.yaml]\n")});
  in.Write("big.yaml", "b:\n" + Times(kLargestRecipe - 64, " - [1, 2]\n"));
  in.Refused({"validate", in.Write("bigs.yaml", "extends: [" + Times(60 * 10, "big.yaml, ") + "40.yaml]\n")});
}

void OverridesAndWords(const Inputs& in) {
  in.Refused({"validate", kRecipe, "a.b.c.d.e.f=1"});
  in.Refused({"validate", kRecipe, Times(100000, "a.") + "a=1"});
  in.Refused({"validate", kRecipe, "name=" + Times(100000, "[")});
  in.Refused({"validate", kRecipe, "=\xff"});
  in.Refused({"validate", kRecipe, "name=\xff"});
  in.Refused({"validate", kRecipe, "name=*a"});
  for (const int count : {1000, 1001, 50000}) {
    std::vector<std::string> unknown = {"validate", kRecipe}, deep = unknown;
    for (int i = 0; i < count; ++i)
      unknown.push_back("k" + std::to_string(i) + "=1"), deep.push_back("models.m.k" + std::to_string(i) + "=[]");
    in.Refused(unknown, std::to_string(count) + " overrides");
    in.Refused(deep, std::to_string(count) + " overrides of one map");
  }
  in.Refused({Times(100000, "x")});
  in.Refused({"validate", "--" + Times(100000, "x")});
  in.Refused({"show", kRecipe, Times(100000, "x")});
  in.Refused({"explain", Times(100000, "x")});
}

// Sizes that make a plan too large, or that overflow while it is made.
void RecipesOfHugeSizes(const Inputs& in) {
  const std::vector<std::string> biggest = {
      "1000000", "1048576", "2147483647", "4294967296", "9223372036854775807", "-9223372036854775808", "0"};
  const char* keys[] = {"batch.global_samples",
                        "batch.micro_samples",
                        "batch.sequence_length",
                        "budget.train_samples",
                        "budget.learning_rate.warmup_samples",
                        "budget.learning_rate.decay_samples",
                        "cluster.nodes",
                        "cluster.gpus_per_node",
                        "modules.language.placement.ranks",
                        "modules.language.placement.first_rank",
                        "modules.language.parallel.tp",
                        "modules.language.parallel.ep",
                        "modules.language.parallel.pp",
                        "modules.language.parallel.cp",
                        "gradients.buckets",
                        "data.min_images",
                        "data.max_images",
                        "data.classes",
                        "data.text_tokens",
                        "data.image_token",
                        "models.radio_vit_h.layers",
                        "models.radio_vit_h.hidden",
                        "models.radio_vit_h.heads",
                        "models.radio_vit_h.ffn",
                        "models.radio_vit_h.patch",
                        "models.radio_vit_h.class_tokens",
                        "models.radio_vit_h.max_image",
                        "models.radio_vit_h.pixel_shuffle",
                        "models.radio_vit_h.projector.hidden",
                        "models.nemotron_hybrid_moe_20l.hidden",
                        "models.nemotron_hybrid_moe_20l.vocabulary",
                        "models.nemotron_hybrid_moe_20l.attention.heads",
                        "models.nemotron_hybrid_moe_20l.attention.head_dim",
                        "models.nemotron_hybrid_moe_20l.mamba.heads",
                        "models.nemotron_hybrid_moe_20l.mamba.state",
                        "models.nemotron_hybrid_moe_20l.mamba.chunk",
                        "models.nemotron_hybrid_moe_20l.mamba.conv",
                        "models.nemotron_hybrid_moe_20l.moe.experts",
                        "models.nemotron_hybrid_moe_20l.moe.top_k",
                        "models.nemotron_hybrid_moe_20l.moe.ffn",
                        "log.every_steps",
                        "data.seed"};
  for (const char* key : keys) {
    for (const std::string& value : biggest) {
      in.Ends({"validate", kRecipe, std::string(key) + "=" + value});
    }
  }
  // Tens of thousands of microbatches; thousands of layers; a million ranks.
  for (const char* samples : {"1024", "2048", "2520", "4096", "65536"}) {
    in.Ends({"validate", kRecipe, std::string("batch.global_samples=") + samples, "budget.train_samples=131072",
             "budget.learning_rate.decay_samples=131072"});
  }
  in.Ends({"validate", kRecipe, "models.nemotron_hybrid_moe_20l.pattern=\"" + Times(4096, "ME*E") + "\""});
  in.Refused({"validate", kRecipe, "models.nemotron_hybrid_moe_20l.pattern=\"" + Times(100000, "ME*E") + "\""});
  in.Refused({"validate", kRecipe, "models.nemotron_hybrid_moe_20l.pattern=\"" + Times(100000, "x") + "\""});
  in.Refused({"validate", kRecipe, "models.nemotron_hybrid_moe_20l.pattern=\"" + Times(4096, "x") + "\""});
  in.Ends({"validate", kRecipe, "models.radio_vit_h.layers=4096"});
  for (const char* dp : {"1048576", "1048575", "1048572"}) {
    in.Ends({"validate", kRecipe, "cluster.nodes=131072", "modules.language.placement.ranks=" + std::string(dp),
             "batch.global_samples=4194304", "budget.train_samples=4194304",
             "budget.learning_rate.decay_samples=4194304"});
  }
}

void RecipesOfManyModules(const Inputs& in) {
  for (int count : {14, 15, 64, 1000}) {
    std::string modules = "extends: [" + kRecipe + "]\nmodules:\n", bridges = "bridges:\n";
    for (int i = 0; i < count; ++i) {
      modules += "  m" + std::to_string(i) + ": {model: radio_vit_h, placement: {first_rank: " + std::to_string(8 + i) +
                 ", ranks: 1}}\n";
      bridges += "  - {from: m" + std::to_string(i) + ", to: language, token: " + std::to_string(i) + "}\n";
    }
    in.Ends({"validate", in.Write("r.yaml", modules + bridges), "cluster.nodes=1000"});
  }
}

// Recipes at the limits, and their plans.
void LongestRecipes(const Inputs& in) {
  for (const LongShape& shape : LongestShapes()) {
    std::vector<std::string> arguments = {"validate", LongBase()};
    for (std::string& text : LongOverrides(shape, MostMicrobatches(shape))) arguments.push_back(std::move(text));
    in.Ends(arguments, shape.name);
    // Of these, advice makes more plans.
    arguments.push_back("cluster.device.memory=0.001");
    in.Refused(arguments, std::string(shape.name) + " on too small devices");
    arguments.pop_back();
    arguments[0] = "compile";
    arguments.insert(arguments.end(), {"-o", in.folder() + "/p.json"});
    in.Ends(arguments, shape.name);
    in.Ends({"validate", in.folder() + "/p.json"}, shape.name);
  }
}

template <void make(const Inputs&)>
void Make(const std::string& folder, const GiveInput& give) {
  make(Inputs(folder, give));
}

}  // namespace

const std::vector<InputKind>& InputKinds() {
#define KIND(name) \
  { #name, Make < name> }
  static const std::vector<InputKind> kinds = {KIND(AsMuchAsThereMayBeOfAnything),
                                               KIND(KeysThatDiffer),
                                               KIND(NestingAndAliasBombs),
                                               KIND(WrongEncodings),
                                               KIND(HugeFiles),
                                               KIND(PathsThatAreNoPlainFiles),
                                               KIND(RecipesThatExtendEachOther),
                                               KIND(OverridesAndWords),
                                               KIND(RecipesOfHugeSizes),
                                               KIND(RecipesOfManyModules),
                                               KIND(PatternsOfManyFiles),
                                               KIND(ListsOfSources),
                                               KIND(LongestRecipes),
                                               KIND(PlansThatClaimTooMuch),
                                               KIND(PlansOfOneItemOverAndOver),
                                               KIND(PlansOfItemsThatDiffer),
                                               KIND(PlansThatMultiply)};
#undef KIND
  return kinds;
}

}  // namespace planwright::testing
