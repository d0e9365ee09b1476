// The values of a linked program, by number.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace planwright::executor {

class Values {
 public:
  explicit Values(size_t count) : values_(count) {}

  const at::Tensor& Get(int value) const { return values_[static_cast<size_t>(value)].tensor; }
  void Set(int value, at::Tensor tensor) { values_[static_cast<size_t>(value)].tensor = std::move(tensor); }
  void Free(int value) {
    values_[static_cast<size_t>(value)].tensor.reset();
    values_[static_cast<size_t>(value)].on_host.reset();
  }

  // In host memory. A device value is copied once in its life, however often it is asked for: the host waits for that copy.
  const at::Tensor& OnHost(int value);
  // Its copy came along with another.
  void SetOnHost(int value, at::Tensor copy) { values_[static_cast<size_t>(value)].on_host = std::move(copy); }

 private:
  struct Value {
    at::Tensor tensor;
    at::Tensor on_host;  // of a device value that was read on the host
  };
  std::vector<Value> values_;
};

}  // namespace planwright::executor
