#include "planner/search/results/tuned_text.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/base/paper/table.h"
#include "planner/views/show/quantities.h"
#include "planner/views/show/time_words.h"

namespace planwright {
namespace {

// Exact up to 2^53; spaces may be larger.
std::string CountText(double count) {
  return count < 1e15 ? WithCommas(std::llround(count)) : absl::StrFormat("%.2g", count);
}

std::string SpaceText(const TuneResult& result) {
  const TuneCounts& counts = result.counts;
  const bool one = counts.space == 1;
  std::string text = absl::StrCat(
      result.interrupted ? "What the search came to has " : "The space has ", CountText(counts.space),
      one ? " candidate: " : " candidates: ", CountText(counts.rules), " broke a rule, ", CountText(counts.memory),
      " did not fit memory, ", CountText(counts.time), " could not be faster by a lower bound of their time, ");
  if (counts.left > 0) absl::StrAppend(&text, CountText(counts.left), " were left undecided, ");
  absl::StrAppend(&text, "and ", CountText(counts.found), counts.found == 1 ? " was" : " were", " valid and fit. ",
                  WithCommas(counts.timed), counts.timed == 1 ? " was" : " were", " timed, ",
                  WithCommas(counts.simulated), " of them with all instructions.");
  return text;
}

// Why fewer are listed than were asked for.
std::string ShortListText(const TuneResult& result) {
  return absl::StrCat("All others", result.moved.searched ? " whose stages differ by at most one layer" : "",
                      " are more than ", ShareText(result.within, 1), " slower than the fastest, and are not listed.");
}

// What moving layers between stages brought.
std::string MovedText(const Found& found) {
  const TuneMoved& moved = found.result.moved;
  if (moved.timed == 0) {
    return absl::StrCat("Other layers in the stages of ", moved.module,
                        " cannot be faster, by a lower bound of their time.");
  }
  std::string text = absl::StrCat("With other layers in the stages of ", moved.module, " ", WithCommas(moved.timed),
                                  moved.timed == 1 ? " more candidate was" : " more candidates were", " timed, ",
                                  WithCommas(moved.simulated), " of them with all instructions: ");
  if (moved.even > 0 && found.result.fastest < moved.even) {
    absl::StrAppend(&text, "the fastest takes ", StepText(found, found.result.fastest), ", ",
                    ShareText(1 - found.result.fastest / moved.even, 1),
                    " less than the fastest of those whose stages differ by at most one layer (",
                    StepText(found, moved.even), ").");
  } else {
    absl::StrAppend(&text, moved.even > 0 ? "none that was found is faster." : "of the others none fits.");
  }
  return text;
}

// Why the search ended by itself before all was decided; empty: all was.
std::string LimitText(const TuneResult& result) {
  if (!result.at_limit || result.interrupted) return "";
  return absl::StrCat("The search ended early: ", WithCommas(result.counts.simulated), " layouts were simulated; ",
                      kMoreSimulations, ". ");
}

std::string AmongText(const TuneResult& result) {
  const std::string searched = SearchedText(result);
  return searched.empty() ? "" : absl::StrCat(" among ", searched);
}

std::string CandidatesText(const TuneResult& result) {
  const std::string searched = SearchedText(result);
  return searched.empty() ? "" : absl::StrCat(" Candidates are ", searched, ".");
}

std::string GapText(const Found& found) {
  const TuneResult& result = found.result;
  const std::string ended =
      result.timed_out ? absl::StrCat("The search ended after ", result.seconds_given, " s (", kMoreSeconds, ")")
                       : "The search was ended before its time";
  if (!std::isfinite(result.gap))
    return "The search was ended before anything was known of the least that a candidate takes: others may be faster.";
  if (result.interrupted) {
    return absl::StrCat(ended, ": the fastest so far is at most ", GapFigure(found),
                        " above the least that a candidate could take (", StepText(found, result.lower_bound), ").",
                        CandidatesText(result));
  }
  const double first = found.chosen()->seconds;
  if (first > result.fastest) {
    return absl::StrCat(
        LimitText(result), "The fastest layout takes ", StepText(found, result.fastest),
        ", which no candidate that fits ",
        result.gap > 0 ? absl::StrCat("can be below by more than ", GapFigure(found)) : "is below by this model",
        ". The first one is equal to it, as far as differences are known, and ",
        result.prefer == Preference::kSimple ? "is simpler, or needs less memory." : "needs less memory.",
        CandidatesText(result));
  }
  if (!(result.gap > 0)) {
    return absl::StrCat(LimitText(result), "No candidate that fits is faster by this model: it is the optimum",
                        AmongText(result), ".");
  }
  return absl::StrCat(LimitText(result), "No candidate that fits takes less than ", StepText(found, result.lower_bound),
                      " by this model: the fastest is at most ", GapFigure(found), " above the optimum",
                      AmongText(result), ".");
}

std::string SensitivityText(const TuneSensitivity& sensitivity) {
  if (!(sensitivity.slower > 0)) {
    return absl::StrCat(
        "The ", sensitivity.what,
        " was not measured. Up to 64 times slower, no layout that was compared becomes faster than the fastest.");
  }
  return absl::StrCat("The ", sensitivity.what, " was not measured. If it is ",
                      // 1.01 is not 1.
                      sensitivity.slower < 1.095 ? absl::StrFormat("%.3g", sensitivity.slower)
                                                 : absl::StrFormat("%.2g", sensitivity.slower),
                      " times slower than the data sheet says, the fastest is: ", sensitivity.instead, ".");
}

std::vector<std::string> Row(const Found& found, const std::string& name, const TunedLayout& layout) {
  return {name,
          StepText(found, layout.seconds),
          RateText(layout),
          MemoryText(layout),
          WaitsText(layout),
          BoundText(layout),
          LayoutText(layout)};
}

// Which layouts are equal, and which of them comes first.
std::string EqualText(const TuneResult& result) {
  const DifferenceErrors& error = result.error;
  std::string text = "= marks layouts that are as fast as the fastest";
  if (error.other_grids > 0) {
    absl::StrAppend(&text, ", as far as differences of predicted times are known (",
                    absl::StrFormat("%.1f %%, of other grids %.1f %%", 100 * error.same_grids, 100 * error.other_grids),
                    ")");
  }
  return absl::StrCat(text, result.prefer == Preference::kSimple ? ": the simpler first, of equally simple ones" : ":",
                      " the faster, unless another needs less memory by more than ", BytesText(result.worth), ".");
}

// What it costs to have the simplest of those near the fastest; empty: nothing, or it is not among the rows.
std::string SimplestText(const Found& found) {
  const std::vector<TunedLayout>& best = found.result.best;
  const auto at = std::find_if(best.begin(), best.end(), [](const TunedLayout& layout) { return layout.simplest; });
  if (at == best.end() || at->seconds <= found.result.fastest) return "";
  const double cost = at->seconds / found.result.fastest - 1;
  return absl::StrCat("Of the layouts that take at most ", ShareText(kSimplestWithin, 1),
                      " longer than the fastest, row ", at - best.begin() + 1, " is the simplest (", at->simplicity,
                      "): its step takes ", cost < 0.0005 ? "less than 0.1 %" : ShareText(cost, 1), " longer.");
}

}  // namespace

std::string SearchedText(const TuneResult& result) {
  constexpr char kEven[] = "that differ by at most one layer";
  const TuneMoved& moved = result.moved;
  const std::string others = absl::StrJoin(moved.even_modules, " and ");
  if (moved.searched) {
    return absl::StrCat("layouts with any layers in the stages of ", moved.module,
                        others.empty() ? "" : absl::StrCat(", and stages of ", others, " ", kEven));
  }
  if (moved.possible) return "layouts whose stages differ by at most one layer";
  return others.empty() ? "" : absl::StrCat("layouts with stages of ", others, " ", kEven);
}

std::string ClusterText(const Found& found) {
  const Cluster& cluster = found.result.cluster;
  return absl::StrCat(Counted(found.result.gpus, found.cpus() ? "rank" : "GPU"), " (",
                      found.cpus() ? "CPU ranks" : cluster.gpu, ", ", Counted(cluster.nodes, "node"), " of ",
                      cluster.gpus_per_node, ")");
}

std::string StepText(const Found& found, double seconds) {
  return found.result.seconds ? SecondsText(seconds) : FlopText(seconds);
}

std::string RateText(const TunedLayout& layout) {
  return layout.speed ? DigitsText(layout.speed->tokens_per_second, 5) : "-";
}

std::string MemoryText(const TunedLayout& layout) {
  RoleEstimate fullest;
  fullest.planned.parameters = layout.memory;
  fullest.limit = layout.limit;
  return MemoryUnitOf({fullest}).Text(layout.memory);
}

std::string WaitsText(const TunedLayout& layout) {
  if (layout.waits.empty()) return "nobody";
  // "language.s0, 2 samples of radio_encoder: 25.0 % for radio_encoder.s0": numbers must not run into each other.
  return absl::StrCat(layout.waits, layout.waits.find(' ') == std::string::npos ? " " : ": ",
                      ShareText(layout.waiting, 1),
                      layout.waits_for.empty() ? "" : absl::StrCat(" for ", layout.waits_for));
}

std::string LayoutText(const TunedLayout& layout) {
  return layout.alike > 0 ? absl::StrCat(layout.line, "; and ", WithCommas(layout.alike), " like it") : layout.line;
}

std::string BoundText(const TunedLayout& layout) {
  return layout.bound.empty() ? "-" : absl::StrCat(layout.bound, " ", ShareText(layout.bound_share, 1));
}

std::string GapFigure(const Found& found) {
  const double gap = found.result.gap;
  if (!found.chosen() || !std::isfinite(gap)) return "unknown";
  return absl::StrFormat("%.1f %%", std::max(0.0, std::ceil(1000 * gap - 1e-9)) / 10);
}

std::string NameOfLayout(const Found& found, size_t index) {
  return absl::StrCat(index + 1, found.result.best[index].equal && index > 0 ? " =" : "");
}

std::vector<std::string> Remarks(const Found& found) {
  std::vector<std::string> remarks;
  const TuneResult& result = found.result;
  if (found.chosen() && found.chosen()->changes.empty()) remarks.emplace_back("The first row is the given layout.");
  const auto equal =
      std::count_if(result.best.begin(), result.best.end(), [](const TunedLayout& layout) { return layout.equal; });
  if (equal > 1) remarks.push_back(EqualText(result));
  if (std::string simplest = SimplestText(found); !simplest.empty()) remarks.push_back(std::move(simplest));
  if (found.chosen()) remarks.push_back(GapText(found));
  if (!result.interrupted && !result.at_limit && result.best.size() < result.asked && result.counts.time > 0)
    remarks.push_back(ShortListText(result));
  if (!found.searched) return remarks;
  remarks.push_back(SpaceText(result));
  if (result.moved.searched && found.chosen()) remarks.push_back(MovedText(found));
  for (const TuneSensitivity& sensitivity : result.sensitivity) remarks.push_back(SensitivityText(sensitivity));
  const auto proved =
      std::count_if(result.best.begin(), result.best.end(), [](const TunedLayout& layout) { return layout.proved; });
  if (proved == 1) remarks.emplace_back("One layout is proved: its plan keeps every rule and the loss curve.");
  if (proved > 1) {
    remarks.push_back(absl::StrCat(proved == std::ssize(result.best) ? "All of these" : Counted(proved, "layout"),
                                   " are proved: their plans keep every rule and the loss curve."));
  }
  if (!result.seconds) {
    remarks.emplace_back(
        "The speed of the device is unknown (cluster.gpu): a step has FLOPs instead of seconds, and communication "
        "takes no time.");
  }
  return remarks;
}

std::string FoundText(const Found& found, size_t width) {
  std::string text = absl::StrCat(ClusterText(found), "\n\n");
  if (!found.chosen()) {
    absl::StrAppend(&text, Wrapped(found.result.problem, width), "\n");
    if (found.searched) absl::StrAppend(&text, Wrapped(SpaceText(found.result), width, 2), "\n");
    return text;
  }
  Table table({"", "step", found.cpus() ? "tok/s/rank" : "tok/s/GPU", "memory", "who waits", "what binds", "layout"});
  if (found.result.given) {
    table.Add(Row(found, "given", *found.result.given));
  } else {
    table.Add({"given", "", "", "", "", "", "does not run on so many ranks, or does not fit"});
  }
  for (size_t i = 0; i < found.result.best.size(); ++i)
    table.Add(Row(found, NameOfLayout(found, i), found.result.best[i]));
  absl::StrAppend(&text, table.Text("", width), "\n");
  for (const std::string& remark : Remarks(found)) absl::StrAppend(&text, Wrapped(remark, width, 2), "\n");
  return text;
}

std::string FoundComment(const std::string& introduction, Found found) {
  constexpr size_t kWidth = 116, kLayouts = 5;
  if (found.result.best.size() > kLayouts) found.result.best.resize(kLayouts);
  return absl::StrCat(introduction, "\n\n", FoundText(found, kWidth));
}

std::string ScalingText(const std::vector<Found>& found, size_t width) {
  const bool cpus = !found.empty() && found.front().cpus();
  Table table({cpus ? "ranks" : "GPUs", "step", cpus ? "tok/s/rank" : "tok/s/GPU", "memory", "hours",
               cpus ? "rank-hours" : "GPU-hours", "what binds", "layout"});
  std::string notes;
  for (const Found& one : found) {
    const std::string name = WithCommas(one.result.gpus);
    if (const TunedLayout* layout = one.chosen()) {
      table.Add({name, StepText(one, layout->seconds), RateText(*layout), MemoryText(*layout),
                 layout->speed ? HoursText(layout->speed->hours) : "",
                 layout->speed ? HoursText(layout->speed->rank_hours) : "", BoundText(*layout), layout->line});
      if (one.result.interrupted || one.result.at_limit || one.result.gap > 0)
        absl::StrAppend(&notes, Wrapped(absl::StrCat(name, ": ", GapText(one)), width, 2), "\n");
    } else {
      table.Add({name, "", "", "", "", "", "", one.searched ? "none" : "not searched"});
      absl::StrAppend(&notes, Wrapped(absl::StrCat(name, ": ", one.result.problem), width, 2), "\n");
    }
  }
  return absl::StrCat(table.Text("", width), notes.empty() ? "" : "\n", notes);
}

}  // namespace planwright
