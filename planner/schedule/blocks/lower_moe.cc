// Layer kind E, a mixture of experts (docs/model/mixture_of_experts.md): a shared expert that sees all tokens, then
// router, token dispatch to the experts' ranks and back.
//
// With overlap_dispatch the dispatch has a stream of its own, and its instructions come in another order: half of the
// shared expert between an exchange towards the experts and its reader, half of it beside the way back
// (docs/model/mixture_of_experts.md#overlap). The order is what lets them overlap: an instruction that makes a value
// waits for all that touched values freed before it.
#include "planner/schedule/blocks/language_pieces.h"

namespace planwright {
namespace {

using std::string;

// Sizes on one rank. Its tokens are its part of the sequence, cut over cp and tp. In the expert view, ranks along ep
// hold different experts, and ranks along expert_tp hold a part of each.
struct MoeSizes {
  int64_t whole, S, s;  // tokens of a sample; of a cp rank's part; of that, of a tp rank's
  int64_t B, H, T;      // samples of the microbatch, hidden, and tokens of this rank, s * B
  int64_t k, E, L;      // experts of a token, experts of the layer, and experts on this rank
  int64_t ep, expert_tp;
  int64_t ffn, shared;  // this rank's part of the width of a routed expert, and of the shared expert

  MoeSizes(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes)
      : whole(sizes.sequence), S(whole / context.cp), s(S / context.tp), B(sizes.samples), H(model.hidden), T(s * B),
        k(model.moe.top_k), E(model.moe.experts), L(E / context.ep), ep(context.ep), expert_tp(context.expert_tp),
        ffn(model.moe.ffn / context.expert_tp), shared(model.moe.shared_ffn / context.tp) {}

  // Rows that the token dispatch brings to this rank, and rows of its whole expert_tp group. With ep 1 every token
  // stays, so the counts are known.
  Dim received(const string& module) const { return ep == 1 ? Dim(T * k) : Dim(module + ".expert_rows"); }
  Dim gathered(const string& module) const {
    if (expert_tp == 1) return received(module);
    return ep == 1 ? Dim(expert_tp * T * k) : Dim(module + ".expert_rows_gathered");
  }
};

// Value names at the two ends of the expert part. The constructor: rows that this rank received from the token
// dispatch. Gathered: what the experts read; without expert_tp these are the received rows, with it the rows of all
// ranks of the expert_tp group.
struct ExpertNames {
  string counts, rows, weights, out;  // out: the experts' output for these rows
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

// The type of expert rows: each rank has its own, and no axis of the dense view describes how tokens are spread over
// them. Over expert_tp they are the parts of the rows that its ranks gather.
ValueType ExpertRows(const BlockBuilder& b, std::vector<Dim> dims) {
  const Layout layout = Sharded(b.context(), 0, {Axis::kExpertTp});
  return b.Activation(std::move(dims), layout, layout);
}

// The type of the routing weights of expert rows. They are never narrower than fp32, from the router to the experts.
ValueType RowWeights(const BlockBuilder& b, Dim rows) {
  ValueType type = ExpertRows(b, {std::move(rows)});
  type.dtype = b.context().wide();
  return type;
}

constexpr char kDispatchStream[] = "dispatch";

// A communication of the token dispatch, over "ep" or "ep_tp". All of them are on one stream, so that a group has one
// communicator, overlapped or not.
string Exchange(BlockBuilder& b, OpKind kind, const char* group, BlockBuilder::Operands operands, const string& output,
                ValueType type) {
  b.Communicate(kind, group, std::move(operands), output, std::move(type));
  if (b.context().overlaps_dispatch) b.body().back().stream = kDispatchStream;
  return output;
}

// One all-to-all-v of the token dispatch. `send` and `receive`: row counts for each expert. Nothing with ep 1, where
// every expert is on this rank.
string ExchangeRows(BlockBuilder& b, const MoeSizes& w, const string& rows, const string& send, const string& receive,
                    const string& output, ValueType type) {
  if (w.ep == 1) return rows;
  return Exchange(b, OpKind::kAllToAllV, "ep", {.inputs = {rows, send, receive}}, output, std::move(type));
}

// The type of tokens of all ep ranks, [ep tokens, ...]. They lie where expert rows do: behind the token dispatch.
ValueType AllTokens(const BlockBuilder& b, const string& tokens) {
  ValueType type = b.TypeOf(tokens);
  type.dims[0] = std::get<int64_t>(type.dims[0]) * b.context().ep;
  type.layout.clear();
  if (type.dtype == DType::kInt64) return type;
  type.layout = Sharded(b.context(), 0, {Axis::kExpertTp});
  if (type.gradient) type.gradient = type.layout;
  return type;
}

string GatherTokens(BlockBuilder& b, const string& tokens, const string& output) {
  return Exchange(b, OpKind::kGatherTokens, "ep", {.inputs = {tokens}}, output, AllTokens(b, tokens));
}

// The type of a term of a sum over ep for the tokens of all ranks, which are of `type`. A sum over ranks is rounded
// once, as unpermute_rows rounds that of the rows that all_to_all_v brings, so its terms are wide.
ValueType TermOfTokens(const BlockBuilder& b, ValueType type) {
  type.dtype = b.context().wide();
  return type;
}

// Sums up terms over ep, given for all tokens, for this rank's own tokens. The sum has `type`.
string ScatterTokens(BlockBuilder& b, const string& terms, const string& output, ValueType type) {
  return Exchange(b, OpKind::kScatterTokens, "ep", {.inputs = {terms}}, output, std::move(type));
}

// The tokens of all ep ranks: positions and samples, and what else an operation must know of them.
Attributes AllTokensAttributes(const MoeSizes& w, const char* name, int64_t value) {
  return {{name, value}, {"sequence", w.ep * w.s}, {"samples", w.B}};
}

// Gathers the rows of all expert_tp ranks. Each of them holds a part of every expert, so each must see all rows, and
// each makes a term of the rows' gradient.
string GatherRows(BlockBuilder& b, const MoeSizes& w, const string& rows, const string& output) {
  if (w.expert_tp == 1) return rows;
  ValueType type = b.TypeOf(rows);
  type.dims[0] = w.gathered(b.context().module);
  type.layout.erase(Axis::kExpertTp);
  type.gradient = Partial(b.context(), {Axis::kExpertTp});
  return Exchange(b, OpKind::kAllGatherV, "ep_tp", {.inputs = {rows, "counts_all"}}, output, std::move(type));
}

// The transpose of GatherRows: sums the terms of the expert_tp ranks and leaves each rank its own rows.
string ScatterRows(BlockBuilder& b, const MoeSizes& w, const string& part, const string& output, ValueType type) {
  if (w.expert_tp == 1) return part;
  return Exchange(b, OpKind::kReduceScatterV, "ep_tp", {.inputs = {part, "counts_all"}}, output, std::move(type));
}

// The type of a term of a sum over expert_tp, for rows of `type`.
ValueType RowsPartial(const BlockBuilder& b, ValueType type) {
  type.layout = Partial(b.context(), {Axis::kExpertTp});
  type.gradient = Replicated();
  return type;
}

// Tells every rank how many rows of each expert it receives. These counts size messages, so they are in host memory.
void EmitRowCounts(BlockBuilder& f, const MoeSizes& w) {
  if (w.ep > 1)
    Exchange(f, OpKind::kAllToAll, "ep", {.inputs = {"counts"}}, "counts_in", f.Data(DType::kInt64, {w.ep, w.L}, true));
  if (w.expert_tp == 1) return;
  Exchange(f, OpKind::kAllGather, "ep_tp",
           {.inputs = {ExpertNames(f.context()).counts}, .attributes = {{"dim", int64_t{0}}}}, "counts_all",
           f.Data(DType::kInt64,
                  w.ep > 1 ? std::vector<Dim>{w.expert_tp * w.ep, w.L} : std::vector<Dim>{w.expert_tp * w.E}, true));
}

// n, weights, ids -> the rows of this rank's experts and their weights, under the names of `own`; and `order`. In the
// four parts below, in this order. What comes between them may run while tokens travel.

// Tokens that every ep rank sees. They need no router.
void SendTokens(BlockBuilder& f, const string& n) {
  if (f.context().gathers_tokens) GatherTokens(f, n, "n_all");
}

// Rows in order of their experts, to go to the ranks that hold them.
void MakeRows(BlockBuilder& f, const MoeSizes& w, const string& n) {
  if (f.context().gathers_tokens) return;
  f.Emit(OpKind::kPermuteRows, {.inputs = {n, "weights", "ids"}},
         {{"rows", ExpertRows(f, {w.T * w.k, w.H})},
          {"row_weights", RowWeights(f, w.T * w.k)},
          {"order", f.Data(DType::kInt64, {w.T * w.k})}});
}

// What the router has made: the rows and their weights, or the weights and choices of all tokens.
void SendRows(BlockBuilder& f, const MoeSizes& w, const ExpertNames& own) {
  if (f.context().gathers_tokens) {
    GatherTokens(f, "weights", "weights_all");
    GatherTokens(f, "ids", "ids_all");
    return;
  }
  const Dim received = w.received(f.context().module);
  ExchangeRows(f, w, "rows", "counts", own.counts, own.rows, ExpertRows(f, {received, w.H}));
  ExchangeRows(f, w, "row_weights", "counts", own.counts, own.weights, RowWeights(f, received));
}

// Each rank takes the rows of its own experts from all tokens.
void TakeRows(BlockBuilder& f, const MoeSizes& w, const ExpertNames& own) {
  if (!f.context().gathers_tokens) return;
  const Dim received = w.received(f.context().module);
  f.Emit(OpKind::kSelectRows,
         {.inputs = {"n_all", "weights_all", "ids_all", own.counts}, .attributes = AllTokensAttributes(w, "ep", w.ep)},
         {{own.rows, ExpertRows(f, {received, w.H})},
          {own.weights, RowWeights(f, received)},
          {"order", f.Data(DType::kInt64, {received})}});
}

// The results of this rank's experts -> y, the sum of each token's own. In two parts, as above.
void ReturnResults(BlockBuilder& f, const MoeSizes& w, const ExpertNames& own, const ValueType& stream) {
  if (f.context().gathers_tokens) {
    f.Make(OpKind::kCombineRows, {.inputs = {own.out, "order"}, .attributes = AllTokensAttributes(w, "top_k", w.k)},
           "y_all", TermOfTokens(f, f.TypeOf("n_all")));
    ScatterTokens(f, "y_all", "y", stream);
    return;
  }
  // The way back: send and receive counts change places.
  ExchangeRows(f, w, own.out, own.counts, "counts", "out", ExpertRows(f, {w.T * w.k, w.H}));
}

void TakeResults(BlockBuilder& f, const MoeSizes& w, const ExpertNames& own, const ValueType& stream) {
  if (f.context().gathers_tokens) return;
  f.Make(OpKind::kUnpermuteRows,
         {.inputs = {w.ep > 1 ? "out" : own.out, "order"},
          .attributes = {{"top_k", w.k}, {"sequence", w.s}, {"samples", w.B}}},
         "y", stream);
}

// dx_out -> the gradient of the results of this rank's experts. Each in two parts, as in the forward.
void ReturnResultsGrad(BlockBuilder& b, const MoeSizes& w, const ExpertNames& own) {
  if (b.context().gathers_tokens) {
    GatherTokens(b, "dx_out", "dy_all");
    return;
  }
  b.Make(OpKind::kUnpermuteRowsGrad, {.inputs = {"dx_out", "order"}, .attributes = {{"top_k", w.k}}}, "dout",
         ExpertRows(b, {w.T * w.k, w.H}));
  ExchangeRows(b, w, "dout", "counts", own.counts, "dout_in", ExpertRows(b, {w.received(b.context().module), w.H}));
}

string TakeResultsGrad(BlockBuilder& b, const MoeSizes& w) {
  if (b.context().gathers_tokens) {
    b.Make(OpKind::kCombineRowsGrad, {.inputs = {"dy_all", "order"}, .attributes = {{"top_k", w.k}}}, "dout_in",
           ExpertRows(b, {w.received(b.context().module), w.H}));
  }
  return w.ep > 1 ? "dout_in" : "dout";
}

// Gradients of the rows and weights of this rank's experts -> dn_rows and dweights of its tokens.
void SendRowsGrad(BlockBuilder& b, const MoeSizes& w, const ExpertNames& own, const string& drows_in,
                  const string& drow_weights_in) {
  if (b.context().gathers_tokens) {
    b.Emit(OpKind::kSelectRowsGrad,
           {.inputs = {drows_in, drow_weights_in, "order"}, .attributes = AllTokensAttributes(w, "top_k", w.k)},
           {{"dn_all", TermOfTokens(b, b.TypeOf("dy_all"))}, {"dweights_all", AllTokens(b, "weights")}});
    ScatterTokens(b, "dn_all", "dn_rows", b.TypeOf("x"));
    ScatterTokens(b, "dweights_all", "dweights", b.TypeOf("weights"));
    return;
  }
  ExchangeRows(b, w, drows_in, own.counts, "counts", "drows", ExpertRows(b, {w.T * w.k, w.H}));
  ExchangeRows(b, w, drow_weights_in, own.counts, "counts", "drow_weights", RowWeights(b, w.T * w.k));
}

void TakeRowsGrad(BlockBuilder& b, const MoeSizes& w, const string& drows_in, const string& drow_weights_in) {
  if (b.context().gathers_tokens) return;
  b.Emit(OpKind::kPermuteRowsGrad,
         {.inputs = {w.ep > 1 ? "drows" : drows_in, w.ep > 1 ? "drow_weights" : drow_weights_in, "order"},
          .attributes = {{"top_k", w.k}, {"sequence", w.s}, {"samples", w.B}}},
         {{"dn_rows", b.TypeOf("x")}, {"dweights", b.TypeOf("weights")}});
}

// up -> squared ReLU -> down, over tp like a dense MLP (docs/model/mixture_of_experts.md#shared-expert).
ValueType SharedWidth(const BlockBuilder& f, const MoeSizes& w) {
  const Layout cut = OverCp(f.context(), 0, Sharded(f.context(), 2));
  return f.Activation({w.S, w.B, w.shared}, cut, cut);
}

void EmitSharedUp(BlockBuilder& f, const MoeSizes& w, const string& n) {
  const string n_full = f.AllGather(n, 0, "n_full", Partial(f.context()));
  f.Make(OpKind::kLinear, {.inputs = {n_full}, .parameters = {"shared_up"}}, "s_pre", SharedWidth(f, w));
}

void EmitSharedActivation(BlockBuilder& f, const MoeSizes& w) {
  f.Make(OpKind::kSquaredRelu, {.inputs = {"s_pre"}}, "s_act", SharedWidth(f, w));
}

void EmitSharedDown(BlockBuilder& f, const MoeSizes& w) {
  f.Make(OpKind::kLinear, {.inputs = {"s_act"}, .parameters = {"shared_down"}}, "s_part",
         PartialType(f, w.S, w.B, w.H));
}

void EmitSharedDownGrad(BlockBuilder& b, const string& dx_out) {
  const string ds = b.AllGather(dx_out, 0, "ds_full", Replicated());
  b.LinearWeightGrad(ds, "s_act", "shared_down");
  b.Make(OpKind::kLinearInputGrad, {.inputs = {ds}, .parameters = {"shared_down"}}, "ds_act", b.TypeOf("s_act"));
}

string EmitSharedUpGrad(BlockBuilder& b, const MoeSizes& w) {
  const string n_full = b.context().tp > 1 ? "n_full" : "n";
  b.Make(OpKind::kSquaredReluGrad, {.inputs = {"ds_act", "s_pre"}}, "ds_pre", b.TypeOf("s_pre"));
  b.LinearWeightGrad("ds_pre", n_full, "shared_up");
  b.Make(OpKind::kLinearInputGrad, {.inputs = {"ds_pre"}, .parameters = {"shared_up"}}, "dn_part",
         PartialType(b, w.S, w.B, w.H));
  return b.ReduceScatter("dn_part", 0, "dn_shared");
}

// Statistics that do not change the residual stream: the auxiliary loss, the routing fingerprint, and the expert counts
// for the expert bias. A frozen model runs as in evaluation and keeps only the fingerprint.
void EmitRoutingStatistics(BlockBuilder& f, const MoeSizes& w) {
  const BlockContext& context = f.context();
  ValueType one = f.Data(DType::kFp64, {int64_t{1}});
  one.layout = Partial(context, {Axis::kTp, Axis::kCp});
  if (context.trains_backbone) {
    // The auxiliary loss is per sequence, so each rank needs the expert counts of whole sequences
    // (docs/training/layout_independence.md#auxiliary-loss).
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

void EmitRoute(BlockBuilder& f, const HybridLmModel& model, const MoeSizes& w, const string& n) {
  const BlockContext& context = f.context();
  // A [T, *] tensor lists tokens position by position, so a cut of the sequence is a cut of its dim 0.
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

// dweights -> dn_route. Adds the gradient of the auxiliary loss, except in a frozen model.
void EmitRouteGrad(BlockBuilder& b, const HybridLmModel& model, const MoeSizes& w, const ValueType& stream) {
  const BlockContext& context = b.context();
  std::vector<string> inputs = {"dweights", "n", "weights", "ids", "logits"};
  Attributes attributes = {{"top_k", w.k}, {"scale", *model.moe.scale}};
  if (context.trains_backbone) {
    inputs.push_back(AuxCounts(context));
    attributes.insert({{"sequence", w.whole}, {"aux_scale", model.moe.aux_loss * static_cast<double>(w.whole)}});
  }
  b.Make(OpKind::kRouteGrad,
         {.inputs = inputs,
          .parameters = {"gate"},
          .gradients = b.TrainedSlots({"gate"}),
          .attributes = std::move(attributes)},
         "dn_route", stream);
}

}  // namespace

Block LowerMoeForward(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes, int origin) {
  const MoeSizes w(model, context, sizes);
  BlockBuilder f(context, context.module + ".moe.forward", origin);
  const ValueType stream = StreamType(f, w.s, w.B, w.H);
  f.Input("x", stream);
  const auto [n, n_scale] = EmitRmsNorm(f, "x", "norm", model.norm_eps);
  const ExpertNames own(context), all = ExpertNames::Gathered(context);
  const Dim received = w.received(context.module), gathered = w.gathered(context.module);
  string s;
  if (context.overlaps_dispatch) {
    SendTokens(f, n);
  } else {
    EmitSharedUp(f, w, n);
    EmitSharedActivation(f, w);
    EmitSharedDown(f, w);
    s = f.ReduceScatter("s_part", 0, "s");
  }
  EmitRoute(f, model, w, n);
  EmitRoutingStatistics(f, w);

  if (context.overlaps_dispatch) {
    // The host waits for the row counts. Before that it gives the device a product to work on.
    MakeRows(f, w, n);
    EmitSharedUp(f, w, n);
    EmitRowCounts(f, w);
    SendRows(f, w, own);
    EmitSharedActivation(f, w);
  } else {
    EmitRowCounts(f, w);
    SendTokens(f, n);
    MakeRows(f, w, n);
    SendRows(f, w, own);
  }
  TakeRows(f, w, own);
  GatherRows(f, w, own.rows, all.rows);
  GatherRows(f, w, own.weights, all.weights);
  const ValueType out_in = ExpertRows(f, {received, w.H});
  // With expert_tp the experts' weights are cut along ffn: `pre` is cut the same way, and the output is a term of a
  // sum. The gradient of `pre` is made and used inside experts_grad.
  ValueType made = out_in, pre = f.Data(context.dtype, {gathered, w.ffn});
  pre.layout = Sharded(context, 1, {Axis::kExpertTp});
  if (w.expert_tp > 1) made = RowsPartial(f, ExpertRows(f, {gathered, w.H}));
  f.Emit(OpKind::kExperts, {.inputs = {all.rows, all.weights, all.counts}, .parameters = {"up", "down"}},
         {{all.out, made}, {"pre", pre}});
  ScatterRows(f, w, all.out, own.out, out_in);
  ReturnResults(f, w, own, stream);
  if (context.overlaps_dispatch) EmitSharedDown(f, w);
  TakeResults(f, w, own, stream);
  if (context.overlaps_dispatch) s = f.ReduceScatter("s_part", 0, "s");
  f.Add({"x", "y", s}, "x_out");
  f.ProbeValue("x_out", "language.layer{layer}.out");
  std::vector<string> saved = {"x", n, n_scale, "weights", "ids", "logits"};
  if (context.trains_backbone) saved.push_back(AuxCounts(context));
  saved.insert(saved.end(), {"counts", own.counts, all.counts, "order", all.rows, all.weights, "pre",
                             context.tp > 1 ? "n_full" : n, "s_pre", "s_act"});
  return f.Finish({"x_out"}, saved);
}

Block LowerMoeBackward(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes,
                       const Block& forward, int origin) {
  const MoeSizes w(model, context, sizes);
  const ExpertNames own(context), all = ExpertNames::Gathered(context);
  BlockBuilder b(context, context.module + ".moe.backward", origin);
  b.TakeSaved(forward);
  const ValueType stream = b.TypeOf("x");
  const Dim rows = w.received(context.module);
  const ValueType received = ExpertRows(b, {rows, w.H}), received_weights = RowWeights(b, rows);
  b.InputGradient("dx_out", stream);
  // The forward in reverse: each gather becomes a scatter, each exchange runs the other way.
  ReturnResultsGrad(b, w, own);
  if (context.overlaps_dispatch) EmitSharedDownGrad(b, "dx_out");
  const string dout_in = TakeResultsGrad(b, w);
  const string dout_all = GatherRows(b, w, dout_in, "dout_all");
  const bool whole = w.expert_tp == 1;  // else the experts give terms of a sum, under names of their own
  const string made = whole ? "drows_in" : "drows_part", made_weights = whole ? "drow_weights_in" : "drow_weights_part";
  b.Emit(OpKind::kExpertsGrad,
         {.inputs = {dout_all, all.rows, all.weights, "pre", all.counts},
          .parameters = {"up", "down"},
          .gradients = b.TrainedSlots({"up", "down"})},
         {{made, whole ? received : RowsPartial(b, b.TypeOf(all.rows))},
          {made_weights, whole ? received_weights : RowsPartial(b, b.TypeOf(all.weights))}});
  const string drows_in = ScatterRows(b, w, made, "drows_in", received);
  const string drow_weights_in = ScatterRows(b, w, made_weights, "drow_weights_in", received_weights);
  SendRowsGrad(b, w, own, drows_in, drow_weights_in);
  string dn_shared;
  if (context.overlaps_dispatch) dn_shared = EmitSharedUpGrad(b, w);
  TakeRowsGrad(b, w, drows_in, drow_weights_in);
  EmitRouteGrad(b, model, w, stream);
  if (!context.overlaps_dispatch) {
    EmitSharedDownGrad(b, "dx_out");
    dn_shared = EmitSharedUpGrad(b, w);
  }
  b.Add({"dn_rows", "dn_route", dn_shared}, "dn");
  b.Make(OpKind::kRmsNormGrad,
         {.inputs = {"dn", "x", "n_scale"}, .parameters = {"norm"}, .gradients = b.TrainedSlots({"norm"})}, "dx_norm",
         stream);
  return b.Finish({b.Add({"dx_out", "dx_norm"}, "dx")}, {});
}

}  // namespace planwright
