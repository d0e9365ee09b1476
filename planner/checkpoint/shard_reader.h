// Reads tensors of a checkpoint, whatever the layout of the run that wrote it. Each tensor of a shard is proved by its
// digest before an element of it is used.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/checkpoint/format.h"
#include "planner/plan/shard_map.h"

namespace planwright {

class CheckpointReader {
 public:
  // Looks at all shards and checks manifest, plan, sizes, indices and headers, and that they all say the same; but
  // reads no tensor. DataLoss, with the file and what is wrong, if the checkpoint is damaged; Unavailable if a file
  // cannot be opened.
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(const std::string& folder);
  ~CheckpointReader();

  const Manifest& manifest() const;
  const std::string& folder() const;
  // Type and whole shape of each tensor, by key. Shards agree on them, or Open has failed.
  const TensorTypes& tensors() const;

  // Copies elements of a tensor: run.whole of the tensor to run.local of `to`, in elements of the tensor's type. `runs`
  // ascend in `whole`. Proves every shard tensor that it takes elements from, each once. May be called from several
  // threads at once. DataLoss, with file and key, if a byte is damaged, or if no shard has an element (or two have it);
  // InvalidArgument if there is no such key, or a run is out of the tensor or of `to`. After an error, `to` has any
  // bytes. With kFinite, infinity or NaN among the elements is DataLoss, too.
  enum class Numbers { kAny, kFinite };
  absl::Status Read(const std::string& key, const std::vector<ElementRun>& runs, std::span<std::byte> to,
                    Numbers numbers = Numbers::kAny);

  int64_t bytes_read() const;  // of tensors, proved so far

 private:
  struct State;
  explicit CheckpointReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace planwright
