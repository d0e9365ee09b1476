#include "planner/search/given_problems.h"

#include <algorithm>

namespace planwright {
namespace {

// About placement, sizes of axes, layers of stages, recompute, the samples of a microbatch and buckets. A lint that is
// an error is about the time, the memory or the ranks of a layout, or keeps the search from listing each layout, which
// it says.
bool IsAboutLayout(DiagnosticKind kind) {
  using enum DiagnosticKind;
  switch (kind) {
    case kGridDoesNotFit:
    case kExpertGridDoesNotFit:
    case kDataParallelMismatch:
    case kPlacementsOverlap:
    case kRanksNotCovered:
    case kOutsideWorld:
    case kLayoutDoesNotDivide:
    case kNoExperts:
    case kColocatedLayout:
    case kBatchDoesNotDivide:
    case kPatternSplit:
    case kNothingToRecompute:
    case kPackedSamples:
    case kDeviceTooSmall:
    case kHostTooSmall:
    case kOutOfRange:  // by the room that is behind the keys: a plan that is too long
    case kTooLarge: return true;
    default: return IsLint(kind);
  }
}

}  // namespace

bool LayoutsMayEnd(const std::vector<Diagnostic>& problems) {
  return std::all_of(problems.begin(), problems.end(), [](const Diagnostic& problem) {
    return problem.severity != Severity::kError || IsAboutLayout(problem.kind);
  });
}

}  // namespace planwright
