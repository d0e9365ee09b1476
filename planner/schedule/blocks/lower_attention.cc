// Layer kind *, causal grouped-query attention (docs/model/attention.md#forward and #backward).
#include "planner/schedule/blocks/language_pieces.h"

namespace planwright {
namespace {

using std::string;

// Sizes on one rank. Heads are cut over tp, the sequence over cp.
struct AttentionSizes {
  int64_t S, B, H;  // tokens of a cp rank's part of a sample, samples of the microbatch, hidden
  int64_t s;        // of S, the tokens of a tp rank's part
  int64_t q_heads, kv_heads, head_dim;

  AttentionSizes(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes)
      : S(sizes.sequence / context.cp), B(sizes.samples), H(model.hidden), s(S / context.tp),
        q_heads(model.attention.heads / context.tp), kv_heads(model.attention.kv_groups / context.tp),
        head_dim(model.attention.head_dim) {}

  int64_t q() const { return q_heads * head_dim; }
  int64_t kv() const { return 2 * kv_heads * head_dim; }
  Attributes attributes(const BlockContext& context) const {
    return PositionAttributes(context, {{"q_heads", q_heads}, {"kv_heads", kv_heads}, {"head_dim", head_dim}});
  }
};

ValueType Features(const BlockBuilder& b, const AttentionSizes& w, int64_t width) {
  const Layout layout = OverCp(b.context(), 0, Sharded(b.context(), 2));
  return b.Activation({w.S, w.B, width}, layout, layout);
}

// Every query sees keys of the whole sequence, so k and v are gathered over cp. The backward gathers them again:
// keeping the gathered ones would cost cp times a rank's own part. There is no ring attention.
string GatherKeys(BlockBuilder& b) {
  return b.AllGather("kv", 0, "kv_all", Partial(b.context(), {Axis::kCp}), Axis::kCp);
}

// Splits the projection into queries and keys for the operands of attention, in the order of its signature. With cp 1
// the operation reads the projection as it is.
std::vector<string> EmitSplit(BlockBuilder& f, const AttentionSizes& w) {
  if (f.context().cp == 1) return {"qkv"};
  f.Emit(OpKind::kSplit, {.inputs = {"qkv"}, .attributes = {{"dim", int64_t{2}}}},
         {{"q", Features(f, w, w.q())}, {"kv", Features(f, w, w.kv())}});
  return {"q", GatherKeys(f)};
}

// da -> dqkv
void EmitAttentionGrad(BlockBuilder& b, const AttentionSizes& w, const LanguageSizes& sizes) {
  const BlockContext& context = b.context();
  const ValueType dqkv = Features(b, w, w.q() + w.kv());
  if (context.cp == 1) {
    b.Make(OpKind::kCausalAttentionGrad,
           {.inputs = WithDocuments({"da", "qkv", "a", "lse"}, sizes), .attributes = w.attributes(context)}, "dqkv",
           dqkv);
    return;
  }
  const string kv_all = GatherKeys(b);
  // This rank's queries give a term of the gradient of all keys; the reduce-scatter sums the terms and leaves a rank
  // the gradient of its own keys. So the layout of dkv_part is the gradient layout of kv_all.
  ValueType dkv = b.TypeOf(kv_all);
  std::swap(dkv.layout, *dkv.gradient);
  b.Emit(OpKind::kCausalAttentionGrad,
         {.inputs = WithDocuments({"da", "q", kv_all, "a", "lse"}, sizes), .attributes = w.attributes(context)},
         {{"dq", Features(b, w, w.q())}, {"dkv_part", dkv}});
  b.ReduceScatter("dkv_part", 0, "dkv", Axis::kCp);
  b.Make(OpKind::kConcat, {.inputs = {"dq", "dkv"}, .attributes = {{"dim", int64_t{2}}}}, "dqkv", dqkv);
}

}  // namespace

Block LowerAttentionForward(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes,
                            int origin) {
  const AttentionSizes w(model, context, sizes);
  BlockBuilder f(context, context.module + ".attention.forward", origin);
  f.Input("x", StreamType(f, w.s, w.B, w.H));
  InputDocuments(f, sizes);
  const auto [n, n_scale] = EmitRmsNorm(f, "x", "norm", model.norm_eps);
  const string n_full = f.AllGather(n, 0, "n_full", Partial(context));
  f.Make(OpKind::kLinear, {.inputs = {n_full}, .parameters = {"qkv"}}, "qkv", Features(f, w, w.q() + w.kv()));
  const std::vector<string> operands = EmitSplit(f, w);
  ValueType lse = f.Data(context.wide(), {w.B, w.q_heads, w.S});
  lse.layout = OverCp(context, 2, Sharded(context, 1));
  f.Emit(OpKind::kCausalAttention, {.inputs = WithDocuments(operands, sizes), .attributes = w.attributes(context)},
         {{"a", Features(f, w, w.q())}, {"lse", lse}});
  f.Make(OpKind::kLinear, {.inputs = {"a"}, .parameters = {"o_proj"}}, "o_part", PartialType(f, w.S, w.B, w.H));
  const string o = f.ReduceScatter("o_part", 0, "o");
  f.Add({"x", o}, "x_out");
  f.ProbeValue("x_out", "language.layer{layer}.out");
  std::vector<string> saved = {"x", n_scale, n_full};
  if (context.cp == 1) {
    saved.push_back("qkv");
  } else {
    saved.insert(saved.end(), {"q", "kv"});
  }
  saved.insert(saved.end(), {"a", "lse"});
  return f.Finish({"x_out"}, WithDocuments(saved, sizes));
}

Block LowerAttentionBackward(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes,
                             const Block& forward, int origin) {
  const AttentionSizes w(model, context, sizes);
  const string n_full = context.tp > 1 ? "n_full" : "n";  // the name that AllGather returned in the forward
  BlockBuilder b(context, context.module + ".attention.backward", origin);
  b.TakeSaved(forward);
  b.InputGradient("dx_out", b.TypeOf("x"));
  const string d_o = b.AllGather("dx_out", 0, "do_full", Replicated());
  b.LinearWeightGrad(d_o, "a", "o_proj");
  b.Make(OpKind::kLinearInputGrad, {.inputs = {d_o}, .parameters = {"o_proj"}}, "da", b.TypeOf("a"));
  EmitAttentionGrad(b, w, sizes);
  b.LinearWeightGrad("dqkv", n_full, "qkv");
  b.Make(OpKind::kLinearInputGrad, {.inputs = {"dqkv"}, .parameters = {"qkv"}}, "dn_part",
         PartialType(b, w.S, w.B, w.H));
  const string dn = b.ReduceScatter("dn_part", 0, "dn");
  b.Make(OpKind::kRmsNormGrad,
         {.inputs = {dn, "x", "n_scale"}, .parameters = {"norm"}, .gradients = b.TrainedSlots({"norm"})}, "dx_norm",
         b.TypeOf("x"));
  return b.Finish({b.Add({"dx_out", "dx_norm"}, "dx")}, {});
}

}  // namespace planwright
