// V11 of modules: names, sizes, cuts, initial values and constants are those of the statement.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "planner/verify/rules.h"
#include "planner/verify/verify.h"
#include "tests/numerics/layouts.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"
#include "tests/verify/v11_what_follows/follows_damage.h"

namespace planwright {
namespace {

using testing::BlockOf;
using testing::CompiledFile;
using testing::Damage;
using testing::Encoder;
using testing::EncoderOn;
using testing::ExpectRefused;
using testing::Join;
using testing::kTiny;
using testing::Language;
using testing::LanguageOn;
using testing::Named;
using testing::OpOf;
using testing::ParameterOf;
using testing::StorageOf;
using testing::TensorParallel;

// Names, file names, storages, segments, initial values, decay, constants and counts of the language model.
TEST(Follows, ParametersOfTheLanguageModelAreItsOwn) {
  const std::vector<Damage> damages = {
      {"names_swapped",
       [](Plan& p) {
         std::swap(ParameterOf(Language(p), "layers.0.mixer.D").name,
                   ParameterOf(Language(p), "layers.0.mixer.dt_bias").name);
       },
       "mixer.D"},
      {"file_names_swapped",
       [](Plan& p) {
         Module& module = Language(p);
         std::swap(ParameterOf(module, "layers.0.mixer.D").file_name,
                   ParameterOf(module, "layers.0.mixer.dt_bias").file_name);
       },
       "file name"},
      {"embedding_and_head_change_names",
       [](Plan& p) {
         std::swap(ParameterOf(Language(p), "embeddings.weight").name, ParameterOf(Language(p), "lm_head.weight").name);
       }},
      {"embedding_under_the_head",
       [](Plan& p) {
         std::swap(StorageOf(Language(p), ".embed", "embeddings").parameters,
                   StorageOf(Language(p), ".head", "lm_head").parameters);
       },
       "parameters"},
      {"key_and_value_change_places",
       [](Plan& p) {
         std::vector<int>& joined = StorageOf(Language(p), "layers.2", "qkv").parameters;
         std::swap(joined[1], joined[2]);
       },
       "qkv of parameters"},
      {"segments_reversed",
       [](Plan& p) {
         std::vector<int64_t>& segments = ParameterOf(Language(p), "layers.0.mixer.in_proj.weight").segments;
         std::reverse(segments.begin(), segments.end());
       },
       "reads zxbcdt in parts of", "V4"},
      {"segments_merged",
       [](Plan& p) {
         Parameter& parameter = ParameterOf(Language(p), "layers.0.mixer.conv1d.weight");
         parameter.segments = {parameter.shape[0]};
       },
       "conv_weight", "V4"},
      {"expert_count",
       [](Plan& p) { ParameterOf(Language(p), "layers.1.mixer.experts.{expert}.up_proj.weight").shape[0] *= 2; }, "",
       "V7"},
      {"initial_std", [](Plan& p) { ParameterOf(Language(p), "lm_head.weight").init.a *= 2; }, "initial value"},
      {"residual_std_without_its_scale",
       [](Plan& p) { ParameterOf(Language(p), "layers.2.mixer.o_proj.weight").init.a = Language(p).real("init_std"); },
       "o_proj.weight of initial value"},
      {"ones_become_zeros", [](Plan& p) { ParameterOf(Language(p), "norm_f.weight").init.kind = Init::Kind::kZeros; },
       "initial value"},
      {"norm_decays", [](Plan& p) { ParameterOf(Language(p), "layers.0.norm.weight").decay = true; }, "decay"},
      {"weight_does_not_decay", [](Plan& p) { ParameterOf(Language(p), "lm_head.weight").decay = false; }, "decay"},
      {"bias_is_no_buffer", [](Plan& p) { ParameterOf(Language(p), "e_score_correction_bias").buffer = false; },
       "buffer"},
      {"constant_without_a_layer", [](Plan& p) { Language(p).constants["dropout"] = 0.5; }, "dropout"},
      {"no_such_size", [](Plan& p) { Language(p).constants["moe.shared_ffn"] = 0.5; }, "no integer"},
      {"layers_change_frames", [](Plan& p) { std::swap(Language(p).layers[0].frame, Language(p).layers[1].frame); }, "",
       "V5"},
      {"parameter_count", [](Plan& p) { ++Language(p).parameter_count; }, "parameter_count"},
      {"head_flops", [](Plan& p) { Language(p).head_flops *= 2; }, "head_flops"},
      {"layer_flops", [](Plan& p) { Language(p).layers[0].forward_flops *= 2; }, "forward_flops"},
      {"expert_rows_from_one", [](Plan& p) { ++Language(p).layers[1].expert_row; }, "expert_row"},
  };
  ExpectRefused(TensorParallel(), damages, "module language");
}

TEST(Follows, ParametersOfTheEncoderAreItsOwn) {
  const std::vector<Damage> damages = {
      {"query_key_and_value_in_one_cut",
       [](Plan& p) {
         Parameter& parameter = ParameterOf(Encoder(p), "blocks.0.attn.qkv.weight");
         parameter.segments = {parameter.shape[0]};
       },
       "qkv_weight", "V4"},
      {"norms_change_names",
       [](Plan& p) {
         std::swap(ParameterOf(Encoder(p), "blocks.0.norm1.weight").name,
                   ParameterOf(Encoder(p), "blocks.0.norm2.weight").name);
       }},
      {"slots_change_names",
       [](Plan& p) {
         std::swap(StorageOf(Encoder(p), "layers.0", "norm1_weight").slot,
                   StorageOf(Encoder(p), "layers.0", "norm2_weight").slot);
       },
       "norm1_weight"},
      {"projector_ends_elsewhere", [](Plan& p) { Encoder(p).constants["output.init_std"] = 0.5; }, "output.init_std"},
      {"blind", [](Plan& p) { Encoder(p).has_images = false; }, "has_images"},
      {"projector_count", [](Plan& p) { ++Encoder(p).projector_count; }, "projector_count"},
      {"pixel_shuffle_of_the_data", [](Plan& p) { p.data.encoders[0].max_image *= 2; }, "max_image"},
  };
  ExpectRefused(TensorParallel(), damages, "module radio_encoder");
}

// If there is no backward to compare with, only V11 says which tensor a block reads.
TEST(Follows, AFrozenBlockReadsItsOwnSlots) {
  const Plan frozen = CompiledFile(kTiny, Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2),
                                               {"modules.radio_encoder.train={backbone: frozen, projection: trained}",
                                                "modules.language.train.backbone=frozen"}));
  const auto swap_slots = [](Instruction& a, Instruction& b) { std::swap(a.parameters, b.parameters); };
  ExpectRefused(
      frozen,
      {{"norms_of_a_layer_swapped",
        [&](Plan& p) {
          Block& block = BlockOf(p, "radio_encoder.layer.forward");
          swap_slots(OpOf(block, OpKind::kLayerNorm, 0), OpOf(block, OpKind::kLayerNorm, 1));
        },
        "layer_norm"},
       {"biases_swapped",
        [&](Plan& p) {
          Block& block = BlockOf(p, "radio_encoder.layer.forward");
          swap_slots(OpOf(block, OpKind::kAddResidualBias, 0), OpOf(block, OpKind::kAddResidualBias, 1));
        }},
       {"residual_from_the_wrong_place",
        [&](Plan& p) { OpOf(BlockOf(p, "radio_encoder.layer.forward"), OpKind::kAddResidualBias, 1).inputs[0] = "x"; },
        "not x1"},
       {"eps_of_the_other_norm",
        [](Plan& p) {
          Encoder(p).constants["projector.norm_eps"] = 0.25;
          Encoder(p).constants["norm_eps"] = 0.5;
          for (const char* block : {"radio_encoder.layer.forward", "radio_encoder.head.forward"}) {
            for (Instruction& op : BlockOf(p, block).body) {
              if (op.attributes.contains("eps")) op.attributes["eps"] = 0.5;
            }
          }
        },
        "another eps"},
       {"squares_of_other_rows",
        [](Plan& p) { OpOf(BlockOf(p, "radio_encoder.head.forward"), OpKind::kSquareSum).inputs[0] = "n"; },
        "not rows"},
       {"trained_by_name_alone", [](Plan& p) { Encoder(p).trains_backbone = true; }, "crop", "V4"}},
      "");
}

// Two key heads and 259 ids on 4 tp ranks: keys and values lie whole on each, the last rank has one id less.
TEST(Follows, WhatTpDoesNotDivide) {
  const Plan plan = CompiledFile(
      InSource("recipes/nemotron_moe_lm_tiny.yaml"),
      Join(LanguageOn(0, 4, 4, 2), {"models.hybrid_moe_tiny.mamba.groups=4", "models.hybrid_moe_tiny.vocabulary=259"}));
  const auto output = [](Plan& p, const char* block, OpKind kind, size_t at) -> ValueType& {
    return OpOf(BlockOf(p, block), kind).outputs[at].type;
  };
  ExpectRefused(
      plan,
      {{"keys_and_values_change_places",
        [](Plan& p) {
          std::vector<int>& joined = StorageOf(Language(p), "layers.2", "kv").parameters;
          std::swap(joined[0], joined[1]);
        },
        "kv of parameters"},
       {"keys_are_cut", [](Plan& p) { ParameterOf(Language(p), "layers.2.mixer.k_proj.weight").shard_dim = 0; },
        "k_proj.weight", "V7"},
       {"keys_that_each_rank_has_whole_gradients_of",
        [](Plan& p) {
          Module& module = Language(p);
          Bucket& bucket = module.buckets[static_cast<size_t>(StorageOf(module, "layers.2", "kv").bucket)];
          bucket.tp = TpGradient::kReplicated;
          bucket.tp_group.clear();
        },
        "all_reduce 1 times", "V7"},
       {"gradients_of_keys_that_are_no_term",
        [&](Plan& p) { output(p, "language.attention.backward", OpKind::kCausalAttentionAllKvGrad, 1).layout.clear(); },
        "which is a partial sum over tp, as whole", "V4"},
       {"keys_of_this_rank_alone",
        [](Plan& p) {
          OpOf(BlockOf(p, "language.attention.forward"), OpKind::kCausalAttentionAllKv).attributes["kv_heads"] =
              int64_t{1};
        },
        "has kv_heads 1, not 2", "V4"},
       {"ids_that_are_not_padded", [](Plan& p) { ParameterOf(Language(p), "lm_head.weight").padded = false; },
        "holds 4144 elements of parameters in language.head.lm_head", "V7"},
       {"padding_of_what_tp_divides",
        [](Plan& p) { ParameterOf(Language(p), "layers.2.mixer.q_proj.weight").padded = true; },
        "padded true, not false"},
       {"padding_that_takes_part_in_the_loss",
        [](Plan& p) {
          OpOf(BlockOf(p, "language.head.forward"), OpKind::kCrossEntropyParts).attributes.erase("vocabulary");
        },
        "lacks the attribute vocabulary", "V4"},
       {"padding_that_takes_part_in_the_gradient",
        [](Plan& p) {
          OpOf(BlockOf(p, "language.head.backward"), OpKind::kCrossEntropyGrad).attributes["vocabulary"] = int64_t{260};
        },
        "has vocabulary 260, not 259", "V4"}},
      "module language");
}

// A flag is 0 or 1. Every place that repeats it is changed, as an author could who knows the plan.
TEST(Follows, AFlagIsZeroOrOne) {
  Plan plan = TensorParallel();
  Module& encoder = Named(plan, "radio_encoder");
  ASSERT_EQ(encoder.size("crop"), 1);
  encoder.constants["crop"] = int64_t{2};
  for (Block& block : plan.blocks) {
    for (Instruction& op : block.body) {
      if (op.attributes.contains("crop")) op.attributes["crop"] = int64_t{2};
    }
  }
  const std::vector<Violation> found = VerifyPlan(plan);
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].rule, "V11");
  EXPECT_EQ(found[0].message, "module radio_encoder has the constant crop 2, not 0 or 1");
}

// A plan with constants that no model has is refused, and quickly: VerifyPlan must neither crash nor run for ever.
TEST(Follows, DamagedConstantsAreRefused) {
  const Plan sound = TensorParallel();
  for (const Module& module : sound.modules) {
    for (const auto& [name, value] : module.constants) {
      for (const Attribute& other : {Attribute(int64_t{0}), Attribute(int64_t{-7}), Attribute(int64_t{1} << 50),
                                     Attribute(0.0), Attribute(1e300), Attribute(std::nan("")),
                                     Attribute(std::string("x")), Attribute(std::vector<int64_t>{1})}) {
        const bool rate = name == "moe.bias_rate";  // any rate >= 0 is allowed
        if (other == value || (rate && std::holds_alternative<double>(other) && std::get<double>(other) >= 0)) continue;
        Plan plan = sound;
        Named(plan, module.name).constants[name] = other;
        EXPECT_FALSE(VerifyPlan(plan).empty()) << module.name << " " << name;
      }
      Plan plan = sound;
      Named(plan, module.name).constants.erase(name);
      EXPECT_FALSE(VerifyPlan(plan).empty()) << module.name << " lacks " << name;
    }
  }
}

// A constant that a module lacks where it is a certain number has one form. What depends on it is compared.
TEST(Follows, AModuleLacksAConstantThatSaysNothingNew) {
  const auto problems = [](const std::vector<std::string>& recipe, auto damage) {
    Plan plan = CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml"), recipe);
    EXPECT_THAT(VerifyPlan(plan), ::testing::IsEmpty());
    damage(plan, Named(plan, "radio_encoder"));
    std::string text;
    for (const Violation& violation : VerifyPlan(plan)) text += violation.rule + " " + violation.message + "\n";
    return text;
  };
  const std::string without = "models.radio_vit_tiny.final_norm=none", exact = "models.radio_vit_tiny.activation=gelu";
  using ::testing::HasSubstr;
  EXPECT_EQ(problems({}, [](Plan&, Module& encoder) { encoder.constants["final_norm"] = int64_t{1}; }),
            "V11 module radio_encoder has the constant final_norm 1, which a module lacks if it is 1\n");
  EXPECT_EQ(problems({}, [](Plan&, Module& encoder) { encoder.constants["erf_gelu"] = int64_t{0}; }),
            "V11 module radio_encoder has the constant erf_gelu 0, which a module lacks if it is 0\n");
  EXPECT_THAT(problems({}, [](Plan&, Module& encoder) { encoder.constants["final_norm"] = int64_t{0}; }),
              HasSubstr("V11 module radio_encoder has as parameter"));
  EXPECT_THAT(problems({without}, [](Plan&, Module& encoder) { encoder.constants.erase("final_norm"); }),
              HasSubstr("V11 module radio_encoder has as parameter"));
  EXPECT_THAT(problems({}, [](Plan&, Module& encoder) { encoder.constants["erf_gelu"] = int64_t{1}; }),
              HasSubstr("V11 block radio_encoder.layer.forward has gelu with another erf than its model"));
  EXPECT_THAT(problems({exact}, [](Plan&, Module& encoder) { encoder.constants.erase("erf_gelu"); }),
              HasSubstr("V11 block radio_encoder.layer.forward has gelu with another erf than its model"));
  EXPECT_THAT(problems({exact},
                       [](Plan& plan, Module&) {
                         for (Block& block : plan.blocks) {
                           for (Instruction& op : block.body) {
                             if (op.kind == OpKind::kGeluGrad) op.attributes.erase("erf");
                           }
                         }
                       }),
              HasSubstr("V5 block radio_encoder.layer.backward has gelu_grad with another erf than the gelu that it "
                        "differentiates"));
}

// The rule for the weights of a token's experts: a module lacks it where plans from before mean it.
TEST(Follows, TheRuleOfTheRouterIsThatOfTheModel) {
  const auto problems = [](const std::vector<std::string>& recipe, auto damage) {
    Plan plan = CompiledFile(InSource("recipes/nemotron_moe_lm_tiny.yaml"), recipe);
    EXPECT_THAT(VerifyPlan(plan), ::testing::IsEmpty());
    damage(plan, Named(plan, "language").constants);
    std::string text;
    for (const Violation& violation : VerifyPlan(plan)) text += violation.rule + " " + violation.message + "\n";
    return text;
  };
  const auto set = [](Attributes& attributes, const char* name, std::optional<int64_t> rule) {
    attributes.erase(name);
    if (rule) attributes[name] = *rule;
  };
  const auto in_routers = [=](OpKind kind, std::optional<int64_t> rule) {
    return [=](Plan& plan, Attributes&) {
      for (Block& block : plan.blocks) {
        for (Instruction& op : block.body) {
          if (op.kind == kind) set(op.attributes, "normalized", rule);
        }
      }
    };
  };
  const auto constant = [=](std::optional<int64_t> rule) {
    return [=](Plan&, Attributes& constants) { set(constants, "moe.normalized", rule); };
  };
  const auto everywhere = [=](int64_t rule) {
    return [=](Plan& plan, Attributes& constants) {
      constant(rule)(plan, constants);
      for (const OpKind kind : {OpKind::kRoute, OpKind::kRouteGrad}) in_routers(kind, rule)(plan, constants);
    };
  };
  using ::testing::HasSubstr;
  const std::string key = "models.hybrid_moe_tiny.moe.normalized=", one = "models.hybrid_moe_tiny.moe.top_k=1";
  const std::vector<std::vector<std::string>> usual = {{}, {key + "true"}, {one, key + "false"}},
                                              other = {{key + "false"}, {one, key + "true"}};
  for (const std::vector<std::string>& recipe : usual) {
    const int64_t rule = recipe.size() < 2 ? 1 : 0;
    EXPECT_THAT(problems(recipe, constant(rule)), HasSubstr("which a module lacks if it is"));
    EXPECT_THAT(problems(recipe, constant(1 - rule)), HasSubstr("lacks the attribute normalized"));
    EXPECT_THAT(problems(recipe, constant(2)), HasSubstr("lacks the attribute normalized"));
    EXPECT_THAT(problems(recipe, everywhere(2)), HasSubstr("V11 module language has the constant moe.normalized 2"));
    for (const OpKind kind : {OpKind::kRoute, OpKind::kRouteGrad}) {
      EXPECT_THAT(problems(recipe, in_routers(kind, rule)), HasSubstr("has the attribute normalized, which is absent"));
      EXPECT_THAT(problems(recipe, in_routers(kind, 1 - rule)), HasSubstr("has the attribute normalized, which is"));
    }
  }
  for (const std::vector<std::string>& recipe : other) {
    const int64_t rule = recipe.size() < 2 ? 0 : 1;
    EXPECT_THAT(problems(recipe, constant(std::nullopt)), HasSubstr("has the attribute normalized, which is absent"));
    EXPECT_THAT(problems(recipe, constant(1 - rule)), HasSubstr("has the attribute normalized, which is absent"));
    EXPECT_THAT(problems(recipe, everywhere(2)), HasSubstr("V11 module language has the constant moe.normalized 2"));
    for (const OpKind kind : {OpKind::kRoute, OpKind::kRouteGrad}) {
      EXPECT_THAT(problems(recipe, in_routers(kind, std::nullopt)), HasSubstr("lacks the attribute normalized"));
      EXPECT_THAT(problems(recipe, in_routers(kind, 1 - rule)), HasSubstr("has normalized "));
    }
  }
}

}  // namespace
}  // namespace planwright
