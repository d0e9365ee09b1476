// Layer kind M, a Mamba-2 mixer (docs/model/mamba.md#forward and #backward): in_proj -> causal convolution -> scan ->
// gated norm -> out_proj, on the residual stream.
#include "planner/schedule/blocks/language_pieces.h"

namespace planwright {
namespace {

using std::string;

// Sizes on one rank. Convolution and scan run along the sequence, so between the projections a rank has the whole
// sequence, and its part of heads and groups, cut over tp and cp. The projections themselves run where the sequence is
// cut over cp and features over tp alone: values there are called local.
struct MambaSizes {
  int64_t S, B, H;        // tokens of a sample, samples of the microbatch, hidden
  int64_t local_s, s;     // tokens of a cp rank's part; of that, of a tp rank's
  int64_t inner, bc;      // features of x (and of z), and of B (and of C)
  int64_t heads, groups;  // of this rank
  int64_t head_dim, state, chunk, cp;

  MambaSizes(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes)
      : S(sizes.sequence), B(sizes.samples), H(model.hidden), local_s(S / context.cp), s(local_s / context.tp),
        inner(model.mamba.heads * model.mamba.head_dim / (context.tp * context.cp)),
        bc(model.mamba.groups * model.mamba.state / (context.tp * context.cp)),
        heads(model.mamba.heads / (context.tp * context.cp)), groups(model.mamba.groups / (context.tp * context.cp)),
        head_dim(model.mamba.head_dim), state(model.mamba.state), chunk(model.mamba.chunk), cp(context.cp) {}

  // Features of z, x, B, C and dt before the cut over cp, in the order of in_proj. Each part is cut by itself.
  std::vector<int64_t> local_segments() const { return {cp * inner, cp * inner, cp * bc, cp * bc, cp * heads}; }
  int64_t features() const { return 2 * inner + 2 * bc + heads; }

  Attributes conv() const { return OfParameters({{"inner", inner}, {"bc", bc}, {"heads", heads}}); }
  Attributes scan() const {
    return OfParameters(
        {{"inner", inner}, {"bc", bc}, {"heads", heads}, {"groups", groups}, {"state", state}, {"chunk", chunk}});
  }
  Attributes gated_norm(double eps) const {
    return OfParameters({{"inner", inner}, {"group_size", inner / groups}, {"eps", eps}});
  }

 private:
  // Parameters are cut over tp alone. A cp rank uses its part of them; its gradient is zero elsewhere, and the sum over
  // dp_cp puts the parts together.
  Attributes OfParameters(Attributes attributes) const {
    if (cp > 1) attributes["parameter_cp"] = cp;
    return attributes;
  }
};

// The whole sequence, features cut over tp and cp.
ValueType Features(const BlockBuilder& b, const MambaSizes& w, int64_t width) {
  const Layout layout = Sharded(b.context(), 2, {Axis::kTp, Axis::kCp});
  return b.Activation({w.S, w.B, width}, layout, layout);
}

// The sequence cut over cp, features over tp alone. `width`: as in Features.
ValueType LocalFeatures(const BlockBuilder& b, const MambaSizes& w, int64_t width) {
  const Layout layout = OverCp(b.context(), 0, Sharded(b.context(), 2));
  return b.Activation({w.local_s, w.B, w.cp * width}, layout, layout);
}

// Name of the local form of a value, at a projection. With cp 1 both forms are one value.
string Local(const BlockContext& context, const string& name) { return context.cp > 1 ? name + "_local" : name; }

}  // namespace

Block LowerMambaForward(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes,
                        int origin) {
  const MambaSizes w(model, context, sizes);
  BlockBuilder f(context, context.module + ".mamba.forward", origin);
  f.Input("x", StreamType(f, w.s, w.B, w.H));
  InputDocuments(f, sizes);
  const auto [n, n_scale] = EmitRmsNorm(f, "x", "norm", model.norm_eps);
  const string n_full = f.AllGather(n, 0, "n_full", Partial(context));
  const string zxbcdt = f.Make(OpKind::kLinear, {.inputs = {n_full}, .parameters = {"in_proj"}},
                               Local(context, "zxbcdt"), LocalFeatures(f, w, w.features()));
  // All-to-all: each rank gets the whole sequence of its heads.
  f.SequenceToFeatures(zxbcdt, w.local_segments(), "zxbcdt");
  f.Make(
      OpKind::kMambaConv,
      {.inputs = WithDocuments({"zxbcdt"}, sizes), .parameters = {"conv_weight", "conv_bias"}, .attributes = w.conv()},
      "xbc", Features(f, w, w.inner + 2 * w.bc));
  // The state at the start of each chunk is kept for the backward, which recomputes the rest
  // (docs/model/mamba.md#scan).
  ValueType states = f.Data(context.wide(), {(w.S + w.chunk - 1) / w.chunk, w.B, w.heads, w.head_dim, w.state});
  states.layout = Sharded(context, 2, {Axis::kTp, Axis::kCp});
  f.Emit(OpKind::kMambaScan,
         {.inputs = WithDocuments({"xbc", "zxbcdt"}, sizes),
          .parameters = {"A_log", "D", "dt_bias"},
          .attributes = w.scan()},
         {{"y", Features(f, w, w.inner)}, {"states", states}});
  ValueType y_scale = f.Data(context.wide(), {w.S, w.B, w.groups});
  y_scale.layout = states.layout;
  f.Emit(OpKind::kGatedNorm,
         {.inputs = {"y", "zxbcdt"}, .parameters = {"mixer_norm"}, .attributes = w.gated_norm(model.norm_eps)},
         {{"yn", Features(f, w, w.inner)}, {"y_scale", y_scale}});
  const string yn = f.FeaturesToSequence("yn", {w.cp * w.inner}, Local(context, "yn"));
  f.Make(OpKind::kLinear, {.inputs = {yn}, .parameters = {"out_proj"}}, "o_part", PartialType(f, w.local_s, w.B, w.H));
  const string o = f.ReduceScatter("o_part", 0, "o");
  f.Add({"x", o}, "x_out");
  f.ProbeValue("x_out", "language.layer{layer}.out");
  return f.Finish({"x_out"},
                  WithDocuments({"x", n_scale, n_full, "zxbcdt", "xbc", "y", "states", yn, "y_scale"}, sizes));
}

Block LowerMambaBackward(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes,
                         const Block& forward, int origin) {
  const MambaSizes w(model, context, sizes);
  const string n_full = context.tp > 1 ? "n_full" : "n";
  BlockBuilder b(context, context.module + ".mamba.backward", origin);
  b.TakeSaved(forward);
  b.InputGradient("dx_out", b.TypeOf("x"));
  const string d_o = b.AllGather("dx_out", 0, "do_full", Replicated());
  b.LinearWeightGrad(d_o, Local(context, "yn"), "out_proj");
  const string dyn = b.Make(OpKind::kLinearInputGrad, {.inputs = {d_o}, .parameters = {"out_proj"}},
                            Local(context, "dyn"), LocalFeatures(b, w, w.inner));
  b.SequenceToFeatures(dyn, {w.cp * w.inner}, "dyn");
  b.Emit(OpKind::kGatedNormGrad,
         {.inputs = {"dyn", "y", "zxbcdt", "y_scale"},
          .parameters = {"mixer_norm"},
          .gradients = b.TrainedSlots({"mixer_norm"}),
          .attributes = w.gated_norm(model.norm_eps)},
         {{"dy", Features(b, w, w.inner)}, {"dz", Features(b, w, w.inner)}});
  b.Emit(OpKind::kMambaScanGrad,
         {.inputs = WithDocuments({"dy", "xbc", "zxbcdt", "states"}, sizes),
          .parameters = {"A_log", "D", "dt_bias"},
          .gradients = b.TrainedSlots({"A_log", "D", "dt_bias"}),
          .attributes = w.scan()},
         {{"dxbc", Features(b, w, w.inner + 2 * w.bc)}, {"ddt", Features(b, w, w.heads)}});
  b.Make(OpKind::kMambaConvGrad,
         {.inputs = WithDocuments({"dxbc", "zxbcdt"}, sizes),
          .parameters = {"conv_weight", "conv_bias"},
          .gradients = b.TrainedSlots({"conv_weight", "conv_bias"}),
          .attributes = w.conv()},
         "dxbc_in", Features(b, w, w.inner + 2 * w.bc));
  // The scan gives the gradient of dt, the convolution that of x, B and C, and the gated norm that of z.
  b.Make(OpKind::kConcat, {.inputs = {"dz", "dxbc_in", "ddt"}, .attributes = {{"dim", int64_t{2}}}}, "dzxbcdt",
         b.TypeOf("zxbcdt"));
  const string dzxbcdt = b.FeaturesToSequence("dzxbcdt", w.local_segments(), Local(context, "dzxbcdt"));
  b.LinearWeightGrad(dzxbcdt, n_full, "in_proj");
  b.Make(OpKind::kLinearInputGrad, {.inputs = {dzxbcdt}, .parameters = {"in_proj"}}, "dn_part",
         PartialType(b, w.local_s, w.B, w.H));
  const string dn = b.ReduceScatter("dn_part", 0, "dn");
  b.Make(OpKind::kRmsNormGrad,
         {.inputs = {dn, "x", "n_scale"}, .parameters = {"norm"}, .gradients = b.TrainedSlots({"norm"})}, "dx_norm",
         b.TypeOf("x"));
  return b.Finish({b.Add({"dx_out", "dx_norm"}, "dx")}, {});
}

}  // namespace planwright
