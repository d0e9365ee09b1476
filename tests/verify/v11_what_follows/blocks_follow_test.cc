// V11 of blocks, and V4 and V5 of the parts of features: what a block computes is what its layer kind does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "planner/verify/rules.h"
#include "planner/verify/verify.h"
#include "tests/numerics/layouts.h"
#include "tests/support/compiled.h"
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
using testing::OpOf;
using testing::TensorParallel;
using testing::WithEverything;

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
                {{"experts_in_two", Recut("{expert}.up_proj.weight", in_two), "uses parameter down", "V4"},
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

TEST(Follows, ElementwiseRecomputeIsWhole) {
  using Words = std::vector<std::string>;
  // Keeps what GELU made, and hands it on.
  const auto keep = [](Plan& p) {
    Block& again = BlockOf(p, "radio_encoder.layer.recompute");
    const auto gelu = std::find_if(again.body.begin(), again.body.end(),
                                   [](const Instruction& op) { return op.kind == OpKind::kGelu; });
    ASSERT_NE(gelu, again.body.end());
    Block& first = BlockOf(p, "radio_encoder.layer.forward");
    const Output kept = gelu->outputs.front();
    again.takes.push_back(kept);
    first.saved.push_back(kept.name);
    for (Instruction& op : first.body) std::erase(op.frees, kept.name);
    again.body.erase(gelu);
  };
  const std::vector<Damage> damages = {
      {"says_nothing", [](Plan& p) { Encoder(p).recompute.clear(); }, "does not name it"},
      {"says_whole_layers", [](Plan& p) { Encoder(p).recompute = Words{"block"}; }, "that running it again makes"},
      {"says_both",
       [](Plan& p) {
         Encoder(p).recompute = Words{"block", "elementwise"};
       },
       "running it again makes"},
      {"says_it_first",
       [](Plan& p) {
         Encoder(p).recompute = Words{"elementwise", "block"};
       },
       "words"},
      {"keeps_a_value", keep, "that running elementwise again makes"},
  };
  ExpectRefused(CompiledFile(kTiny, Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2),
                                         {"modules.radio_encoder.recompute=[elementwise]"})),
                damages, "");
  const std::vector<Damage> of_whole = {
      {"says_elementwise", [](Plan& p) { Encoder(p).recompute = Words{"elementwise"}; }, "which is not elementwise"}};
  ExpectRefused(
      CompiledFile(kTiny, Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2), {"modules.radio_encoder.recompute=[block]"})),
      of_whole, "");
}

}  // namespace
}  // namespace planwright
