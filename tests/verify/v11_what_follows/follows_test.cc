// V11: a field that follows from model, layout and free fields has its one right value. A plan with another value is
// refused, at the recipe line of the module that the field belongs to. The damage here is often consistent in itself:
// names swapped everywhere, or a slot bound to another tensor of the same shape in blocks without a backward.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "planner/plan/plan_json.h"
#include "planner/verify/rules.h"
#include "planner/verify/verify.h"
#include "tests/numerics/layouts.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"
#include "tests/verify/mutants/field_swap.h"

namespace planwright {
namespace {

using testing::CompiledFile;
using testing::EncoderOn;
using testing::Join;
using testing::LanguageOn;

const std::string kTiny = InSource("recipes/nemotron_moe_vlm_tiny.yaml");

struct Damage {
  std::string name;
  std::function<void(Plan&)> inflict;
  const char* says = "";  // part of the first violation's message
  const char* rule = "V11";
};

Module& Named(Plan& plan, const std::string& name) {
  for (Module& module : plan.modules) {
    if (module.name == name) return module;
  }
  throw std::runtime_error("no module " + name);
}
Module& Language(Plan& plan) { return Named(plan, "language"); }
Module& Encoder(Plan& plan) { return Named(plan, "radio_encoder"); }

Parameter& ParameterOf(Module& module, const std::string& ending) {
  for (Parameter& parameter : module.parameters) {
    if (parameter.name.ends_with(ending)) return parameter;
  }
  throw std::runtime_error("no parameter " + ending);
}

Storage& StorageOf(Module& module, const std::string& frame, const std::string& slot) {
  for (Storage& storage : module.storages) {
    if (storage.frame.ends_with(frame) && storage.slot == slot) return storage;
  }
  throw std::runtime_error("no storage " + slot);
}

Block& BlockOf(Plan& plan, const std::string& name) {
  for (Block& block : plan.blocks) {
    if (block.name == name) return block;
  }
  throw std::runtime_error("no block " + name);
}

// Instruction number `which` (from 0) of a kind.
Instruction& OpOf(Block& block, OpKind kind, int which = 0) {
  for (Instruction& op : block.body) {
    if (op.kind == kind && which-- == 0) return op;
  }
  throw std::runtime_error("no " + std::string(OpName(kind)));
}

Role& RoleOf(Plan& plan, const std::string& name) {
  for (Role& role : plan.roles) {
    if (role.name == name) return role;
  }
  throw std::runtime_error("no role " + name);
}

// Each damage must be refused by the rule that it names. `module`: the first violation must point at this module's
// line; empty: at any line.
void ExpectRefused(const Plan& sound, const std::vector<Damage>& damages, const std::string& module) {
  ASSERT_TRUE(VerifyPlan(sound).empty());
  for (const Damage& damage : damages) {
    Plan plan = sound;
    damage.inflict(plan);
    const std::vector<Violation> found = VerifyPlan(plan);
    if (found.empty()) {
      ADD_FAILURE() << damage.name << " passes";
      continue;
    }
    EXPECT_EQ(found.front().rule, damage.rule) << damage.name << ": " << found.front().message;
    EXPECT_THAT(found.front().message, ::testing::HasSubstr(damage.says)) << damage.name;
    if (module.empty()) continue;
    const int origin = found.front().origin;
    ASSERT_GE(origin, 0) << damage.name;
    EXPECT_EQ(plan.origins[static_cast<size_t>(origin)].what, module) << damage.name << ": " << found.front().message;
  }
}

// Encoder tp2 on 2 ranks, language model tp2 dp2 ep4 on 4 ranks.
Plan TensorParallel() { return CompiledFile(kTiny, Join(EncoderOn(2, 2), LanguageOn(2, 4, 2, 4))); }

// A plan with every axis above 1 somewhere, with all layers recomputed, overlap, and packed documents.
Plan WithEverything() {
  return CompiledFile(kTiny, {"cluster.nodes=2", "modules.radio_encoder.placement.ranks=8",
                              "modules.radio_encoder.parallel={tp: 2, cp: 2, pp: 2}",
                              "modules.language.placement.first_rank=8", "modules.language.placement.ranks=8",
                              "modules.language.parallel={tp: 2, cp: 2, pp: 2, ep: 2, expert_tp: 2}",
                              "models.hybrid_moe_tiny.mamba.groups=4", "models.hybrid_moe_tiny.attention.kv_groups=4",
                              "modules.language.recompute=[full]", "data.packed_documents=true",
                              "gradients.overlap_reduce=true", "gradients.overlap_gather=true", "gradients.buckets=2"});
}

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

// Segments of a reshard are reversed in forward and backward, so the two still agree with each other.
TEST(Follows, BlocksComputeWhatTheirLayerKindDoes) {
  const Plan cp = CompiledFile(kTiny, Join(EncoderOn(1, 1), LanguageOn(1, 4, 2, 4),
                                           {"modules.language.parallel.cp=2", "models.hybrid_moe_tiny.mamba.groups=4",
                                            "models.hybrid_moe_tiny.attention.kv_groups=4"}));
  ExpectRefused(cp,
                {{"resharded_in_other_segments",
                  [](Plan& p) {
                    for (const char* name : {"language.mamba.forward", "language.mamba.backward"}) {
                      for (Instruction& op : BlockOf(p, name).body) {
                        if (op.kind != OpKind::kReshard) continue;
                        auto& segments = std::get<std::vector<int64_t>>(op.attributes["segments"]);
                        std::reverse(segments.begin(), segments.end());
                      }
                    }
                  },
                  "segments", "V4"},
                 {"gathered_by_nothing_known",
                  [](Plan& p) { OpOf(BlockOf(p, "language.mamba.forward"), OpKind::kMambaScan).inputs[0] = "zxbcdt"; },
                  "", "V4"}},
                "module language");
}

// The gradient of the loss starts from the loss, and from nothing else that the head makes. V11 knows that from the
// statement and speaks first; V5 knows it from the table of operations, for models whose statement says otherwise.
TEST(Follows, GradientsAreThoseOfTheLossOfTheStep) {
  Plan damaged = TensorParallel();
  for (Instruction& op : BlockOf(damaged, "language.head.forward").body) {
    if (op.kind == OpKind::kAccumulate) op.inputs[0] = "m";
  }
  const PlanIndex index(damaged);
  std::string messages;
  for (const Violation& violation : VerifyBackward(index, CallsOfMicrobatches(index)))
    messages += violation.message + "\n";
  EXPECT_THAT(messages, ::testing::HasSubstr("does not add the end of its chain to $reals.loss"));
}

// Cuts all parameters of this ending into the segments that `recut` makes of theirs.
std::function<void(Plan&)> Recut(const char* ending,
                                 const std::function<void(const Parameter&, std::vector<int64_t>&)>& recut) {
  return [=](Plan& p) {
    int found = 0;
    for (Module& module : p.modules) {
      for (Parameter& parameter : module.parameters) {
        if (!parameter.name.ends_with(ending)) continue;
        recut(parameter, parameter.segments);
        ++found;
      }
    }
    EXPECT_GT(found, 0) << ending;
  };
}

// Whatever a statement says: the parts of a value are what its weight has, and what reads it wants. With tp these
// mistakes give other sums, with shapes and layouts that agree. One rank would not notice them.
TEST(FeatureParts, AreThoseOfTheWeightAndOfTheReader) {
  const auto in_one = [](const Parameter& parameter, std::vector<int64_t>& segments) {
    segments = {parameter.shape[static_cast<size_t>(parameter.shard_dim)]};
  };
  const auto in_two = [](const Parameter& parameter, std::vector<int64_t>& segments) {
    const int64_t half = parameter.shape[static_cast<size_t>(parameter.shard_dim)] / 2;
    segments = {half, half};
  };
  const auto reversed = [](const Parameter&, std::vector<int64_t>& segments) {
    std::reverse(segments.begin(), segments.end());
  };
  const auto swap_joined = [](Plan& p) {
    for (Storage& storage : Language(p).storages) {
      if (storage.slot == "qkv") std::swap(storage.parameters[0], storage.parameters[2]);
    }
  };
  const std::vector<Damage> damages = {
      {"projection_of_mamba_in_one", Recut("mixer.in_proj.weight", in_one), "in parts of", "V4"},
      {"projection_of_mamba_reversed", Recut("mixer.in_proj.weight", reversed), "in parts of", "V4"},
      {"convolution_in_one", Recut("mixer.conv1d.weight", in_one), "uses parameter conv_weight", "V4"},
      {"convolution_reversed", Recut("mixer.conv1d.bias", reversed), "uses parameter conv_bias", "V4"},
      {"heads_in_two", Recut("mixer.A_log", in_two), "uses parameter A_log", "V4"},
      {"output_of_mamba_in_two", Recut("mixer.out_proj.weight", in_two), "uses parameter out_proj", "V4"},
      {"values_keys_queries", swap_joined, "causal_attention of qkv: reads qkv in parts of", "V4"},
      {"query_in_two", Recut("mixer.q_proj.weight", in_two), "causal_attention of qkv", "V4"},
      {"vocabulary_in_two", Recut("lm_head.weight", in_two), "reads logits in parts of", "V4"},
      {"embeddings_in_two", Recut("embeddings.weight", in_two), "uses parameter embeddings", "V4"},
      {"query_key_value_in_one", Recut("attn.qkv.weight", in_one), "uses parameter qkv_bias", "V4"},
      {"bias_in_one", Recut("attn.qkv.bias", in_one), "uses parameter qkv_bias", "V4"},
      {"mlp_in_two", Recut("mlp.fc2.weight", in_two), "uses parameter fc2_weight", "V4"},
      {"patches_in_two", Recut("embedder.weight", in_two), "as one, but it is made of", "V4"},
      {"projector_in_two", Recut("mlp1.1.weight", in_two), "reads u in parts of", "V4"},
  };
  ExpectRefused(TensorParallel(), damages, "");
  ExpectRefused(CompiledFile(kTiny, Join(EncoderOn(1, 1), LanguageOn(1, 1, 1, 1))),
                {damages[0], damages[1], damages[2], damages[6], damages[10]}, "");
  ExpectRefused(WithEverything(),
                {{"experts_in_two", Recut("{expert}.up_proj.weight", in_two), "uses parameter up", "V4"},
                 {"key_and_value_in_one", Recut("attn.qkv.weight", in_one), "uses parameter qkv_bias", "V4"}},
                "");
}

// The backward cuts and joins as the forward does: V5 follows names, not segments.
TEST(FeatureParts, AreThoseOfTheForwardInTheBackward) {
  const Plan sound = WithEverything();
  std::vector<Damage> damages;
  int blocks = 0;
  for (const Block& block : sound.blocks) {
    for (size_t i = 0; i < block.body.size(); ++i) {
      if (block.body[i].kind != OpKind::kReshard) continue;
      const auto change = [name = block.name, i](const auto& of) {
        return [name, i, of](Plan& p) {
          of(std::get<std::vector<int64_t>>(BlockOf(p, name).body[i].attributes["segments"]));
        };
      };
      const auto& segments = std::get<std::vector<int64_t>>(block.body[i].attributes.at("segments"));
      const int64_t parts = sound.FindModule(block.module)->grid.cp;
      if (segments.size() > 1) {
        damages.push_back({block.name + " reversed",
                           change([](std::vector<int64_t>& s) { std::reverse(s.begin(), s.end()); }), "in segments of",
                           "V4"});
        damages.push_back({block.name + " in one", change([](std::vector<int64_t>& s) {
                             s = {std::accumulate(s.begin(), s.end(), int64_t{0})};
                           }),
                           "in segments of", "V4"});
      } else {
        damages.push_back({block.name + " in two", change([parts](std::vector<int64_t>& s) {
                             s = {parts, s[0] - parts};
                           }),
                           "in segments of", "V4"});
      }
      ++blocks;
    }
  }
  EXPECT_GE(blocks, 4);
  ExpectRefused(sound, damages, "module language");
}

TEST(Follows, BucketsSumsAndGroupsFollow) {
  const auto expert_bucket = [](Plan& p) -> Bucket& {
    for (Bucket& bucket : Language(p).buckets) {
      if (bucket.view == View::kExpert) return bucket;
    }
    throw std::runtime_error("no bucket of experts");
  };
  ExpectRefused(
      TensorParallel(),
      {{"experts_counted_once", [&](Plan& p) { expert_bucket(p).tp = TpGradient::kReplicated; }, "", "V6"},
       {"norm_of_coordinate_0_alone", [&](Plan& p) { expert_bucket(p).once_over = {Axis::kTp}; }, "once_over"},
       {"masters_as_narrow_as_weights", [](Plan& p) { Language(p).buckets[0].master = DType::kBf16; }, "master"},
       {"weights_of_another_type", [](Plan& p) { Language(p).buckets[0].dtype = DType::kFp64; }, "dtype"},
       {"sum_of_another_name", [](Plan& p) { std::swap(p.accumulators[0].parts[0], p.accumulators[0].parts[1]); },
        "parts"},
       {"sum_of_floats", [](Plan& p) { p.accumulators[2].dtype = DType::kFp64; }},
       {"group_on_another_stream", [](Plan& p) { p.groups[0].streams.push_back("gather"); }, "streams"},
       {"group_of_other_axes",
        [](Plan& p) {
          for (Group& group : p.groups) {
            if (group.name == "language.tp_cp") group.axes = {Axis::kPp};
          }
        },
        "axes"},
       {"bridge_of_another_kind",
        [](Plan& p) { p.bridges[0].kind = p.bridges[0].kind == "equal" ? "fan_in" : "equal"; }},
       {"run_time_size_of_another_mean",
        [](Plan& p) { p.symbols[0].mean = std::max<int64_t>(1, p.symbols[0].mean / 2); }, "mean"},
       {"drawn_where_it_is_loaded",
        [](Plan& p) {
          for (Role& role : p.roles) role.setup[1].kind = OpKind::kLoadParameters;
        },
        "", "V7"},
       {"drawn_and_never_mastered", [](Plan& p) { std::swap(p.roles[0].setup[1], p.roles[0].setup[2]); }, "", "V7"},
       {"set_up_twice", [](Plan& p) { p.roles[0].setup.push_back(p.roles[0].setup.back()); }, "2 times", "V7"}},
      "");
}

// Siblings must run their leader's program, also if another program would be valid by itself.
TEST(Follows, SiblingsOfALaneRunOneProgram) {
  const Plan plan = CompiledFile(kTiny, Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2)));
  const auto sibling = [](Plan& p) -> Role& { return RoleOf(p, "language.s0.sibling"); };
  ExpectRefused(
      plan,
      {{"draws_where_its_leader_loads",
        [&](Plan& p) {
          p.initialize = InitializePlan{.from = "weights.safetensors"};
          for (Role& role : p.roles) role.setup[1].kind = OpKind::kLoadParameters;
          sibling(p).setup[1].kind = OpKind::kInitializeParameters;
        },
        "not never", "V7"},
       {"microbatches_swapped",
        [&](Plan& p) {
          // Microbatches 0 and 1 change places in the sibling alone. Its list of calls is still consistent in itself.
          const auto renumber = [](std::string& name) {
            const size_t at = name.find(".m");
            if (at == std::string::npos || !(name[at + 2] == '0' || name[at + 2] == '1') || name[at + 3] != '.') return;
            name[at + 2] = name[at + 2] == '0' ? '1' : '0';
          };
          for (Instruction& op : sibling(p).step) {
            if (op.microbatch == 0 || op.microbatch == 1) op.microbatch = 1 - op.microbatch;
            for (std::string& name : op.inputs) renumber(name);
            for (Output& output : op.outputs) renumber(output.name);
            for (std::string& name : op.frees) renumber(name);
          }
        }},
       {"leader_hands_on_nothing",
        [](Plan& p) {
          for (Instruction& op : RoleOf(p, "language.s0").step) {
            if (op.kind == OpKind::kBroadcast) return op.inputs.pop_back();
          }
        },
        "nothing reads"},
       {"steps_bucket_by_bucket_otherwise",
        [&](Plan& p) {
          std::vector<Instruction>& step = sibling(p).step;
          for (size_t i = 0; i + 1 < step.size(); ++i) {
            if (step[i].kind != OpKind::kScaleGradients || step[i + 1].kind != OpKind::kScaleGradients) continue;
            return std::swap(step[i], step[i + 1]);
          }
          throw std::runtime_error("one bucket alone");
        }}},
      "");
}

TEST(Follows, ModulesRecomputeWhatTheySay) {
  using Words = std::vector<std::string>;
  const std::vector<Damage> damages = {
      {"says_nothing", [](Plan& p) { Language(p).recompute.clear(); }, "does not name it"},
      {"says_one_less", [](Plan& p) { Language(p).recompute.pop_back(); }, "does not name it"},
      {"says_another",
       [](Plan& p) {
         Language(p).recompute = Words{"mamba", "attention"};
       }},
      {"says_one_more", [](Plan& p) { Encoder(p).recompute = Words{"block"}; }, "does not run the forward"},
      {"says_it_twice", [](Plan& p) { Language(p).recompute.push_back(Language(p).recompute.back()); }, "words"},
      {"says_what_nobody_knows", [](Plan& p) { Language(p).recompute.push_back("blockx"); }, "words"},
      {"says_full", [](Plan& p) { Language(p).recompute = Words{"full"}; }, "words"},
      {"says_the_other_modules_kind", [](Plan& p) { Language(p).recompute.push_back("block"); }, "words"},
      {"in_another_order", [](Plan& p) { std::reverse(Language(p).recompute.begin(), Language(p).recompute.end()); },
       "words"},
  };
  ExpectRefused(
      CompiledFile(kTiny, Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2), {"modules.language.recompute=[mamba, moe]"})),
      damages, "");
}

// Two microbatches change their numbers in every role. So all roles do the same, but in another order.
TEST(Follows, MicrobatchesRunInTheOrderOfTheSchedule) {
  const auto swap = [](Plan& p, int a, int b) {
    for (Role& role : p.roles) {
      for (Instruction& op : role.step) {
        if (op.microbatch == a || op.microbatch == b) op.microbatch = op.microbatch == a ? b : a;
      }
    }
  };
  ExpectRefused(
      TensorParallel(),
      {{"first_two", [&](Plan& p) { swap(p, 0, 1); }, "schedule"},
       {"first_and_last", [&](Plan& p) { swap(p, 0, static_cast<int>(p.budget.microbatches) - 1); }, "schedule"}},
      "");
}

// Padding that alignment does not need, at the end of a bucket or before its last storage.
TEST(Follows, BucketsAreNoLongerThanTheirStorages) {
  std::vector<Damage> damages;
  for (const int64_t more : {int64_t{128}, int64_t{1} << 20, int64_t{1} << 31}) {
    damages.push_back({"padded",
                       [more](Plan& p) { Language(p).buckets[0].elements += more * Language(p).buckets[0].shards; },
                       "storages that end", "V7"});
    damages.push_back({"moved",
                       [more](Plan& p) {
                         Storage* last = nullptr;
                         for (Storage& storage : Language(p).storages) {
                           if (storage.bucket == 0 && (!last || storage.offset > last->offset)) last = &storage;
                         }
                         last->offset += more;
                         Language(p).buckets[0].elements += more * Language(p).buckets[0].shards;
                       },
                       "not at", "V7"});
  }
  ExpectRefused(TensorParallel(), damages, "module language");
}

TEST(Follows, UnknownGpusAndEmptyMockDataAreRefused) {
  ExpectRefused(CompiledFile(kTiny),
                {{"no_gpu", [](Plan& p) { p.cluster.gpu.clear(); }, "gpu"},
                 {"unknown_gpu", [](Plan& p) { p.cluster.gpu = "nonex"; }, "gpu"},
                 {"gpu_with_a_space", [](Plan& p) { p.cluster.gpu += " "; }, "gpu"},
                 {"no_class", [](Plan& p) { p.data.classes = 0; }, "mock"},
                 {"no_text", [](Plan& p) { p.data.text_tokens = 0; }, "mock"},
                 {"no_grid", [](Plan& p) { p.data.image_grids.clear(); }, "mock"},
                 {"grid_of_nothing", [](Plan& p) { p.data.image_grids.back() = {}; }, "sizes"},
                 {"grid_of_one", [](Plan& p) { p.data.image_grids.back() = {4}; }, "sizes"},
                 {"grid_of_three",
                  [](Plan& p) {
                    p.data.image_grids.back() = {4, 6, 6};
                  },
                  "sizes"},
                 {"grid_of_zero",
                  [](Plan& p) {
                    p.data.image_grids.back() = {4, 0};
                  },
                  "sizes"},
                 {"grid_below_zero",
                  [](Plan& p) {
                    p.data.image_grids.back() = {-4, 4};
                  },
                  "sizes"}},
                "");
}

TEST(Follows, FreeNumbersAreInTheirRanges) {
  ExpectRefused(CompiledFile(kTiny),
                {{"precision", [](Plan& p) { p.precision = "nonsense"; }, "nonsense"},
                 {"beta", [](Plan& p) { p.optimizer.beta1 = 1.5; }, "beta"},
                 {"eps", [](Plan& p) { p.optimizer.eps = -1; }, "eps"},
                 {"clip", [](Plan& p) { p.optimizer.clip_grad_norm = std::nan(""); }, "clip"},
                 {"seed", [](Plan& p) { p.seed = -1; }, "seed"},
                 {"seed_of_the_data", [](Plan& p) { p.data.seed = -1; }, "seed"},
                 {"rate", [](Plan& p) { p.budget.learning_rate.peak = -1e-3; }, "rate"},
                 {"decay", [](Plan& p) { p.budget.weight_decay.end = -0.1; }, "decay"},
                 {"log", [](Plan& p) { p.log_every_steps = 0; }, "log_every_steps"},
                 {"checkpoint", [](Plan& p) { p.checkpoint.every_steps = -1; }, "steps"},
                 {"token", [](Plan& p) { p.data.image_token = p.data.vocabulary; }, "token"}},
                "");
}

// Any field that follows is refused with the value that it has at another place. Tries some occurrences of each field,
// spread over the plan.
TEST(Follows, NoFieldThatFollowsMayHaveTheValueOfAnotherPlace) {
  constexpr size_t kOccurrences = 5;  // of each field, at most
  for (Plan sound : {TensorParallel(), WithEverything()}) {
    const std::string digest = PlanDigest(sound);
    testing::FieldSwap look;
    Describe(look, sound);
    ASSERT_GT(look.seen().size(), 80u);
    for (const auto& [pattern, values] : look.seen()) {
      const size_t step = (values.size() + kOccurrences - 1) / kOccurrences;
      for (size_t at = step / 2; at < values.size(); at += step) {
        for (const std::any& value :
             {values[(at + 1) % values.size()], values[(at + values.size() / 2) % values.size()]}) {
          Plan plan = sound;
          testing::FieldSwap damage(pattern, at, value);
          Describe(damage, plan);
          ASSERT_TRUE(damage.done()) << pattern;
          if (PlanDigest(plan) == digest) continue;
          EXPECT_FALSE(VerifyPlan(plan).empty()) << pattern << " " << at << " of " << values.size();
        }
      }
    }
  }
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
              HasSubstr("lacks the attribute erf"));
  EXPECT_THAT(problems({exact}, [](Plan&, Module& encoder) { encoder.constants.erase("erf_gelu"); }),
              HasSubstr("has the attribute erf, which is absent unless erf_gelu"));
  EXPECT_THAT(problems({exact},
                       [](Plan& plan, Module&) {
                         for (Block& block : plan.blocks) {
                           for (Instruction& op : block.body) {
                             if (op.kind == OpKind::kGeluGrad) op.attributes.erase("erf");
                           }
                         }
                       }),
              HasSubstr("lacks the attribute erf"));
}

// The rows of an encoder take the places of a token of the language model: no recipe can say another number.
TEST(Follows, ABridgesTokenIsInTheVocabulary) {
  const Plan sound = CompiledFile(InSource("recipes/nemotron_moe_two_encoders_tiny.yaml"));
  ASSERT_EQ(sound.bridges.size(), 2);
  for (size_t i = 0; i < sound.bridges.size(); ++i) {
    const int64_t token = sound.bridges[i].token;
    ASSERT_GE(token, 0);
    Plan plan = sound;
    plan.bridges[i].token = plan.data.encoders[i].token = -1;
    if (plan.data.image_token == token) plan.data.image_token = -1;
    for (Block& block : plan.blocks) {
      for (Instruction& op : block.body) {
        const int64_t* held = op.FindInteger("image_token");
        if (held && *held == token) op.attributes["image_token"] = int64_t{-1};
      }
    }
    const std::vector<Violation> found = VerifyPlan(plan);
    ASSERT_EQ(found.size(), 1);
    EXPECT_EQ(found[0].rule, "V11");
    EXPECT_THAT(found[0].message, ::testing::HasSubstr("has token -1, not one of the vocabulary of language"));
  }
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

}  // namespace
}  // namespace planwright
