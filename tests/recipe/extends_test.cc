#include "gtest/gtest.h"
#include "planner/recipe/recipe_tree.h"
#include "planner/recipe/yaml/yaml_tree.h"
#include "tests/recipe/temp_recipes.h"

namespace planwright {
namespace {

TEST(Extends, MapsMergeListsReplaceLaterWins) {
  TempRecipes files;
  files.Write("base.yaml", kSmallRecipe);
  files.Write("parts/first.yaml",
              "batch: {micro_samples: 2}\noptimizer: {betas: [0.8, 0.9], eps: 1.0e-6}\nlog: {every_steps: 7}\n");
  files.Write("parts/second.yaml", "optimizer: {betas: [0.5, 0.6]}\n");
  const std::string path = files.Write(
      "r.yaml", "extends: [base.yaml, parts/first.yaml, parts/second.yaml]\nname: mine\nlog: {every_steps: 3}\n");
  const Recipe recipe = MustRead(path);
  EXPECT_EQ(*recipe.name, "mine");
  EXPECT_EQ(*recipe.batch.global_samples, 4);  // base
  EXPECT_EQ(*recipe.batch.micro_samples, 2);   // first
  EXPECT_EQ(recipe.optimizer.beta1, 0.5);      // second
  EXPECT_EQ(recipe.optimizer.eps, 1e-6);
  EXPECT_EQ(*recipe.log.every_steps, 3);  // the file itself
  EXPECT_TRUE(recipe.batch.micro_samples.where.file->ends_with("parts/first.yaml"));
}

TEST(Extends, AnotherKindReplacesTheWholeMap) {
  TempRecipes files;
  files.Write("base.yaml", kSmallRecipe);
  const Recipe recipe = MustRead(
      files.Write("r.yaml", "extends: base.yaml\ndata: {kind: recorded, path: b.safetensors, image_token: 9}\n"));
  EXPECT_EQ(*recipe.data.kind, DataKind::kRecorded);
  EXPECT_EQ(**recipe.data.path, "b.safetensors");
  EXPECT_EQ(*recipe.data.max_images, 3);  // the default again: base's 0 was a key of mock
}

// The extended file has the image token, of data of another kind.
TEST(Extends, ALostImageTokenIsToldOf) {
  const std::string
      model =
          "models: {eye: {kind: radio_vit, layers: 1, hidden: 8, heads: 2, ffn: 8, patch: 4, class_tokens: 1, "
          "max_image: 16, projector: {hidden: 8}}}\n",
      modules =
          "modules: {eye: {model: eye, placement: {first_rank: 0, ranks: 1}}}\nbridges: [{from: eye, to: language}]\n";
  const std::string lost = "`data` of another `kind` keeps no key of an extended file, also not this one";
  TempRecipes files;
  files.Write("text.yaml", kSmallRecipe);
  files.Write("base.yaml", "extends: text.yaml\n" + model);
  const std::string text = "extends: base.yaml\nname: mine\ndata: {kind: recorded, path: b.safetensors}\n" + modules;
  Diagnostics problems;
  ASSERT_TRUE(ReadRecipe(files.Write("r.yaml", text), {}, problems));
  ASSERT_EQ(problems.as_found().size(), 1u);
  EXPECT_EQ(problems.as_found()[0].message, "`data.image_token` is missing");
  EXPECT_TRUE(problems.as_found()[0].help.ends_with(lost)) << problems.as_found()[0].help;
  // Here nothing is lost.
  Diagnostics own;
  ASSERT_TRUE(ReadRecipe(
      files.Write("own.yaml", "extends: text.yaml\ndata: {kind: recorded, path: b.safetensors}\n" + model + modules),
      {}, own));
  ASSERT_EQ(own.as_found().size(), 1u);
  EXPECT_EQ(own.as_found()[0].help, "add `image_token`: the token id whose places take image rows");
}

TEST(Extends, PathsAreRelativeToTheFileThatNamesThem) {
  TempRecipes files;
  files.Write("shared/base.yaml", std::string(kSmallRecipe) + "initialize: {from: ../weights/w.safetensors}\n");
  files.Write("shared/middle.yaml", "extends: [base.yaml]\n");
  const Recipe recipe = MustRead(files.Write("runs/r.yaml", "extends: [../shared/middle.yaml]\n"));
  EXPECT_EQ(**recipe.initialize->from, "../weights/w.safetensors");
  EXPECT_EQ(ResolvePath(**recipe.initialize->from, recipe.initialize->from->where),
            files.folder() + "/weights/w.safetensors");
  EXPECT_EQ(ResolvePath("/abs/w", recipe.initialize->from->where), "/abs/w");
}

TEST(Extends, AFileMayBeReachedTwice) {
  TempRecipes files;
  files.Write("base.yaml", kSmallRecipe);
  files.Write("a.yaml", "extends: base.yaml\n");
  files.Write("b.yaml", "extends: base.yaml\n");
  MustRead(files.Write("r.yaml", "extends: [a.yaml, b.yaml]\n"));
}

TEST(Extends, CyclesAndFloodsAreRefused) {
  TempRecipes files;
  EXPECT_EQ(Problems(files.Write("self.yaml", "extends: self.yaml\n")),
            "ExtendsCycle: \"" + files.folder() + "/self.yaml\" extends itself\n");
  files.Write("l0.yaml", kSmallRecipe);
  for (int i = 1; i < 30; ++i) {
    const std::string below = "l" + std::to_string(i - 1) + ".yaml";
    files.Write("l" + std::to_string(i) + ".yaml", "extends: [" + below + ", " + below + "]\n");
  }
  EXPECT_NE(Problems(files.folder() + "/l29.yaml").find("TooLarge: this recipe extends more than 64 files"),
            std::string::npos);
  files.Write("long.yaml", "name: " + std::string(kLargestRecipe / 2, 'x') + "\n");
  EXPECT_NE(Problems(files.Write("r.yaml", "extends: [long.yaml, l0.yaml, long.yaml]\n"))
                .find("TooLarge: with this file, the recipe and the files"),
            std::string::npos);
}

TEST(Extends, OnlyPlainFilesAreRead) {
  TempRecipes files;
  EXPECT_NE(Problems(files.folder()).find("it is a folder"), std::string::npos);
  EXPECT_NE(Problems("/dev/zero").find("it is not a plain file"), std::string::npos);
  EXPECT_NE(Problems(files.folder() + "/none.yaml").find("there is no such file"), std::string::npos);
  EXPECT_EQ(Problems(files.Write("list.yaml", "- a\n")), "WrongType: a recipe must be a map of keys, found a list\n");
  EXPECT_EQ(Problems(files.Write("empty.yaml", "")), "WrongType: a recipe must be a map of keys, found nothing\n");
}

TEST(Extends, DigestFollowsMeaningNotForm) {
  TempRecipes files;
  const Recipe plain = MustRead(files.Write("a.yaml", kSmallRecipe));
  files.Write("base.yaml", kSmallRecipe);
  const Recipe extended = MustRead(
      files.Write("b.yaml", "# comment\nextends: [base.yaml]\nbatch: {sequence_length: 16}\nname: \"small\"\n"));
  const Recipe changed = MustRead(files.Write("c.yaml", "extends: [base.yaml]\nbatch: {sequence_length: 17}\n"));
  EXPECT_EQ(plain.digest.size(), 64u);
  EXPECT_EQ(extended.digest, plain.digest);
  EXPECT_NE(changed.digest, plain.digest);
}

// The help and the edits of the first problem of a recipe.
std::string FirstHelp(const std::string& path) {
  Diagnostics problems;
  ReadRecipe(path, {}, problems);
  if (problems.empty()) return "";
  std::string said = problems.as_found()[0].help;
  for (const Edit& edit : problems.as_found()[0].edits) said += "; " + edit.path + "=" + edit.value;
  return said;
}

TEST(Extends, AFileThatIsNotThereIsTheNearOne) {
  const std::string end = "`? Paths in `extends` are relative to the file that has them; extends[0]=";
  TempRecipes files;
  files.Write("parts/base.yaml", kSmallRecipe);
  EXPECT_EQ(FirstHelp(files.Write("a.yaml", "extends: [parts/base.yml]\n")),
            "did you mean `parts/base.yaml" + end + "parts/base.yaml");
  EXPECT_EQ(FirstHelp(files.Write("b.yaml", "extends: [parts/bsae.yaml]\n")),
            "did you mean `parts/base.yaml" + end + "parts/base.yaml");
  EXPECT_EQ(FirstHelp(files.Write("inner/c.yaml", "extends: [parts/base.yaml]\n")),
            "did you mean `../parts/base.yaml" + end + "../parts/base.yaml");
  // What is read of it is checked, and is all that is told.
  EXPECT_EQ(
      Problems(files.Write("d.yaml", "extends: parts/base.yml\nbatch: {global_samples: 8}\n")),
      "FileUnreadable: cannot read the recipe \"" + files.folder() + "/parts/base.yml\": there is no such file\n");
  // Neither itself, nor a file that names it, nor another folder.
  EXPECT_EQ(FirstHelp(files.Write("myself.yaml", "extends: [myself.yml]\n")),
            "paths are relative to the file that names them");
  EXPECT_EQ(FirstHelp(files.Write("f.yaml", "extends: [nothing_of_the_kind.yaml]\n")),
            "paths are relative to the file that names them");
  files.Write("circle.yaml", "extends: [g.yaml]\n");
  EXPECT_EQ(Problems(files.Write("g.yaml", "extends: [circel.yaml]\n")).find("extends itself") != std::string::npos,
            true);
}

TEST(Extends, AnItemWithoutASpaceIsMeant) {
  TempRecipes files;
  const std::string path = files.Write("r.yaml", std::string(kSmallRecipe) + "bridges:\n  -{from: a, to: b}\n");
  Diagnostics problems;
  ReadRecipe(path, {}, problems);
  ASSERT_FALSE(problems.empty());
  const Diagnostic& told = problems.as_found()[0];
  EXPECT_EQ(told.message, "an item of `bridges` begins with `-` and a space");
  EXPECT_EQ(told.where.column, 3);
  ASSERT_EQ(told.edits.size(), 1u);
  EXPECT_EQ(told.edits[0].path, "bridges");
  EXPECT_EQ(told.edits[0].value, "[{from: a, to: b}]");
  // Another mistake in the text is told as it is.
  const std::string open = files.Write("s.yaml", std::string(kSmallRecipe) + "bridges:\n  -{from: a, to: b\n");
  EXPECT_EQ(Problems(open).find("begins with"), std::string::npos) << Problems(open);
}

}  // namespace
}  // namespace planwright
