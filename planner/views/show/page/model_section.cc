#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_format.h"
#include "planner/base/paper/markup.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/text.h"
#include "planner/plan/statement/adapted_statement.h"
#include "planner/plan/statement/model_statement.h"
#include "planner/predict/estimate/model_flops.h"
#include "planner/views/show/layer_parameters.h"
#include "planner/views/show/page/page.h"
#include "planner/views/show/quantities.h"

namespace planwright {
namespace {

constexpr double kModelPitch = 58;

std::string CountText(double flops) { return WithCommas(std::llround(flops)); }

std::string PercentText(double part, double whole) {
  return absl::StrFormat("%.3g %%", whole > 0 ? 100 * part / whole : 0.0);
}

// One module's bar: the FLOPs of each layer kind in two shades in turn, then, dashed, the forwards that are run again.
// `whole`: FLOPs of all modules; `most`: of the longest bar.
void DrawModule(const Plan& plan, const Module& module, const ModuleFlops& flops, double whole, double most, double y,
                Drawing& drawing) {
  const std::string color = ModuleColor(plan, module.name);
  const double steps = flops.token.model() > 0 ? flops.step.model() / flops.token.model() : 0;  // tokens of a step
  drawing.Text(0, y + 13, Shortened(module.name, 48), "strong");
  const std::string recomputed =
      flops.step.recompute > 0 ? Cat(", and ", FlopText(flops.step.recompute), " run again") : "";
  drawing.Text(kDrawingWidth, y + 13,
               Cat(flops.known ? "" : "at most ", FlopText(flops.step.model()), ", ",
                   PercentText(flops.step.model(), whole), " of all", recomputed),
               "end");
  drawing.Rect(0, y + 21, kDrawingWidth, kBarHeight, "band");
  double x = 0;
  bool strong = false;  // neighbors differ in shade, since a module has one color
  for (const PartFlops& part : flops.parts) {
    const double of_step = part.token.model() * steps, width = of_step / most * kDrawingWidth;
    const std::string percent = PercentText(of_step, flops.step.model());
    drawing.Box({x, y + 21, width, kBarHeight}, "part", color + (strong ? "b" : ""),
                {Cat(part.name, " ", percent), part.name},
                Cat(part.name, ": ", percent, " of ", module.name, ", ", FlopText(of_step), " a step\nforward ",
                    FlopText(part.token.forward * steps), ", backward ", FlopText(part.token.backward * steps)));
    x += width;
    strong = !strong;
  }
  const double again = flops.step.recompute / most * kDrawingWidth;
  if (again > 2)
    drawing.Rect(x + 1, y + 22, again - 2, kBarHeight - 2, "worst",
                 Cat("run again in the backward pass: ", FlopText(flops.step.recompute)));
}

// The bars of all modules, to one scale.
std::string StepDrawing(const Plan& plan, const std::vector<ModuleFlops>& all) {
  double whole = 0, most = 0;
  bool again = false;
  for (const ModuleFlops& flops : all) {
    whole += flops.step.model();
    most = std::max(most, flops.step.model() + flops.step.recompute);
    again |= flops.step.recompute > 0;
  }
  if (most == 0) return "";  // a plan without layers is a page too
  Drawing drawing(kDrawingWidth, kModelPitch * static_cast<double>(all.size()) - 6,
                  "FLOPs of a step by module and layer kind");
  for (size_t i = 0; i < all.size(); ++i)
    DrawModule(plan, plan.modules[i], all[i], whole, most, kModelPitch * static_cast<double>(i), drawing);
  return Cat("<p class=\"soft\">Floating-point operations of a step, ", FlopText(whole),
             " of all modules, by layer kind.",
             again ? " Dashed: forwards run again in the backward pass, which are not counted." : "", "</p>\n",
             drawing.Markup());
}

// By layer kind. Embedding and head are parts without layers, and their parameters are in the last row only.
std::string PartsTable(const Module& module, const ModuleFlops& flops) {
  HtmlTable table({"", "", "layers", "parameters", "forward FLOPs of a token", "backward", "run again"});
  const auto row = [&](const std::string& name, const std::string& letter, const std::string& layers,
                       const std::string& parameters, const Flops& token) {
    table.Add({name, letter, layers, parameters, CountText(token.forward), CountText(token.backward),
               CountText(token.recompute)});
  };
  const std::vector<LayerParameters> counted = ParametersOfLayers(module);
  for (const PartFlops& part : flops.parts) {
    LayerParameters parameters;
    std::string letter;
    for (size_t i = 0; i < module.layers.size(); ++i) {
      const LayerSummary& layer = module.layers[i];
      if (LayerWordOf(module, layer.kind) != part.name) continue;
      parameters += counted[i];
      letter = Escaped(std::string(1, layer.kind));
    }
    row(Escaped(part.name), letter, part.layers > 0 ? WithCommas(part.layers) : "",
        part.layers > 0 ? parameters.Text() : "", part.token);
  }
  row("all", "", WithCommas(static_cast<int64_t>(module.layers.size())),
      WithCommas(module.parameter_count + module.projector_count), flops.token);
  return table.Markup();
}

// Layer by layer, folded away: a model has dozens.
std::string LayerTable(const Module& module) {
  HtmlTable table({"layer", "", "kind", "stage", "parameters", "forward FLOPs of a token"});
  const std::vector<LayerParameters> parameters = ParametersOfLayers(module);
  for (size_t i = 0; i < module.layers.size(); ++i) {
    const LayerSummary& layer = module.layers[i];
    table.Add({Escaped(layer.frame), Escaped(std::string(1, layer.kind)), std::string(LayerWordOf(module, layer.kind)),
               std::to_string(layer.stage), parameters[i].Text(), WithCommas(layer.forward_flops)});
  }
  return Cat("<details><summary>", module.layers.size(), " layers</summary>\n", table.Markup(), "</details>\n");
}

std::string ModuleText(const Plan& plan, const Module& module, const ModuleFlops& flops) {
  std::string text =
      Cat("<h3><span class=\"chip ", ModuleColor(plan, module.name), "\"></span>", Escaped(module.name), "</h3>\n<p>",
          Escaped(module.model), " (", Escaped(module.kind), "): ", WithCommas(module.parameter_count), " parameters");
  if (module.projector_count > 0) Append(text, " and ", WithCommas(module.projector_count), " of the projector");
  if (module.adapted())
    Append(text, ", frozen but for adapters of ", WithCommas(AdapterElements(module)), " parameters");
  Append(text, module.trained() ? "" : ", frozen", "; a sample is ", absl::StrFormat("%.6g", flops.tokens_per_sample),
         " tokens and ", flops.known ? "" : "at most ", FlopText(flops.sample.model()), ".</p>\n");
  return text + PartsTable(module, flops) + LayerTable(module);
}

}  // namespace

std::string ModelSection(const Plan& plan) {
  std::vector<ModuleFlops> all;
  for (const Module& module : plan.modules) all.push_back(FlopsOf(plan, module));
  std::string body = StepDrawing(plan, all);
  for (size_t i = 0; i < all.size(); ++i) body += ModuleText(plan, plan.modules[i], all[i]);
  return Section("model", "Model", body);
}

}  // namespace planwright
