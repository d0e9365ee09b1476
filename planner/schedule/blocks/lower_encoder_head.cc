// The encoder's head: final norm, pixel shuffle and the projector to the language model's hidden size
// (docs/model/vision_encoder.md#output, #projector).
#include "planner/schedule/blocks/block_passes.h"
#include "planner/schedule/blocks/encoder_pieces.h"

namespace planwright {
namespace {

using std::string;

// The sum of squares of the rows that go to the bridge, for the guard of its mean square
// (docs/layouts/bridges.md#mean-square). Over tp all ranks have the same rows; over cp each has its part of the lane's.
void EmitSquareSum(BlockBuilder& f, const string& rows) {
  ValueType squares = f.Data(DType::kFp64, {int64_t{1}}), elements = f.Data(DType::kInt64, {int64_t{1}});
  squares.layout = elements.layout = Partial(f.context(), {Axis::kCp});
  f.Emit(OpKind::kSquareSum, {.inputs = {rows}}, {{"o_squares", squares}, {"o_elements", elements}});
  f.Accumulate("o_squares", "$reals.square_sum." + f.context().module, {Axis::kTp});
  f.Accumulate("o_elements", "$integers.elements." + f.context().module, {Axis::kTp});
}

Block HeadForward(const EncoderSizes& w, const BlockContext& context, int origin) {
  BlockBuilder f(context, context.module + ".head.forward", origin);
  f.Input("x", PartWhole(f, w.tokens, w.h));
  InputImageSizes(f, w, false);
  EmitPartCounts(f, w);
  f.Make(OpKind::kDropClassTokens, {.inputs = {"x", "image_grid"}, .attributes = w.Classes()}, "xp",
         PartWhole(f, w.patches, w.h));
  EmitLayerNorm(f, "xp", "final_norm", "fn", w.eps);
  f.ProbeValue("fn", "vision.final_norm.out");
  f.Make(OpKind::kPixelShuffle, {.inputs = {"fn", "image_grid"}, .attributes = w.Shuffle()}, "ps",
         PartWhole(f, w.rows, w.shuffled));
  f.Emit(OpKind::kRmsNorm, {.inputs = {"ps"}, .parameters = {"proj_norm"}, .attributes = {{"eps", w.projector_eps}}},
         {{"n", f.TypeOf("ps")}, {"n_scale", PartStatistic(f, w.rows)}});
  f.Make(OpKind::kLinear, {.inputs = {"n"}, .parameters = {"proj_up"}}, "u", PartFeatures(f, w.rows, w.proj));
  f.Make(OpKind::kSquaredRelu, {.inputs = {"u"}}, "r", PartFeatures(f, w.rows, w.proj));
  f.Make(OpKind::kLinear, {.inputs = {"r"}, .parameters = {"proj_down"}}, "o_part", PartTerm(f, w.rows, w.out));
  string o = f.AllReduce("o_part", "o");
  EmitSquareSum(f, o);
  std::vector<string> saved = {"image_grid", "xp", "fn_mean", "fn_scale", "ps", "n", "n_scale", "u", "r"};
  if (w.cp > 1) {
    // The bridge leader sends the rows of its whole lane.
    o = f.Communicate(OpKind::kAllGatherV, "cp", {.inputs = {o, "row_counts"}}, "o_all", f.Whole({w.lane_rows, w.out}));
    saved.push_back("row_counts");
  }
  f.ProbeValue(o, "projector.out");
  Block forward = f.Finish({o}, saved);
  if (context.trains_backbone || context.trains_projection) return forward;
  for (Instruction& op : forward.body) {
    for (Output& output : op.outputs) {
      if (output.name == o) output.type.gradient.reset();  // the bridge brings none back
    }
  }
  return forward;
}

Block HeadBackward(const EncoderSizes& w, const BlockContext& context, const Block& forward, int origin) {
  BlockBuilder b(context, context.module + ".head.backward", origin);
  b.TakeSaved(forward);
  b.InputGradient("drows", b.Whole({w.lane_rows, w.out}));
  // Every cp rank gets the gradient of all rows of the lane and keeps its part.
  string drows = "drows";
  if (w.cp > 1) {
    drows = b.Make(OpKind::kSliceRows, {.inputs = {"drows", "row_counts"}, .attributes = {{"axis", string("cp")}}},
                   "drows_part", PartWhole(b, w.rows, w.out));
  }
  const bool trained = context.trains_projection;
  if (trained) b.Emit(OpKind::kLinearWeightGrad, {.inputs = {drows, "r"}, .gradients = {"proj_down"}});
  b.Make(OpKind::kLinearInputGrad, {.inputs = {drows}, .parameters = {"proj_down"}}, "dr", b.TypeOf("r"));
  b.Make(OpKind::kSquaredReluGrad, {.inputs = {"dr", "u"}}, "du", b.TypeOf("u"));
  const string dn = EmitColumnLinearGrad(b, "du", "n", {"proj_up"}, trained, "dn");
  const std::vector<string> norm = trained ? std::vector<string>{"proj_norm"} : std::vector<string>();
  b.Make(OpKind::kRmsNormGrad, {.inputs = {dn, "ps", "n_scale"}, .parameters = {"proj_norm"}, .gradients = norm}, "dps",
         b.TypeOf("ps"));
  // A frozen backbone: the gradient ends with the projector.
  if (!context.trains_backbone) return b.Finish({}, {});
  b.Make(OpKind::kPixelShuffleGrad, {.inputs = {"dps", "image_grid"}, .attributes = w.Shuffle()}, "dfn",
         PartWhole(b, w.patches, w.h));
  EmitLayerNormGrad(b, "dfn", "xp", {"fn", "fn_mean", "fn_scale"}, "final_norm", "dxp");
  b.Make(OpKind::kDropClassTokensGrad, {.inputs = {"dxp", "image_grid"}, .attributes = w.Classes()}, "dx",
         PartWhole(b, w.tokens, w.h));
  return b.Finish({"dx"}, {});
}

}  // namespace

LayerBlocks LowerEncoderHead(const EncoderSizes& sizes, const BlockContext& context, int origin) {
  LayerBlocks blocks = {.forward = HeadForward(sizes, context, origin)};
  blocks.backward = HeadBackward(sizes, context, blocks.forward, origin);
  FinishBlocks(blocks, context.trains_backbone || context.trains_projection, false);
  return blocks;
}

}  // namespace planwright
