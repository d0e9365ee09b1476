#include "executor/checkpoint/resume_point.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace planwright::executor {
namespace {

std::string Key(const char* what, int life, int attempt, const std::string& who) {
  return absl::StrCat("resume/", life, "/", attempt, "/", what, "/", who);
}

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

}  // namespace

// Rank 0 alone.
ResumePoint::Choice ResumePoint::Choose() {
  const absl::StatusOr<CheckpointList> list = ListCheckpoints(run_dir_, life_);
  if (!list.ok()) return {.error = std::string(list.status().message())};
  if (attempt_ == 1) {
    for (const UnusableCheckpoint& one : list->unusable)
      Say(absl::StrCat("checkpoint ", one.folder, " is not used: ", one.why));
  }
  for (const FoundCheckpoint& one : list->found) {
    if (std::find(refused_.begin(), refused_.end(), one.folder) != refused_.end()) continue;
    const CheckpointCounters& counters = one.manifest.counters;
    const int64_t samples = plan_.budget.global_samples;
    if (counters.consumed_samples % samples != 0) {
      return {.error = absl::StrCat("checkpoint ", one.folder, " is after ", counters.consumed_samples,
                                    " samples, which is no whole number of steps of ", samples,
                                    " samples; use a batch.global_samples that divides it")};
    }
    refused_.push_back(one.folder);  // Next, if it is ever called again, takes an older one
    Choice choice{.folder = one.folder,
                  .first_step = counters.consumed_samples / samples,
                  .step = counters.step,
                  .from_life = one.manifest.life};
    const absl::Status noted = WriteLifeStart(run_dir_, life_, {choice.from_life, choice.step});
    if (!noted.ok()) return {.error = std::string(noted.message())};
    Say(absl::StrCat("resuming after step ", choice.first_step, " from ", one.folder));
    return choice;
  }
  // Folders without a manifest were never checkpoints: the run was cut off before its first one was whole.
  std::vector<std::string> damaged = refused_;
  for (const UnusableCheckpoint& one : list->unusable) {
    if (one.kind == UnusableCheckpoint::Kind::kDamaged) damaged.push_back(one.folder);
  }
  if (!damaged.empty())
    return {.error = absl::StrCat("no checkpoint of ", run_dir_, " is whole: ", absl::StrJoin(damaged, ", ")),
            .damaged = true};
  const absl::Status noted = WriteLifeStart(run_dir_, life_, {});
  if (!noted.ok()) return {.error = std::string(noted.message())};
  if (life_ > 1) Say(absl::StrCat(run_dir_, " has no checkpoint yet: the run begins at step 1"));
  return {};
}

absl::StatusOr<std::string> ResumePoint::Next() {
  ++attempt_;
  try {
    const std::string key = Key("choice", life_, attempt_, "0");
    if (environment_.rank == 0) {
      const Choice choice = Choose();
      store_.set(key, nlohmann::json{{"folder", choice.folder},
                                     {"error", choice.error},
                                     {"first_step", choice.first_step},
                                     {"step", choice.step},
                                     {"damaged", choice.damaged}}
                          .dump());
    }
    const auto choice = nlohmann::json::parse(store_.get_to_str(key));
    if (const std::string error = choice.at("error"); !error.empty())
      return choice.at("damaged") ? absl::DataLossError(error) : absl::InvalidArgumentError(error);
    first_step_ = choice.at("first_step");
    step_ = choice.at("step");
    return choice.at("folder").get<std::string>();
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
        const std::string found = store_.get_to_str(Key("loaded", life_, attempt_, absl::StrCat(rank)));
        if (found != "-" && first.empty()) first = absl::StrCat("rank ", rank, ": ", found);
      }
      if (!first.empty()) Say(absl::StrCat("this checkpoint is damaged, an older one is taken: ", first));
      store_.set(verdict, first.empty() ? "-" : first);
    }
    const std::string found = store_.get_to_str(verdict);
    return found == "-" ? "" : found;
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("agreeing on a checkpoint: ", error.what()));
  }
}

}  // namespace planwright::executor
