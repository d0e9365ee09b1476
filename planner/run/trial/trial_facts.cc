#include "planner/run/trial/trial_facts.h"

#include <algorithm>
#include <utility>

#include "planner/base/files/file_io.h"
#include "planner/base/files/line_file.h"
#include "planner/base/json/json_limits.h"

namespace planwright {
namespace {

template <typename T, typename Read>
std::optional<T> ReadFile(const std::string& path, const JsonLimits& limits, Read read) {
  const absl::StatusOr<std::string> text = ReadWholeFile(path, limits.bytes);
  if (!text.ok()) return std::nullopt;
  absl::StatusOr<T> value = read(*text);
  return value.ok() ? std::optional(*std::move(value)) : std::nullopt;
}

std::vector<StepRecord> ReadSteps(const std::string& run_dir) {
  std::vector<StepRecord> steps;
  absl::StatusOr<LineFile> file = LineFile::Open(StepsPath(run_dir));
  for (int64_t at = 0; file.ok();) {
    const absl::StatusOr<std::optional<LineFile::Line>> line = file->At(at);
    if (!line.ok() || !*line) break;
    at = (*line)->end;
    if (std::optional<StepRecord> step = ReadStepRecord((*line)->text)) steps.push_back(*std::move(step));
  }
  return steps;
}

}  // namespace

TrialFacts ReadTrial(const Plan& plan, const std::string& run_dir) {
  TrialFacts facts;
  facts.files = ReadFile<TrialFiles>(TrialFilesPath(run_dir), kTrialJson, ReadTrialFiles).value_or(TrialFiles());
  facts.rounds =
      ReadFile<CommunicationRounds>(TrialRoundsPath(run_dir), kRoundsJson, ReadRounds).value_or(CommunicationRounds());
  facts.steps = ReadSteps(run_dir);
  const size_t rounds = facts.rounds.list.size();
  facts.round_seconds.assign(rounds, std::vector<double>(static_cast<size_t>(plan.world_size), 0));
  using Times = std::vector<std::vector<double>>;
  for (int rank = 0; rank < plan.world_size; ++rank) {
    facts.ranks.push_back(ReadFile<RankTrial>(RankTrialPath(run_dir, rank), kTrialJson, ReadRankTrial));
    auto times = ReadFile<Times>(RoundTimesPath(run_dir, rank), kRoundTimesJson,
                                 [&](const std::string& text) { return ReadRoundTimes(text, rounds); });
    for (size_t i = 0; times && i < rounds; ++i) {
      std::vector<double>& batches = (*times)[i];
      if (batches.empty()) continue;
      std::sort(batches.begin(), batches.end());
      facts.round_seconds[i][static_cast<size_t>(rank)] = batches[batches.size() / 2];
    }
  }
  return facts;
}

}  // namespace planwright
