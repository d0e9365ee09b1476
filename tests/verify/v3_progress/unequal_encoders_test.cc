// Encoders of different pipeline depths beside each other (docs/progress.md#why-lowering-makes-no-circle). Each plan
// compiles (V3 would refuse a circle, PW0801), makes progress in the simulator, and transfers the microbatches in
// order.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"
#include "tests/verify/v3_progress/simulator.h"

namespace planwright {
namespace {

using std::string;
using std::vector;

// The layout of one module.
struct ModuleLayout {
  int tp = 1, dp = 1, pp = 1;
  string train = "{backbone: trained}";

  int ranks() const { return tp * dp * pp; }
};

struct Layout {
  vector<ModuleLayout> encoders;
  ModuleLayout language;
  int microbatches = 1;
};

const vector<string> kNames = {"images", "audio", "third"};
constexpr int kStages[] = {1, 2, 4};

// Overrides of encoders_of_unequal_depth.yaml, a recipe that was once refused.
vector<string> OverridesOf(const Layout& layout) {
  vector<string> overrides, bridges;
  int first = 0;
  const auto add = [&](const string& name, const string& model, const ModuleLayout& stages) {
    overrides.push_back(absl::StrCat("modules.", name, "={model: ", model, ", placement: {first_rank: ", first,
                                     ", ranks: ", stages.ranks(), "}, parallel: {tp: ", stages.tp, ", pp: ", stages.pp,
                                     "}, train: ", stages.train, "}"));
    first += stages.ranks();
  };
  for (size_t i = 0; i < layout.encoders.size(); ++i) {
    add(kNames[i], "small_vit", layout.encoders[i]);
    bridges.push_back(absl::StrCat("{from: ", kNames[i], ", to: language, token: ", 63 - i, "}"));
  }
  add("language", "small_lm", layout.language);
  overrides.push_back(absl::StrCat("bridges=[", absl::StrJoin(bridges, ", "), "]"));
  overrides.push_back(absl::StrCat("cluster.gpus_per_node=", first));
  overrides.push_back(absl::StrCat("batch.global_samples=", layout.microbatches * layout.language.dp));
  return overrides;
}

// The microbatches that a role transfers, in program order, by what they pass over ("audio.pp1 sends backward").
std::map<string, vector<string>> TransferredMicrobatches(const Role& role) {
  std::map<string, vector<string>> transferred;
  for (const Instruction& instruction : role.step) {
    for (const ExchangePart& part : instruction.parts) {
      const string way = absl::StrCat(part.bridge, part.group, part.shift, part.send ? " sends" : " receives",
                                      part.backward ? " backward" : "");
      const size_t begin = part.value.find(".m") + 2;  // of the 3 in "audio.m3.rows"
      transferred[way].push_back(part.value.substr(begin, part.value.find('.', begin) - begin));
    }
  }
  return transferred;
}

void ExpectProgress(const Layout& layout, uint64_t seed) {
  const vector<string> overrides = OverridesOf(layout);
  SCOPED_TRACE(absl::StrCat("'", absl::StrJoin(overrides, "' '"), "'"));
  const Plan plan =
      testing::CompiledFile(InSource("tests/fuzz/regressions/recipe/encoders_of_unequal_depth.yaml"), overrides);
  ASSERT_FALSE(plan.roles.empty());
  vector<string> all;
  for (int m = 0; m < layout.microbatches; ++m) all.push_back(absl::StrCat(m));
  for (const Role& role : plan.roles) {
    for (const auto& [way, microbatches] : TransferredMicrobatches(role))
      EXPECT_EQ(microbatches, all) << role.name << ", " << way;
  }
  const testing::Outcome outcome = testing::Simulate(plan, {{seed, 0}, {seed, 30}, {seed, 100}});
  ASSERT_TRUE(outcome.completed) << outcome.problem;
}

// Which parts of an encoder are trained decides which of its stages have backwards.
TEST(UnequalEncoders, TwoOfAllDepthsMakeProgress) {
  const vector<string> trains = {"{backbone: trained}", "{backbone: frozen, projection: trained}",
                                 "{backbone: frozen, projection: frozen}"};
  uint64_t seed = 0;
  for (const int first : kStages) {
    for (const int second : kStages) {
      for (const int language : kStages) {
        for (const int microbatches : {1, 2, 3, 4, 5, 6, 8, 11}) {
          // First both encoders are fully trained. Then each is trained fully, in part or not at all, in turn.
          const string &one = trains[++seed % 3], &other = trains[seed / 3 % 3];
          ExpectProgress({{{.pp = first}, {.pp = second}}, {.pp = language}, microbatches}, seed);
          ExpectProgress(
              {{{.pp = first, .train = one}, {.pp = second, .train = other}}, {.pp = language}, microbatches}, seed);
          if (HasFailure()) return;
        }
      }
    }
  }
}

// With several lanes and with tensor parallelism, where a stage has leaders and siblings.
TEST(UnequalEncoders, ThreeOfAnyDepthsMakeProgress) {
  std::mt19937 draws(1);
  const auto one = [&](const vector<int>& choices) { return choices[draws() % choices.size()]; };
  for (uint64_t seed = 0; seed < 120; ++seed) {
    const auto stages = [&] { return ModuleLayout{.tp = one({1, 1, 2}), .dp = one({1, 1, 2}), .pp = one({1, 2, 4})}; };
    Layout layout{{stages(), stages(), stages()}, stages(), one({1, 2, 3, 4, 5, 7, 8, 12})};
    for (ModuleLayout& encoder : layout.encoders) {
      if (one({0, 0, 1}) == 1) encoder.train = "{backbone: frozen}";
    }
    ExpectProgress(layout, seed);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace planwright
