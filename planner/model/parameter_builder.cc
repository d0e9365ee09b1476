#include "planner/model/parameter_builder.h"

#include <functional>
#include <numeric>

#include "absl/strings/match.h"

namespace planwright {
namespace {

int64_t Elements(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

// No weight decay for tensors of one dim and for biases (docs/training/step.md#weight-decay-rule).
bool Decays(const std::string& name, const std::vector<int64_t>& shape) {
  return shape.size() > 1 && !absl::EndsWith(name, ".bias");
}

}  // namespace

Parameter& ParameterBuilder::NewParameter(const std::string& suffix, std::vector<int64_t> shape, Init init) {
  Parameter& parameter = module_.parameters.emplace_back();
  parameter.name = module_.name + "." + suffix;
  parameter.file_name = file_prefix_ + suffix;
  parameter.decay = Decays(suffix, shape);
  parameter.shape = std::move(shape);
  parameter.init = init;
  parameter.trained = trained_;
  return parameter;
}

Storage& ParameterBuilder::NewStorage(const std::string& slot, std::vector<int64_t> shape) {
  return module_.storages.emplace_back(
      Storage{.frame = frame_, .slot = slot, .shape = std::move(shape), .parameters = {}, .stage = stage_});
}

void ParameterBuilder::Add(const std::string& slot, const std::string& suffix, std::vector<int64_t> shape, Init init,
                           int cut, std::vector<int64_t> segments) {
  count_ += Elements(shape);
  std::vector<int64_t> local = shape;
  // Every cut is checked before (PW0209), so that the divisions have no remainder.
  if (cut >= 0) {
    local[cut] /= module_.grid.tp;
    if (segments.empty()) segments = {shape[cut]};
  }
  Parameter& parameter = NewParameter(suffix, std::move(shape), init);
  parameter.shard_dim = cut;
  parameter.segments = std::move(segments);
  NewStorage(slot, std::move(local)).parameters = {static_cast<int>(module_.parameters.size()) - 1};
}

void ParameterBuilder::AddJoined(const std::string& slot, const std::vector<Part>& parts, Init init) {
  std::vector<int64_t> local = parts.front().shape;
  local[0] = 0;
  std::vector<int> indices;
  for (const Part& part : parts) {
    count_ += Elements(part.shape);
    local[0] += part.shape[0] / module_.grid.tp;
    Parameter& parameter = NewParameter(part.suffix, part.shape, init);
    parameter.shard_dim = 0;
    parameter.segments = {part.shape[0]};
    indices.push_back(static_cast<int>(module_.parameters.size()) - 1);
  }
  NewStorage(slot, std::move(local)).parameters = std::move(indices);
}

void ParameterBuilder::AddExperts(const std::string& slot, const std::string& suffix, int64_t experts,
                                  std::vector<int64_t> shape, Init init, int cut) {
  count_ += experts * Elements(shape);
  std::vector<int64_t> local = shape;
  local[cut] /= module_.grid.expert_tp;
  local.insert(local.begin(), experts / module_.grid.ep);  // the experts of a rank, as dim 0
  const int64_t whole = shape[cut];
  Parameter& parameter = NewParameter(suffix, std::move(shape), init);
  parameter.experts = experts;
  // With expert_tp 1 an expert is not cut and has no shard_dim.
  if (module_.grid.expert_tp > 1) {
    parameter.shard_dim = cut;
    parameter.segments = {whole};
  }
  NewStorage(slot, std::move(local)).parameters = {static_cast<int>(module_.parameters.size()) - 1};
}

void ParameterBuilder::AddBuffer(const std::string& slot, const std::string& suffix, std::vector<int64_t> shape) {
  Parameter& parameter = NewParameter(suffix, shape, {Init::Kind::kZeros, 0, 0});
  parameter.trained = parameter.decay = false;
  parameter.buffer = true;
  NewStorage(slot, std::move(shape)).parameters = {static_cast<int>(module_.parameters.size()) - 1};
}

}  // namespace planwright
