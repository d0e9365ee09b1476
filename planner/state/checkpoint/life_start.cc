#include "planner/state/checkpoint/life_start.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"
#include "planner/state/checkpoint/folder_names.h"
#include "planner/state/checkpoint/format.h"
#include "planner/state/checkpoint/shard_writer.h"

namespace planwright {
namespace {

using Json = nlohmann::json;

constexpr char kStartFile[] = "start.json";

}  // namespace

std::string LifeFolder(const std::string& run_dir, int life) { return absl::StrCat(run_dir, "/lives/", life); }

absl::StatusOr<std::vector<int>> LivesOf(const std::string& run_dir) {
  absl::StatusOr<std::vector<std::string>> names = NamesIn(run_dir + "/lives");
  if (absl::IsNotFound(names.status())) return std::vector<int>();
  if (!names.ok()) return names.status();
  std::vector<int> lives;
  for (const std::string& name : *names) {
    const int64_t number = NumberFrom(name);
    if (number >= 1 && number <= kMostLives && name == std::to_string(number))
      lives.push_back(static_cast<int>(number));
  }
  std::sort(lives.begin(), lives.end());
  return lives;
}

absl::Status WriteLifeStart(const std::string& run_dir, int life, const LifeStart& start) {
  const nlohmann::ordered_json json = {{"run_id", start.run_id},
                                       {"life", life},
                                       {"plan_digest", start.plan_digest},
                                       {"from_life", start.from_life},
                                       {"from_step", start.from_step}};
  return WriteDurably(LifeFolder(run_dir, life), kStartFile, JsonText(json) + "\n");
}

absl::StatusOr<std::optional<LifeStart>> ReadLifeStart(const std::string& run_dir, int life) {
  const std::string path = LifeFolder(run_dir, life) + "/" + kStartFile;
  struct stat about {};
  if (lstat(path.c_str(), &about) != 0 && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kStartJson.bytes);
  if (!text.ok()) return text.status();
  const auto damaged = [&](const std::string& what) { return absl::DataLossError(path + " is damaged: " + what); };
  const Json json = ParseJson(*text, kStartJson).value_or(Json());
  if (!json.is_object()) return damaged("it is not a JSON object");
  const auto number = [&](const char* key, int64_t most) -> int64_t {
    const auto it = json.find(key);
    if (it == json.end() || !it->is_number_integer()) return -1;
    // As text: a number beyond int64 would wrap around.
    const int64_t value = NumberFrom(JsonText(*it));
    return value <= most ? value : -1;
  };
  LifeStart start;
  start.from_life = static_cast<int>(number("from_life", life - 1));
  start.from_step = number("from_step", std::numeric_limits<int64_t>::max());
  if (start.from_life < 0) return damaged(absl::StrCat("from_life is not a number from 0 to ", life - 1));
  if (start.from_step < 0) return damaged("from_step is not a number of at least 0");
  if (!json.contains("run_id")) return start;  // of a release whose runs had no identity
  const auto text_of = [&](const char* key) {
    const auto it = json.find(key);
    return it != json.end() && it->is_string() ? it->get<std::string>() : "";
  };
  start.run_id = text_of("run_id"), start.plan_digest = text_of("plan_digest");
  if (!IsRunId(start.run_id)) return damaged("run_id is not 32 hex digits");
  if (start.plan_digest.empty()) return damaged("it has no plan_digest");
  if (number("life", kMostLives) != life) return damaged(absl::StrCat("it is not that of life ", life));
  return start;
}

}  // namespace planwright
