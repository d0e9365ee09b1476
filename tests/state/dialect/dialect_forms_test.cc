// The forms of dialects: their own lines, those of what they are like, and those of a composite and its parts.
#include "planner/state/dialect/dialect_forms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/plan/statement/parse_statement.h"
#include "planner/state/dialect/parse_dialect.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

void AddDialects(const std::string& kind, const std::string& lines, std::vector<Dialect>& dialects) {
  const std::string text = "kind " + kind + "\nlayer M mamba: Mamba\nlayers pattern: letters\n";
  const ModelStatement statement = ParseStatement("f", text).statement;
  ParsedDialects parsed = ParseDialects("f", text + lines, statement);
  EXPECT_EQ(ProblemsText(parsed.problems), "");
  for (Dialect& dialect : parsed.dialects) dialects.push_back(std::move(dialect));
}

// "text: names | tensors" of each form.
std::vector<std::string> Texts(const std::vector<StoredForm>& forms) {
  std::vector<std::string> texts;
  for (const StoredForm& form : forms) {
    std::string& text = texts.emplace_back(form.text + ":");
    for (const StatedNames& names : form.names) text += " " + names.ours;
    text += " |";
    for (const StatedTensor& tensor : form.tensors) text += " " + tensor.name;
  }
  return texts;
}

DialectSet Some() {
  std::vector<Dialect> dialects;
  AddDialects("lm",
              "dialect lm\n  names a. ->\n  tensor qkv = q + k\n  tensor out = o\n  form experts: single\n"
              "  form experts: stacked\n  tensor up = e stack\n"
              "dialect lm_other\n  like lm\n  tensor qo = o + q\n"
              "dialect lm_plain\n  like lm\n  without tensor\n"
              "dialect lm_none\n",
              dialects);
  AddDialects("eyes",
              "dialect eyes\n  names v. ->\n  tensor patch = p\n"
              "dialect whole, Whole_*\n  encoder in v as eyes\n  language in t as lm\n  names v.x. -> y.\n"
              "  language names a. -> b.\n  language form names: one\n  language form names: two\n"
              "  language names a. -> c.\n  language tensor out2 = o\n",
              dialects);
  return DialectSet(std::move(dialects));
}

TEST(DialectForms, OwnLinesAndThoseOfLike) {
  const DialectSet set = Some();
  EXPECT_THAT(Texts(FormsIn(set, *set.Find("lm"), "lm")),
              ElementsAre("single: a. | qkv out", "stacked: a. | up qkv out"));
  // A line of its own counts in place of those that hold the same parameters.
  EXPECT_THAT(Texts(FormsIn(set, *set.Find("lm_other"), "lm")), ElementsAre("single: a. | qo", "stacked: a. | qo up"));
  EXPECT_THAT(Texts(FormsIn(set, *set.Find("lm_plain"), "lm")), ElementsAre("single: a. |", "stacked: a. |"));
  EXPECT_THAT(Texts(FormsIn(set, *set.Find("lm_none"), "lm")), ElementsAre(": |"));
}

// Names are those of the composite alone; tensors are those of the part too.
TEST(DialectForms, PartsOfAComposite) {
  const DialectSet set = Some();
  EXPECT_THAT(Texts(FormsIn(set, *set.Find("whole"), "eyes")), ElementsAre(": v.x. | patch"));
  EXPECT_THAT(Texts(FormsIn(set, *set.Find("whole"), "lm")),
              ElementsAre("one, single: a. | qkv out", "one, stacked: a. | up qkv out", "two, single: a. a. | out2 qkv",
                          "two, stacked: a. a. | out2 up qkv"));
}

TEST(DialectForms, OfAKindAreThoseOfAllItsDialects) {
  const KindForms forms = FormsOf(Some());
  ASSERT_EQ(forms.size(), 2);
  std::vector<std::string> names;
  for (const DialectForms& dialect : forms.at("lm")) names.push_back(dialect.names.front());
  EXPECT_THAT(names, ElementsAre("lm", "lm_other", "lm_plain", "whole"));
  const DialectForms& whole = forms.at("lm").back();
  EXPECT_TRUE(whole.IsOf("whole") && whole.IsOf("Whole_8B"));
  EXPECT_FALSE(whole.IsOf("lm") || whole.IsOf("whole2"));
}

// Folders hold each parameter as a tensor of its own, but for embeddings that are convolutions, those of Qwen3-VL and
// of SigLIP, and the experts of a layer of Qwen3-VL in one tensor. Names of SigLIP come in two ways. The head of a
// decoder may begin as its embedding.
TEST(DialectForms, ThoseOfTheProgramHaveNamesAlone) {
  std::vector<std::string> others;
  for (const auto& [kind, dialects] : BuiltInForms()) {
    for (const DialectForms& dialect : dialects) {
      const bool of_qwen = dialect.names.front().starts_with("qwen3_vl");
      for (const StoredForm& form : dialect.forms) {
        if (!form.tensors.empty()) others.push_back(absl::StrCat(kind, " ", dialect.names.front(), ": ", form.text));
        if (!of_qwen) EXPECT_EQ(form.text == "", kind != "decoder" && kind != "siglip_vit");
      }
    }
  }
  EXPECT_THAT(others, ::testing::UnorderedElementsAre(
                          "qwen_vit qwen3_vl_vision: ", "qwen_vit qwen3_vl_moe_vision: ", "qwen_vit qwen3_vl: ",
                          "qwen_vit qwen3_vl_moe: ", "siglip_vit siglip_vision_model: names of releases",
                          "siglip_vit siglip_vision_model: names without vision_model",
                          "siglip_vit llava: names of releases", "siglip_vit llava: names without vision_model",
                          "decoder qwen3_vl_moe: transposed matrices of experts",
                          "decoder qwen3_vl_moe: matrices of experts as they are"));
}

}  // namespace
}  // namespace planwright
