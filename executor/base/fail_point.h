// Moments of a rank at which tests let it fail. The walker and the thread that writes checkpoints pass them. The
// `executor` program has no hook, so there a fail point costs one comparison.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "planner/plan/instruction.h"

namespace planwright::executor {

struct FailPoint {
  enum class Moment { kBefore, kAfter };

  Moment moment{};
  // "setup", "resume", "step", "evaluate", "score", "save" or "teardown": an instruction of this list of the role,
  // or all of `teardown`, which may have no instruction. "write": this rank's files of a checkpoint. "publish": the
  // report to rank 0 that they are written; on rank 0, the wait for the reports of all, and the manifest.
  std::string_view list;
  int64_t step = 1;            // from 1; 1 also in `setup` and `resume`
  int64_t number = -1;         // of an instruction: its index in the list with every call opened, from 0
  std::optional<OpKind> kind;  // of the instruction
  std::string path;            // of the instruction: as RecorderEntry::path, without the list and the step
};

// Called on the thread that does the work. It may throw, as the work may. Null: no test.
using FailPointHook = std::function<void(const FailPoint&)>;

// Passes the point before `work`, does it, and passes the point after it.
template <typename Work>
void BetweenFailPoints(const FailPointHook& hook, FailPoint point, Work work) {
  if (!hook) return work();
  point.moment = FailPoint::Moment::kBefore;
  hook(point);
  work();
  point.moment = FailPoint::Moment::kAfter;
  hook(point);
}

}  // namespace planwright::executor
