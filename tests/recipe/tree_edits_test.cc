// Edits of a tree that has comments: they stay, and what was not edited stays as it was written.
#include "planner/recipe/tree_edits.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/recipe/recipe_tree.h"
#include "planner/recipe/yaml/yaml_comments.h"

namespace planwright {
namespace {

YamlNode Read(const std::string& text) {
  Diagnostics problems;
  YamlNode tree = ParseYaml(text, {}, problems).value_or(YamlNode());
  EXPECT_TRUE(ReadComments(text, "r.yaml", tree).ok()) << text;
  return tree;
}

std::string Edited(const std::string& text, const std::vector<Edit>& edits) {
  YamlNode tree = Read(text);
  ApplyEdits(edits, tree);
  return YamlText(tree);
}

constexpr char kText[] =
    "# Of the batch.\n"
    "batch:\n"
    "  # How many.\n"
    "  samples: 8      # all lanes\n"
    "  micro: {a: 1, b: 2}\n"
    "\n"
    "grids:\n"
    "  - [4, 4]  # small\n"
    "  - [8, 8]\n";

TEST(TreeEdits, KeepTheCommentsOfAValueThatIsReplaced) {
  EXPECT_EQ(Edited(kText, {{"batch.samples", "16"}, {"grids[0]", "[2, 2]"}, {"batch.micro.b", "3"}}),
            "# Of the batch.\nbatch:\n  # How many.\n  samples: 16     # all lanes\n  micro: {a: 1, b: 3}\n\n"
            "grids:\n  - [2, 2]  # small\n  - [8, 8]\n");
}

TEST(TreeEdits, GiveTheCommentsOfAKeyToTheOneThatReplacesIt) {
  EXPECT_EQ(Edited(kText, {{"batch.samples", ""}, {"batch.global_samples", "8"}}),
            "# Of the batch.\nbatch:\n  micro: {a: 1, b: 2}\n  # How many.\n  # all lanes\n  global_samples: 8\n\n"
            "grids:\n  - [4, 4]  # small\n  - [8, 8]\n");
}

TEST(TreeEdits, LoseNoCommentOfWhatIsRemoved) {
  const std::string without = Edited(kText, {{"batch", ""}, {"grids[0]", ""}});
  EXPECT_EQ(without, "grids:\n  - [8, 8]\n# Of the batch.\n# How many.\n# all lanes\n# small\n");
  const std::string replaced = Edited(kText, {{"batch", "{x: 1}"}});
  for (const char* comment : {"# Of the batch.", "# How many.", "# all lanes"})
    EXPECT_NE(replaced.find(comment), std::string::npos) << replaced;
}

TEST(TreeEdits, WriteANewSection) {
  EXPECT_EQ(Edited("a: 1\n", {{"b.c.d", "[1, 2]"}}), "a: 1\nb:\n  c: {d: [1, 2]}\n");
  EXPECT_EQ(Edited("a:\n", {{"a.b", "2"}}), "a: {b: 2}\n");
}

// A value of several lines is written anew once something in it changes: its lines said something else.
TEST(TreeEdits, ChangeValuesOfSeveralLines) {
  const std::string text = "a: {x: 1,\n    y: [1,\n  2]}\nb: 1\n";
  EXPECT_EQ(Edited(text, {{"b", "2"}}), "a: {x: 1,\n    y: [1,\n  2]}\nb: 2\n");
  EXPECT_EQ(Edited(text, {{"a.y[1]", "3"}}), "a: {x: 1, y: [1, 3]}\nb: 1\n");
  EXPECT_EQ(Edited(text, {{"a.x", ""}}), "a: {y: [1, 2]}\nb: 1\n");
  EXPECT_EQ(Edited(text, {{"a.z", "w"}}), "a: {x: 1, y: [1, 2], z: w}\nb: 1\n");
}

TEST(TreeEdits, OverridesKeepCommentsToo) {
  YamlNode tree = Read(kText);
  Diagnostics problems;
  EXPECT_TRUE(ApplyOverrides({"batch.samples=4", "batch.micro.a=5", "name=x"}, tree, problems));
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(YamlText(tree),
            "# Of the batch.\nbatch:\n  # How many.\n  samples: 4      # all lanes\n  micro: {a: 5, b: 2}\n\n"
            "grids:\n  - [4, 4]  # small\n  - [8, 8]\nname: x\n");
  EXPECT_TRUE(ApplyOverrides({"a", "name=y"}, tree, problems)) << "the others are laid";
  EXPECT_TRUE(problems.has_errors());
  EXPECT_EQ(tree.Find("name")->value.text, "y");
  EXPECT_FALSE(ApplyOverrides(std::vector<std::string>(2000, "name=z"), tree, problems));
  EXPECT_EQ(tree.Find("name")->value.text, "y");
}

}  // namespace
}  // namespace planwright
