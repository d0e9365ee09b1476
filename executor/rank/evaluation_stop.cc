#include "executor/rank/evaluation_stop.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "executor/log/log.h"

namespace planwright::executor {
namespace {

constexpr int64_t kStop = -1;

}  // namespace

bool EvaluationStop::Before(int64_t steps_done, int64_t round, const std::function<void()>& settle) {
  if (round == 0) {
    allowed_ = looks_ = last_ = granted_ = 0;
    looked_ = Clock::now();
    longest_ = 0;
  }
  if (round < allowed_) return false;
  settle();
  const std::string asked_key = absl::StrCat("evaluation/", life_, "/asked");
  if (!told_ && asked_()) {
    told_ = true;
    store_.set(asked_key, "yes");
  }
  const std::string key = absl::StrCat("evaluation/", life_, "/", steps_done, "/", looks_++);
  if (rank_ == 0) {
    allowed_ = told_ || store_.check({asked_key}) ? kStop : Look(round);
    store_.set(key, absl::StrCat(allowed_));
  } else {
    const std::string answer = store_.get_to_str(key);
    TORCH_CHECK(absl::SimpleAtoi(answer, &allowed_), "rank 0 allows \"", answer, "\" rounds of an evaluation");
  }
  if (allowed_ != kStop) return false;
  LogInfo(absl::StrCat("a rank was asked to stop: the evaluation ends before round ", round + 1));
  return true;
}

// How far the evaluation may go on.
int64_t EvaluationStop::Look(int64_t round) {
  const Clock::time_point now = Clock::now();
  const double passed = std::chrono::duration<double>(now - looked_).count();
  const double pause = std::chrono::duration<double>(pause_).count();
  longest_ = std::max(longest_, passed);
  // Rounds take different times, so what was allowed at once grows slowly.
  int64_t next = 1;
  if (round > last_) {
    const double fit = pause * static_cast<double>(round - last_) / std::max(passed, 1e-9);
    next = std::max<int64_t>(1, std::min<int64_t>(2 * granted_, static_cast<int64_t>(std::min(fit, 1e9))));
  }
  looked_ = now, last_ = round, granted_ = next;
  return round + next;
}

}  // namespace planwright::executor
