// Random models with features of inner layers of their encoder (DeepStack), on random layouts, with any parts frozen.
// Each compiles, or is refused by a kind of diagnostic that is the author's.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/compile/compile.h"
#include "planner/recipe/recipe_reader.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using std::string;

class RandomFeatures {
 public:
  explicit RandomFeatures(unsigned seed) : random_(seed) {}

  std::vector<string> Overrides() {
    const string eye = Of({"VVDVDV", "VDVD", "VVVDVVD", "VDVVVVDVV", "VVVD", "VDVDVDVD"}), tongue = Tongue(eye);
    const bool together = Chance(15);
    const Module encoder = Drawn("eye", eye, together), language = Drawn("tongue", tongue, together);
    const int64_t ranks = together ? std::max(encoder.ranks, language.ranks) : encoder.ranks;
    std::vector<string> overrides = {
        "models.eye.pattern=" + eye,
        "models.tongue.pattern=\"" + tongue + "\"",
        "modules.eye_encoder=" +
            Text(encoder, 0, ranks, ", projection: " + Of({"trained", "frozen"}), "[qkv, mlp.linear_fc2]"),
        "modules.language=" +
            Text(language, together ? 0 : ranks, together ? ranks : language.ranks, "", "[q_proj, o_proj]"),
        "batch={global_samples: 16, micro_samples: " + Of({"1", "2"}) + ", sequence_length: 64}",
        "budget.train_samples=160",
        "cluster.nodes=8",
        "precision.params=" + Of({"bf16", "fp32", "fp64"})};
    if (tongue.find('E') != string::npos)
      overrides.emplace_back("models.tongue.moe={experts: 4, top_k: 2, ffn: 16, normalized: true}");
    if (Chance(40))
      overrides.push_back("gradients={overlap_reduce: true, overlap_gather: true, buckets: " + Of({"1", "2", "4"}) +
                          "}");
    if (Chance(30))
      overrides.emplace_back("evaluation={every_samples: 80, sets: [{name: held, samples: 16, seed: 7}]}");
    if (Chance(30)) overrides.emplace_back("checkpoint.every_steps=2");
    if (Chance(20)) overrides.emplace_back("data.packed_documents=true");
    return overrides;
  }

 private:
  struct Module {
    string model, parallel;
    int64_t ranks = 1;
  };

  int64_t Below(int64_t end) { return std::uniform_int_distribution<int64_t>(0, end - 1)(random_); }
  bool Chance(int percent) { return Below(100) < percent; }
  string Of(const std::vector<string>& words) { return words[static_cast<size_t>(Below(std::ssize(words)))]; }

  // As many D as the encoder has, behind any blocks.
  string Tongue(const string& eye) {
    const int64_t taps = std::count(eye.begin(), eye.end(), 'D'), blocks = taps + Below(4);
    string behind(static_cast<size_t>(taps), 'D'), pattern;
    behind.resize(static_cast<size_t>(blocks), ' ');
    if (Chance(40)) std::shuffle(behind.begin(), behind.end(), random_);
    const bool experts = Chance(30);
    for (const char tap : behind) {
      pattern += experts && Chance(50) ? "*E" : "*-";
      if (tap == 'D') pattern += tap;
    }
    return pattern;
  }

  Module Drawn(const string& model, const string& pattern, bool together) {
    const int64_t tp = 1 + Below(2), cp = together ? 1 : 1 + Below(2), pp = together ? 1 : 1 + Below(3);
    Module module = {model, absl::StrCat("tp: ", tp, ", cp: ", cp, ", pp: ", pp), tp * cp * pp * (1 + Below(2))};
    std::vector<int64_t> stages(static_cast<size_t>(pp), 1);
    for (int64_t left = std::ssize(pattern) - pp; left > 0; --left) ++stages[static_cast<size_t>(Below(pp))];
    if (pp > 1) absl::StrAppend(&module.parallel, ", stage_layers: [", absl::StrJoin(stages, ", "), "]");
    return module;
  }

  string Text(const Module& module, int64_t first_rank, int64_t ranks, const string& projection,
              const string& targets) {
    const string backbone = Of({"trained", "frozen"});
    string text = absl::StrCat("{model: ", module.model, ", placement: {first_rank: ", first_rank, ", ranks: ", ranks,
                               "}, parallel: {", module.parallel, "}, recompute: ", Of({"none", "full", "elementwise"}),
                               ", train: {backbone: ", backbone, projection, "}");
    if (backbone == "frozen" && Chance(40)) text += ", adapter: {rank: 2, alpha: 4, targets: " + targets + "}";
    return text + "}";
  }

  std::mt19937_64 random_;
};

TEST(RandomFeatures, NeverReachAFaultOfThePlanner) {
  int compiled = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const std::vector<string> overrides = RandomFeatures(seed).Overrides();
    Diagnostics problems;
    const auto recipe = ReadRecipe(InSource("tests/verify/carries.yaml"), overrides, problems);
    compiled += recipe && CompileRecipe(*recipe, problems).has_value() ? 1 : 0;
    for (const Diagnostic& problem : problems.sorted()) {
      if (problem.kind != DiagnosticKind::kBrokenRule) continue;
      ADD_FAILURE() << seed << ": " << problem.message << "\nplan validate tests/verify/carries.yaml '"
                    << absl::StrJoin(overrides, "' '") << "'";
      break;
    }
  }
  EXPECT_GE(compiled, 80) << "others have nothing to recompute, or lanes that hold no packed samples";
}

}  // namespace
}  // namespace planwright
