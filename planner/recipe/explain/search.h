// Finds subjects of `plan explain`: by name, else by the words that are in their texts.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/recipe/explain/subjects.h"

namespace planwright {

// A longer question is answered with nothing.
inline constexpr size_t kLongestQuestion = 200;

// The subjects with this name, in their order. `--micro-batch-size`, `MicroBatchSize` and "micro batch size" are
// micro_batch_size, and "epochs" is "epoch"; letters of layers stand for themselves.
std::vector<const Subject*> FindByName(std::string_view name, const std::vector<Subject>& subjects);

// A word with the maps of another program before it: `training.seq_len` is `seq_len` of torchtitan, `training.seed` our
// `data.seed`. Empty: it is none.
std::vector<const Subject*> FindInOtherMaps(std::string_view path, const std::vector<Subject>& subjects);

// The subjects whose names and texts have the words of a question, best first, at most `most`. Rare words count more
// than frequent ones, names more than summaries, and these more than texts. A misspelled word finds names near it.
std::vector<const Subject*> Search(std::string_view question, const std::vector<Subject>& subjects, size_t most);

// The name that was probably meant, if one is near.
std::optional<std::string> NearSubject(std::string_view name, const std::vector<Subject>& subjects);

}  // namespace planwright
