#include "executor/rank/watchdog_duties.h"

#include <absl/strings/str_cat.h>

#include <chrono>
#include <optional>
#include <string>

#include "executor/communication/communicators.h"
#include "executor/program/instruction_text.h"
#include "executor/rank/leave.h"
#include "executor/rank/storage_progress.h"

namespace planwright::executor {

Watchdog::Duties WatchdogDuties(const Assignment& assignment, at::Device device) {
  const auto end = [&assignment](FailureKind kind, const std::optional<RecordedInstruction>& at,
                                 const std::string& what) {
    const std::string instruction = at ? absl::StrCat(at->path, ": ", at->text, ": ") : "";
    const std::string origin = at ? OriginText(assignment.plan, at->origin) : "";
    Leave(ExitStatusOf(kind),
          absl::StrCat(assignment.self(), instruction, what, origin.empty() ? "" : "\n  recipe: ", origin));
  };
  // Gloo has time-outs of its own, and its errors say more. On CPUs the watchdog waits a little longer, so that Gloo
  // reports first.
  return {.patience = device.is_cpu() ? std::chrono::seconds(2) : std::chrono::seconds(0),
          .bytes_moved = BytesMoved,
          .find_failure = [device] { return FindFailure(device); },
          .end = end};
}

}  // namespace planwright::executor
