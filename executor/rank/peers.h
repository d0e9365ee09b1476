// The second step in the life of a rank: it meets the other ranks of its run.
#pragma once

#include <absl/status/statusor.h>
#include <c10/util/intrusive_ptr.h>

#include "executor/communication/communicators.h"
#include "executor/communication/rendezvous.h"
#include "executor/rank/assignment.h"
#include "executor/telemetry/recorder.h"

namespace planwright::executor {

// Opens the store and makes sure that all ranks have one plan. Completes assignment.environment: the port of the store,
// the own address, and as time-out the longest time for which ranks wait for each other's work, in place of the one for
// each other's start. Errors: those of OpenStore and AgreeOnPlan.
absl::StatusOr<c10::intrusive_ptr<c10d::Store>> MeetPeers(Assignment& assignment);

// Creates this rank's communicators. Each one is recorded like an instruction: if a rank never comes, the others wait
// here, and the report says for which communicator. Throws as Communicators::Make does.
Communicators JoinGroups(const Assignment& assignment, at::Device device, const c10::intrusive_ptr<c10d::Store>& store,
                         Recorder& recorder);

}  // namespace planwright::executor
