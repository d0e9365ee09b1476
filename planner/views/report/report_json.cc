#include <utility>

#include "absl/strings/str_replace.h"
#include "planner/base/files/readable.h"
#include "planner/base/json/json_text.h"
#include "planner/run/outcome/outcome_text.h"
#include "planner/views/report/rank_activities.h"
#include "planner/views/report/report_text.h"
#include "planner/views/report/run_figures.h"
#include "planner/wire/records/step_record.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

Json OrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(); }
Json OrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }
Json OrNull(const std::optional<absl::Time>& time) { return time ? Json(UtcText(*time)) : Json(); }

Json StepJson(const StepPoint& point) {
  Json json = {{"step", point.step},
               {"consumed_samples", point.samples},
               {"loss", OrNull(point.loss)},
               {"grad_norm", OrNull(point.grad_norm)},
               {"learning_rate", OrNull(point.learning_rate)},
               {"step_seconds", point.seconds > 0 ? Json(point.seconds) : Json()},
               {"data_wait_seconds", OrNull(point.data_wait)},
               {"skipped", point.skipped}};
  if (point.source_losses.empty()) return json;
  json["source_loss"] = Json::object();
  for (const auto& [source, loss] : point.source_losses) json["source_loss"][source] = OrNull(loss);
  return json;
}

Json MeanJson(const MeanLoss& mean) { return {{"loss", OrNull(mean.loss)}, {"tokens", mean.tokens}}; }

// The newest evaluation, and the best of each set.
Json EvaluationJson(const EvaluationSeries& evaluations) {
  if (evaluations.empty()) return {};
  Json json = EvaluationRecordJson(evaluations.newest());
  json["best"] = Json::object();
  for (const auto& [set, best] : evaluations.best()) json["best"][set] = {{"step", best.step}, {"loss", best.loss}};
  return json;
}

Json LifeJson(const RunLife& life) {
  Json json = {{"life", life.number},
               {"began", OrNull(life.begin)},
               {"last_sign", OrNull(life.end)},
               {"from_life", life.started ? Json(life.from_life) : Json()},
               {"from_step", life.started ? Json(life.from_step) : Json()},
               {"first_step", life.last_step > 0 ? Json(life.first_step) : Json()},
               {"last_step", life.last_step > 0 ? Json(life.last_step) : Json()},
               {"outcome", nullptr},
               {"profile", nullptr}};
  if (life.outcome) {
    json["outcome"] = OutcomeFactsJson(*life.outcome);
    if (life.outcome->profile) json["profile"] = RunProfileJson(*life.outcome->profile);
  }
  return json;
}

Json CheckpointJson(const ReportedCheckpoint& checkpoint) {
  const auto seconds = [&](double CheckpointCost::*part) {
    return checkpoint.cost ? Json((*checkpoint.cost).*part) : Json();
  };
  return {{"step", checkpoint.step},
          {"life", checkpoint.life},
          {"bytes", checkpoint.bytes ? Json(*checkpoint.bytes) : Json()},
          {"published", OrNull(checkpoint.published)},
          {"copy_seconds", seconds(&CheckpointCost::copied)},
          {"write_seconds", seconds(&CheckpointCost::written)},
          {"waited_seconds", seconds(&CheckpointCost::waited)},
          {"state", checkpoint.state}};
}

// What both commands say.
Json CommonJson(const RunReport& report) {
  Json json = {{"run_dir", report.run_dir},
               {"state", StateName(report.state)},
               {"exit_status", ExitStatusOf(report)},
               {"launch", OrNull(report.holder)},
               {"last_sign", OrNull(report.last_sign)},
               {"restart", OrNull(report.restart)},
               {"job", report.job ? JobJson(*report.job) : Json()},
               {"plan", nullptr},
               {"step", report.steps.empty() ? Json() : StepJson(report.steps.back())},
               {"evaluation", EvaluationJson(report.evaluations)}};
  if (report.plan) json["plan"] = PlanFactsJson(*report.plan);
  json["pace"] = nullptr;
  if (const std::optional<Pace> pace = PaceOf(report)) {
    json["pace"] = {{"steps", pace->steps},
                    {"step_seconds", pace->seconds},
                    {"samples_per_second", pace->samples_per_second},
                    {"tokens_per_second", OrNull(pace->tokens_per_second)},
                    {"seconds_left", OrNull(pace->left)},
                    {"data_wait_share", OrNull(pace->data_wait)}};
  }
  return json;
}

// As a value of an object that is written line by line.
std::string Indented(const Json& value, const char* indent) {
  return absl::StrReplaceAll(JsonText(value, 2), {{"\n", std::string("\n") + indent}});
}

// One step after the other, as there may be more than memory holds. What cannot be read becomes a note.
void WriteSteps(const char* name, const EachStep& each, std::vector<std::string>& notes, std::ostream& out) {
  out << "\n  \"" << name << "\": [";
  bool first = true;
  const absl::Status status = each([&](const StepPoint& point) {
    out << (std::exchange(first, false) ? "" : ",") << "\n    " << Indented(StepJson(point), "    ");
    return static_cast<bool>(out);
  });
  out << (first ? "]," : "\n  ],");
  if (!status.ok()) notes.emplace_back(status.message());
}

}  // namespace

const char* StateName(RunState state) {
  switch (state) {
    case RunState::kRunning: return "running";
    case RunState::kBetween: return "between lives";
    case RunState::kEnded: return "ended";
    case RunState::kVanished: return "vanished";
    case RunState::kUnseen: return "not seen from this host";
    case RunState::kWaits: return "waits";
  }
  return "";
}

Json JobJson(const SubmittedJob& job) {
  return {{"id", OrNull(job.id)},
          {"state", OrNull(job.state)},
          {"reason", OrNull(job.reason)},
          {"exit_status", job.is == SubmittedJob::Is::kOver ? Json(job.exit_status) : Json()},
          {"signal", job.is == SubmittedJob::Is::kOver ? Json(job.signal) : Json()},
          {"outcome", job.outcome ? OutcomeFactsJson(*job.outcome) : Json()}};
}

Json PlanFactsJson(const PlanFacts& plan) {
  return {{"name", plan.name},
          {"digest", plan.digest},
          {"ranks", plan.ranks},
          {"steps", plan.steps},
          {"global_samples", plan.global_samples},
          {"sequence_length", plan.sequence_length},
          {"predicted_step_seconds", plan.predicted_step > 0 ? Json(plan.predicted_step) : Json()}};
}

Json OutcomeFactsJson(const Outcome& outcome) {
  const Failure failure = outcome.failure.value_or(Failure{});
  Json json = {{"exit_code", outcome.exit_code},
               {"cause", outcome.cause},
               {"rank", failure.rank >= 0 ? Json(failure.rank) : Json()},
               {"host", OrNull(failure.host)},
               {"instruction", OrNull(failure.instruction)},
               {"recipe_line", OrNull(failure.recipe_line)},
               {"message", OrNull(failure.message)},
               {"others", failure.others},
               {"slow_ranks", Json::array()}};
  for (const SlowRank& slow : outcome.slow) json["slow_ranks"].push_back(SlowRankText(slow));
  if (outcome.trial) json["trial"] = TrialVerdictJson(*outcome.trial);
  return json;
}

Json EvaluationRecordJson(const EvaluationRecord& record) {
  Json sets = Json::object();
  for (const EvaluatedSet& set : record.sets) {
    sets[set.name] = MeanJson(set.all);
    sets[set.name]["sources"] = Json::object();
    for (const auto& [source, mean] : set.sources) sets[set.name]["sources"][source] = MeanJson(mean);
    if (!set.samples_digest.empty()) sets[set.name]["samples_digest"] = set.samples_digest;
  }
  return {{"step", record.step},
          {"consumed_samples", record.consumed_samples},
          {"seconds", record.seconds},
          {"sets", std::move(sets)}};
}

Json StatusJson(const RunReport& report) {
  Json json = CommonJson(report);
  json["life"] = LifeJson(report.life());
  const ReportedCheckpoint* newest = NewestCheckpoint(report);
  json["checkpoint"] = newest ? CheckpointJson(*newest) : Json();
  json["ranks"] = Json::array();
  for (const RankActivity& activity : FoldRanks(report.ranks, report.now)) {
    json["ranks"].push_back({{"ranks", activity.ranks},
                             {"state", WhatText(activity.what)},
                             {"at", OrNull(activity.where)},
                             {"least_seconds", OrNull(activity.least)},
                             {"most_seconds", OrNull(activity.most)}});
  }
  json["slowest"] = nullptr;
  if (const std::optional<SlowestRank> slowest = FindSlowest(report.ranks, report.now))
    json["slowest"] = {{"rank", slowest->rank}, {"seconds", slowest->seconds}, {"communicating", slowest->waiting}};
  json["notes"] = report.notes;
  return json;
}

AllSteps StepsOnFile(const RunReport& report) {
  const auto counted = [&report](const StepVisitor& visit) {
    int64_t left = report.steps.size();  // a run that goes on has written more by now
    if (left == 0) return absl::OkStatus();
    return ReadSteps(StepsPath(report.run_dir), report.run_id,
                     [&](const StepPoint& point) { return visit(point) && --left > 0; })
        .status();
  };
  const auto again = [&report](const StepVisitor& visit) {
    for (const RunLife& life : report.lives) {
      if (life.dropped.empty()) continue;
      const absl::Status status =
          ReadDroppedAgain(report.run_dir, report.run_id, life.number, life.dropped_before, visit);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  };
  return {counted, again};
}

void WriteReportJson(const RunReport& report, const AllSteps& steps, std::ostream& out) {
  Json json = CommonJson(report);
  json["skipped_steps"] = report.steps.skipped();
  json["waited_for_disk_seconds"] = WaitedForDisk(report);
  json["time"] = nullptr;
  if (const std::optional<TimeUse> use = TimeUseOf(report)) {
    json["time"] = {{"seconds", use->all},
                    {"steps_that_count", use->counted},
                    {"waited_for_data", OrNull(use->data_wait)},
                    {"evaluation", use->evaluation},
                    {"steps_done_again", use->again},
                    {"start_loading_end", use->other},
                    {"between_lives", use->between},
                    {"goodput", use->goodput()}};
  }
  json["lives"] = Json::array();
  for (const RunLife& life : report.lives) json["lives"].push_back(LifeJson(life));
  json["checkpoints"] = Json::array();
  for (const ReportedCheckpoint& checkpoint : report.checkpoints)
    json["checkpoints"].push_back(CheckpointJson(checkpoint));
  out << "{";
  for (const auto& [name, value] : json.items())
    out << "\n  " << JsonText(Json(name)) << ": " << Indented(value, "  ") << ",";
  std::vector<std::string> notes = report.notes;
  WriteSteps("steps", steps.counted, notes, out);
  json = Json::array();
  for (const EvaluationRecord& record : report.evaluations.chosen()) json.push_back(EvaluationRecordJson(record));
  out << "\n  \"evaluations\": " << Indented(json, "  ") << ",";
  WriteSteps("steps_done_again", steps.again, notes, out);
  out << "\n  \"notes\": " << Indented(notes, "  ") << "\n}\n";
}

}  // namespace planwright
