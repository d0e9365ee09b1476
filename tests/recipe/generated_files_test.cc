// The JSON schema and the page docs/recipe_reference.md must be up to date with the table of keys. UPDATE_GOLDENS=1
// writes them.
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/recipe_reference.h"
#include "planner/recipe/recipe_schema.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

// Compares a file of the sources with its text as made now.
void ExpectInStep(const std::string& path, const std::string& made, const std::string& command) {
  const std::string full = InSource(path);
  if (std::getenv("UPDATE_GOLDENS") != nullptr) std::ofstream(full, std::ios::binary) << made;
  std::ifstream in(full, std::ios::binary);
  const std::string written(std::istreambuf_iterator<char>(in), {});
  EXPECT_TRUE(written == made) << path << " is out of step with the table of keys: write it again with `" << command
                               << " > " << path << "`";
}

TEST(GeneratedFiles, SchemaIsInStepWithTheTable) {
  ExpectInStep("schemas/recipe.schema.json", RecipeSchema().dump(2) + "\n", "plan explain --schema");
}

TEST(GeneratedFiles, ReferenceIsInStepWithTheTable) {
  ExpectInStep("docs/recipe_reference.md", RecipeReference(), "plan explain --reference");
}

TEST(GeneratedFiles, TheReferenceHasEveryKeyOnce) {
  const std::string page = RecipeReference();
  for (const KeySpec& key : RecipeKeys()) {
    const std::string row = "\n| `" + std::string(key.path) + "` | ";
    size_t rows = 0, same = 0;
    for (size_t at = page.find(row); at != std::string::npos; at = page.find(row, at + 1)) ++rows;
    for (const KeySpec& other : RecipeKeys()) same += other.path == key.path;  // a word of several kinds
    EXPECT_EQ(rows, same) << key.path;
  }
}

TEST(ExplainKey, OneKeyASectionAndNames) {
  EXPECT_EQ(
      ExplainKey("batch.micro_samples"),
      "batch.micro_samples\n    samples of a microbatch on each language lane\n    value: integer, 1 to 16777216\n    "
      "default: 1\n");
  EXPECT_EQ(ExplainKey("modules.language.parallel.tp"), ExplainKey("modules.<name>.parallel.tp"));
  EXPECT_NE(ExplainKey("modules.language.parallel.tp"), "");
  EXPECT_EQ(ExplainKey("bridges[0].from"), ExplainKey("bridges.from"));
  EXPECT_NE(ExplainKey("optimizer").find("optimizer.betas\n"), std::string::npos);
  EXPECT_NE(ExplainKey("models.m.init_std").find("(of kind hybrid_lm)"), std::string::npos);
  EXPECT_EQ(ExplainKey("batch.colour"), "");
  EXPECT_EQ(ExplainKey("optimizer.name"), "optimizer.name (gone)\n    delete it: the optimizer is always AdamW\n");
  EXPECT_NE(ExplainKey("models.m.projector.kind").find("(gone)\n    delete it: "), std::string::npos);
  EXPECT_EQ(ExplainKey(""), "");
}

}  // namespace
}  // namespace planwright
