#include "executor/values.h"

namespace planwright::executor {

const at::Tensor& Values::OnHost(int number) {
  Value& value = values_[static_cast<size_t>(number)];
  if (value.tensor.is_cpu()) return value.tensor;
  if (!value.on_host.defined()) value.on_host = value.tensor.cpu();
  return value.on_host;
}

}  // namespace planwright::executor
