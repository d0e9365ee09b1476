#include "planner/views/report/report_text.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/files/readable.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/ranks_text.h"
#include "planner/run/outcome/outcome_text.h"
#include "planner/run/outcome/profile_text.h"
#include "planner/run/trial/trial_text.h"
#include "planner/views/report/evaluation_text.h"
#include "planner/views/report/rank_activities.h"
#include "planner/views/report/run_figures.h"
#include "planner/views/show/curves.h"
#include "planner/views/show/quantities.h"

namespace planwright {
namespace {

constexpr size_t kMostTextRows = 20;  // of a table of lives, checkpoints or activities; --json has all

std::string Title(const RunReport& report) {
  if (!report.plan) return Printable(report.run_dir) + "\n";
  return Cat(Printable(report.plan->name), " on ", Counted(report.plan->ranks, "rank"), ", plan ",
             Printable(report.plan->digest.substr(0, 12)), ", in ", Printable(report.run_dir), "\n");
}

std::string NotesText(const RunReport& report) {
  std::string text;
  for (const std::string& note : report.notes) text += "note: " + Printable(note) + "\n";
  return text;
}

std::string NumberText(const std::optional<double>& value, int digits) {
  return value ? absl::StrFormat("%.*g", digits, *value) : "-";
}

// "step 16 of 30 (53 %), 128 samples"
std::string StepText(const RunReport& report) {
  const StepPoint& last = report.steps.back();
  std::string text = Cat("step ", WithCommas(last.step));
  if (report.plan && report.plan->steps > 0) {
    const double part = static_cast<double>(last.step) / static_cast<double>(report.plan->steps);
    text += absl::StrFormat(" of %s (%.3g %%)", WithCommas(report.plan->steps), 100 * part);
  }
  return Cat(text, ", ", WithCommas(last.samples), " samples");
}

constexpr double kWaitToTell = 0.01;  // of a step

std::string PaceText(const RunReport& report, const Pace& pace) {
  std::string text = Cat(DurationText(pace.seconds), " a step (median of ", pace.steps, "), ",
                         LargeText(pace.samples_per_second), " samples/s");
  if (pace.tokens_per_second) Append(text, ", ", LargeText(*pace.tokens_per_second), " tokens/s");
  if (pace.data_wait.value_or(0) >= kWaitToTell)
    Append(text, ", ", absl::StrFormat("%.1f %%", 100 * *pace.data_wait), " of it waiting for data");
  if (report.plan && report.plan->predicted_step > 0 && pace.seconds > 0) {
    const double predicted = report.plan->predicted_step;
    Append(text, "; predicted ", DurationText(predicted), " a step (",
           absl::StrFormat("%+.0f %%", 100 * (predicted / pace.seconds - 1)), ")");
  }
  return text + "\n";
}

std::string CheckpointLine(const RunReport& report) {
  const ReportedCheckpoint* newest = NewestCheckpoint(report);
  if (!newest) return report.checkpoints.empty() ? "" : "no checkpoint is usable; `plan checkpoint ls` says why\n";
  std::string text = Cat("newest checkpoint: step ", WithCommas(newest->step), " of life ", newest->life);
  if (newest->bytes) Append(text, ", ", BytesText(*newest->bytes));
  if (newest->published)
    Append(text, ", ", DurationText(absl::ToDoubleSeconds(report.now - *newest->published)), " old");
  return text + "\n";
}

std::string RankSeconds(const RankActivity& activity) {
  if (!activity.most) return "";
  const std::string least = DurationText(*activity.least), most = DurationText(*activity.most);
  return least == most ? most : least + " to " + most;
}

std::string ActivitiesText(const RunReport& report, size_t width) {
  const std::vector<RankActivity> activities = FoldRanks(report.ranks, report.now);
  if (activities.empty()) return "";
  // Nobody needs to know how long ago that was if the run is over.
  const bool live = report.live();
  Table table(live ? std::vector<std::string>{"ranks", "state", "for", "at"}
                   : std::vector<std::string>{"ranks", "state", "at"});
  for (size_t i = 0; i < std::min(activities.size(), kMostTextRows); ++i) {
    std::vector<std::string> row = {RanksText(activities[i].ranks), WhatText(activities[i].what)};
    if (live) row.push_back(RankSeconds(activities[i]));
    row.push_back(Printable(activities[i].where));
    table.Add(std::move(row));
  }
  std::string text = Cat("\n", table.Text("", width));
  if (activities.size() > kMostTextRows) Append(text, "and ", activities.size() - kMostTextRows, " more places\n");
  const std::optional<SlowestRank> slowest = FindSlowest(report.ranks, report.now);
  if (!live || !slowest) return text;
  return Cat(text, "slowest now: rank ", slowest->rank, ", which computes for ", DurationText(slowest->seconds),
             " while ", Counted(slowest->waiting, "rank"), slowest->waiting == 1 ? " communicates" : " communicate",
             "\n");
}

// The mean of the steps of each column, at most `columns`. Columns without a number have that of the column before.
std::vector<double> Columns(const std::vector<StepBin>& bins, Spread StepBin::*values, double factor, size_t columns) {
  std::vector<double> means;
  std::optional<double> last;
  for (const StepBin& bin : bins) {
    if ((bin.*values).count == 0) continue;
    last = (bin.*values).mean * factor;
    break;
  }
  if (!last) return {};
  for (size_t column = 0; column < columns; ++column) {
    const size_t first = column * bins.size() / columns;
    const size_t end = std::max(first + 1, (column + 1) * bins.size() / columns);
    Spread spread;
    for (size_t i = first; i < end; ++i) spread.Add(bins[i].*values);
    if (spread.count > 0) last = spread.mean * factor;
    means.push_back(*last);
  }
  return means;
}

constexpr size_t kIndent = 12;  // of curves

size_t ColumnsOf(size_t width) {
  constexpr size_t kMostColumns = 100;
  return std::min(kMostColumns, width > kIndent + 20 ? width - kIndent : 20);
}

std::string Chart(const std::string& title, const RunReport& report, const std::vector<double>& means) {
  constexpr int kHeight = 8;
  if (means.empty()) return "";
  const size_t columns = means.size();
  const std::string first = Cat("step ", WithCommas(report.steps.front().step)),
                    last = WithCommas(report.steps.back().step);
  const size_t gap = columns - std::min(columns - 1, Width(first) + Width(last));
  return Cat("\n", title, "\n", LineChart(means, kHeight, kIndent), std::string(kIndent, ' '), first,
             std::string(gap, ' '), last, "\n");
}

std::string Curve(const std::string& title, const RunReport& report, Spread StepBin::*values, size_t width,
                  double factor = 1) {
  return Chart(title, report, Columns(report.steps.bins(), values, factor, ColumnsOf(width)));
}

std::string EvaluationCurves(const RunReport& report, size_t width) {
  constexpr size_t kMostSets = 4;  // the page and --json have all
  std::string text;
  const std::vector<std::string> sets = report.evaluations.sets();
  for (size_t i = 0; i < std::min(sets.size(), kMostSets); ++i)
    text += Chart(Cat("loss of ", Printable(sets[i])), report, EvaluationColumns(report, sets[i], ColumnsOf(width)));
  return text;
}

std::string Curves(const RunReport& report, size_t width) {
  if (report.steps.size() < 2) return "";
  const std::string text = Curve("loss", report, &StepBin::loss, width) + EvaluationCurves(report, width) +
                           Curve("gradient norm", report, &StepBin::grad_norm, width) +
                           Curve("learning rate", report, &StepBin::learning_rate, width);
  // In a unit that the axis can write without an exponent.
  const double tokens = report.plan ? static_cast<double>(report.plan->sequence_length) : 1;
  double most = 0;
  for (const StepBin& bin : report.steps.bins()) most = std::max(most, bin.samples_per_second.most * tokens);
  const double unit = most >= 1e6 ? 1e6 : most >= 1e3 ? 1e3 : 1;
  return text + Curve(Cat(unit == 1e6   ? "million "
                          : unit == 1e3 ? "thousand "
                                        : "",
                          report.plan ? "tokens" : "samples", " per second"),
                      report, &StepBin::samples_per_second, width, tokens / unit);
}

std::string PartText(const char* name, double seconds, double all) {
  return absl::StrFormat("  %s%6s  %s\n", PadRight(name, 36),
                         all > 0 ? absl::StrFormat("%.1f %%", 100 * seconds / all) : "", DurationText(seconds));
}

std::string TimesText(const RunReport& report) {
  const std::optional<TimeUse> use = TimeUseOf(report);
  if (!use) return "";
  std::string text = Cat("\n", DurationText(use->all), " since the first launch\n");
  text += PartText("steps that count (goodput)", use->counted, use->all);
  if (use->data_wait) text += PartText("  of these, waiting for data", *use->data_wait, use->all);
  if (use->evaluation > 0) text += PartText("evaluation", use->evaluation, use->all);
  if (use->again > 0) text += PartText("steps that were lost and done again", use->again, use->all);
  text += PartText("start, loading and end", use->other, use->all);
  if (use->between > 0.0005 * use->all) text += PartText("between lives", use->between, use->all);
  return text;
}

std::string StepsText(const RunReport& report) {
  if (report.steps.empty()) return Cat("no step is done\n", EvaluationText(report));
  const StepPoint& last = report.steps.back();
  std::string text = StepText(report);
  if (report.plan) {
    const double tokens = static_cast<double>(last.samples) * static_cast<double>(report.plan->sequence_length);
    Append(text, ", ", LargeText(tokens), " tokens");
  }
  text += "\n";
  Append(text, "loss ", NumberText(last.loss, 6), ", gradient norm ", NumberText(last.grad_norm, 4), ", learning rate ",
         NumberText(last.learning_rate, 4), "\n", SourcesText(report), EvaluationText(report));
  if (const std::optional<Pace> pace = PaceOf(report)) text += PaceText(report, *pace);
  if (const int64_t skipped = report.steps.skipped(); skipped > 0)
    Append(text, Counted(skipped, "step"), " skipped, as gradients were not finite\n");
  for (const RunLife& life : report.lives) {
    if (life.dropped.empty()) continue;
    Append(text, "life ", life.number, " did ", Counted(life.dropped.count(), "step"),
           " again: ", life.dropped.front().step, " to ", life.dropped.back().step, "\n");
  }
  if (const double waited = WaitedForDisk(report); waited >= 0.001)
    Append(text, "training waited ", DurationText(waited), " for checkpoints to be written\n");
  return text;
}

template <typename T>
size_t FirstShown(const std::vector<T>& rows) {
  return rows.size() - std::min(rows.size(), kMostTextRows);
}

std::string LeftOut(size_t count, const char* what) {
  return count == 0 ? "" : Cat("the first ", count, " ", what, " are left out; --json has all\n");
}

std::string LivesText(const RunReport& report, size_t width) {
  Table table({"life", "began", "took", "from step", "steps", "exit", "how it ended"});
  const size_t first = FirstShown(report.lives);
  for (size_t i = first; i < report.lives.size(); ++i) {
    const RunLife& life = report.lives[i];
    const bool timed = life.begin && life.end;
    table.Add({std::to_string(life.number), life.begin ? ClockText(*life.begin) : "",
               timed ? DurationText(absl::ToDoubleSeconds(*life.end - *life.begin)) : "",
               life.started ? std::to_string(life.from_step) : "",
               life.last_step > 0 ? Cat(life.first_step, "-", life.last_step) : "none",
               life.outcome ? std::to_string(life.outcome->exit_code) : "", Printable(EndText(report, life))});
  }
  return Cat("\n", LeftOut(first, "lives"), table.Text("", width));
}

std::string CheckpointsText(const RunReport& report, size_t width) {
  if (report.checkpoints.empty()) return "";
  Table table({"checkpoint", "life", "bytes", "copied", "written", "training waited", "published", "state"});
  const size_t first = FirstShown(report.checkpoints);
  for (size_t i = first; i < report.checkpoints.size(); ++i) {
    const ReportedCheckpoint& one = report.checkpoints[i];
    const auto seconds = [&](double CheckpointCost::*part) { return one.cost ? DurationText((*one.cost).*part) : ""; };
    table.Add({std::to_string(one.step), std::to_string(one.life), one.bytes ? BytesText(*one.bytes) : "",
               seconds(&CheckpointCost::copied), seconds(&CheckpointCost::written), WaitedText(one),
               one.published ? ClockText(*one.published) : "", Printable(one.state)});
  }
  return Cat("\n", LeftOut(first, "checkpoints"), table.Text("", width));
}

}  // namespace

std::string WaitedText(const ReportedCheckpoint& checkpoint) {
  if (!checkpoint.cost) return "";
  return checkpoint.cost->waited < 0.001 ? "0 s" : DurationText(checkpoint.cost->waited);
}

std::string EndText(const RunReport& report, const RunLife& life) {
  if (life.outcome) return life.outcome->cause;
  if (life.number != report.life().number) return "without a word: its launch was killed, or its machine died";
  switch (report.state) {
    case RunState::kRunning:
    case RunState::kBetween: return "";
    case RunState::kUnseen: return "may still run on another host";
    case RunState::kWaits:
    case RunState::kEnded:
    case RunState::kVanished: break;
  }
  return "without a word: its launch was killed, or its machine died";
}

namespace {

// What Slurm says of the job, where it says more than how the life ended.
std::string JobText(const RunReport& report) {
  if (!report.job || report.job->id.empty()) return "";
  const SubmittedJob& job = *report.job;
  const std::string id = Cat("job ", Printable(job.id));
  if (report.state == RunState::kWaits) {
    return Cat("; ", id,
               job.is == SubmittedJob::Is::kWaits ? " waits in the queue, and goes on with it: "
                                                  : " has begun, and goes on with it: ",
               Printable(JobStateText(job)));
  }
  if (job.outcome) return Cat("; ", id, " ended before its life began: ", Printable(job.outcome->cause));
  const bool as_the_life = report.state == RunState::kEnded && (job.state == "FAILED" || job.state == "COMPLETED");
  return as_the_life || job.is == SubmittedJob::Is::kUnknown ? "" : Cat("; ", id, " is ", Printable(JobStateText(job)));
}

}  // namespace

std::string StateLine(const RunReport& report) {
  const RunLife& life = report.life();
  const std::string number = report.lives.size() > 1 || life.number > 1 ? Cat(", life ", life.number) : "";
  const std::string holder = report.holder.empty() ? "" : Cat(" (", Printable(report.holder), ")");
  std::string text;
  switch (report.state) {
    case RunState::kRunning:
      text = Cat("runs", holder, number);
      if (life.begin)
        Append(text, ", since ", ClockText(*life.begin), " (",
               DurationText(absl::ToDoubleSeconds(report.now - *life.begin)), ")");
      return text;
    case RunState::kBetween:
      return Cat("life ", life.number, " has ended with exit status ", life.outcome->exit_code, " (",
                 Printable(life.outcome->cause), "), and its launch ",
                 report.restart ? Cat("starts the run again at ", ClockText(*report.restart))
                                : Cat("still holds the run", holder));
    case RunState::kWaits:
      text = life.outcome
                 ? Cat("ended with exit status ", life.outcome->exit_code, ": ", Printable(life.outcome->cause))
                 : "ended without a word";
      return Cat(text, number, JobText(report));
    case RunState::kEnded:
      if (life.outcome->exit_code == kExitSuccess) {
        text = "done";
        if (!report.steps.empty() && report.plan && report.steps.back().step < report.plan->steps)
          text += " with the steps that were asked for";
      } else {
        text = Cat("ended with exit status ", life.outcome->exit_code, ": ", Printable(life.outcome->cause));
      }
      text += number;
      break;
    case RunState::kVanished:
      text = Cat("ended without a word", number, ": its launch was killed, or its machine died");
      break;
    case RunState::kUnseen:
      text = Cat("was started on another host", holder, number,
                 ", whose lock is not seen here: it runs there, or its machine died");
      break;
  }
  if (report.last_sign)
    Append(text, "; last sign ", ClockText(*report.last_sign), " (",
           DurationText(absl::ToDoubleSeconds(report.now - *report.last_sign)), " ago)");
  return text + JobText(report);
}

std::vector<std::string> FailureLines(const RunReport& report) {
  std::vector<std::string> lines;
  const RunLife& life = report.life();
  if (!life.outcome || life.outcome->exit_code == kExitSuccess) return lines;
  const Failure end = life.outcome->failure.value_or(Failure{});
  if (end.rank >= 0) lines.push_back(Cat("rank ", end.rank, end.host.empty() ? "" : " on ", Printable(end.host)));
  for (size_t at = 0; at < end.message.size();) {
    const size_t line = std::min(end.message.find('\n', at), end.message.size());
    if (line > at) lines.push_back(Printable(end.message.substr(at, line - at)));
    at = line + 1;
  }
  if (!end.instruction.empty()) lines.push_back("at " + Printable(end.instruction));
  if (!end.recipe_line.empty()) lines.push_back("from " + Printable(end.recipe_line));
  for (const std::string& activity : end.others) lines.push_back(Printable(activity));
  return lines;
}

// Ranks that were slow are told of runs that are done, too.
std::string EndText(const RunReport& report) {
  std::string text;
  for (const std::string& line : FailureLines(report)) text += "  " + line + "\n";
  if (!report.life().outcome) return text;
  for (const SlowRank& slow : report.life().outcome->slow) text += Printable(SlowRankText(slow)) + "\n";
  if (report.life().outcome->trial) text += PrintableLines(TrialText(*report.life().outcome->trial));
  return text;
}

std::string StatusText(const RunReport& report, size_t width) {
  std::string text = Title(report) + Wrapped(StateLine(report), width, 2) + "\n" + EndText(report);
  text += StepsText(report);
  if (report.state == RunState::kRunning && !report.steps.empty()) {
    if (const std::optional<Pace> pace = PaceOf(report); pace && pace->left) {
      Append(text, "about ", DurationText(*pace->left), " to go, until ",
             ClockText(report.now + absl::Seconds(*pace->left)), "\n");
    }
  }
  text += CheckpointLine(report);
  if (report.state != RunState::kEnded) text += ActivitiesText(report, width);
  return text + NotesText(report);
}

// The table of --trace of the newest life that has one.
std::string ProfileText(const RunReport& report, size_t width) {
  for (size_t i = report.lives.size(); i-- > 0;) {
    const RunLife& life = report.lives[i];
    if (!life.outcome || !life.outcome->profile) continue;
    return Cat(report.lives.size() > 1 ? Cat("\nof life ", life.number, ":") : "",
               PrintableLines(RunProfileText(*life.outcome->profile, width)));
  }
  return "";
}

std::string ReportText(const RunReport& report, size_t width) {
  std::string text = Title(report) + Wrapped(StateLine(report), width, 2) + "\n" + EndText(report);
  return Cat(text, StepsText(report), TimesText(report), ProfileText(report, width), Curves(report, width),
             LivesText(report, width), CheckpointsText(report, width), NotesText(report));
}

}  // namespace planwright
