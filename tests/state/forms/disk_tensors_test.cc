// Lines `tensor` on the modules of a plan: names, shapes and which parameters, and what is refused where.
#include "planner/state/forms/disk_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "planner/plan/shard_map.h"
#include "tests/numerics/layouts.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class OfAPlan : public ::testing::Test {
 protected:
  DiskTensors Of(const std::string& text, const std::string& kind = "hybrid_lm") const {
    FormLines lines;
    TextProblems problems;
    ReadLines(text, "f", problems, [&](LineReader& line) { EXPECT_TRUE(lines.Take(line)); });
    EXPECT_EQ(ProblemsText(problems), "");
    return DiskTensorsOf(lines.Forms()[0], ModuleOf(kind), *StatementOf(kind));
  }
  std::string ProblemsOf(const std::string& text, const std::string& kind = "hybrid_lm") const {
    return ProblemsText(Of(text, kind).problems);
  }
  const Module& ModuleOf(const std::string& kind) const {
    for (const Module& module : plan_.modules) {
      if (module.kind == kind) return module;
    }
    ADD_FAILURE() << "no module of kind " << kind;
    return plan_.modules[0];
  }
  const Parameter& Find(const Module& module, const std::string& end) const {
    for (const Parameter& parameter : module.parameters) {
      if (parameter.file_name.ends_with(end)) return parameter;
    }
    ADD_FAILURE() << end;
    return module.parameters[0];
  }

  const Plan plan_ = testing::CompiledFile(InSource(testing::kTinyRecipe));
};

// Each element of a tensor is in one piece, which has as many as the parameter.
void ExpectCovered(const DiskTensor& tensor, const Module& module) {
  const int64_t elements = ElementsOf(tensor.shape);
  std::vector<int> seen(static_cast<size_t>(elements), 0);
  for (const DiskPiece& piece : tensor.pieces) {
    int64_t count = 0;
    for (int64_t at = 0; at < elements; ++at) {
      for (const ElementBox& box : piece.map.BoxesOnDisk(at, 1)) {
        ASSERT_EQ(box.elements(), 1);
        ++seen[static_cast<size_t>(at)];
        ++count;
      }
    }
    EXPECT_EQ(count, ElementsOf(module.parameters[static_cast<size_t>(piece.parameter)].shape));
  }
  EXPECT_THAT(seen, ::testing::Each(1)) << tensor.name;
}

TEST_F(OfAPlan, EachLayerOfThePieceHasATensor) {
  const Module& module = ModuleOf("hybrid_lm");
  const DiskTensors found =
      Of("names language_model. -> lm.\n"
         "tensor language_model.backbone.layers.{layer}.mixer.qkv = mixer.q_proj.weight + mixer.k_proj.weight\n"
         "    + mixer.v_proj.weight along 0 each attention.kv_groups\n");
  EXPECT_EQ(ProblemsText(found.problems), "");
  size_t layers = 0;
  for (size_t i = 0; i < module.layers.size(); ++i) {
    if (module.layers[i].kind != '*') continue;
    ASSERT_LT(layers, found.tensors.size());
    const DiskTensor& tensor = found.tensors[layers++];
    EXPECT_EQ(tensor.name, "lm.backbone.layers." + std::to_string(i) + ".mixer.qkv");
    const int64_t rows =
        (module.size("attention.heads") + 2 * module.size("attention.kv_groups")) * module.size("attention.head_dim");
    EXPECT_THAT(tensor.shape, ElementsAre(rows, module.size("hidden")));
    ASSERT_EQ(tensor.pieces.size(), 3);
    ExpectCovered(tensor, module);
  }
  EXPECT_EQ(found.tensors.size(), layers);
  EXPECT_GT(layers, 0);
}

TEST_F(OfAPlan, ExpertsAreStackedAndSwappedOrStaySingle) {
  const Module& module = ModuleOf("hybrid_lm");
  const Parameter& up = Find(module, "up_proj.weight");
  const int64_t experts = module.experts();
  const DiskTensors stacked =
      Of("tensor language_model.backbone.layers.{layer}.up = mixer.experts.{expert}.up_proj.weight swap stack\n");
  EXPECT_EQ(ProblemsText(stacked.problems), "");
  ASSERT_FALSE(stacked.tensors.empty());
  EXPECT_THAT(stacked.tensors[0].shape, ElementsAre(experts, up.shape[1], up.shape[0]));
  EXPECT_EQ(stacked.tensors[0].pieces.size(), static_cast<size_t>(experts));
  ExpectCovered(stacked.tensors[0], module);
  const DiskTensors single =
      Of("tensor language_model.backbone.layers.{layer}.e{expert} = mixer.experts.{expert}.up_proj.weight swap\n");
  EXPECT_EQ(ProblemsText(single.problems), "");
  EXPECT_EQ(single.tensors.size(), stacked.tensors.size() * static_cast<size_t>(experts));
  EXPECT_THAT(single.tensors[1].name, ::testing::EndsWith(".e1"));
  ExpectCovered(single.tensors[1], module);
}

TEST_F(OfAPlan, ShapesAreOthersOfTheSameElements) {
  const DiskTensors found = Of(
      "tensor {encoder}patches = radio_model.model.patch_generator.embedder.weight shape [hidden, 3, patch, patch]\n",
      "radio_vit");
  EXPECT_EQ(ProblemsText(found.problems), "");
  const Module& module = ModuleOf("radio_vit");
  ASSERT_EQ(found.tensors.size(), 1);
  EXPECT_EQ(found.tensors[0].name, "patches");
  EXPECT_THAT(found.tensors[0].shape,
              ElementsAre(module.size("hidden"), 3, module.size("patch"), module.size("patch")));
  EXPECT_TRUE(found.tensors[0].pieces[0].map.contiguous());
}

TEST_F(OfAPlan, EncodersOfSeveralHaveTheirBeginning) {
  const Plan plan = testing::CompiledFile(InSource("recipes/nemotron_moe_two_encoders_tiny.yaml"));
  FormLines lines;
  LineReader line("tensor {encoder}a = radio_model.model.patch_generator.embedder.weight");
  ASSERT_TRUE(lines.Take(line));
  std::set<std::string> names;
  for (const Module& module : plan.modules) {
    if (module.has_images)
      names.insert(DiskTensorsOf(lines.Forms()[0], module, *StatementOf(module.kind)).tensors.at(0).name);
  }
  EXPECT_THAT(names, ElementsAre("fine_encoder.a", "radio_encoder.a"));
}

TEST_F(OfAPlan, WhatDoesNotCoverIsRefusedWithItsPlace) {
  const std::string at = "tensor backbone.{layer}.x = ";
  EXPECT_EQ(ProblemsOf(at + "mixer.q_prj.weight"),
            "f:1:29: no piece has a weight \"mixer.q_prj.weight\"; did you mean `mixer.q_proj.weight`?\n");
  EXPECT_EQ(ProblemsOf(at + "mixer.q_proj.weight + mixer.conv1d.weight"),
            "f:1:8: no piece has all of these parameters, and a tensor holds those of one piece\n");
  EXPECT_EQ(ProblemsOf("tensor backbone.{block}.x = mixer.q_proj.weight"),
            "f:1:8: the name has a number that \"language_model.backbone.layers.2.mixer.q_proj.weight\" has not: it is "
            "named by \"backbone.layers.{layer}.\"\n");
  EXPECT_THAT(ProblemsOf(at + "mixer.q_proj.weight + mixer.k_proj.weight along 1"),
              AllOf(StartsWith("f:1:51: "), HasSubstr("which does not go with")));
  EXPECT_THAT(ProblemsOf(at + "mixer.q_proj.weight + mixer.k_proj.weight along 2"),
              AllOf(StartsWith("f:1:71: "), HasSubstr("which has no dim 2")));
  EXPECT_THAT(ProblemsOf(at + "mixer.q_proj.weight along 0 each 7"),
              AllOf(StartsWith("f:1:29: "), HasSubstr("which 7 does not divide")));
  EXPECT_EQ(ProblemsOf(at + "mixer.q_proj.weight along 0 each attention.heds"),
            "f:1:62: \"attention.heds\" is no constant of hybrid_lm; did you mean `attention.heads`?\n");
  EXPECT_THAT(ProblemsOf(at + "mixer.q_proj.weight along 0 each attention.heads / 3"),
              AllOf(StartsWith("f:1:62: "), HasSubstr("is no number of groups")));
  EXPECT_THAT(ProblemsOf(at + "mixer.q_proj.weight along 0 each tp"), HasSubstr("\"tp\" is no constant"));
  EXPECT_THAT(ProblemsOf(at + "mixer.A_log swap"), AllOf(StartsWith("f:1:41: "), HasSubstr("nothing to swap")));
  EXPECT_THAT(ProblemsOf(at + "mixer.A_log stack"), AllOf(StartsWith("f:1:41: "), HasSubstr("no experts to stack")));
  EXPECT_THAT(ProblemsOf(at + "mixer.experts.{expert}.up_proj.weight"),
              AllOf(StartsWith("f:1:8: "), HasSubstr("its name needs {expert}")));
  EXPECT_THAT(ProblemsOf("tensor x.{layer}.{expert} = mixer.experts.{expert}.up_proj.weight stack"),
              AllOf(StartsWith("f:1:8: "), HasSubstr("its name has no {expert}")));
  EXPECT_THAT(ProblemsOf(at + "mixer.q_proj.weight shape [hidden, 3]"),
              AllOf(StartsWith("f:1:49: "), HasSubstr("and the elements are those of")));
  EXPECT_EQ(ProblemsOf("tensor x = norm.weight"), "f:1:8: two tensors are called \"x\"\n");
  EXPECT_EQ(ProblemsOf("tensor a.{layer} = mixer.q_proj.weight\ntensor b.{layer} = mixer.k_proj.weight\n"
                       "tensor c.{layer} = mixer.v_proj.weight + mixer.k_proj.weight"),
            "f:3:42: \"language_model.backbone.layers.2.mixer.k_proj.weight\" is in another tensor already "
            "(from line 2)\n");
  EXPECT_EQ(ProblemsOf("tensor language_model.backbone.layers.{layer}.mixer.k_proj.weight = mixer.q_proj.weight"),
            "f:1:1: the tensor has the name of \"language_model.backbone.layers.2.mixer.k_proj.weight\", which is a "
            "tensor of its own\n");
}

}  // namespace
}  // namespace planwright
