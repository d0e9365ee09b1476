// The values of a linked program while it runs, by number.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "executor/program/to_host.h"

namespace planwright::executor {

// The output of an instruction, until its last reader is done.
struct Value {
  at::Tensor tensor;

  // The tensor in host memory. A device tensor is copied at the first call only, and the host waits for that copy;
  // later calls return the same copy.
  const at::Tensor& OnHost() {
    if (tensor.is_cpu()) return tensor;
    if (!on_host_.defined()) on_host_ = ToHost(tensor);
    return on_host_;
  }
  // Saves the wait of OnHost where the copy came to the host together with another tensor.
  void SetOnHost(at::Tensor copy) { on_host_ = std::move(copy); }

 private:
  at::Tensor on_host_;
};

// LinkedProgram gives a number to one value after another. A value lives while it has its number, or while an
// instruction that runs later on another thread holds it: hence the shared pointers.
class ValueTable {
 public:
  explicit ValueTable(size_t count) : values_(count) {}

  const std::shared_ptr<Value>& Get(int number) const { return values_[static_cast<size_t>(number)]; }
  const std::shared_ptr<Value>& New(int number) {
    return values_[static_cast<size_t>(number)] = std::make_shared<Value>();
  }
  void Free(int number) { values_[static_cast<size_t>(number)].reset(); }

 private:
  std::vector<std::shared_ptr<Value>> values_;
};

}  // namespace planwright::executor
