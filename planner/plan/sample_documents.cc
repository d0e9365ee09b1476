#include "planner/plan/sample_documents.h"

#include <algorithm>
#include <cmath>

namespace planwright {
namespace {

// Sums over samples that are made of documents and padding.
struct Sums {
  double whole = 0;  // tokens of a sample
  double documents = 0, share = 0;

  // Of so much of all samples: each has `count` documents, whose tokens have this mean and variance. Padding is what is
  // left, so its variance is that of the sum of the documents.
  void Add(double part, double count, double mean, double variance) {
    const double padding = std::max(0.0, whole - count * mean);
    const double squares = count * (mean * mean + variance) + padding * padding + count * variance;
    documents += part * (count + (padding > 0 ? 1 : 0));
    share += part * std::min(1.0, squares / (whole * whole));
  }

  SampleDocuments Of() const { return {.mean = documents, .share = share, .known = true}; }
};

// Without an encoder a sample is filled with texts, each a document. Else each image is one with its text, and so is
// the text of a sample without images.
SampleDocuments DrawnDocuments(const DataPlan& data, double whole) {
  const auto text = static_cast<double>(data.text_tokens);
  if (!(text > 0)) return {};  // of a damaged plan
  Sums sums{.whole = whole};
  if (data.encoders.empty()) {
    sums.Add(1, std::max(1.0, std::floor(whole / text)), std::min(text, whole), 0);
    return sums.Of();
  }
  double mean = 0, squares = 0;  // of the tokens of a document
  for (const std::vector<int64_t>& grid : data.image_grids) {
    double tokens = text;
    for (const EncoderData& encoder : data.encoders)
      tokens +=
          grid.size() == 2 && encoder.pixel_shuffle > 0 ? static_cast<double>(encoder.TokensOf(grid[0] * grid[1])) : 0;
    mean += tokens / static_cast<double>(data.image_grids.size());
    squares += tokens * tokens / static_cast<double>(data.image_grids.size());
  }
  const auto least = static_cast<double>(data.min_images), most = static_cast<double>(data.max_images);
  if (!(most >= least)) return {};  // of a damaged plan
  // Each number of images is equally frequent. There are no more images than tokens in a sample.
  for (int64_t images = data.min_images; images <= data.max_images; ++images) {
    const double part = 1 / (most - least + 1);
    images == 0 ? sums.Add(part, 1, std::min(text, whole), 0)
                : sums.Add(part, static_cast<double>(images), mean, std::max(0.0, squares - mean * mean));
  }
  return sums.Of();
}

SampleDocuments CountedDocumentsOf(const DataPlan& data, int64_t sequence) {
  double weights = 0, documents = 0, share = 0;
  for (const SourcePlan& source : data.sources) {
    const auto of_source = [&](const CountedDocuments& one) { return one.source == source.name; };
    const auto one = std::find_if(data.counted.documents.begin(), data.counted.documents.end(), of_source);
    // It was counted for other sources.
    if (one == data.counted.documents.end() || one->samples < 1) return {};
    const auto weight = static_cast<double>(source.weight);
    weights += weight;
    documents += weight * static_cast<double>(one->documents) / static_cast<double>(one->samples);
    share += weight * one->ShareOfScores(sequence);
  }
  if (!(weights > 0)) return {};
  return {.mean = documents / weights, .share = std::min(1.0, share / weights), .known = true};
}

}  // namespace

SampleDocuments DocumentsOfSample(const DataPlan& data, int64_t sequence) {
  if (!data.packed_documents || sequence < 1) return {};
  if (RowOf(data.kind).drawn) return DrawnDocuments(data, static_cast<double>(sequence));
  return data.counted.known() ? CountedDocumentsOf(data, sequence) : SampleDocuments();
}

}  // namespace planwright
