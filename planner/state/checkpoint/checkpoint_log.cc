#include "planner/state/checkpoint/checkpoint_log.h"

#include <fcntl.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "planner/base/files/file_io.h"
#include "planner/base/files/line_file.h"
#include "planner/base/json/json_text.h"
#include "planner/state/checkpoint/durable_file.h"
#include "planner/state/checkpoint/run_lives.h"

namespace planwright {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string LogPath(const std::string& run_dir, int life) { return LifeFolder(run_dir, life) + "/checkpoints.jsonl"; }

// Lines of before have none.
bool ReadRun(const OrderedJson& json, std::string& run_id) {
  const auto found = json.find("run_id");
  if (found == json.end()) return true;
  if (!found->is_string()) return false;
  run_id = found->get<std::string>();
  return true;
}

// The seconds, counts and times of one line: false unless all are there, finite and not negative.
bool ReadCost(const OrderedJson& json, CheckpointCost& cost) {
  if (!json.is_object()) return false;
  const auto number = [&](const char* key, auto& value) {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_number()) return false;
    const double read = found->template get<double>();
    if (!(read >= 0) || read > 9e15) return false;  // whole numbers up to here are exact
    value = static_cast<std::decay_t<decltype(value)>>(read);
    return true;
  };
  return number("step", cost.step) && number("bytes", cost.bytes) && number("copy_seconds", cost.copied) &&
         number("write_seconds", cost.written) && number("waited_seconds", cost.waited) &&
         number("published", cost.published) && ReadRun(json, cost.run_id);
}

}  // namespace

absl::Status LogCheckpoint(const std::string& run_dir, int life, const CheckpointCost& cost) {
  const std::string path = LogPath(run_dir, life);
  OrderedJson json = {{"step", cost.step},
                      {"bytes", cost.bytes},
                      {"copy_seconds", cost.copied},
                      {"write_seconds", cost.written},
                      {"waited_seconds", cost.waited},
                      {"published", cost.published}};
  if (!cost.run_id.empty()) json["run_id"] = cost.run_id;
  const std::string line = JsonText(json) + "\n";
  const absl::StatusOr<int> fd = OpenPlainFile(path, O_WRONLY | O_APPEND | O_CREAT);
  if (!fd.ok()) return absl::ResourceExhaustedError(fd.status().message());
  std::FILE* file = fdopen(*fd, "a");
  if (file == nullptr) return CannotWrite(path, errno);
  const bool whole = std::fwrite(line.data(), 1, line.size(), file) == line.size();
  const int error = errno;
  if (std::fclose(file) != 0) return CannotWrite(path, errno);
  return whole ? absl::OkStatus() : CannotWrite(path, error);
}

absl::StatusOr<CheckpointLog> ReadCheckpointLog(const std::string& run_dir, int life, const std::string& run_id) {
  CheckpointLog log;
  absl::StatusOr<LineFile> file = LineFile::Open(LogPath(run_dir, life));
  if (absl::IsNotFound(file.status())) return log;
  if (!file.ok()) return file.status();
  for (int64_t at = 0; log.checkpoints.size() < kMostLoggedCheckpoints;) {
    const absl::StatusOr<std::optional<LineFile::Line>> line = file->At(at, LineFile::kLongestLine);
    if (!line.ok()) return line.status();
    if (!*line && at < file->bytes()) ++log.unreadable;  // too long: nothing behind it is read
    if (!*line || !(*line)->whole) break;
    at = (*line)->end;
    CheckpointCost cost;
    if (!ReadCost(ParseJson((*line)->text, kCheckpointLineJson).value_or(OrderedJson()), cost)) {
      ++log.unreadable;
    } else if (!cost.run_id.empty() && !run_id.empty() && cost.run_id != run_id) {
      ++log.of_another;
    } else {
      log.checkpoints.push_back(std::move(cost));
    }
  }
  return log;
}

}  // namespace planwright
