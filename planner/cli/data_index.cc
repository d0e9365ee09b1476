#include "planner/cli/data_index.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <utility>

#include "planner/base/files/exit_status.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/command.h"
#include "planner/cli/progress_bar.h"
#include "planner/cli/terminal.h"
#include "planner/data/samples/count_samples.h"
#include "planner/data/samples/sample_source.h"
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

std::string LeftOutText(const IndexedSource& source) {
  return WithCommas(source.left_out) + (!RowOf(source.kind).damageable && source.left_out > 0 ? " (no tokens)" : "");
}

// What a source was found to be, in one line.
std::string SourceLine(const IndexedSource& source) {
  std::string line = "index of the data: " + source.name + ": " + Counted(source.documents, "document") + ", " +
                     Counted(source.tokens, "token") + ", " + Counted(source.images, "image");
  if (source.left_out > 0) line += ", " + LeftOutText(source) + " left out";
  if (!source.left_out_list.empty()) line += " (" + source.left_out_list + ")";
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

std::string DataIndexText(const DataPlan& data, const DataIndexResult& result, size_t width) {
  Table table({"source", "kind", "shards", "read", "documents", "tokens", "images", "left out", "digest"});
  for (const IndexedSource& source : result.sources) {
    table.Add({Printable(source.name), std::string(SourceKindName(source.kind)), WithCommas(source.shards),
               WithCommas(source.shards_read), WithCommas(source.documents), WithCommas(source.tokens),
               WithCommas(source.images), WithCommas(source.left_out), source.digest.substr(0, 12)});
  }
  std::string text = table.Text("", width);
  for (const IndexedSource& source : result.sources) {
    if (!source.left_out_list.empty())
      text += Printable(source.name) + ": what was left out is listed in " + Printable(source.left_out_list) + "\n";
    if (!RowOf(source.kind).damageable && source.left_out > 0)
      text += Printable(source.name) + ": " + Counted(source.left_out, "document") + " without a token left out\n";
    if (const std::string turned = TurnedText(data, source); !turned.empty()) text += turned + "\n";
    for (const std::string& note : source.notes) text += Printable(source.name + ": " + note) + "\n";
  }
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
                                  {"left_out", source.left_out},
                                  {"digest", source.digest}};
    if (!source.left_out_list.empty()) one["left_out_list"] = source.left_out_list;
    if (!source.notes.empty()) one["notes"] = source.notes;
    sources.push_back(std::move(one));
  }
  return {{"kind", DataKindName(data.kind)}, {"sources", std::move(sources)}, {"seconds", result.seconds}};
}

int ReportNoIndex(const absl::Status& status) { return ReportBadData("the data cannot be indexed", status); }

int CheckDocuments(const Plan& plan) {
  const absl::StatusOr<std::unique_ptr<SampleSource>> source = OpenSources(plan);
  if (!source.ok()) return ReportBadData("the data cannot be used", source.status());
  if (absl::Status kept = KeepCounted(plan.data, plan.budget.sequence_length, **source); !kept.ok()) {
    std::cerr << "warning: what the index counts of images cannot be kept, so samples count as full of them: "
              << Printable(std::string(kept.message())) << "\n";
  }
  return CheckSomethingIsLearnt(**source, plan.budget.train_samples);
}

namespace {

int MakeIndexOf(const Plan& plan, std::map<std::string, std::string>& digests) {
  if (RowOf(plan.data.kind).batch_file) {
    const absl::StatusOr<std::unique_ptr<SampleSource>> batch = OpenSampleSource(plan);
    return batch.ok() ? CheckSomethingIsLearnt(**batch, plan.budget.train_samples) : static_cast<int>(kExitSuccess);
  }
  if (!RowOf(plan.data.kind).indexed) return kExitSuccess;
  const absl::StatusOr<DataIndexResult> made = MakeDataIndex(plan.data, {});
  if (!made.ok()) return ReportNoIndex(made.status());
  for (const IndexedSource& source : made->sources) {
    if (source.made) std::cerr << SourceLine(source) << "\n";
    const std::string turned = source.made ? TurnedText(plan.data, source) : "";
    if (!turned.empty()) std::cerr << "index of the data: " << turned << "\n";
    for (const std::string& note : source.notes)
      std::cerr << "index of the data: " << Printable(source.name + ": " + note) << "\n";
    digests[source.name] = source.digest;
  }
  return CheckDocuments(plan);
}

}  // namespace

int MakeIndexOfSets(const Plan& plan) {
  std::map<std::string, std::string> digests;  // nobody compares those of a set
  for (const EvaluationSet& set : plan.evaluation.sets) {
    Plan of_set;  // what sources of samples look at
    of_set.data = set.data, of_set.budget = plan.budget;
    of_set.budget.train_samples = set.samples;
    if (const int status = MakeIndexOf(of_set, digests); status != kExitSuccess) return status;
  }
  return kExitSuccess;
}

int MakeIndexBeforeRanks(const Plan& plan, std::map<std::string, std::string>& digests) {
  const int status = MakeIndexOf(plan, digests);
  return status == kExitSuccess ? MakeIndexOfSets(plan) : status;
}

}  // namespace planwright
