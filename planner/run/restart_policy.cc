#include "planner/run/restart_policy.h"

#include <algorithm>

#include "planner/base/files/exit_status.h"

namespace planwright {
namespace {

// Lives in a row without a new checkpoint after which a run counts as one that cannot go on.
constexpr int kMostInVain = 5;

}  // namespace

std::optional<std::chrono::seconds> RestartPolicy::Next(const Outcome& outcome, int64_t newest_step, std::string& why) {
  why.clear();
  if (!outcome.failure || !WorthRetrying(outcome.exit_code) || most_ == 0) return std::nullopt;
  if (outcome.interrupted_by != 0) {
    why = "not started again: interrupted by signal " + std::to_string(outcome.interrupted_by);
    return std::nullopt;
  }
  in_vain_ = newest_step > step_ ? 1 : in_vain_ + 1;
  step_ = std::max(step_, newest_step);
  if (restarts_ == most_) {
    why = "not started again: launch.restarts allows " + std::to_string(most_);
    return std::nullopt;
  }
  if (in_vain_ >= kMostInVain) {
    why = "not started again: " + std::to_string(in_vain_) + " lives in a row wrote no checkpoint";
    return std::nullopt;
  }
  ++restarts_;
  return std::chrono::seconds(int64_t{1} << (2 * (in_vain_ - 1)));
}

}  // namespace planwright
