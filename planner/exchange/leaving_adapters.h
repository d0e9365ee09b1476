// Adapters that leave a run: as a folder that PEFT opens, or merged into the weights that they stand on
// (docs/training/adapters.md#in-and-out).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/exchange/findings.h"
#include "planner/exchange/import_folder.h"
#include "planner/exchange/out_tensor.h"
#include "planner/exchange/run_model.h"
#include "planner/plan/plan.h"
#include "planner/state/checkpoint/shard_reader.h"

namespace planwright {

// The two matrices of one product, which lie side by side in a folder of the model.
struct LeavingAdapter {
  std::string product;  // as the folder calls it, without ".weight"
  const Module* module = nullptr;
  LeavingTensor a, b;  // lora_A [rank, columns], lora_B [rows, rank]
};

// Takes the adapters out of `leaving`, in its order.
std::vector<LeavingAdapter> TakeAdapters(const RunModel& run, std::vector<LeavingTensor>& leaving);

// adapter_model.safetensors in PEFT's names, and the text of adapter_config.json. `base`: what the adapters stand on;
// empty: it has no name. Problems for products on which PEFT itself opens no adapters, and for two modules with
// adapters, of which a folder has one.
struct PeftFolder {
  std::vector<OutTensor> tensors;
  std::string config;
};
PeftFolder PeftFolderOf(std::vector<LeavingAdapter> adapters, const std::string& base, CheckpointReader& reader,
                        DType dtype, Findings& findings);

// The weights of SOURCE with what the adapters add: W + alpha / rank * B A, in fp64, rounded once. They keep pointers
// to the source's files. A problem for each that SOURCE does not have in this shape.
absl::StatusOr<std::vector<OutTensor>> MergedTensors(std::vector<LeavingAdapter> adapters, const ReadFolder& source,
                                                     CheckpointReader& reader, DType dtype, Findings& findings);

}  // namespace planwright
