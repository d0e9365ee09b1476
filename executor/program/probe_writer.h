// Writes this rank's part of the tensors that `--probe` asks for: weights, gradients and probed values, for comparison
// between runs. The launcher joins the parts of all ranks (planner/wire/records/probe_format.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "executor/program/walk.h"

namespace planwright::executor {

class ProbeWriter {
 public:
  ProbeWriter(std::string directory, int rank) : directory_(std::move(directory)), rank_(rank) {}

  // The shards that this rank owns, and its storages in no bucket: the parameters before the first step, and the master
  // weights after the last one.
  void WriteFirstParameters(const Rank& rank);
  void WriteLastParameters(const Rank& rank);
  // The gradient shards that this rank owns, reduced. Writes only in the first and in the last step.
  void WriteGradients(const Rank& rank, const StepSpan& steps);
  // Copies a value that `block` probes to the host. WriteValues writes all kept values at the end of the first and of
  // the last step.
  void Keep(const Block& block, const Probe& probe, const CallContext& call, const at::Tensor& value);
  void WriteValues(const Rank& rank, const StepSpan& steps);
  // The same of a run of no steps, after its evaluation: values were kept with their round as the microbatch.
  void WriteEvaluated();

 private:
  void WriteWeights(const std::string& kind, const Rank& rank, at::Tensor BucketState::*of_bucket);
  void Write(const std::string& kind, const std::map<std::string, at::Tensor>& tensors,
             const std::map<std::string, std::string>& metadata);

  std::string directory_;
  int rank_;
  std::map<std::string, at::Tensor> values_;    // kept in this step, by key
  std::map<std::string, std::string> sources_;  // key -> "BLOCK/VALUE"
};

}  // namespace planwright::executor
