#include "executor/checkpoint/initial_weights.h"

#include <ATen/ops/nonzero.h>
#include <absl/strings/match.h>

#include <algorithm>
#include <set>
#include <utility>

#include "executor/checkpoint/load_pieces.h"
#include "executor/optimizer/initialize.h"
#include "executor/optimizer/philox_draws.h"
#include "planner/state/weights/initial_pieces.h"
#include "planner/state/weights/read_values.h"

namespace planwright::executor {
namespace {

// All that went wrong, in one status. What is wrong with published files is for a person to mend.
absl::Status Joined(const std::vector<InitialPiece>& pieces, const WeightsFit& fit,
                    const std::vector<absl::Status>& statuses) {
  std::vector<std::string> lines;
  std::set<std::string> seen;  // a weight and its master have the same problem
  bool damaged = false;
  for (size_t i = 0; i < statuses.size(); ++i) {
    if (statuses[i].ok()) continue;
    const bool checkpoint = fit.sources[static_cast<size_t>(pieces[i].source)].opened->checkpoint() != nullptr;
    damaged = damaged || (checkpoint && absl::IsDataLoss(statuses[i]));
    std::string line(statuses[i].message());
    if (seen.insert(line).second) lines.push_back(std::move(line));
  }
  if (lines.empty()) return absl::OkStatus();
  const std::string message = lines.size() == 1 ? lines[0] : ListOf("the weights cannot be loaded:", std::move(lines));
  return damaged ? absl::DataLossError(message) : absl::InvalidArgumentError(message);
}

}  // namespace

absl::StatusOr<std::unique_ptr<InitialWeights>> InitialWeights::Open(const Plan& plan, int rank,
                                                                     const std::map<std::string, std::string>& chosen,
                                                                     const KindForms& forms) {
  WeightsFit fit = FitWeights(plan, chosen, forms);
  if (absl::Status status = fit.status(); !status.ok()) return status;
  return std::unique_ptr<InitialWeights>(new InitialWeights(plan, rank, std::move(fit)));
}

absl::Status InitialWeights::Load(ModuleState& module, int threads) {
  const Draws draws = PhiloxDraws(static_cast<uint64_t>(plan_.seed));
  const auto draw = [&](const CheckpointPiece& piece, const ElementRun& run, const at::Tensor& out) {
    DrawElements(module.module().parameters[static_cast<size_t>(piece.parameter)].init, piece.name, run.whole,
                 run.count, draws, out);
  };
  // Weights first: masters are copied from them, and then replaced where the source knows more digits.
  std::vector<InitialPiece> weights, states;
  for (InitialPiece& piece : InitialPieces(plan_, fit_, module.module(), rank_))
    (piece.piece.state.empty() ? weights : states).push_back(std::move(piece));
  for (const std::vector<InitialPiece>* pieces : {&weights, &states}) {
    std::vector<PieceToLoad> list;
    for (const InitialPiece& piece : *pieces) list.push_back({&piece.piece, piece.reader});
    const absl::Status status = Joined(*pieces, fit_, LoadPieces(list, draw, threads, module));
    if (!status.ok()) return status;
    if (pieces == &weights) module.RefreshMasters();
  }
  module.KeepMasters();
  return absl::OkStatus();
}

void InitialWeights::LoadCounters(StepState& step, ManifestNotes& notes) const {
  const bool optimizer = plan_.initialize->optimizer, schedule = plan_.initialize->schedule == "checkpoint";
  if (!optimizer && !schedule) return;
  const Manifest& manifest = fit_.sources.at(0).opened->checkpoint()->manifest();
  if (optimizer) step.applied_steps.fill_(manifest.counters.applied_steps);
  if (!schedule) return;
  step.skipped_steps.fill_(manifest.counters.skipped_steps);
  notes.recent_losses = manifest.notes.recent_losses;
}

std::vector<std::string> InitialWeights::Warnings(const ModuleState& module) const {
  std::vector<std::string> lines;
  const Module& of = module.module();
  for (size_t i = 0; i < of.storages.size(); ++i) {
    const Parameter& parameter = of.parameters[static_cast<size_t>(of.storages[i].parameters.at(0))];
    if (!module.has_storage(i) || !absl::EndsWith(parameter.file_name, "embeddings.weight")) continue;
    const at::Tensor rows = module.storages()[i].parameter;
    if (rows.dim() != 2 || parameter.shard_dim > 0) continue;  // only whole rows can be judged
    const at::Tensor zero = at::nonzero(rows.eq(0).all(1)).view({-1}).cpu();
    std::vector<int64_t> tokens(zero.const_data_ptr<int64_t>(), zero.const_data_ptr<int64_t>() + zero.numel());
    const ShardCoordinates at = CoordinatesOf(of.grid, rank_);
    for (int64_t& token : tokens) token += parameter.shard_dim == 0 ? at.tp_rank * rows.size(0) : 0;
    std::erase_if(tokens, [&](int64_t token) { return token >= parameter.shape[0]; });  // padding, which is no token's
    if (!tokens.empty()) lines.push_back(ZeroRows(parameter.name, tokens));
  }
  return lines;
}

int64_t InitialWeights::bytes_read() const {
  int64_t bytes = 0;
  for (const SourceFit& source : fit_.sources) bytes += source.opened->reader().bytes_read();
  return bytes;
}

}  // namespace planwright::executor
