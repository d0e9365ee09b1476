// The language model's head: final norm, logits and the loss of a vocabulary that is cut over tp
// (docs/model/language_model.md#output-head, docs/model/loss.md#cross-entropy).
#include "planner/schedule/blocks/language_pieces.h"

namespace planwright {

using std::string;

// Each cp rank has the loss of its own positions. Labels and mask are read whole, cut over cp, and never cut over tp:
// logits are cut along the vocabulary, so each tp rank has all positions.
LayerBlocks LowerLanguageHead(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes,
                              int origin) {
  const int64_t S = sizes.sequence / context.cp, B = sizes.samples, H = model.hidden, tp = context.tp;
  BlockBuilder f(context, context.module + ".head.forward", origin);
  f.Input("x", StreamType(f, S / tp, B, H));
  f.Input("labels", f.Data(DType::kInt64, {B, sizes.sequence}));
  f.Input("loss_mask", f.Data(context.dtype, {B, sizes.sequence}));
  const string labels = f.Slice("labels", 1, "labels_local", Axis::kCp),
               mask = f.Slice("loss_mask", 1, "loss_mask_local", Axis::kCp);
  const auto [n, scale] = EmitRmsNorm(f, "x", "norm", model.norm_eps);
  const string n_full = f.AllGather(n, 0, "n_full", Partial(context));
  // lm_head is column-parallel: a rank has the logits of its part of the vocabulary.
  const Layout cut = OverCp(context, 0, Sharded(context, 2));
  f.Make(OpKind::kLinear, {.inputs = {n_full}, .parameters = {"lm_head"}}, "logits",
         f.Activation({S, B, model.vocabulary / tp}, cut, cut));
  // One pass over the logits gives all that the softmax needs of this part of the vocabulary. The rest is small: the
  // maximum over all parts, then two sums that are relative to it, of exp(logit - maximum) and of the label's logit.
  ValueType statistic = f.Data(context.wide(), {S, B}), parts = statistic, loss = f.Data(DType::kFp64, {int64_t{1}});
  statistic.layout = OverCp(context, 0, Partial(context));
  parts.dims = {int64_t{4}, S, B};
  parts.layout = OverCp(context, 1, Partial(context));
  f.Emit(OpKind::kCrossEntropyParts, {.inputs = {"logits", labels}}, {{"m_part", statistic}, {"parts", parts}});
  const string m = f.AllReduce("m_part", "m", "max");
  parts.dims = {int64_t{2}, S, B};
  f.Make(OpKind::kCrossEntropySums, {.inputs = {"parts", m}}, "sums_part", parts);
  const string sums = f.AllReduce("sums_part", "sums");
  statistic.layout = OverCp(context, 0, Replicated());
  loss.layout = Partial(context, {Axis::kCp});
  f.Emit(OpKind::kTokenLoss, {.inputs = {sums, mask}}, {{"token_loss", statistic}, {"loss", loss}});
  // Over tp all ranks have the same loss, so one counts; over cp each adds the loss of its own positions.
  f.Accumulate("loss", "$reals.loss", {Axis::kTp});
  f.ProbeValue("logits", "logits");
  f.ProbeValue("token_loss", "token_loss");
  f.ProbeValue("loss", "loss_sum");
  Block forward = f.Finish({}, {"x", scale, n_full, "logits", m, sums, labels, mask});

  // The gradient of the loss sum: the division by the number of loss tokens comes at the end of the step, when it is
  // known (docs/model/loss.md#normalization). So the backward has no input.
  BlockBuilder b(context, context.module + ".head.backward", origin);
  b.TakeSaved(forward);
  b.Make(OpKind::kCrossEntropyGrad, {.inputs = {"logits", m, sums, labels, mask}}, "dlogits", b.TypeOf("logits"));
  b.LinearWeightGrad("dlogits", n_full, "lm_head");
  b.Make(OpKind::kLinearInputGrad, {.inputs = {"dlogits"}, .parameters = {"lm_head"}}, "dn_part",
         PartialType(b, S, B, H));
  const string dn = b.ReduceScatter("dn_part", 0, "dn");
  b.Make(OpKind::kRmsNormGrad,
         {.inputs = {dn, "x", scale}, .parameters = {"norm"}, .gradients = b.TrainedSlots({"norm"})}, "dx",
         b.TypeOf("x"));
  return {std::move(forward), b.Finish({"dx"}, {}), std::nullopt};
}

}  // namespace planwright
