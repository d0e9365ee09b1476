#include "executor/optimizer/initialize.h"

#include <ATen/ops/empty.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>

#include "planner/plan/shard_map.h"

namespace planwright::executor {
namespace {

constexpr int64_t kChunk = 1 << 16;  // elements drawn at a time; bounds the memory of the doubles

// The inverse of softplus, log(exp(dt) - 1), without cancellation for small dt.
double InverseSoftplus(double dt) { return dt + std::log(-std::expm1(-dt)); }

// For each storage of the module that this rank has: calls `fill(slice, flat)` for each part of it that comes from one
// published tensor. `flat` is the storage as a flat host tensor of its own dtype; it is copied to the storage
// afterwards.
template <typename Fill>
void FillStorages(const Module& module, const ShardPlace& place, ModuleState& state, const Fill& fill) {
  for (size_t i = 0; i < module.storages.size(); ++i) {
    if (!state.has_storage(i)) continue;
    at::Tensor parameter = state.storages()[i].parameter;
    // Filled on the host and copied once: storages have many short runs of elements.
    at::Tensor flat = at::empty({parameter.numel()}, at::TensorOptions(at::kCPU).dtype(parameter.scalar_type()));
    for (const PublishedSlice& slice : SlicesOf(module, module.storages[i], place)) fill(slice, flat);
    parameter.copy_(flat.view(parameter.sizes()));
  }
}

std::string ShapeText(const std::vector<int64_t>& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

}  // namespace

void InitialValues(const Init& init, const std::string& name, int64_t first, int64_t count, const Draws& draws,
                   double* out) {
  switch (init.kind) {
    case Init::Kind::kZeros: std::fill_n(out, count, 0.0); return;
    case Init::Kind::kOnes: std::fill_n(out, count, 1.0); return;
    case Init::Kind::kNormal:
      draws.normal(name, first, count, out);
      std::transform(out, out + count, out, [&](double z) { return init.a * z; });
      return;
    case Init::Kind::kUniform:
    case Init::Kind::kLogUniform:
      draws.uniform(name, first, count, out);
      std::transform(out, out + count, out, [&](double u) {
        const double value = init.a + (init.b - init.a) * u;
        return init.kind == Init::Kind::kUniform ? value : std::log(value);
      });
      return;
    case Init::Kind::kDtBias:  // dt is log-uniform in [a, b]; the parameter is added before softplus
      draws.uniform(name, first, count, out);
      std::transform(out, out + count, out, [&](double u) {
        const double dt = std::exp(std::log(init.a) + (std::log(init.b) - std::log(init.a)) * u);
        return InverseSoftplus(std::max(dt, 1e-4));
      });
      return;
  }
}

void InitializeParameters(const Plan& plan, int rank, const Draws& draws, ModuleState& state) {
  const Module& module = state.module();
  std::vector<double> values(kChunk);
  FillStorages(module, PlaceOf(module.grid, rank), state, [&](const PublishedSlice& slice, at::Tensor& flat) {
    for (const ElementRun& run : slice.runs) {
      for (int64_t done = 0; done < run.count; done += kChunk) {
        const int64_t count = std::min(kChunk, run.count - done);
        InitialValues(module.parameters[slice.parameter].init, slice.name, run.whole + done, count, draws,
                      values.data());
        // LibTorch rounds while it copies, so drawn values are rounded once, from double to the parameter's dtype.
        at::Tensor wide = at::empty({count}, at::kDouble);
        std::copy_n(values.data(), count, wide.mutable_data_ptr<double>());
        flat.narrow(0, run.local + done, count).copy_(wide);
      }
    }
  });
}

std::map<std::string, std::vector<int64_t>> WantedTensors(const Plan& plan) {
  std::map<std::string, std::vector<int64_t>> wanted;
  for (const Module& module : plan.modules) {
    for (const Parameter& parameter : module.parameters) {
      // A parameter of experts is published as one tensor for each expert.
      for (int64_t i = 0; i < std::max<int64_t>(parameter.experts, 1); ++i) {
        wanted[ExpertName(parameter.file_name, parameter.experts > 0 ? i : -1)] = parameter.shape;
      }
    }
  }
  return wanted;
}

absl::Status CheckSources(const Plan& plan, const std::map<std::string, SourceTensor>& sources) {
  std::vector<std::string> problems;  // all of them: a wrong file usually has many
  const auto wanted = WantedTensors(plan);
  for (const auto& [name, shape] : wanted) {
    const auto source = sources.find(name);
    if (source == sources.end()) {
      problems.push_back(absl::StrCat("missing: ", name, " ", ShapeText(shape)));
    } else if (source->second.shape != shape) {
      problems.push_back(absl::StrCat("shape: ", name, " is ", ShapeText(source->second.shape), ", the model's is ",
                                      ShapeText(shape)));
    }
  }
  for (const auto& [name, source] : sources) {
    const std::vector<std::string>& ignore = plan.initialize->ignore;
    if (wanted.contains(name) || std::find(ignore.begin(), ignore.end(), name) != ignore.end()) continue;
    problems.push_back(absl::StrCat("unused: ", name, " ", ShapeText(source.shape)));
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(plan.initialize->from, " does not fit the model:\n  ", absl::StrJoin(problems, "\n  ")));
}

void LoadParameters(const Plan& plan, int rank, const std::map<std::string, SourceTensor>& sources,
                    ModuleState& state) {
  const Module& module = state.module();
  FillStorages(module, PlaceOf(module.grid, rank), state, [&](const PublishedSlice& slice, at::Tensor& flat) {
    // The whole tensor is read even if this rank needs a part: parts are not contiguous in the file.
    const at::Tensor whole = sources.at(slice.file_name).read().reshape({-1});
    for (const ElementRun& run : slice.runs)
      flat.narrow(0, run.local, run.count).copy_(whole.narrow(0, run.whole, run.count));
  });
}

}  // namespace planwright::executor
