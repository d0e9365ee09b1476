// A tree as text: values that a text had stay as they were written, others get a form in which they are read as the
// same.
#include "planner/recipe/yaml/yaml_text.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "planner/recipe/yaml/yaml_comments.h"

namespace planwright {
namespace {

YamlNode Read(const std::string& text) {
  Diagnostics problems;
  auto tree = ParseYaml(text, {}, problems);
  for (const Diagnostic& problem : problems.as_found()) ADD_FAILURE() << problem.message << "\n" << text;
  return tree.value_or(YamlNode());
}

YamlNode ReadAll(const std::string& text) {
  YamlNode tree = Read(text);
  EXPECT_TRUE(ReadComments(text, "r.yaml", tree).ok()) << text;
  return tree;
}

YamlNode TextNode(const std::string& text) {
  YamlNode node;
  node.kind = YamlNode::Kind::kScalar, node.text = text, node.quoted = true;
  return node;
}

YamlNode MapOf(std::vector<std::pair<std::string, YamlNode>> entries) {
  YamlNode map;
  map.kind = YamlNode::Kind::kMap;
  for (auto& [key, value] : entries) map.entries.push_back({key, {}, std::move(value)});
  return map;
}

TEST(YamlText, KeepsCommentsBlankLinesAndForms) {
  const std::string text =
      "#!/usr/bin/env plan\n"
      "# About the file.\n"
      "\n"
      "# Of the name.\n"
      "name: \"a: b\"  # beside\n"
      "\n"
      "list:\n"
      "  # Of the item.\n"
      "  - {a: 1, b: [x, 'it''s \"so\"']}\n"
      "  - c: two\n"
      "      lines\n"
      "  # At the end of the list.\n"
      "\n"
      "map:  # a block\n"
      "  deep: {x: y:z}\n"
      "  none:\n"
      "  # At the end of the map.\n"
      "\n"
      "# At the end of the file.\n";
  EXPECT_EQ(YamlText(ReadAll(text)), text);
  EXPECT_EQ(YamlText(ReadAll("# only this\n\n# and this\n")), "# only this\n\n# and this\n");
  EXPECT_EQ(YamlText(YamlNode()), "");
}

TEST(YamlText, WritesWhatNoTextHad) {
  EXPECT_EQ(YamlText(Read("{a: {b: 1, c: [1, 2]}, d: {e: {f: 2}}, g: {}}")),
            "a: {b: 1, c: [1, 2]}\nd:\n  e: {f: 2}\ng: {}\n");
  // A map that is too long for a line, and a list.
  const std::string word(60, 'w');
  EXPECT_EQ(YamlText(MapOf({{"m", MapOf({{"a", TextNode(word)}, {"b", TextNode(word)}})}})),
            "m:\n  a: \"" + word + "\"\n  b: \"" + word + "\"\n");
  EXPECT_EQ(YamlText(Read("l: [" + word + ", " + word + "]")), "l:\n  - " + word + "\n  - " + word + "\n");
}

// What is written is read as the same, in a block and on one line.
TEST(YamlText, IsReadAsTheSame) {
  for (const char* text :
       {"",   " ",  "plain", "two words", "it's", "say \"so\"", "a: b", "a #b", "#a",          "- a",      "-",
        "-5", "[x", "{x",    "x,y",       "null", "~",          "true", "1e5",  "back\\slash", "*a",       "&a",
        "!a", "|",  ">",     "%",         "@",    "`",          "?",    "? x",  "é",           "trailing "}) {
    const YamlNode again = Read(YamlText(MapOf({{"k", TextNode(text)}}))), flow = Read(FlowText(TextNode(text)));
    ASSERT_EQ(again.entries.size(), 1u) << text;
    EXPECT_EQ(again.entries[0].value.text, text);
    EXPECT_TRUE(again.entries[0].value.quoted) << text;
    EXPECT_EQ(flow.text, text);
  }
  for (const char* key : {"a", "a.b", "0-3", "two words", "a:b", "\"q\"", "-x", "é"}) {
    const YamlNode again = Read(YamlText(MapOf({{key, TextNode("v")}})));
    ASSERT_EQ(again.entries.size(), 1u) << key;
    EXPECT_EQ(again.entries[0].key, key);
  }
  // Plain in a block, where a comma or a bracket is a letter.
  for (const char* text : {"k: a, b\n", "k: a]b\n", "k: x:y\n", "k: -1\n", "k: 1.0e-5\n"}) {
    const YamlNode block = Read(text), flow = Read("[" + FlowText(block.entries[0].value) + "]");
    ASSERT_EQ(flow.items.size(), 1u) << text;
    EXPECT_EQ(flow.items[0].text, block.entries[0].value.text);
    EXPECT_EQ(YamlText(ReadAll(text)), text);
  }
}

TEST(YamlText, RefusesFormsThatNobodyWrites) {
  YamlNode tree = Read("? a\n: 1\n");
  const absl::Status status = ReadComments("? a\n: 1\n", "r.yaml", tree);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message().substr(0, 9), "r.yaml:1:");
}

TEST(CommentLines, AreLines) {
  EXPECT_EQ(CommentLines("one\n\ntwo  \n\n"), (std::vector<std::string>{"# one", "#", "# two"}));
  EXPECT_EQ(CommentLines(""), std::vector<std::string>());
}

}  // namespace
}  // namespace planwright
