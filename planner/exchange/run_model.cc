#include "planner/exchange/run_model.h"

#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/plan/shard_map.h"
#include "planner/plan/statement/model_statement.h"
#include "planner/state/weights/known_extras.h"

namespace planwright {
namespace {

class ModuleNumbers {
 public:
  explicit ModuleNumbers(const Module& module) : module_(module) {}
  Sourced<int64_t> Size(const char* key) const { return {module_.size(key), From(key)}; }
  Sourced<double> Real(const char* key) const { return {module_.real(key), From(key)}; }
  // Also one that modules lack where it says nothing new.
  Sourced<bool> Flag(const char* key) const {
    const bool lacks = !module_.constants.contains(key);
    const double number = lacks ? StatementOf(module_.kind)->NumberWithout(key, module_.constants)
                                : static_cast<double>(module_.size(key));
    return {number > 0, From(key)};
  }
  std::string From(const char* key) const { return absl::StrCat("module ", module_.name, " ", key); }

 private:
  const Module& module_;
};

LanguageSizes LanguageOf(const Module& module) {
  const ModuleNumbers numbers(module);
  LanguageSizes sizes;
  for (const LayerSummary& layer : module.layers) sizes.pattern.value += layer.kind;
  sizes.pattern.from = numbers.From("pattern");
  sizes.hidden = numbers.Size("hidden");
  sizes.vocabulary = numbers.Size("vocabulary");
  sizes.init_std = numbers.Real("init_std");
  sizes.norm_eps = numbers.Real("norm_eps");
  sizes.heads = numbers.Size("attention.heads");
  sizes.head_dim = numbers.Size("attention.head_dim");
  sizes.kv_groups = numbers.Size("attention.kv_groups");
  sizes.mamba_heads = numbers.Size("mamba.heads");
  sizes.mamba_head_dim = numbers.Size("mamba.head_dim");
  sizes.mamba_groups = numbers.Size("mamba.groups");
  sizes.mamba_state = numbers.Size("mamba.state");
  sizes.mamba_conv = numbers.Size("mamba.conv");
  sizes.mamba_chunk = numbers.Size("mamba.chunk");
  sizes.experts = numbers.Size("moe.experts");
  sizes.top_k = numbers.Size("moe.top_k");
  sizes.ffn = numbers.Size("moe.ffn");
  sizes.shared_ffn = numbers.Size("moe.shared_ffn");
  sizes.normalized = numbers.Flag("moe.normalized");
  sizes.scale = numbers.Real("moe.scale");
  sizes.mlp_ffn = numbers.Size("mlp.ffn");
  return sizes;
}

bool HasFinalNorm(const Module& module) {
  for (const Parameter& parameter : module.parameters) {
    if (absl::EndsWith(parameter.file_name, "final_norm.weight")) return true;
  }
  return false;
}

EncoderSizes EncoderOf(const Module& module) {
  const ModuleNumbers numbers(module);
  EncoderSizes sizes;
  sizes.layers = {static_cast<int64_t>(module.layers.size()), numbers.From("layers")};
  sizes.hidden = numbers.Size("hidden");
  sizes.heads = numbers.Size("heads");
  sizes.ffn = numbers.Size("ffn");
  sizes.patch = numbers.Size("patch");
  sizes.class_tokens = numbers.Size("class_tokens");
  sizes.max_image = numbers.Size("max_image");
  sizes.norm_eps = numbers.Real("norm_eps");
  sizes.init_std = numbers.Real("init_std");
  sizes.activation = {module.size("erf_gelu") == 1 ? "gelu" : "gelu_tanh", numbers.From("activation")};
  sizes.final_norm = {HasFinalNorm(module) ? "layernorm" : "none", numbers.From("final_norm")};
  return sizes;
}

ProjectorSizes ProjectorOf(const Module& module) {
  const ModuleNumbers numbers(module);
  return {numbers.Size("projector.hidden"), numbers.Size("pixel_shuffle"), numbers.Real("projector.norm_eps")};
}

std::string NamesOf(const Plan& plan) {
  std::string names;
  for (const Module& module : plan.modules) absl::StrAppend(&names, names.empty() ? "" : ", ", module.name);
  return names;
}

// The name of a parameter in a folder of this kind; empty: it does not leave.
std::string NameIn(ConfigKind kind, const std::string& file_name) {
  for (const OtherName& other : OtherNames()) {
    if (file_name.starts_with(other.ours)) return std::string(other.published) + file_name.substr(other.ours.size());
  }
  if (kind == ConfigKind::kVisionLanguage) return file_name;
  const std::string_view prefix = kind == ConfigKind::kLanguage ? "language_model." : "vision_model.";
  return file_name.starts_with(prefix) ? file_name.substr(prefix.size()) : "";
}

}  // namespace

RunModel ModelOfRun(const Plan& plan, const std::string& name, Findings& findings) {
  RunModel run;
  int encoders = 0;
  for (const Module& module : plan.modules) {
    if (!name.empty() && module.name != name) continue;
    if (module.has_images) {
      run.encoder = &module;
      ++encoders;
    }
    if (module.carries_loss) run.language = &module;
  }
  if (!name.empty() && run.encoder == nullptr && run.language == nullptr)
    findings.Problem("--module", name, "is no module of the run: " + NamesOf(plan));
  if (encoders > 1) {
    findings.Problem(
        "modules", absl::StrCat(encoders, " encoders"),
        "are too many, as a Hugging Face model has one: export modules one by one with --module: " + NamesOf(plan));
  }
  if (run.language != nullptr) run.sizes.language = LanguageOf(*run.language);
  if (run.encoder != nullptr) {
    run.sizes.encoder = EncoderOf(*run.encoder);
    run.sizes.projector = ProjectorOf(*run.encoder);
  }
  for (const Bridge& bridge : plan.bridges) {
    if (run.encoder != nullptr && bridge.from == run.encoder->name)
      run.sizes.image_token = {bridge.token, "bridge " + bridge.name + " token"};
  }
  return run;
}

std::vector<LeavingTensor> LeavingTensors(const RunModel& run, ConfigKind kind,
                                          const std::map<std::string, DType>& keys, Findings& findings) {
  std::vector<LeavingTensor> tensors;
  int64_t left = 0;
  for (const Module* module : {run.encoder, run.language}) {
    if (module == nullptr) continue;
    for (const Parameter& parameter : module->parameters) {
      // With several encoders, names begin with that of the module; one leaves by itself.
      const std::string own = module->name + ".";
      const std::string file_name =
          parameter.file_name.starts_with(own) ? parameter.file_name.substr(own.size()) : parameter.file_name;
      const std::string name = NameIn(kind, file_name);
      if (name.empty()) {
        ++left;
        continue;
      }
      for (int64_t expert = parameter.experts > 0 ? 0 : -1; expert < parameter.experts; ++expert) {
        const std::string weight = ExpertName(parameter.name, expert);
        const std::string key = keys.contains(weight + ".master") ? weight + ".master" : weight;
        tensors.push_back({ExpertName(name, expert), key, parameter.shape, keys.at(key), parameter.buffer});
        if (expert == -1) break;
      }
    }
  }
  if (left > 0) {
    findings.notes.push_back(absl::StrCat("left behind: ", left, " tensors of the projector of module ",
                                          run.encoder->name, ", as a folder of an encoder has none"));
  }
  return tensors;
}

}  // namespace planwright
