#include "executor/values.h"

namespace planwright::executor {

const at::Tensor& Value::OnHost() {
  if (tensor.is_cpu()) return tensor;
  if (!on_host_.defined()) on_host_ = tensor.cpu();
  return on_host_;
}

}  // namespace planwright::executor
