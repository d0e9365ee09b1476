// The handlers of a rank that read samples, draw weights, and write or read choices of experts (Handlers in
// program/walk.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executor/data/sample_slots.h"
#include "executor/program/walk.h"
#include "planner/data/samples/sample_source.h"

namespace planwright::executor {

// What a rank knows of the samples.
struct RankSamples {
  std::shared_ptr<const SampleSource> source;  // null: nothing that the rank does needs the files
  std::shared_ptr<SampleSlots> slots;
  // Of each set of Plan::evaluation; empty: no evaluation reads samples on this rank.
  std::vector<std::shared_ptr<const SampleSource>> evaluation;
};

// Opens the files of samples, if the steps or the evaluations of `role` read any. `trains`: steps will run.
// `follows_routing`: the rank will record or replay
// choices of experts, and so must know the number of each sample. ExitError (kExitUsage) if files are missing or do not
// fit the plan.
RankSamples OpenSamples(const Plan& plan, const Role& role, bool trains, bool follows_routing);

// Sets Handlers::data, data_of_steps, data_of_evaluation and data_wait: samples are read ahead. If a sample cannot be
// read later, `data` throws ExitError (kExitUsage). When an evaluation begins with a set that has lost documents to
// damage, the log says so; the first time rank 0 (`prints`) prints it, too.
void ReadSamples(const Plan& plan, const RankSamples& samples, at::Device device, bool prints, Handlers& handlers);

// Carries out initialize_parameters.
void DrawParameters(const Plan& plan, int rank, ModuleState& module);

// Sets Handlers::record_routing and finish_routing, or replay_routing. `record`, `replay`: folders; at most one is not
// empty. They throw ExitError: kExitStorage if choices cannot be written, kExitUsage if they cannot be read or are not
// those of this run.
void FollowRouting(const std::string& record, const std::string& replay, const RankSamples& samples,
                   Handlers& handlers);

}  // namespace planwright::executor
