// Reads tensors of a checkpoint, whatever the layout of the run that wrote it. Each tensor of a shard is proved by its
// digest before an element of it is used.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/shard_map.h"
#include "planner/state/checkpoint/element_reader.h"
#include "planner/state/checkpoint/format.h"

namespace planwright {

class CheckpointReader : public ElementReader {
 public:
  // Looks at all shards and checks manifest, plan, sizes, indices and headers, and that they all say the same; but
  // reads no tensor. DataLoss, with the file and what is wrong, if the checkpoint is damaged; Unavailable if a file
  // cannot be opened.
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(const std::string& folder);
  ~CheckpointReader() override;

  const Manifest& manifest() const;
  const std::string& folder() const;
  // Type and whole shape of each tensor, by key. Shards agree on them, or Open has failed.
  const TensorTypes& tensors() const;  // whole shape and type of each, by key
  std::optional<TensorType> TypeOf(const std::string& key) const override;

  // Proves every shard tensor that it takes elements from, each once. DataLoss, with file and key, if a byte is
  // damaged, or if no shard has an element (or two have it).
  absl::Status Read(const std::string& key, const std::vector<ElementRun>& runs, std::span<std::byte> to,
                    Numbers numbers = Numbers::kAny) override;

  std::string PlaceOf(const std::string& key) const override;  // with the folder
  int64_t bytes_read() const override;                         // of tensors, proved so far

 private:
  struct State;
  explicit CheckpointReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace planwright
