// Whether ranks train the curve of one rank: losses and module norms of every step, every gradient of the first and the
// last.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string_view>

#include "tests/gpu/shared/shared_cases.h"
#include "tests/numerics/covering_layouts.h"
#include "tests/numerics/random_layouts.h"

namespace planwright::testing {
namespace {

// As among layouts on the CPU (tests/numerics/layouts_test.cc).
constexpr double kFp64 = 1e-9, kFp32 = 1e-5, kOtherSums = 1e-4;
// As bf16 beside fp32 there (bf16_test.cc): the first step has forwards alone. Norms and gradients have the rounding of
// every sum that the layout cuts otherwise: of 53 layouts on CPUs the worst are 1.8e-3, and 0.019 and 0.076 of a
// parameter in the first and the last step.
constexpr double kBf16FirstLoss = 5e-4, kBf16Loss = 5e-3, kBf16Norm = 0.02, kBf16First = 0.1, kBf16Last = 0.2;
constexpr size_t kSteps = 3;
constexpr int kRandomSeeds = 25, kFirstSeed = 3000;  // of each family

struct Curve {
  Layout layout;
  std::string precision = "fp64", fault = "";
};

SharedResult JudgeCurve(SharedRuns& runs, const Curve& curve) {
  const bool fp32 = curve.precision == "fp32";
  const TrainingRun& one = runs.One(curve.layout, curve.precision, "cpu");
  std::string wrong = WhyNotRun(one, "one rank on the CPU", kSteps);
  if (!wrong.empty()) return {wrong};
  const TrainingRun run = runs.Train(
      curve.layout,
      {.precision = curve.precision, .executor = curve.fault.empty() ? "" : "faulty_executor", .fault = curve.fault});
  wrong = WhyNotRun(run, "the layout", kSteps);
  if (!wrong.empty()) return {wrong};
  SharedResult result = ResultOf(Compare(run, one, fp32 ? kFp32 : kFp64), fp32);
  // A GPU sums in another order than the CPU. In fp32 the gradients of the first step agree to 2e-6, and those after
  // two steps of some models to 3e-5, on one rank as on several. What a layout does is seen beside one rank of the GPU.
  // What is further off than that is wrong.
  if (result.wrong.empty() || runs.device() == "cpu" || !fp32) return result;
  if (!Compare(run, one, kOtherSums).differences.empty()) return result;
  const TrainingRun& same = runs.One(curve.layout, curve.precision, runs.device());
  wrong = WhyNotRun(same, "one rank on the GPU", kSteps);
  if (!wrong.empty()) return {wrong};
  SharedResult beside = ResultOf(Compare(run, same, kFp32), true);
  beside.figures += " beside one rank of the GPU; beside the CPU " + result.figures;
  return beside;
}

double NormOf(const WholeTensor& tensor) {
  double squares = 0;
  for (const double x : tensor.values) squares += x * x;
  return std::sqrt(squares);
}

// What a distance from the gradient of `name` counts. A bias of keys moves all scores of a query alike, but for the
// features that turn by position: its gradient is a difference of sums that cancel (of llama_partial 8.0e-5 beside
// 8.3e-3 of its weight, and in the features that do not turn 1e-19 in fp64), and bf16 has the roundings of those sums:
// on one rank it is a tenth away from fp64. So bias and weight are one tensor there.
double ShareOf(const std::string& name, const Tensors& one) {
  constexpr std::string_view kBias = "k_proj.bias";
  if (!name.ends_with(kBias)) return 1;
  const WholeTensor& weight = one.at(name.substr(0, name.size() - kBias.size()) + "k_proj.weight");
  const double bias = NormOf(one.at(name));
  return bias / std::hypot(bias, NormOf(weight));
}

double WorstDistance(const Tensors& run, const Tensors& one, std::string& where) {
  double worst = run.size() == one.size() ? 0 : std::numeric_limits<double>::infinity();
  for (const auto& [name, tensor] : one) {
    const auto at = run.find(name);
    const double off =
        at == run.end() ? std::numeric_limits<double>::infinity() : Distance(at->second, tensor) * ShareOf(name, one);
    if (!(off <= worst)) worst = off, where = name;
  }
  return worst;
}

double Off(double found, double expected) { return expected == 0 ? std::abs(found) : std::abs(found / expected - 1); }

// In bf16 roundings make other choices of experts, and then everything differs: here the layout makes those of one
// rank.
SharedResult JudgeBf16(SharedRuns& runs, const Layout& layout) {
  const SharedRuns::Recorded& one = runs.RecordedOne(layout);
  std::string wrong = WhyNotRun(one.run, "one rank of the device", kSteps);
  if (!wrong.empty()) return {wrong};
  SharedRuns::Options options = {.precision = "bf16"};
  if (!one.choices.empty()) options.options = {"--replay-routing", one.choices};
  const TrainingRun run = runs.Train(layout, options);
  wrong = WhyNotRun(run, "the layout", kSteps);
  if (!wrong.empty()) return {wrong};
  SharedResult result;
  const auto judge = [&](const std::string& what, double off, double limit) {
    if (!(off <= limit)) result.wrong += what + " is off by " + Scientific(off) + "\n";
    return off;
  };
  double loss = 0, norm = 0;
  for (size_t i = 0; i < kSteps; ++i) {
    const StepMetrics &a = run.steps[i], &b = one.run.steps[i];
    const std::string at = " of step " + std::to_string(i + 1);
    if (a.routing != b.routing) result.wrong += "other experts are chosen in step " + std::to_string(i + 1) + "\n";
    loss = std::max(loss, judge("the loss" + at, Off(a.loss, b.loss), i == 0 ? kBf16FirstLoss : kBf16Loss));
    for (const auto& [module, expected] : b.module_grad_norms) {
      const auto found = a.module_grad_norms.find(module);
      const double off = found == a.module_grad_norms.end() ? INFINITY : Off(found->second, expected);
      norm = std::max(norm, judge("the norm of " + module + at, off, kBf16Norm));
    }
  }
  std::string worst_first, worst_last;
  const double first = WorstDistance(run.gradients_first, one.run.gradients_first, worst_first),
               last = WorstDistance(run.gradients_last, one.run.gradients_last, worst_last);
  judge("the gradient of " + worst_first + " in the first step", first, kBf16First);
  judge("the gradient of " + worst_last + " in the last step", last, kBf16Last);
  result.figures = "loss " + Scientific(loss) + ", norm " + Scientific(norm) + ", gradients " + Scientific(first) +
                   " first, " + Scientific(last) + " last";
  return result;
}

bool Has(const std::vector<std::string>& words, const std::string& part) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return word.find(part) != std::string::npos; });
}

std::set<std::string> ModulesOf(const Layout& layout) {
  std::set<std::string> modules;
  const std::string prefix = "modules.";
  for (const std::string& word : Join(layout.one_rank, layout.overrides)) {
    if (!word.starts_with(prefix)) continue;
    modules.insert(word.substr(prefix.size(), word.find('.', prefix.size()) - prefix.size()));
  }
  return modules;
}

std::vector<Layout> EveryLayout() {
  std::vector<Layout> all = AllLayouts();
  for (Layout& layout : DecoderLayouts()) all.push_back(std::move(layout));
  return all;
}

// Few, but together they have all that all have.
std::vector<Layout> Covering() { return CoveringLayouts(EveryLayout(), Cover::kEach); }

std::optional<Layout> WithOverlap(Layout layout) {
  layout.overrides = Join(layout.overrides, {"gradients.overlap_reduce=true", "gradients.overlap_gather=true"});
  if (AxesOf(layout).contains("language.ep"))
    layout.overrides.push_back("modules.language.parallel.overlap_dispatch=true");
  return layout;
}

std::optional<Layout> WithDispatch(Layout layout, const char* kind) {
  if (!AxesOf(layout).contains("language.ep")) return std::nullopt;
  layout.overrides.push_back(std::string("modules.language.parallel.dispatch=") + kind);
  layout.name += std::string(".") + kind;
  return layout;
}

// A packed sample is a microbatch of its own, and recorded batches have the documents that they have.
std::optional<Layout> WithDocuments(Layout layout) {
  const std::vector<std::string> words = Join(layout.training, layout.overrides);
  if (Has(words, "micro_samples") || Has(words, "packed_documents")) return std::nullopt;
  layout.training.push_back("data.packed_documents=true");
  return layout;
}

std::optional<Layout> WithRecompute(Layout layout) {
  if (Has(layout.overrides, ".recompute=")) return std::nullopt;
  for (const std::string& module : ModulesOf(layout)) {
    // A frozen encoder has no backward, for which it would compute anything again.
    const bool frozen = module != "language" && Has(layout.training, module + ".train.backbone=frozen");
    if (!frozen) layout.overrides.push_back("modules." + module + ".recompute=[full]");
  }
  return layout;
}

void Add(std::vector<SharedCase>& cases, const std::string& group, const Curve& curve) {
  cases.push_back({group, curve.layout.name, [curve](SharedRuns& runs) { return JudgeCurve(runs, curve); }});
}

void AddRandom(std::vector<SharedCase>& cases, int seed, DrawnFamily family, const char* name) {
  cases.push_back({"random", std::string(name) + "_" + std::to_string(seed), [=](SharedRuns& runs) {
                     const Layout layout =
                         RandomLayout(static_cast<uint64_t>(seed), family, runs.binaries() + "/plan", runs.source());
                     SharedResult result = JudgeCurve(runs, {layout});
                     if (result.wrong.empty()) return result;
                     result.wrong += layout.recipe;
                     for (const std::string& word : Join(layout.training, layout.overrides))
                       result.wrong += " '" + word + "'";
                     return result;
                   }});
}

// Layouts with several source ranks of experts, whose features are whole boxes of Hopper's kernels: these take rows as
// they came (executor/ops/fast/expert_rows_on_gpu.h).
std::vector<Layout> WithWholeBoxes() {
  std::vector<Layout> layouts;
  for (Layout& layout : EveryLayout()) {
    constexpr std::string_view kHybrid[] = {"ep2", "ep4_uneven", "expert_tp2_ep2_uneven", "gathered_ep4_tp2",
                                            "overlapped_gathered_ep2"};
    constexpr std::string_view kDecoder[] = {"qwen3_moe_ep2_tp2", "qwen3_moe_overlapped_ep4"};
    const bool hybrid = std::ranges::find(kHybrid, layout.name) != std::end(kHybrid);
    if (!hybrid && std::ranges::find(kDecoder, layout.name) == std::end(kDecoder)) continue;
    layout.name += "_whole_boxes";
    layout.training.push_back(hybrid ? "models.hybrid_moe_tiny.moe.ffn=128" : "models.decoder_tiny.moe.ffn=128");
    layouts.push_back(layout);
  }
  return layouts;
}

}  // namespace

std::vector<SharedCase> CurveCases() {
  std::vector<SharedCase> cases;
  for (int seed = kFirstSeed; seed < kFirstSeed + kRandomSeeds; ++seed) {
    AddRandom(cases, seed, DrawnFamily::kHybrid, "hybrid");
    AddRandom(cases, seed, DrawnFamily::kDecoder, "decoder");
  }
  const std::vector<Layout> covering = Covering();
  for (size_t i = 0; i < covering.size(); ++i)
    Add(cases, "streams", {covering[i], "fp64", "random_streams:" + std::to_string(i + 1)});
  const auto add_each = [&](const char* group, const auto& with) {
    for (const Layout& layout : covering) {
      if (const std::optional<Layout> changed = with(layout)) Add(cases, group, {*changed});
    }
  };
  add_each("overlap", WithOverlap);
  add_each("dispatch", [](const Layout& layout) { return WithDispatch(layout, "all_to_all"); });
  add_each("dispatch", [](const Layout& layout) { return WithDispatch(layout, "all_gather"); });
  add_each("documents", WithDocuments);
  add_each("recompute", WithRecompute);
  std::vector<Layout> in_bf16 = EveryLayout();
  for (Layout& layout : WithWholeBoxes()) in_bf16.push_back(std::move(layout));
  for (const Layout& layout : in_bf16) {
    cases.push_back({"bf16", layout.name, [layout](SharedRuns& runs) { return JudgeBf16(runs, layout); }});
  }
  for (const char* precision : {"fp32", "fp64"}) {
    for (const Layout& layout : EveryLayout()) Add(cases, precision, {layout, precision});
  }
  return cases;
}

}  // namespace planwright::testing
