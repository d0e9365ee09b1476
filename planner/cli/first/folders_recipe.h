// A first recipe of published folders and prepared shards, for `plan init --weights` (docs/from_photos.md): their
// models, what each begins with, and batch, budget and images as the data asks for them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/search/results/started_recipe.h"

namespace planwright {

struct FolderWords {
  std::string weights;     // a Hugging Face folder of a language model, or of a vision-language model
  std::string encoder;     // one of an encoder; empty: none
  std::string data;        // shards: a pattern, or the folder that `prepare` made, several with commas between
  std::string evaluation;  // the same of shards that are evaluated; empty: none
  std::string file;        // that the recipe is written to: its index is beside it
};

struct FolderRecipe {
  StartedRecipe started;
  std::string name;                // of the model
  std::vector<std::string> notes;  // what was decided and is to be known, a line each
};

// `overrides`: of the command line. Sizes that follow from others are chosen with theirs. FailedPrecondition: a folder
// holds what no recipe can say, or folders and shards do not fit each other; InvalidArgument or Unavailable: something
// is not what the command needs, or cannot be read. The message, of one line or more, is for the user.
absl::StatusOr<FolderRecipe> StartFromFolders(const FolderWords& words, int64_t gpus,
                                              const std::vector<std::string>& overrides);

}  // namespace planwright
