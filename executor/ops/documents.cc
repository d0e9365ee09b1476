#include "executor/ops/documents.h"

#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {

std::vector<int64_t> DocumentEnds(const at::Tensor& document_ends, int64_t sequence) {
  TORCH_CHECK(document_ends.is_cpu() && document_ends.scalar_type() == at::kLong && document_ends.dim() == 1,
              "document_ends must be i64 [D] in host memory");
  const int64_t* data = document_ends.const_data_ptr<int64_t>();
  std::vector<int64_t> ends(data, data + document_ends.size(0));
  int64_t before = 0;
  for (int64_t end : ends) {
    TORCH_CHECK(end > before, "document_ends must ascend: ", end, " after ", before);
    before = end;
  }
  TORCH_CHECK(before == sequence, "the last document ends at ", before, ", the sequence at ", sequence);
  return ends;
}

at::Tensor DocumentOfPosition(const at::Tensor& document_ends, int64_t sequence, at::Device device) {
  std::vector<int64_t> document;
  int64_t number = 0;
  for (int64_t end : DocumentEnds(document_ends, sequence)) document.resize(static_cast<size_t>(end), number++);
  return Indices(document, device);
}

}  // namespace planwright::executor::ops
