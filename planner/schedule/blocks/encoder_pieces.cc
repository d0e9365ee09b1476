#include "planner/schedule/blocks/encoder_pieces.h"

namespace planwright {
namespace {

using std::string;

// The type with its rows dealt over cp, and those of its gradient. Bands are dealt in order, so this is a plain cut of
// dim 0, not zigzag.
ValueType DealtOverCp(const BlockBuilder& b, ValueType type) {
  if (b.context().cp == 1) return type;
  const AxisLayout rows = {AxisLayout::State::kSharded, 0};
  type.layout[Axis::kCp] = rows;
  if (type.gradient) (*type.gradient)[Axis::kCp] = rows;
  return type;
}

// The symbol of a size. With cp 1 a part is the whole lane, and both have one symbol.
Dim SymbolOf(const BlockContext& context, const char* with_cp_1, const char* with_cp) {
  return context.module + (context.cp > 1 ? with_cp : with_cp_1);
}

}  // namespace

EncoderSizes::EncoderSizes(const RadioVitModel& model, const Module& module, const BlockContext& context)
    : h(model.hidden), local_h(h / context.tp), heads(model.heads / context.tp), head_dim(h / model.heads),
      ffn(model.ffn / context.tp), proj(model.projector_hidden / context.tp), out(module.size("output.hidden")),
      shuffled(h * model.pixel_shuffle * model.pixel_shuffle), patch_values(3 * model.patch * model.patch),
      side(model.max_image / model.patch), classes(model.class_tokens), factor(model.pixel_shuffle), cp(context.cp),
      patches(context.module + ".patches"), tokens(context.module + ".tokens"),
      rows(SymbolOf(context, ".image_rows", ".part_image_rows")), images(context.module + ".images"),
      lane_tokens(SymbolOf(context, ".tokens", ".lane_tokens")), lane_rows(context.module + ".image_rows"),
      eps(model.norm_eps), projector_eps(model.projector_norm_eps),
      // Cropping the position table augments training data. A frozen encoder always resizes it.
      crop(*model.positions == "crop" && context.trains_backbone) {}

// With cp an operation computes which bands are this rank's, for which it needs cp and the height of a band.
Attributes EncoderSizes::WithParts(Attributes attributes) const {
  if (cp > 1) {
    attributes["cp"] = cp;
    attributes["factor"] = factor;
  }
  return attributes;
}

Attributes EncoderSizes::Attention() const {
  return WithParts({{"heads", heads}, {"head_dim", head_dim}, {"class_tokens", classes}});
}
Attributes EncoderSizes::Positions() const { return WithParts({{"side", side}, {"crop", int64_t{crop}}}); }
Attributes EncoderSizes::Classes() const { return WithParts({{"class_tokens", classes}}); }
Attributes EncoderSizes::Shuffle() const { return WithParts({{"factor", factor}}); }

ValueType PartWhole(const BlockBuilder& b, Dim rows, int64_t width) {
  return DealtOverCp(b, b.Whole({std::move(rows), width}));
}

ValueType PartFeatures(const BlockBuilder& b, Dim rows, int64_t width) {
  return DealtOverCp(b, b.Activation({std::move(rows), width}, Sharded(b.context(), 1), Sharded(b.context(), 1)));
}

ValueType PartTerm(const BlockBuilder& b, Dim rows, int64_t width) {
  return DealtOverCp(b, b.Activation({std::move(rows), width}, Partial(b.context()), Replicated()));
}

ValueType PartStatistic(const BlockBuilder& b, Dim rows) {
  return DealtOverCp(b, b.Data(b.context().wide(), {std::move(rows), int64_t{1}}));
}

void InputImageSizes(BlockBuilder& f, const EncoderSizes& sizes, bool ids) {
  f.Input("image_grid", f.Data(DType::kInt64, {sizes.images, int64_t{2}}, true));
  if (ids) f.Input("image_ids", f.Data(DType::kInt64, {sizes.images, int64_t{2}}, true));
}

void EmitPartCounts(BlockBuilder& f, const EncoderSizes& sizes) {
  if (sizes.cp == 1) return;
  const ValueType counts = f.Data(DType::kInt64, {sizes.cp}, true);
  f.Emit(OpKind::kDealBands, {.inputs = {"image_grid"}, .attributes = sizes.Classes()},
         {{"token_counts", counts}, {"row_counts", counts}});
}

LayerNormNames EmitLayerNorm(BlockBuilder& f, const string& x, const string& slot, const string& out, double eps) {
  const ValueType type = f.TypeOf(x), statistic = PartStatistic(f, type.dims.front());
  const LayerNormNames names = {out, out + "_mean", out + "_scale"};
  f.Emit(OpKind::kLayerNorm,
         {.inputs = {x}, .parameters = {slot + "_weight", slot + "_bias"}, .attributes = {{"eps", eps}}},
         {{names.value, type}, {names.mean, statistic}, {names.scale, statistic}});
  return names;
}

string EmitLayerNormGrad(BlockBuilder& b, const string& dy, const string& x, const LayerNormNames& norm,
                         const string& slot, const string& out) {
  return b.Make(OpKind::kLayerNormGrad,
                {.inputs = {dy, x, norm.mean, norm.scale},
                 .parameters = {slot + "_weight"},
                 .gradients = {slot + "_weight", slot + "_bias"}},
                out, b.TypeOf(x));
}

string EmitColumnLinearGrad(BlockBuilder& b, const string& dy, const string& x, std::vector<string> slots, bool trained,
                            const string& out) {
  // slots: the weight, and the bias if there is one.
  if (trained) b.Emit(OpKind::kLinearWeightGrad, {.inputs = {dy, x}, .gradients = slots});
  // Each tp rank has some rows of W, so its product is a term of the sum over tp.
  ValueType type = b.TypeOf(x);
  for (const auto& [axis, state] : Partial(b.context())) type.layout[axis] = state;
  b.Make(OpKind::kLinearInputGrad, {.inputs = {dy}, .parameters = {slots.front()}}, out + "_part", type);
  return b.AllReduce(out + "_part", out);
}

}  // namespace planwright
