// The first weights of a run that has a section `initialize`: read from their sources, published files or checkpoints
// of other runs, or drawn (docs/weights.md). Layout, precision and what is trained may be others than those of the run
// that wrote them. A rank reads the elements that it keeps, and no others.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "executor/optimizer/module_state.h"
#include "executor/optimizer/step_state.h"
#include "planner/plan/plan.h"
#include "planner/state/dialect/dialect_forms.h"
#include "planner/state/weights/fit.h"

namespace planwright::executor {

class InitialWeights {
 public:
  // Opens all sources. `chosen`, `forms`: as in FitWeights. Errors: WeightsFit::status.
  static absl::StatusOr<std::unique_ptr<InitialWeights>> Open(const Plan& plan, int rank,
                                                              const std::map<std::string, std::string>& chosen,
                                                              const KindForms& forms = BuiltInForms());

  // Fills the storages of the module and its masters, with initialize.optimizer also its moments, on `threads` threads.
  // A master is what the source has, if that is wider than the weight; else it is the weight. InvalidArgument, with all
  // tensors, if a weight is not finite or too large for the run, or bytes of a file are gone; DataLoss if a checkpoint
  // is damaged.
  absl::Status Load(ModuleState& module, int threads);
  // With initialize.optimizer the count of AdamW's steps, which belongs to the moments; with initialize.schedule
  // checkpoint that of skipped steps.
  void LoadCounters(StepState& step, ManifestNotes& notes) const;

  // Rows of embeddings that are zero on this rank, a line for each embedding of the module.
  std::vector<std::string> Warnings(const ModuleState& module) const;

  int64_t bytes_read() const;

 private:
  InitialWeights(const Plan& plan, int rank, WeightsFit fit) : plan_(plan), rank_(rank), fit_(std::move(fit)) {}

  const Plan& plan_;
  const int rank_;
  WeightsFit fit_;
};

}  // namespace planwright::executor
