// Shipped recipes with random damage: the reader never crashes, and it gives a reason and a location for all that it
// refuses.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>

#include "gtest/gtest.h"
#include "tests/recipe/temp_recipes.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

constexpr int kMutations = 1500;

std::vector<std::string> ShippedTexts() {
  std::vector<std::string> texts;
  for (const char* folder : {"/recipes", "/recipes/models"}) {
    for (const fs::directory_entry& entry : fs::directory_iterator(InSource() + folder)) {
      std::ifstream in(entry.path());
      if (entry.is_regular_file())
        texts.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
  }
  std::sort(texts.begin(), texts.end());  // the order of a folder is the file system's
  return texts;
}

std::string Mutate(std::string text, std::mt19937& random) {
  static constexpr const char* kPieces[] = {"\t",   "{",    "}",    "[",     "]",
                                            ":",    ": ",   "- ",   "\n",    "\n  ",
                                            "\"",   "'",    "#",    "&a ",   "*a",
                                            "!!x ", "|",    ">",    "<<: ",  "---\n",
                                            "? ",   "~",    "-1",   "1e999", "99999999999999999999",
                                            ".nan", "\xff", "\x1b", "%",     "@",
                                            ","};
  auto pick = [&](size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random); };
  const size_t edits = 1 + pick(4);
  for (size_t i = 0; i < edits && !text.empty(); ++i) {
    const size_t at = pick(text.size());
    switch (pick(4)) {
      case 0: text.erase(at, 1 + pick(20)); break;
      case 1: text.insert(at, kPieces[pick(std::size(kPieces))]); break;
      case 2: text[at] = static_cast<char>(pick(256)); break;
      case 3: text.insert(pick(text.size()), text.substr(at, 1 + pick(80))); break;
    }
  }
  return text;
}

TEST(MutatedRecipes, AreReadOrRefusedWithALocation) {
  TempRecipes files;
  std::mt19937 random(20240611);
  const std::vector<std::string> texts = ShippedTexts();
  ASSERT_GE(texts.size(), 5u);
  int refused = 0;
  for (int i = 0; i < kMutations; ++i) {
    const std::string text = Mutate(texts[i % texts.size()], random);
    const std::string path = files.Write("r.yaml", text);
    Diagnostics problems;
    if (ReadRecipe(path, {}, problems) && !problems.has_errors()) continue;
    ++refused;
    ASSERT_TRUE(problems.has_errors()) << text;
    for (const Diagnostic& problem : problems.sorted())
      ASSERT_TRUE(problem.where.known()) << problem.message << "\n" << text;
    SourceTexts source;
    const std::string said = RenderText(problems.sorted(), source, false);
    ASSERT_EQ(said.find('\x1b'), std::string::npos);
    ASSERT_EQ(RenderJson(problems.sorted()).dump().find('\x1b'), std::string::npos);  // and is UTF-8, or dump throws
  }
  EXPECT_GT(refused, kMutations / 4);
}

}  // namespace
}  // namespace planwright
