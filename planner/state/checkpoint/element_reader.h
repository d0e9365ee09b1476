// Tensors whose elements are read in parts, wherever they lie: a checkpoint (shard_reader.h) and files of published
// weights (planner/state/weights/weight_files.h) are read through this, so that there is one way of loading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "planner/plan/shard_map.h"
#include "planner/state/checkpoint/format.h"

namespace planwright {

class ElementReader {
 public:
  virtual ~ElementReader() = default;

  // Whole shape of a tensor, and the type of the elements that Read gives. None: there is no such tensor, or its type
  // is none that a run can have.
  virtual std::optional<TensorType> TypeOf(const std::string& key) const = 0;

  // Copies elements of a tensor: run.whole of the tensor to run.local of `to`, in elements of the tensor's type. `runs`
  // ascend in `whole`. May be called from several threads at once. DataLoss, with the file, if bytes are not there or
  // damaged; InvalidArgument if there is no such key, or a run is out of the tensor or of `to`. After an error, `to`
  // has any bytes. With kFinite, infinity or NaN among the elements is DataLoss, too.
  enum class Numbers { kAny, kFinite };
  virtual absl::Status Read(const std::string& key, const std::vector<ElementRun>& runs, std::span<std::byte> to,
                            Numbers numbers) = 0;

  // Where a tensor lies, for messages: "FILE: tensor KEY".
  virtual std::string PlaceOf(const std::string& key) const = 0;

  virtual int64_t bytes_read() const = 0;  // of tensors, so far
};

// InvalidArgument, with the key, unless `runs` ascend in a tensor of `whole` elements and fit into `room` elements.
absl::Status CheckRuns(const std::string& key, const std::vector<ElementRun>& runs, int64_t whole, int64_t room);

}  // namespace planwright
