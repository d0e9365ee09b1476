#include <cmath>
#include <vector>

#include "planner/diagnostics/text.h"
#include "planner/estimate/model_flops.h"
#include "planner/show/page/markup.h"
#include "planner/show/page/page.h"
#include "planner/show/show.h"
#include "planner/show/table.h"

namespace planwright {
namespace {

struct KindSum {
  char kind = 0;
  int64_t layers = 0, parameters = 0, flops = 0;
};

std::vector<KindSum> SumsOf(const Module& module) {
  std::vector<KindSum> sums;
  for (const LayerSummary& layer : module.layers) {
    size_t i = 0;
    while (i < sums.size() && sums[i].kind != layer.kind) ++i;
    if (i == sums.size()) sums.push_back({layer.kind});
    ++sums[i].layers;
    sums[i].parameters += layer.parameters;
    sums[i].flops += layer.forward_flops;
  }
  return sums;
}

std::string KindTable(const Module& module) {
  HtmlTable table({"layer kind", "", "layers", "parameters", "forward FLOPs a token"});
  for (const KindSum& sum : SumsOf(module)) {
    table.Add({std::string(LayerWord(sum.kind)), Escaped(std::string(1, sum.kind)), WithCommas(sum.layers), WithCommas(sum.parameters),
                      WithCommas(sum.flops)});
  }
  return table.Markup();
}

std::string LayerTable(const Module& module) {
  HtmlTable table({"layer", "", "parameters", "forward FLOPs a token"});
  for (const LayerSummary& layer : module.layers) {
    table.Add({Escaped(layer.frame), Escaped(std::string(1, layer.kind)), WithCommas(layer.parameters), WithCommas(layer.forward_flops)});
  }
  return Cat("<details><summary>", module.layers.size(), " layers</summary>\n", table.Markup(), "</details>\n");
}

}  // namespace

std::string ModelSection(const Plan& plan) {
  std::string body;
  for (const Module& module : plan.modules) {
    body += Cat("<h3><span class=\"chip ", ModuleColor(plan, module.name), "\"></span>", Escaped(module.name), "</h3>\n<p>", Escaped(module.model), " (",
                Escaped(module.kind), "): ", WithCommas(module.parameter_count), " parameters");
    if (module.projector_count > 0) body += Cat(" and ", WithCommas(module.projector_count), " of the projector");
    body += Cat(", ", WithCommas(std::llround(FlopsOf(plan, module).token.model())), " FLOPs a token, forward and backward", module.trained() ? "" : "; frozen", "</p>\n",
                KindTable(module), LayerTable(module));
  }
  return Section("model", "Model", body);
}

}  // namespace planwright
