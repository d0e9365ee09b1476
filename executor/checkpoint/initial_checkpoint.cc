#include "executor/checkpoint/initial_checkpoint.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "executor/checkpoint/load_pieces.h"
#include "planner/checkpoint/pieces.h"

namespace planwright::executor {
namespace {

constexpr char kMaster[] = ".master";

// The tensor that has a weight: the master where the checkpoint keeps one, as it is what the run has trained.
std::string WeightKey(const CheckpointReader& reader, const std::string& name) {
  return reader.tensors().contains(name + kMaster) ? name + kMaster : name;
}

absl::Status CheckParameters(const Plan& plan, const CheckpointReader& reader) {
  std::vector<std::string> problems;
  const std::map<std::string, KeptParameter> wanted = KeptParameters(plan);
  const auto expect = [&](const std::string& key, const std::vector<int64_t>& shape, const char* why) {
    const auto found = reader.tensors().find(key);
    if (found == reader.tensors().end()) {
      problems.push_back(absl::StrCat("the checkpoint has no ", key, why));
    } else if (found->second.shape != shape) {
      problems.push_back(absl::StrCat(key, " is ", TypeText(found->second.dtype, found->second.shape),
                                      " in the checkpoint, and [", absl::StrJoin(shape, ","), "] in the plan"));
    }
  };
  for (const auto& [name, parameter] : wanted) {
    expect(WeightKey(reader, name), parameter.shape, "");
    if (!plan.initialize->optimizer) continue;
    for (const std::string& state : parameter.states) {
      if ("." + state != kMaster) expect(absl::StrCat(name, ".", state), parameter.shape, " (initialize.optimizer)");
    }
  }
  // What the plan has no place for. States of a weight that this plan freezes are no such thing.
  const std::vector<std::string>& ignore = plan.initialize->ignore;
  std::set<std::string> unused;
  for (const auto& [key, tensor] : reader.tensors()) {
    const std::string name = wanted.contains(key) ? key : SplitKey(key).name;
    if (wanted.contains(name) || std::find(ignore.begin(), ignore.end(), name) != ignore.end()) continue;
    if (!unused.insert(name).second) continue;
    problems.push_back(absl::StrCat("the plan has no ", name, " [", absl::StrJoin(tensor.shape, ","),
                                    "] (what may stay unused is listed in initialize.ignore)"));
  }
  return MisfitOf(reader.folder(), std::move(problems));
}

}  // namespace

absl::StatusOr<std::unique_ptr<InitialCheckpoint>> InitialCheckpoint::Open(const Plan& plan, int rank,
                                                                           const std::string& folder) {
  absl::StatusOr<std::unique_ptr<CheckpointReader>> reader = CheckpointReader::Open(folder);
  if (!reader.ok()) return reader.status();
  if (absl::Status status = CheckParameters(plan, **reader); !status.ok()) return status;
  return std::unique_ptr<InitialCheckpoint>(new InitialCheckpoint(plan, rank, *std::move(reader)));
}

absl::Status InitialCheckpoint::Load(ModuleState& module, int threads) {
  std::vector<CheckpointPiece> pieces;
  for (CheckpointPiece& piece : PiecesToLoad(plan_, module.module(), rank_)) {
    const bool weight = piece.state.empty() || "." + piece.state == kMaster;
    if (!weight && !plan_.initialize->optimizer) continue;  // moments begin at zero
    if (weight) piece.key = WeightKey(*reader_, piece.name);
    pieces.push_back(std::move(piece));
  }
  if (absl::Status status = LoadPieces(*reader_, pieces, threads, module); !status.ok()) return status;
  module.KeepMasters();
  return absl::OkStatus();
}

void InitialCheckpoint::LoadCounters(StepState& step) const {
  const CheckpointCounters& counters = reader_->manifest().counters;
  if (plan_.initialize->optimizer) step.applied_steps.fill_(counters.applied_steps);
  if (plan_.initialize->schedule == "checkpoint") step.skipped_steps.fill_(counters.skipped_steps);
}

}  // namespace planwright::executor
