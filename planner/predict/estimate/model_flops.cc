#include "planner/predict/estimate/model_flops.h"

#include <algorithm>
#include <utility>

#include "planner/plan/sample_images.h"
#include "planner/plan/statement/model_statement.h"

namespace planwright {
namespace {

// Which gradients are computed in a part of the model.
struct GradientsOf {
  bool weights = false, input = false;
};

// `forward`: FLOPs of the forward; `mixing`: the part of them without weights, scores and scans; `adapter`: that of
// products whose weights learn, whatever the others do. The backward of a product with weights costs its forward once
// for each gradient. Scores and scans have two operands that both depend on
// the input, so their backward costs twice their forward.
Flops CostOf(double forward, double mixing, double adapter, const GradientsOf& gradients, bool recomputed) {
  Flops flops;
  const bool backward = gradients.weights || gradients.input;
  flops.forward = forward;
  flops.backward = (forward - mixing) * (gradients.weights + gradients.input) + (backward ? 2 * mixing : 0);
  if (!gradients.weights) flops.backward += adapter;
  flops.recompute = backward && recomputed ? forward : 0;
  return flops;
}

void AddTo(Flops& sum, const Flops& flops, double times = 1) {
  sum.forward += flops.forward * times;
  sum.backward += flops.backward * times;
  sum.recompute += flops.recompute * times;
}

// Whether some module that feeds this one is trained: then this one computes gradients of its input, even if frozen.
bool TrainedUpstream(const Plan& plan, const Module& module) {
  return std::any_of(plan.bridges.begin(), plan.bridges.end(), [&](const Bridge& bridge) {
    const Module* from = bridge.to == module.name ? plan.FindModule(bridge.from) : nullptr;
    return from && from->trained();
  });
}

// The layers that hand on features of inner layers.
struct Taps {
  char letter = 0;
  int64_t count = 0;
};

Taps TapsOf(const Module& module) {
  const ModelStatement* statement = StatementOf(module);
  Taps taps = {.letter = statement == nullptr ? '\0' : statement->TapLetter()};
  for (const LayerSummary& layer : module.layers) taps.count += taps.letter != 0 && layer.kind == taps.letter ? 1 : 0;
  return taps;
}

// Tokens, or patches, of one sample on average. `known`: see ModuleFlops.
double TokensOfSample(const Plan& plan, const Module& module, bool& known) {
  if (!module.has_images) return static_cast<double>(plan.budget.sequence_length);
  const EncoderData* encoder = plan.data.FindEncoder(module.name);
  if (!encoder) return 0;
  const SampleImages images = ImagesOfSample(plan.data, *encoder, plan.budget.sequence_length);
  known = images.known;
  return images.mean_images * images.mean_patches();
}

}  // namespace

ModuleFlops FlopsOf(const Plan& plan, const Module& module) {
  ModuleFlops flops;
  const auto part = [&](std::string_view name) -> PartFlops& {
    for (PartFlops& known : flops.parts) {
      if (known.name == name) return known;
    }
    return flops.parts.emplace_back(PartFlops{std::string(name), 0, {}});
  };
  const bool encoder = module.has_images;
  const bool upstream = TrainedUpstream(plan, module);
  // Pixels take no gradient. A language model has no embed_flops: looking up a row is no product.
  if (module.embed_flops > 0) {
    AddTo(part("embed").token,
          CostOf(static_cast<double>(module.embed_flops), 0, 0, {module.trains_backbone, upstream}, false));
  }
  const GradientsOf backbone = {module.trains_backbone, module.trains_layers() || upstream};
  // The norm before the products is trained with them, so what they read takes a gradient too.
  const GradientsOf projection = {module.trains_projection, module.trains_projection || backbone.input};
  const char taps = TapsOf(module).letter;
  for (const LayerSummary& layer : module.layers) {
    const std::string_view name = LayerWordOf(module, layer.kind);
    const bool recomputed = std::find(module.recompute.begin(), module.recompute.end(), name) != module.recompute.end();
    PartFlops& kind = part(name);
    ++kind.layers;
    AddTo(kind.token, CostOf(static_cast<double>(layer.forward_flops), static_cast<double>(layer.mixing_flops),
                             static_cast<double>(layer.adapter_flops),
                             encoder && layer.kind == taps ? projection : backbone, recomputed));
  }
  if (module.head_flops > 0) {
    const GradientsOf head = {module.trains_backbone, module.trains_backbone || backbone.input};
    AddTo(part(encoder ? "projector" : "head").token,
          CostOf(static_cast<double>(module.head_flops), 0, 0, encoder ? projection : head, false));
  }
  for (const PartFlops& each : flops.parts) AddTo(flops.token, each.token);
  flops.tokens_per_sample = TokensOfSample(plan, module, flops.known);
  AddTo(flops.sample, flops.token, flops.tokens_per_sample);
  AddTo(flops.step, flops.sample, static_cast<double>(plan.budget.global_samples));
  return flops;
}

namespace {

// Counts one patch. Where nobody knows how large images will be, scores within them are left out: too little is
// counted, never too much.
double FlopsOfPatch(const Plan& plan, const Module& encoder) {
  const ModuleFlops flops = FlopsOf(plan, encoder);
  if (flops.known) return flops.token.model();
  Module without_scores = encoder;
  for (LayerSummary& layer : without_scores.layers) layer.forward_flops -= std::exchange(layer.mixing_flops, 0);
  return FlopsOf(plan, without_scores).token.model();
}

}  // namespace

StepFlops::StepFlops(const Plan& plan) {
  for (const Module& module : plan.modules) {
    if (!module.has_images) text_ += FlopsOf(plan, module).step.model();
  }
  for (const Bridge& bridge : plan.bridges) {
    const Module* from = plan.FindModule(bridge.from);
    const EncoderData* encoder = plan.data.FindEncoder(bridge.from);
    const int64_t hidden = from == nullptr ? 0 : from->size("output.hidden") * (1 + TapsOf(*from).count);
    const bool counts = encoder != nullptr && hidden > 0;
    // A row has `hidden` elements, with the features of inner layers, and comes of merged() patches.
    per_row_element_.push_back(
        counts ? FlopsOfPatch(plan, *from) * static_cast<double>(encoder->merged()) / static_cast<double>(hidden) : 0);
  }
}

double StepFlops::Of(std::span<const int64_t> elements) const {
  double flops = text_;
  for (size_t i = 0; i < std::min(elements.size(), per_row_element_.size()); ++i)
    flops += per_row_element_[i] * static_cast<double>(elements[i]);
  return flops;
}

}  // namespace planwright
