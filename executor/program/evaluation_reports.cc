#include "executor/program/evaluation_reports.h"

#include <chrono>
#include <cmath>
#include <cstdio>

#include "executor/log/log.h"
#include "executor/program/exit_error.h"
#include "planner/base/files/exit_status.h"
#include "planner/plan/plan_json.h"

namespace planwright::executor {
namespace {

double SecondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

MeanLoss MeanOf(double sum, int64_t tokens) {
  return {.loss = tokens > 0 ? std::optional(sum / static_cast<double>(tokens)) : std::nullopt, .tokens = tokens};
}

}  // namespace

void EvaluationReports::Begin(int64_t steps_done) {
  steps_done_ = steps_done;
  began_ = SecondsNow();
}

void EvaluationReports::End() {
  const at::Tensor device_losses = step_.sum("$evaluated_losses"), device_tokens = step_.sum("$evaluated_tokens");
  const at::Tensor losses = device_losses.cpu().clone(), tokens = device_tokens.cpu().clone();
  device_losses.zero_(), device_tokens.zero_();
  EvaluationRecord record{.step = steps_done_, .consumed_samples = steps_done_ * plan_.budget.global_samples};
  losses_.clear();
  int64_t part = 0;
  for (const EvaluationSet& set : plan_.evaluation.sets) {
    EvaluatedSet evaluated{.name = set.name, .all = {}, .sources = {}};
    double sum = 0;
    int64_t learnt = 0;
    for (int64_t i = 0; i < set.parts(); ++i, ++part) {
      const auto of_part = losses[part].item<double>();
      const auto tokens_of_part = tokens[part].item<int64_t>();
      sum += of_part, learnt += tokens_of_part;
      if (!set.data.sources.empty())
        evaluated.sources.emplace_back(set.data.sources[i].name, MeanOf(of_part, tokens_of_part));
    }
    evaluated.all = MeanOf(sum, learnt);
    evaluated.samples_digest = SamplesDigest(plan_, set);
    if (const std::optional<double> loss = evaluated.all.loss)
      losses_[set.name] = {std::isfinite(*loss) ? loss : std::nullopt, evaluated.samples_digest};
    record.sets.push_back(std::move(evaluated));
  }
  record.seconds = seconds_ = SecondsNow() - began_;
  record.unheard = unheard_;
  Write(record);
}

void EvaluationReports::Write(const EvaluationRecord& record) {
  const std::string line = EvaluationLine(record, trains_ ? plan_.budget.steps : 0);
  LogInfo(line);
  if (log_ == nullptr) return;
  absl::Status status = log_->WriteEvaluation(record);
  if (status.ok() && events_ != nullptr) status = events_->WriteEvaluation(record);
  if (!status.ok()) throw ExitError(kExitStorage, std::string(status.message()));
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

}  // namespace planwright::executor
