#include "planner/schedule/blocks/language_pieces.h"

namespace planwright {

using std::string;

ValueType StreamType(const BlockBuilder& b, int64_t s, int64_t samples, int64_t hidden) {
  const Layout layout = OverCp(b.context(), 0, Sharded(b.context(), 0));
  return b.Activation({s, samples, hidden}, layout, layout);
}

// Its gradient is whole over tp: the gradient of a sum is the gradient of each of its terms.
ValueType PartialType(const BlockBuilder& b, int64_t sequence, int64_t samples, int64_t hidden) {
  const BlockContext& context = b.context();
  return b.Activation({sequence, samples, hidden}, OverCp(context, 0, Partial(context)),
                      OverCp(context, 0, Replicated()));
}

void InputDocuments(BlockBuilder& f, const LanguageSizes& sizes) {
  if (sizes.packed_documents)
    f.Input("document_ends", f.Data(DType::kInt64, {f.context().module + ".documents"}, true));
}

std::vector<string> WithDocuments(std::vector<string> values, const LanguageSizes& sizes) {
  if (sizes.packed_documents) values.push_back("document_ends");
  return values;
}

NormNames EmitRmsNorm(BlockBuilder& f, const string& x, const string& slot, double eps) {
  // A norm works on single positions, so x may be cut along the sequence. The scale is one number a position.
  ValueType type = f.TypeOf(x), scale = type;
  scale.dtype = f.context().wide();
  scale.dims.back() = int64_t{1};
  scale.gradient = std::nullopt;
  f.Emit(OpKind::kRmsNorm, {.inputs = {x}, .parameters = {slot}, .attributes = {{"eps", eps}}},
         {{"n", type}, {"n_scale", scale}});
  return {"n", "n_scale"};
}

}  // namespace planwright
