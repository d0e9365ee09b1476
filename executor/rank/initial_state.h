// Where the first weights of a run come from if the recipe has a section `initialize` (docs/weights.md): published
// files, the checkpoints of other runs (docs/checkpoints.md#starting-from-a-checkpoint), or draws.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "executor/checkpoint/initial_weights.h"
#include "executor/communication/rendezvous.h"
#include "executor/optimizer/module_state.h"
#include "executor/optimizer/step_state.h"
#include "planner/plan/plan.h"

namespace c10d {
class Store;
}

namespace planwright::executor {

class InitialState {
 public:
  // Rank 0 looks what the sources name, checks that they fit, and chooses: the newest checkpoint of a run directory may
  // soon be another one. All ranks get the same answer, or the same error: InvalidArgument, with all that does not fit,
  // or if the checkpoint's samples are no whole number of steps of this plan; DataLoss if it is damaged; Unavailable if
  // a rank cannot be reached.
  // kStandOn: the run goes on, and needs what its adapters stand on.
  enum class Purpose { kTrain, kEvaluate, kStandOn };
  static absl::StatusOr<std::unique_ptr<InitialState>> Choose(const Plan& plan, Purpose purpose,
                                                              const Environment& environment, c10d::Store& store);

  // With which the run begins, from 0: not 0 if the schedule goes on where the checkpoint stands.
  int64_t first_step() const { return first_step_; }
  // The digests of what adapters stand on (Manifest::base).
  const std::map<std::string, std::string>& base() const { return base_; }

  // Carries out load_parameters. ExitError: kExitUsage if a file cannot be read or does not fit the plan, kExitDamaged
  // if a checkpoint is damaged; both if a weight is not a finite number.
  void Load(ModuleState& module, StepState& step, ManifestNotes& notes);

 private:
  InitialState(const Plan& plan, std::unique_ptr<const Plan> standing, int rank,
               std::map<std::string, std::string> chosen, int64_t first_step, std::map<std::string, std::string> base)
      : standing_(std::move(standing)), plan_(standing_ ? *standing_ : plan), rank_(rank), chosen_(std::move(chosen)),
        first_step_(first_step), base_(std::move(base)) {}

  const std::unique_ptr<const Plan> standing_;  // of kStandOn: with NeededToGoOn alone; null: of another purpose
  const Plan& plan_;
  const int rank_;
  const std::map<std::string, std::string> chosen_;  // what to open in the place of each path
  const int64_t first_step_;
  const std::map<std::string, std::string> base_;
  std::unique_ptr<InitialWeights> weights_;
};

}  // namespace planwright::executor
