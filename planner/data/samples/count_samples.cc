#include "planner/data/samples/count_samples.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "planner/base/digest/sha256.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/status_macros.h"
#include "planner/data/samples/index_settings.h"
#include "planner/plan/plan_ranges.h"

namespace planwright {
namespace {

constexpr int64_t kFirst = 4096;  // samples of the run whose patches are kept

nlohmann::ordered_json CountedJson(const CountedSamples& counted) {
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
  return {{"digest", counted.digest}, {"images", std::move(images)}, {"first_patches", counted.first_patches}};
}

// Throws if the file is not as CountedJson writes it.
CountedSamples ReadCounted(const nlohmann::json& json) {
  CountedSamples counted;
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
  return counted;
}

absl::StatusOr<CountedSamples> CountSamples(const SampleSource& source) {
  CountedSamples counted;
  ABSL_ASSIGN_OR_RETURN(counted.images, source.CountImages());
  ABSL_ASSIGN_OR_RETURN(counted.first_patches, PatchesOfSamples(source, 0, kFirst));
  counted.digest = source.digest();
  return counted;
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
  if (data.encoders.empty()) return absl::OkStatus();
  const std::optional<CountedSamples> before = CountedAtHand(data, sequence);
  CountedSamples counted;
  if (before && before->digest == source.digest()) {
    // Other weights of sources change the order of samples, and no sample.
    counted = *before;
    ABSL_ASSIGN_OR_RETURN(counted.first_patches, PatchesOfSamples(source, 0, kFirst));
    if (counted == *before) return absl::OkStatus();
  } else {
    ABSL_ASSIGN_OR_RETURN(counted, CountSamples(source));
  }
  return WriteFileAtomically(CountedPath(data, sequence), JsonText(CountedJson(counted)) + "\n");
}

std::optional<CountedSamples> CountedAtHand(const DataPlan& data, int64_t sequence) {
  if (!RowOf(data.kind).indexed || data.encoders.empty()) return std::nullopt;
  const absl::StatusOr<std::string> text = ReadWholeFile(CountedPath(data, sequence), kCountedJson.bytes);
  if (!text.ok()) return std::nullopt;
  const absl::StatusOr<nlohmann::json> json = ParseJson(*text, kCountedJson);
  if (!json.ok()) return std::nullopt;
  DataPlan counted = data;
  try {
    counted.counted = ReadCounted(*json);
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
  if (!RangeProblem(counted).empty()) return std::nullopt;
  return std::move(counted.counted);
}

}  // namespace planwright
