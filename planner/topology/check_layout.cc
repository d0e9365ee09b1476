#include "planner/topology/check_layout.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/model/layer_pattern.h"
#include "planner/model/stage_split.h"
#include "planner/plan/limits.h"

namespace planwright {
namespace {

constexpr auto kMostParameters = static_cast<double>(kMostElements / 2);  // with room for what a product leaves out

// Checks one module, and remembers whether anything was wrong.
class Checker {
 public:
  Checker(const ModuleRecipe& module, Diagnostics& diagnostics) : module_(module), diagnostics_(diagnostics) {}

  // `size` must be a multiple of the parallel size `parts`.
  void Cut(const std::string& what, const Located<int64_t>& size, const std::string& axis, const Located<int64_t>& parts) {
    if (*parts < 1 || *size % *parts == 0) return;
    Diagnostic& problem = diagnostics_.Error(
        DiagnosticKind::kLayoutDoesNotDivide, parts.where.known() ? parts.where : module_.placement,
        absl::StrCat(what, " of module ", *module_.name, " is ", *size, ", which ", axis, " ", *parts, " does not divide"),
        absl::StrContains(axis, " x ") ? absl::StrCat("choose them so that ", axis, " divides ", *size)
                                       : absl::StrCat("choose ", axis, " among the divisors of ", *size));
    Note(problem, what, size);
  }

  // `size` must be a multiple of another size of the model.
  void Multiple(const std::string& what, const Located<int64_t>& size, const std::string& of, const Located<int64_t>& parts) {
    if (*parts >= 1 && *size % *parts == 0) return;
    Diagnostic& problem = Shape(size, absl::StrCat(what, " is ", *size, ", which is no multiple of ", of, " ", *parts),
                                absl::StrCat("make ", what, " a multiple of ", of));
    Note(problem, of, parts);
  }

  void AtMost(const std::string& what, const Located<int64_t>& size, const std::string& of, const Located<int64_t>& most) {
    if (*size <= *most) return;
    Note(Shape(size, absl::StrCat(what, " is ", *size, ", more than ", of, " ", *most), absl::StrCat("lower ", what)), of, most);
  }

  // Products of sizes that are each fine, which would leave 64 bits.
  void Within(const std::string& what, double count, const Located<int64_t>& at, double most) {
    if (count <= most) return;
    const auto whole = [](double number) { return static_cast<int64_t>(std::min(number, 9e18)); };
    Shape(at, absl::StrCat(what, " are ", whole(count), ", more than ", whole(most)), "lower the sizes that make it");
  }

  Diagnostic& Shape(const Located<int64_t>& at, std::string message, std::string help) {
    failed_ = true;
    return diagnostics_.Error(DiagnosticKind::kModelShape, at.where.known() ? at.where : module_.model.name.where,
                              absl::StrCat("model ", *module_.model.name, ": ", message), std::move(help));
  }

  void Section(bool needed, bool given, const HybridLmModel& model, char layer) {
    if (!needed || given) return;
    failed_ = true;
    diagnostics_.Error(DiagnosticKind::kMissingModelSection, model.pattern.where,
                       absl::StrCat("the pattern has ", std::string(LayerKindName(layer)), " layers (", std::string(1, layer), "), but model ",
                                    *module_.model.name, " has no '", std::string(LayerKindName(layer)), "' section"),
                       absl::StrCat("add '", std::string(LayerKindName(layer)), ":' to the model"));
  }

  bool fine() const { return !failed_; }

 private:
  void Note(Diagnostic& problem, const std::string& what, const Located<int64_t>& size) {
    failed_ = true;
    if (size.where.known()) problem.notes.push_back({size.where, absl::StrCat(what, " is ", *size, " here")});
  }

  const ModuleRecipe& module_;
  Diagnostics& diagnostics_;
  bool failed_ = false;
};

// Layer kinds and pattern parts that the grammar knows and the planner has no blocks for.
bool CheckPatternBuilt(const HybridLmModel& model, const LayerPattern& pattern, Diagnostics& diagnostics) {
  std::string unbuilt;
  for (char layer : std::string_view("GD+-")) {
    if (pattern.count(layer) == 0) continue;
    absl::StrAppend(&unbuilt, unbuilt.empty() ? "" : ", ", std::string(1, layer), " (", std::string(LayerKindName(layer)), ")");
  }
  if (pattern.mtp_depths > 0) absl::StrAppend(&unbuilt, unbuilt.empty() ? "" : ", ", "/ (multi-token prediction)");
  if (unbuilt.empty()) return true;
  diagnostics.Error(DiagnosticKind::kNotBuiltYet, model.pattern.where, absl::StrCat("layers not built yet: ", unbuilt),
                    "use M (mamba), * (attention) and E (moe)");
  return false;
}

double Product(std::initializer_list<int64_t> sizes) {
  double product = 1;
  for (int64_t size : sizes) product *= static_cast<double>(size);
  return product;
}

// Matrices only: what is left out is smaller by far.
void CheckLanguageSize(const HybridLmModel& model, const LayerPattern& pattern, Checker& check) {
  const int64_t hidden = *model.hidden;
  double parameters = 2 * Product({*model.vocabulary, hidden});
  if (pattern.has('*') && model.has_attention) {
    const auto& attention = model.attention;
    check.Within("attention heads x head_dim", Product({*attention.heads, *attention.head_dim}), attention.head_dim, kMostTokens);
    parameters += 4.0 * pattern.count('*') * Product({hidden, *attention.heads, *attention.head_dim});
  }
  if (pattern.has('M') && model.has_mamba) {
    const auto& mamba = model.mamba;
    const double inner = Product({*mamba.heads, *mamba.head_dim}), states = Product({*mamba.groups, *mamba.state});
    check.Within("mamba heads x head_dim", inner, mamba.head_dim, kMostTokens);
    check.Within("mamba groups x state", states, mamba.state, kMostTokens);
    check.Within("mamba heads x head_dim x state", inner * static_cast<double>(*mamba.state), mamba.state, static_cast<double>(kLargestDim));
    parameters += pattern.count('M') * (3 * inner + 2 * states) * static_cast<double>(std::max(hidden, *mamba.conv));
  }
  if (pattern.has('E') && model.has_moe) {
    parameters += 2.0 * pattern.count('E') * (Product({hidden, *model.moe.experts, *model.moe.ffn}) + Product({hidden, *model.moe.shared_ffn}));
  }
  check.Within("parameters", parameters, model.hidden, kMostParameters);
}

void CheckEncoderSize(const RadioVitModel& model, Checker& check) {
  const int64_t hidden = *model.hidden, side = *model.max_image / std::max<int64_t>(*model.patch, 1);
  const double layer = 4 * Product({hidden, hidden}) + 2 * Product({hidden, *model.ffn});
  const double ends = Product({hidden, *model.patch, *model.patch, 3}) + Product({hidden, side, side}) +
                      Product({hidden, *model.pixel_shuffle, *model.pixel_shuffle, *model.projector_hidden});
  check.Within("parameters", static_cast<double>(*model.layers) * layer + ends, model.hidden, kMostParameters);
}

bool CheckLanguageShape(const ModuleRecipe& module, const HybridLmModel& model, Diagnostics& diagnostics) {
  const std::optional<LayerPattern> pattern = ParseLayerPattern(model.pattern, diagnostics);
  if (!pattern) return false;
  Checker check(module, diagnostics);
  const bool attention = pattern->has('*'), mamba = pattern->has('M'), moe = pattern->has('E');
  check.Section(attention, model.has_attention, model, '*');
  check.Section(mamba, model.has_mamba, model, 'M');
  check.Section(moe, model.has_moe, model, 'E');
  if (pattern->layers.empty()) check.Shape({0, model.pattern.where}, "the pattern has no layer", "write the layers, such as ME*E");
  if (attention && model.has_attention) check.Multiple("attention.heads", model.attention.heads, "kv_groups", model.attention.kv_groups);
  if (mamba && model.has_mamba) check.Multiple("mamba.heads", model.mamba.heads, "groups", model.mamba.groups);
  if (moe && model.has_moe) check.AtMost("moe.top_k", model.moe.top_k, "experts", model.moe.experts);

  CheckLanguageSize(model, *pattern, check);

  bool fine = CheckPatternBuilt(model, *pattern, diagnostics) && check.fine();
  // The place of every layer on the pipeline; a '|' too many would lose layers.
  return StagesOfLayers(module, diagnostics).has_value() && fine;
}

bool CheckEncoderShape(const ModuleRecipe& module, const RadioVitModel& model, Diagnostics& diagnostics) {
  Checker check(module, diagnostics);
  check.Multiple("hidden", model.hidden, "heads", model.heads);
  check.Multiple("max_image", model.max_image, "patch", model.patch);
  if (*model.patch >= 1) {
    // Pixel shuffle folds squares of patches into one token: a side must hold whole squares.
    const Located<int64_t> side(*model.max_image / *model.patch, model.max_image.where);
    check.Multiple("the side of the largest image in patches", side, "pixel_shuffle", model.pixel_shuffle);
  }
  CheckEncoderSize(model, check);
  return StagesOfLayers(module, diagnostics).has_value() && check.fine();
}

void CutLanguage(const Recipe& recipe, const ModuleRecipe& m, const HybridLmModel& model, Checker& check) {
  Diagnostics ignored;  // a broken pattern was reported with the shape
  const std::optional<LayerPattern> pattern = ParseLayerPattern(model.pattern, ignored);
  if (!pattern) return;
  if (pattern->has('*') && model.has_attention) {
    check.Cut("attention.heads", model.attention.heads, "tp", m.tp);
    check.Cut("attention.kv_groups", model.attention.kv_groups, "tp", m.tp);
  }
  if (pattern->has('M') && model.has_mamba) {
    // Convolution and scan need the whole sequence: between the projections cp cuts the heads instead.
    const bool cp = *m.cp > 1;
    const Located<int64_t> parts(*m.tp * *m.cp, cp ? m.cp.where : m.tp.where);
    check.Cut("mamba.heads", model.mamba.heads, cp ? "tp x cp" : "tp", parts);
    check.Cut("mamba.groups", model.mamba.groups, cp ? "tp x cp" : "tp", parts);
  }
  if (pattern->has('E') && model.has_moe) {
    check.Cut("moe.experts", model.moe.experts, "ep", m.ep);
    check.Cut("moe.shared_ffn", model.moe.shared_ffn, "tp", m.tp);
    check.Cut("moe.ffn", model.moe.ffn, "expert_tp", m.expert_tp);
  }
  check.Cut("vocabulary", model.vocabulary, "tp", m.tp);
  // Between layers each tp rank holds its part of the sequence; over cp it is cut in pairs of chunks (facts 10).
  if (*m.cp > 1) {
    check.Cut("sequence_length", recipe.batch.sequence_length, "2 x cp x tp", Located<int64_t>(2 * *m.cp * *m.tp, m.cp.where));
  } else {
    check.Cut("sequence_length", recipe.batch.sequence_length, "tp", m.tp);
  }
}

void CutEncoder(const ModuleRecipe& m, const RadioVitModel& model, Checker& check) {
  check.Cut("heads", model.heads, "tp", m.tp);
  check.Cut("ffn", model.ffn, "tp", m.tp);
  check.Cut("hidden", model.hidden, "tp", m.tp);
  check.Cut("projector.hidden", model.projector_hidden, "tp", m.tp);
}

}  // namespace

bool CheckModelShape(const ModuleRecipe& module, Diagnostics& diagnostics) {
  if (const auto* language = std::get_if<HybridLmModel>(&module.model.model)) return CheckLanguageShape(module, *language, diagnostics);
  return CheckEncoderShape(module, std::get<RadioVitModel>(module.model.model), diagnostics);
}

bool CheckLayout(const Recipe& recipe, const ModuleRecipe& module, Diagnostics& diagnostics) {
  Checker check(module, diagnostics);
  if (const auto* language = std::get_if<HybridLmModel>(&module.model.model)) {
    CutLanguage(recipe, module, *language, check);
  } else {
    CutEncoder(module, std::get<RadioVitModel>(module.model.model), check);
  }
  return check.fine();
}

}  // namespace planwright
