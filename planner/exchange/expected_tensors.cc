#include "planner/exchange/expected_tensors.h"

#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/limits.h"
#include "planner/compile/model/expand_statement.h"
#include "planner/plan/shard_map.h"
#include "planner/state/weights/known_extras.h"
#include "planner/state/weights/name_groups.h"
#include "planner/wire/records/safetensors.h"

namespace planwright {
namespace {

constexpr char kFinalNorm[] = "vision_final_layernorm.weight";
constexpr std::string_view kLanguagePrefix = "language_model.", kEncoderPrefix = "vision_model.";

Attributes ConstantsOf(const LanguageSizes& sizes) {
  Attributes constants = {{"init_std", sizes.init_std.value},
                          {"mamba.chunk", sizes.mamba_chunk.value},
                          {"moe.aux_loss", 0.0},
                          {"moe.bias_rate", 0.0}};
  EachSize(sizes, [&](const char* key, const auto& number) {
    if constexpr (std::is_same_v<decltype(number.value), bool>)
      constants[key] = int64_t{number.value};
    else if constexpr (!std::is_same_v<decltype(number.value), std::string>)
      constants[key] = number.value;
  });
  return constants;
}

Attributes ConstantsOf(const EncoderSizes& sizes, const ProjectorSizes& projector, int64_t output) {
  Attributes constants = {
      {"init_std", sizes.init_std.value}, {"crop", int64_t{0}},
      {"output.hidden", output},          {"output.init_std", 1.0},
      {"output.layers", int64_t{1}},      {"final_norm", int64_t{sizes.final_norm.value == "layernorm"}}};
  const auto add = [&](const char* key, const auto& number) {
    if constexpr (!std::is_same_v<decltype(number.value), std::string>) constants[key] = number.value;
  };
  EachSize(sizes, add);
  EachSize(projector, add);
  return constants;
}

// The parameters of a module of these layers, on one rank.
Module Expanded(const std::string& kind, const std::string& letters, Attributes constants) {
  const ModelStatement& statement = *StatementOf(kind);
  Module module;
  module.kind = kind;
  module.has_images = statement.has_images;
  module.carries_loss = statement.carries_loss;
  module.constants = std::move(constants);
  for (const char letter : letters) module.layers.push_back({.kind = letter});
  ExpandStatement(statement, ModelNumbers({.micro_samples = 1, .sequence_length = 1}, module, statement), false,
                  module);
  return module;
}

void AddTensors(const Module& module, TensorShapes& tensors) {
  for (const Parameter& parameter : module.parameters) {
    if (parameter.experts == 0) tensors[parameter.file_name] = parameter.shape;
    for (int64_t expert = 0; expert < parameter.experts; ++expert)
      tensors[ExpertName(parameter.file_name, expert)] = parameter.shape;
  }
}

// The tensors whose names begin with the prefix, without it.
TensorShapes Alone(const TensorShapes& tensors, std::string_view prefix) {
  TensorShapes alone;
  for (const auto& [name, shape] : tensors) {
    if (name.starts_with(prefix)) alone[name.substr(prefix.size())] = shape;
  }
  return alone;
}

// What the tensors of a known kind that nobody trains are called in a note.
struct Extras {
  std::string first;
  int64_t tensors = 0;
};

// What is wrong with the shape of an extra of the encoder, as far as the sizes say it; empty: nothing.
std::string MisfitOfExtra(const EncoderSizes& encoder, const std::string& name, const std::vector<int64_t>& shape) {
  const int64_t hidden = encoder.hidden.value, frame = 3 * encoder.patch.value * encoder.patch.value;
  const std::string is = absl::StrCat(" is ", ShapeText(shape), ", by config.json ");
  if (absl::EndsWith(name, ".lambda1") && shape != std::vector<int64_t>{hidden})
    return absl::StrCat(is, ShapeText({hidden}));
  if (absl::EndsWith(name, ".video_embedder.weight") &&
      (shape.size() != 2 || shape[0] != hidden || shape[1] < 1 || shape[1] % frame != 0))
    return absl::StrCat(is, "[", hidden, ", frames x ", frame, "]");
  if (absl::EndsWith(name, ".summary_idxs") && shape.size() != 1) return absl::StrCat(is, "a list");
  return "";
}

}  // namespace

std::string ShapeText(const std::vector<int64_t>& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

std::string SizesTooLarge(const ModelSizes& sizes) {
  double elements = 0, layers = 0, tensors = 0;
  const auto add = [&](double times, std::initializer_list<int64_t> factors) {
    double product = times;
    for (const int64_t factor : factors) product *= static_cast<double>(factor);
    elements += product;
  };
  if (sizes.language) {
    const LanguageSizes& lm = *sizes.language;
    double experts = 0;
    for (const char letter : lm.pattern.value) experts += letter == 'E';
    layers += static_cast<double>(lm.pattern.value.size());
    tensors += 2 * experts * static_cast<double>(lm.experts.value);
    add(2, {lm.vocabulary.value, lm.hidden.value});
    add(layers * 4, {lm.heads.value, lm.head_dim.value, lm.hidden.value});
    add(layers * 3, {lm.mamba_heads.value, lm.mamba_head_dim.value, lm.hidden.value});
    add(layers * 2, {lm.mamba_groups.value, lm.mamba_state.value, lm.hidden.value});
    add(layers, {lm.mamba_heads.value, lm.mamba_head_dim.value, lm.mamba_conv.value});
    add(experts * 2, {lm.experts.value, lm.ffn.value, lm.hidden.value});
    add(layers * 2, {lm.shared_ffn.value + lm.mlp_ffn.value, lm.hidden.value});
  }
  if (sizes.encoder) {
    const EncoderSizes& encoder = *sizes.encoder;
    const double blocks = static_cast<double>(encoder.layers.value);
    layers += blocks;
    add(blocks * 4, {encoder.hidden.value, encoder.hidden.value});
    add(blocks * 2, {encoder.hidden.value, encoder.ffn.value});
    add(3, {encoder.patch.value, encoder.patch.value, encoder.hidden.value});
    add(1, {encoder.max_image.value, encoder.max_image.value, encoder.hidden.value});
    if (sizes.projector) {
      const int64_t side = sizes.projector->pixel_shuffle.value;
      add(1, {encoder.hidden.value, side * side, sizes.projector->hidden.value});
    }
  }
  if (layers > static_cast<double>(kMostLayers)) return absl::StrCat("more than ", kMostLayers, " layers");
  if (tensors > static_cast<double>(kMaxSafetensorsTensors))
    return absl::StrCat("more than ", kMaxSafetensorsTensors, " tensors of experts");
  if (elements > static_cast<double>(kMostElements) / 2) return "more than 2^49 parameters";
  return "";
}

TensorShapes ExpectedTensors(const ModelSizes& sizes) {
  TensorShapes tensors;
  if (sizes.language) {
    AddTensors(Expanded("hybrid_lm", sizes.language->pattern.value, ConstantsOf(*sizes.language)), tensors);
  }
  if (sizes.encoder) {
    const ProjectorSizes some = {{1, ""}, {1, ""}, {1.0, ""}};
    const int64_t output = sizes.language ? sizes.language->hidden.value : 1;
    AddTensors(Expanded("radio_vit", std::string(static_cast<size_t>(sizes.encoder->layers.value), 'V'),
                        ConstantsOf(*sizes.encoder, sizes.projector.value_or(some), output)),
               tensors);
  }
  for (const OtherName& other : OtherNames())
    std::erase_if(tensors, [&](const auto& tensor) { return tensor.first.starts_with(other.ours); });
  if (!sizes.encoder) return Alone(tensors, kLanguagePrefix);
  if (!sizes.language) return Alone(tensors, kEncoderPrefix);
  return tensors;
}

void CompareTensors(const ModelSizes& sizes, const TensorShapes& found, Findings& findings) {
  const TensorShapes expected = ExpectedTensors(sizes);
  std::vector<TensorLine> lines;
  for (const auto& [name, shape] : expected) {
    const auto in_file = found.find(name);
    if (in_file == found.end()) {
      lines.push_back({"tensor ", name, " " + ShapeText(shape) + " is missing"});
    } else if (in_file->second != shape) {
      lines.push_back(
          {"tensor ", name, absl::StrCat(" is ", ShapeText(in_file->second), ", by config.json ", ShapeText(shape))});
    }
  }
  std::map<std::string_view, Extras> extras;  // by what they are
  const bool norm = sizes.encoder && sizes.encoder->final_norm.value == "layernorm";
  for (const auto& [name, shape] : found) {
    if (expected.contains(name)) continue;
    bool is_norm = false;
    for (const OtherName& other : OtherNames()) is_norm = is_norm || name.starts_with(other.published);
    if (is_norm) {
      if (!norm) {
        lines.push_back({"tensor ", name, " is of a final norm, but config.json says that there is none"});
      } else if (shape != std::vector<int64_t>{sizes.encoder->hidden.value}) {
        lines.push_back(
            {"tensor ", name,
             absl::StrCat(" is ", ShapeText(shape), ", by config.json [", sizes.encoder->hidden.value, "]")});
      }
    } else if (const KnownExtra* extra = FindKnownExtra(name)) {
      if (sizes.encoder) {
        if (std::string misfit = MisfitOfExtra(*sizes.encoder, name, shape); !misfit.empty())
          lines.push_back({"tensor ", name, std::move(misfit)});
      }
      Extras& of = extras.try_emplace(extra->what, Extras{name, 0}).first->second;
      ++of.tensors;
    } else {
      lines.push_back({"tensor ", name, " " + ShapeText(shape) + " is of no part that can be expressed"});
    }
  }
  for (std::string& line : GroupedLines(lines)) findings.Problem(std::move(line), "", "");
  if (norm && !found.contains(kFinalNorm)) {
    findings.notes.push_back(absl::StrCat("the folder does not store ", kFinalNorm,
                                          ": transformers begins with weight 1 and bias 0, and initialize.from lists "
                                          "the norm as missing"));
  }
  for (const auto& [what, of] : extras) {
    findings.notes.push_back(
        absl::StrCat("not trained, and passed through by `plan export --like`: ", std::string(what), ", ", of.tensors,
                     of.tensors == 1 ? " tensor" : " tensors", ", such as ", of.first));
  }
}

}  // namespace planwright
