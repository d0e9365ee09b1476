// Every mutant of every plan is refused by a rule that it names, and the violation points at a recipe line of the
// damaged part. The plans themselves pass. Prints how many mutants of each kind each rule refused.
#include "tests/verify/mutants/mutants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/compile/compile.h"
#include "planner/plan/plan_json.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/verify/verify.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using testing::AllMutants;
using testing::Mutant;

// A recipe whose plan is damaged.
struct Base {
  std::string name;
  std::string recipe;
  std::vector<std::string> overrides = {};
  size_t most_of_a_kind = 8;  // mutants of each kind that are tried
};

std::ostream& operator<<(std::ostream& out, const Base& base) {
  return out << base.recipe << " " << absl::StrJoin(base.overrides, " ");
}

constexpr char kTiny[] = "recipes/nemotron_moe_vlm_tiny.yaml";

// The tiny model with the encoder on ranks [0, encoders) and the language model on the `ranks` ranks after them.
Base Disjoint(const std::string& name, int encoders, const std::string& encoder, int ranks, const std::string& language,
              std::vector<std::string> more = {}) {
  const std::string first = "modules.radio_encoder.", second = "modules.language.";
  std::vector<std::string> overrides = {"cluster.nodes=2",
                                        "cluster.gpus_per_node=8",
                                        absl::StrCat(first, "placement.ranks=", encoders),
                                        absl::StrCat(first, "parallel={", encoder, "}"),
                                        absl::StrCat(second, "placement.first_rank=", encoders),
                                        absl::StrCat(second, "placement.ranks=", ranks),
                                        absl::StrCat(second, "parallel={", language, "}")};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return {name, kTiny, overrides};
}

// Overrides that say which parts are trained, as in the stages of training a vision-language model.
std::vector<std::string> Trains(const char* encoder, const char* projection, const char* language) {
  return {absl::StrCat("modules.radio_encoder.train={backbone: ", encoder, ", projection: ", projection, "}"),
          absl::StrCat("modules.language.train.backbone=", language)};
}

// Of a plan with an evaluation beside the training, which has nearly twice as many blocks.
Base Few(Base base) {
  base.most_of_a_kind = 4;
  return base;
}

std::vector<std::string> Together(std::vector<std::string> some, const std::vector<std::string>& more) {
  some.insert(some.end(), more.begin(), more.end());
  return some;
}

// The tiny decoder on so many ranks.
Base Decoder(const std::string& name, int ranks, const std::string& axes, std::vector<std::string> more = {}) {
  more.insert(more.end(), {"cluster.gpus_per_node=8", absl::StrCat("modules.language.placement.ranks=", ranks),
                           absl::StrCat("modules.language.parallel={", axes, "}")});
  return Few({name, "recipes/qwen3_moe_tiny.yaml", more});
}

std::vector<Base> Layouts() {
  const std::string wide = "models.hybrid_moe_tiny.mamba.groups=4",
                    heads = "models.hybrid_moe_tiny.attention.kv_groups=4";
  const std::vector<std::string> overlap = {"gradients.overlap_reduce=true", "gradients.overlap_gather=true",
                                            "gradients.buckets=3"};
  const std::vector<std::string> evaluated = {
      "checkpoint.every_steps=1",
      "evaluation={every_samples: 8, sets: [{name: held_out, samples: 7, seed: 99}, {name: other, samples: 2, "
      "seed: 98}]}"};
  // Files that are not there: a plan needs none. Losses of steps are added up by source, too.
  const std::vector<std::string> by_source = {
      "data={kind: sources, max_patches: 16, sources: [{kind: webdataset, shards: /gone/a.tar}, {kind: webdataset, "
      "shards: /gone/b.tar}]}",
      "evaluation={every_samples: 8, sets: [{name: held_out, samples: 7, sources: [{kind: webdataset, shards: "
      "/gone/c.tar}]}]}",
      "models.hybrid_moe_tiny.vocabulary=264"};
  return {
      Few(Disjoint("evaluated", 2, "tp: 2", 4, "tp: 2, ep: 4", evaluated)),
      Few(Disjoint("evaluated_colocated", 4, "tp: 1", 4, "tp: 2, ep: 4",
                   Together({"modules.language.placement.first_rank=0"}, evaluated))),
      Few(Disjoint("evaluated_stages_by_source", 2, "tp: 1, pp: 2", 8, "tp: 2, cp: 2, pp: 2, ep: 2",
                   Together({wide, heads}, by_source))),
      Disjoint("tp2_dp2_ep4", 2, "tp: 2", 4, "tp: 2, ep: 4"),
      Disjoint("uneven", 3, "tp: 1", 2, "tp: 1"),
      Disjoint("colocated", 4, "tp: 1", 4, "tp: 2, ep: 4", {"modules.language.placement.first_rank=0"}),
      Disjoint("stages", 1, "tp: 1", 4, "tp: 2, pp: 2"),
      Disjoint("stages_of_both", 4, "tp: 2, pp: 2", 4, "tp: 1, pp: 2, ep: 2"),
      Disjoint("context_parallel", 1, "tp: 1", 4, "cp: 2, ep: 4"),
      Disjoint("context_and_tensor_parallel", 1, "tp: 1", 4, "tp: 2, cp: 2, ep: 4", {wide, heads}),
      Disjoint("shared_keys_and_padding", 1, "tp: 1", 4, "tp: 2, cp: 2, ep: 4",
               {wide, "models.hybrid_moe_tiny.attention.kv_groups=1", "models.hybrid_moe_tiny.vocabulary=259"}),
      Disjoint("encoder_over_cp", 4, "tp: 2, cp: 2", 2, "tp: 2, ep: 2"),
      Disjoint("expert_tensor_parallel", 1, "tp: 1", 4, "tp: 2, ep: 2, expert_tp: 2"),
      Disjoint("gathered", 2, "tp: 2", 4, "tp: 2, ep: 4, dispatch: all_gather"),
      Disjoint("gathered_expert_tensor_parallel", 1, "tp: 1", 4, "tp: 2, ep: 2, expert_tp: 2, dispatch: all_gather",
               {"modules.language.recompute=[moe]"}),
      Disjoint("gathered_dispatch_overlapped", 1, "tp: 1", 4,
               "tp: 2, ep: 2, expert_tp: 2, dispatch: all_gather, overlap_dispatch: true",
               {"modules.language.recompute=[moe]"}),
      Disjoint("recomputed", 2, "tp: 2", 2, "tp: 2",
               {"modules.language.recompute=[full]", "modules.radio_encoder.recompute=[block]"}),
      Disjoint("recomputed_in_part", 2, "tp: 2", 4, "tp: 2, ep: 2", {"modules.language.recompute=[moe]"}),
      Disjoint("stage_1", 2, "tp: 2", 2, "tp: 2, ep: 2", Trains("frozen", "trained", "frozen")),
      Disjoint("stage_2", 2, "tp: 2", 2, "tp: 2, ep: 2", Trains("frozen", "trained", "trained")),
      Disjoint("frozen_language", 1, "tp: 1", 2, "tp: 2", {"modules.language.train.backbone=frozen"}),
      Disjoint("packed_documents", 1, "tp: 1", 4, "tp: 2, ep: 2", {"data.packed_documents=true"}),
      Disjoint("overlapped", 2, "tp: 1", 4, "tp: 2", overlap),
      Disjoint("overlapped_stages", 2, "tp: 1", 8, "tp: 2, pp: 2, ep: 2", overlap),
      Disjoint("published", 2, "tp: 2", 4, "tp: 2, ep: 2",
               {"models.radio_vit_tiny.final_norm=none", "models.radio_vit_tiny.activation=gelu",
                "models.hybrid_moe_tiny.pattern='M-*E'", "models.hybrid_moe_tiny.mlp={ffn: 40}",
                "models.hybrid_moe_tiny.moe.normalized=false"}),
      Decoder("decoder", 8, "tp: 2, cp: 2, pp: 2, ep: 2",
              {"modules.language.recompute=[elementwise]", "models.decoder_tiny.attention.biases=all"}),
      Decoder("decoder_packed_and_gathered", 4, "tp: 4, ep: 2, expert_tp: 2, dispatch: all_gather",
              {"data.packed_documents=true", "models.decoder_tiny.tied=true",
               "models.decoder_tiny.rope={scaling: llama3, factor: 8.0}"}),
      {"two_encoders", "tests/verify/two_encoders.yaml"},
      {"encoders_of_unequal_depth", "tests/fuzz/regressions/recipe/encoders_of_unequal_depth.yaml"},
  };
}

// Shipped recipes without overrides. Of the large ones only a few mutants of each kind are tried, to save time.
std::vector<Base> Shipped() {
  const auto large = [](const std::string& name, size_t most) {
    return Base{name, "recipes/nemotron_moe_vlm_" + name + ".yaml", {}, most};
  };
  return {{"tiny", kTiny},          {"20l_mock_8r_toy", "recipes/nemotron_moe_vlm_20l_mock_8r_toy.yaml"},
          large("20l_mock_8r", 2),  large("54l_9n", 1),
          large("54l_33n", 1),      large("54l_33n_stage1", 1),
          large("54l_text_only", 1)};
}

std::optional<Plan> Compiled(const Base& base, Diagnostics& problems) {
  const auto recipe = ReadRecipe(InSource(base.recipe), base.overrides, problems);
  return recipe ? CompileRecipe(*recipe, problems) : std::nullopt;
}

// At most so many mutants of each kind, spread over the plan: a large plan has thousands.
std::vector<Mutant> Sample(std::vector<Mutant> mutants, size_t most_of_a_kind) {
  std::map<std::string, size_t> all, seen;
  // Mutants that no rule must refuse are for progress_test.cc.
  std::erase_if(mutants, [](const Mutant& mutant) { return mutant.rules.empty(); });
  for (const Mutant& mutant : mutants) ++all[mutant.kind];
  std::vector<Mutant> chosen;
  for (Mutant& mutant : mutants) {
    const size_t step = (all[mutant.kind] + most_of_a_kind - 1) / most_of_a_kind;
    if (seen[mutant.kind]++ % step == step / 2) chosen.push_back(std::move(mutant));
  }
  return chosen;
}

// The text of a line of a file; "" if there is no such file or line.
std::string LineOf(const std::string& path, int number) {
  static std::map<std::string, std::vector<std::string>> files;
  auto [file, fresh] = files.try_emplace(path);
  if (fresh) {
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) file->second.push_back(line);
  }
  return number < 1 || number > static_cast<int>(file->second.size()) ? ""
                                                                      : file->second[static_cast<size_t>(number) - 1];
}

// The recipe part that the violation points at; "" if it points at no line of a recipe, or at an empty line or a
// comment.
std::string PointsAt(const Plan& plan, const Violation& violation) {
  if (violation.origin < 0 || violation.origin >= static_cast<int>(plan.origins.size())) return "";
  const Origin& origin = plan.origins[static_cast<size_t>(violation.origin)];
  const std::string line = LineOf(origin.file, origin.line);
  const size_t first = line.find_first_not_of(' ');
  return first == std::string::npos || line[first] == '#' || origin.column < 1 ? "" : origin.what;
}

// Numbers of mutants by kind and by the rule that refused them, over all plans of this test.
class RefusalCounts {
 public:
  void Add(const std::string& kind, const std::string& rule) { ++counts_[kind][rule]; }

  void Print() const {
    constexpr const char* kRules[] = {"V1", "V2", "V3", "V4", "V5", "V6", "V7", "V8", "V9", "V10", "V11"};
    std::map<std::string, int> totals;
    std::cout << std::left << std::setw(28) << "mutants refused by" << std::right;
    for (const char* rule : kRules) std::cout << std::setw(6) << rule;
    std::cout << std::setw(7) << "all"
              << "\n";
    for (const auto& [kind, rules] : counts_) PrintRow(kind, rules, kRules, totals);
    std::map<std::string, int> none;
    PrintRow("all", totals, kRules, none);
  }

 private:
  template <size_t n>
  static void PrintRow(const std::string& kind, const std::map<std::string, int>& rules, const char* const (&names)[n],
                       std::map<std::string, int>& totals) {
    std::cout << std::left << std::setw(28) << kind << std::right;
    int all = 0;
    for (const char* name : names) {
      auto it = rules.find(name);
      const int count = it == rules.end() ? 0 : it->second;
      std::cout << std::setw(6) << (count == 0 ? "" : std::to_string(count));
      totals[name] += count;
      all += count;
    }
    std::cout << std::setw(7) << all << "\n";
  }

  std::map<std::string, std::map<std::string, int>> counts_;
};

class MutatedPlan : public ::testing::TestWithParam<Base> {
 protected:
  static void TearDownTestSuite() {
    counts_.Print();
    counts_ = {};
  }
  inline static RefusalCounts counts_;
};

TEST_P(MutatedPlan, IsRefusedByARuleThatTheMutantNames) {
  Diagnostics problems;
  const std::optional<Plan> plan = Compiled(GetParam(), problems);
  ASSERT_TRUE(plan) << problems.sorted().front().message;
  ASSERT_TRUE(VerifyPlan(*plan).empty());
  const std::string sound = PlanDigest(*plan);
  std::set<std::string> known = {sound};
  Plan damaged;  // one for all mutants: a copy into memory that is there already takes half the time
  for (const Mutant& mutant : Sample(AllMutants(*plan), GetParam().most_of_a_kind)) {
    const std::string name = absl::StrCat(mutant.kind, ", ", mutant.where, ",");
    damaged = *plan;
    mutant.inflict(damaged);
    const std::string digest = PlanDigest(damaged);
    EXPECT_NE(digest, sound) << name << " changes nothing";
    if (!known.insert(digest).second) continue;  // another mutant is the same plan
    const std::vector<Violation> found = VerifyPlan(damaged);
    if (found.empty()) {
      ADD_FAILURE() << name << " passes";
      continue;
    }
    const Violation& first = found.front();
    const auto among = [](const std::vector<std::string>& list, const std::string& what) {
      return std::find(list.begin(), list.end(), what) != list.end();
    };
    EXPECT_TRUE(among(mutant.rules, first.rule)) << name << " is refused by " << first.rule << ": " << first.message;
    for (const Violation& violation : found) {
      EXPECT_NE(PointsAt(damaged, violation), "")
          << name << " points at no recipe line: " << violation.rule << " " << violation.message;
    }
    const std::string origin = PointsAt(damaged, first);
    EXPECT_TRUE(mutant.origins.empty() || among(mutant.origins, origin))
        << name << " points at " << origin << ", not at " << absl::StrJoin(mutant.origins, " or ") << ": " << first.rule
        << " " << first.message;
    counts_.Add(mutant.kind, first.rule);
  }
  std::cout << GetParam().name << ": " << known.size() - 1 << " distinct mutants\n";
  EXPECT_GE(known.size(), GetParam().most_of_a_kind < 8 ? 150 : 600);
}

std::string NameOf(const ::testing::TestParamInfo<Base>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Shipped, MutatedPlan, ::testing::ValuesIn(Shipped()), NameOf);
INSTANTIATE_TEST_SUITE_P(Layouts, MutatedPlan, ::testing::ValuesIn(Layouts()), NameOf);

}  // namespace
}  // namespace planwright
