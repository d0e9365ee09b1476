#include "planner/cli/data_stats.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "planner/base/files/exit_status.h"
#include "planner/base/json/json_text.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/utf8.h"
#include "planner/base/threads/threads.h"
#include "planner/cli/command.h"
#include "planner/cli/histogram.h"
#include "planner/cli/progress_bar.h"
#include "planner/cli/sample_runs.h"
#include "planner/cli/terminal.h"
#include "planner/data/samples/count_samples.h"
#include "planner/data/samples/sample_source.h"
#include "planner/views/show/show.h"

namespace planwright {
namespace {

// One sample that was read.
struct SampleFigures {
  std::string source;
  int64_t tokens = 0, text_tokens = 0, image_tokens = 0, learnt = 0;  // without padding
  std::vector<int64_t> documents;                                     // tokens of each
  std::vector<int64_t> patches;                                       // of each image, for the first encoder
};

// Sums over the samples of one source that were read.
struct SourceFigures {
  int64_t samples = 0, tokens = 0, text_tokens = 0, image_tokens = 0, learnt = 0, documents = 0, images = 0;
};

SampleFigures FiguresOf(const DataPlan& data, const Sample& sample, const SampleOrigin& origin) {
  SampleFigures figures;
  figures.source = origin.source;
  for (const TokenRun& run : RunsOfSample(data, sample, origin)) {
    const int64_t tokens = run.end - run.first;
    if (run.sort == TokenRun::Sort::kPadding) continue;
    figures.tokens += tokens;
    (run.sort == TokenRun::Sort::kImage ? figures.image_tokens : figures.text_tokens) += tokens;
  }
  figures.learnt = std::count_if(sample.loss_mask.begin(), sample.loss_mask.end(), [](double x) { return x != 0; });
  for (const DocumentPart& part : origin.documents) figures.documents.push_back(part.end - part.first);
  if (!sample.images.empty()) {
    for (const Image& image : sample.images.front()) figures.patches.push_back(image.rows * image.cols);
  }
  return figures;
}

absl::StatusOr<std::vector<SampleFigures>> ReadFigures(const Plan& plan, const SampleSource& source, int64_t samples) {
  std::vector<SampleFigures> figures(samples);
  std::vector<absl::Status> problems(samples);
  std::mutex mutex;
  int64_t done = 0;
  ProgressBar bar;
  ForEachItem(ThreadsOfRank(), samples, [&](int64_t number) {
    const absl::StatusOr<Sample> sample = source.Get(number, SampleParts::kText);
    problems[number] = sample.status();
    if (sample.ok()) figures[number] = FiguresOf(plan.data, *sample, source.Origin(number));
    const std::scoped_lock lock(mutex);
    bar.Show(static_cast<double>(++done) / static_cast<double>(samples), "of " + Counted(samples, "sample"));
  });
  for (int64_t number = 0; number < samples; ++number) {
    if (!problems[number].ok())
      return absl::Status(problems[number].code(), absl::StrCat("sample ", number, ": ", problems[number].message()));
  }
  return figures;
}

struct DataFigures {
  int64_t run_samples = 0;                       // of the whole run
  std::vector<SourceCounts> counts;              // of each source of a mixture, by the index
  std::vector<double> shares;                    // of each
  std::vector<int64_t> of_run;                   // samples of the run that are of each
  std::vector<CountedImages> images;             // of all samples of an epoch of each
  std::vector<CountedDocuments> documents;       // of the same, where each is alone in its sample
  std::vector<SampleFigures> read;               // samples 0, 1, ...
  std::map<std::string, SourceFigures> sources;  // of those, by source
};

double Epochs(const DataFigures& figures, size_t source) {
  return static_cast<double>(figures.of_run[source]) / static_cast<double>(figures.counts[source].samples);
}

double Full(int64_t tokens, int64_t samples, int64_t length) {
  return samples == 0 ? 0 : static_cast<double>(tokens) / (static_cast<double>(samples) * static_cast<double>(length));
}

std::string Percent(double part) { return absl::StrFormat("%.1f%%", 100 * part); }

struct HistogramOf {
  const char* key;
  const char* title;
  std::vector<int64_t> values;
};

std::vector<HistogramOf> Histograms(const std::vector<SampleFigures>& read) {
  std::vector<HistogramOf> all = {{"sample_tokens", "tokens of a sample, without padding", {}},
                                  {"document_tokens", "tokens of a document in a sample", {}},
                                  {"sample_images", "images of a sample", {}},
                                  {"image_patches", "patches of an image", {}}};
  bool images = false;
  for (const SampleFigures& sample : read) images = images || !sample.patches.empty();
  for (const SampleFigures& sample : read) {
    all[0].values.push_back(sample.tokens);
    all[1].values.insert(all[1].values.end(), sample.documents.begin(), sample.documents.end());
    if (images) all[2].values.push_back(static_cast<int64_t>(sample.patches.size()));
    all[3].values.insert(all[3].values.end(), sample.patches.begin(), sample.patches.end());
  }
  return all;
}

std::string StatsText(const Plan& plan, const DataFigures& figures, size_t width) {
  const int64_t length = plan.budget.sequence_length;
  std::string text = absl::StrCat("data of kind ", std::string(DataKindName(plan.data.kind)), ", ",
                                  Counted(figures.run_samples, "sample"), " of ", Counted(length, "token"), "\n");
  if (!figures.counts.empty()) {
    Table of_run({"source", "share", "documents", "tokens", "samples", "full", "samples of the run", "epochs"});
    Table left(
        {"source", "whole", "cut", "pieces", "padding", "skipped", "damaged", "images do not fit", "without tokens"});
    for (size_t i = 0; i < figures.counts.size(); ++i) {
      const SourceCounts& source = figures.counts[i];
      of_run.Add({Printable(source.source), Percent(figures.shares[i]), WithCommas(source.documents),
                  WithCommas(source.tokens), WithCommas(source.samples),
                  Percent(Full(source.tokens, source.samples, length)), WithCommas(figures.of_run[i]),
                  absl::StrFormat("%.3g", Epochs(figures, i))});
      left.Add({Printable(source.source), WithCommas(source.whole), WithCommas(source.cut), WithCommas(source.pieces),
                WithCommas(source.padded), WithCommas(source.skipped), WithCommas(source.damaged),
                WithCommas(source.misfit), WithCommas(source.without_tokens)});
    }
    text += "\nan epoch of each source, and the run\n" + of_run.Text("  ", width);
    text += "\nwhat became of its documents\n" + left.Text("  ", width);
  }
  if (!figures.images.empty()) {
    Table images({"encoder", "source", "images", "of a sample", "at most", "patches of an image", "least", "most",
                  "of a sample, at most"});
    for (const CountedImages& one : figures.images) {
      const auto mean = [](int64_t sum, int64_t count) {
        return count == 0 ? std::string("-")
                          : absl::StrFormat("%.4g", static_cast<double>(sum) / static_cast<double>(count));
      };
      const auto size = [&](bool first) {
        return one.sizes.empty() ? std::string("-") : WithCommas(first ? one.sizes.front() : one.sizes.back());
      };
      images.Add({Printable(one.encoder), Printable(one.source), WithCommas(one.images), mean(one.images, one.samples),
                  WithCommas(one.max_images), mean(one.patches, one.images), size(true), size(false),
                  WithCommas(one.max_patches)});
    }
    text += "\nimages of an epoch of each source; least and most are means of the smallest and largest images\n" +
            images.Text("  ", width);
  }
  if (!figures.documents.empty()) {
    Table documents({"source", "documents", "of a sample", "scores that attention computes"});
    for (const CountedDocuments& one : figures.documents)
      documents.Add({Printable(one.source), WithCommas(one.documents),
                     absl::StrFormat("%.4g", static_cast<double>(one.documents) / static_cast<double>(one.samples)),
                     Percent(one.ShareOfScores(length))});
    text += "\ndocuments of an epoch of each source, padding too\n" + documents.Text("  ", width);
  }
  Table read({"source", "samples", "full", "text tokens", "image tokens", "learnt", "documents", "images"});
  for (const auto& [name, source] : figures.sources) {
    read.Add({name.empty() ? std::string(DataKindName(plan.data.kind)) : Printable(name), WithCommas(source.samples),
              Percent(Full(source.tokens, source.samples, length)), WithCommas(source.text_tokens),
              WithCommas(source.image_tokens), WithCommas(source.learnt), WithCommas(source.documents),
              WithCommas(source.images)});
  }
  text += "\nthe first " + Counted(static_cast<int64_t>(figures.read.size()), "sample") + "\n" + read.Text("  ", width);
  for (const HistogramOf& histogram : Histograms(figures.read)) {
    const std::string bars = HistogramText(histogram.title, histogram.values);
    if (!bars.empty()) text += "\n" + bars;
  }
  return text;
}

nlohmann::ordered_json StatsJson(const Plan& plan, const DataFigures& figures) {
  using nlohmann::ordered_json;
  const int64_t length = plan.budget.sequence_length;
  ordered_json sources = ordered_json::array(), read = ordered_json::array(), histograms = ordered_json::object();
  for (size_t i = 0; i < figures.counts.size(); ++i) {
    const SourceCounts& source = figures.counts[i];
    sources.push_back({{"name", source.source},
                       {"share", figures.shares[i]},
                       {"documents", source.documents},
                       {"whole", source.whole},
                       {"cut", source.cut},
                       {"pieces", source.pieces},
                       {"padding", source.padded},
                       {"skipped", source.skipped},
                       {"damaged", source.damaged},
                       {"images_do_not_fit", source.misfit},
                       {"without_tokens", source.without_tokens},
                       {"tokens", source.tokens},
                       {"samples", source.samples},
                       {"full", Full(source.tokens, source.samples, length)},
                       {"run_samples", figures.of_run[i]},
                       {"epochs", Epochs(figures, i)}});
  }
  for (const auto& [name, source] : figures.sources) {
    ordered_json one = ordered_json::object();
    if (!name.empty()) one["name"] = name;
    one.update({{"samples", source.samples},
                {"full", Full(source.tokens, source.samples, length)},
                {"text_tokens", source.text_tokens},
                {"image_tokens", source.image_tokens},
                {"learnt_tokens", source.learnt},
                {"documents", source.documents},
                {"images", source.images}});
    read.push_back(std::move(one));
  }
  ordered_json images = ordered_json::array();
  for (const CountedImages& one : figures.images) {
    images.push_back({{"encoder", one.encoder},
                      {"source", one.source},
                      {"samples", one.samples},
                      {"images", one.images},
                      {"patches", one.patches},
                      {"max_images_of_sample", one.max_images},
                      {"max_patches_of_sample", one.max_patches},
                      {"sizes", one.sizes}});
  }
  ordered_json documents = ordered_json::array();
  for (const CountedDocuments& one : figures.documents) {
    documents.push_back({{"source", one.source},
                         {"samples", one.samples},
                         {"documents", one.documents},
                         {"mean_squares", one.mean_squares},
                         {"share_of_scores", one.ShareOfScores(length)}});
  }
  for (const HistogramOf& histogram : Histograms(figures.read))
    histograms[histogram.key] = HistogramJson(histogram.values);
  return {{"kind", DataKindName(plan.data.kind)}, {"sequence_length", length},   {"run_samples", figures.run_samples},
          {"sources", std::move(sources)},        {"images", std::move(images)}, {"documents", std::move(documents)},
          {"read_samples", figures.read.size()},  {"read", std::move(read)},     {"histograms", std::move(histograms)}};
}

}  // namespace

int StatsOfData(const Plan& plan, const DataOptions& options) {
  DataFigures figures;
  figures.run_samples = plan.budget.steps * plan.budget.global_samples;
  const int64_t samples = std::min(options.samples, figures.run_samples);
  const absl::StatusOr<std::unique_ptr<SampleSource>> source = OpenSampleSource(plan);
  if (!source.ok()) return UsageError(source.status());
  absl::StatusOr<std::vector<SampleFigures>> read = ReadFigures(plan, **source, samples);
  if (!read.ok()) return UsageError(read.status());
  figures.counts = (*source)->Counts();
  absl::StatusOr<std::vector<CountedImages>> images = (*source)->CountImages();
  if (!images.ok()) return UsageError(images.status());
  figures.images = *std::move(images);
  figures.documents = (*source)->CountDocuments();
  int64_t weights = 0;
  for (const SourcePlan& each : plan.data.sources) weights += each.weight;
  for (const SourcePlan& each : plan.data.sources)
    figures.shares.push_back(static_cast<double>(each.weight) / static_cast<double>(weights));
  figures.of_run = SamplesOfSources(plan.data, figures.run_samples);
  figures.read = *std::move(read);
  for (const SampleFigures& sample : figures.read) {
    SourceFigures& sum = figures.sources[sample.source];
    ++sum.samples;
    sum.tokens += sample.tokens;
    sum.text_tokens += sample.text_tokens;
    sum.image_tokens += sample.image_tokens;
    sum.learnt += sample.learnt;
    sum.documents += static_cast<int64_t>(sample.documents.size());
    sum.images += static_cast<int64_t>(sample.patches.size());
  }
  if (options.json) {
    std::cout << JsonText(StatsJson(plan, figures), 2) << "\n";
  } else {
    std::cout << StatsText(plan, figures, LineWidth(STDOUT_FILENO, kShowWidth));
  }
  return kExitSuccess;
}

}  // namespace planwright
