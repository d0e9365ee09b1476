// Each line of a dialect counts: without it, or with another word or number in it, the dialect is refused, or what
// import, export or weights say of some folder is another thing.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "planner/state/dialect/dialect_forms.h"
#include "tests/exchange/dialect_judge.h"
#include "tests/support/compiled.h"

namespace planwright {
namespace {

using testing::CompiledFile;
using testing::DialectJudge;
using testing::ReadToy;
using testing::Toy;

// What `plan weights` says of tensors that no run has, or that files lack.
std::string OfWeights(const DialectSet& dialects) {
  std::string text;
  for (const char* name : {"mtp.layers.0.w", "sound_encoder.a", "sound_projection.b", "radio_model.summary_idxs",
                           "a.radio_model.summary_idxs", "radio_model.input_conditioner.norm_mean",
                           "radio_model.input_conditioner.norm_std", "radio_model.model.blocks.0.layer_scale1.lambda1",
                           "radio_model.model.blocks.0.layer_scale2.lambda1",
                           "radio_model.model.patch_generator.video_embedder.weight", "a.mtp.b"}) {
    const DialectExtra* extra = dialects.FindExtra(name);
    if (extra == nullptr) continue;
    absl::StrAppend(&text, name, extra->what, "|", extra->who, "|", extra->is, extra->sizes ? extra->sizes->size() : 0);
    for (size_t i = 0; extra->sizes && i < extra->sizes->size(); ++i) {
      const DialectSize& size = (*extra->sizes)[i];
      absl::StrAppend(&text, size.any, size.formula ? size.formula->text() : "", ",");
    }
  }
  for (const char* name : {"vision_final_layernorm.weight", "vision_final_layernorm.bias"}) {
    if (const DialectHint* hint = dialects.FindMissing(name)) absl::StrAppend(&text, name, hint->text);
    if (const DialectHint* hint = dialects.FindOptional(name)) absl::StrAppend(&text, name, hint->text, hint->called);
  }
  // Of a module called eyes, beside another encoder.
  for (const auto& [kind, all] : FormsOf(dialects)) {
    for (const DialectForms& dialect : all) {
      for (const StoredForm& form : dialect.forms) {
        for (const char* name :
             {"eyes.vision_model.a", "eyes.vision_model.final_norm.b", "eyes.mlp1.0.weight", "language_model.c"})
          absl::StrAppend(&text, kind, form.NameOf(name, "eyes."), " ");
      }
    }
  }
  return text;
}

TEST(DialectMutants, OfModelsWithAnEncoder) {
  const Toy lm = ReadToy("lm"), radio = ReadToy("radio"), omni = ReadToy("omni");
  Toy letters = lm, dense = lm, normed = omni, remote = omni, remote_radio = radio, other = lm;
  letters.config.erase("layers_block_type");
  letters.config["hybrid_override_pattern"] = "ME*E", letters.config["num_hidden_layers"] = 4;
  dense.config["layers_block_type"] = {"mlp", "mlp"};
  normed.config["text_config"]["num_nextn_predict_layers"] = 1;
  remote.config = testing::RemoteConfig(omni.config);
  remote_radio.config = remote.config["vision_config"];
  remote_radio.config.erase("model_type");
  other.config["model_type"] = "phi3";
  const std::vector<std::pair<Toy, const char*>> toys = {{lm, "nemotron_h"},          {radio, "radio"},
                                                         {omni, "nemotron_h_omni"},   {remote_radio, "radio_args"},
                                                         {normed, "nemotron_h_omni"}, {remote, "nemotron_h_omni"},
                                                         {letters, "nemotron_h"},     {dense, "nemotron_h"},
                                                         {other, "nemotron_h"}};
  DialectJudge judge;
  for (const auto& [toy, dialect] : toys) judge.AddImport(toy);
  for (const char* epsilon : {"norm_eps", "rms_norm_eps"}) {
    Toy said = lm;
    said.config[epsilon] = 1e-3;
    judge.AddImport(said);
  }
  judge.Add(OfWeights);
  const std::string vit = "models.radio_vit_tiny.", language = "models.hybrid_moe_tiny.";
  const std::vector<std::vector<std::string>> runs = {
      {},
      {vit + "activation=gelu", vit + "final_norm=none", vit + "class_tokens=1"},
      {language + "pattern=\"-M*\"", language + "mlp.ffn=96", vit + "class_tokens=5", vit + "pixel_shuffle=1",
       vit + "positions=crop", vit + "projector.norm_eps=1.0e-6", "batch.sequence_length=128", vit + "ffn=100"},
      {language + "pattern=\"--\"", language + "mlp.ffn=96", vit + "final_norm=none", vit + "class_tokens=5"}};
  for (size_t i = 0; i < runs.size(); ++i) {
    Plan plan = CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml"), runs[i]);
    if (i > 0) plan.data.end_token = 3, plan.data.pad_token = 4;
    judge.AddExport(std::move(plan), {"", "language", "radio_encoder"});
  }
  for (const auto& [toy, dialect] : toys) {
    judge.Vary(toy, *BuiltInDialects().Find(dialect));
    for (const double ratio : {0.3, 1.0 / 128, 1.0 / 65, 1.0 / 64}) {
      Toy squeezed = toy;
      squeezed.config["downsample_ratio"] = ratio;
      judge.AddImport(squeezed.config);
    }
  }
  judge.ExpectEachLineCounts({"hybrid_lm", "radio_vit"}, 1000);
}

}  // namespace
}  // namespace planwright
