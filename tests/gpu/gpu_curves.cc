// Trains the tiny models on GPUs over NCCL, layout by layout, and compares every curve with one rank on the CPU of this
// machine: losses and module norms of every step, every parameter's gradient at the first and the last. Prints a table
// and a verdict; exits 0 if all agree. The processes are real: `plan launch --device ...` of the binaries in a folder.
//
//   gpu_curves BINARIES ROOT GPUS [WORD ...]     layouts of more ranks than GPUs are left out
//
// ROOT: the source folder. Words choose layouts, and fp32 or fp64; default: all of both. Layouts of more ranks than
// there are GPUs: gpu_shared.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/numerics/layouts.h"
#include "tests/numerics/run.h"

namespace planwright::testing {
namespace {

constexpr int kSteps = 20;

struct GpuLayout {
  Layout layout;
  // PLANWRIGHT_FAULT of faulty_executor: instructions on random streams with random delays. Empty: the ordinary
  // executor.
  const char* streams = "";
};

// Every layout that the CPU tests have, those with overlap, and those whose instructions are put on random streams.
std::vector<GpuLayout> GpuLayouts() {
  std::vector<GpuLayout> all = {
      {{"one_rank", OneRankOnly()}},
      {{"one_rank_random_streams", OneRankOnly()}, "random_streams:1"},
      {{"colocated_ep2_random_streams", Join(EncoderOn(2, 1), LanguageOn(0, 2, 1, 2))}, "random_streams:2"},
      {{"colocated_dp2_overlap", Join(EncoderOn(2, 1), LanguageOn(0, 2, 1, 1),
                                      {"gradients.overlap_reduce=true", "gradients.overlap_gather=true"})}},
  };
  for (Layout& layout : AllLayouts()) all.push_back({std::move(layout)});
  for (Layout& layout : DecoderLayouts()) all.push_back({std::move(layout)});
  return all;
}

struct Precision {
  const char* name;
  double tolerance;  // as among layouts on the CPU
};
constexpr Precision kPrecisions[] = {{"fp32", 1e-5}, {"fp64", 1e-9}};

class Judge {
 public:
  Judge(std::string binaries, std::string root) : binaries_(std::move(binaries)), root_(std::move(root)) {}

  bool JudgeLayouts(const Precision& precision, const std::vector<GpuLayout>& layouts, int gpus) {
    bool all = true;
    size_t judged = 0;
    for (const GpuLayout& layout : layouts) {
      const int ranks = RanksOf(layout.layout);
      if (ranks > gpus) continue;
      all &= JudgeLayout(precision, layout, ranks);
      ++judged;
    }
    std::printf("%s: %zu layouts of at most %d ranks, %zu of more left out\n", precision.name, judged, gpus,
                layouts.size() - judged);
    return all;
  }

  // The distance between fp32 and fp64 on the CPU: what rounding alone does to a curve.
  void TellRounding() {
    const Layout one = GpuLayouts()[0].layout;
    const TrainingRun &narrow = Reference(kPrecisions[0], one), &wide = Reference(kPrecisions[1], one);
    if (Ran(narrow, "fp32 on the CPU") && Ran(wide, "fp64 on the CPU")) {
      Row("fp32", "CPU against CPU fp64, for scale", 1, Compare(narrow, wide, 1), "-");
    }
  }

 private:
  // One rank on the CPU, with what the layout trains. Each is run once.
  const TrainingRun& Reference(const Precision& precision, const Layout& layout) {
    std::string key = precision.name + layout.recipe;
    for (const std::string& word : layout.training) key += " " + word;
    const auto [it, fresh] = references_.try_emplace(key);
    if (fresh) it->second = Train(precision, layout, Join(layout.one_rank, layout.training), "cpu", "");
    return it->second;
  }

  TrainingRun Train(const Precision& precision, const Layout& layout, const std::vector<std::string>& overrides,
                    const std::string& device, const char* streams) {
    started_ = std::chrono::steady_clock::now();
    setenv("PLANWRIGHT_FAULT", streams, 1);
    return Launch({.recipe = root_ + "/" + layout.recipe,
                   .overrides = Join({std::string("precision.params=") + precision.name}, overrides),
                   .steps = kSteps,
                   .executor = *streams != '\0' ? "faulty_executor" : "",
                   .device = device,
                   .binaries = binaries_});
  }

  int RanksOf(const Layout& layout) const {
    std::string command = "'" + binaries_ + "/plan' show '" + root_ + "/" + layout.recipe + "' ranks --json";
    for (const std::string& word : Join(layout.training, layout.overrides)) command += " '" + word + "'";
    FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r");
    std::string text;
    for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) text += static_cast<char>(c);
    pclose(pipe);
    const nlohmann::json ranks = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (ranks.is_object() && ranks.contains("world_size")) return ranks["world_size"].get<int>();
    std::printf("%s: no ranks of %s: %s\nverdict: FAIL\n", layout.name.c_str(), layout.recipe.c_str(), text.c_str());
    std::exit(1);
  }

  bool Ran(const TrainingRun& run, const std::string& what) {
    if (run.exit_code == 0 && run.steps.size() == static_cast<size_t>(kSteps) && !::testing::Test::HasFailure())
      return true;
    std::printf("%s did not run: exit status %d after %zu steps\n%s\n", what.c_str(), run.exit_code, run.steps.size(),
                run.output.c_str());
    return false;
  }

  bool JudgeLayout(const Precision& precision, const GpuLayout& layout, int ranks) {
    const TrainingRun& reference = Reference(precision, layout.layout);
    if (!Ran(reference, "the reference of " + layout.layout.name + " on the CPU")) return false;
    const TrainingRun run =
        Train(precision, layout.layout, Join(layout.layout.training, layout.layout.overrides), "cuda", layout.streams);
    if (!Ran(run, layout.layout.name)) return false;
    const Comparison comparison = Compare(run, reference, precision.tolerance);
    // If the first step chooses other experts, nothing is compared; and in fp64 there are no ties.
    const bool parted_too_early =
        comparison.parted_at && (*comparison.parted_at == 0 || std::strcmp(precision.name, "fp64") == 0);
    const bool agrees = comparison.differences.empty() && !parted_too_early;
    Row(precision.name, layout.layout.name, ranks, comparison, agrees ? "agrees" : "DIFFERS");
    for (size_t i = 0; i < std::min<size_t>(comparison.differences.size(), 10); ++i)
      std::printf("    %s\n", comparison.differences[i].c_str());
    return agrees;
  }

  void Row(const std::string& precision, const std::string& layout, int ranks, const Comparison& comparison,
           const char* verdict) {
    const std::string routing =
        comparison.parted_at ? "parts at step " + std::to_string(*comparison.parted_at + 1) : "the same";
    const std::string last = comparison.parted_at ? "-" : Scientific(comparison.worst_gradient_last);
    std::printf("%-4s  %-32s %5d  %8s  %8s  %10s  %9s  %-16s %5.0f s  %s\n", precision.c_str(), layout.c_str(), ranks,
                Scientific(comparison.worst_loss).c_str(), Scientific(comparison.worst_norm).c_str(),
                Scientific(comparison.worst_gradient_first).c_str(), last.c_str(), routing.c_str(),
                std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count(), verdict);
    std::fflush(stdout);
  }

  static std::string Scientific(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1e", value);
    return text;
  }

  const std::string binaries_, root_;
  std::map<std::string, TrainingRun> references_;
  std::chrono::steady_clock::time_point started_;  // start of the run that is printed next
};

// The items that `words` name; their words are removed. All items if none is named.
template <typename Item, typename Name>
std::vector<Item> Chosen(const std::vector<Item>& items, std::vector<std::string>& words, Name name) {
  std::vector<Item> chosen;
  for (const Item& item : items) {
    if (std::erase(words, name(item)) > 0) chosen.push_back(item);
  }
  return chosen.empty() ? items : chosen;
}

int Main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: gpu_curves BINARIES ROOT GPUS [fp32 | fp64] [LAYOUT ...]\n");
    return 2;
  }
  std::vector<std::string> words(argv + 4, argv + argc);
  const auto precisions = Chosen(std::vector<Precision>(std::begin(kPrecisions), std::end(kPrecisions)), words,
                                 [](const Precision& p) { return p.name; });
  const auto layouts = Chosen(GpuLayouts(), words, [](const GpuLayout& l) { return l.layout.name; });
  if (!words.empty()) {
    std::fprintf(stderr, "gpu_curves: no layout or precision is named `%s`\n", words[0].c_str());
    return 2;
  }
  Judge judge(argv[1], argv[2]);
  std::printf(
      "GPUs over NCCL against one rank on the CPU, %d steps; worst relative distances, bounds fp32 1e-5 and fp64 1e-9, "
      "TF32 off\n",
      kSteps);
  std::printf(
      "type  layout                           ranks      loss      norm  grad first  grad last  expert choices    time "
      " verdict\n");
  bool all = true;
  judge.TellRounding();
  for (const Precision& precision : precisions) all &= judge.JudgeLayouts(precision, layouts, std::atoi(argv[3]));
  std::printf("verdict: %s\n", all ? "PASS" : "FAIL");
  return all ? 0 : 1;
}

}  // namespace
}  // namespace planwright::testing

int main(int argc, char** argv) { return planwright::testing::Main(argc, argv); }
