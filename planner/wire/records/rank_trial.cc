#include "planner/wire/records/rank_trial.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/json/json_fields.h"
#include "planner/base/json/json_text.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

absl::Status NotOf(std::string_view what, const absl::Status& why) {
  return absl::InvalidArgumentError(absl::StrCat("is no ", std::string(what), ": ", std::string(why.message())));
}

}  // namespace

std::string TrialFilesPath(const std::string& run_dir) { return run_dir + "/trial/files.json"; }
std::string TrialRoundsPath(const std::string& run_dir) { return run_dir + "/trial/rounds.json"; }
std::string RankTrialPath(const std::string& run_dir, int rank) {
  return absl::StrFormat("%s/trial/rank%04d.json", run_dir, rank);
}

std::string TrialFilesJson(const TrialFiles& files) {
  return JsonText(Json({{"paths", files.paths}, {"left_out", files.left_out}}), 1) + "\n";
}

absl::StatusOr<TrialFiles> ReadTrialFiles(std::string_view text) {
  const absl::StatusOr<nlohmann::json> json = ParseJson(text, kTrialJson);
  if (!json.ok()) return NotOf("list of files", json.status());
  const auto left_out = json->is_object() ? IntegerOf(*json, "left_out", 0, kLargestCount) : std::nullopt;
  if (!left_out) return absl::InvalidArgumentError("is no list of files");
  return TrialFiles{TextsOf(*json, "paths"), *left_out};
}

std::string RankTrialJson(const RankTrial& trial) {
  Json json = {{"rank", trial.rank},
               {"host", trial.host},
               {"ready", trial.ready},
               {"start_up", trial.start_up},
               {"start_parts", trial.start_parts},
               {"device_total", trial.device_total},
               {"device_free", trial.device_free},
               {"host_available", trial.host_available},
               {"resident", trial.resident},
               {"files", Json::array()}};
  for (const TriedFile& file : trial.files) json["files"].push_back(Json({file.bytes, file.problem}));
  return JsonText(json) + "\n";
}

absl::StatusOr<RankTrial> ReadRankTrial(std::string_view text) {
  const absl::StatusOr<nlohmann::json> parsed = ParseJson(text, kTrialJson);
  if (!parsed.ok()) return NotOf("trial of a rank", parsed.status());
  try {
    const nlohmann::json& json = *parsed;
    RankTrial trial = {.rank = json.at("rank").get<int>(),
                       .host = json.at("host").get<std::string>(),
                       .ready = json.at("ready").get<double>(),
                       .start_up = json.at("start_up").get<double>(),
                       .start_parts = json.at("start_parts").get<std::string>(),
                       .device_total = json.at("device_total").get<int64_t>(),
                       .device_free = json.at("device_free").get<int64_t>(),
                       .host_available = json.at("host_available").get<int64_t>(),
                       .resident = json.at("resident").get<int64_t>(),
                       .files = {}};
    for (const nlohmann::json& file : json.at("files"))
      trial.files.push_back({file.at(0).get<int64_t>(), file.at(1).get<std::string>()});
    return trial;
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("is no trial of a rank: ", error.what()));
  }
}

}  // namespace planwright
