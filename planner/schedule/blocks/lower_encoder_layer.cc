// A transformer block of the encoder: pre-norm attention inside each image, then a pre-norm GELU MLP
// (docs/model/vision_encoder.md#layers, #attention). Row-parallel biases are added behind the sum over tp, so that they
// count once.
#include "planner/schedule/blocks/block_passes.h"
#include "planner/schedule/blocks/encoder_pieces.h"

namespace planwright {
namespace {

using std::string;

// Every query sees the keys of its whole image, which may lie on several cp ranks, so k and v are gathered over cp. The
// backward gathers them again: keeping the gathered ones would cost cp times a rank's own part.
string GatherKeys(BlockBuilder& b, const EncoderSizes& w) {
  ValueType whole = b.TypeOf("kv");
  whole.dims[0] = w.lane_tokens;
  whole.layout.erase(Axis::kCp);
  (*whole.gradient)[Axis::kCp] = {AxisLayout::State::kPartial, 0};
  return b.Communicate(OpKind::kAllGatherV, "cp", {.inputs = {"kv", "token_counts"}}, "kv_all", std::move(whole));
}

// Splits the projection "qkv" into queries and keys for the operands of attention, in the order of its signature. With
// cp 1 the operation reads the projection as it is.
std::vector<string> EmitSplit(BlockBuilder& f, const EncoderSizes& w) {
  if (w.cp == 1) return {"qkv"};
  f.Emit(OpKind::kSplit, {.inputs = {"qkv"}, .attributes = {{"dim", int64_t{1}}}},
         {{"query", PartFeatures(f, w.tokens, w.local_h)}, {"kv", PartFeatures(f, w.tokens, 2 * w.local_h)}});
  return {"query", GatherKeys(f, w)};
}

// da -> dqkv
void EmitAttentionGrad(BlockBuilder& b, const EncoderSizes& w) {
  const ValueType dqkv = PartFeatures(b, w.tokens, 3 * w.local_h);
  if (w.cp == 1) {
    b.Make(OpKind::kPackedAttentionGrad,
           {.inputs = {"da", "qkv", "a", "lse", "image_grid"}, .attributes = w.Attention()}, "dqkv", dqkv);
    return;
  }
  const string kv_all = GatherKeys(b, w);
  // A term of the gradient of all keys: its layout is the gradient layout of kv_all.
  ValueType dkv = b.TypeOf(kv_all);
  std::swap(dkv.layout, *dkv.gradient);
  b.Emit(OpKind::kPackedAttentionGrad,
         {.inputs = {"da", "query", kv_all, "a", "lse", "image_grid"}, .attributes = w.Attention()},
         {{"dq", b.TypeOf("query")}, {"dkv_part", dkv}});
  b.Communicate(OpKind::kReduceScatterV, "cp", {.inputs = {"dkv_part", "token_counts"}}, "dkv", b.TypeOf("kv"));
  b.Make(OpKind::kConcat, {.inputs = {"dq", "dkv"}, .attributes = {{"dim", int64_t{1}}}}, "dqkv", dqkv);
}

Block LayerForward(const EncoderSizes& w, const BlockContext& context, int origin) {
  BlockBuilder f(context, context.module + ".layer.forward", origin);
  const ValueType stream = PartWhole(f, w.tokens, w.h);
  f.Input("x", stream);
  InputImageSizes(f, w, false);
  EmitPartCounts(f, w);
  EmitLayerNorm(f, "x", "norm1", "n1", w.eps);
  f.Make(OpKind::kLinear, {.inputs = {"n1"}, .parameters = {"qkv_weight", "qkv_bias"}}, "qkv",
         PartFeatures(f, w.tokens, 3 * w.local_h));
  std::vector<string> operands = EmitSplit(f, w);
  operands.push_back("image_grid");
  ValueType lse = f.Data(context.wide(), {w.heads, w.tokens});
  lse.layout = Sharded(context, 0);
  if (w.cp > 1) lse.layout[Axis::kCp] = {AxisLayout::State::kSharded, 1};
  f.Emit(OpKind::kPackedAttention, {.inputs = std::move(operands), .attributes = w.Attention()},
         {{"a", PartFeatures(f, w.tokens, w.local_h)}, {"lse", lse}});
  f.Make(OpKind::kLinear, {.inputs = {"a"}, .parameters = {"proj_weight"}}, "p_part", PartTerm(f, w.tokens, w.h));
  const string p = f.AllReduce("p_part", "p");
  f.Make(OpKind::kAddResidualBias, {.inputs = {"x", p}, .parameters = {"proj_bias"}}, "x1", stream);
  EmitLayerNorm(f, "x1", "norm2", "n2", w.eps);
  f.Make(OpKind::kLinear, {.inputs = {"n2"}, .parameters = {"fc1_weight", "fc1_bias"}}, "f",
         PartFeatures(f, w.tokens, w.ffn));
  f.Make(OpKind::kGelu, {.inputs = {"f"}}, "g", PartFeatures(f, w.tokens, w.ffn));
  f.Make(OpKind::kLinear, {.inputs = {"g"}, .parameters = {"fc2_weight"}}, "q_part", PartTerm(f, w.tokens, w.h));
  const string q = f.AllReduce("q_part", "q");
  f.Make(OpKind::kAddResidualBias, {.inputs = {"x1", q}, .parameters = {"fc2_bias"}}, "x_out", stream);
  f.ProbeValue("x_out", "vision.block{layer}.out");
  std::vector<string> saved = {"x", "image_grid", "n1", "n1_mean", "n1_scale"};
  if (w.cp == 1) {
    saved.push_back("qkv");
  } else {
    saved.insert(saved.end(), {"token_counts", "query", "kv"});
  }
  saved.insert(saved.end(), {"a", "lse", "x1", "n2", "n2_mean", "n2_scale", "f", "g"});
  return f.Finish({"x_out"}, saved);
}

Block LayerBackward(const EncoderSizes& w, const BlockContext& context, const Block& forward, int origin) {
  BlockBuilder b(context, context.module + ".layer.backward", origin);
  b.TakeSaved(forward);
  b.InputGradient("dx_out", b.TypeOf("x"));
  b.Emit(OpKind::kBiasGrad, {.inputs = {"dx_out"}, .gradients = {"fc2_bias"}});
  b.Emit(OpKind::kLinearWeightGrad, {.inputs = {"dx_out", "g"}, .gradients = {"fc2_weight"}});
  b.Make(OpKind::kLinearInputGrad, {.inputs = {"dx_out"}, .parameters = {"fc2_weight"}}, "dg", b.TypeOf("g"));
  b.Make(OpKind::kGeluGrad, {.inputs = {"dg", "f"}}, "df", b.TypeOf("f"));
  const string dn2 = EmitColumnLinearGrad(b, "df", "n2", {"fc1_weight", "fc1_bias"}, true, "dn2");
  EmitLayerNormGrad(b, dn2, "x1", {"n2", "n2_mean", "n2_scale"}, "norm2", "dx1_norm");
  b.Add({"dx_out", "dx1_norm"}, "dx1");
  b.Emit(OpKind::kBiasGrad, {.inputs = {"dx1"}, .gradients = {"proj_bias"}});
  b.Emit(OpKind::kLinearWeightGrad, {.inputs = {"dx1", "a"}, .gradients = {"proj_weight"}});
  b.Make(OpKind::kLinearInputGrad, {.inputs = {"dx1"}, .parameters = {"proj_weight"}}, "da", b.TypeOf("a"));
  EmitAttentionGrad(b, w);
  const string dn1 = EmitColumnLinearGrad(b, "dqkv", "n1", {"qkv_weight", "qkv_bias"}, true, "dn1");
  EmitLayerNormGrad(b, dn1, "x", {"n1", "n1_mean", "n1_scale"}, "norm1", "dx_norm");
  return b.Finish({b.Add({"dx1", "dx_norm"}, "dx")}, {});
}

}  // namespace

LayerBlocks LowerEncoderLayer(const EncoderSizes& sizes, const BlockContext& context, bool recompute, int origin) {
  LayerBlocks blocks = {.forward = LayerForward(sizes, context, origin)};
  blocks.backward = LayerBackward(sizes, context, blocks.forward, origin);
  FinishBlocks(blocks, context.trains_backbone, recompute);
  return blocks;
}

}  // namespace planwright
