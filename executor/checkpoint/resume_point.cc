#include "executor/checkpoint/resume_point.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "executor/communication/agreement.h"
#include "executor/log/log.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"
#include "planner/state/checkpoint/checkpoint_log.h"
#include "planner/state/checkpoint/own_plan.h"
#include "planner/state/checkpoint/plan_fit.h"
#include "planner/state/checkpoint/run_id.h"

namespace planwright::executor {
namespace {

std::string Key(const char* what, int life, int attempt, const std::string& who) {
  return absl::StrCat("resume/", life, "/", attempt, "/", what, "/", who);
}

void Print(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// What rank 0 says for all.
void Say(const std::string& line) {
  LogInfo(line);
  Print(line);
}

void Warn(const std::string& line) {
  LogWarning(line);
  Print(line);
}

// Unavailable stands for a rank that cannot be reached, and not for files.
absl::Status OfStorage(const absl::Status& status) {
  return absl::IsUnavailable(status) ? absl::ResourceExhaustedError(status.message()) : status;
}

}  // namespace

absl::Status CheckNoNewerLife(const std::string& run_dir, int life) {
  const absl::StatusOr<bool> replaced = IsReplaced(run_dir, life);
  if (!replaced.ok()) return OfStorage(replaced.status());
  if (!*replaced) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("a newer life of this run has begun; life ", life, " stops"));
}

// Rank 0 alone, as is BeginFresh.
absl::StatusOr<ResumePoint::Choice> ResumePoint::Choose() {
  if (absl::Status ours = CheckNoNewerLife(run_dir_, life_); !ours.ok()) return ours;
  const absl::StatusOr<std::string> run_id = TakeRunId(run_dir_);
  if (!run_id.ok()) return OfStorage(run_id.status());
  const absl::StatusOr<CheckpointList> list = ListCheckpoints(run_dir_, life_);
  if (!list.ok()) return OfStorage(list.status());
  if (attempt_ == 1) {
    for (const UnusableCheckpoint& one : list->unusable)
      Warn(absl::StrCat("checkpoint ", one.folder, " is not used: ", one.why));
  }
  for (const FoundCheckpoint& one : list->found) {
    if (std::find(refused_.begin(), refused_.end(), one.folder) != refused_.end()) continue;
    if (absl::Status status = CheckNoneOfAnotherRun(*list, &one); !status.ok()) return status;
    const absl::Status fits = ReadAndCheckOwnPlan(one.folder, one.manifest).status();
    refused_.push_back(one.folder);  // Next, if it is ever called again, takes an older one
    if (!fits.ok()) {
      Warn(absl::StrCat("this checkpoint is damaged, an older one is taken: ", fits.message()));
      continue;
    }
    const CheckpointCounters& counters = one.manifest.counters;
    const absl::StatusOr<int64_t> steps_done = StepsDone(plan_, one.folder, counters);
    if (!steps_done.ok()) return steps_done.status();
    const Choice choice{one.folder, *steps_done, counters.step, *run_id};
    if (absl::Status noted = WriteStart(choice, one.manifest.life); !noted.ok()) return noted;
    Say(absl::StrCat("resuming after step ", choice.first_step, " from ", one.folder));
    return choice;
  }
  if (absl::Status status = CheckNoneOfAnotherRun(*list, nullptr); !status.ok()) return status;
  return BeginFresh(*list, *run_id);
}

absl::Status ResumePoint::WriteStart(const Choice& choice, int from_life) {
  return WriteLifeStart(run_dir_, life_,
                        {.from_life = from_life,
                         .from_step = from_life > 0 ? choice.step : 0,
                         .run_id = choice.run_id,
                         .plan_digest = plan_.digest});
}

// Of a life that began at step 1 and published these. Retention keeps the newest one, so a person or a disk took them.
absl::Status ResumePoint::AllGone(int life, const CheckpointLog& log) const {
  const std::string folder = run_dir_ + "/checkpoints";
  const std::string place = std::filesystem::exists(folder) ? absl::StrCat(folder, " has none of them")
                                                            : absl::StrCat("there is no folder ", folder);
  return absl::DataLossError(absl::StrCat(
      "life ", life, " of ", run_dir_, " published ", log.checkpoints.size(), " checkpoints, the last of step ",
      log.checkpoints.back().step, " (", LifeFolder(run_dir_, life), "/checkpoints.jsonl), and ", place,
      ": a disk that is not mounted, or a folder that was moved? Bring them back. The run does not begin "
      "again at step 1: if that is meant, give another --run-dir"));
}

// No checkpoint can be loaded. The run begins at step 1 only if nothing says that it has had one.
absl::StatusOr<ResumePoint::Choice> ResumePoint::BeginFresh(const CheckpointList& list, const std::string& run_id) {
  // Folders without a manifest were never checkpoints: the run was cut off before its first one was whole.
  std::vector<std::string> damaged = refused_;
  for (const UnusableCheckpoint& one : list.unusable) {
    if (one.kind == UnusableCheckpoint::Kind::kDamaged) damaged.push_back(one.folder);
  }
  if (!damaged.empty())
    return absl::DataLossError(
        absl::StrCat("no checkpoint of ", run_dir_, " is whole: ", absl::StrJoin(damaged, ", ")));
  int newest = life_ - 1;  // the newest life that has begun
  std::optional<LifeStart> start;
  for (; newest > 0; --newest) {
    absl::StatusOr<std::optional<LifeStart>> read = ReadLifeStart(run_dir_, newest);
    if (!read.ok()) return OfStorage(read.status());
    if (start = *read; start) break;
  }
  if (start && start->from_life > 0) {
    return absl::DataLossError(absl::StrCat("life ", newest, " of ", run_dir_, " began from step ", start->from_step,
                                            " of life ", start->from_life,
                                            ", and no checkpoint from there on is left; the run does not begin again "
                                            "at step 1: bring them back, or choose another --run-dir"));
  }
  if (start) {
    const absl::StatusOr<CheckpointLog> log = ReadCheckpointLog(run_dir_, newest, run_id);
    if (!log.ok()) return OfStorage(log.status());
    if (!log->checkpoints.empty()) return AllGone(newest, *log);
  }
  for (const UnusableCheckpoint& one : list.unusable) {
    // What a life left that was replaced by one which began afresh is rightly passed over.
    const bool of_a_life =
        one.kind == UnusableCheckpoint::Kind::kOffPath || one.kind == UnusableCheckpoint::Kind::kNoLife;
    if (of_a_life && one.life < newest) continue;
    std::error_code error;
    if (!std::filesystem::exists(one.folder + "/" + kManifestFile, error)) continue;
    return absl::InvalidArgumentError(absl::StrCat("checkpoint ", one.folder, " cannot be used: ", one.why,
                                                   "; the run does not begin at step 1 beside it: move it away, or "
                                                   "choose another --run-dir"));
  }
  const Choice fresh{.run_id = run_id};
  if (absl::Status noted = WriteStart(fresh, 0); !noted.ok()) return noted;
  if (absl::Status made = MakeDirectories(run_dir_ + "/checkpoints"); !made.ok()) return OfStorage(made);
  const bool elsewhere = plan_.initialize && plan_.initialize->schedule == "checkpoint";
  const std::string begins = absl::StrCat("the run begins at ", elsewhere ? "the step of initialize.from" : "step 1");
  if (life_ > 1) {
    Say(absl::StrCat(run_dir_, " has no checkpoint yet: ", begins));
  } else {
    LogInfo(begins);
  }
  return fresh;
}

absl::StatusOr<std::string> ResumePoint::Next() {
  ++attempt_;
  try {
    const std::string key = Key("choice", life_, attempt_, "0");
    if (environment_.rank == 0) {
      const absl::StatusOr<Choice> made = Choose();
      const Choice choice = made.ok() ? *made : Choice{};
      store_.set(key, nlohmann::json{{"folder", std::filesystem::path(choice.folder).filename().string()},
                                     {"code", static_cast<int>(made.status().code())},
                                     {"error", std::string(made.status().message())},
                                     {"first_step", choice.first_step},
                                     {"step", choice.step},
                                     {"run_id", choice.run_id}}
                          .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    }
    const nlohmann::json choice = ParseJson(store_.get_to_str(key), kStoreValueJson).value();
    if (const int code = choice.at("code"); code != 0)
      return absl::Status(static_cast<absl::StatusCode>(code), choice.at("error").get<std::string>());
    first_step_ = choice.at("first_step");
    step_ = choice.at("step");
    run_id_ = choice.at("run_id");
    if (attempt_ == 1) LogInfo(absl::StrCat("run ", run_id_, ", life ", life_));
    const std::string folder = choice.at("folder");
    if (environment_.rank != 0) {
      LogInfo(folder.empty() ? "the run begins at step 1"
                             : absl::StrCat("resuming after step ", first_step_, " from ", folder));
    }
    return folder.empty() ? "" : run_dir_ + "/checkpoints/" + folder;
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("agreeing on a checkpoint: ", error.what()));
  }
}

absl::StatusOr<std::string> ResumePoint::Agree(const std::string& problem) {
  try {
    store_.set(Key("loaded", life_, attempt_, absl::StrCat(environment_.rank)), problem.empty() ? "-" : problem);
    const std::string verdict = Key("verdict", life_, attempt_, "0");
    if (environment_.rank == 0) {
      std::string first;
      for (int rank = 0; rank < environment_.world_size; ++rank) {
        const std::string found = AwaitFiles(Key("loaded", life_, attempt_, absl::StrCat(rank)), store_);
        if (found != "-" && first.empty()) first = absl::StrCat("rank ", rank, ": ", found);
      }
      if (!first.empty()) Warn(absl::StrCat("this checkpoint is damaged, an older one is taken: ", first));
      store_.set(verdict, first.empty() ? "-" : first);
    }
    const std::string found = AwaitFiles(verdict, store_);
    if (found != "-" && environment_.rank != 0)
      LogWarning(absl::StrCat("this checkpoint is damaged, an older one is taken: ", found));
    return found == "-" ? "" : found;
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("agreeing on a checkpoint: ", error.what()));
  }
}

}  // namespace planwright::executor
