// Writes a Hugging Face folder: shards of a chosen size, their index, and small files. The folder appears as a whole or
// not at all.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/exchange/out_tensor.h"

namespace planwright {

// A file that is copied as it is, or whose text is known.
struct OutFile {
  std::string name;  // in the folder; may be in a folder of it
  std::string from;  // path of the file to copy; empty: `text`
  std::string text;
};

struct WrittenFolder {
  std::vector<std::string> shards;  // names
  int64_t tensors = 0, parameters = 0, bytes = 0;
};

// InvalidArgument, with the path, if something is there that is no empty folder, or if no folder can be made beside it.
absl::Status CheckTarget(const std::string& folder);

// Writes all into a folder beside `folder`, syncs it, and gives it its name. Tensors follow each other in their order;
// a shard has at most `shard_bytes` of them, or one tensor. `progress(bytes)`: after each piece, of the tensors that
// are written. `one_file`: the name of one file that has all of them, without an index; empty: shards of a model.
// Errors of OutTensor::read; ResourceExhausted, with the path, if the storage fails; InvalidArgument as CheckTarget.
// After an error nothing is left.
absl::StatusOr<WrittenFolder> WriteFolder(const std::string& folder, const std::vector<OutTensor>& tensors,
                                          const std::vector<OutFile>& files, const std::string& one_file,
                                          int64_t shard_bytes, const std::function<void(int64_t)>& progress);

// How many shards of at most `shard_bytes` the tensors make: the number of tensors of each.
std::vector<size_t> ShardSizes(const std::vector<OutTensor>& tensors, int64_t shard_bytes);

}  // namespace planwright
