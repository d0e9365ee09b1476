#include "planner/views/report/run_stream.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "planner/base/files/file_io.h"
#include "planner/base/files/line_file.h"
#include "planner/base/json/json_fields.h"
#include "planner/base/json/json_text.h"
#include "planner/state/checkpoint/run_lives.h"
#include "planner/views/report/report_text.h"
#include "planner/wire/records/outcome.h"
#include "planner/wire/records/step_record.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPauseOfQuestions{3};  // about a job

struct Record {
  Json json;
  bool evaluation = false;
  int64_t samples = 0;
  int life = 0;  // 0: it does not say
  std::string run_id;
};

// nullopt: it is neither the record of a step nor of an evaluation.
std::optional<Record> ReadRecord(std::string_view line) {
  const std::optional<RecordPlace> place = PlaceOfRecord(line);
  if (!place) return std::nullopt;
  absl::StatusOr<Json> json = ParseOrderedJson(line, kStepLineJson);
  if (!json.ok()) return std::nullopt;
  const bool evaluation = json->contains("evaluation");
  return Record{*std::move(json), evaluation, place->samples, place->life, place->run_id};
}

// Where to go on in a file that was read up to `offset`. That the line which ends there is still the same shows that
// nothing before it has changed; else the file was cut meanwhile, and is read from its begin.
absl::StatusOr<int64_t> BeginOf(LineFile& file, int64_t offset, const std::string& line) {
  if (offset == 0 || offset > file.bytes()) return 0;
  const absl::StatusOr<std::optional<LineFile::Line>> before = file.Before(offset);
  if (!before.ok()) return before.status();
  const bool same = *before && (*before)->whole && (*before)->text == line;
  return same ? offset : 0;
}

}  // namespace

bool RunStream::Give(Json event, const EventTaker& take) {
  if (taken_) taken_ = take(event);
  return taken_;
}

// Gives the records of this life that are behind the last one. In metrics.jsonl lives follow each other, and a record
// of a release before records said their life counts for the first.
absl::Status RunStream::GiveRecords(const std::string& path, bool dropped, const EventTaker& take) {
  absl::StatusOr<LineFile> file = LineFile::Open(path);
  if (absl::IsNotFound(file.status())) return absl::OkStatus();
  if (!file.ok()) return file.status();
  int64_t at = 0;
  if (!dropped) {
    const absl::StatusOr<int64_t> begin = BeginOf(*file, offset_, line_);
    if (!begin.ok()) return begin.status();
    at = *begin;
  }
  while (taken_) {
    const absl::StatusOr<std::optional<LineFile::Line>> line = file->At(at);
    if (!line.ok()) return line.status();
    if (!*line || !(*line)->whole) return absl::OkStatus();
    std::optional<Record> record = ReadRecord((*line)->text);
    const int life = !record ? 0 : record->life == 0 && !dropped ? 1 : record->life;
    if (life > life_ && !dropped) return absl::OkStatus();  // of the next life, of which it will be asked
    at = (*line)->end;
    if (!dropped) offset_ = at, line_ = (*line)->text;
    if (!record || (!record->run_id.empty() && !run_id_.empty() && record->run_id != run_id_)) continue;
    const Place place = {record->samples, record->evaluation};
    if (life != life_ || place <= last_) continue;
    Json event = {{"event", record->evaluation ? "evaluation" : "step"},
                  {"life", life_},
                  {"again", record->samples <= before_ && life_ > 1}};
    event.update(record->json);
    last_ = place;
    samples_ = std::max(samples_, record->samples);
    Give(std::move(event), take);
  }
  return absl::OkStatus();
}

absl::Status RunStream::GiveLife(const RunReport& report, const RunLife& life, const EventTaker& take) {
  const int newest = report.life().number;
  if (life.number > life_) {
    life_ = life.number;
    last_ = {-1, true}, before_ = samples_, checkpoints_ = 0;
    Json event = {{"event", "life"},
                  {"life", life.number},
                  {"plan", life.plan_digest.empty() ? Json() : Json(life.plan_digest)},
                  {"from_life", life.started ? Json(life.from_life) : Json()},
                  {"from_step", life.started ? Json(life.from_step) : Json()}};
    Give(std::move(event), take);
  }
  if (absl::Status given = GiveRecords(StepsPath(run_dir_), false, take); !given.ok()) return given;
  // What later lives dropped of this one lies behind what they kept, and each begins where no later one begins before.
  for (int later = newest; later > life.number; --later) {
    const std::string path = LifeFolder(run_dir_, later) + "/" + kDroppedStepsFile;
    if (absl::Status given = GiveRecords(path, true, take); !given.ok()) return given;
  }
  for (; checkpoints_ < life.checkpoints.size() && taken_; ++checkpoints_) {
    const CheckpointCost& cost = life.checkpoints[checkpoints_];
    Give({{"event", "checkpoint"},
          {"life", life.number},
          {"step", cost.step},
          {"bytes", cost.bytes},
          {"copy_seconds", cost.copied},
          {"write_seconds", cost.written},
          {"waited_seconds", cost.waited},
          {"published", cost.published}},
         take);
  }
  return absl::OkStatus();
}

// Of a run that has not begun: whether its job has ended without it.
bool RunStream::GiveJob(bool asks, const EventTaker& take) {
  if (!asks || !taken_) return !taken_;
  const SubmittedJob job = AskOfJob(run_dir_);
  next_ask_ = Clock::now() + kPauseOfQuestions;
  if (job.is != SubmittedJob::Is::kOver) return false;
  exit_status_ = ExitStatusOf(job);
  Json event = {{"event", "outcome"},
                {"life", nullptr},
                {"state", "not begun"},
                {"exit_status", exit_status_},
                {"job", JobJson(job)}};
  if (job.outcome) event.update(OutcomeFactsJson(*job.outcome));
  Give(std::move(event), take);
  return true;
}

absl::StatusOr<bool> RunStream::Next(const EventTaker& take) {
  // How the run stands is read before its records: when it is over, all of them are there.
  const bool asks = Clock::now() >= next_ask_;
  const absl::StatusOr<RunReport> report = GatherRun(run_dir_, {.plan = !described_, .job = asks, .steps = false});
  if (absl::IsFailedPrecondition(report.status())) {
    if (!std::exchange(submitted_, true))
      Give({{"event", "submitted"}, {"run_dir", run_dir_}, {"note", std::string(report.status().message())}}, take);
    return GiveJob(asks, take);
  }
  if (!report.ok()) return report.status();
  if (report->job) next_ask_ = Clock::now() + kPauseOfQuestions;
  if (asks) waits_ = report->state == RunState::kWaits;
  if (!report->live() && waits_) return !taken_;  // as Slurm said a moment ago
  const bool live = report->live();
  run_id_ = report->run_id;
  if (!described_ && (report->plan || !live)) {
    described_ = true;
    Json event = {{"event", "run"}, {"run_dir", run_dir_}, {"run_id", run_id_}};
    if (report->plan) event.update(PlanFactsJson(*report->plan));
    Give(std::move(event), take);
  }
  if (!described_) return !taken_;
  for (size_t i = 0; i < report->lives.size() && taken_; ++i) {
    const RunLife& life = report->lives[i];
    const bool newest = i + 1 == report->lives.size();
    if (life.number < life_) continue;
    if (newest && live && life.number > life_ && !life.started) break;  // it has not chosen where to begin
    if (absl::Status given = GiveLife(*report, life, take); !given.ok()) return given;
    if (newest) break;
    // When the next life has begun, the files of this one lie in its folder.
    const RunLife& next = report->lives[i + 1];
    const bool last = i + 2 == report->lives.size();
    if (last && live && !next.started) break;
    const absl::StatusOr<std::string> text =
        ReadWholeFile(OutcomePath(LifeFolder(run_dir_, life.number)), kOutcomeJson.bytes);
    const absl::StatusOr<Outcome> outcome = text.ok() ? ReadOutcome(*text) : text.status();
    Json event = {{"event", "end"}, {"life", life.number}};
    if (outcome.ok()) event.update(OutcomeFactsJson(*outcome));
    Give(std::move(event), take);
  }
  if (live || !taken_) return !taken_;
  exit_status_ = ExitStatusOf(*report);
  const std::optional<Outcome>& outcome = report->life().outcome;
  Json event = {{"event", "outcome"},
                {"life", report->life().number},
                {"state", StateName(report->state)},
                {"exit_status", exit_status_}};
  if (report->job && report->job->outcome) {
    event.update(OutcomeFactsJson(*report->job->outcome));
    Give(std::move(event), take);
    return true;
  }
  if (outcome) event.update(OutcomeFactsJson(*outcome));
  Give(std::move(event), take);
  return true;
}

}  // namespace planwright
