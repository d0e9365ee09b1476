#include "planner/views/report/run_report.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/time/clock.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/files/file_io.h"
#include "planner/base/files/line_file.h"
#include "planner/base/json/json_limits.h"
#include "planner/plan/plan_json.h"
#include "planner/run/launch/launch_log.h"
#include "planner/run/launch/run_directory.h"
#include "planner/state/checkpoint/folder_names.h"
#include "planner/state/checkpoint/run_id.h"
#include "planner/state/checkpoint/run_lives.h"
#include "planner/wire/records/step_record.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

std::optional<absl::Time> ChangedAt(const std::string& path) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) return std::nullopt;
  return absl::TimeFromTimespec(about.st_mtim);
}

void Later(std::optional<absl::Time>& latest, const std::optional<absl::Time>& time) {
  if (time && (!latest || *time > *latest)) latest = time;
}

absl::Status CheckRunDirectory(const std::string& run_dir) {
  if (absl::Status status = CheckFolder(run_dir); !status.ok()) return status;
  if (Exists(run_dir + "/" + kManifestFile)) {
    return absl::InvalidArgumentError(run_dir + " is a checkpoint; give the run directory, two folders above it, or " +
                                      "see `plan checkpoint show`");
  }
  for (const char* name : {"/plan.json", "/metrics.jsonl", "/logs", "/lives", "/lock"}) {
    if (Exists(run_dir + name)) return absl::OkStatus();
  }
  if (Exists(run_dir + "/job/launch.json") || Exists(JobOutcomePath(run_dir)))
    return absl::FailedPreconditionError(run_dir + " was submitted to Slurm and has not begun");
  return absl::InvalidArgumentError(run_dir +
                                    " is no run directory: it has no plan.json, metrics.jsonl, logs or lives, which "
                                    "`plan launch --run-dir` writes");
}

// Whether what a file says of its run is said of this one. A note if it is not.
bool IsOwn(const std::string& file, const std::string& of, const std::string& run_id, std::vector<std::string>& notes) {
  if (of.empty() || run_id.empty() || of == run_id) return true;
  notes.push_back(file + " is of run " + of + ", and this is run " + run_id + ": it is passed over");
  return false;
}

// nullopt if there is none, or if it is of another run.
std::optional<Outcome> ReadOutcomeOf(const std::string& folder, const std::string& run_id,
                                     std::vector<std::string>& notes) {
  const std::string path = OutcomePath(folder);
  if (!Exists(path)) return std::nullopt;
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kOutcomeJson.bytes);
  absl::StatusOr<Outcome> outcome = text.ok() ? ReadOutcome(*text) : text.status();
  if (outcome.ok() && !IsOwn(path, outcome->run_id, run_id, notes)) return std::nullopt;
  if (outcome.ok()) return *std::move(outcome);
  notes.push_back(text.ok() ? path + " " + std::string(outcome.status().message())
                            : std::string(text.status().message()));
  return std::nullopt;
}

// "RUN" of "run RUN, life 2", with which the launcher's log begins; empty: the event is another one.
std::string RunOfEvent(std::string_view event) {
  constexpr std::string_view kRun = "run ";
  if (!event.starts_with(kRun)) return "";
  const std::string run_id(event.substr(kRun.size(), event.find(',') - kRun.size()));
  return IsRunId(run_id) ? run_id : "";
}

// "4711" of "run RUN, life 2, job 4711"; empty: it is of no job.
std::string JobOfEvent(std::string_view event) {
  constexpr std::string_view kJob = ", job ";
  const size_t at = event.starts_with("run ") ? event.find(kJob) : std::string_view::npos;
  return at == std::string_view::npos ? "" : std::string(event.substr(at + kJob.size()));
}

// Of "exit code 15: rank 0 could not ...", with which the launcher says in its log how a life ended. A full disk may
// have room for this line, and none for outcome.json.
std::optional<Outcome> OutcomeOfEvent(std::string_view event) {
  constexpr std::string_view kExit = "exit code ";
  if (!event.starts_with(kExit)) return std::nullopt;
  event.remove_prefix(kExit.size());
  int code = 0;
  const auto [end, error] = std::from_chars(event.data(), event.data() + event.size(), code);
  event.remove_prefix(static_cast<size_t>(end - event.data()));
  if (error != std::errc() || code < 0 || !event.starts_with(": ")) return std::nullopt;  // the line was cut off
  Outcome outcome;
  outcome.exit_code = code;
  outcome.cause = event.substr(2);
  return outcome;
}

// The first and the last time in the launcher's log, and what it says of how the life ended. Only so much of its begin
// and of its end is read: a log may be of any size.
void ReadTimes(const std::string& folder, const std::string& run_id, RunLife& life, std::optional<Outcome>& said,
               std::vector<std::string>& notes) {
  constexpr int64_t kMostBytes = int64_t{1} << 20;
  absl::StatusOr<LineFile> log = LineFile::Open(folder + "/logs/launch.log");
  if (!log.ok()) return;
  const auto event = [](std::string_view line) {
    const size_t gap = line.find("  ");
    return gap == std::string_view::npos ? std::string_view() : line.substr(gap + 2);
  };
  for (int64_t at = 0; at < kMostBytes && !life.begin;) {
    const absl::StatusOr<std::optional<LineFile::Line>> line = log->At(at, kMostBytes);
    if (!line.ok() || !*line) break;
    life.begin = EventTime((*line)->text);
    if (life.begin) life.job = JobOfEvent(event((*line)->text));
    if (life.begin && !IsOwn(log->path(), RunOfEvent(event((*line)->text)), run_id, notes)) {
      life.begin.reset();
      return;
    }
    at = (*line)->end;
  }
  constexpr int kMostAfterExit = 4;  // events: why there is no restart, or when
  int events = 0;
  for (int64_t end = log->bytes(), last = std::max<int64_t>(end - kMostBytes, 0);
       end > last && !said && events <= kMostAfterExit;) {
    const absl::StatusOr<std::optional<LineFile::Line>> line = log->Before(end, kMostBytes);
    if (!line.ok() || !*line) break;
    end = (*line)->begin;
    const std::optional<absl::Time> time = EventTime((*line)->text);
    if (!time) continue;
    if (events++ == 0) life.end = time, life.last_event = event((*line)->text);
    said = OutcomeOfEvent(event((*line)->text));
  }
}

// Ranks that have a file in RUN/recorder, ascending.
std::vector<int> RecordedRanks(const std::string& folder) {
  std::vector<int> ranks;
  std::error_code error;
  constexpr std::string_view kPrefix = "rank";
  for (fs::directory_iterator it(folder + "/recorder", error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    int rank = -1;
    if (!name.starts_with(kPrefix)) continue;
    const char* last = name.data() + name.size();
    const auto read = std::from_chars(name.data() + kPrefix.size(), last, rank);
    if (read.ec == std::errc() && read.ptr == last && rank >= 0) ranks.push_back(rank);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

// When a rank last noted what it does.
std::optional<absl::Time> LastNoted(const RankPosition& position) {
  if (!position.last || position.last->wall <= 0) return std::nullopt;
  return absl::FromUnixNanos(position.last->wall);
}

// `held`: its launch goes on, and has still to write what is missing.
RunLife ReadLife(const std::string& folder, int number, bool held, const std::string& run_id,
                 std::vector<std::string>& notes) {
  RunLife life;
  life.number = number;
  std::optional<Outcome> said;
  ReadTimes(folder, run_id, life, said, notes);
  life.outcome = ReadOutcomeOf(folder, run_id, notes);
  if (said && !held && !Exists(OutcomePath(folder))) {
    notes.push_back(OutcomePath(folder) + " is missing, as on a full disk: how the life ended is what " + folder +
                    "/logs/launch.log says");
    said->run_id = run_id;
    life.outcome = std::move(said);
  }
  if (!life.outcome) {
    for (int rank : RecordedRanks(folder)) {
      if (const auto position = ReadRecorder(folder, rank)) Later(life.end, LastNoted(*position));
    }
  }
  return life;
}

// What only lives of runs with checkpoints have.
// `dropped`: also the records that it dropped, of which only a report of the whole run tells.
void ReadLifeFolder(const std::string& run_dir, bool dropped, DroppedFiles& files, RunReport& report, RunLife& life) {
  std::vector<std::string>& notes = report.notes;
  const absl::StatusOr<std::optional<LifeStart>> start = ReadLifeStart(run_dir, life.number);
  if (!start.ok()) notes.emplace_back(start.status().message());
  if (start.ok() && *start) {
    life.started = true;
    life.from_life = (*start)->from_life;
    life.from_step = (*start)->from_step;
    life.plan_digest = (*start)->plan_digest;
  }
  absl::StatusOr<CheckpointLog> log = ReadCheckpointLog(run_dir, life.number, report.run_id);
  const std::string folder = LifeFolder(run_dir, life.number);
  if (!log.ok()) {
    notes.emplace_back(log.status().message());
  } else {
    life.checkpoints = std::move(log->checkpoints);
    if (log->unreadable > 0)
      notes.push_back(folder + "/checkpoints.jsonl: " + std::to_string(log->unreadable) + " lines cannot be read");
    if (log->of_another > 0)
      notes.push_back(folder + "/checkpoints.jsonl: " + std::to_string(log->of_another) + " lines are of another run");
  }
  if (!dropped) return;
  const auto add = [&](const StepPoint& point) {
    life.dropped.Add(point);
    report.again.Add(point);
    return true;
  };
  const absl::Status read = files.Read(life.number, life.dropped_before, add, [&](const EvaluationRecord& evaluation) {
    life.dropped_evaluations += std::max(0.0, evaluation.seconds);
  });
  if (!read.ok()) notes.emplace_back(read.message());
}

// Which steps each life did, from where the lives after it began and what they dropped.
void CountSteps(RunReport& report) {
  int64_t last = report.steps.empty() ? 0 : report.steps.back().step;  // recorded when the life ended
  for (size_t i = report.lives.size(); i-- > 0;) {
    RunLife& life = report.lives[i];
    if (!life.started) continue;
    if (last > life.from_step) life.first_step = life.from_step + 1, life.last_step = last;
    last = life.from_step;
    if (!life.dropped.empty()) last = std::max(last, life.dropped.back().step);
  }
}

void ReadLives(const std::string& run_dir, bool held, bool dropped, RunReport& report) {
  const absl::StatusOr<std::vector<int>> numbers = LivesOf(run_dir);
  if (!numbers.ok()) report.notes.emplace_back(numbers.status().message());
  if (!numbers.ok() || numbers->empty()) {
    RunLife only = ReadLife(run_dir, 1, held, report.run_id, report.notes);
    only.started = true;
    report.lives.push_back(std::move(only));
    return;
  }
  DroppedFiles files(run_dir, report.run_id);
  for (int number : *numbers) {
    // The files of the newest life lie in RUN itself.
    const bool newest = number == numbers->back();
    RunLife life =
        ReadLife(newest ? run_dir : LifeFolder(run_dir, number), number, held && newest, report.run_id, report.notes);
    ReadLifeFolder(run_dir, dropped, files, report, life);
    report.lives.push_back(std::move(life));
  }
}

int64_t BytesOfShards(const Manifest& manifest) {
  int64_t bytes = 0;
  for (const ManifestShard& shard : manifest.shards) {
    if (__builtin_add_overflow(bytes, shard.bytes, &bytes)) return std::numeric_limits<int64_t>::max();
  }
  return bytes;
}

std::string StateOf(const UnusableCheckpoint& unusable) {
  switch (unusable.kind) {
    case UnusableCheckpoint::Kind::kForeign: return "foreign";
    case UnusableCheckpoint::Kind::kOffPath: return "replaced: " + unusable.why;
    case UnusableCheckpoint::Kind::kNoLife: return "of no life: " + unusable.why;
    case UnusableCheckpoint::Kind::kOtherRun: return "of another run: " + unusable.why;
    case UnusableCheckpoint::Kind::kNotPublished: return "not published";
    case UnusableCheckpoint::Kind::kDamaged: return "damaged: " + unusable.why;
  }
  return "";
}

void ReadCheckpoints(const std::string& run_dir, RunReport& report) {
  std::map<std::pair<int, int64_t>, ReportedCheckpoint> all;
  for (const RunLife& life : report.lives) {
    for (const CheckpointCost& cost : life.checkpoints) {
      all[{life.number, cost.step}] = {.step = cost.step,
                                       .life = life.number,
                                       .bytes = cost.bytes,
                                       .published = absl::UnixEpoch() + absl::Seconds(cost.published),
                                       .cost = cost,
                                       .state = "removed"};
    }
  }
  const absl::StatusOr<CheckpointList> list = ListCheckpoints(run_dir, report.life().number + 1);
  if (!list.ok()) report.notes.emplace_back(list.status().message());
  if (list.ok()) {
    for (const FoundCheckpoint& found : list->found) {
      ReportedCheckpoint& one = all[{found.manifest.life, found.manifest.counters.step}];
      one.step = found.manifest.counters.step;
      one.life = found.manifest.life;
      one.bytes = BytesOfShards(found.manifest);
      if (!one.published) one.published = ChangedAt(found.folder + "/" + kManifestFile);
      one.state = "usable";
      one.usable = true;
    }
    for (const UnusableCheckpoint& unusable : list->unusable) {
      if (unusable.kind == UnusableCheckpoint::Kind::kForeign) continue;  // nothing of this run
      ReportedCheckpoint& one = all[{unusable.life, unusable.step}];
      one.step = unusable.step;
      one.life = unusable.life;
      one.state = StateOf(unusable);
    }
  }
  for (auto& [key, checkpoint] : all) report.checkpoints.push_back(std::move(checkpoint));
}

void ReadPlanFacts(const std::string& run_dir, RunReport& report) {
  const std::string path = run_dir + "/plan.json";
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kPlanJson.bytes);
  if (!text.ok()) {
    report.notes.emplace_back(text.status().message());
    return;
  }
  const absl::StatusOr<Plan> plan = ReadPlan(*text);
  if (!plan.ok()) {
    report.notes.push_back(path + ": " + std::string(plan.status().message()));
    return;
  }
  // Steps, samples and tokens would be those of other steps.
  if (const std::string& own = report.life().plan_digest; !own.empty() && own != plan->digest) {
    report.notes.push_back(path + " is not that of life " + std::to_string(report.life().number) +
                           ", whose digest is " + own + ": figures that follow from it may be wrong");
  }
  report.plan = {plan->name,
                 plan->digest,
                 plan->world_size,
                 plan->budget.steps,
                 plan->budget.global_samples,
                 plan->budget.sequence_length,
                 plan->launch.predicted_step,
                 plan->evaluation.every_samples};
}

// Evaluations are rare, so the newest may lie before the end of the file that was read.
void FindNewestEvaluation(const std::string& path, RunReport& report) {
  absl::StatusOr<LineFile> file = LineFile::Open(path);
  if (!file.ok()) return;  // the note of its steps says so
  const absl::StatusOr<std::optional<EvaluationRecord>> found = NewestEvaluation(*file);
  if (!found.ok() || !*found) return;
  const std::string& of = (*found)->run_id;
  if (of.empty() || report.run_id.empty() || of == report.run_id) report.evaluations.Add(**found);
}

void ReadMetrics(const std::string& run_dir, const GatherOptions& options, RunReport& report) {
  const std::string path = StepsPath(run_dir);
  const auto add = [&](const StepPoint& point) {
    report.steps.Add(point);
    return true;
  };
  const absl::StatusOr<StepFile> file =
      ReadSteps(path, report.run_id, add, options.metrics_bytes,
                [&](const EvaluationRecord& evaluation) { report.evaluations.Add(evaluation); });
  if (absl::IsNotFound(file.status())) return;  // no step is done
  if (!file.ok()) {
    report.notes.emplace_back(file.status().message());
    return;
  }
  if (file->unreadable > 0) {
    report.notes.push_back(
        path + ": " + std::to_string(file->unreadable) +
        (file->unreadable == 1 ? " line is no record" : " lines are no records") + " of a next step" +
        (options.metrics_bytes == 0 ? ", the first is line " + std::to_string(file->first_unreadable) : std::string()));
  }
  if (file->of_another > 0) {
    report.notes.push_back(path + ": " + std::to_string(file->of_another) +
                           (file->of_another == 1 ? " record is" : " records are") + " of run " + file->another +
                           ", and this is run " + report.run_id + ": not counted");
  }
  if (file->unnamed > 0 && !report.run_id.empty()) {
    report.notes.push_back(path + ": " + std::to_string(file->unnamed) +
                           (file->unnamed == 1 ? " record says" : " records say") +
                           " no run, as those of earlier releases: nobody can tell whether they are of this one");
  }
  if (file->cut_off && !report.live()) report.notes.push_back(path + ": its last line is cut off");
  if (options.metrics_bytes > 0 && report.evaluations.empty()) FindNewestEvaluation(path, report);
}

RunState StateOf(const RunLock& lock, bool has_outcome) {
  if (lock.held) return has_outcome ? RunState::kBetween : RunState::kRunning;
  if (has_outcome) return RunState::kEnded;
  const auto host = [](const std::string& name) { return name.substr(std::min(name.rfind(' '), name.size())); };
  const bool elsewhere = !lock.holder.empty() && host(lock.holder) != host(OwnProcessName());
  return elsewhere ? RunState::kUnseen : RunState::kVanished;
}

// When the launch of a life that ended begins another one, as it said last. It waits without the lock, and needs a
// while to start; later than that, nobody waits any more.
std::optional<absl::Time> RestartOf(const RunLife& life, absl::Time now) {
  constexpr absl::Duration kStart = absl::Minutes(1);
  int64_t seconds = 0;
  if (!life.outcome || !life.end) return std::nullopt;
  if (std::sscanf(life.last_event.c_str(), "restart %*d of %*d in %" SCNd64 " s", &seconds) != 1) return std::nullopt;
  const absl::Time at = *life.end + absl::Seconds(seconds);
  return now < at + kStart ? std::optional(at) : std::nullopt;
}

// No launch holds the run: its job may wait for the next life, or Slurm knows that nobody is there any more.
void AskSlurm(const std::string& run_dir, RunReport& report) {
  const std::optional<Outcome>& outcome = report.life().outcome;
  if (report.state == RunState::kRunning || report.state == RunState::kBetween) return;
  if (!Exists(run_dir + "/job/launch.json") && !Exists(JobOutcomePath(run_dir))) return;
  if (outcome && outcome->exit_code == kExitSuccess) return;
  SubmittedJob job = AskOfJob(run_dir);
  const bool over = job.is == SubmittedJob::Is::kOver;
  if (report.state == RunState::kUnseen) {
    if (over && job.id == report.life().job) report.state = RunState::kVanished;
    if (job.is == SubmittedJob::Is::kWaits) report.state = RunState::kWaits;
  } else if (job.live()) {
    report.state = RunState::kWaits;
  }
  report.job = std::move(job);
}

}  // namespace

absl::StatusOr<RunReport> GatherRun(const std::string& run_dir, const GatherOptions& options) {
  if (absl::Status status = CheckRunDirectory(run_dir); !status.ok()) return status;
  RunReport report;
  report.run_dir = run_dir;
  // The lock first: a run that ends meanwhile is one that still runs, not one that ended without a word.
  RunLock lock = LookAtLock(run_dir);
  if (const absl::StatusOr<std::optional<std::string>> run_id = ReadRunId(run_dir); !run_id.ok()) {
    report.notes.emplace_back(run_id.status().message());
  } else {
    report.run_id = run_id->value_or("");
  }
  ReadLives(run_dir, lock.held, /*dropped=*/options.steps && options.metrics_bytes == 0, report);
  // And again, as a launch may have begun meanwhile, and moved the files of the life before it.
  if (!lock.held) lock = LookAtLock(run_dir);
  report.holder = lock.holder;
  report.state = StateOf(lock, report.life().outcome.has_value());
  report.restart = RestartOf(report.life(), absl::Now());
  if (report.restart) report.state = RunState::kBetween;
  if (options.job) AskSlurm(run_dir, report);
  if (options.plan) ReadPlanFacts(run_dir, report);
  if (options.steps) {
    ReadMetrics(run_dir, options, report);
    CountSteps(report);
    ReadCheckpoints(run_dir, report);
  }
  if (options.ranks) {
    const std::vector<int> recorded = RecordedRanks(run_dir);
    const int ranks = report.plan ? report.plan->ranks : recorded.empty() ? 0 : recorded.back() + 1;
    for (int rank = 0; rank < ranks; ++rank) report.ranks.push_back({rank, ReadRecorder(run_dir, rank)});
  }
  report.now = absl::Now();  // after all that was read, so that nothing is in the future
  report.last_sign = report.life().end;
  for (const char* name : {"/metrics.jsonl", "/outcome.json", "/logs/launch.log"})
    Later(report.last_sign, ChangedAt(run_dir + name));
  return report;
}

int ExitStatusOf(const RunReport& report) {
  if (report.live()) return kExitSuccess;
  if (report.job && report.job->outcome) return report.job->outcome->exit_code;
  return report.life().outcome ? report.life().outcome->exit_code : static_cast<int>(kExitPeerLost);
}

}  // namespace planwright
