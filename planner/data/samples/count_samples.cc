#include "planner/data/samples/count_samples.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>
#include <vector>

#include "planner/base/digest/sha256.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/limits.h"
#include "planner/base/text/status_macros.h"
#include "planner/data/samples/index_settings.h"
#include "planner/data/samples/mixture.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/plan_ranges.h"

namespace planwright {
namespace {

constexpr int64_t kFirst = 4096;  // samples of the run whose patches and documents are kept

// What a file keeps.
struct Kept {
  std::vector<int64_t> samples;  // of an epoch, by DataPlan::sources
  CountedSamples counted;
  bool operator==(const Kept&) const = default;
};

nlohmann::ordered_json JsonOf(const Kept& kept) {
  nlohmann::ordered_json json = CountedToJson(kept.counted);
  json["samples"] = kept.samples;
  return json;
}

// nullopt if the file is not as JsonOf writes it.
std::optional<Kept> ReadKept(nlohmann::ordered_json json) {
  Kept kept;
  const auto samples = json.find("samples");
  if (samples == json.end() || !samples->is_array()) return std::nullopt;
  for (const nlohmann::ordered_json& of_source : *samples) {
    if (!of_source.is_number_integer()) return std::nullopt;
    kept.samples.push_back(of_source.get<int64_t>());
  }
  json.erase("samples");
  absl::StatusOr<CountedSamples> counted = CountedFromJson(json);
  if (!counted.ok()) return std::nullopt;
  kept.counted = *std::move(counted);
  return kept;
}

// What the order of the samples changes: counts of the first samples of the run.
absl::Status CountFirst(const DataPlan& data, const SampleSource& source, CountedSamples& counted) {
  if (!data.encoders.empty()) {
    ABSL_ASSIGN_OR_RETURN(counted.first_patches, PatchesOfSamples(source, 0, kFirst));
  }
  counted.first_squares.clear();
  for (int64_t number = 0; data.packed_documents && number < kFirst; ++number)
    counted.first_squares.push_back(source.DocumentSquares(number));
  return absl::OkStatus();
}

absl::StatusOr<Kept> CountSamples(const DataPlan& data, const SampleSource& source) {
  Kept kept;
  for (const SourceCounts& of : source.Counts()) kept.samples.push_back(of.samples);
  kept.counted.digest = source.digest();
  if (!data.encoders.empty()) {
    ABSL_ASSIGN_OR_RETURN(kept.counted.images, source.CountImages());
  }
  kept.counted.documents = source.CountDocuments();
  ABSL_RETURN_IF_ERROR(CountFirst(data, source, kept.counted));
  return kept;
}

std::optional<Kept> KeptAtHand(const DataPlan& data, int64_t sequence) {
  if (!RowOf(data.kind).indexed) return std::nullopt;
  const absl::StatusOr<std::string> text = ReadWholeFile(CountedPath(data, sequence), kCountedJson.bytes);
  if (!text.ok()) return std::nullopt;
  absl::StatusOr<nlohmann::ordered_json> json = ParseOrderedJson(*text, kCountedJson);
  if (!json.ok()) return std::nullopt;
  std::optional<Kept> kept = ReadKept(*std::move(json));
  if (!kept) return std::nullopt;
  bool damaged = kept->samples.size() != data.sources.size() || !kept->counted.known() ||
                 kept->counted.documents.empty() == data.packed_documents;
  for (const int64_t samples : kept->samples) damaged = damaged || samples < 1 || samples > kMostSamples;
  DataPlan counted = data;
  counted.counted = kept->counted;
  if (damaged || !RangeProblem(counted).empty()) return std::nullopt;
  return kept;
}

std::vector<int64_t> WeightsOf(const DataPlan& data) {
  std::vector<int64_t> weights;
  for (const SourcePlan& source : data.sources) weights.push_back(source.weight);
  return weights;
}

}  // namespace

std::string CountedPath(const DataPlan& data, int64_t sequence) {
  std::string all =
      absl::StrCat(data.seed, " ", data.shuffle, " ", data.packing, " ", data.window, " ", data.long_documents, " ",
                   data.damaged, " ", data.min_patches, " ", data.max_patches, " ", data.grid, " ", data.orientation,
                   " ", data.end_token, " ", sequence, data.packed_documents ? " documents" : "", "\n");
  for (const SourcePlan& source : data.sources)
    absl::StrAppend(&all, std::filesystem::path(IndexPath(data, source)).filename().string(), " ", source.name, "\n");
  for (const EncoderData& encoder : data.encoders) {
    absl::StrAppend(&all, encoder.module, " ", encoder.patch, " ", encoder.pixel_shuffle, " ", encoder.max_image, "\n");
  }
  constexpr size_t kDigits = 12;
  return absl::StrCat(IndexFolder(data), "/counted.", Sha256Hex(all).substr(0, kDigits), ".json");
}

absl::Status KeepCounted(const DataPlan& data, int64_t sequence, const SampleSource& source) {
  const std::optional<Kept> before = KeptAtHand(data, sequence);
  Kept kept;
  if (before && before->counted.digest == source.digest()) {
    // Other weights of sources change the order of samples, and no sample.
    kept = *before;
    ABSL_RETURN_IF_ERROR(CountFirst(data, source, kept.counted));
    if (kept == *before) return absl::OkStatus();
  } else {
    ABSL_ASSIGN_OR_RETURN(kept, CountSamples(data, source));
  }
  return WriteFileAtomically(CountedPath(data, sequence), JsonText(JsonOf(kept)) + "\n");
}

std::optional<CountedSamples> CountedAtHand(const DataPlan& data, int64_t sequence) {
  std::optional<Kept> kept = KeptAtHand(data, sequence);
  if (!kept) return std::nullopt;
  return std::move(kept->counted);
}

std::optional<std::vector<int64_t>> EpochAtHand(const DataPlan& data, int64_t sequence) {
  std::optional<Kept> kept = KeptAtHand(data, sequence);
  if (!kept) return std::nullopt;
  return std::move(kept->samples);
}

std::vector<int64_t> SamplesOfSources(const DataPlan& data, int64_t samples) {
  return data.sources.empty() ? std::vector<int64_t>() : Mixture(WeightsOf(data)).CountsOf(samples);
}

int64_t SamplesOnce(const DataPlan& data, const std::vector<int64_t>& samples) {
  const std::vector<int64_t> weights = WeightsOf(data);
  const auto all = static_cast<double>(std::accumulate(weights.begin(), weights.end(), int64_t{0}));
  // Of so many a source has come less than one sample too often.
  double sure = static_cast<double>(kMostSamples);
  for (size_t i = 0; i < weights.size(); ++i)
    sure = std::min(sure, (static_cast<double>(samples[i]) - 1) * all / static_cast<double>(weights[i]));
  const Mixture mixture(weights);
  auto once = std::max<int64_t>(static_cast<int64_t>(sure) - 1, 0);
  for (Mixture::Turn turn = mixture.At(once); turn.number < samples[static_cast<size_t>(turn.source)];)
    turn = mixture.At(++once);
  return std::min(once, kMostSamples);
}

}  // namespace planwright
