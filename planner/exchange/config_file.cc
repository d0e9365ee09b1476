#include "planner/exchange/config_file.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "planner/plan/json_text.h"
#include "planner/run_files/file_io.h"
#include "planner/weights/python_json.h"

namespace planwright {

absl::StatusOr<nlohmann::ordered_json> ReadConfigFile(const std::string& folder) {
  const std::string path = folder + "/" + kConfigFile;
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kModelConfigJson.bytes);
  if (!text.ok()) return text.status();
  absl::StatusOr<nlohmann::ordered_json> json = ParseOrderedJson(WithTaggedFloats(*text), kModelConfigJson);
  if (!json.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", json.status().message()));
  if (!json->is_object()) return absl::InvalidArgumentError(absl::StrCat(path, ": it is no JSON object"));
  return json;
}

}  // namespace planwright
