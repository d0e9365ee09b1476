#include "planner/state/weights/adapter_folder.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <span>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/utf8.h"

namespace planwright {
namespace {

using Json = nlohmann::json;

// Keys that change no number of W + alpha / rank * B A: who wrote it and for what, how adapters are drawn, trained and
// found. Of all others, also those of a later PEFT, nothing is known but that they say something.
constexpr std::string_view kHarmless[] = {"auto_mapping",      "base_model_name_or_path",
                                          "corda_config",      "ensure_weight_tying",
                                          "eva_config",        "inference_mode",
                                          "layers_pattern",    "loftq_config",
                                          "lora_dropout",      "lora_ga_config",
                                          "megatron_core",     "peft_version",
                                          "qalora_group_size", "revision",
                                          "runtime_config",    "target_modules",
                                          "task_type",         "velora_config"};
// Keys that are looked at one by one.
constexpr std::string_view kRead[] = {"peft_type", "r", "lora_alpha", "bias", "init_lora_weights"};

bool Has(std::span<const std::string_view> keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

// What PEFT's draws of adapters do to the weights beside them, when it opens a folder; "" if nothing.
std::string ChangesWeights(const Json& draw) {
  if (draw.is_null() || draw.is_boolean()) return "";
  const std::string word = draw.is_string() ? draw.get<std::string>() : "";
  if (word == "gaussian" || word == "eva" || word == "orthogonal" || word == "mica" || word == "lora_ga") return "";
  if (word.starts_with("pissa") || word.starts_with("corda") || word == "olora")
    return "with which PEFT changes the weights that adapters stand on: make plain adapters of it in Python, "
           "save_pretrained(FOLDER, path_initial_model_for_weight_conversion=INITIAL)";
  if (word == "loftq")
    return "with which PEFT quantizes the weights that adapters stand on: merge it in Python, merge_and_unload(), and "
           "name the merged model";
  return "and what PEFT does with it is not known: plain adapters have true";
}

bool SaysNothing(const Json& value) {
  return value.is_null() || (value.is_boolean() && !value.get<bool>()) ||
         ((value.is_object() || value.is_array()) && value.empty()) || value == "";
}

std::string Text(const Json& value) { return Printable(value.dump(-1, ' ', false, Json::error_handler_t::replace)); }

}  // namespace

std::vector<std::string> AdapterConfigProblems(const std::string& text, int64_t rank, double alpha) {
  const absl::StatusOr<Json> json = ParseJson(text, kModelConfigJson);
  if (!json.ok())
    return {absl::StrCat(kAdapterConfigFile, " cannot be read: ", Printable(std::string(json.status().message())))};
  if (!json->is_object()) return {absl::StrCat(kAdapterConfigFile, " is no JSON object")};
  std::vector<std::string> problems;
  const auto value = [&](const char* key) {
    const auto found = json->find(key);
    return found == json->end() ? Json() : *found;
  };
  const auto wrong = [&](const std::string& key, const Json& found, const std::string& why) {
    problems.push_back(json->contains(key)
                           ? absl::StrCat(kAdapterConfigFile, ": ", Printable(key), " = ", Text(found), ", ", why)
                           : absl::StrCat(kAdapterConfigFile, " has no ", key, ", ", why));
  };
  if (const Json kind = value("peft_type"); kind != "LORA") wrong("peft_type", kind, "and only LORA is read");
  if (const Json r = value("r"); r != rank) wrong("r", r, absl::StrCat("and the module's rank is ", rank));
  const Json found = value("lora_alpha");
  if (!found.is_number() || found.get<double>() != alpha)
    wrong("lora_alpha", found, absl::StrCat("and the module's alpha is ", alpha));
  if (const Json bias = value("bias"); !bias.is_null() && bias != "none")
    wrong("bias", bias, "and biases have no adapters");
  const Json draw = value("init_lora_weights");
  if (const std::string why = ChangesWeights(draw); !why.empty()) wrong("init_lora_weights", draw, why);
  for (const auto& [key, other] : json->items()) {
    if (!Has(kRead, key) && !Has(kHarmless, key) && !SaysNothing(other))
      wrong(key, other, "which adapters here do not have");
  }
  return problems;
}

std::vector<std::string> TargetsWithoutTensors(const std::string& text, const std::vector<std::string>& names) {
  const absl::StatusOr<Json> json = ParseJson(text, kModelConfigJson);
  if (!json.ok() || !json->is_object()) return {};
  const auto targets = json->find("target_modules");
  if (targets == json->end() || !targets->is_array()) return {};  // a text is a pattern of Python
  std::vector<std::string> lacking;
  for (const Json& target : *targets) {
    if (!target.is_string()) continue;
    const std::string word = target.get<std::string>(), inner = absl::StrCat(".", word, ".lora_");
    const auto has = [&](const std::string& name) { return absl::StrContains("." + name, inner); };
    if (std::none_of(names.begin(), names.end(), has)) lacking.push_back(Printable(word));
  }
  return lacking;
}

std::string_view LayerTail(std::string_view name) {
  size_t begin = 0, before = 0;  // of the word, and of the one before it
  while (begin < name.size()) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view word = name.substr(begin, end - begin);
    const bool number =
        !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    if (number && begin > 0) return name.substr(before);
    before = begin;
    begin = end + 1;
  }
  return name;
}

}  // namespace planwright
