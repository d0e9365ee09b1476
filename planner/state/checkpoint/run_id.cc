#include "planner/state/checkpoint/run_id.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"
#include "planner/state/checkpoint/durable_file.h"
#include "planner/state/checkpoint/format.h"
#include "planner/state/checkpoint/life_start.h"

namespace planwright {
namespace {

std::string RunFile(const std::string& run_dir) { return run_dir + "/run.json"; }

bool IsThere(const std::string& path) {
  struct stat about {};
  return lstat(path.c_str(), &about) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

absl::StatusOr<std::string> ReadRunFile(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kStartJson.bytes);
  if (!text.ok()) return text.status();
  const auto json = ParseJson(*text, kStartJson).value_or(nlohmann::json());
  const auto id = json.is_object() ? json.find("run_id") : json.end();
  if (json.is_object() && id != json.end() && id->is_string() && IsRunId(id->get<std::string>()))
    return id->get<std::string>();
  return absl::DataLossError(path +
                             " is damaged: it has no run_id of 32 hex digits; lives/N/start.json have it, too: remove "
                             "the file, and the next launch takes it from there");
}

// Puts `from` at `to` unless something is there. Some file systems have no links: there the last one to come wins.
int MoveUnlessThere(const std::string& from, const std::string& to) {
  int error = link(from.c_str(), to.c_str()) == 0 ? 0 : errno;
  if (error == EPERM || error == EOPNOTSUPP || error == ENOSYS || error == EMLINK)
    error = rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
  unlink(from.c_str());
  return error == EEXIST ? 0 : error;
}

absl::Status WriteRunFile(const std::string& run_dir, const std::string& run_id) {
  const std::string path = RunFile(run_dir), fresh = absl::StrCat(path, ".writing.", NewRunId());
  const std::string text = JsonText(nlohmann::json{{"run_id", run_id}}) + "\n";
  DurableFile file;
  absl::Status status = file.Open(fresh, /*fresh=*/true);
  if (status.ok()) status = file.Write(text.data(), text.size());
  if (status.ok()) status = file.Finish();
  if (!status.ok()) {
    unlink(fresh.c_str());
    return status;
  }
  if (const int error = MoveUnlessThere(fresh, path); error != 0) return CannotWrite(path, error);
  return SyncFolder(run_dir);
}

// The digest that a file of a plan gives itself.
absl::StatusOr<std::string> PlanDigestIn(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kPlanJson.bytes);
  if (!text.ok()) return text.status();
  const auto json = ParseJson(*text, kPlanJson);
  if (json.ok() && json->is_object()) {
    if (const auto digest = json->find("digest"); digest != json->end() && digest->is_string())
      return digest->get<std::string>();
  }
  return absl::NotFoundError(path + " is no plan");
}

// The digest of the plan of a life that has not noted it. Each launch copies the plan before it replaces it, to the
// folder of the life before its own; a launch that ended too early has left the plan of an earlier life where it was.
absl::StatusOr<std::string> PlanDigestOfLife(const std::string& run_dir, int life) {
  const absl::StatusOr<std::vector<int>> lives = LivesOf(run_dir);
  if (!lives.ok()) return lives.status();
  for (const int number : *lives) {
    if (number < life) continue;
    if (const std::string path = LifeFolder(run_dir, number) + "/plan.json"; IsThere(path)) return PlanDigestIn(path);
  }
  if (const std::string path = run_dir + "/plan.json"; IsThere(path)) return PlanDigestIn(path);
  return absl::NotFoundError(absl::StrCat("the plan of life ", life, " is gone"));
}

}  // namespace

std::string NewRunId() {
  std::random_device random;
  std::string id;
  for (int i = 0; i < 4; ++i) id += absl::StrFormat("%08x", random());
  return id;
}

absl::StatusOr<std::optional<std::string>> ReadRunId(const std::string& run_dir) {
  if (IsThere(RunFile(run_dir))) {
    absl::StatusOr<std::string> id = ReadRunFile(RunFile(run_dir));
    if (!id.ok()) return id.status();
    return *std::move(id);
  }
  const absl::StatusOr<std::vector<int>> lives = LivesOf(run_dir);
  if (!lives.ok()) return lives.status();
  for (size_t i = lives->size(); i-- > 0;) {
    const absl::StatusOr<std::optional<LifeStart>> start = ReadLifeStart(run_dir, (*lives)[i]);
    if (!start.ok()) return start.status();
    if (*start && !(*start)->run_id.empty()) return (*start)->run_id;
  }
  return std::nullopt;
}

absl::StatusOr<std::string> TakeRunId(const std::string& run_dir) {
  const absl::StatusOr<std::optional<std::string>> known = ReadRunId(run_dir);
  if (!known.ok()) return known.status();
  if (*known && IsThere(RunFile(run_dir))) return **known;
  if (absl::Status status = WriteRunFile(run_dir, *known ? **known : NewRunId()); !status.ok()) return status;
  return ReadRunFile(RunFile(run_dir));  // another launch may have been faster
}

absl::StatusOr<LifeIdentity> IdentityOfLife(const std::string& run_dir, int life) {
  const absl::StatusOr<std::optional<LifeStart>> start = ReadLifeStart(run_dir, life);
  if (!start.ok()) return start.status();
  if (!*start) return absl::NotFoundError(absl::StrCat("life ", life, " has not said how it began"));
  if ((*start)->run_id.empty()) {
    const absl::StatusOr<std::string> digest = PlanDigestOfLife(run_dir, life);
    if (!digest.ok()) return digest.status();
    return LifeIdentity{"", *digest};
  }
  const absl::StatusOr<std::optional<std::string>> run_id = ReadRunId(run_dir);
  if (!run_id.ok()) return run_id.status();
  if (**run_id != (*start)->run_id) {
    return absl::DataLossError(absl::StrCat(LifeFolder(run_dir, life), "/start.json is of run ", (*start)->run_id,
                                            ", and ", run_dir, " is run ", **run_id,
                                            ": files of two runs were copied into one folder"));
  }
  return LifeIdentity{(*start)->run_id, (*start)->plan_digest};
}

}  // namespace planwright
