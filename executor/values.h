// The values of a linked program, by number.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace planwright::executor {

// What one instruction makes and others read.
struct Value {
  at::Tensor tensor;

  // In host memory. A device value is copied once in its life, however often it is asked for: the host waits for that
  // copy.
  const at::Tensor& OnHost();
  // Its copy came along with another.
  void SetOnHost(at::Tensor copy) { on_host_ = std::move(copy); }

 private:
  at::Tensor on_host_;
};

// A number is given to one value after another. A value lasts while it has its number, or somebody who runs later holds
// it.
class Values {
 public:
  explicit Values(size_t count) : values_(count) {}

  const std::shared_ptr<Value>& Get(int number) const { return values_[static_cast<size_t>(number)]; }
  const std::shared_ptr<Value>& New(int number) {
    return values_[static_cast<size_t>(number)] = std::make_shared<Value>();
  }
  void Free(int number) { values_[static_cast<size_t>(number)].reset(); }

 private:
  std::vector<std::shared_ptr<Value>> values_;
};

}  // namespace planwright::executor
