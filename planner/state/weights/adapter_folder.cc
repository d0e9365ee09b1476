#include "planner/state/weights/adapter_folder.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/utf8.h"

namespace planwright {
namespace {

using Json = nlohmann::json;

// Keys of kinds of adapters that compute something else, unless they are false, null or empty.
constexpr const char* kOthers[] = {
    "use_dora",        "use_rslora",        "use_qalora",          "fan_in_fan_out",          "lora_bias",
    "modules_to_save", "target_parameters", "layer_replication",   "trainable_token_indices", "alora_invocation_tokens",
    "rank_pattern",    "alpha_pattern",     "layers_to_transform", "exclude_modules"};

bool SaysNothing(const Json& value) {
  return value.is_null() || (value.is_boolean() && !value.get<bool>()) ||
         ((value.is_object() || value.is_array()) && value.empty());
}

std::string Text(const Json& value) { return Printable(value.dump(-1, ' ', false, Json::error_handler_t::replace)); }

}  // namespace

std::vector<std::string> AdapterConfigProblems(const std::string& text, int64_t rank, double alpha) {
  const absl::StatusOr<Json> json = ParseJson(text, kModelConfigJson);
  if (!json.ok() || !json->is_object()) return {absl::StrCat(kAdapterConfigFile, " is no JSON object")};
  std::vector<std::string> problems;
  const auto value = [&](const char* key) {
    const auto found = json->find(key);
    return found == json->end() ? Json() : *found;
  };
  const auto wrong = [&](const char* key, const Json& found, const std::string& why) {
    problems.push_back(absl::StrCat(kAdapterConfigFile, ": ", key, " = ", Text(found), ", ", why));
  };
  if (const Json kind = value("peft_type"); kind != "LORA") wrong("peft_type", kind, "and only LORA is read");
  if (const Json r = value("r"); r != rank) wrong("r", r, absl::StrCat("and the module's rank is ", rank));
  const Json found = value("lora_alpha");
  if (!found.is_number() || found.get<double>() != alpha)
    wrong("lora_alpha", found, absl::StrCat("and the module's alpha is ", alpha));
  if (const Json bias = value("bias"); !bias.is_null() && bias != "none")
    wrong("bias", bias, "and biases have no adapters");
  for (const char* key : kOthers) {
    if (const Json other = value(key); !SaysNothing(other)) wrong(key, other, "which adapters here do not have");
  }
  return problems;
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
