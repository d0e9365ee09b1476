#include "executor/rank/handlers.h"

#include <ATen/ops/pin_memory.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>
#include <string_view>

#include "executor/base/tensors.h"
#include "executor/data/batch_reader.h"
#include "executor/data/file_error.h"
#include "executor/data/read_ahead.h"
#include "executor/data/routing_record.h"
#include "executor/log/log.h"
#include "executor/optimizer/initialize.h"
#include "executor/optimizer/philox_draws.h"
#include "executor/program/exit_error.h"
#include "executor/streams/copy_ahead.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/threads/threads.h"

namespace planwright::executor {
namespace {

// What the rooms of data say of a file, as the end of the rank.
template <typename Work>
auto WithFiles(const Work& work) {
  try {
    return work();
  } catch (const FileError& error) {
    throw ExitError(error.of_storage() ? kExitStorage : kExitUsage, error.what());
  }
}

// Whether a list of instructions reads samples, in itself or in the blocks that it calls.
bool Reads(const Plan& plan, const std::vector<Instruction>& list, std::set<std::string_view>& seen) {
  return std::any_of(list.begin(), list.end(), [&](const Instruction& instruction) {
    if (instruction.kind != OpKind::kCall) return OpClassOf(instruction.kind) == OpClass::kData;
    if (!seen.insert(instruction.block).second) return false;
    const Block* const block = plan.FindBlock(instruction.block);
    return block != nullptr && Reads(plan, block->body, seen);
  });
}

bool OnOneStream(const Plan& plan) {
  const auto on_main = [](const std::vector<Instruction>& list) {
    return std::all_of(list.begin(), list.end(), [](const Instruction& each) { return each.stream.empty(); });
  };
  return std::all_of(plan.blocks.begin(), plan.blocks.end(), [&](const Block& block) { return on_main(block.body); }) &&
         std::all_of(plan.roles.begin(), plan.roles.end(), [&](const Role& role) {
           return std::all_of(std::begin(kRoleLists), std::end(kRoleLists),
                              [&](const auto& list) { return on_main(role.*list.list); });
         });
}

std::unique_ptr<SampleSource> OpenedOrThrow(absl::StatusOr<std::unique_ptr<SampleSource>> opened) {
  if (!opened.ok()) throw ExitError(kExitUsage, std::string(opened.status().message()));
  return *std::move(opened);
}

// Samples that are read ahead: of all steps, or of one evaluation of a set.
struct SamplesOf {
  SamplesOf(std::shared_ptr<BatchReader> of, at::Device device)
      : reader(std::move(of)),
        ahead([reader = reader, device](const Instruction& instruction, const CallContext& call) {
          Tensors values = reader->Read(instruction, call);
          if (!device.is_cuda()) return values;
          // From pinned memory the copy to the device is queued, and nobody waits for it. The guard: pinned memory
          // belongs to a device, and on this thread none has been chosen.
          const c10::DeviceGuard guard(device);
          for (size_t i = 0; i < ReadForDevice(instruction.kind); ++i) values[i] = values[i].pin_memory();
          return values;
        }) {}
  void Begin(const std::vector<DataRead>& reads, int64_t first, int64_t last) {
    reader->Begin(reads, first, last);
    ahead.Begin(reads, first, last);
  }

  const std::shared_ptr<BatchReader> reader;
  ReadAhead ahead;
};

std::string WaitsText(const SamplesOf& steps) {
  const ReadAhead::Waits waits = steps.ahead.waits();
  const auto seconds = [](std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); };
  std::string text = absl::StrFormat("waited %.3f s for samples in %d steps", seconds(waits.all), waits.steps);
  if (waits.worst_step >= 0)
    absl::StrAppendFormat(&text, ", longest %.3f s in step %d", seconds(waits.worst), waits.worst_step + 1);
  return absl::StrFormat("%s; samples held %.1f MB at most", text,
                         static_cast<double>(steps.reader->held().most) / 1e6);
}

// What an evaluation of a set does not measure, as documents of it are damaged; empty: it measures all.
std::string LostText(const std::string& set, const std::vector<SourceCounts>& sources) {
  int64_t documents = 0, padded = 0, left_out = 0;
  for (const SourceCounts& source : sources) {
    documents += source.documents + source.damaged;
    padded += source.padded;
    left_out += source.damaged;
  }
  if (padded + left_out == 0) return "";
  std::string text =
      absl::StrCat("evaluation set ", set, ": ", padded + left_out, " of ", documents, " documents ",
                   padded + left_out == 1 ? "is damaged and does" : "are damaged and do", " not count in the loss: ");
  if (padded > 0) absl::StrAppend(&text, padded, " padding");
  if (left_out > 0) absl::StrAppend(&text, padded > 0 ? ", " : "", left_out, " left out");
  return text;
}

}  // namespace

RankSamples OpenSamples(const Plan& plan, const Role& role, bool trains, bool follows_routing) {
  RankSamples samples;
  std::set<std::string_view> seen, seen_in_evaluation;
  if ((trains && Reads(plan, role.step, seen)) || (follows_routing && plan.data.balance != "none"))
    samples.source = OpenedOrThrow(OpenSampleSource(plan));
  samples.slots = std::make_shared<SampleSlots>(plan, samples.source);
  if (!Reads(plan, role.evaluate, seen_in_evaluation)) return samples;
  for (const EvaluationSet& set : plan.evaluation.sets)
    samples.evaluation.push_back(OpenedOrThrow(OpenEvaluatedSource(plan, set)));
  return samples;
}

void ReadSamples(const Plan& plan, const RankSamples& samples, at::Device device, bool prints, Handlers& handlers) {
  if (samples.source == nullptr && samples.evaluation.empty()) return;
  const at::ScalarType dtype = ScalarTypeOf(plan.dtype());
  std::shared_ptr<SamplesOf> steps;
  if (samples.source != nullptr) {
    steps =
        std::make_shared<SamplesOf>(std::make_shared<BatchReader>(plan, dtype, samples.source, samples.slots), device);
    handlers.data_of_steps = [steps](const std::vector<DataRead>& reads, int64_t first_step, int64_t last_step) {
      steps->Begin(reads, first_step, last_step);
    };
    handlers.data_wait = [steps](int64_t step) {
      return std::chrono::duration<double>(steps->ahead.WaitedIn(step)).count();
    };
    handlers.all_data_waits = [steps] { return WaitsText(*steps); };
  }
  // Of the set that is evaluated. Each evaluation reads its sets from their begin.
  const auto evaluated = std::make_shared<std::unique_ptr<SamplesOf>>();
  if (!samples.evaluation.empty()) {
    std::vector<std::string> lost;
    for (size_t i = 0; i < samples.evaluation.size(); ++i)
      lost.push_back(LostText(plan.evaluation.sets[i].name, samples.evaluation[i]->Counts()));
    const auto printed = std::make_shared<std::set<size_t>>();
    handlers.data_of_evaluation = [&plan, dtype, device, prints, lost, printed, sets = samples.evaluation, evaluated](
                                      size_t set, const std::vector<DataRead>& reads) {
      if (!lost[set].empty()) {
        LogInfo(lost[set]);
        if (prints && printed->insert(set).second) {
          std::printf("%s\n", lost[set].c_str());
          std::fflush(stdout);
        }
      }
      evaluated->reset();
      *evaluated = std::make_unique<SamplesOf>(std::make_shared<BatchReader>(plan, set, dtype, sets[set]), device);
      (*evaluated)->Begin(reads, 0, plan.evaluation.sets[set].rounds - 1);
    };
  }
  // Another stream than the one that takes the samples might read them (copy_ahead.h).
  const auto copied = OnOneStream(plan) ? CopyAhead : ToDevice;
  handlers.data = [steps, evaluated, device, copied](const Instruction& instruction, const CallContext& call) {
    ReadAhead& ahead = call.evaluation >= 0 ? (*evaluated)->ahead : steps->ahead;
    Tensors values = WithFiles([&] { return ahead.Take(instruction, call); });
    for (size_t i = 0; i < ReadForDevice(instruction.kind); ++i) values[i] = copied(values[i], device);
    return values;
  };
}

void DrawParameters(const Plan& plan, int rank, ModuleState& module) {
  InitializeParameters(plan, rank, PhiloxDraws(static_cast<uint64_t>(plan.seed)), ThreadsOfRank(), module);
}

void FollowRouting(const std::string& record, const std::string& replay, const RankSamples& samples,
                   Handlers& handlers) {
  if (!record.empty()) {
    const auto routing = std::make_shared<RoutingRecord>(record, RoutingRecord::Mode::kWrite, samples.slots);
    handlers.record_routing = [routing](const CallContext& call, const at::Tensor& ids) {
      WithFiles([&] { routing->Write(call, ids); });
    };
    handlers.finish_routing = [routing] { WithFiles([&] { routing->Finish(); }); };
  }
  if (!replay.empty()) {
    const auto routing = std::make_shared<RoutingRecord>(replay, RoutingRecord::Mode::kRead, samples.slots);
    handlers.replay_routing = [routing](const CallContext& call, int64_t samples, int64_t top_k) {
      return WithFiles([&] { return routing->Read(call, samples, top_k); });
    };
  }
}

}  // namespace planwright::executor
