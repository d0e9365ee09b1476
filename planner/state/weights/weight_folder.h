// Which files a path to published weights means, before any of them is opened, and what the index of a folder says of
// them. weight_files.h compares it with the headers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace planwright {

struct WeightFolder {
  std::string folder;                     // of the files, with a / at its end; empty: the path is one file
  std::vector<std::string> files;         // names, ascending
  std::map<std::string, int> weight_map;  // of the index: of each tensor, a number in `files`; empty: no index
  std::optional<int64_t> total_size;      // bytes of all tensors, as the index says
  std::string model_type;                 // of config.json; empty: it says none
  // Whether config.json says `tie_word_embeddings`, at its root or of its language model; none: it does not say.
  std::optional<bool> tied;
  std::optional<std::string> adapter_config;  // the text of adapter_config.json; none: there is none beside adapters
  std::vector<std::string> warnings;
};

// InvalidArgument, with the path, if there is nothing of the kind, if it is of a format that is not read, or if the
// index is not valid.
absl::StatusOr<WeightFolder> FindWeightFiles(const std::string& path);

// How the message ends for a folder that has nothing of the kind.
inline constexpr char kNoWeights[] = "it has no weights";

// What a file of weights in another format is, and what to do; empty: its name is none of those.
std::string OtherWeightFormat(const std::string& name);

// "TARGET", to which a symbolic link leads that leads to no file; empty: it is no such link.
std::string DanglingLink(const std::string& path);

}  // namespace planwright
