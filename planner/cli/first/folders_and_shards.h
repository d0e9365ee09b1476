// What `plan init --weights` is given: published folders, and shards that `prepare` made (docs/from_photos.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/data/samples/prepared.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

inline constexpr char kTokenizerFile[] = "tokenizer.json";

// A Hugging Face folder, as its config.json can be expressed as a recipe.
struct ModelFolder {
  std::string path, name;
  YamlNode models;  // with comments
  std::vector<std::string> languages, encoders;
  int64_t image_token = -1;  // that its config.json names
  int64_t positions = 0;     // that it was trained for; 0: config.json does not say it
  std::string digest;        // of its tokenizer.json; empty: it has none
};

// FailedPrecondition: it holds what no recipe can say, a line each.
absl::StatusOr<ModelFolder> ReadModelFolder(const std::string& path);

// Shards of one folder, which were prepared together.
struct PreparedShards {
  std::string pattern, name;
  std::shared_ptr<const Prepared> prepared;
  int64_t documents = 0, tokens = 0, images = 0;
};

// Those that the text of `option` names, with commas between them. `weights`: the folder whose tokenizer they need, for
// messages. InvalidArgument: it is no name of shards, or they are not there; FailedPrecondition: they do not belong
// together.
absl::StatusOr<std::vector<PreparedShards>> ReadPreparedShards(const std::string& option, const std::string& text,
                                                               const std::string& weights);

// How many images the documents of a prepared.json have; 0: none, or it does not count them.
int64_t ImagesOf(const Prepared& prepared);

// All that is given.
struct FolderParts {
  ModelFolder weights;
  std::optional<ModelFolder> encoder;
  std::vector<PreparedShards> data, evaluation;
  YamlNode asked;  // what overrides say

  bool has_encoder() const { return encoder || !weights.encoders.empty(); }
  // All sources.
  std::vector<const PreparedShards*> all() const;
};

// Whether a model of a recipe, one of FolderParts::models, is a language model.
bool IsLanguageModel(const YamlNode& model);

// The whole number at that path ("data.max_patches"); `otherwise` where there is none.
int64_t NumberAt(const YamlNode& tree, const std::string& path, int64_t otherwise);

// Whether this word is at that path ("modules.language.train.backbone").
bool IsAt(const YamlNode& tree, const std::string& path, std::string_view word);

}  // namespace planwright
