// Where a published folder has the settings of its image processor.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace planwright {

inline constexpr char kProcessorFile[] = "preprocessor_config.json";

struct ProcessorFile {
  std::string path;      // empty: the folder has no settings
  nlohmann::json says;   // an object, without what is null: that is as if it were not there
  std::string within;    // of the file, before a key in messages: "image_processor."
  std::string type_key;  // that names the class of the processor; empty: none does
  std::string type;      // the class, without the endings of its variants; empty: it is no name
  nlohmann::json lacks;  // what that class has for keys that are not said; an object
  std::vector<std::string> notes;

  // What the processor has for a key: what the file says, or its class; null: neither does.
  const nlohmann::json* Find(const std::string& key) const;
  // A setting that Find knows in messages: the file, the key and its value.
  std::string Shown(const std::string& key) const;
};

// Of both files that may have them the one that transformers takes: `image_processor` of processor_config.json before
// preprocessor_config.json. Which one that was is a note, if they differ. InvalidArgument, Unavailable: a file that
// is to be read cannot be, or is none.
absl::StatusOr<ProcessorFile> FindProcessorFile(const std::string& folder);

// Settings that change no pixel: names of classes, and where and how results are kept.
const std::set<std::string>& SettingsWithoutPixels();

}  // namespace planwright
