#include "executor/program/step_reports.h"

#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include "executor/program/exit_error.h"
#include "planner/base/files/exit_status.h"
#ifdef PLANWRIGHT_CUDA
#include <ATen/cuda/CUDAEvent.h>

#include "executor/telemetry/device_memory.h"
#endif

namespace planwright::executor {
namespace {

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// To pinned memory if the tensor is on a GPU, as only then the copy does not make the host wait.
at::Tensor HostCopy(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  return at::empty_like(tensor, at::TensorOptions(at::kCPU).pinned_memory(tensor.is_cuda()))
      .copy_(tensor, /*non_blocking=*/true);
}

// Index of a part of an accumulator; -1: the plan has none of that name.
int64_t PartIndex(const Plan& plan, const std::string& sum, const std::string& part) {
  const Accumulator* accumulator = plan.FindAccumulator(sum);
  if (accumulator == nullptr) return -1;
  const auto at = std::find(accumulator->parts.begin(), accumulator->parts.end(), part);
  return at == accumulator->parts.end() ? -1 : at - accumulator->parts.begin();
}

}  // namespace

// Seconds from the begin to the end of one step, on the device if it has one. Valid once Done() is true.
#ifdef PLANWRIGHT_CUDA
class StepReports::Clock {
 public:
  explicit Clock(bool device) : device_(device), began_(Now()) {
    if (device_) begin_.record();
  }
  void End() { device_ ? end_.record() : void(seconds_ = Now() - began_); }
  bool Done() { return !device_ || end_.query(); }
  void Wait() {
    if (device_) end_.synchronize();
  }
  double Seconds() { return device_ ? begin_.elapsed_time(end_) / 1e3 : seconds_; }

 private:
  const bool device_;
  const double began_;
  double seconds_ = 0;
  at::cuda::CUDAEvent begin_{cudaEventDefault}, end_{cudaEventDefault};
};
#else
class StepReports::Clock {
 public:
  explicit Clock(bool) : began_(Now()) {}
  void End() { seconds_ = Now() - began_; }
  bool Done() const { return true; }
  void Wait() {}
  double Seconds() const { return seconds_; }

 private:
  const double began_;
  double seconds_ = 0;
};
#endif

StepReports::StepReports(const Plan& plan, const StepState& step, StepLog* log, EventFile* events, DataWait data_wait,
                         StopRules& rules)
    : plan_(plan), step_(step), log_(log), events_(events), data_wait_(std::move(data_wait)), rules_(rules),
      pace_(plan, step.norms.is_cuda()) {
  if (plan.FindAccumulator("$integers") != nullptr) integers_ = step.sum("$integers");
  if (plan.FindAccumulator("$reals") != nullptr) reals_ = step.sum("$reals");
  if (plan.FindAccumulator("$source_losses") != nullptr)
    source_losses_ = step.sum("$source_losses"), source_tokens_ = step.sum("$source_tokens");
  loss_tokens_ = PartIndex(plan, "$integers", "loss_tokens"), routing_ = PartIndex(plan, "$integers", "routing");
  stop_ = PartIndex(plan, "$integers", "stop_requests");
  loss_ = PartIndex(plan, "$reals", "loss"), aux_ = PartIndex(plan, "$reals", "aux");
  for (const Bridge& bridge : plan.bridges) {
    bridges_.push_back({&bridge, PartIndex(plan, "$reals", "square_sum." + bridge.from),
                        PartIndex(plan, "$integers", "elements." + bridge.from)});
  }
  for (const Module& module : plan.modules) {
    if (module.trains_backbone) expert_layers_ += module.expert_layers();  // a frozen model has no auxiliary loss
  }
}

StepReports::~StepReports() = default;

void StepReports::Begin() { clock_ = std::make_unique<Clock>(step_.norms.is_cuda()); }

void StepReports::End() {
  Pending& pending = pending_.emplace_back();
  pending.record.step = step_.step + 1;
  pending.record.consumed_samples = pending.record.step * plan_.budget.global_samples;
  pending.record.learning_rate = step_.learning_rate;
  // All data instructions of the step have returned.
  if (data_wait_) pending.record.speed.data_wait = data_wait_(step_.step);
#ifdef PLANWRIGHT_CUDA
  if (log_ != nullptr && step_.norms.is_cuda()) pending.record.memory = MeasureDeviceMemory(step_.norms.get_device());
#endif
  // Queued after everything that the step launched, and before the next step sets the sums to zero.
  pending.integers = HostCopy(integers_), pending.reals = HostCopy(reals_);
  pending.norms = HostCopy(step_.norms), pending.skipped = HostCopy(step_.skipped);
  pending.source_losses = HostCopy(source_losses_), pending.source_tokens = HostCopy(source_tokens_);
  pending.clock = std::move(clock_);
  pending.clock->End();
  if (pending_.size() > kUnreadStepsAllowed) pending_.front().clock->Wait();
  // The step just launched is hardly begun on a GPU: do not ask for it.
  const size_t unread = step_.norms.is_cuda() ? 1 : 0;
  while (pending_.size() > unread && pending_.front().clock->Done()) WriteOldest();
}

void StepReports::Finish() {
  if (!pending_.empty()) pending_.back().clock->Wait();
  while (!pending_.empty()) WriteOldest();
}

void StepReports::WriteOldest() {
  Pending pending = std::move(pending_.front());
  pending_.pop_front();
  pending.record.step_seconds = pending.clock->Seconds();
  Write(pending);
}

void StepReports::Write(const Pending& pending) {
  const StepRecord record = RecordOf(pending);
  if (log_ != nullptr) WriteFiles(record);
  rules_.Take(record, stop_ >= 0 ? pending.integers[stop_].item<int64_t>() : 0);
}

StepRecord StepReports::RecordOf(const Pending& pending) {
  const auto real = [&](int64_t part) { return pending.reals[part].item<double>(); };
  const auto integer = [&](int64_t part) { return pending.integers[part].item<int64_t>(); };
  StepRecord record = pending.record;
  const int64_t tokens = integer(loss_tokens_);  // 0: no loss is defined (docs/training/step.md#metrics)
  if (tokens > 0) record.loss = real(loss_) / static_cast<double>(tokens);
  const double* norms = pending.norms.const_data_ptr<double>();
  for (size_t i = 0; i < plan_.modules.size(); ++i)
    record.module_grad_norms.emplace_back(plan_.modules[i].name, norms[i]);
  record.grad_norm = norms[plan_.modules.size()];
  record.skipped = pending.skipped.item<float>() != 0;
  record.routing = static_cast<uint64_t>(integer(routing_));
  if (expert_layers_ > 0) {  // the mean over samples and layers, before the coefficient of the recipe
    record.aux_loss = real(aux_) / static_cast<double>(plan_.budget.global_samples * expert_layers_);
  }
  std::vector<int64_t> bridge_elements;
  for (const BridgeSums& sums : bridges_) {
    const int64_t elements = integer(sums.elements);  // 0: no sample of the step has an image
    bridge_elements.push_back(elements);
    record.bridge_mean_squares.emplace_back(
        sums.bridge->from + "->" + sums.bridge->to,
        elements > 0 ? std::optional(real(sums.squares) / static_cast<double>(elements)) : std::nullopt);
  }
  if (pending.source_losses.defined() && plan_.data.sources.size() > 1) {
    for (size_t i = 0; i < plan_.data.sources.size(); ++i) {
      const auto of_source = pending.source_tokens[static_cast<int64_t>(i)].item<int64_t>();
      record.source_losses.emplace_back(plan_.data.sources[i].name, std::nullopt);
      if (of_source == 0) continue;
      record.source_losses.back().second =
          pending.source_losses[static_cast<int64_t>(i)].item<double>() / static_cast<double>(of_source);
    }
  }
  const std::optional<double> data_wait = record.speed.data_wait;
  record.speed = pace_.Of(record.step, record.step_seconds, bridge_elements);
  record.speed.data_wait = data_wait;
  return record;
}

void StepReports::WriteFiles(const StepRecord& record) {
  absl::Status status = log_->Write(record);
  if (status.ok() && events_ != nullptr) status = events_->Write(record);
  if (!status.ok()) throw ExitError(kExitStorage, std::string(status.message()));
  // The file has every step; people see every log_every_steps-th, and each skipped one.
  if (record.step % std::max<int64_t>(plan_.log_every_steps, 1) == 0 || record.skipped) {
    std::printf("%s\n", StepLine(record, plan_.budget.steps).c_str());
    std::fflush(stdout);
  }
}

}  // namespace planwright::executor
