#include "planner/cli/data_index.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <utility>

#include "planner/base/files/exit_status.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/command.h"
#include "planner/cli/progress_bar.h"
#include "planner/cli/terminal.h"
#include "planner/data/samples/count_samples.h"
#include "planner/recipe/diagnostics/render.h"
#include "planner/views/show/quantities.h"
#include "planner/views/show/show.h"

namespace planwright {
namespace {

using IndexClock = std::chrono::steady_clock;

// Says that the reading of shards begins, and how far it is.
class IndexTelling {
 public:
  void operator()(const IndexProgress& progress) {
    if (progress.waiting) {
      std::cerr << "index of the data: another process makes it; waiting\n" << std::flush;
      return;
    }
    if (!progress.note.empty()) {
      std::cerr << "index of the data: " << progress.note << "\n" << std::flush;
      return;
    }
    if (!std::exchange(begun_, true)) {
      std::cerr << "index of the data: reading " << Counted(progress.all_shards, "shard") << ", "
                << BytesText(progress.all_bytes) << "\n"
                << std::flush;
    }
    if (progress.all_bytes > 0) {
      bar_.Show(static_cast<double>(progress.bytes) / static_cast<double>(progress.all_bytes),
                "of " + BytesText(progress.all_bytes) + ", " + Counted(progress.documents, "document"));
    }
  }

 private:
  bool begun_ = false;
  ProgressBar bar_;
};

int64_t DamagedOf(const IndexedSource& source) { return RowOf(source.kind).damageable ? source.left_out : 0; }

// What a source was found to be, in one line. Of damaged documents DamagedLine tells.
std::string SourceLine(const IndexedSource& source) {
  std::string line = "index of the data: " + source.name + ": " + Counted(source.documents, "document") + ", " +
                     Counted(source.tokens, "token") + ", " + Counted(source.images, "image");
  if (source.left_out > DamagedOf(source)) line += ", " + WithCommas(source.left_out) + " left out (no tokens)";
  return Printable(line);
}

// What becomes of images that say that they are to be turned; empty: nothing is to be said.
std::string TurnedText(const DataPlan& data, const IndexedSource& source) {
  if (source.turned == 0 || data.encoders.empty()) return "";
  const bool one = source.turned == 1;
  const std::string is = one ? "it is " : "they are ", say = Printable(source.name) + ": EXIF says of " +
                                                             Counted(source.turned, "image") + " that " + is +
                                                             "to be turned, and " + is;
  if (data.orientation == "exif") return say + "turned";
  return say + "taken as stored: `orientation: exif` in `data` turns " + (one ? "it" : "them") +
         ", as most processors do";
}

// Whether one of the samples has a token with a loss, which of most data the first one has. The rank that cannot read a
// sample tells of it.
int CheckSomethingIsLearnt(const SampleSource& source, int64_t samples) {
  constexpr int64_t kMostLooked = 10'000;
  const int64_t looked = std::min(samples, kMostLooked);
  for (int64_t i = 0; i < looked; ++i) {
    const absl::StatusOr<Sample> sample = source.Get(i, SampleParts::kText);
    if (!sample.ok()) return kExitSuccess;
    const std::vector<double>& mask = sample->loss_mask;
    if (std::any_of(mask.begin(), mask.end(), [](double weight) { return weight != 0; })) return kExitSuccess;
  }
  const std::string none = "no token of " + std::string(looked == samples ? "the " : "the first ") +
                           Counted(looked, "sample") + " has a loss: their masks are all 0";
  Diagnostics told;
  if (looked == samples) {
    told.Error(DiagnosticKind::kNoLossTokens, {}, none,
               "nothing would be learnt but what moe.aux_loss asks for; look at the masks: `plan data trace`");
    SourceTexts no_files;
    std::cerr << RenderText(told.sorted(), no_files, WantsColor(STDERR_FILENO));
    return kExitInvalid;
  }
  std::cerr << "warning: " << none << "; steps of such samples teach nothing but what moe.aux_loss asks for\n";
  return kExitSuccess;
}

// What becomes of the sizes of a source's images, and of documents that fit no sample; empty: nothing is to be said.
std::string FittedText(const DataPlan& data, const SourceCounts& source) {
  std::string text;
  const auto line = [&](const std::string& what) { text += Printable(source.source + ": " + what) + "\n"; };
  const auto of_images = [&](int64_t count) {
    return WithCommas(count) + " of " + Counted(source.images, "image") + (count == 1 ? " has " : " have ");
  };
  const bool square = data.grid == "square";
  if (source.smaller > 0) {
    line(of_images(source.smaller) +
         (square ? "more pixels than a square of max_image" : "more than max_patches " + WithCommas(data.max_patches)) +
         (source.smaller == 1 ? " and becomes smaller: " : " and become smaller; the largest is ") + source.largest +
         ", " + WithCommas(source.largest_width) + " x " + WithCommas(source.largest_height) + " pixels");
  }
  if (source.larger > 0) {
    line(of_images(source.larger) +
         (square ? "fewer pixels than a square of max_image"
                 : "fewer than min_patches " + WithCommas(data.min_patches)) +
         (source.larger == 1 ? " and becomes larger" : " and become larger"));
  }
  if (source.skipped > 0)
    line("left out: " + Counted(source.skipped, "document") + " longer than a sample (long: skip)");
  if (source.misfit > 0)
    line("left out: " + Counted(source.misfit, "document") + " with an image that is longer than a sample");
  return text;
}

// Lines that end with a line break, on stderr.
void TellOfIndex(const std::string& lines) {
  for (size_t begin = 0; begin < lines.size();) {
    const size_t end = lines.find('\n', begin) + 1;
    std::cerr << "index of the data: " << lines.substr(begin, end - begin);
    begin = end;
  }
}

// What SamplesOnce says of the sources of a set.
int64_t AllSamples(const EvaluationSet& set, const std::vector<SourceCounts>& counts) {
  std::vector<int64_t> samples;
  for (const SourceCounts& source : counts) samples.push_back(source.samples);
  return SamplesOnce(set.data, samples);
}

int ReportBadData(const char* what, const absl::Status& status) {
  UsageError(what + (":\n" + std::string(status.message())));
  if (absl::IsResourceExhausted(status)) return kExitStorage;
  return absl::IsInvalidArgument(status) ? kExitInvalid : kExitUsage;
}

}  // namespace

absl::StatusOr<DataIndexResult> MakeDataIndex(const DataPlan& data, const IndexOptions& options) {
  const IndexClock::time_point begin = IndexClock::now();
  absl::StatusOr<std::vector<IndexedSource>> sources;
  {
    IndexTelling telling;
    sources = UpdateIndex(data, options, [&](const IndexProgress& progress) { telling(progress); });
  }
  if (!sources.ok()) return sources.status();
  DataIndexResult result;
  result.sources = *std::move(sources);
  result.seconds = std::chrono::duration<double>(IndexClock::now() - begin).count();
  return result;
}

std::string DamagedLine(const IndexedSource& source) {
  const int64_t damaged = DamagedOf(source), padded = source.padded, gone = damaged - padded;
  if (damaged == 0) return "";
  std::string causes;
  for (const auto& [cause, count] : source.causes)
    causes += (causes.empty() ? "" : ", ") + WithCommas(count) + " with " + cause;
  const std::string become = gone == 0     ? "padding in " + std::string(damaged == 1 ? "its" : "their") + " place"
                             : padded == 0 ? "left out"
                                           : WithCommas(padded) + (padded == 1 ? " is" : " are") +
                                                 " padding in place, " + WithCommas(gone) + " left out";
  return Printable(source.name + ": " + WithCommas(damaged) + " of " + Counted(source.documents + gone, "document") +
                   (damaged == 1 ? " is" : " are") + " damaged (" + causes + "): " + become +
                   " (data.damaged: skip); the list is " + source.left_out_list) +
         "\n";
}

void TellOfDamagedAtHand(const Plan& plan) {
  const auto tell = [](const DataPlan& data) {
    // Elsewhere a damaged document ends the run, and no index has one.
    if (!RowOf(data.kind).indexed || data.damaged != "skip") return;
    for (const IndexedSource& source : SourcesAtHand(data)) {
      if (const std::string line = DamagedLine(source); !line.empty()) std::cerr << "note: " << line;
    }
  };
  tell(plan.data);
  for (const EvaluationSet& set : plan.evaluation.sets) tell(set.data);
}

std::string DataIndexText(const DataPlan& data, const DataIndexResult& result, size_t width) {
  Table table({"source", "kind", "shards", "read", "documents", "tokens", "images", "damaged", "digest"});
  for (const IndexedSource& source : result.sources) {
    table.Add({Printable(source.name), std::string(SourceKindName(source.kind)), WithCommas(source.shards),
               WithCommas(source.shards_read), WithCommas(source.documents), WithCommas(source.tokens),
               WithCommas(source.images), WithCommas(DamagedOf(source)), source.digest.substr(0, 12)});
  }
  std::string text = table.Text("", width);
  for (const IndexedSource& source : result.sources) {
    text += DamagedLine(source);
    if (source.left_out > DamagedOf(source))
      text += Printable(source.name) + ": " + Counted(source.left_out, "document") + " without a token left out\n";
    if (const std::string turned = TurnedText(data, source); !turned.empty()) text += turned + "\n";
    for (const std::string& note : source.notes) text += Printable(source.name + ": " + note) + "\n";
  }
  for (const SourceCounts& source : result.counts) text += FittedText(data, source);
  return text + SecondsText(result.seconds) + "\n";
}

nlohmann::ordered_json DataIndexJson(const DataPlan& data, const DataIndexResult& result) {
  nlohmann::ordered_json sources = nlohmann::ordered_json::array();
  for (const IndexedSource& source : result.sources) {
    nlohmann::ordered_json one = {{"name", source.name},
                                  {"kind", SourceKindName(source.kind)},
                                  {"file", source.path},
                                  {"shards", source.shards},
                                  {"shards_read", source.shards_read},
                                  {"documents", source.documents},
                                  {"tokens", source.tokens},
                                  {"images", source.images},
                                  {"turned", source.turned},
                                  {"damaged", DamagedOf(source)},
                                  {"digest", source.digest}};
    if (!source.left_out_list.empty()) one["damaged_list"] = source.left_out_list;
    if (!source.causes.empty()) one["damaged_causes"] = source.causes;
    if (source.padded > 0) one["padding"] = source.padded;
    if (source.left_out > DamagedOf(source)) one["without_tokens"] = source.left_out - DamagedOf(source);
    for (const SourceCounts& counts : result.counts) {
      if (counts.source != source.name) continue;
      one["images_smaller"] = counts.smaller;
      one["images_larger"] = counts.larger;
      if (!counts.largest.empty())
        one["largest_image"] = {
            {"name", counts.largest}, {"width", counts.largest_width}, {"height", counts.largest_height}};
      one["longer_than_a_sample"] = counts.skipped + counts.misfit;
    }
    if (!source.notes.empty()) one["notes"] = source.notes;
    sources.push_back(std::move(one));
  }
  return {{"kind", DataKindName(data.kind)}, {"sources", std::move(sources)}, {"seconds", result.seconds}};
}

int ReportNoIndex(const absl::Status& status) { return ReportBadData("the data cannot be indexed", status); }

int CheckDocuments(const Plan& plan, const absl::StatusOr<std::unique_ptr<SampleSource>>& source,
                   const EvaluationSet* set) {
  if (!source.ok()) return ReportBadData("the data cannot be used", source.status());
  if (absl::Status kept = KeepCounted(plan.data, plan.budget.sequence_length, **source); !kept.ok()) {
    std::cerr
        << "warning: what the index counts cannot be kept, so samples count as full of images and as one document: "
        << Printable(std::string(kept.message())) << "\n";
  }
  const bool all = set != nullptr && set->samples == 0;
  return CheckSomethingIsLearnt(**source, all ? AllSamples(*set, (*source)->Counts()) : plan.budget.train_samples);
}

Plan PlanOfSet(const Plan& plan, const EvaluationSet& set) {
  Plan of_set;
  of_set.data = set.data, of_set.budget = plan.budget;
  of_set.budget.train_samples = set.samples;
  return of_set;
}

void WarnOfRepeats(const EvaluationSet& set, const std::vector<SourceCounts>& counts) {
  if (counts.size() != set.data.sources.size()) return;
  const int64_t once = AllSamples(set, counts);
  if (set.samples <= once) return;
  int64_t weights = 0;
  for (const SourcePlan& source : set.data.sources) weights += source.weight;
  // The source that is read most often, and how often.
  double times = 0, read = 0;
  const SourceCounts* most = nullptr;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double here = static_cast<double>(set.samples) * static_cast<double>(set.data.sources[i].weight) /
                        static_cast<double>(weights);
    const double of_source = here / static_cast<double>(counts[i].samples);
    if (of_source > times) times = of_source, read = here, most = &counts[i];
  }
  std::cerr << "warning: "
            << Printable("evaluation set " + set.name + " reads " + WithCommas(std::llround(read)) + " samples of " +
                         most->source + ", which has " + WithCommas(most->samples) + " of " +
                         Counted(most->documents, "document") + ": each evaluation reads them " +
                         (times < 2 ? "more than once" : WithCommas(static_cast<int64_t>(times)) + " times") +
                         "; `samples: all` reads each once, " + Counted(once, "sample"))
            << "\n";
}

namespace {

int MakeIndexOf(const Plan& plan, const IndexOptions& options, std::map<std::string, std::string>& digests,
                const EvaluationSet* set = nullptr) {
  if (RowOf(plan.data.kind).batch_file) {
    const absl::StatusOr<std::unique_ptr<SampleSource>> batch = OpenSampleSource(plan);
    return batch.ok() ? CheckSomethingIsLearnt(**batch, plan.budget.train_samples) : static_cast<int>(kExitSuccess);
  }
  if (!RowOf(plan.data.kind).indexed) return kExitSuccess;
  const absl::StatusOr<DataIndexResult> made = MakeDataIndex(plan.data, options);
  if (!made.ok()) return ReportNoIndex(made.status());
  for (const IndexedSource& source : made->sources) {
    if (source.made) std::cerr << SourceLine(source) << "\n";
    TellOfIndex(DamagedLine(source));  // each time: what is not learnt is easily forgotten
    const std::string turned = source.made ? TurnedText(plan.data, source) : "";
    if (!turned.empty()) std::cerr << "index of the data: " << turned << "\n";
    for (const std::string& note : source.notes)
      std::cerr << "index of the data: " << Printable(source.name + ": " + note) << "\n";
    digests[source.name] = source.digest;
  }
  const absl::StatusOr<std::unique_ptr<SampleSource>> source = OpenSources(plan);
  const bool any_made =
      std::any_of(made->sources.begin(), made->sources.end(), [](const IndexedSource& one) { return one.made; });
  std::vector<SourceCounts> counts;
  if (source.ok() && (any_made || set != nullptr)) counts = (*source)->Counts();
  for (const SourceCounts& one : counts) {
    if (any_made) TellOfIndex(FittedText(plan.data, one));
  }
  const int status = CheckDocuments(plan, source, set);
  if (set != nullptr && status == kExitSuccess) WarnOfRepeats(*set, counts);
  return status;
}

}  // namespace

int MakeIndexOfSets(const Plan& plan, const IndexOptions& options) {
  std::map<std::string, std::string> digests;  // nobody compares those of a set
  for (const EvaluationSet& set : plan.evaluation.sets) {
    if (const int status = MakeIndexOf(PlanOfSet(plan, set), options, digests, &set); status != kExitSuccess)
      return status;
  }
  return kExitSuccess;
}

int MakeIndexBeforeRanks(const Plan& plan, std::map<std::string, std::string>& digests) {
  const int status = MakeIndexOf(plan, {}, digests);
  return status == kExitSuccess ? MakeIndexOfSets(plan) : status;
}

}  // namespace planwright
