#include "executor/program/probe_writer.h"

#include <filesystem>

#include "executor/optimizer/optimizer.h"
#include "executor/program/exit_error.h"
#include "planner/base/files/exit_status.h"
#include "planner/plan/statement/model_statement.h"
#include "planner/wire/records/probe_format.h"
#include "planner/wire/records/safetensors.h"

namespace planwright::executor {
namespace {

DType DTypeOf(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kDouble: return DType::kFp64;
    case at::kFloat: return DType::kFp32;
    case at::kBFloat16: return DType::kBf16;
    case at::kLong: return DType::kInt64;
    default: TORCH_CHECK(false, "probes cannot write tensors of type ", tensor.scalar_type());
  }
}

// "layer{layer}.out" with the number of the layer in place of "{layer}", and so on.
std::string NameOf(const Probe& probe, const CallContext& call) {
  if (call.layer < 0) return probe.name;
  LayerPlace place = {.layer = call.layer, .block = call.layer};
  const ModelStatement* statement = call.module ? StatementOf(*call.module) : nullptr;
  if (statement) place = PlacesOf(*statement, call.module->layers).at(static_cast<size_t>(call.layer));
  return NameAt(place, probe.name);
}

}  // namespace

void ProbeWriter::Write(const std::string& kind, const std::map<std::string, at::Tensor>& tensors,
                        const std::map<std::string, std::string>& metadata) {
  std::error_code ignored;  // the write that follows reports a folder that is not there
  std::filesystem::create_directories(directory_ + "/parts", ignored);
  std::vector<TensorBytes> file;
  for (const auto& [name, tensor] : tensors) {
    file.push_back({name, DTypeOf(tensor), tensor.sizes().vec(),
                    std::string(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes())});
  }
  const absl::Status status = WriteSafetensors(ProbePartPath(directory_, kind, rank_), file, metadata);
  if (!status.ok()) throw ExitError(kExitStorage, std::string(status.message()));
}

void ProbeWriter::WriteFirstParameters(const Rank& rank) {
  WriteWeights("parameters", rank, &BucketState::parameter_shard);
}

void ProbeWriter::WriteLastParameters(const Rank& rank) { WriteWeights("parameters_last", rank, &BucketState::master); }

void ProbeWriter::WriteWeights(const std::string& kind, const Rank& rank, at::Tensor BucketState::*of_bucket) {
  std::map<std::string, at::Tensor> tensors;
  for (const auto& [name, state] : rank.modules) {
    for (size_t i = 0; i < state.buckets().size(); ++i) {
      if (!state.has_bucket(i)) continue;
      tensors[ProbeBucketKey(name, static_cast<int>(i))] = (state.buckets()[i].*of_bucket).cpu().contiguous();
    }
    for (size_t i = 0; i < state.storages().size(); ++i) {
      const Storage& storage = state.module().storages[i];
      if (!state.has_storage(i) || storage.bucket >= 0) continue;  // what is in a bucket is written above
      tensors[ProbeBufferKey(name, storage.frame, storage.slot)] = state.storages()[i].parameter.cpu().contiguous();
    }
  }
  Write(kind, tensors, {});
}

void ProbeWriter::WriteGradients(const Rank& rank, const StepSpan& steps) {
  std::map<std::string, at::Tensor> tensors;
  const int64_t step = rank.step.step;
  if (step != steps.first && step != steps.last) return;
  const auto scaled = BucketFormsOn(rank.device).scaled_gradients;
  for (const auto& [name, state] : rank.modules) {
    for (size_t i = 0; i < state.buckets().size(); ++i) {
      if (!state.has_bucket(i)) continue;
      tensors[ProbeBucketKey(name, static_cast<int>(i))] = scaled(rank.step, state.buckets()[i]).contiguous();
    }
  }
  // A run of one step writes both.
  if (step == steps.first) Write("gradients_first", tensors, {});
  if (step == steps.last) Write("gradients_last", tensors, {});
}

void ProbeWriter::Keep(const Block& block, const Probe& probe, const CallContext& call, const at::Tensor& value) {
  const std::string key = ProbeValueKey(block.module, call.microbatch, NameOf(probe, call));
  // A copy: on a CPU .cpu() returns the tensor itself, whose memory may be reused by later instructions.
  values_[key] = value.cpu().clone(at::MemoryFormat::Contiguous);
  sources_[key] = block.name + "/" + probe.value;
}

void ProbeWriter::WriteValues(const Rank& rank, const StepSpan& steps) {
  if (rank.step.step == steps.first) Write("values_first", values_, sources_);
  if (rank.step.step == steps.last) Write("values_last", values_, sources_);
  values_.clear();
}

void ProbeWriter::WriteEvaluated() {
  Write("values_evaluated", values_, sources_);
  values_.clear();
}

}  // namespace planwright::executor
