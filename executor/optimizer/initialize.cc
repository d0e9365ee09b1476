#include "executor/optimizer/initialize.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "executor/threads/threads.h"
#include "planner/plan/shard_map.h"

namespace planwright::executor {
namespace {

constexpr int64_t kChunk = 1 << 14;  // elements drawn in fp64 at a time; the doubles stay in a core's cache
constexpr int64_t kItem = 1 << 18;   // elements that a thread takes at a time
// Storages are filled in windows of so many bytes. A window for a GPU is staged in host memory, and there are two of
// them, so that one is copied while the other is filled. A thread that begins costs far less than its part of a window.
constexpr int64_t kWindowBytes = 32 << 20;

// The inverse of softplus, log(exp(dt) - 1), without cancellation for small dt.
double InverseSoftplus(double dt) { return dt + std::log(-std::expm1(-dt)); }

int64_t EndOf(const ElementRun& run) { return run.local + run.count; }

// The elements [first, end) of the storage that `slice` covers.
std::pair<int64_t, int64_t> ExtentOf(const PublishedSlice& slice) {
  if (slice.runs.empty()) return {0, 0};
  return {slice.runs.front().local, EndOf(slice.runs.back())};
}

bool Overlaps(const PublishedSlice& slice, int64_t first, int64_t end) {
  const auto [from, to] = ExtentOf(slice);
  return from < end && first < to;
}

// Calls work(index of the slice, run) for the parts of all runs that lie in elements [first, end) of the storage.
template <typename Work>
void ForRuns(const std::vector<PublishedSlice>& slices, int64_t first, int64_t end, const Work& work) {
  for (size_t i = 0; i < slices.size(); ++i) {
    if (!Overlaps(slices[i], first, end)) continue;
    const std::vector<ElementRun>& runs = slices[i].runs;  // ascend in the storage
    auto run = std::partition_point(runs.begin(), runs.end(), [&](const ElementRun& r) { return EndOf(r) <= first; });
    for (; run != runs.end() && run->local < end; ++run) {
      const int64_t from = std::max(run->local, first), to = std::min(EndOf(*run), end);
      work(i, ElementRun{from, run->whole + from - run->local, to - from});
    }
  }
}

// Host memory for the windows of storages that are on a device. Two windows take turns.
class Staging {
 public:
  explicit Staging(at::Device device) : device_(device) {}

  // A window of `count` elements. Waits until the copy of the window before the last one is done.
  at::Tensor Next(int64_t count, at::ScalarType dtype) {
    turn_ = 1 - turn_;
    Window& window = windows_[turn_];
    if (window.copied) window.copied->synchronize();
    if (!window.memory.defined()) {
      // Pinned: only then the host does not wait for the copy.
      window.memory =
          at::empty({kWindowBytes}, at::TensorOptions(at::kCPU).dtype(at::kByte).pinned_memory(device_.is_cuda()));
    }
    const int64_t bytes = count * static_cast<int64_t>(at::elementSize(dtype));
    return window.memory.narrow(0, 0, bytes).view(dtype);
  }

  // Copies the last window to `target`, behind all work of the current stream.
  void Copy(const at::Tensor& filled, const at::Tensor& target) {
    target.copy_(filled, /*non_blocking=*/true);
    std::optional<c10::Event>& copied = windows_[turn_].copied;
    if (!copied) copied.emplace(device_.type());
    copied->record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  }

 private:
  struct Window {
    at::Tensor memory;
    std::optional<c10::Event> copied;
  };
  const at::Device device_;
  Window windows_[2];
  int turn_ = 0;
};

// Fills each storage of the module that this rank has, window by window. `prepare(slices, first, end)` is called on
// this thread before elements [first, end) of a storage are filled. Then several threads call `fill(slice, its index in
// the storage, run, out)`, which writes the elements of `run` of that published tensor to the 1-D host tensor `out`.
template <typename Prepare, typename Fill>
void FillStorages(const Module& module, const ShardCoordinates& coordinates, int threads, ModuleState& state,
                  const Prepare& prepare, const Fill& fill) {
  std::optional<Staging> staging;
  for (size_t i = 0; i < module.storages.size(); ++i) {
    if (!state.has_storage(i)) continue;
    const at::Tensor flat = state.storages()[i].parameter.view({-1});
    const std::vector<PublishedSlice> slices = SlicesOf(module, module.storages[i], coordinates);
    if (!flat.is_cpu() && !staging) staging.emplace(flat.device());
    const int64_t window = kWindowBytes / flat.element_size();
    for (int64_t first = 0; first < flat.numel(); first += window) {
      const int64_t count = std::min(window, flat.numel() - first);
      prepare(slices, first, first + count);
      const at::Tensor target = flat.narrow(0, first, count);
      const at::Tensor host = staging ? staging->Next(count, flat.scalar_type()) : target;
      // No slice covers the rows of padding, and a window still has what was in it before.
      if (staging && module.parameters[module.storages[i].parameters.front()].padded) host.zero_();
      ForEachItem(threads, (count + kItem - 1) / kItem, [&](int64_t item) {
        const int64_t from = first + item * kItem, to = std::min(from + kItem, first + count);
        ForRuns(slices, from, to, [&](size_t slice, const ElementRun& run) {
          fill(slices[slice], slice, run, host.narrow(0, run.local - first, run.count));
        });
      });
      if (staging) staging->Copy(host, target);
    }
  }
}

// Draws the elements of `run` of the published tensor `name` to the 1-D host tensor `out`.
void DrawRun(const Init& init, const std::string& name, const ElementRun& run, const Draws& draws,
             const at::Tensor& out) {
  if (init.kind == Init::Kind::kNormal && out.scalar_type() == at::kBFloat16 && draws.normal_bf16) {
    auto* bits = reinterpret_cast<uint16_t*>(out.mutable_data_ptr<at::BFloat16>());
    return draws.normal_bf16(name, init.a, run.whole, run.count, bits);
  }
  std::vector<double> values(static_cast<size_t>(std::min(kChunk, run.count)));
  for (int64_t done = 0; done < run.count; done += kChunk) {
    const int64_t count = std::min(kChunk, run.count - done);
    InitialValues(init, name, run.whole + done, count, draws, values.data());
    // LibTorch rounds while it copies.
    out.narrow(0, done, count).copy_(at::from_blob(values.data(), {count}, at::kDouble));
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

void InitializeParameters(const Plan& plan, int rank, const Draws& draws, int threads, ModuleState& state) {
  const Module& module = state.module();
  FillStorages(
      module, CoordinatesOf(module.grid, rank), threads, state, [](const auto&, int64_t, int64_t) {},
      [&](const PublishedSlice& slice, size_t, const ElementRun& run, const at::Tensor& out) {
        DrawRun(module.parameters[slice.parameter].init, slice.name, run, draws, out);
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

void LoadParameters(const Plan& plan, int rank, const std::map<std::string, SourceTensor>& sources, int threads,
                    ModuleState& state) {
  const Module& module = state.module();
  // By slice of the storage that is being filled. A whole tensor is read even if this rank needs a part: parts are not
  // contiguous in the file.
  std::vector<at::Tensor> wholes;
  FillStorages(
      module, CoordinatesOf(module.grid, rank), threads, state,
      [&](const std::vector<PublishedSlice>& slices, int64_t first, int64_t end) {
        if (first == 0) wholes.assign(slices.size(), at::Tensor());
        std::vector<size_t> missing;
        for (size_t i = 0; i < slices.size(); ++i) {
          if (!Overlaps(slices[i], first, end))
            wholes[i].reset();  // memory holds no more than a window needs
          else if (!wholes[i].defined())
            missing.push_back(i);
        }
        ForEachItem(threads, static_cast<int64_t>(missing.size()), [&](int64_t item) {
          const size_t i = missing[item];
          wholes[i] = sources.at(slices[i].file_name).read().reshape({-1});
        });
      },
      [&](const PublishedSlice&, size_t slice, const ElementRun& run, const at::Tensor& out) {
        at::Tensor(out).copy_(wholes[slice].narrow(0, run.whole, run.count));
      });
}

}  // namespace planwright::executor
