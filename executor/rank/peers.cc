#include "executor/rank/peers.h"

#include <algorithm>
#include <chrono>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "executor/communication/agreement.h"
#include "executor/log/log.h"

namespace planwright::executor {
namespace {

std::chrono::milliseconds LongestWait(const DeadlineRule& deadlines) {
  constexpr double kMost = 1e9;  // seconds, as in run_timeout.cc
  return std::chrono::milliseconds(static_cast<int64_t>(1e3 * std::min(deadlines.OfScore().first, kMost)));
}

}  // namespace

absl::StatusOr<c10::intrusive_ptr<c10d::Store>> MeetPeers(Assignment& assignment) {
  Environment& environment = assignment.environment;
  absl::StatusOr<c10::intrusive_ptr<c10d::Store>> store = OpenStore(environment);
  if (!store.ok()) return store;
  if (absl::Status agreed = AgreeOnPlan(environment, assignment.plan.digest, **store); !agreed.ok()) return agreed;
  environment.timeout = LongestWait(assignment.deadlines);
  (*store)->setTimeout(environment.timeout);
  return store;
}

Communicators JoinGroups(const Assignment& assignment, at::Device device, const c10::intrusive_ptr<c10d::Store>& store,
                         Recorder& recorder) {
  const Environment& environment = assignment.environment;
  size_t number = 0;
  return Communicators::Make(
      assignment.plan, environment.rank, device.is_cpu() ? Backend::kGloo : Backend::kNccl, store, environment.nonce,
      environment.own_address, environment.timeout, [&](const std::string& name) {
        LogInfo("join " + name);
        recorder.Begin(RecorderState::kWaiting, 0, -1, -1, "joining", number++, "join " + name, environment.timeout);
      });
}

}  // namespace planwright::executor
