// Named values: those of one call, and those that outlive it.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <unordered_map>
#include <utility>

namespace planwright::executor {

// The values of one call of a block, or of a role's own list.
class Values {
 public:
  const at::Tensor& Get(const std::string& name) const;  // must be there
  void Set(const std::string& name, at::Tensor value) { values_[name] = std::move(value); }
  void Free(const std::string& name) { values_.erase(name); }
  bool Has(const std::string& name) const { return values_.contains(name); }

 private:
  std::unordered_map<std::string, at::Tensor> values_;
};

// What the forward of a frame leaves for its backward, by microbatch.
class SavedValues {
 public:
  void Save(const std::string& frame, int microbatch, const std::string& name, at::Tensor value);
  // Hands it out once.
  at::Tensor Take(const std::string& frame, int microbatch, const std::string& name);
  // Frames and microbatches that still have values: none after a whole step.
  size_t size() const { return frames_.size(); }
  std::string Describe() const;

 private:
  std::map<std::pair<std::string, int>, std::map<std::string, at::Tensor>> frames_;
};

}  // namespace planwright::executor
