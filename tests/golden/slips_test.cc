// Scores what the planner says of slips of new users (the files *slips.txt in slips/), by machine: the place is named
// (1), the text names the key to change (1), the first help works when it is pasted (2), and there is no second
// diagnostic of one cause (1). The files of scores hold the scores; UPDATE_GOLDENS=1 writes them again.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "planner/compile/advise.h"
#include "planner/compile/compile.h"
#include "planner/recipe/mend_shapes.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/recipe/recipe_tree.h"
#include "planner/recipe/tree_edits.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

const std::string kFolder = InSource("tests/golden/slips/");

// The recipe of a slip. Tests run at once, each in a process with a folder of its own.
std::string RecipeFile() { return testing::TempDir() + "slip.yaml"; }

// One mistake: the lines that have it, or the override, and the keys of which one must change.
struct Mistake {
  std::set<int> lines;  // of the recipe, or of the command line
  bool override = false;
  std::vector<std::string> blame;
};

struct Slip {
  std::string name, recipe;
  std::string text;                                        // of the recipe with the mistakes
  std::vector<std::pair<std::string, std::string>> files;  // beside the recipe: name, text
  std::vector<std::string> overrides;
  std::vector<Mistake> mistakes;
};

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// Adds the lines to the recipe, in place of those of `old` or at the end.
void Plant(const std::vector<std::string>& old, const std::vector<std::string>& lines, Slip& slip, Mistake& mistake) {
  std::vector<std::string> recipe = absl::StrSplit(slip.text, '\n');
  auto at = old.empty() ? std::prev(recipe.end()) : std::find(recipe.begin(), recipe.end(), old[0]);
  for (const std::string& line : old) {
    if (at == recipe.end() || *at != line) throw std::runtime_error(slip.name + ": the recipe has no line " + line);
    at = recipe.erase(at);
  }
  const int first = static_cast<int>(at - recipe.begin()) + 1;
  for (size_t i = 0; i < lines.size(); ++i) mistake.lines.insert(first + static_cast<int>(i));
  recipe.insert(at, lines.begin(), lines.end());
  slip.text = absl::StrJoin(recipe, "\n");
}

std::vector<Slip> ReadSlips(const std::string& file) {
  std::vector<Slip> slips;
  std::vector<std::string> old, lines;
  std::istringstream in(ReadAll(kFolder + file));
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("slip ")) {
      const std::vector<std::string> words = absl::StrSplit(line, ' ');
      slips.push_back({.name = words.at(1), .recipe = words.at(3)});
      slips.back().text = ReadAll(kFolder + words[3] + ".yaml");
    } else if (line.starts_with("- ")) {
      old.push_back(line.substr(2));
    } else if (line.starts_with("+ ")) {
      lines.push_back(line.substr(2));
    } else if (line.starts_with("file ")) {
      const std::vector<std::string> words = absl::StrSplit(line, ' ');
      slips.back().files.emplace_back(words.at(1), ReadAll(kFolder + words.at(3) + ".yaml"));
    } else if (line.starts_with("override ")) {
      slips.back().overrides.push_back(line.substr(9));
    } else if (line.starts_with("blame ")) {
      Mistake& mistake = slips.back().mistakes.emplace_back();
      mistake.blame = absl::StrSplit(line.substr(6), " or ");
      mistake.override = lines.empty();
      if (lines.empty()) mistake.lines = {static_cast<int>(slips.back().overrides.size())};
      if (!lines.empty()) Plant(old, lines, slips.back(), mistake);
      old.clear();
      lines.clear();
    }
  }
  return slips;
}

std::vector<Diagnostic> ProblemsOf(const std::string& path, const std::vector<std::string>& overrides) {
  Diagnostics problems;
  const std::optional<Recipe> recipe = ReadRecipe(path, overrides, problems);
  if (recipe) CompileWithAdvice(*recipe, problems);
  return problems.sorted();
}

bool IsAt(const Diagnostic& problem, const Mistake& mistake) {
  return problem.where.file && (*problem.where.file == "<command line>") == mistake.override &&
         mistake.lines.contains(problem.where.line);
}

// Whether the text has the last word of one of the keys, as a word.
bool Names(const Diagnostic& problem, const Mistake& mistake) {
  const std::string text = problem.message + " " + problem.help;
  const auto is_letter = [](char c) { return absl::ascii_isalnum(c) || c == '_'; };
  for (const std::string& key : mistake.blame) {
    const std::string word = key.substr(key.rfind('.') + 1);
    for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) {
      const size_t end = at + word.size();
      if ((at == 0 || !is_letter(text[at - 1])) && (end == text.size() || !is_letter(text[end]))) return true;
    }
  }
  return false;
}

void WriteFile(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

// Pastes a value over the text that a problem points at.
std::string Pasted(const std::string& text, const Location& where, const std::string& value) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  lines.at(static_cast<size_t>(where.line) - 1)
      .replace(static_cast<size_t>(where.column) - 1, static_cast<size_t>(where.length), value);
  return absl::StrJoin(lines, "\n");
}

// Whether nothing is left to say of the recipe once the first help of each mistake is applied: in its text what is said
// of `extends`, which the tree has not, and else to the tree that was read.
bool HelpsWork(const Slip& slip, const std::vector<Diagnostic>& problems) {
  Diagnostics ignored;
  std::string text = slip.text;
  std::vector<Edit> edits;
  for (const Mistake& mistake : slip.mistakes) {
    auto first = std::find_if(problems.begin(), problems.end(), [&](auto& problem) { return IsAt(problem, mistake); });
    if (first == problems.end() && slip.mistakes.size() == 1) first = problems.begin();
    if (first == problems.end() || first->edits.empty()) return false;
    if (first->edits[0].path.starts_with("extends")) {
      text = Pasted(text, first->where, first->edits[0].value);
    } else {
      edits.insert(edits.end(), first->edits.begin(), first->edits.end());
    }
  }
  WriteFile(RecipeFile(), text);
  std::optional<YamlNode> tree = ReadRecipeTree(RecipeFile(), slip.overrides, ignored);
  if (!tree || (text != slip.text && !ignored.empty())) return false;
  ApplyEdits(edits, *tree);
  Diagnostics left;
  return CompileRecipe(RecipeOfTree(*std::move(tree), left), left) && left.empty();
}

double ScoreOf(const Slip& slip) {
  WriteFile(RecipeFile(), slip.text);
  for (const auto& [name, text] : slip.files) WriteFile(testing::TempDir() + name, text);
  const std::vector<Diagnostic> problems = ProblemsOf(RecipeFile(), slip.overrides);
  if (problems.empty()) return 0;
  double named = 0;  // places and keys
  for (const Mistake& mistake : slip.mistakes) {
    named += std::any_of(problems.begin(), problems.end(), [&](auto& problem) { return IsAt(problem, mistake); });
    named += std::any_of(problems.begin(), problems.end(), [&](auto& problem) {
      return (slip.mistakes.size() == 1 || IsAt(problem, mistake)) && Names(problem, mistake);
    });
  }
  return named / static_cast<double>(slip.mistakes.size()) + (HelpsWork(slip, problems) ? 2 : 0) +
         (problems.size() <= slip.mistakes.size() ? 1 : 0);
}

// Scores the slips of a file, and compares with the scores beside it.
void ScoreSlips(const std::string& file, const std::string& scores_file) {
  std::string scores;
  double sum = 0;
  const std::vector<Slip> slips = ReadSlips(file);
  for (const Slip& slip : slips) {
    const double score = ScoreOf(slip);
    absl::StrAppendFormat(&scores, "%.1f  %s\n", score, slip.name);
    sum += score;
    EXPECT_GE(score, 4) << slip.name;
  }
  EXPECT_GE(sum / static_cast<double>(slips.size()), 4.7);
  absl::StrAppendFormat(&scores, "%.2f  mean of %d\n", sum / static_cast<double>(slips.size()), slips.size());
  if (std::getenv("UPDATE_GOLDENS") != nullptr) std::ofstream(kFolder + scores_file, std::ios::binary) << scores;
  EXPECT_EQ(scores, ReadAll(kFolder + scores_file));
}

TEST(Slips, AreScored) { ScoreSlips("slips.txt", "scores.txt"); }

TEST(Slips, AndTwentyMore) { ScoreSlips("more_slips.txt", "more_scores.txt"); }

TEST(Slips, AndThoseOfNewcomers) { ScoreSlips("newcomer_slips.txt", "newcomer_scores.txt"); }

TEST(Slips, AndThoseOfAFirstDay) { ScoreSlips("first_day_slips.txt", "first_day_scores.txt"); }

TEST(Slips, AndThoseOfDecoders) { ScoreSlips("decoder_slips.txt", "decoder_scores.txt"); }

// What is said of all recipes that are committed with something wrong.
std::vector<Diagnostic> AllProblems() {
  std::vector<Diagnostic> all;
  const auto add = [&](const std::string& path, const std::vector<std::string>& overrides) {
    Diagnostics problems;
    ReadRecipe(path, overrides, problems);
    all.insert(all.end(), problems.as_found().begin(), problems.as_found().end());
  };
  for (const std::string of : {"", "more_", "newcomer_", "first_day_", "decoder_"}) {
    for (const Slip& slip : ReadSlips(of + "slips.txt")) {
      WriteFile(RecipeFile(), slip.text);
      add(RecipeFile(), slip.overrides);
    }
  }
  for (const auto& folder : std::filesystem::directory_iterator(InSource("tests/golden/broken"))) {
    std::ifstream in(folder.path() / "overrides.txt");
    std::vector<std::string> overrides;
    for (std::string line; std::getline(in, line);) overrides.push_back(line);
    add(folder.path() / "recipe.yaml", overrides);
  }
  return all;
}

// A text of a row as a pattern: what it names, and what it says on a condition, may be anything.
std::regex PatternOf(const MendRow& row, std::string_view text) {
  std::string path;
  for (const std::string& where : std::vector<std::string>(absl::StrSplit(std::string(row.where), '|')))
    absl::StrAppend(
        &path, path.empty() ? "" : "|",
        where.starts_with('<') ? ".*" : absl::StrReplaceAll(where, {{"<name>", "\\w+"}, {"[]", "\\[\\d+\\]"}}));
  std::string pattern;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text.substr(at).starts_with("{path}")) {
      absl::StrAppend(&pattern, "(", path, ")(\\.\\w+)?");
    } else if (text[at] == '{' || text[at] == '<') {
      pattern += ".*";
    } else {
      if (std::string_view(".[](){}*+?|^$\\").find(text[at]) != std::string_view::npos) pattern += '\\';
      pattern += text[at];
      continue;
    }
    at = text.find(text[at] == '{' ? '}' : '>', at);
  }
  return std::regex(pattern);
}

TEST(Slips, EveryRowOfMendsHasOne) {
  const std::vector<Diagnostic> problems = AllProblems();
  for (const MendRow& row : MendRows()) {
    const std::regex found = PatternOf(row, row.found), help = PatternOf(row, row.help);
    EXPECT_TRUE(std::any_of(problems.begin(), problems.end(),
                            [&](const Diagnostic& problem) {
                              return problem.kind == row.kind && std::regex_match(problem.message, found) &&
                                     std::regex_match(problem.help, help);
                            }))
        << row.where << ": " << row.shape << ": add a slip that it answers";
  }
}

TEST(Slips, AreInRecipesWithoutProblems) {
  for (const std::string recipe : {"apart", "text", "together"})
    EXPECT_TRUE(ProblemsOf(kFolder + recipe + ".yaml", {}).empty()) << recipe;
}

}  // namespace
}  // namespace planwright
