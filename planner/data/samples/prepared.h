// prepared.json: what planner/data/prepare_data says of the shards of a folder, beside them: with which tokenizer and
// template their ids were made, the special ids, and what each shard holds (docs/training/data_formats.md#prepared).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

inline constexpr const char* kPreparedFile = "prepared.json";

struct PreparedShard {
  int64_t documents = 0, tokens = 0, bytes = 0;
};

struct Prepared {
  std::string path;                             // of the file, for messages
  std::string tokenizer;                        // the name of its file
  std::string tokenizer_digest;                 // SHA-256, 64 hex digits
  std::string template_digest;                  // the same; empty: no template
  int64_t image = -1, pad = -1, end = -1;       // special ids; image: -1 if there is none
  int64_t vocabulary = 0;                       // all ids are below it
  std::map<std::string, PreparedShard> shards;  // by name in the folder
};

// Reads the text of a prepared.json. InvalidArgument names the field that is wrong.
absl::StatusOr<Prepared> ReadPrepared(std::string_view text);

// The file of the folder that `shard` is in. nullopt: there is none. Errors have its path.
absl::StatusOr<std::optional<Prepared>> FindPrepared(const std::string& shard);

// What the file says and the plan contradicts: a digest that the recipe pins, a special id that the plan has, ids that
// the language model's vocabulary has no room for. Empty: nothing. Else a sentence for each, with both values.
std::vector<std::string> ComparePrepared(const Prepared& prepared, const DataPlan& data);

}  // namespace planwright
