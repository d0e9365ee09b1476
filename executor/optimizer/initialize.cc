#include "executor/optimizer/initialize.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "planner/base/threads/threads.h"
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

// Fills each storage of the module that this rank has, window by window. Several threads call `fill(slice, run, out)`,
// which writes the elements of `run` of that published tensor to the 1-D host tensor `out`.
template <typename Fill>
void FillStorages(const Module& module, const ShardCoordinates& coordinates, int threads, ModuleState& state,
                  const Fill& fill) {
  std::optional<Staging> staging;
  for (size_t i = 0; i < module.storages.size(); ++i) {
    if (!state.has_storage(i)) continue;
    const at::Tensor flat = state.storages()[i].parameter.view({-1});
    const std::vector<PublishedSlice> slices = SlicesOf(module, module.storages[i], coordinates);
    if (!flat.is_cpu() && !staging) staging.emplace(flat.device());
    const int64_t window = kWindowBytes / flat.element_size();
    for (int64_t first = 0; first < flat.numel(); first += window) {
      const int64_t count = std::min(window, flat.numel() - first);
      const at::Tensor target = flat.narrow(0, first, count);
      const at::Tensor host = staging ? staging->Next(count, flat.scalar_type()) : target;
      // No slice covers the rows of padding, and a window still has what was in it before.
      if (staging && module.parameters[module.storages[i].parameters.front()].padded) host.zero_();
      ForEachItem(threads, (count + kItem - 1) / kItem, [&](int64_t item) {
        const int64_t from = first + item * kItem, to = std::min(from + kItem, first + count);
        ForRuns(slices, from, to, [&](size_t slice, const ElementRun& run) {
          fill(slices[slice], run, host.narrow(0, run.local - first, run.count));
        });
      });
      if (staging) staging->Copy(host, target);
    }
  }
}

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

void DrawElements(const Init& init, const std::string& name, int64_t first, int64_t count, const Draws& draws,
                  const at::Tensor& out) {
  if (init.kind == Init::Kind::kNormal && out.scalar_type() == at::kBFloat16 && draws.normal_bf16) {
    auto* bits = reinterpret_cast<uint16_t*>(out.mutable_data_ptr<at::BFloat16>());
    return draws.normal_bf16(name, init.a, first, count, bits);
  }
  std::vector<double> values(static_cast<size_t>(std::min(kChunk, count)));
  for (int64_t done = 0; done < count; done += kChunk) {
    const int64_t part = std::min(kChunk, count - done);
    InitialValues(init, name, first + done, part, draws, values.data());
    // LibTorch rounds while it copies.
    out.narrow(0, done, part).copy_(at::from_blob(values.data(), {part}, at::kDouble));
  }
}

void InitializeParameters(const Plan& plan, int rank, const Draws& draws, int threads, ModuleState& state) {
  const Module& module = state.module();
  FillStorages(module, CoordinatesOf(module.grid, rank), threads, state,
               [&](const PublishedSlice& slice, const ElementRun& run, const at::Tensor& out) {
                 DrawElements(module.parameters[slice.parameter].init, slice.name, run.whole, run.count, draws, out);
               });
}

}  // namespace planwright::executor
