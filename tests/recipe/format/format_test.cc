// `plan fmt`: what is in its form stays, what is not says the same afterwards, and no comment is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "planner/base/text/text.h"
#include "planner/recipe/diagnostics/explanation.h"
#include "planner/recipe/format/format_recipe.h"
#include "planner/recipe/format/line_diff.h"
#include "planner/recipe/recipe_keys.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::vector<fs::path> Files(const std::string& folder, const std::string& ending) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(InSource(folder))) {
    if (entry.path().extension() == ending) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The formatted text, or "refused: ..." or "no YAML".
std::string Formatted(const std::string& text) {
  Diagnostics problems;
  const auto formatted = FormatRecipe(text, "r.yaml", problems);
  if (!formatted) return "no YAML";
  return formatted->ok() ? **formatted : Cat("refused: ", std::string(formatted->status().message()));
}

YamlNode TreeOf(const std::string& text) {
  Diagnostics problems;
  return ParseYaml(text, {std::make_shared<const std::string>("r.yaml")}, problems).value_or(YamlNode());
}

TEST(FormatRecipe, EveryShippedRecipeIsInItsForm) {
  const std::vector<fs::path> files = Files("recipes", ".yaml");
  ASSERT_GT(files.size(), 25u);
  for (const fs::path& file : files) EXPECT_EQ(LineDiff(ReadFile(file), Formatted(ReadFile(file))), "") << file;
}

// The blocks of a page: in ```yaml fences, or with four spaces in front of each line.
std::vector<std::string> BlocksOf(const std::string& page) {
  std::vector<std::string> blocks;
  std::string block;
  bool fence = false;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(page, '\n'))) {
    const bool was = fence;
    if (line.starts_with("```")) fence = !fence && line == "```yaml";
    const bool indented = line.starts_with("    ") || (line.empty() && !block.empty());
    if (fence ? was : indented) {
      Append(block, fence || line.empty() ? line : line.substr(4), "\n");
    } else if (!block.empty()) {
      while (block.ends_with("\n\n")) block.pop_back();
      blocks.push_back(std::exchange(block, ""));
    }
  }
  return blocks;
}

// Pages show recipes, and parts of them, in their form, too.
TEST(FormatRecipe, EveryRecipeOfAPageIsInItsForm) {
  std::vector<fs::path> pages = Files("docs", ".md");
  pages.emplace_back(InSource("README.md"));
  size_t recipes = 0;
  for (const fs::path& page : pages) {
    if (page.filename() == "diagnostics.md") continue;  // made from examples, of which half are wrong on purpose
    for (const std::string& text : BlocksOf(ReadFile(page))) {
      const YamlNode tree = TreeOf(text);
      if (!tree.is_map() || FindKey("", tree.entries[0].key, "") == nullptr) continue;
      if (text.find("...") != std::string::npos) continue;  // something is left out
      ++recipes;
      EXPECT_EQ(LineDiff(text, Formatted(text)), "") << page << "\n" << text;
    }
  }
  EXPECT_GT(recipes, 10u);
}

TEST(FormatRecipe, TheRightExamplesOfDiagnosticsAreInTheirForm) {
  for (DiagnosticKind kind : AllKinds()) {
    const std::string text = ExampleText(ExplanationOf(kind).right);
    if (text.empty() || text.starts_with("$ ") || !text.ends_with('\n')) continue;
    const std::string formatted = Formatted(text);
    EXPECT_EQ(LineDiff(text, formatted), "") << KindName(kind);
  }
}

TEST(FormatRecipe, BringsKeysIntoTheirOrderAndKeepsComments) {
  EXPECT_EQ(Formatted("# about this file\n"
                      "\n"
                      "batch:   # steps\n"
                      "     micro_samples:   2\n"
                      "     # how many\n"
                      "     global_samples: 8     # all lanes\n"
                      "     # the last word of batch\n"
                      "\n\n\n"
                      "# before the modules\n"
                      "modules:\n"
                      "    b: {parallel: {pp: 2,tp: 1}, model: 'm' }\n"
                      "    a:\n"
                      "\n"
                      "        model: \"m\"\n"
                      "name: r   \n"
                      "bridges:\n"
                      "- to: a\n"
                      "  # where from\n"
                      "  from: b   # the encoder\n"
                      "- {to: a, from: b}\n"
                      "# the end"),
            "# about this file\n"
            "\n"
            "name: r\n"
            "\n"
            "# before the modules\n"
            "modules:\n"
            "  b: {model: \"m\", parallel: {tp: 1, pp: 2}}\n"
            "  a:\n"
            "    model: \"m\"\n"
            "bridges:\n"
            "  # where from\n"
            "  - from: b  # the encoder\n"
            "    to: a\n"
            "  - {from: b, to: a}\n"
            "batch:   # steps\n"
            "  # how many\n"
            "  global_samples: 8        # all lanes\n"
            "  micro_samples: 2\n"
            "  # the last word of batch\n"
            "# the end\n");
}

// Above a blank line a comment is of the file, else of the key below it.
TEST(FormatRecipe, CommentsOfTheFirstKeyMoveWithIt) {
  EXPECT_EQ(Formatted("# steps\nbatch: {global_samples: 8}\nname: r\n"),
            "name: r\n# steps\nbatch: {global_samples: 8}\n");
  EXPECT_EQ(Formatted("# the file\n\n# more\n\n# steps\n# twice\nbatch: {global_samples: 8}\n# who\nname: r\n"),
            "# the file\n\n# more\n\n# who\nname: r\n# steps\n# twice\nbatch: {global_samples: 8}\n");
  const std::string schema = "# yaml-language-server: $schema=../schemas/recipe.schema.json\n";
  EXPECT_EQ(Formatted(schema + "# steps\nbatch: {global_samples: 8}\nname: r\n"),
            schema + "name: r\n# steps\nbatch: {global_samples: 8}\n");
  EXPECT_EQ(Formatted(schema + "name: r\n"), schema + "name: r\n");
}

TEST(FormatRecipe, LeavesValuesOfSeveralLinesAsTheyAre) {
  const std::string text =
      "name: |-\n"
      "     # no comment\n"
      "extends: [\"a # b\"]   # c\n"
      "data:\n"
      "  image_grids: [[1, 2],   # one\n"
      "                [3, 4]]   # two\n"
      "  kind: \"mock\"   # c\n";
  EXPECT_EQ(Formatted(text),
            "name: |-\n"
            "     # no comment\n"
            "extends: [\"a # b\"]   # c\n"
            "data:\n"
            "  kind: \"mock\"   # c\n"
            "  image_grids: [[1, 2],   # one\n"
            "                [3, 4]]   # two\n");
}

// YAML needs no space before a comment behind a closing quote or bracket.
TEST(FormatRecipe, KeepsCommentsThatTouchAValue) {
  EXPECT_EQ(Formatted("name: \"x\"#1\n"
                      "log: {every_steps: 1}#2\n"
                      "bridges:\n"
                      "- {from: a, to: 'b'}#3\n"
                      "data:\n"
                      "  image_grids: [[1, 2],#4 ]\n"
                      "    [3, 4]]#5\n"
                      "  kind: 'mock'#6\n"),
            "name: \"x\"  #1\n"
            "bridges:\n"
            "  - {from: a, to: \"b\"}  #3\n"
            "data:\n"
            "  kind: \"mock\"  #6\n"
            "  image_grids: [[1, 2],#4 ]\n"
            "    [3, 4]]#5\n"
            "log: {every_steps: 1}  #2\n");
  for (const char* same : {"name: a]#b\n", "name: it's \"so\"#1\n", "extends: [a#b, it's, c:#d]\n",
                           "name: |-#c\n  x\"#y\n", "extends: [\"a\", b#\n  c]#d\n"})
    EXPECT_EQ(Formatted(same), same);
}

TEST(FormatRecipe, LinesEndAsTheyDid) {
  const auto of_windows = [](const std::string& text) { return absl::StrReplaceAll(text, {{"\n", "\r\n"}}); };
  for (const fs::path& file : Files("recipes", ".yaml"))
    EXPECT_EQ(Formatted(of_windows(ReadFile(file))), of_windows(ReadFile(file))) << file;
  const std::string block = "b: |\n  one # text\n\n  two\n# of a\na:  1 # c";
  EXPECT_EQ(Formatted(of_windows(block)), of_windows(Formatted(block)));
  // Of both kinds: as most lines do.
  EXPECT_EQ(Formatted("a: 1\r\nb: 2\r\nc: 3\n"), "a: 1\r\nb: 2\r\nc: 3\r\n");
  EXPECT_EQ(Formatted("a: 1\r\nb: 2\nc: 3\n"), "a: 1\nb: 2\nc: 3\n");
  EXPECT_EQ(Formatted("a: 1\r\nb: 2\n"), "a: 1\nb: 2\n");
  EXPECT_EQ(Formatted("a: 1\r\nb: 2"), "a: 1\r\nb: 2\r\n") << "the last line has no end";
}

TEST(FormatRecipe, BreaksWhatIsTooLong) {
  const std::string long_name(100, 'n');
  EXPECT_EQ(Formatted(Cat("extends: [", long_name, ", ", long_name, "]\n")),
            Cat("extends:\n  - ", long_name, "\n  - ", long_name, "\n"));
}

TEST(FormatRecipe, RefusesWhatItCannotKeep) {
  EXPECT_EQ(Formatted("a: [1\n"), "no YAML");
  EXPECT_THAT(Formatted("? name\n: r\n"), testing::StartsWith("refused: r.yaml:1: "));
  EXPECT_THAT(Formatted("{name: r}\n"), testing::StartsWith("refused: "));
  EXPECT_EQ(Formatted(""), "");
  EXPECT_EQ(Formatted("---\n# only this\n"), "# only this\n");
}

// Recipes with their keys in any order, indented in any way, with comments and blank lines between all lines.
TEST(FormatRecipe, AnyRecipeSaysTheSameAndKeepsItsComments) {
  std::mt19937 random(20);  // the same recipes in every run
  const auto below = [&](size_t n) { return static_cast<size_t>(random()) % n; };
  size_t changed = 0;
  for (const fs::path& file : Files("recipes", ".yaml")) {
    const std::string original = ReadFile(file);
    for (int round = 0; round < 6; ++round) {
      // The keys of an item stand in one column, which is two after its dash.
      const size_t step = original.find("\n    - name: ") != original.npos ? 2 : 2 + below(3);
      std::string text;
      std::vector<std::string> comments;
      std::vector<std::string> sections;  // of the root, shuffled
      for (const std::string& line : std::vector<std::string>(absl::StrSplit(original, '\n', absl::SkipEmpty()))) {
        const size_t indent = line.find_first_not_of(' ');
        std::string written = std::string(indent / 2 * step, ' ') + line.substr(indent);
        if (line[indent] != '#' && written.find('#') == std::string::npos && below(3) == 0) {
          comments.push_back(Cat("# beside ", comments.size()));
          Append(written, std::string(1 + below(4), ' '), comments.back());
        }
        written += '\n';
        if (below(4) == 0) {
          comments.push_back(Cat("# above ", comments.size()));
          written = Cat(std::string(below(2) * indent / 2 * step, ' '), comments.back(), "\n", written);
        }
        if (below(5) == 0) written = "\n" + written;
        if (indent == 0 && line[0] != '#') sections.emplace_back();
        if (sections.empty()) sections.emplace_back();
        sections.back() += written;
      }
      std::shuffle(sections.begin(), sections.end(), random);
      for (const std::string& section : sections) text += section;
      const std::string once = Formatted(text);
      ASSERT_FALSE(once.starts_with("refused") || once == "no YAML") << once << "\n" << text;
      EXPECT_TRUE(SameRecipe(TreeOf(text), TreeOf(once))) << text;
      for (const std::string& comment : comments)
        EXPECT_NE((once + "\n").find(comment + "\n"), std::string::npos) << text;
      EXPECT_EQ(LineDiff(once, Formatted(once)), "") << "formatted twice:\n" << text;
      changed += once != text;
    }
  }
  EXPECT_GT(changed, 100u);
}

TEST(SameRecipe, SeesWhatMatters) {
  EXPECT_TRUE(SameRecipe(TreeOf("a: 1\nb: {c: [x]}\n"), TreeOf("b:\n  c:\n    - x\na: 1  # c\n")));
  for (const char* other :
       {"a: 1\nb: {c: [y]}\n", "a: \"1\"\nb: {c: [x]}\n", "a: 1\nb: {c: [x, x]}\n", "a: 1\n", "a: 1.0\nb: {c: [x]}\n"})
    EXPECT_FALSE(SameRecipe(TreeOf("a: 1\nb: {c: [x]}\n"), TreeOf(other))) << other;
  EXPECT_FALSE(SameRecipe(TreeOf("modules: {a: 1, b: 2}\n"), TreeOf("modules: {b: 2, a: 1}\n")))
      << "the order of groups";
}

TEST(LineDiff, NamesTheLines) {
  EXPECT_EQ(LineDiff("a\nb\nc\nd\n", "a\nc\nx\nd\n"), "@@ line 2 @@\n-b\n@@ line 4 @@\n+x\n");
  EXPECT_EQ(LineDiff("a\n", "a\n"), "");
  EXPECT_EQ(LineDiff("", "a"), "@@ line 1 @@\n-\n+a\n");
}

}  // namespace
}  // namespace planwright
