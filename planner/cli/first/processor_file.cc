#include "planner/cli/first/processor_file.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/bug.h"
#include "planner/base/text/status_macros.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/first/processor_types.h"
#include "planner/plan/pixel_norm.h"

namespace planwright {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr char kWholeFile[] = "processor_config.json", kNested[] = "image_processor";

// None: there is no such file.
absl::StatusOr<std::optional<json>> ReadSettings(const std::string& path) {
  std::error_code error;
  const fs::file_status entry = fs::symlink_status(path, error);
  if (!fs::exists(entry)) return std::nullopt;
  if (fs::is_symlink(entry) && !fs::exists(path, error))
    return absl::InvalidArgumentError(absl::StrCat(Printable(path), " is a link to ",
                                                   Printable(fs::read_symlink(path, error).string()),
                                                   ", which is not there: fetch that file, or remove the link"));
  ABSL_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, kModelConfigJson.bytes));
  absl::StatusOr<json> parsed = ParseJson(text, kModelConfigJson);
  if (!parsed.ok()) return absl::InvalidArgumentError(absl::StrCat(Printable(path), ": ", parsed.status().message()));
  return *std::move(parsed);
}

// The class that settings name, as transformers reads it: the name of a feature extractor is that of older files, and
// classes for one library or another make the same images.
void ReadType(ProcessorFile& file) {
  for (const char* key : {"image_processor_type", "feature_extractor_type"}) {
    const auto found = file.says.find(key);
    if (found == file.says.end()) continue;
    file.type_key = key;
    if (found->is_string()) file.type = found->get<std::string>();
    break;
  }
  for (const std::string ending : {"Fast", "Pil", "FeatureExtractor"}) {
    if (!file.type.ends_with(ending)) continue;
    file.type.resize(file.type.size() - ending.size());
    if (ending == "FeatureExtractor") file.type += "ImageProcessor";
  }
}

absl::StatusOr<ProcessorFile> FileOf(const std::string& path, json says, const std::string& within) {
  if (!says.is_object()) {
    const std::string what = within.empty() ? "it" : kNested;
    return absl::InvalidArgumentError(absl::StrCat(Printable(path), ": ", what, " is no object"));
  }
  for (auto at = says.begin(); at != says.end();) at = at->is_null() ? says.erase(at) : std::next(at);
  ProcessorFile file{.path = path, .says = std::move(says), .within = within};
  file.lacks = json::object();
  ReadType(file);
  if (const ProcessorType* type = FindProcessorType(file.type)) {
    ABSL_ASSIGN_OR_RETURN(file.lacks, ParseJson(type->settings, kModelConfigJson));
    const PixelNorm* norm = FindPixelNorm(type->pixels);
    Require(norm != nullptr, "the table of processors has norms of pixels that there are");
    file.lacks["image_mean"] = norm->mean, file.lacks["image_std"] = norm->deviation;
    for (const auto& [key, value] : file.says.items()) file.lacks.erase(key);
  }
  return file;
}

// The settings for pixels that are not the same in both.
std::vector<std::string> Differences(const ProcessorFile& one, const ProcessorFile& other) {
  std::set<std::string> differ;
  if (one.type != other.type) differ.insert("image_processor_type");
  for (const ProcessorFile* file : {&one, &other}) {
    for (const auto& [key, value] : file->says.items()) {
      const json *here = one.Find(key), *there = other.Find(key);
      if (!SettingsWithoutPixels().contains(key) && !(here && there && *here == *there)) differ.insert(key);
    }
  }
  return {differ.begin(), differ.end()};
}

}  // namespace

const std::set<std::string>& SettingsWithoutPixels() {
  static const auto& keys =
      *new std::set<std::string>{"image_processor_type", "feature_extractor_type", "processor_class",
                                 "data_format",          "input_data_format",      "device",
                                 "return_tensors",       "disable_grouping",       "image_seq_length",
                                 "transformers_version"};
  return keys;
}

const json* ProcessorFile::Find(const std::string& key) const {
  for (const json* settings : {&says, &lacks}) {
    if (const auto found = settings->find(key); found != settings->end()) return &*found;
  }
  return nullptr;
}

std::string ProcessorFile::Shown(const std::string& key) const {
  constexpr size_t kLongest = 100;
  std::string value = JsonText(*Find(key));
  if (value.size() > kLongest) value = absl::StrCat(value.substr(0, kLongest), "...");
  const std::string whose =
      says.contains(key) ? "" : absl::StrCat(", as a ", type, " has it where the file does not say it,");
  return absl::StrCat(Printable(path), ": ", Printable(within + key), " = ", Printable(value), whose);
}

absl::StatusOr<ProcessorFile> FindProcessorFile(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kProcessorFile),
                    whole_path = absl::StrCat(folder, "/", kWholeFile);
  ABSL_ASSIGN_OR_RETURN(const std::optional<json> whole, ReadSettings(whole_path));
  absl::StatusOr<std::optional<json>> alone = ReadSettings(path);
  if (whole && whole->is_object() && whole->contains(kNested) && !whole->at(kNested).is_null()) {
    ABSL_ASSIGN_OR_RETURN(ProcessorFile file, FileOf(whole_path, whole->at(kNested), absl::StrCat(kNested, ".")));
    // Nobody reads the other one, so it may be anything.
    if (!alone.ok() || !alone->has_value()) return file;
    const absl::StatusOr<ProcessorFile> other = FileOf(path, **std::move(alone), "");
    const std::vector<std::string> differ = other.ok() ? Differences(file, *other) : std::vector<std::string>();
    if (!differ.empty()) {
      file.notes.push_back(absl::StrCat(Printable(path), " and ", kNested, " of ", Printable(whole_path), " differ in ",
                                        Printable(absl::StrJoin(differ, ", ")),
                                        ": the latter is taken, as transformers does"));
    }
    return file;
  }
  if (!alone.ok()) return alone.status();
  if (!alone->has_value()) return ProcessorFile();
  return FileOf(path, **std::move(alone), "");
}

}  // namespace planwright
