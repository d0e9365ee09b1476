#include "executor/ops/parameter_part.h"

#include <ATen/ops/cat.h>

#include <utility>

namespace planwright::executor::ops {

ParameterPart::ParameterPart(const ComputeContext& context, std::vector<int64_t> segments)
    : segments_(std::move(segments)) {
  const int64_t* coordinates = context.instruction.FindInteger("parameter_cp");
  if (coordinates == nullptr) return;
  TORCH_CHECK(*coordinates == context.call.cp, "parameter_cp ", *coordinates, " in a module of cp ", context.call.cp);
  coordinates_ = *coordinates, coordinate_ = context.call.cp_rank;
}

at::Tensor ParameterPart::Of(const at::Tensor& parameter) const {
  if (whole()) return parameter;
  std::vector<at::Tensor> pieces;
  int64_t at = 0;
  for (int64_t segment : segments_) {
    pieces.push_back(parameter.narrow(0, at + coordinate_ * segment, segment));
    at += coordinates_ * segment;
  }
  TORCH_CHECK(at == parameter.size(0), "a parameter of ", parameter.sizes(), " in segments of ", at, " together");
  return at::cat(pieces, 0);
}

void ParameterPart::AddTo(const at::Tensor& gradient, const at::Tensor& part) const {
  int64_t at = 0, at_part = 0;
  for (int64_t segment : segments_) {
    gradient.narrow(0, at + coordinate_ * segment, segment).add_(part.narrow(0, at_part, segment));
    at += coordinates_ * segment;
    at_part += segment;
  }
}

}  // namespace planwright::executor::ops
