#include "executor/program/rank.h"

#include <absl/strings/numbers.h>
#include <absl/strings/string_view.h>

namespace planwright::executor {

int LayerOf(std::string_view frame) {
  const size_t at = frame.rfind(".layers.");
  int layer = -1;
  if (at == std::string_view::npos ||
      !absl::SimpleAtoi(absl::string_view(frame.data() + at + 8, frame.size() - at - 8), &layer))
    return -1;
  return layer;
}

at::Tensor Rank::StateValue(const std::string& name) {
  if (name[0] == '$') return step.sum(name);
  // "%MODULE.BUFFER.BUCKET". The name of a module has no dot, so it ends at the first of the last two.
  const size_t last = name.rfind('.'), middle = name.rfind('.', last - 1);
  int64_t index = -1;
  TORCH_CHECK(
      last != std::string::npos && middle != std::string::npos && absl::SimpleAtoi(name.substr(last + 1), &index),
      "there is no state ", name);
  const auto module = modules.find(name.substr(1, middle - 1));
  TORCH_CHECK(module != modules.end() && index >= 0 && index < static_cast<int64_t>(module->second.buckets().size()),
              "there is no state ", name);
  const BucketState& bucket = module->second.buckets()[index];
  const std::string buffer = name.substr(middle + 1, last - middle - 1);
  if (buffer == "gradients") return bucket.gradients;
  if (buffer == "gradient_shards") return bucket.gradient_shard;
  if (buffer == "parameter_shards") return bucket.parameter_shard;
  if (buffer == "parameters") return bucket.parameters;
  TORCH_CHECK(false, "there is no state ", name);
}

CallContext Rank::Context(const Module* module, std::string_view frame, int microbatch) const {
  CallContext context;
  context.plan = &plan;
  context.module = module;
  context.rank = rank;
  context.layer = LayerOf(frame);
  context.step = step.step;
  context.microbatch = microbatch;
  if (module != nullptr) {
    context.tp = module->grid.tp;
    context.tp_rank = CoordinateOf(module->grid, rank, Axis::kTp);
    context.cp = module->grid.cp;
    context.cp_rank = CoordinateOf(module->grid, rank, Axis::kCp);
    context.ep = module->grid.ep;
    context.ep_rank = CoordinateOf(module->grid, rank, Axis::kEp);
    context.lanes = module->grid.dp;
    context.lane = CoordinateOf(module->grid, rank, Axis::kDp);
  }
  return context;
}

}  // namespace planwright::executor
