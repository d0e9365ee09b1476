// Lives are folders, so that a number is taken by one mkdir. The path of a run is walked backwards: from the newest
// life to the life that it began from, and so on.

#include "planner/checkpoint/run_lives.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/checkpoint/durable_file.h"
#include "planner/checkpoint/shard_files.h"
#include "planner/checkpoint/shard_writer.h"
#include "planner/plan/json_text.h"
#include "planner/run_files/file_io.h"

namespace planwright {
namespace {

using Json = nlohmann::json;
using Unusable = UnusableCheckpoint;

constexpr char kStartFile[] = "start.json";
constexpr int kMostLives = 999'999'999;

std::string LivesFolder(const std::string& run_dir) { return run_dir + "/lives"; }

// Names in a folder. NotFound if there is none; Unavailable if it cannot be read.
absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  if (error == std::errc::no_such_file_or_directory) return absl::NotFoundError("there is no folder " + folder);
  if (error) return absl::UnavailableError(absl::StrCat("cannot read the folder ", folder, ": ", error.message()));
  return names;
}

// Reads a number that fills all of `text`; -1 if it is none.
int64_t NumberFrom(std::string_view text) {
  int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : -1;
}

// What follows from the name of a checkpoint's folder.
struct CheckpointName {
  int64_t step = 0;
  int life = 0;
};
std::optional<CheckpointName> ReadCheckpointName(std::string_view name) {
  constexpr std::string_view kStep = "step-", kLife = ".life-";
  const size_t dot = name.find(kLife);
  if (!name.starts_with(kStep) || dot == std::string_view::npos) return std::nullopt;
  const int64_t step = NumberFrom(name.substr(kStep.size(), dot - kStep.size())),
                life = NumberFrom(name.substr(dot + kLife.size()));
  if (step < 0 || life < 1 || life > kMostLives) return std::nullopt;
  // Another way to write the same numbers would make two folders of one checkpoint.
  if (name != CheckpointFolder(step, static_cast<int>(life))) return std::nullopt;
  return CheckpointName{step, static_cast<int>(life)};
}

// The lives whose checkpoints count. All others do not.
class LifePath {
 public:
  static absl::StatusOr<LifePath> Before(const std::string& run_dir, int before) {
    const absl::StatusOr<std::vector<int>> lives = LivesOf(run_dir);
    if (!lives.ok()) return lives.status();
    LifePath path(before);
    // The newest life that has begun. A life without a start has done no step, and none has begun from it.
    size_t i = lives->size();
    std::optional<LifeStart> start;
    while (i > 0 && !start) {
      if (const int life = (*lives)[--i]; life < before) {
        absl::StatusOr<std::optional<LifeStart>> read = ReadLifeStart(run_dir, life);
        if (!read.ok()) return read.status();
        if (start = *read; start) path.parts_.push_back({life, std::numeric_limits<int64_t>::max(), start});
      }
    }
    while (start && start->from_life > 0) {
      const int life = start->from_life;
      absl::StatusOr<std::optional<LifeStart>> read = ReadLifeStart(run_dir, life);
      if (!read.ok()) return read.status();
      path.parts_.push_back({life, start->from_step, *read});
      start = *read;
    }
    return path;
  }

  // Why the checkpoint does not count; empty: it does.
  std::string WhyNot(const CheckpointName& checkpoint) const {
    if (checkpoint.life >= before_) return absl::StrCat("life ", checkpoint.life, " is not before life ", before_);
    // parts_ descend by life: `after` is the life on the path that began next.
    const Part* after = nullptr;
    for (const Part& part : parts_) {
      if (part.life == checkpoint.life) {
        if (checkpoint.step <= part.last_step) return "";
        return absl::StrCat("life ", after->life, " began from step ", part.last_step, " of life ", part.life);
      }
      if (part.life < checkpoint.life) break;
      after = &part;
    }
    if (!after) return absl::StrCat("life ", checkpoint.life, " has not said how it began");
    const std::optional<LifeStart>& start = after->start;
    if (!start) return absl::StrCat("life ", after->life, " has not said how it began");
    if (start->from_life == 0) return absl::StrCat("life ", after->life, " began afresh");
    return absl::StrCat("life ", after->life, " began from step ", start->from_step, " of life ", start->from_life);
  }

 private:
  struct Part {
    int life = 0;
    int64_t last_step = 0;  // the step from which the next life of the path began
    std::optional<LifeStart> start;
  };

  explicit LifePath(int before) : before_(before) {}

  int before_ = 0;
  std::vector<Part> parts_;  // newest first
};

// The manifest of a folder, if it is that of this name and all its files have their sizes. Else `problem` says what is
// wrong.
std::optional<Manifest> ReadFolder(const std::string& folder, const CheckpointName& name, Unusable& problem) {
  struct stat about {};
  if (lstat((folder + "/" + kManifestFile).c_str(), &about) != 0 && errno == ENOENT) {
    problem.kind = Unusable::Kind::kNotPublished;
    problem.why = absl::StrCat("it has no ", kManifestFile, "; it is being written or removed, or that was cut off");
    return std::nullopt;
  }
  problem.kind = Unusable::Kind::kDamaged;
  absl::StatusOr<Manifest> manifest = ReadManifestFile(folder);
  if (!manifest.ok()) {
    problem.why = absl::StrCat(kManifestFile, ": ", manifest.status().message());
    return std::nullopt;
  }
  if (manifest->counters.step != name.step || manifest->life != name.life) {
    problem.why =
        absl::StrCat(kManifestFile, " is that of ", CheckpointFolder(manifest->counters.step, manifest->life));
    return std::nullopt;
  }
  std::vector<std::pair<std::string, int64_t>> files = {{kCheckpointPlanFile, manifest->plan_bytes}};
  for (const ManifestShard& shard : manifest->shards) {
    files.emplace_back(IndexFile(shard.rank), shard.index_bytes);
    files.emplace_back(ShardFile(shard.rank), shard.bytes);
  }
  for (const auto& [file, bytes] : files) {
    if (absl::Status status = CheckFileSize(folder + "/" + file, bytes); !status.ok()) {
      problem.why = absl::StrCat(file, ": ", status.message());
      return std::nullopt;
    }
  }
  return *std::move(manifest);
}

}  // namespace

std::string LifeFolder(const std::string& run_dir, int life) { return absl::StrCat(LivesFolder(run_dir), "/", life); }

absl::StatusOr<std::vector<int>> LivesOf(const std::string& run_dir) {
  absl::StatusOr<std::vector<std::string>> names = NamesIn(LivesFolder(run_dir));
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

absl::StatusOr<int> TakeLife(const std::string& run_dir) {
  if (absl::Status status = MakeDirectories(LivesFolder(run_dir)); !status.ok()) return status;
  const absl::StatusOr<int> newest = NewestLife(run_dir);
  if (!newest.ok()) return newest.status();
  for (int life = *newest + 1; life <= kMostLives; ++life) {
    const std::string folder = LifeFolder(run_dir, life);
    if (mkdir(folder.c_str(), 0755) == 0) {
      // A power cut must not give the number to another life.
      if (absl::Status status = SyncFolder(LivesFolder(run_dir)); !status.ok()) return status;
      return life;
    }
    // EEXIST: another launch was faster.
    if (errno != EEXIST) return WriteFailed("cannot make the folder " + folder, errno);
  }
  return absl::UnavailableError(LivesFolder(run_dir) + " has no number left for a life");
}

absl::StatusOr<int> NewestLife(const std::string& run_dir) {
  const absl::StatusOr<std::vector<int>> lives = LivesOf(run_dir);
  if (!lives.ok()) return lives.status();
  return lives->empty() ? 0 : lives->back();
}

absl::StatusOr<bool> IsReplaced(const std::string& run_dir, int life) {
  const absl::StatusOr<int> newest = NewestLife(run_dir);
  if (!newest.ok()) return newest.status();
  // Without this life's own folder, nobody can tell whether there was a newer one.
  if (*newest < life) return absl::UnavailableError(LifeFolder(run_dir, life) + " is gone");
  return *newest > life;
}

absl::Status WriteLifeStart(const std::string& run_dir, int life, const LifeStart& start) {
  const Json json = {{"from_life", start.from_life}, {"from_step", start.from_step}};
  return WriteDurably(LifeFolder(run_dir, life), kStartFile, json.dump() + "\n");
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
    const int64_t value = NumberFrom(it->dump());
    return value <= most ? value : -1;
  };
  const int64_t from_life = number("from_life", life - 1),
                from_step = number("from_step", std::numeric_limits<int64_t>::max());
  if (from_life < 0) return damaged(absl::StrCat("from_life is not a number from 0 to ", life - 1));
  if (from_step < 0) return damaged("from_step is not a number of at least 0");
  return LifeStart{static_cast<int>(from_life), from_step};
}

absl::StatusOr<CheckpointList> ListCheckpoints(const std::string& run_dir, int before) {
  const std::string checkpoints = run_dir + "/checkpoints";
  CheckpointList list;
  const absl::StatusOr<std::vector<std::string>> names = NamesIn(checkpoints);
  if (absl::IsNotFound(names.status())) return list;
  if (!names.ok()) return names.status();
  const absl::StatusOr<LifePath> path = LifePath::Before(run_dir, before);
  if (!path.ok()) return path.status();
  for (const std::string& name : *names) {
    const std::string folder = checkpoints + "/" + name;
    std::error_code error;
    if (!std::filesystem::is_directory(folder, error)) continue;  // also what has just been removed
    Unusable problem;
    problem.folder = folder;
    const std::optional<CheckpointName> of = ReadCheckpointName(name);
    if (!of) {
      problem.why = "its name is not that of a checkpoint, such as " + CheckpointFolder(100, 1);
      list.unusable.push_back(std::move(problem));
      continue;
    }
    problem.step = of->step, problem.life = of->life;
    problem.why = path->WhyNot(*of);
    problem.kind = Unusable::Kind::kOffPath;
    std::optional<Manifest> manifest = problem.why.empty() ? ReadFolder(folder, *of, problem) : std::nullopt;
    if (manifest) {
      list.found.push_back({folder, *std::move(manifest)});
    } else {
      list.unusable.push_back(std::move(problem));
    }
  }
  // By life first: a life whose steps take more samples counts fewer steps than the one before it.
  std::sort(list.found.begin(), list.found.end(), [](const FoundCheckpoint& a, const FoundCheckpoint& b) {
    return std::tie(a.manifest.life, a.manifest.counters.step) > std::tie(b.manifest.life, b.manifest.counters.step);
  });
  std::sort(list.unusable.begin(), list.unusable.end(), [](const Unusable& a, const Unusable& b) {
    return std::tie(a.life, a.step, a.folder) > std::tie(b.life, b.step, b.folder);
  });
  return list;
}

int64_t NewestStep(const std::string& run_dir) {
  const absl::StatusOr<int> life = NewestLife(run_dir);
  if (!life.ok()) return 0;
  const absl::StatusOr<CheckpointList> list = ListCheckpoints(run_dir, *life + 1);
  return list.ok() && !list->found.empty() ? list->found[0].manifest.counters.step : 0;
}

absl::StatusOr<NamedCheckpoint> FindCheckpoint(const std::string& folder) {
  struct stat about {};
  if (stat(folder.c_str(), &about) != 0)
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", folder, ": ", std::strerror(errno)));
  if (!S_ISDIR(about.st_mode)) return absl::InvalidArgumentError(folder + " is not a folder");
  NamedCheckpoint named;
  if (lstat((folder + "/" + kManifestFile).c_str(), &about) == 0) {
    absl::StatusOr<Manifest> manifest = ReadManifestFile(folder);
    if (!manifest.ok())
      return absl::Status(manifest.status().code(),
                          absl::StrCat(folder, "/", kManifestFile, ": ", manifest.status().message()));
    named.checkpoint = {folder, *std::move(manifest)};
    return named;
  }
  if (lstat((folder + "/checkpoints").c_str(), &about) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(folder, " is no checkpoint, as it has no ", kManifestFile,
                                                   ", and no run directory, as it has no folder checkpoints"));
  }
  const absl::StatusOr<int> newest = NewestLife(folder);
  if (!newest.ok()) return newest.status();
  absl::StatusOr<CheckpointList> list = ListCheckpoints(folder, *newest + 1);
  if (!list.ok()) return list.status();
  const auto order = [](int life, int64_t step) { return std::pair(life, step); };
  for (Unusable& one : list->unusable) {
    if (one.kind != Unusable::Kind::kDamaged) continue;
    const Manifest* found = list->found.empty() ? nullptr : &list->found.front().manifest;
    if (found == nullptr || order(one.life, one.step) > order(found->life, found->counters.step))
      named.passed.push_back(std::move(one));
  }
  if (list->found.empty() && !named.passed.empty()) {
    return absl::DataLossError(absl::StrCat("no checkpoint of ", folder, " is whole; the newest, ",
                                            named.passed.front().folder, ", is damaged: ", named.passed.front().why));
  }
  if (list->found.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, " has no checkpoint that counts; `plan checkpoint ls ", folder, "` tells more"));
  }
  named.checkpoint = std::move(list->found.front());
  return named;
}

std::vector<FoundCheckpoint> CheckpointsToRemove(const std::vector<FoundCheckpoint>& found, int64_t keep_last,
                                                 int64_t keep_every, int64_t verified) {
  std::vector<FoundCheckpoint> remove;
  for (size_t i = 0; i < found.size(); ++i) {
    const int64_t step = found[i].manifest.counters.step;
    const bool stays =
        static_cast<int64_t>(i) < keep_last || (keep_every > 0 && step % keep_every == 0) || step == verified;
    if (!stays) remove.push_back(found[i]);
  }
  std::reverse(remove.begin(), remove.end());
  return remove;
}

absl::Status RemoveCheckpoint(const std::string& folder) {
  const std::filesystem::path path(folder);
  const std::string name = (path.has_filename() ? path : path.parent_path()).filename().string();
  if (!ReadCheckpointName(name))
    return absl::InvalidArgumentError(folder + " is not removed: its name is not that of a checkpoint");
  const auto failed = [&](const std::string& why) {
    return absl::UnavailableError(absl::StrCat("cannot remove ", folder, ": ", why));
  };
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return absl::OkStatus();
  if (unlink((folder + "/" + kManifestFile).c_str()) != 0 && errno != ENOENT) return failed(std::strerror(errno));
  // After a power cut the manifest must not be there without its files.
  if (absl::Status status = SyncFolder(folder); !status.ok()) return failed(std::string(status.message()));
  std::filesystem::remove_all(path, error);
  return error ? failed(error.message()) : absl::OkStatus();
}

}  // namespace planwright
