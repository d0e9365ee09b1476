#include "planner/search/candidate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/recipe/model_facts.h"

namespace planwright {
namespace {

ModuleChoice ChoiceOf(const ModuleRecipe& module) {
  ModuleChoice choice{.first_rank = *module.first_rank,
                      .ranks = *module.ranks,
                      .tp = *module.tp,
                      .cp = *module.cp,
                      .pp = *module.pp,
                      .ep = *module.ep,
                      .expert_tp = *module.expert_tp,
                      .dispatch = *module.dispatch,
                      .overlap_dispatch = *module.overlap_dispatch};
  if (module.stage_layers) choice.stage_layers = **module.stage_layers;
  choice.recompute.clear();
  for (const auto& word : module.recompute) choice.recompute.push_back(*word);
  return choice;
}

std::string ListText(const std::vector<std::string>& words) {
  return words.size() == 1 ? words.front() : absl::StrCat("[", absl::StrJoin(words, ", "), "]");
}

}  // namespace

bool Together(const Candidate& candidate) {
  return candidate.modules.size() > 1 && candidate.modules[0].first_rank == candidate.modules[1].first_rank;
}

std::vector<std::array<int64_t, 7>> GridsOf(const Candidate& candidate) {
  std::vector<std::array<int64_t, 7>> grids;
  for (const ModuleChoice& module : candidate.modules) {
    grids.push_back({module.first_rank, module.ranks, module.tp, module.cp, module.pp, module.ep, module.expert_tp});
  }
  return grids;
}

Candidate CandidateOf(const Recipe& recipe) {
  Candidate candidate;
  for (const ModuleRecipe& module : recipe.modules) candidate.modules.push_back(ChoiceOf(module));
  candidate.step = {.micro_samples = *recipe.batch.micro_samples,
                    .buckets = *recipe.gradients.buckets,
                    .overlap_reduce = *recipe.gradients.overlap_reduce,
                    .overlap_gather = *recipe.gradients.overlap_gather};
  return candidate;
}

Recipe WithCandidate(Recipe recipe, const Candidate& candidate) {
  for (size_t m = 0; m < recipe.modules.size(); ++m) {
    ModuleRecipe& module = recipe.modules[m];
    const ModuleChoice& choice = candidate.modules[m];
    module.first_rank.value = choice.first_rank, module.ranks.value = choice.ranks;
    module.tp.value = choice.tp, module.cp.value = choice.cp, module.pp.value = choice.pp;
    module.ep.value = choice.ep, module.expert_tp.value = choice.expert_tp;
    if (module.dp) module.dp->value = choice.ranks / std::max<int64_t>(1, choice.tp * choice.cp * choice.pp);
    module.stage_layers.reset();
    if (!choice.stage_layers.empty()) module.stage_layers = Located(choice.stage_layers);
    module.dispatch.value = choice.dispatch, module.overlap_dispatch.value = choice.overlap_dispatch;
    module.recompute.clear();
    for (const std::string& word : choice.recompute) module.recompute.push_back({word});
  }
  recipe.batch.micro_samples.value = candidate.step.micro_samples;
  recipe.gradients.buckets.value = candidate.step.buckets;
  recipe.gradients.overlap_reduce.value = candidate.step.overlap_reduce;
  recipe.gradients.overlap_gather.value = candidate.step.overlap_gather;
  return recipe;
}

std::vector<std::string> ChangesOf(const Recipe& recipe, const Candidate& candidate) {
  std::vector<std::string> changes;
  const auto change = [&](const std::string& key, const auto& from, const auto& to, const std::string& text) {
    if (from != to) changes.push_back(absl::StrCat(key, "=", text));
  };
  const auto number = [&](const std::string& key, int64_t from, int64_t to) {
    change(key, from, to, absl::StrCat(to));
  };
  const auto flag = [&](const std::string& key, bool from, bool to) { change(key, from, to, to ? "true" : "false"); };
  const Candidate given = CandidateOf(recipe);
  for (size_t m = 0; m < recipe.modules.size(); ++m) {
    const std::string key = absl::StrCat("modules.", *recipe.modules[m].name, ".");
    const ModuleChoice &from = given.modules[m], &to = candidate.modules[m];
    number(key + "placement.first_rank", from.first_rank, to.first_rank);
    number(key + "placement.ranks", from.ranks, to.ranks);
    number(key + "parallel.tp", from.tp, to.tp);
    number(key + "parallel.cp", from.cp, to.cp);
    number(key + "parallel.pp", from.pp, to.pp);
    number(key + "parallel.ep", from.ep, to.ep);
    number(key + "parallel.expert_tp", from.expert_tp, to.expert_tp);
    if (recipe.modules[m].dp) {
      number(key + "parallel.dp", **recipe.modules[m].dp, to.ranks / std::max<int64_t>(1, to.tp * to.cp * to.pp));
    }
    if (!to.stage_layers.empty()) {
      change(key + "parallel.stage_layers", from.stage_layers, to.stage_layers,
             absl::StrCat("[", absl::StrJoin(to.stage_layers, ", "), "]"));
    }
    change(key + "parallel.dispatch", from.dispatch, to.dispatch, to.dispatch);
    flag(key + "parallel.overlap_dispatch", from.overlap_dispatch, to.overlap_dispatch);
    change(key + "recompute", from.recompute, to.recompute, ListText(to.recompute));
  }
  number("batch.micro_samples", given.step.micro_samples, candidate.step.micro_samples);
  number("gradients.buckets", given.step.buckets, candidate.step.buckets);
  flag("gradients.overlap_reduce", given.step.overlap_reduce, candidate.step.overlap_reduce);
  flag("gradients.overlap_gather", given.step.overlap_gather, candidate.step.overlap_gather);
  return changes;
}

std::string LineOf(const Recipe& recipe, const Candidate& candidate) {
  std::string line = Together(candidate) ? absl::StrCat("together on ", candidate.modules[0].ranks, ": ") : "";
  for (size_t m = 0; m < recipe.modules.size(); ++m) {
    const ModuleChoice& choice = candidate.modules[m];
    absl::StrAppend(&line, m == 0 ? "" : "; ", *recipe.modules[m].name);
    if (!Together(candidate)) absl::StrAppend(&line, " ", choice.ranks);
    absl::StrAppend(&line, ": tp ", choice.tp);
    const auto size = [&](const char* axis, int64_t of) {
      if (of > 1) absl::StrAppend(&line, " ", axis, " ", of);
    };
    size("cp", choice.cp);
    absl::StrAppend(&line, " dp ", choice.ranks / std::max<int64_t>(1, choice.tp * choice.cp * choice.pp));
    size("pp", choice.pp), size("ep", choice.ep), size("expert_tp", choice.expert_tp);
    if (!choice.stage_layers.empty()) absl::StrAppend(&line, " stages ", absl::StrJoin(choice.stage_layers, "+"));
    if (choice.dispatch != "auto") absl::StrAppend(&line, " ", choice.dispatch);
    if (choice.overlap_dispatch) absl::StrAppend(&line, " overlapped");
    if (choice.recompute != std::vector<std::string>{"none"})
      absl::StrAppend(&line, " recompute ", absl::StrJoin(choice.recompute, "+"));
  }
  absl::StrAppend(&line, "; micro ", candidate.step.micro_samples, " buckets ", candidate.step.buckets);
  if (!candidate.step.overlap_reduce) absl::StrAppend(&line, " no overlap of reduction");
  if (!candidate.step.overlap_gather) absl::StrAppend(&line, " no overlap of gather");
  return line;
}

}  // namespace planwright
