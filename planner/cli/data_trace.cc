#include "planner/cli/data_trace.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "planner/base/files/exit_status.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/status_macros.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/command.h"
#include "planner/cli/own_file.h"
#include "planner/cli/sample_runs.h"
#include "planner/cli/terminal.h"
#include "planner/data/pictures/patch_picture.h"
#include "planner/data/samples/token_texts.h"
#include "planner/plan/balanced_slots.h"
#include "planner/views/show/show.h"

namespace planwright {
namespace {

struct TracedImage {
  size_t encoder = 0;
  int64_t image = 0, rows = 0, cols = 0;
  std::string file;  // that it was written to; empty: it was not
};

struct TracedSample {
  int64_t number = 0;
  Sample sample;
  SampleOrigin origin;
  std::vector<TokenRun> runs;
  std::vector<std::string> texts;  // bytes of each run
  std::vector<TracedImage> images;
};

// The samples that a lane of the language model has in a step, in the order of its microbatches. With balance a lane
// has places, and the order of the step says which sample stands there.
absl::StatusOr<std::vector<int64_t>> SamplesOfStep(const Plan& plan, const SampleSource& source, int64_t step,
                                                   int64_t lane) {
  int lanes = 1;
  for (const Module& module : plan.modules) {
    if (module.carries_loss) lanes = module.grid.dp;
  }
  const Budget& budget = plan.budget;
  if (step > budget.steps) return absl::InvalidArgumentError(absl::StrCat("the run has ", budget.steps, " steps"));
  if (lane >= lanes)
    return absl::InvalidArgumentError(absl::StrCat("the language model has the lanes 0 to ", lanes - 1));
  const LaneSamples part = SamplesOfLane(budget.block_samples, lanes, static_cast<int>(lane));
  const int64_t begin = (step - 1) * budget.global_samples;
  std::vector<int64_t> order;
  if (plan.data.balance == "images") {
    ABSL_ASSIGN_OR_RETURN(const std::vector<int64_t> patches, PatchesOfSamples(source, begin, budget.global_samples));
    order = BalancedSlots(patches);
  }
  std::vector<int64_t> samples;
  for (int64_t m = 0; m < budget.microbatches; ++m) {
    for (int64_t i = part.first; i < part.end; ++i) {
      const int64_t slot = m * budget.block_samples + i;
      samples.push_back(begin + (order.empty() ? slot : order[slot]));
    }
  }
  return samples;
}

absl::StatusOr<std::vector<int64_t>> WantedSamples(const Plan& plan, const SampleSource& source,
                                                   const DataOptions& options) {
  const bool by_step = options.step || options.lane;
  if (by_step == options.sample.has_value())
    return absl::InvalidArgumentError("say which: --sample N, or --step N --lane L");
  if (!by_step) return std::vector<int64_t>{*options.sample};
  if (!options.step || !options.lane)
    return absl::InvalidArgumentError("--step and --lane belong together: --step N --lane L");
  return SamplesOfStep(plan, source, *options.step, *options.lane);
}

// Writes what each encoder sees, if there is a folder to write to.
absl::Status TakeImages(const DataPlan& data, const std::string& folder, TracedSample& traced) {
  for (size_t e = 0; e < traced.sample.images.size(); ++e) {
    for (size_t i = 0; i < traced.sample.images[e].size(); ++i) {
      const Image& image = traced.sample.images[e][i];
      TracedImage& taken = traced.images.emplace_back(TracedImage{
          .encoder = e, .image = static_cast<int64_t>(i), .rows = image.rows, .cols = image.cols, .file = ""});
      if (folder.empty()) continue;
      ABSL_ASSIGN_OR_RETURN(const std::string png,
                            PngOfPatches(image, data.encoders[e].patch, data.encoders[e].norm()));
      taken.file =
          absl::StrCat(folder, "/sample-", traced.number, ".image-", i + 1, ".", data.encoders[e].module, ".png");
      ABSL_RETURN_IF_ERROR(
          CheckOnlyOwn(taken.file, "picture of `plan data trace`: --images names another folder", IsPngOfPatches));
      ABSL_RETURN_IF_ERROR(WriteFileAtomically(taken.file, png));
    }
  }
  return absl::OkStatus();
}

// The texts of a source's tokens. A source whose shards say nothing about them has none.
class Texts {
 public:
  explicit Texts(const DataPlan& data) : data_(data) {}
  absl::StatusOr<const TokenTexts*> Of(const std::string& source) {
    if (!RowOf(data_.kind).tokenized) return nullptr;
    auto [found, added] = opened_.try_emplace(source, TokenTexts::Open(data_, source));
    const absl::StatusOr<TokenTexts>& texts = found->second;
    if (absl::IsNotFound(texts.status())) return nullptr;
    if (!texts.ok()) return texts.status();
    return &*texts;
  }

 private:
  const DataPlan& data_;
  std::map<std::string, absl::StatusOr<TokenTexts>> opened_;
};

absl::StatusOr<TracedSample> Trace(const Plan& plan, const SampleSource& source, int64_t number,
                                   const std::string& folder, Texts& texts) {
  TracedSample traced;
  traced.number = number;
  absl::StatusOr<Sample> sample = source.Get(number, folder.empty() ? SampleParts::kText : SampleParts::kAll);
  if (!sample.ok())
    return absl::Status(sample.status().code(), absl::StrCat("sample ", number, ": ", sample.status().message()));
  traced.sample = *std::move(sample);
  traced.origin = source.Origin(number);
  traced.runs = RunsOfSample(plan.data, traced.sample, traced.origin);
  ABSL_ASSIGN_OR_RETURN(const TokenTexts* words, texts.Of(traced.origin.source));
  for (const TokenRun& run : traced.runs) {
    std::string& text = traced.texts.emplace_back();
    if (words == nullptr || run.sort == TokenRun::Sort::kImage || run.sort == TokenRun::Sort::kPadding) continue;
    for (int64_t i = run.first; i < run.end; ++i) text += words->Bytes(traced.sample.tokens[i]);
  }
  ABSL_RETURN_IF_ERROR(TakeImages(plan.data, folder, traced));
  return traced;
}

// --- as text

// "256 x4, 104, 105": equal neighbours once.
std::string NumbersText(const std::vector<int64_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i;
    while (end < numbers.size() && numbers[end] == numbers[i]) ++end;
    absl::StrAppend(&text, text.empty() ? "" : ", ", numbers[i]);
    if (end - i > 1) absl::StrAppend(&text, " x", end - i);
    i = end;
  }
  return text;
}

std::string RunText(const DataPlan& data, const TracedSample& traced, size_t index) {
  const TokenRun& run = traced.runs[index];
  if (run.sort == TokenRun::Sort::kPadding) return Counted(run.end - run.first, "token");
  if (run.sort == TokenRun::Sort::kImage) {
    std::string text = absl::StrCat("image ", run.image + 1, " of ", data.encoders[run.encoder].module);
    for (const TracedImage& image : traced.images) {
      if (image.encoder == run.encoder && image.image == run.image)
        absl::StrAppend(&text, ", ", image.rows, " x ", image.cols, " patches", image.file.empty() ? "" : ": ",
                        image.file);
    }
    return text;
  }
  if (traced.texts[index].empty()) return Counted(run.end - run.first, "token");
  return "\"" + Printable(traced.texts[index]) + "\"";
}

// What of a document is there.
std::string PartText(const DocumentPart& part) {
  if (part.first == 0 && part.end == part.whole) return ", whole: " + Counted(part.whole, "token");
  return absl::StrCat(", its tokens ", part.first, " to ", part.end - 1, " of ", part.whole);
}

std::string SampleText(const DataPlan& data, const TracedSample& traced, size_t width, bool color) {
  const SampleOrigin& origin = traced.origin;
  std::string text = absl::StrCat("sample ", traced.number);
  if (!origin.source.empty())
    absl::StrAppend(&text, " of ", origin.source, ": epoch ", origin.epoch, ", pack ", origin.pack);
  text += "\n";
  int64_t position = 0;
  for (const DocumentPart& part : origin.documents) {
    const int64_t tokens = part.end - part.first;
    absl::StrAppend(&text, "  positions ", position, " to ", position + tokens - 1, ": ", Printable(part.where),
                    PartText(part), "\n");
    position += tokens;
  }
  for (size_t i = 0; i < traced.runs.size(); ++i) {
    const TokenRun& run = traced.runs[i];
    const std::string place = PadRight(absl::StrCat("  ", run.first, " to ", run.end - 1), 18);
    const std::string prefix = place + PadRight(SortName(run.sort), 12);
    const size_t rest = width > prefix.size() + 20 ? width - prefix.size() : 20;
    bool first = true;
    for (absl::string_view line : absl::StrSplit(Wrapped(RunText(data, traced, i), rest), '\n')) {
      text += first ? prefix : std::string(prefix.size(), ' ');
      first = false;
      const bool learnt = color && run.sort == TokenRun::Sort::kLearnt;
      absl::StrAppend(&text, learnt ? "\x1b[32m" : "", line, learnt ? "\x1b[0m" : "", "\n");
    }
  }
  text += Wrapped("  ids     " + NumbersText(traced.sample.tokens), width, 10) + "\n";
  return text + Wrapped("  labels  " + NumbersText(traced.sample.labels), width, 10) + "\n";
}

// --- as JSON

nlohmann::ordered_json SampleJson(const DataPlan& data, const TracedSample& traced) {
  using nlohmann::ordered_json;
  ordered_json documents = ordered_json::array(), runs = ordered_json::array(), images = ordered_json::array();
  for (const DocumentPart& part : traced.origin.documents)
    documents.push_back({{"where", part.where}, {"first", part.first}, {"end", part.end}});
  for (size_t i = 0; i < traced.runs.size(); ++i) {
    const TokenRun& run = traced.runs[i];
    ordered_json one = {{"first", run.first}, {"end", run.end}, {"sort", SortName(run.sort)}};
    if (run.sort == TokenRun::Sort::kImage) {
      one["encoder"] = data.encoders[run.encoder].module;
      one["image"] = run.image;
    } else if (!traced.texts[i].empty()) {
      one["text"] = traced.texts[i];
    }
    runs.push_back(std::move(one));
  }
  for (const TracedImage& image : traced.images) {
    ordered_json one = {{"encoder", data.encoders[image.encoder].module},
                        {"image", image.image},
                        {"rows", image.rows},
                        {"cols", image.cols}};
    if (!image.file.empty()) one["file"] = image.file;
    images.push_back(std::move(one));
  }
  std::vector<int64_t> mask(traced.sample.loss_mask.begin(), traced.sample.loss_mask.end());
  ordered_json json = {{"sample", traced.number}};
  if (!traced.origin.source.empty()) {
    json["source"] = traced.origin.source;
    json["epoch"] = traced.origin.epoch;
    json["pack"] = traced.origin.pack;
  }
  json["documents"] = std::move(documents);
  json["runs"] = std::move(runs);
  json["images"] = std::move(images);
  json["tokens"] = traced.sample.tokens;
  json["labels"] = traced.sample.labels;
  json["loss_mask"] = std::move(mask);
  if (data.packed_documents) json["document_ends"] = traced.sample.document_ends;
  return json;
}

int CannotRead(const absl::Status& status) {
  UsageError(status);
  return absl::IsResourceExhausted(status) ? kExitStorage : kExitUsage;
}

}  // namespace

int TraceData(const Plan& plan, const DataOptions& options) {
  const std::string& folder = options.images;
  if (!folder.empty() && plan.data.encoders.empty())
    return UsageError("option `--images`: no module of this plan sees images");
  const absl::StatusOr<std::unique_ptr<SampleSource>> source = OpenSampleSource(plan);
  if (!source.ok()) return CannotRead(source.status());
  const absl::StatusOr<std::vector<int64_t>> wanted = WantedSamples(plan, **source, options);
  if (!wanted.ok()) return UsageError(wanted.status());
  if (!folder.empty()) {
    if (absl::Status status = MakeDirectories(folder); !status.ok()) return CannotRead(status);
  }
  Texts texts(plan.data);
  nlohmann::ordered_json samples = nlohmann::ordered_json::array();
  for (int64_t number : *wanted) {
    const absl::StatusOr<TracedSample> traced = Trace(plan, **source, number, folder, texts);
    if (!traced.ok()) return CannotRead(traced.status());
    if (options.json) {
      samples.push_back(SampleJson(plan.data, *traced));
    } else {
      std::cout << SampleText(plan.data, *traced, LineWidth(STDOUT_FILENO, kShowWidth), WantsColor(STDOUT_FILENO));
    }
  }
  if (options.json) std::cout << JsonText(nlohmann::ordered_json{{"samples", std::move(samples)}}, 2) << "\n";
  return kExitSuccess;
}

}  // namespace planwright
