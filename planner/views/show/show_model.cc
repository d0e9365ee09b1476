#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/base/paper/table.h"
#include "planner/plan/statement/adapted_statement.h"
#include "planner/plan/statement/model_statement.h"
#include "planner/predict/estimate/dispatch_time.h"
#include "planner/predict/estimate/model_flops.h"
#include "planner/predict/estimate/step_time.h"
#include "planner/views/show/layer_parameters.h"
#include "planner/views/show/quantities.h"
#include "planner/views/show/show.h"
#include "planner/views/show/show_rates.h"

namespace planwright {
namespace {

int64_t Rounded(double flops) { return std::llround(flops); }

// Layer by layer, forward only: what a layer costs backward depends on what is trained, and is in the table below.
std::string LayersText(const Module& module, size_t width) {
  Table table({"layer", "", "kind", "parameters", "forward FLOPs"});
  const std::vector<LayerParameters> parameters = ParametersOfLayers(module);
  for (size_t i = 0; i < module.layers.size(); ++i) {
    const LayerSummary& layer = module.layers[i];
    table.Add({layer.frame, std::string(1, layer.kind), std::string(LayerWordOf(module, layer.kind)),
               parameters[i].Text(), WithCommas(layer.forward_flops)});
  }
  return table.Text("  ", width);
}

// By layer kind, of one token; then a sample and a step of the module.
std::string FlopsText(const ModuleFlops& flops, size_t width) {
  Table table({"FLOPs of a token", "layers", "forward", "backward", "recomputed"});
  for (const PartFlops& part : flops.parts) {
    table.Add({part.name, part.layers > 0 ? WithCommas(part.layers) : "", WithCommas(Rounded(part.token.forward)),
               WithCommas(Rounded(part.token.backward)), WithCommas(Rounded(part.token.recompute))});
  }
  table.Add({"all", "", WithCommas(Rounded(flops.token.forward)), WithCommas(Rounded(flops.token.backward)),
             WithCommas(Rounded(flops.token.recompute))});
  // The images of real data are not known before they are read: the count is then an upper bound.
  const std::string bound = flops.known ? "" : "at most ";
  std::string text = "  a sample: " + bound + FlopText(flops.sample.model()) + " in " +
                     absl::StrFormat("%.6g", flops.tokens_per_sample) + " tokens; a step: " + bound +
                     FlopText(flops.step.model());
  if (flops.step.recompute > 0) text += ", and " + FlopText(flops.step.recompute) + " recomputed";
  return table.Text("  ", width) + Wrapped(text, width, 2) + "\n";
}

// Where tokens go to experts of other ranks.
bool Dispatches(const Module& module) { return module.expert_layers() > 0 && module.grid.ep > 1; }

// Which kind of dispatch the plan has, what both are estimated to take, and what decides
// (docs/model/mixture_of_experts.md#choice-of-dispatch).
std::string DispatchText(const Plan& plan, const Module& module, size_t width) {
  const Rates rates = DispatchRates(plan.cluster);
  const DispatchSizes sizes = DispatchSizesOf(module, plan.budget, plan.cluster, plan.dtype());
  const auto told = [&](const std::string& kind) {
    const DispatchTime time = TimeDispatch(module, sizes, rates, kind);
    std::string text = absl::StrFormat("%s %.4g rows", kind, time.rows);
    if (time.seconds > 0) absl::StrAppendFormat(&text, ", %.3g ns", 1e9 * time.seconds);
    return text;
  };
  const std::string other = module.dispatch == "all_gather" ? "all_to_all" : "all_gather";
  return Wrapped("  token dispatch over ep " + std::to_string(module.grid.ep) + ": " + module.dispatch +
                     ". Predicted for a token of a layer in the forward: " + told(module.dispatch) + "; " +
                     told(other) + ". `dispatch: auto` takes the faster one, and all_to_all where times are unknown.",
                 width, 2) +
         "\n";
}

nlohmann::ordered_json DispatchJson(const Plan& plan, const Module& module) {
  const Rates rates = DispatchRates(plan.cluster);
  const DispatchSizes sizes = DispatchSizesOf(module, plan.budget, plan.cluster, plan.dtype());
  nlohmann::ordered_json json = {{"kind", module.dispatch}};
  for (const char* kind : {"all_to_all", "all_gather"}) {
    const DispatchTime time = TimeDispatch(module, sizes, rates, kind);
    json[kind] = {{"rows", time.rows}};
    json[kind]["seconds"] = time.seconds > 0 ? nlohmann::ordered_json(time.seconds) : nlohmann::ordered_json();
  }
  return json;
}

// How long a step is predicted to take (docs/step_time.md). Without a GPU in the recipe only the share of waiting is
// known.
std::string TimeText(const StepTime& time) {
  std::string text = "ranks wait " + PercentOf(time.bubble, 1, 1) + " of a step";
  if (time.seconds)
    absl::StrAppend(&text, ", which is predicted to take ", SecondsText(time.length), " (`plan show RECIPE time`)");
  return text;
}

nlohmann::ordered_json TimeJson(const StepTime& time) {
  nlohmann::ordered_json roles = nlohmann::ordered_json::array();
  for (const RoleTime& role : time.roles) {
    roles.push_back(
        {{"role", role.role->name}, {"flops", role.flops}, {"busy", time.length > 0 ? role.busy / time.length : 0}});
  }
  // "busy" is a share of the step, so that it means something without a known GPU.
  nlohmann::ordered_json json = {{"bubble", time.bubble}};
  json["seconds"] = time.seconds ? nlohmann::ordered_json(time.length) : nlohmann::ordered_json();
  json["roles"] = std::move(roles);
  return json;
}

nlohmann::ordered_json FlopsJson(const Flops& flops) {
  return {{"forward", flops.forward}, {"backward", flops.backward}, {"recompute", flops.recompute}};
}

// "frozen but for adapters: 1,024 parameters of rank 4 on q_proj, v_proj"
std::string AdapterText(const Module& module) {
  return absl::StrCat("frozen but for adapters: ", WithCommas(AdapterElements(module)), " parameters of rank ",
                      module.size(kAdapterRank), " on ", absl::StrJoin(module.adapter_targets, ", "));
}

nlohmann::ordered_json AdapterJson(const Module& module) {
  if (!module.adapted()) return {};
  return {{"rank", module.size(kAdapterRank)},
          {"alpha", module.real(kAdapterAlpha)},
          {"targets", module.adapter_targets},
          {"parameters", AdapterElements(module)}};
}

}  // namespace

std::string ShowModel(const Plan& plan, const StepTime& time, size_t width) {
  std::string text;
  double step = 0;
  for (const Module& module : plan.modules) {
    const ModuleFlops flops = FlopsOf(plan, module);
    step += flops.step.model();
    std::string heading = module.name + ": " + module.model + " (" + module.kind + "), " +
                          WithCommas(module.parameter_count) + " parameters";
    if (module.projector_count > 0) heading += " and " + WithCommas(module.projector_count) + " of the projector";
    if (!module.trained()) heading += ", frozen";
    if (module.adapted()) heading += ", " + AdapterText(module);
    text += Wrapped(heading, width, 2) + "\n" + LayersText(module, width) + "\n" + FlopsText(flops, width);
    if (Dispatches(module)) text += DispatchText(plan, module, width);
    text += "\n";
  }
  text += RatesText(plan, width);
  return text + Wrapped("a step of all modules: " + FlopText(step) + "; " + TimeText(time), width) + "\n";
}

nlohmann::ordered_json ShowModelJson(const Plan& plan, const StepTime& time) {
  using Json = nlohmann::ordered_json;
  Json modules = Json::object();
  for (const Module& module : plan.modules) {
    const ModuleFlops flops = FlopsOf(plan, module);
    Json layers = Json::array();
    const std::vector<LayerParameters> counted = ParametersOfLayers(module);
    for (size_t i = 0; i < module.layers.size(); ++i) {
      const LayerSummary& layer = module.layers[i];
      layers.push_back({{"layer", layer.frame},
                        {"kind", std::string(1, layer.kind)},
                        {"parameters", counted[i].own},
                        {"projector_parameters", counted[i].projector},
                        {"forward_flops", layer.forward_flops},
                        {"stage", layer.stage}});
    }
    Json parts = Json::object();
    for (const PartFlops& part : flops.parts) {
      parts[part.name] = FlopsJson(part.token);
      parts[part.name]["layers"] = part.layers;
    }
    Json parameters = Json::array();
    for (const Parameter& parameter : module.parameters) {
      parameters.push_back({{"name", parameter.name},
                            {"shape", parameter.shape},
                            {"experts", parameter.experts},
                            {"trained", parameter.trained},
                            {"weight_decay", parameter.decay}});
      if (!plan.optimizer.parts.empty()) parameters.back()["rates"] = RatesJson(plan, parameter);
    }
    modules[module.name] = {{"model", module.model},
                            {"kind", module.kind},
                            {"trained", module.trained()},
                            {"adapter", AdapterJson(module)},
                            {"parameters", module.parameter_count},
                            {"projector_parameters", module.projector_count},
                            {"flops_per_token", Rounded(flops.token.model())},
                            {"flops_per_sample", flops.sample.model()},
                            {"flops_per_step", flops.step.model()},
                            {"tokens_per_sample", flops.tokens_per_sample},
                            {"images_known", flops.known},
                            {"token", FlopsJson(flops.token)},
                            {"kinds", std::move(parts)},
                            {"layers", std::move(layers)},
                            {"tensors", std::move(parameters)}};
    if (Dispatches(module)) modules[module.name]["dispatch"] = DispatchJson(plan, module);
  }
  return {{"modules", std::move(modules)}, {"step_time", TimeJson(time)}};
}

}  // namespace planwright
