// E, a mixture of experts (facts 3.6, 3.7, section 4).
#include "planner/schedule/lower_language.h"

namespace planwright {
namespace {

using std::string;

// Tokens of a rank are its part of the sequence, cut over cp and tp. In the expert view the ranks of a group over ep
// hold different experts, and those over expert_tp a part of each of them.
struct Widths {
  int64_t whole, S, B, H, s, T, k, E, L, ep, expert_tp, ffn, shared;
  Widths(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes)
      : whole(sizes.sequence), S(whole / context.cp), B(sizes.samples), H(model.hidden), s(S / context.tp), T(s * B),
        k(model.moe.top_k), E(model.moe.experts), L(E / context.ep), ep(context.ep), expert_tp(context.expert_tp),
        ffn(model.moe.ffn / context.expert_tp), shared(model.moe.shared_ffn / context.tp) {}

  // Rows that reach a rank through the token dispatch, and rows of its whole expert_tp group.
  Dim received(const string& module) const { return ep == 1 ? Dim(T * k) : Dim(module + ".expert_rows"); }
  Dim gathered(const string& module) const {
    if (expert_tp == 1) return received(module);
    return ep == 1 ? Dim(expert_tp * T * k) : Dim(module + ".expert_rows_gathered");
  }
};

// Names of what the experts work on, which is what the dispatch made where nothing is gathered.
struct ExpertNames {
  string counts, rows, weights, out;  // out: of this rank's received rows
  explicit ExpertNames(const BlockContext& context)
      : counts(context.ep > 1 ? "counts_in" : "counts"), rows(context.ep > 1 ? "rows_in" : "rows"),
        weights(context.ep > 1 ? "row_weights_in" : "row_weights"), out("out_in") {}
  static ExpertNames Gathered(const BlockContext& context) {
    ExpertNames names(context);
    if (context.expert_tp > 1)
      names.counts = "counts_all", names.rows = "rows_all", names.weights = "row_weights_all", names.out = "out_part";
    return names;
  }
};

// Rows between permutation and the experts: each expert rank has its own. Their layout over ep is the token dispatch
// itself, so no axis of the dense view describes it; they belong to the rank. Over expert_tp they are pieces of the
// rows that its ranks gather.
ValueType Rows(const BlockBuilder& b, std::vector<Dim> dims) {
  const Layout layout = Sharded(b.context(), 0, {Axis::kExpertTp});
  return b.Activation(std::move(dims), layout, layout);
}

// Routing weights of rows stay wide from the router to the activation.
ValueType Wide(const BlockBuilder& b, ValueType type) {
  type.dtype = b.context().wide();
  return type;
}

ValueType RowWeights(const BlockBuilder& b, Dim rows) { return Wide(b, Rows(b, {std::move(rows)})); }

// One all-to-all-v, or nothing when every expert is here.
string ExchangeRows(BlockBuilder& b, const Widths& w, const string& rows, const string& send, const string& receive,
                    const string& output, ValueType type) {
  if (w.ep == 1) return rows;
  return b.Communicate(OpKind::kAllToAllV, "ep", {.inputs = {rows, send, receive}}, output, std::move(type));
}

// The rows of all expert_tp ranks, each of which holds a part of every expert: whole, with a gradient that is a sum
// over them.
string GatherRows(BlockBuilder& b, const Widths& w, const string& rows, const string& output) {
  if (w.expert_tp == 1) return rows;
  ValueType type = b.TypeOf(rows);
  type.dims[0] = w.gathered(b.context().module);
  type.layout.erase(Axis::kExpertTp);
  type.gradient = Partial(b.context(), {Axis::kExpertTp});
  return b.Communicate(OpKind::kAllGatherV, "ep_tp", {.inputs = {rows, "counts_all"}}, output, std::move(type));
}

// The transpose: sums what the expert_tp ranks made, each keeps its own rows.
string ScatterRows(BlockBuilder& b, const Widths& w, const string& part, const string& output, ValueType type) {
  if (w.expert_tp == 1) return part;
  return b.Communicate(OpKind::kReduceScatterV, "ep_tp", {.inputs = {part, "counts_all"}}, output, std::move(type));
}

// A term of a sum over expert_tp, of rows of `type`.
ValueType RowsPartial(const BlockBuilder& b, ValueType type) {
  type.layout = Partial(b.context(), {Axis::kExpertTp});
  type.gradient = Replicated();
  return type;
}

// How many rows of each expert every rank sends to every other. Counts that messages need are on the host.
void EmitCounts(BlockBuilder& f, const Widths& w) {
  if (w.ep > 1)
    f.Communicate(OpKind::kAllToAll, "ep", {.inputs = {"counts"}}, "counts_in",
                  f.Data(DType::kInt64, {w.ep, w.L}, true));
  if (w.expert_tp == 1) return;
  f.Communicate(
      OpKind::kAllGather, "ep_tp", {.inputs = {ExpertNames(f.context()).counts}, .attributes = {{"dim", int64_t{0}}}},
      "counts_all",
      f.Data(DType::kInt64, w.ep > 1 ? std::vector<Dim>{w.expert_tp * w.ep, w.L} : std::vector<Dim>{w.expert_tp * w.E},
             true));
}

void LowerSharedExpertForward(BlockBuilder& f, const Widths& w, const string& n) {
  const BlockContext& context = f.context();
  const Layout cut = OverCp(context, 0, Sharded(context, 2));
  const ValueType wide = f.Activation({w.S, w.B, w.shared}, cut, cut);
  const string n_full = f.AllGather(n, 0, "n_full", Partial(context));
  f.Make(OpKind::kLinear, {.inputs = {n_full}, .parameters = {"shared_up"}}, "s_pre", wide);
  f.Make(OpKind::kSquaredRelu, {.inputs = {"s_pre"}}, "s_act", wide);
  f.Make(OpKind::kLinear, {.inputs = {"s_act"}, .parameters = {"shared_down"}}, "s_part",
         PartialType(f, w.S, w.B, w.H));
}

string LowerSharedExpertBackward(BlockBuilder& b, const Widths& w, const string& dx_out) {
  const string n_full = b.context().tp > 1 ? "n_full" : "n";
  const string ds = b.AllGather(dx_out, 0, "ds_full", Replicated());
  b.LinearWeightGrad(ds, "s_act", "shared_down");
  b.Make(OpKind::kLinearInputGrad, {.inputs = {ds}, .parameters = {"shared_down"}}, "ds_act", b.TypeOf("s_act"));
  b.Make(OpKind::kSquaredReluGrad, {.inputs = {"ds_act", "s_pre"}}, "ds_pre", b.TypeOf("s_pre"));
  b.LinearWeightGrad("ds_pre", n_full, "shared_up");
  b.Make(OpKind::kLinearInputGrad, {.inputs = {"ds_pre"}, .parameters = {"shared_up"}}, "dn_part",
         PartialType(b, w.S, w.B, w.H));
  return b.ReduceScatter("dn_part", 0, "dn_shared");
}

// Statistics that never reach the residual stream: the auxiliary loss, the routing fingerprint, the bias update's
// counts. A frozen model runs as in evaluation: of these only the fingerprint is left.
void LowerRoutingStatistics(BlockBuilder& f, const Widths& w) {
  const BlockContext& context = f.context();
  ValueType one = f.Data(DType::kFp64, {int64_t{1}});
  one.layout = Partial(context, {Axis::kTp, Axis::kCp});
  if (context.trains_backbone) {
    const string aux_counts = f.AllReduce("aux_counts", "aux_counts_all", "sum", {Axis::kTp, Axis::kCp});
    f.Make(OpKind::kSequenceAuxLoss,
           {.inputs = {"probs", aux_counts}, .attributes = {{"sequence", w.whole}, {"top_k", w.k}}}, "aux", one);
    f.Accumulate("aux", "$reals.aux", {});
  }
  one.dtype = DType::kInt64;
  f.Make(OpKind::kRoutingFingerprint,
         {.inputs = {"ids"}, .attributes = PositionAttributes(context, {{"sequence", w.whole}})}, "fingerprint", one);
  f.Accumulate("fingerprint", "$integers.routing", {});
  if (context.trains_backbone) f.Emit(OpKind::kAccumulateCounts, {.inputs = {"counts"}});
}

void EmitRoute(BlockBuilder& f, const HybridLmModel& model, const Widths& w, const string& n) {
  const BlockContext& context = f.context();
  // Cut along the sequence, so along dim 0 of a [T, *] tensor too (position-major).
  const Layout tokens = OverCp(context, 0, Sharded(context, 0));
  const auto per_token = [&](DType dtype, int64_t width) {
    ValueType type = f.Data(dtype, {w.T, width});
    type.layout = tokens;
    return type;
  };
  ValueType weights = per_token(context.wide(), w.k);
  weights.gradient = tokens;
  ValueType counts = f.Data(DType::kInt64, {w.E}), aux_counts = f.Data(DType::kInt64, {w.B, w.E});
  counts.layout = aux_counts.layout = Partial(context, {Axis::kTp, Axis::kCp});
  f.Emit(
      OpKind::kRoute,
      {.inputs = {n}, .parameters = {"gate", "gate_bias"}, .attributes = {{"top_k", w.k}, {"scale", *model.moe.scale}}},
      {{"weights", weights},
       {"ids", per_token(DType::kInt64, w.k)},
       {"counts", counts},
       {"probs", per_token(context.wide(), w.E)},
       {"aux_counts", aux_counts},
       {"logits", per_token(context.wide(), w.E)}});
  f.ProbeValue("logits", "language.layer{layer}.router_logits");
  f.ProbeValue("ids", "language.layer{layer}.expert_ids");
  f.ProbeValue("weights", "language.layer{layer}.expert_weights");
}

string AuxCounts(const BlockContext& context) { return context.tp * context.cp > 1 ? "aux_counts_all" : "aux_counts"; }

// dweights -> dn_route, with the gradient of the auxiliary loss unless the model is frozen.
void EmitRouteGrad(BlockBuilder& b, const HybridLmModel& model, const Widths& w, const ValueType& stream) {
  const BlockContext& context = b.context();
  std::vector<string> inputs = {"dweights", "n", "weights", "ids", "logits"};
  Attributes attributes = {{"top_k", w.k}, {"scale", *model.moe.scale}};
  if (context.trains_backbone) {
    inputs.push_back(AuxCounts(context));
    attributes.insert({{"sequence", w.whole}, {"aux_scale", model.moe.aux_loss * static_cast<double>(w.whole)}});
  }
  b.Make(
      OpKind::kRouteGrad,
      {.inputs = inputs, .parameters = {"gate"}, .gradients = b.Trained({"gate"}), .attributes = std::move(attributes)},
      "dn_route", stream);
}

}  // namespace

Block LowerMoeForward(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes, int origin) {
  const Widths w(model, context, sizes);
  BlockBuilder f(context, context.module + ".moe.forward", origin);
  const ValueType stream = StreamType(f, w.s, w.B, w.H);
  f.Input("x", stream);
  const auto [n, n_scale] = EmitRmsNorm(f, "x", "norm", model.norm_eps);
  EmitRoute(f, model, w, n);
  LowerRoutingStatistics(f, w);

  EmitCounts(f, w);
  const ExpertNames own(context), all = ExpertNames::Gathered(context);
  const Dim received = w.received(context.module), gathered = w.gathered(context.module);
  f.Emit(OpKind::kPermuteRows, {.inputs = {n, "weights", "ids"}},
         {{"rows", Rows(f, {w.T * w.k, w.H})},
          {"row_weights", RowWeights(f, w.T * w.k)},
          {"order", f.Data(DType::kInt64, {w.T * w.k})}});
  ExchangeRows(f, w, "rows", "counts", own.counts, own.rows, Rows(f, {received, w.H}));
  ExchangeRows(f, w, "row_weights", "counts", own.counts, own.weights, RowWeights(f, received));
  GatherRows(f, w, own.rows, all.rows);
  GatherRows(f, w, own.weights, all.weights);
  const ValueType out_in = Rows(f, {received, w.H});
  ValueType made = out_in, pre = Rows(f, {gathered, w.ffn});
  if (w.expert_tp > 1) {
    made = RowsPartial(f, Rows(f, {gathered, w.H}));
    pre.layout = *(pre.gradient = Sharded(context, 1, {Axis::kExpertTp}));
  }
  f.Emit(OpKind::kExperts, {.inputs = {all.rows, all.weights, all.counts}, .parameters = {"up", "down"}},
         {{all.out, made}, {"pre", pre}});
  ScatterRows(f, w, all.out, own.out, out_in);
  const string out = ExchangeRows(f, w, own.out, own.counts, "counts", "out", Rows(f, {w.T * w.k, w.H}));
  f.Make(OpKind::kUnpermuteRows,
         {.inputs = {out, "order"}, .attributes = {{"top_k", w.k}, {"sequence", w.s}, {"samples", w.B}}}, "y", stream);

  LowerSharedExpertForward(f, w, n);
  const string s = f.ReduceScatter("s_part", 0, "s");
  f.Add({"x", "y", s}, "x_out");
  f.ProbeValue("x_out", "language.layer{layer}.out");
  std::vector<string> saved = {"x", n, n_scale, "weights", "ids", "logits"};
  if (context.trains_backbone) saved.push_back(AuxCounts(context));
  saved.insert(saved.end(), {"counts", own.counts, all.counts, "order", all.rows, all.weights, "pre",
                             context.tp > 1 ? "n_full" : n, "s_pre", "s_act"});
  return f.Finish({"x_out"}, std::move(saved));
}

Block LowerMoeBackward(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes,
                       const Block& forward, int origin) {
  const Widths w(model, context, sizes);
  const ExpertNames own(context), all = ExpertNames::Gathered(context);
  BlockBuilder b(context, context.module + ".moe.backward", origin);
  b.TakeSaved(forward);
  const ValueType stream = b.TypeOf("x");
  const Dim rows = w.received(context.module);
  const ValueType sent = Rows(b, {w.T * w.k, w.H}), received = Rows(b, {rows, w.H}),
                  received_weights = RowWeights(b, rows);
  b.Input("dx_out", stream);
  b.Make(OpKind::kUnpermuteRowsGrad, {.inputs = {"dx_out", "order"}, .attributes = {{"top_k", w.k}}}, "dout", sent);
  const string dout_in = ExchangeRows(b, w, "dout", "counts", own.counts, "dout_in", received);
  const string dout_all = GatherRows(b, w, dout_in, "dout_all");
  const bool whole = w.expert_tp == 1;
  const string made = whole ? "drows_in" : "drows_part", made_weights = whole ? "drow_weights_in" : "drow_weights_part";
  b.Emit(OpKind::kExpertsGrad,
         {.inputs = {dout_all, all.rows, all.weights, "pre", all.counts},
          .parameters = {"up", "down"},
          .gradients = b.Trained({"up", "down"})},
         {{made, whole ? received : RowsPartial(b, b.TypeOf(all.rows))},
          {made_weights, whole ? received_weights : RowsPartial(b, b.TypeOf(all.weights))}});
  const string drows_in = ScatterRows(b, w, made, "drows_in", received);
  const string drow_weights_in = ScatterRows(b, w, made_weights, "drow_weights_in", received_weights);
  const string drows = ExchangeRows(b, w, drows_in, own.counts, "counts", "drows", sent);
  const string drow_weights =
      ExchangeRows(b, w, drow_weights_in, own.counts, "counts", "drow_weights", RowWeights(b, w.T * w.k));
  b.Emit(
      OpKind::kPermuteRowsGrad,
      {.inputs = {drows, drow_weights, "order"}, .attributes = {{"top_k", w.k}, {"sequence", w.s}, {"samples", w.B}}},
      {{"dn_rows", stream}, {"dweights", b.TypeOf("weights")}});
  EmitRouteGrad(b, model, w, stream);
  const string dn_shared = LowerSharedExpertBackward(b, w, "dx_out");
  b.Add({"dn_rows", "dn_route", dn_shared}, "dn");
  b.Make(OpKind::kRmsNormGrad,
         {.inputs = {"dn", "x", "n_scale"}, .parameters = {"norm"}, .gradients = b.Trained({"norm"})}, "dx_norm",
         stream);
  return b.Finish({b.Add({"dx_out", "dx_norm"}, "dx")}, {});
}

}  // namespace planwright
