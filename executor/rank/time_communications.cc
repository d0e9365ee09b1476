#include "executor/rank/time_communications.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <functional>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>
#include <vector>

#include "executor/base/tensors.h"
#include "executor/communication/communicators.h"
#include "executor/rank/exit.h"
#include "executor/telemetry/instruction_clock.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "planner/wire/records/communication_rounds.h"

namespace planwright::executor {
namespace {

// One communication of a round on tensors that it keeps. Their values stay zero.
std::function<void()> WorkOf(const CommunicationRound& round, Communicator& group, const at::TensorOptions& options) {
  const int64_t members = group.size();
  const auto width = static_cast<int64_t>(options.dtype().itemsize());
  const int64_t part = std::max<int64_t>(1, round.bytes / width / members), whole = part * members;
  at::Tensor large = at::zeros({whole}, options), small = at::zeros({part}, options);
  const std::vector<int64_t> rows(static_cast<size_t>(members), part);
  switch (round.kind) {
    case OpKind::kAllReduce: return [=, &group]() mutable { group.AllReduce(large, Reduce::kSum); };
    case OpKind::kAllGather:
    case OpKind::kGatherTokens: return [=, &group]() mutable { group.AllGather(small, large); };
    case OpKind::kReduceScatter:
    case OpKind::kScatterTokens: return [=, &group]() mutable { group.ReduceScatter(large, small); };
    case OpKind::kAllToAll:
    case OpKind::kAllToAllV:
    case OpKind::kReshard: {
      at::Tensor output = at::empty_like(large);
      return [=, &group]() mutable { group.AllToAllRows(large, output, rows, rows); };
    }
    case OpKind::kAllGatherV:
    case OpKind::kReduceScatterV: {
      const at::Tensor counts = at::full({members, 1}, part, at::kLong);
      if (round.kind == OpKind::kAllGatherV) return [=, &group] { AllGatherV(group, small, counts); };
      return [=, &group] { ReduceScatterV(group, large, counts); };
    }
    case OpKind::kBroadcast: return [=, &group]() mutable { group.Broadcast(large, 0); };
    case OpKind::kExchange: {
      const int peer = 1 - group.index();
      at::Tensor sent = at::zeros({whole}, options);
      const std::vector<Message> messages = {{&group, peer, true, sent}, {&group, peer, false, large}};
      return [=, &group] { group.Exchange(messages); };
    }
    default: TORCH_CHECK(false, OpName(round.kind), " is no communication that can be timed");
  }
}

std::unique_ptr<InstructionClock> ClockFor(at::Device device, int64_t spans) {
#ifdef PLANWRIGHT_CUDA
  if (device.is_cuda()) return MakeCudaInstructionClock(static_cast<size_t>(spans));
#endif
  TORCH_CHECK(device.is_cpu(), "no clock for communications on ", device);
  return MakeHostInstructionClock(static_cast<size_t>(spans));
}

double SecondsOf(const InstructionSpan& span) { return static_cast<double>(span.end - span.begin) * 1e-9; }

// The list is gone through so often, each time with a part of the batches: what keeps a machine or a network busy for
// seconds meets a part of many times, and not all of one.
constexpr int64_t kPasses = 3;
// How often a slow network lets a communication be timed: a batch may last so long, and all of them together.
constexpr double kLongestBatch = 0.05, kLongestRound = 0.7;
constexpr int64_t kFewestBatches = kPasses;

struct Repeats {
  int64_t batches = 0, repetitions = 0;

  int64_t BatchesOf(int64_t pass) const { return batches * (pass + 1) / kPasses - batches * pass / kPasses; }
};

// Not more than the round says, and the same for all members: as the one decides to whom it takes longest. One that a
// busy machine held up does not decide.
Repeats RepeatsOf(const CommunicationRound& round, const std::function<void()>& work, Communicator& group,
                  const at::TensorOptions& options) {
  constexpr size_t kTries = 3;
  const std::unique_ptr<InstructionClock> clock = ClockFor(options.device(), kTries);
  work();  // connects the members, and brings them together
  for (size_t i = 0; i < kTries; ++i) {
    clock->Begin(i);
    work();
    clock->End(i);
  }
  std::vector<double> tries;
  for (const InstructionSpan& span : clock->Read()) tries.push_back(SecondsOf(span));
  std::sort(tries.begin(), tries.end());
  at::Tensor longest = at::full({1}, tries[kTries / 2], options.dtype(at::kFloat));
  group.AllReduce(longest, Reduce::kMax);
  const double seconds = std::max(1e-6, static_cast<double>(longest.item<float>()));
  const auto fit = [](double wanted, int64_t least, int64_t most) {
    return std::clamp(static_cast<int64_t>(std::min(wanted, 1e6)), std::min(least, most), most);
  };
  const int64_t repetitions = fit(kLongestBatch / seconds, 1, round.repetitions);
  const double batch = seconds * static_cast<double>(repetitions + 1);
  return {fit(kLongestRound / batch, kFewestBatches, round.batches), repetitions};
}

// Adds the seconds of one communication, by batch of this pass. The first pass finds how often it can be repeated.
void AddTimes(const CommunicationRound& round, Communicator& group, const at::TensorOptions& options, int64_t pass,
              Repeats& repeats, std::vector<double>& seconds) {
  const std::function<void()> work = WorkOf(round, group, options);
  if (pass == 0) repeats = RepeatsOf(round, work, group, options);
  const int64_t batches = repeats.BatchesOf(pass);
  if (batches == 0) return;
  const std::unique_ptr<InstructionClock> clock = ClockFor(options.device(), batches);
  for (int64_t batch = 0; batch < batches; ++batch) {
    work();
    clock->Begin(static_cast<size_t>(batch));
    for (int64_t i = 0; i < repeats.repetitions; ++i) work();
    clock->End(static_cast<size_t>(batch));
  }
  for (const InstructionSpan& span : clock->Read())
    seconds.push_back(SecondsOf(span) / static_cast<double>(repeats.repetitions));
}

CommunicationRounds RoundsOf(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kRoundsJson.bytes);
  ExitUnlessOk(text.status());
  absl::StatusOr<CommunicationRounds> rounds = ReadRounds(*text);
  if (!rounds.ok()) ExitUnlessOk(absl::InvalidArgumentError(absl::StrCat(path, ": ", rounds.status().message())));
  return *std::move(rounds);
}

}  // namespace

void TimeCommunications(const TrainingParts& parts, TimedGroups& groups) {
  const Assignment& assignment = parts.assignment;
  if (assignment.options.rounds.empty()) return;
  const Plan& plan = assignment.plan;
  const Environment& environment = assignment.environment;
  const CommunicationRounds rounds = RoundsOf(assignment.options.rounds);
  const at::TensorOptions options = at::TensorOptions(ScalarTypeOf(plan.dtype())).device(parts.device);
  const Backend backend = parts.device.is_cpu() ? Backend::kGloo : Backend::kNccl;
  std::vector<std::vector<double>> seconds(rounds.list.size());
  std::vector<Repeats> repeats(rounds.list.size());
  for (int64_t pass = 0; pass < kPasses; ++pass) {
    for (size_t i = 0; i < rounds.list.size(); ++i) {
      const CommunicationRound& round = rounds.list[i];
      const std::string what = absl::StrCat(std::string(OpName(round.kind)), " of ", round.bytes, " bytes over ",
                                            round.per_node, " ranks on each of ", round.nodes, " nodes");
      parts.recorder.Begin(RecorderState::kWaiting, assignment.steps, -1, -1, "timing", i, "time " + what,
                           environment.timeout);
      const std::vector<int> members = MembersOf(round, environment.rank, plan.world_size, rounds.ranks_per_node);
      if (members.empty()) continue;
      std::unique_ptr<Communicator>& group = groups[{round.per_node, round.nodes}];
      if (group == nullptr) {
        const std::string name =
            absl::StrCat(environment.nonce, "/rounds/", round.per_node, "/", round.nodes, "/", members.front());
        const auto self = std::find(members.begin(), members.end(), environment.rank);
        group = MakeCommunicator(backend, parts.store, name, members, static_cast<int>(self - members.begin()),
                                 environment.own_address, environment.timeout);
      }
      AddTimes(round, *group, options, pass, repeats[i], seconds[i]);
    }
  }
  const std::string& run_dir = assignment.options.run_dir;
  ExitUnlessOk(MakeDirectories(run_dir + "/rounds"));
  ExitUnlessOk(WriteFileAtomically(RoundTimesPath(run_dir, environment.rank), RoundTimesJson(seconds)));
}

}  // namespace planwright::executor
