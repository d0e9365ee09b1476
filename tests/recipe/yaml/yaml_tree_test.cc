#include "planner/recipe/yaml/yaml_tree.h"

#include <string>

#include "gtest/gtest.h"

namespace planwright {
namespace {

struct Parsed {
  std::optional<YamlNode> tree;
  std::string kind, location;  // of the first problem
};

Parsed Parse(const std::string& text) {
  Diagnostics problems;
  Parsed parsed;
  parsed.tree = ParseYaml(text, {std::make_shared<const std::string>("r.yaml")}, problems);
  if (!problems.empty()) {
    const Diagnostic first = problems.sorted().front();
    parsed.kind = KindName(first.kind);
    parsed.location = std::to_string(first.where.line) + ":" + std::to_string(first.where.column);
  }
  EXPECT_EQ(parsed.tree.has_value(), problems.empty());
  return parsed;
}

std::string LocationTextOf(const Location& where) {
  return std::to_string(where.line) + ":" + std::to_string(where.column) + "+" + std::to_string(where.length);
}

TEST(YamlTree, EveryKeyAndValueKnowsItsLocation) {
  const Parsed parsed = Parse("# comment\na:\n  bcd: 12   # x\n  'e': \"f \\\" g\"\nlist: [1, xy]\nmore:\n  - z: 1\n");
  ASSERT_TRUE(parsed.tree);
  const YamlEntry& a = parsed.tree->entries[0];
  EXPECT_EQ(LocationTextOf(a.key_where), "2:1+1");
  EXPECT_EQ(LocationTextOf(a.value.entries[0].key_where), "3:3+3");
  EXPECT_EQ(LocationTextOf(a.value.entries[0].value.where), "3:8+2");
  EXPECT_EQ(a.value.entries[1].key, "e");
  EXPECT_EQ(LocationTextOf(a.value.entries[1].value.where), "4:8+8");  // with its quotes
  EXPECT_EQ(a.value.entries[1].value.text, "f \" g");
  EXPECT_TRUE(a.value.entries[1].value.quoted);
  EXPECT_EQ(LocationTextOf(parsed.tree->Find("list")->value.items[1].where), "5:11+2");
  EXPECT_EQ(LocationTextOf(parsed.tree->Find("more")->value.items[0].entries[0].value.where), "7:8+1");
}

TEST(YamlTree, WindowsLineEndsAndAccentsKeepLocationsInBytes) {
  const Parsed parsed = Parse("a: \"\xC3\xA9\"\r\nb: {c: \"\xC3\xA9\", d: 5}\r\n");
  ASSERT_TRUE(parsed.tree);
  EXPECT_EQ(LocationTextOf(parsed.tree->Find("b")->value.Find("d")->value.where), "2:17+1");
}

TEST(YamlTree, EmptyTextIsNothing) {
  ASSERT_TRUE(Parse("").tree);
  EXPECT_TRUE(Parse("").tree->is_null());
  EXPECT_TRUE(Parse("# only a comment\n").tree->is_null());
  EXPECT_TRUE(Parse("a:\nb: ~\n").tree->Find("a")->value.is_null());
}

// In double quotes a backslash writes any character; a block has line breaks. A plan can have none of them.
TEST(YamlTree, RefusesControlCharactersHoweverTheyAreWritten) {
  for (const std::string value : {R"("a\e[31m")", R"("\x07")", R"("\n")", R"("\t")", R"("\0")", R"("\x9b")",
                                  R"("\u202e")", R"("\u200b")", "|\n    two\n    lines\n", "'a\tb'"}) {
    const Parsed parsed = Parse("a:\n  b: " + value);
    EXPECT_EQ(parsed.kind, "FileEncoding") << value;
    EXPECT_EQ(parsed.location.substr(0, 2), "2:") << value;
  }
  EXPECT_EQ(Parse(R"("\e[31m": 1)").kind, "FileEncoding");
  EXPECT_TRUE(Parse(R"(a: "\xe9 \u20ac")").tree);
}

TEST(YamlTree, RefusesWhatRecipesDoNotUse) {
  struct Case {
    std::string text, kind, location;
  };
  const Case cases[] = {
      {"a: &x 1\n", "YamlFeature", "1:4"},
      {"a: &x 1\nb: *x\n", "YamlFeature", "1:4"},
      {"a: &x {k: *x}\n", "YamlFeature", "1:4"},
      {"a: !!python/object:os.system x\n", "YamlFeature", "1:4"},
      {"a: ! x\n", "YamlFeature", "1:4"},
      {"b: {<<: {a: 1}}\n", "YamlFeature", "1:5"},
      {"a: 1\n---\nb: 1\n", "YamlFeature", "2:1"},
      {"a: 1\nb: 2\na: 3\n", "RepeatedKey", "3:1"},
      {"a: {b: 1, b: 2}\n", "RepeatedKey", "1:11"},
      {"a: \"abc", "YamlSyntax", "1:4"},
      {"a: 'abc", "YamlSyntax", "1:4"},
      {"a: 1\n\tb: 2\n", "YamlSyntax", "2:1"},
      {"[a, b]: 1\n", "YamlSyntax", "1:1"},
      {"a: b: c\n", "YamlSyntax", "1:5"},
      {"a: {b: 1\n", "YamlSyntax", "2:1"},
      {"a: @b\n", "YamlSyntax", "1:4"},
      {"a: \xff\n", "FileEncoding", "1:4"},
      {std::string("a: b\0c\n", 7), "FileEncoding", "1:5"},
      {"\xEF\xBB\xBF"
       "a: 1\n",
       "FileEncoding", "1:1"},
      {"\xFF\xFE"
       "a",
       "FileEncoding", "1:1"},
      {"a: x\xE2\x80\xAEy\n", "FileEncoding", "1:5"},
      {"# a\rb: 1\nc: 2\n", "FileEncoding", "1:4"},
  };
  for (const Case& c : cases) {
    const Parsed parsed = Parse(c.text);
    EXPECT_EQ(parsed.kind, c.kind) << c.text;
    EXPECT_EQ(parsed.location, c.location) << c.text;
  }
}

TEST(YamlTree, BothLocationsOfARepeatedKeyAreShown) {
  Diagnostics problems;
  ParseYaml("a: 1\nb: 2\na: 3\n", {std::make_shared<const std::string>("r.yaml")}, problems);
  ASSERT_EQ(problems.sorted().size(), 1u);
  ASSERT_EQ(problems.sorted()[0].notes.size(), 1u);
  EXPECT_EQ(LocationTextOf(problems.sorted()[0].notes[0].where), "1:1+1");
}

TEST(YamlTree, DepthLimitIsExact) {
  auto nested = [](size_t levels) { return std::string(levels, '[') + "1" + std::string(levels, ']'); };
  EXPECT_TRUE(Parse(nested(kDeepestRecipe)).tree);
  EXPECT_EQ(Parse(nested(kDeepestRecipe + 1)).kind, "TooLarge");
  EXPECT_EQ(Parse(nested(200000)).kind, "TooLarge");
}

TEST(YamlTree, SizeLimitIsExact) {
  const std::string head = "a: 1\n#";
  EXPECT_TRUE(Parse(head + std::string(kLargestRecipe - head.size(), 'x')).tree);
  EXPECT_EQ(Parse(head + std::string(kLargestRecipe + 1 - head.size(), 'x')).kind, "TooLarge");
}

}  // namespace
}  // namespace planwright
