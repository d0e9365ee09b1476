// How much is looked for of the files that sources name: bounded for a recipe as a whole, and once.
#include "planner/compile/batches/looked_for.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "planner/compile/batches/source_files.h"
#include "tests/recipe/temp_recipes.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LookedForFiles : public testing::Test {
 protected:
  Recipe RecipeOf(const std::string& data) {
    const std::string path =
        files_.Write("recipe.yaml", "extends: [" + InSource("recipes/icons_8r_toy.yaml") + "]\n" + data);
    Diagnostics problems;
    return *ReadRecipe(path, {}, problems);
  }
  // An empty archive, which begins with an empty block.
  void WriteTar(const std::string& name) { files_.Write(name, std::string(1024, '\0')); }

  std::vector<std::string> Messages(const Recipe& recipe, LookedFor& looked_for) {
    Diagnostics problems;
    WithPreparedIds(recipe, looked_for, problems);
    std::vector<std::string> messages;
    for (const Diagnostic& problem : problems.sorted()) messages.push_back(problem.message);
    return messages;
  }

  TempRecipes files_;
};

// The sources of the training and of a set, each with a million names.
TEST_F(LookedForFiles, AreBoundedForAllPatternsTogether) {
  std::string sources = "[", million = "{0..9}{0..9}{0..9}{0..9}{0..9}{0..9}";
  for (int i = 0; i < 40; ++i)
    sources += (i > 0 ? ", {kind: webdataset, shards: 's" : "{kind: webdataset, shards: 's") + std::to_string(i) + "_" +
               million + "'}";
  sources += "]";
  const Recipe recipe =
      RecipeOf("data: {kind: sources, sources: " + sources +
               "}\nevaluation: {every_samples: 64, sets: [{name: held_out, samples: 8, sources: " + sources + "}]}\n");
  EXPECT_EQ(CountPatterns(recipe), 80);
  LookedFor looked_for(CountPatterns(recipe));
  const std::vector<std::string> messages = Messages(recipe, looked_for);
  // Each pattern is looked for, and no file is there.
  EXPECT_EQ(std::set<std::string>(messages.begin(), messages.end()).size(), 40U);
  EXPECT_EQ(messages[0], "there is no file s0_000000, and 204 more are missing") << "16,384 / 80";
  const ShardLimit used = looked_for.used();
  EXPECT_GT(used.names, 8000);
  EXPECT_LE(used.names, kMostLookedForInAll);
  EXPECT_EQ(used.entries, 0);
  // A second check, as advice makes hundreds of, looks for nothing.
  EXPECT_EQ(Messages(recipe, looked_for), messages);
  EXPECT_EQ(looked_for.used().names, used.names);
}

TEST_F(LookedForFiles, LeaveToOthersWhatTheyDoNotNeed) {
  WriteTar("here.tar");
  const Recipe recipe = RecipeOf(
      "data: {kind: sources, sources: [{kind: webdataset, shards: [here.tar, 'x{00000..99999}']}, {kind: webdataset, "
      "shards: 'y{00000..99999}'}]}\n");
  LookedFor looked_for(CountPatterns(recipe));
  EXPECT_THAT(Messages(recipe, looked_for),
              ElementsAre(HasSubstr("no file x00000, and 4095 more"), HasSubstr("no file y00000, and 4095 more")));
  EXPECT_EQ(looked_for.used().names, 1 + 2 * kMostLookedFor);
}

TEST_F(LookedForFiles, ReadFoldersUpToALimit) {
  for (int i = 0; i < 20; ++i) WriteTar("t" + std::to_string(i) + ".tar");
  const Recipe recipe = RecipeOf(
      "data: {kind: sources, sources: [{kind: webdataset, shards: 't{0..9}{0..9}{0..9}{0..9}{0..9}*.tar'}]}\n");
  LookedFor looked_for(CountPatterns(recipe));
  // Nothing matches, but that is not known of all of the 100,000 patterns: no problem is told.
  EXPECT_THAT(Messages(recipe, looked_for), ElementsAre());
  EXPECT_EQ(looked_for.used().names, kMostLookedFor);
  EXPECT_LE(looked_for.used().entries, kMostEntriesRead);
}

TEST_F(LookedForFiles, OfASourceAreNoMoreThanItsIndexTakes) {
  const Recipe recipe = RecipeOf(
      "data: {kind: sources, sources: [{kind: webdataset, shards: ['a{0..599999}', 'b{0..599999}', 'c{0..599999}']}, "
      "{kind: webdataset, shards: 'd{0..599999}'}]}\n");
  LookedFor looked_for(CountPatterns(recipe));
  EXPECT_THAT(Messages(recipe, looked_for),
              ElementsAre(HasSubstr("there is no file a"), "the shards of a source name more than 1000000 files",
                          HasSubstr("there is no file d")));
}

}  // namespace
}  // namespace planwright
