// Reads parameters that files hold in another form than one by one (docs/weights.md#forms): parts of a tensor, in
// another order. Where a slice is one run on disk it is read as one; rows that lie close together are read together.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/state/forms/element_map.h"
#include "planner/state/weights/weight_files.h"

namespace planwright {

// Keys are names of parameters, with the expert's number.
class StoredReader : public ElementReader {
 public:
  // Reads through `files`, which outlive it.
  explicit StoredReader(WeightFiles& files) : files_(files) {}

  // The parameter `key` of this shape is a part of `tensor`. Not while something is read.
  void Add(const std::string& key, std::string tensor, std::vector<int64_t> shape, ElementMap map);

  std::optional<TensorType> TypeOf(const std::string& key) const override;
  absl::Status Read(const std::string& key, const std::vector<ElementRun>& runs, std::span<std::byte> to,
                    Numbers numbers) override;
  // "FILE: tensor NAME, part KEY". Elements are counted in the part.
  std::string PlaceOf(const std::string& key) const override;
  int64_t bytes_read() const override { return files_.bytes_read(); }

  const std::string& TensorOf(const std::string& key) const { return parts_.at(key).tensor; }

 private:
  struct Part {
    std::string tensor;
    std::vector<int64_t> shape;
    ElementMap map;
  };

  WeightFiles& files_;
  std::map<std::string, Part> parts_;
};

}  // namespace planwright
