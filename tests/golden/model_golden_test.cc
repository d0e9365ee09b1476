// Models and images, compared with the reference system: parameter counts, the rows of published tensors that a rank
// holds, and the grids of mock images.
#include <map>

#include "planner/compile/compile.h"
#include "planner/plan/shard_map.h"
#include "planner/recipe/recipe_reader.h"
#include "tests/golden/golden_program.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using nlohmann::json;
using testing::GoldenRecipe;

class Models : public testing::GoldenProgram {};

TEST_F(Models, HaveTheDerivedParameterCounts) {
  const json& counts = Golden().at("derived").at("param_counts");
  for (const auto& [recipe, key] : std::map<std::string, std::string>{{"nemotron_moe_vlm_20l_mock_8r", "llm_20l"},
                                                                      {"nemotron_moe_vlm_54l_9n", "llm_54l"}}) {
    const json language = ShowFile(InSource("recipes/") + recipe + ".yaml", "model")["modules"]["language"];
    EXPECT_EQ(language["parameters"], counts[key]["total"]) << recipe;
    std::map<std::string, int64_t> sums;
    for (const auto& layer : language["layers"]) sums[layer["kind"]] += layer["parameters"].get<int64_t>();
    EXPECT_EQ(sums["M"], counts[key]["mamba"]);
    EXPECT_EQ(sums["E"], counts[key]["moe"]);
    EXPECT_EQ(sums["*"], counts[key]["attention"]);
  }
}

// The numbers of parameters of the published models, with a tied head counted once.
TEST_F(Models, HaveThePublishedParameterCounts) {
  for (const auto& [recipe, parameters] : std::map<std::string, int64_t>{{"llama_3_1_8b_8g", 8'030'261'248},
                                                                         {"qwen3_8b_8g", 8'190'735'360},
                                                                         {"qwen3_1_7b_1g", 1'720'574'976},
                                                                         {"qwen3_30b_a3b_16g", 30'532'122'624}}) {
    const json language = ShowFile(InSource("recipes/") + recipe + ".yaml", "model")["modules"]["language"];
    EXPECT_EQ(language["parameters"], parameters) << recipe;
  }
  int64_t all = 0;
  const json shown = ShowFile(InSource("recipes/qwen3_vl_2b_1g_deepstack.yaml"), "model");
  for (const auto& [name, module] : shown.at("modules").items())
    all += module["parameters"].get<int64_t>() + module["projector_parameters"].get<int64_t>();
  EXPECT_EQ(all, 2'127'532'032);
}

// The rows of a published tensor of the 20-layer language model that tp coordinate `rank` holds in a slot.
std::vector<std::pair<int64_t, int64_t>> RowsOf(const std::string& tensor, int tp, int rank) {
  Diagnostics problems;
  const std::string size = std::to_string(tp);
  const auto recipe = ReadRecipe(
      InSource("recipes/nemotron_moe_vlm_20l_mock_8r.yaml"),
      {"cluster.gpu=none", "modules.language.placement.ranks=8", "modules.language.parallel.tp=" + size}, problems);
  static std::map<int, Plan> plans;
  if (!plans.contains(tp)) plans[tp] = CompileRecipe(*recipe, problems).value();
  const Module& module = *plans.at(tp).FindModule("language");
  std::vector<std::pair<int64_t, int64_t>> rows;
  for (const Storage& storage : module.storages) {
    for (const PublishedSlice& slice : SlicesOf(module, storage, {.tp = tp, .tp_rank = rank, .ep = module.grid.ep})) {
      if (slice.name != tensor) continue;
      const int64_t width = module.parameters[static_cast<size_t>(slice.parameter)].shape.back();
      for (const ElementRun& run : slice.runs) rows.emplace_back(run.whole / width, (run.whole + run.count) / width);
    }
  }
  return rows;
}

TEST_F(Models, CutTheInProjectionPartByPart) {
  for (const auto& [tp, ranks] : Golden().at("derived").at("mamba_in_proj_full_row_ranges").items()) {
    for (const auto& [rank, parts] : ranks.items()) {
      std::vector<std::pair<int64_t, int64_t>> expected;
      for (const json& part : parts) {  // adjacent parts are joined
        if (!expected.empty() && expected.back().second == part[1])
          expected.back().second = part[2];
        else
          expected.emplace_back(part[1], part[2]);
      }
      EXPECT_EQ(RowsOf("language.backbone.layers.0.mixer.in_proj.weight", std::stoi(tp), std::stoi(rank)), expected)
          << tp << " " << rank;
    }
  }
}

// The reference system interleaves q, k and v by group; the published tensors and the plan keep them separate. A rank
// has the same groups of heads in both.
TEST_F(Models, GiveARankTheReferencesGroupsOfHeads) {
  const json& layout = Golden().at("derived").at("qkv_layout").at("llm_tp2").at("ranks");
  for (int rank = 0; rank < 2; ++rank) {
    const json& groups = layout.at(std::to_string(rank)).at("groups");
    const int64_t first = groups.front(), end = groups.back().get<int64_t>() + 1, head_dim = 128, heads_of_group = 4;
    using Rows = std::vector<std::pair<int64_t, int64_t>>;
    const std::string prefix = "language.backbone.layers.5.mixer.";
    EXPECT_EQ(RowsOf(prefix + "k_proj.weight", 2, rank), (Rows{{first * head_dim, end * head_dim}}));
    EXPECT_EQ(RowsOf(prefix + "q_proj.weight", 2, rank),
              (Rows{{first * heads_of_group * head_dim, end * heads_of_group * head_dim}}));
  }
}

// The positions of a sequence of `length` tokens that a rank holds, from the layout of a value of the plan, "tp:shard0
// cp:zigzag0". cp cuts first, into 2 cp chunks: coordinate r has the chunks r and 2 cp - 1 - r.
json Positions(int length, const std::string& layout, int cp, int cp_rank, int tp, int tp_rank) {
  std::vector<int> all(length), mine;
  for (int i = 0; i < length; ++i) all[i] = i;
  if (cp > 1) {
    EXPECT_NE(layout.find("cp:zigzag"), std::string::npos) << layout;
    const int chunk = length / (2 * cp);
    for (int c : {cp_rank, 2 * cp - 1 - cp_rank})
      mine.insert(mine.end(), all.begin() + c * chunk, all.begin() + (c + 1) * chunk);
    all = mine;
  }
  if (layout.find("tp:shard") == std::string::npos) return all;
  const size_t part = all.size() / tp;
  return std::vector<int>(all.begin() + static_cast<std::ptrdiff_t>(tp_rank * part),
                          all.begin() + static_cast<std::ptrdiff_t>((tp_rank + 1) * part));
}

class Sequences : public testing::GoldenProgram {
 protected:
  // Layouts of what the language model's head reads: its activations, and the labels that its loss is computed with.
  std::pair<std::string, std::string> LayoutsOfTheHead(int tp, int cp) {
    GoldenRecipe recipe;
    recipe.world = tp * cp;
    recipe.modules = {{"language", 0, tp * cp, tp, cp, 1, 1, 1, ""}};
    const json head = ShowList(recipe, "program", "roles").at(0)["blocks"]["language.head.forward"];
    std::string x, labels;
    for (const std::string input : head["inputs"]) {
      if (input.starts_with("x: ")) x = input.substr(0, input.find(" |"));
      if (input.starts_with("labels: ")) labels = input;
    }
    for (const json& op : head["body"]) {
      for (const std::string output : op.value("outputs", json::array())) {
        if (output.starts_with("labels_local: ")) labels = output;
      }
    }
    EXPECT_FALSE(x.empty() || labels.empty());
    return {x, labels};
  }
};

TEST_F(Sequences, AreCutOverRanksAsTheReferences) {
  for (const json& c : Golden().at("derived").at("cp_zigzag")) {
    const std::string labels = LayoutsOfTheHead(1, c["cp"]).second;
    EXPECT_EQ(Positions(c["S"], labels, c["cp"], c["cp_rank"], 1, 0), c["indices"]);
  }
  for (const json& c : Golden().at("derived").at("cp_sp")) {
    const auto [activations, labels] = LayoutsOfTheHead(c["tp"], c["cp"]);
    EXPECT_EQ(Positions(c["S"], activations, c["cp"], c["cp_rank"], c["tp"], c["tp_rank"]), c["embedding_indices"])
        << activations;
    EXPECT_EQ(Positions(c["S"], labels, c["cp"], c["cp_rank"], c["tp"], c["tp_rank"]), c["label_indices"])
        << "never cut over tp: " << labels;
  }
}

class Images : public testing::GoldenProgram {
 protected:
  // One encoder and a language model on a rank each; images of `rows` x `columns` patches.
  static GoldenRecipe With(int64_t rows, int64_t columns, bool even) {
    GoldenRecipe recipe;
    recipe.world = 2;
    recipe.modules = {{"images", 0, 1, 1, 1, 1, 1, 1, ""}, {"language", 1, 1, 1, 1, 1, 1, 1, ""}};
    recipe.pixel_shuffle = even ? 2 : 1;
    recipe.image_grids = "[[" + std::to_string(rows) + ", " + std::to_string(columns) + "]]";
    recipe.max_image = 512;
    return recipe;
  }
};

// The reference system factors a number of patches into a grid; a recipe gives the grid itself. If the reference finds
// no grid, every way to write one is refused. Grids with more tokens than a sample are refused for that reason alone.
TEST_F(Images, HaveTheGridsThatTheReferenceAllows) {
  for (const json& c : Golden().at("mock_patch_grid")) {
    const int64_t patches = c.at("num_patches");
    const bool even = c.at("require_even");
    for (int64_t rows = 1; rows * rows <= patches; ++rows) {
      if (patches % rows != 0 || patches / rows > 128) continue;
      const testing::Verdict verdict = Validate(With(rows, patches / rows, even));
      const bool allowed = !even || (rows % 2 == 0 && patches / rows % 2 == 0);
      EXPECT_EQ(std::count(verdict.errors.begin(), verdict.errors.end(), "ImageGrid") == 0, allowed)
          << rows << " x " << patches / rows << verdict.text;
      if (c.at("ok").get<bool>() && c["grid"] == json::array({rows, patches / rows})) {
        EXPECT_TRUE(allowed);
      }
      if (!c.at("ok").get<bool>()) {
        EXPECT_FALSE(allowed);
      }
    }
  }
}

TEST_F(Images, NeedAPatch) {
  for (const json& c : Golden().at("fixed_image_tokens")) {
    ASSERT_FALSE(c.at("ok").get<bool>());
    GoldenRecipe recipe = With(2, 2, true);
    recipe.patch = c.at("patch");
    ExpectRefused(recipe, "OutOfRange", "a patch of no pixels");
  }
}

}  // namespace
}  // namespace planwright
