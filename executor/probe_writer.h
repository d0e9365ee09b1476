// Writes this rank's parts of `--probe` (planner/run_files/probe_format.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "executor/rank.h"

namespace planwright::executor {

class ProbeWriter {
 public:
  ProbeWriter(std::string directory, int rank) : directory_(std::move(directory)), rank_(rank) {}

  // Owned shards and buffers, before the first step.
  void WriteParameters(const Rank& rank);
  // Owned gradient shards, if this is the first or the last step.
  void WriteGradients(const Rank& rank);
  // Keeps a value that `block` probes; written by WriteValues, at the end of the first and of the last step.
  void Keep(const Block& block, const Probe& probe, const CallContext& call, const at::Tensor& value);
  void WriteValues(const Rank& rank);

 private:
  void Write(const std::string& kind, const std::map<std::string, at::Tensor>& tensors,
             const std::map<std::string, std::string>& metadata);

  std::string directory_;
  int rank_;
  std::map<std::string, at::Tensor> values_;
  std::map<std::string, std::string> sources_;  // key -> "BLOCK/VALUE"
};

}  // namespace planwright::executor
