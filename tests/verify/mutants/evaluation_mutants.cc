// Damage to what a plan says of its evaluations, and what would let an evaluation change the training.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/verify/mutants/mutants.h"

namespace planwright::testing {
namespace {

using std::string;

class EvaluationDamage {
 public:
  EvaluationDamage(const Plan& plan, std::vector<Mutant>& mutants) : plan_(plan), mutants_(mutants) {}

  void Make() {
    DamageSets();
    for (size_t role = 0; role < plan_.roles.size(); ++role) {
      DamageRound(role);
      DamageScore(role);
    }
    for (size_t block = 0; block < plan_.blocks.size(); ++block) {
      if (absl::EndsWith(plan_.blocks[block].name, ".evaluate")) DamageBlock(block);
    }
  }

 private:
  void Add(const char* kind, string where, std::vector<string> rules, std::function<void(Plan&)> inflict) {
    mutants_.push_back({kind, std::move(where), std::move(rules), {}, std::move(inflict)});
  }

  void DamageSets() {
    Add("between_steps", "", {"V8"}, [](Plan& p) { ++p.evaluation.every_samples; });
    Add("best_of_nothing", "", {"V8", "V11"}, [](Plan& p) { p.checkpoint.keep_best = "nothing"; });
    Add("best_without_a_checkpoint", "", {"V8", "V11"}, [](Plan& p) {
      p.checkpoint.keep_best = p.evaluation.sets.front().name;
      p.checkpoint.every_steps = p.evaluation.every_samples / p.budget.global_samples + 1;
    });
    Add("lists_without_sets", "", {"V8", "V11"}, [](Plan& p) { p.evaluation = {}; });
    Add("sets_of_one_name", "", {"V11"}, [](Plan& p) { p.evaluation.sets.push_back(p.evaluation.sets.front()); });
    for (size_t i = 0; i < plan_.evaluation.sets.size(); ++i) {
      const string& where = plan_.evaluation.sets[i].name;
      const auto add = [&](const char* kind, std::vector<string> rules, std::function<void(EvaluationSet&)> change) {
        Add(kind, where, std::move(rules), [i, change](Plan& p) { change(p.evaluation.sets[i]); });
      };
      add("too_few_rounds", {"V8"}, [](EvaluationSet& set) { --set.rounds; });
      add("too_many_rounds", {"V8"}, [](EvaluationSet& set) { ++set.rounds; });
      add("no_samples", {"V8", "V11"}, [](EvaluationSet& set) { set.samples = 0; });
      add("balanced_set", {"V11"}, [](EvaluationSet& set) { set.data.balance = "images"; });
      add("set_of_another_vocabulary", {"V11"}, [](EvaluationSet& set) { ++set.data.vocabulary; });
      add("set_of_other_images", {"V11"}, [](EvaluationSet& set) { ++set.data.max_patches; });
      add("set_of_another_packing", {"V11"},
          [](EvaluationSet& set) { set.data.packed_documents = !set.data.packed_documents; });
      if (!plan_.evaluation.sets[i].data.encoders.empty())
        add("set_without_an_encoder", {"V11"}, [](EvaluationSet& set) { set.data.encoders.pop_back(); });
    }
  }

  // A role that trains while it evaluates, or the other way round.
  void DamageRound(size_t role) {
    const Role& here = plan_.roles[role];
    for (size_t i = 0; i < here.evaluate.size(); ++i) {
      if (here.evaluate[i].kind != OpKind::kCall) continue;
      const string where = absl::StrCat(here.name, " ", i, " ", here.evaluate[i].block);
      Add("evaluates_by_the_forward_of_a_step", where, {"V4", "V5"}, [role, i](Plan& p) {
        string& block = p.roles[role].evaluate[i].block;
        block = block.substr(0, block.rfind('.')) + ".forward";
      });
    }
    for (size_t i = 0; i < here.step.size(); ++i) {
      if (here.step[i].kind != OpKind::kCall || !absl::EndsWith(here.step[i].block, ".forward")) continue;
      Add("trains_by_the_forward_of_an_evaluation", absl::StrCat(here.name, " ", i), {"V4", "V5"}, [role, i](Plan& p) {
        string& block = p.roles[role].step[i].block;
        block = block.substr(0, block.rfind('.')) + ".evaluate";
      });
    }
    Add("evaluates_nothing", here.name, {"V3", "V4", "V5"}, [role](Plan& p) { p.roles[role].evaluate.clear(); });
    Add("evaluates_by_its_step", here.name, {"V4", "V5", "V7"},
        [role](Plan& p) { p.roles[role].evaluate = p.roles[role].step; });
  }

  void DamageScore(size_t role) {
    const Role& here = plan_.roles[role];
    Add("scores_nothing", here.name, {"V5", "V7"}, [role](Plan& p) { p.roles[role].score.clear(); });
    for (size_t i = 0; i < here.score.size(); ++i) {
      const string where = absl::StrCat(here.name, " ", i, " ", string(OpName(here.score[i].kind)));
      Add("drop_score", where, {"V5", "V7"}, [role, i](Plan& p) {
        p.roles[role].score.erase(p.roles[role].score.begin() + static_cast<std::ptrdiff_t>(i));
      });
      Add("score_in_each_round", where, {"V4", "V7"},
          [role, i](Plan& p) { p.roles[role].evaluate.push_back(p.roles[role].score[i]); });
      Add("score_in_each_step", where, {"V4", "V7"},
          [role, i](Plan& p) { p.roles[role].step.push_back(p.roles[role].score[i]); });
      if (here.score[i].kind != OpKind::kAllReduce) continue;
      Add("score_by_another_reduction", where, {"V5"},
          [role, i](Plan& p) { p.roles[role].score[i].attributes["reduce"] = string("max"); });
      Add("score_behind_its_record", where, {"V7"},
          [role, i](Plan& p) { std::swap(p.roles[role].score[i], p.roles[role].score.back()); });
      for (const Group& group : plan_.groups) {
        if (!group.used() || group.name == here.score[i].group) continue;
        Add("score_over_another_group", where + " " + group.name, {"V5"},
            [role, i, name = group.name](Plan& p) { p.roles[role].score[i].group = name; });
      }
    }
  }

  // What blocks of an evaluation may not do. (What they compute is damaged in block_mutants.cc.)
  void DamageBlock(size_t block) {
    const Block& here = plan_.blocks[block];
    const auto add = [&](const char* kind, const string& where, std::vector<string> rules,
                         std::function<void(Block&)> change) {
      Add(kind, absl::StrCat(here.name, " ", where), std::move(rules),
          [block, change](Plan& p) { change(p.blocks[block]); });
    };
    for (size_t i = 0; i < here.body.size(); ++i) {
      const Instruction& op = here.body[i];
      const string where = absl::StrCat(i, " ", string(OpName(op.kind)));
      if (op.kind == OpKind::kPositionAndClass)
        add("crops_in_an_evaluation", where, {"V4"}, [i](Block& b) { b.body[i].attributes["crop"] = int64_t{1}; });
      for (size_t k = 0; k < op.outputs.size(); ++k) {
        add("evaluation_declares_a_gradient", absl::StrCat(where, " ", op.outputs[k].name), {"V4", "V5"},
            [i, k](Block& b) { b.body[i].outputs[k].type.gradient = b.body[i].outputs[k].type.layout; });
      }
      if (!op.parameters.empty()) {
        add("evaluation_adds_to_a_gradient", where, {"V4", "V5", "V7"},
            [i](Block& b) { b.body[i].gradients = b.body[i].parameters; });
      }
      if (op.kind == OpKind::kRoute) {
        add("evaluation_counts_experts", where, {"V5", "V6"}, [i](Block& b) {
          Instruction count{.kind = OpKind::kAccumulateCounts, .inputs = {b.body[i].outputs[2].name}};
          b.body.insert(b.body.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::move(count));
        });
      }
      if (op.kind == OpKind::kTokenLoss) {
        add("evaluation_adds_to_the_loss_of_a_step", where, {"V5", "V6"}, [i](Block& b) {
          const string loss = b.body[i].outputs[1].name;
          Instruction sum{.kind = OpKind::kAccumulate, .inputs = {loss}, .frees = {loss}};
          std::erase(b.body[i].frees, loss);
          sum.attributes["into"] = string("$reals.loss");
          b.body.insert(b.body.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::move(sum));
        });
      }
    }
    if (!here.body.empty() && !here.body.front().outputs.empty() && here.body.front().kind != OpKind::kCall) {
      add("evaluation_keeps_a_value", "", {"V4"}, [](Block& b) {
        const string& kept = b.body.front().outputs.front().name;
        for (Instruction& op : b.body) std::erase(op.frees, kept);
        b.saved.push_back(kept);
      });
    }
  }

  const Plan& plan_;
  std::vector<Mutant>& mutants_;
};

}  // namespace

std::vector<Mutant> EvaluationMutants(const Plan& plan) {
  std::vector<Mutant> mutants;
  if (!plan.evaluation.empty()) EvaluationDamage(plan, mutants).Make();
  return mutants;
}

}  // namespace planwright::testing
