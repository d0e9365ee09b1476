#include "planner/exchange/config_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"
#include "planner/state/weights/python_json.h"

namespace planwright {

namespace {

// What the parser says, with the line of a number that is too large, which it
// leaves away.
std::string ParserSays(std::string message, const std::string& text) {
  const std::string begin = "number overflow parsing '";
  if (!message.starts_with(begin)) return message;
  const std::string number = message.substr(begin.size(), message.size() - begin.size() - 1);
  const auto at = text.begin() + static_cast<std::ptrdiff_t>(std::min(text.find(number), text.size()));
  return absl::StrCat("line ", 1 + std::count(text.begin(), at, '\n'), ": the number ", number, " is out of range");
}

}  // namespace

absl::StatusOr<nlohmann::ordered_json> ReadConfigFile(const std::string& folder) {
  const std::string path = folder + "/" + kConfigFile;
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kModelConfigJson.bytes);
  if (!text.ok()) return text.status();
  absl::StatusOr<nlohmann::ordered_json> json = ParseOrderedJson(WithTaggedFloats(*text), kModelConfigJson);
  if (!json.ok())
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", ParserSays(std::string(json.status().message()), *text)));
  if (!json->is_object()) return absl::InvalidArgumentError(absl::StrCat(path, ": it is no JSON object"));
  return json;
}

nlohmann::ordered_json LanguageOfConfig(const nlohmann::ordered_json& config) {
  for (const char* part : {"text_config", "llm_config"}) {
    if (const auto found = config.find(part); found != config.end() && found->is_object()) return *found;
  }
  return config;
}

}  // namespace planwright
