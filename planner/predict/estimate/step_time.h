// The predicted time of a step: a simulation of the programs of all roles, with times from data sheets or measurements
// (docs/step_time.md). The one place for what a step and its parts take.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/predict/estimate/expert_rows.h"
#include "planner/predict/rates/rates.h"

namespace planwright {

// The forward or backward of one stage for one microbatch.
struct StageAction {
  std::string module;
  int stage = 0, microbatch = 0;
  int index = 0;  // index of its call in the role's own list
  bool backward = false;
  double start = 0, end = 0;  // from the step's start, in StepTime's unit
};

// One instruction of a role's step.
struct PlannedTime {
  double start = 0;   // of a communication: when all members are there
  double length = 0;  // on its stream
  double waited = 0;  // before the start: of a communication, from when its stream came to it
  int action = -1;    // index in RoleTime::actions of the forward or backward that it is in; -1: none
  Known known = Known::kEstimated;
};

// All instructions of one operation in one part of the model or the step, as a trace counts them (docs/profiling.md):
// of an average rank, from when a stream comes to an instruction until it is done, with what it waits for other ranks.
struct OperationTime {
  std::string part;  // PartOf (program_parts.h)
  std::string kind;  // an operation's name
  bool communication = false;
  double times = 0;    // how often it runs in a step
  double seconds = 0;  // in the unit of StepTime
  double waited = 0;   // of these, of communication: until the last member came
};

// Ranks that take the same time: a role, or a part of it (rank_classes.h). The four times add up to the step. Times are
// those of a rank with the mean number of rows in its experts.
struct RoleTime {
  const Role* role = nullptr;
  std::vector<RankRange> ranks;
  std::string
      what;  // what tells these ranks apart from others of the role: "no sample of radio_encoder"; empty: nothing
  double flops = 0;               // of one rank in one step, at mean sizes
  double busy = 0;                // some stream computes
  double communication = 0;       // a communication goes on, and nothing computes
  double waiting = 0;             // it waits for other ranks, and does nothing else; also at the end of the step
  double launching = 0;           // the device has nothing to do, as the host is not so far
  double waiting_for_others = 0;  // of `waiting`: for ranks of other roles, or other classes of this one
  int waits_for = -1;  // index in StepTime::roles of the ranks for which it waits most; its own: the rank of its
                       // role to which most rows of experts come; -1: it does not wait
  std::vector<StageAction> actions;  // in program order; empty: the role computes nothing
  std::vector<PlannedTime> entries;  // of LinkedProgram::step(), in program order
  std::vector<OperationTime> operations;

  int64_t count() const;  // ranks
};

// What one kind of instruction takes, or waiting.
struct StepCost {
  std::string part;  // PartOf (program_parts.h); of waiting and launching, the role
  std::string kind;  // an operation's name, "waiting" or "launching"
  bool communication = false;
  double seconds = 0;  // of a rank, on average over all ranks; of communication, what is not hidden by work
  std::array<double, 3> by_known{};  // the same, by Known

  bool work() const { return kind != "waiting" && kind != "launching"; }  // an instruction takes it
};

// A part of the chain of instructions that bounds the step: shorten it, and the step is shorter.
struct PathPart {
  int role = 0;            // index in StepTime::roles
  std::string part, kind;  // as of StepCost
  double seconds = 0;
};

// What checkpoints take of the training: a rank copies what it writes beside the step that follows, and AdamW waits for
// the copies (docs/step_time.md#checkpoints). Writing to disk is not in it.
struct SaveTime {
  int64_t every = 0;   // steps; 0: no checkpoints are written
  int64_t bytes = 0;   // that a rank copies, at most
  double copy = 0;     // seconds of these copies
  double longer = 0;   // seconds by which the step after a checkpoint is longer than others
  bool known = false;  // false: nobody knows how fast a rank copies, or copies wait for the disk (copy_bytes)

  double per_step() const { return every > 0 ? longer / static_cast<double>(every) : 0; }  // of an average step
};

struct StepTime {
  bool seconds = false;  // times are seconds; false: the device is unknown, and times are FLOPs
  double length = 0;     // time until the last rank is done
  double bubble = 0;     // share of the step in which a rank waits, on average over ranks
  std::vector<RoleTime> roles;
  std::vector<StepCost> costs;  // largest first; with seconds they add up to the step
  std::vector<PathPart> path;   // largest first; they add up to the step
  SaveTime save;
};

// Of a plan that compiles or was verified: of another one, communications may have no partner, and the step is too
// short. The plan must outlive the result, which points to its roles. Without `rates`: those of the plan's cluster.
// `rows`: which ranks get how many rows of experts; null: as `moe.imbalance` says.
StepTime TimeStep(const Plan& plan);
StepTime TimeStep(const Plan& plan, const Rates& rates, const ExpertRows* rows = nullptr);

// StepTime::length alone.
double StepLength(const Plan& plan, const Rates& rates);

}  // namespace planwright
