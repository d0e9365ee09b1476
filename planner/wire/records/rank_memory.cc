#include "planner/wire/records/rank_memory.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/json/json_text.h"

namespace planwright {

std::string RankMemoryPath(const std::string& run_dir, int rank) {
  return absl::StrFormat("%s/memory/rank%04d.json", run_dir, rank);
}

std::string RankMemoryJson(const RankMemory& memory) {
  const nlohmann::ordered_json json = {{"rank", memory.rank},
                                       {"parameters", memory.parameters},
                                       {"gradients", memory.gradients},
                                       {"optimizer", memory.optimizer},
                                       {"tensors_peak", memory.tensors_peak},
                                       {"reserved_peak", memory.reserved_peak},
                                       {"used", memory.used}};
  return JsonText(json) + "\n";
}

absl::StatusOr<RankMemory> ReadRankMemory(std::string_view text) {
  try {
    const absl::StatusOr<nlohmann::json> parsed = ParseJson(text, kRankMemoryJson);
    if (!parsed.ok())
      return absl::InvalidArgumentError(absl::StrCat("no memory of a rank: ", parsed.status().message()));
    const nlohmann::json& json = *parsed;
    const auto bytes = [&](const char* key) { return json.at(key).get<int64_t>(); };
    return RankMemory{json.at("rank").get<int>(), bytes("parameters"),    bytes("gradients"), bytes("optimizer"),
                      bytes("tensors_peak"),      bytes("reserved_peak"), bytes("used")};
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("no memory of a rank: ", error.what()));
  }
}

}  // namespace planwright
