// Each line of a form by itself, and what alternatives of groups make together.
#include "planner/state/forms/stored_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Read {
  FormLines lines;
  std::string problems;
};
Read ReadOf(const std::string& text) {
  Read read;
  TextProblems problems;
  ReadLines(text, "f", problems, [&](LineReader& line) { EXPECT_TRUE(read.lines.Take(line)) << line.Rest(); });
  read.problems = ProblemsText(problems);
  return read;
}
StoredForm FormOf(const std::string& text) {
  const Read read = ReadOf(text);
  EXPECT_EQ(read.problems, "");
  EXPECT_EQ(read.lines.Forms().size(), 1);
  return read.lines.Forms()[0];
}

TEST(FormLines, ATensorHasParametersAndHowTheyLie) {
  const StoredForm form = FormOf(
      "tensor a.{layer}.qkv = q.weight + k.weight\n    + v.weight along 1 each heads / 2 swap stack shape [heads, 3]\n"
      "tensor b = c\n");
  ASSERT_EQ(form.tensors.size(), 2);
  const StatedTensor& tensor = form.tensors[0];
  EXPECT_EQ(tensor.name, "a.{layer}.qkv");
  EXPECT_THAT(tensor.parameters, ElementsAre("q.weight", "k.weight", "v.weight"));
  EXPECT_EQ(tensor.along, 1);
  EXPECT_EQ(tensor.each->text(), "heads / 2");
  EXPECT_TRUE(tensor.swap && tensor.stack);
  ASSERT_EQ(tensor.shape.size(), 2);
  EXPECT_EQ(tensor.shape[1].text(), "3");
  EXPECT_EQ(tensor.line->At(0).line, 1);
  EXPECT_EQ(form.tensors[1].along, 0);
  EXPECT_FALSE(form.tensors[1].each || form.tensors[1].swap || form.tensors[1].stack);
  EXPECT_THAT(form.tensors[1].shape, IsEmpty());
}

TEST(FormLines, ALineOfAnotherWordIsLeft) {
  FormLines lines;
  LineReader line("silent a b");
  EXPECT_FALSE(lines.Take(line));
  EXPECT_EQ(line.Rest(), "silent a b");
  EXPECT_TRUE(lines.empty());
  EXPECT_EQ(lines.Forms().size(), 1);
}

TEST(FormLines, MistakesHavePlaces) {
  EXPECT_EQ(ReadOf("tensor a q").problems, "f:1:10: expected `=`, found \"q\"\n");
  EXPECT_EQ(ReadOf("tensor a = q + q").problems, "f:1:16: \"q\" is there already\n");
  EXPECT_EQ(ReadOf("tensor a = q along two").problems, "f:1:20: \"two\" is no number from 0\n");
  EXPECT_EQ(ReadOf("tensor a = q stack swap").problems, "f:1:20: expected the end of the line, found \"swap\"\n");
  EXPECT_EQ(ReadOf("tensor a = q each 2").problems, "f:1:14: expected the end of the line, found \"each\"\n");
  EXPECT_EQ(ReadOf("names a b").problems, "f:1:9: expected `->`, found \"b\"\n");
  EXPECT_EQ(ReadOf("names a -> b c").problems, "f:1:14: expected the end of the line, found \"c\"\n");
  EXPECT_EQ(ReadOf("form experts stacked").problems, "f:1:14: expected `:`, found \"stacked\"\n");
  EXPECT_EQ(ReadOf("form experts:").problems,
            "f:1:14: expected what people call the form, found the end of the line\n");
  std::string many;
  for (int i = 0; i < 65; ++i) many += "form g: x\n";
  EXPECT_EQ(ReadOf(many).problems, "f:65:6: the groups have more than 64 choices together\n");
}

TEST(FormLines, FormsAreOneChoiceOfEachGroup) {
  const Read read = ReadOf(
      "names a. -> b.\ntensor x = y\nform names: alone\nform names: inside\nnames m. -> n.\nform experts: single\n"
      "form experts: stacked\ntensor up = e stack\n");
  EXPECT_EQ(read.problems, "");
  std::vector<std::string> texts;
  for (const StoredForm& form : read.lines.Forms()) {
    std::string names, tensors;
    for (const StatedNames& rule : form.names) names += " " + rule.ours;
    for (const StatedTensor& tensor : form.tensors) tensors += " " + tensor.name;
    texts.push_back(form.text + ":" + names + " |" + tensors);
  }
  EXPECT_THAT(texts, ElementsAre("alone, single: a. | x", "alone, stacked: a. | up x", "inside, single: m. a. | x",
                                 "inside, stacked: m. a. | up x"));
  FormLines without = read.lines;
  without.DropTensors();
  EXPECT_THAT(without.Forms()[1].tensors, IsEmpty());
  EXPECT_EQ(without.Forms()[3].names.size(), 2);
}

TEST(StoredForm, TheFirstLineThatFitsNames) {
  const StoredForm form = FormOf(
      "names {encoder}tower.layer.{block}.norm. -> vision.{block}.norm1.\nnames {encoder}tower. -> vision.\n"
      "names model.layers.{layer}.experts.{expert}. -> m.{layer}.e.{expert}.\nnames head ->\n");
  EXPECT_EQ(form.NameOf("eyes.tower.layer.12.norm.weight", "eyes."), "vision.12.norm1.weight");
  EXPECT_EQ(form.NameOf("eyes.tower.layer.12.fc.weight", "eyes."), "vision.layer.12.fc.weight");
  EXPECT_EQ(form.NameOf("tower.layer.x.norm.weight", ""), "vision.layer.x.norm.weight");
  EXPECT_EQ(form.NameOf("tower.cls", "eyes."), "tower.cls");
  EXPECT_EQ(form.NameOf("model.layers.3.experts.{expert}.up", ""), "m.3.e.{expert}.up");
  EXPECT_EQ(form.NameOf("head.weight", ""), ".weight");
}

}  // namespace
}  // namespace planwright
