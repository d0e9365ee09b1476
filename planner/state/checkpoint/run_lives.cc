// Lives are folders, so that a number is taken by one mkdir. The path of a run is walked backwards: from the newest
// life to the life that it began from, and so on.

#include "planner/state/checkpoint/run_lives.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/files/file_io.h"
#include "planner/state/checkpoint/durable_file.h"
#include "planner/state/checkpoint/folder_names.h"
#include "planner/state/checkpoint/remove_checkpoint.h"
#include "planner/state/checkpoint/run_id.h"
#include "planner/state/checkpoint/shard_files.h"

namespace planwright {
namespace {

using Unusable = UnusableCheckpoint;

std::string LivesFolder(const std::string& run_dir) { return run_dir + "/lives"; }

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

  // The newest life that has begun, and how; 0: none has.
  std::pair<int, LifeStart> Newest() const {
    if (parts_.empty()) return {0, LifeStart()};
    return {parts_[0].life, parts_[0].start.value_or(LifeStart())};
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

// Why a checkpoint of this life, by its name, is one of another run; empty: it is of this one.
std::string OtherRun(const Manifest& manifest, const absl::StatusOr<LifeIdentity>& life) {
  if (!life.ok())
    return absl::StrCat("nobody can tell whether it is of this run, as ", std::string(life.status().message()));
  if (manifest.run_id != life->run_id) {
    return absl::StrCat("it is of ", manifest.run_id.empty() ? "a run without a run_id" : "run " + manifest.run_id,
                        "; by its name it is of life ", manifest.life, " of ",
                        life->run_id.empty() ? "this run, which had no run_id then" : "run " + life->run_id);
  }
  if (manifest.plan_digest == life->plan_digest) return "";
  return absl::StrCat("a run of plan ", manifest.plan_digest, " has written it, and life ", manifest.life,
                      " of this run had plan ", life->plan_digest);
}

std::string NotOfItsName(const Manifest& manifest, const CheckpointName& name) {
  if (manifest.counters.step == name.step && manifest.life == name.life) return "";
  return absl::StrCat("it is that of ", CheckpointFolder(manifest.counters.step, manifest.life), ", not of ",
                      CheckpointFolder(name.step, name.life));
}

// The manifest of a folder, if it is that of this name and life, and all its files have their sizes. Else `problem`
// says what is wrong.
std::optional<Manifest> ReadFolder(const std::string& folder, const CheckpointName& name,
                                   const absl::StatusOr<LifeIdentity>& life, Unusable& problem) {
  problem.kind = Unusable::Kind::kDamaged;
  absl::StatusOr<Manifest> manifest = ReadManifestFile(folder);
  if (!manifest.ok()) {
    problem.why = absl::StrCat(kManifestFile, ": ", manifest.status().message());
    return std::nullopt;
  }
  if (const std::string why = NotOfItsName(*manifest, name); !why.empty()) {
    problem.why = absl::StrCat(kManifestFile, ": ", why);
    return std::nullopt;
  }
  if (std::string why = OtherRun(*manifest, life); !why.empty()) {
    problem.kind = Unusable::Kind::kOtherRun;
    problem.why = std::move(why);
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

absl::StatusOr<CheckpointList> ListCheckpoints(const std::string& run_dir, int before) {
  const std::string checkpoints = run_dir + "/checkpoints";
  CheckpointList list;
  const absl::StatusOr<std::vector<std::string>> names = NamesIn(checkpoints);
  if (absl::IsNotFound(names.status())) return list;
  if (!names.ok()) return names.status();
  const absl::StatusOr<LifePath> path = LifePath::Before(run_dir, before);
  if (!path.ok()) return path.status();
  const int newest = NewestLife(run_dir).value_or(0);
  std::tie(list.newest_life, list.newest_start) = path->Newest();
  std::map<int, absl::StatusOr<LifeIdentity>> lives;  // that have a checkpoint on the path
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
    if (IsRemoved(folder)) {
      problem.kind = Unusable::Kind::kNotPublished;
      problem.why = WhyNotPublished(folder, of->life < newest);
      list.unusable.push_back(std::move(problem));
      continue;
    }
    problem.why = path->WhyNot(*of);
    problem.kind = Unusable::Kind::kOffPath;
    if (!problem.why.empty() && !std::filesystem::exists(LifeFolder(run_dir, of->life), error)) {
      problem.kind = Unusable::Kind::kNoLife;
      problem.why = LifeFolder(run_dir, of->life) + " is gone, so nobody can tell whether it counts";
    }
    std::optional<Manifest> manifest;
    if (problem.why.empty()) {
      const auto life = lives.try_emplace(of->life, absl::UnknownError("")).first;
      if (absl::IsUnknown(life->second.status())) life->second = IdentityOfLife(run_dir, of->life);
      // A life whose own files are damaged says nothing of any checkpoint.
      if (absl::IsDataLoss(life->second.status())) return life->second.status();
      manifest = ReadFolder(folder, *of, life->second, problem);
    }
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

absl::Status CheckNoneOfAnotherRun(const CheckpointList& list, const FoundCheckpoint* chosen) {
  for (const Unusable& one : list.unusable) {
    if (one.kind != Unusable::Kind::kOtherRun) continue;
    const bool older = chosen != nullptr &&
                       std::pair(one.life, one.step) < std::pair(chosen->manifest.life, chosen->manifest.counters.step);
    if (older) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("checkpoint ", one.folder, " is not one of this run: ", one.why,
                     "; a run goes on from its own checkpoints alone: move this one away. To begin another run with "
                     "its weights, give it as initialize.from"));
  }
  return absl::OkStatus();
}

std::string MisplacedAs(const std::string& folder, const Manifest& manifest) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(folder, error);
  if (error) return "";
  if (const auto name = ReadCheckpointName(path.filename().string())) {
    if (std::string why = NotOfItsName(manifest, *name); !why.empty()) return why;
  }
  if (path.parent_path().filename() != "checkpoints") return "";
  const std::string run_dir = path.parent_path().parent_path().string();
  if (const absl::StatusOr<std::vector<int>> lives = LivesOf(run_dir); lives.ok() && lives->empty()) return "";
  return OtherRun(manifest, IdentityOfLife(run_dir, manifest.life));
}

int64_t NewestStep(const std::string& run_dir) {
  const absl::StatusOr<int> life = NewestLife(run_dir);
  if (!life.ok()) return 0;
  const absl::StatusOr<CheckpointList> list = ListCheckpoints(run_dir, *life + 1);
  return list.ok() && !list->found.empty() ? list->found[0].manifest.counters.step : 0;
}

bool IsRunDirectory(const std::string& folder) {
  std::error_code error;
  const auto is_folder = [&](const char* name) { return std::filesystem::is_directory(folder + name, error); };
  const auto exists = [&](const char* name) {
    return std::filesystem::exists(std::filesystem::symlink_status(folder + name, error));
  };
  return is_folder("/checkpoints") || is_folder("/lives") || (exists("/plan.json") && is_folder("/logs"));
}

std::string WhyNoCheckpoints(const std::string& run_dir) {
  std::error_code error;
  return run_dir + (std::filesystem::is_directory(run_dir + "/lives", error)
                        ? " has no checkpoints yet: none was written"
                        : " has no checkpoints: the run keeps none (checkpoint.every_steps says when to write one)");
}

absl::StatusOr<NamedCheckpoint> FindCheckpoint(const std::string& folder) {
  if (absl::Status status = CheckFolder(folder); !status.ok()) return status;
  struct stat about {};
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
    if (IsRunDirectory(folder)) return absl::InvalidArgumentError(WhyNoCheckpoints(folder));
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
  const FoundCheckpoint* chosen = list->found.empty() ? nullptr : &list->found.front();
  if (absl::Status none = CheckNoneOfAnotherRun(*list, chosen); !none.ok()) return none;
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

const FoundCheckpoint* BestCheckpoint(const std::vector<FoundCheckpoint>& found, const std::string& set) {
  const FoundCheckpoint* best = nullptr;
  double least = 0;
  std::optional<std::string> samples;
  for (const FoundCheckpoint& one : found) {
    const auto entry = one.manifest.notes.evaluation.find(set);
    if (entry == one.manifest.notes.evaluation.end()) continue;
    const SetLoss& loss = entry->second;
    if (!samples) samples = loss.samples_digest;
    if (loss.samples_digest != *samples || !loss.loss || (best != nullptr && *loss.loss >= least)) continue;
    best = &one, least = *loss.loss;
  }
  return best;
}

std::vector<FoundCheckpoint> CheckpointsToRemove(const std::vector<FoundCheckpoint>& found, int64_t keep_last,
                                                 int64_t keep_every, const std::string& keep_best, int64_t verified) {
  const FoundCheckpoint* const best = BestCheckpoint(found, keep_best);
  std::vector<FoundCheckpoint> remove;
  for (size_t i = 0; i < found.size(); ++i) {
    const int64_t step = found[i].manifest.counters.step;
    const bool stays = static_cast<int64_t>(i) < keep_last || (keep_every > 0 && step % keep_every == 0) ||
                       step == verified || &found[i] == best;
    if (!stays) remove.push_back(found[i]);
  }
  std::reverse(remove.begin(), remove.end());
  return remove;
}

}  // namespace planwright
