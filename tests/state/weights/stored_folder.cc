#include "tests/state/weights/stored_folder.h"

#include <gtest/gtest.h>

#include <span>
#include <utility>
#include <vector>

#include "planner/plan/table_text.h"
#include "tests/state/forms/stored_by_hand.h"

namespace planwright::testing {
namespace {

// Of nemotron_h.
constexpr char kLanguage[] = R"(
  names language_model. ->
  tensor language_model.backbone.layers.{layer}.mixer.qkv.weight = mixer.q_proj.weight + mixer.k_proj.weight
    + mixer.v_proj.weight along 0 each attention.kv_groups
  tensor language_model.backbone.layers.{layer}.mixer.o_proj.weight = mixer.o_proj.weight swap
  tensor language_model.backbone.layers.{layer}.mixer.conv1d.weight = mixer.conv1d.weight
    shape [inner + 2 * bc, mamba.conv]
  tensor language_model.backbone.layers.{layer}.mixer.heads = mixer.D + mixer.dt_bias along 0 each mamba.groups
  tensor language_model.backbone.layers.{layer}.mixer.shared = mixer.shared_experts.up_proj.weight + mixer.gate.weight
    along 0 swap
  form experts: one by one
  tensor language_model.backbone.layers.{layer}.mixer.experts.{expert}.down = mixer.experts.{expert}.down_proj.weight
    swap
  form experts: stacked
  tensor language_model.backbone.layers.{layer}.mixer.experts.up = mixer.experts.{expert}.up_proj.weight swap stack
  tensor language_model.backbone.layers.{layer}.mixer.experts.down = mixer.experts.{expert}.down_proj.weight stack
)";

// Of the language model in nemotron_h_omni.
constexpr char kInOmni[] = R"(
  form names: as they are
  form names: renamed
  names language_model.backbone.layers.{layer}.mixer. -> model.blocks.{layer}.mix.
  names language_model. -> model.
)";

// Of radio.
constexpr char kEncoder[] = R"(
  names {encoder}vision_model. ->
  tensor {encoder}vision_model.patches = radio_model.model.patch_generator.embedder.weight
    shape [hidden, 3, patch, patch]
)";

FormLines LinesOf(const std::string& file, const std::string& text) {
  FormLines lines;
  TextProblems problems;
  ReadLines(text, file, problems, [&](LineReader& line) { EXPECT_TRUE(lines.Take(line)) << line.Rest(); });
  EXPECT_EQ(ProblemsText(problems), "");
  return lines;
}

PlainTensor Plain(const RawTensor& raw) {
  size_t elements = 1;
  for (const int64_t size : raw.shape) elements *= static_cast<size_t>(size);
  return {raw.shape, raw.bytes.size() / elements, raw.bytes};
}

class Fusing {
 public:
  Fusing(RawTensors tensors, bool renamed) : tensors_(std::move(tensors)), renamed_(renamed) {}

  PlainTensor Take(const std::string& name) {
    auto node = tensors_.extract(name);
    EXPECT_FALSE(node.empty()) << name;
    type_ = node.mapped().type;
    return Plain(node.mapped());
  }
  void Put(const std::string& name, PlainTensor tensor) {
    made_[name] = {type_, std::move(tensor.shape), std::move(tensor.bytes)};
  }
  RawTensors All() {
    RawTensors all;
    made_.merge(tensors_);
    for (auto& [name, tensor] : made_) all[Renamed(name)] = std::move(tensor);
    return all;
  }

 private:
  std::string Renamed(const std::string& name) const {
    const std::string layers = "language_model.backbone.layers.", begin = "language_model.";
    if (!renamed_ || !name.starts_with(begin)) return name;
    const size_t mixer = name.find(".mixer.");
    if (name.starts_with(layers) && mixer != std::string::npos)
      return "model.blocks." + name.substr(layers.size(), mixer - layers.size()) + ".mix." + name.substr(mixer + 7);
    return "model." + name.substr(begin.size());
  }

  RawTensors tensors_, made_;
  const bool renamed_;
  std::string type_;
};

}  // namespace

DialectSet FusedDialects() {
  const std::span<const Dialect> built_in = BuiltInDialects().all();
  std::vector<Dialect> dialects(built_in.begin(), built_in.end());
  for (Dialect& dialect : dialects) {
    if (dialect.name() == "nemotron_h") dialect.forms = LinesOf("language", kLanguage);
    if (dialect.name() == "nemotron_h_omni") dialect.language_forms = LinesOf("omni", kInOmni);
    if (dialect.name() == "radio") dialect.forms = LinesOf("encoder", kEncoder);
  }
  return DialectSet(std::move(dialects));
}

DialectSet DialectsWith(const std::string& name, const std::string& file, const std::string& lines) {
  const std::span<const Dialect> built_in = BuiltInDialects().all();
  std::vector<Dialect> dialects(built_in.begin(), built_in.end());
  for (Dialect& dialect : dialects) {
    if (dialect.name() == name) dialect.forms = LinesOf(file, lines);
  }
  return DialectSet(std::move(dialects));
}

RawTensors Fused(RawTensors whole, const Plan& plan, FusedChoice choice) {
  Fusing fusing(std::move(whole), choice.renamed);
  for (const Module& module : plan.modules) {
    if (module.has_images) {
      PlainTensor patches = fusing.Take("vision_model.radio_model.model.patch_generator.embedder.weight");
      patches.shape = {module.size("hidden"), 3, module.size("patch"), module.size("patch")};
      fusing.Put("vision_model.patches", std::move(patches));
      continue;
    }
    for (size_t i = 0; i < module.layers.size(); ++i) {
      const std::string mixer = "language_model.backbone.layers." + std::to_string(i) + ".mixer.";
      const auto take = [&](const std::string& name) { return fusing.Take(mixer + name); };
      const auto put = [&](const std::string& name, PlainTensor tensor) {
        fusing.Put(mixer + name, std::move(tensor));
      };
      if (module.layers[i].kind == '*') {
        put("qkv.weight", StoredByHand({{take("q_proj.weight"), take("k_proj.weight"), take("v_proj.weight")}}, 0,
                                       module.size("attention.kv_groups"), false, false));
        put("o_proj.weight", StoredByHand({{take("o_proj.weight")}}, 0, 1, true, false));
      } else if (module.layers[i].kind == 'M') {
        PlainTensor conv = take("conv1d.weight");
        conv.shape = {conv.shape[0], conv.shape[2]};
        put("conv1d.weight", std::move(conv));
        PlainTensor d = take("D"), bias = take("dt_bias");
        put("heads", StoredByHand({{std::move(d), std::move(bias)}}, 0, module.size("mamba.groups"), false, false));
      } else if (module.layers[i].kind == 'E') {
        PlainTensor up = take("shared_experts.up_proj.weight"), gate = take("gate.weight");
        put("shared", StoredByHand({{std::move(up), std::move(gate)}}, 0, 1, true, false));
        std::vector<std::vector<PlainTensor>> ups, downs;
        for (int64_t expert = 0; expert < module.experts(); ++expert) {
          const std::string one = "experts." + std::to_string(expert) + ".";
          downs.push_back({take(one + "down_proj.weight")});
          if (choice.stacked) {
            ups.push_back({take(one + "up_proj.weight")});
          } else {
            put(one + "down", StoredByHand({downs.back()}, 0, 1, true, false));
          }
        }
        if (choice.stacked) put("experts.up", StoredByHand(ups, 0, 1, true, true));
        if (choice.stacked) put("experts.down", StoredByHand(downs, 0, 1, false, true));
      }
    }
  }
  return fusing.All();
}

}  // namespace planwright::testing
