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
#include "planner/plan/plan_ranges.h"

namespace planwright {
namespace {

constexpr int64_t kFirst = 4096;  // samples of the run whose patches are kept

// What a file keeps.
struct Kept {
  std::vector<int64_t> samples;  // of an epoch, by DataPlan::sources
  CountedSamples counted;
  bool operator==(const Kept&) const = default;
};

nlohmann::ordered_json JsonOf(const Kept& kept) {
  const CountedSamples& counted = kept.counted;
  nlohmann::ordered_json images = nlohmann::ordered_json::array();
  for (const CountedImages& one : counted.images) {
    images.push_back({{"encoder", one.encoder},
                      {"source", one.source},
                      {"samples", one.samples},
                      {"images", one.images},
                      {"patches", one.patches},
                      {"max_images", one.max_images},
                      {"max_patches", one.max_patches},
                      {"sizes", one.sizes}});
  }
  return {{"digest", counted.digest},
          {"samples", kept.samples},
          {"images", std::move(images)},
          {"first_patches", counted.first_patches}};
}

// Throws if the file is not as JsonOf writes it.
Kept ReadKept(const nlohmann::json& json) {
  Kept kept;
  CountedSamples& counted = kept.counted;
  json.at("samples").get_to(kept.samples);
  json.at("digest").get_to(counted.digest);
  json.at("first_patches").get_to(counted.first_patches);
  for (const nlohmann::json& of : json.at("images")) {
    CountedImages& one = counted.images.emplace_back();
    of.at("encoder").get_to(one.encoder);
    of.at("source").get_to(one.source);
    of.at("samples").get_to(one.samples);
    of.at("images").get_to(one.images);
    of.at("patches").get_to(one.patches);
    of.at("max_images").get_to(one.max_images);
    of.at("max_patches").get_to(one.max_patches);
    of.at("sizes").get_to(one.sizes);
  }
  return kept;
}

absl::StatusOr<Kept> CountSamples(const DataPlan& data, const SampleSource& source) {
  Kept kept;
  for (const SourceCounts& of : source.Counts()) kept.samples.push_back(of.samples);
  kept.counted.digest = source.digest();
  if (data.encoders.empty()) return kept;
  ABSL_ASSIGN_OR_RETURN(kept.counted.images, source.CountImages());
  ABSL_ASSIGN_OR_RETURN(kept.counted.first_patches, PatchesOfSamples(source, 0, kFirst));
  return kept;
}

std::optional<Kept> KeptAtHand(const DataPlan& data, int64_t sequence) {
  if (!RowOf(data.kind).indexed) return std::nullopt;
  const absl::StatusOr<std::string> text = ReadWholeFile(CountedPath(data, sequence), kCountedJson.bytes);
  if (!text.ok()) return std::nullopt;
  const absl::StatusOr<nlohmann::json> json = ParseJson(*text, kCountedJson);
  if (!json.ok()) return std::nullopt;
  Kept kept;
  try {
    kept = ReadKept(*json);
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
  bool damaged = kept.samples.size() != data.sources.size() || !kept.counted.known();
  for (const int64_t samples : kept.samples) damaged = damaged || samples < 1 || samples > kMostSamples;
  DataPlan counted = data;
  counted.counted = kept.counted;
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
  std::string all = absl::StrCat(data.seed, " ", data.shuffle, " ", data.packing, " ", data.window, " ",
                                 data.long_documents, " ", data.damaged, " ", data.min_patches, " ", data.max_patches,
                                 " ", data.grid, " ", data.orientation, " ", data.end_token, " ", sequence, "\n");
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
    if (!data.encoders.empty()) {
      ABSL_ASSIGN_OR_RETURN(kept.counted.first_patches, PatchesOfSamples(source, 0, kFirst));
    }
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
