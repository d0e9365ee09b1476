#include "planner/search/piece_costs.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "absl/strings/match.h"
#include "planner/compile/compile.h"
#include "planner/plan/shard_map.h"
#include "planner/recipe/model_facts.h"
#include "planner/search/pass_reader.h"

namespace planwright {
namespace {

constexpr std::string_view kKeeps = "none", kRepeats = "full";

PieceCost* PieceOf(const Module& module, const std::string& frame, ModuleCosts& costs) {
  if (frame == module.name + ".embed") return &costs.embed;
  if (frame == module.name + ".head") return &costs.head;
  for (const LayerSummary& layer : module.layers) {
    if (layer.frame == frame) return &costs.layers[layer.kind];
  }
  return nullptr;
}

void AddWeights(const Plan& plan, const Module& module, ModuleCosts& costs) {
  for (const Storage& storage : module.storages) {
    PieceCost* piece = PieceOf(module, storage.frame, costs);
    if (!piece) continue;
    const int64_t elements = ElementsOf(storage.shape);
    if (storage.bucket >= 0) {
      const Bucket& bucket = module.buckets[static_cast<size_t>(storage.bucket)];
      piece->trained[{bucket.view, bucket.tp}] += elements;
    } else {
      const bool buffer = module.parameters[static_cast<size_t>(storage.parameters.front())].buffer;
      piece->untrained += elements * DTypeBytes(buffer ? plan.master() : plan.dtype());
    }
  }
}

// Moves all modules, so that ranks lie in nodes as those of the stage do.
void Move(int64_t ranks, Plan& plan) {
  for (Module& module : plan.modules) module.grid.first_rank += static_cast<int>(ranks);
  for (Role& role : plan.roles) {
    for (RankRange& range : role.ranks) range.first += static_cast<int>(ranks);
  }
  for (Bridge& bridge : plan.bridges) {
    for (auto* table : {&bridge.forward, &bridge.backward}) {
      for (Transfer& transfer : *table)
        transfer.from_rank += static_cast<int>(ranks), transfer.to_rank += static_cast<int>(ranks);
    }
  }
}

std::unique_ptr<ModuleCosts> CostsOf(Plan& plan, size_t of, int64_t first_rank, const Rates& rates) {
  Move(first_rank, plan);
  auto made = std::make_unique<ModuleCosts>();
  const Module& module = plan.modules[of];
  const auto role = std::find_if(plan.roles.begin(), plan.roles.end(), [&](const Role& candidate) {
    return candidate.modules.front() == module.name && candidate.ranks.front().first >= 0;
  });
  if (role == plan.roles.end()) return nullptr;
  LinkedBlocks blocks(plan);
  InstructionCosts costs(blocks);
  CommunicationUses uses(plan);
  const std::vector<RankClass> classes = ClassesOf(plan);
  const auto ranks = std::find_if(classes.begin(), classes.end(), [&](const RankClass& candidate) {
    return candidate.role == static_cast<int>(role - plan.roles.begin());
  });
  if (ranks == classes.end()) return nullptr;
  const LinkedProgram program(blocks, *role);
  costs.Add(program.step_list());
  InstructionTimes times(program, costs, rates, uses, *ranks);
  const HostModel host = HostModelOf(plan);
  for (const ReadPass& read : ReadPasses(program, costs, times, rates, host)) {
    PieceCost* piece = PieceOf(module, read.frame, *made);
    if (!piece) continue;
    if (read.backward) {
      piece->backward = read.pass;
    } else {
      piece->forward = read.pass, piece->out = read.out;
    }
    piece->products += read.products;
  }
  for (const Group& group : plan.groups) {
    if (group.module == module.name && module.grid.size(group.axes) > 1)
      made->communicators += static_cast<int64_t>(group.streams.size());
  }
  AddWeights(plan, module, *made);
  return made;
}

constexpr int64_t kManyNodes = 1 << 14;

// One layer of each kind of the model, in the order in which they first come.
std::string KindsOnce(const ModelRecipe& model) {
  const std::string pattern = *model.pattern;
  std::string kinds;
  for (char letter : pattern) {
    if (letter != '|' && letter != '/' && kinds.find(letter) == std::string::npos) kinds += letter;
  }
  return kinds;
}

// One layer, and behind it one that takes or gives features of inner layers, where the model has such: both ends of a
// bridge have as many.
std::string ShortestPattern(const ModelRecipe& model) {
  const std::string kinds = KindsOnce(model);
  const char taps = StatementOfModel(model).TapLetter();
  return kinds.substr(0, 1) + (taps != 0 && kinds.find(taps) != std::string::npos ? std::string(1, taps) : "");
}

// The recipe of a plan from which the costs of one module's parts are read: one stage of module `of` with one layer of
// each kind, on as few ranks as its axes need, from rank 0 on. Every other module has the fewest, behind it, on as many
// ranks of dp as make one microbatch with `samples` on each of its lanes. `recompute`: the word for all its layers,
// none, full or elementwise.
Recipe MiniRecipe(const TunedRecipe& tuned, size_t of, const ModuleChoice& choice, std::string_view recompute,
                  int64_t samples) {
  Candidate candidate = CandidateOf(tuned.recipe);
  int64_t ranks = std::lcm(choice.tp * choice.cp, choice.expert_tp * choice.ep);
  const int64_t lanes = ranks / (choice.tp * choice.cp);
  for (size_t m = 0; m < candidate.modules.size(); ++m) {
    ModuleChoice& module = candidate.modules[m];
    if (m == of) {
      module = choice;
      module.first_rank = 0, module.ranks = ranks, module.pp = 1;
      module.recompute = {std::string(recompute)};
    } else {
      module = ModuleChoice{};
    }
    module.stage_layers.clear();
  }
  const bool language = CarriesLoss(tuned.recipe.modules[of].model);
  int64_t first = ranks;
  for (size_t m = 0; m < candidate.modules.size(); ++m) {
    if (m == of) continue;
    ModuleChoice& module = candidate.modules[m];
    // The language model has a lane for each sample of an encoder's lane.
    module.ranks = !language && CarriesLoss(tuned.recipe.modules[m].model) ? samples * lanes : 1;
    module.first_rank = first;
    first += module.ranks;
  }
  candidate.step = {
      .micro_samples = language ? samples : 1, .buckets = 1, .overlap_reduce = false, .overlap_gather = false};
  Recipe recipe = WithCandidate(tuned.recipe, candidate);
  for (size_t m = 0; m < recipe.modules.size(); ++m) {
    ModuleRecipe& module = recipe.modules[m];
    module.first_stage_layers.reset(), module.last_stage_layers.reset();
    module.model.pattern.value = m == of ? KindsOnce(module.model) : ShortestPattern(module.model);
  }
  recipe.batch.global_samples.value = samples * lanes;
  recipe.cluster.nodes.value = kManyNodes;
  recipe.initialize.reset();
  recipe.checkpoint = {};
  return recipe;
}

// The cluster for it: with room for every rank, and without figures that refuse a plan.
Cluster MiniCluster(const TunedRecipe& tuned) {
  Cluster cluster = tuned.cluster;
  cluster.nodes = static_cast<int>(kManyNodes);
  cluster.host_memory = 0;
  cluster.profile = {};
  return cluster;
}

}  // namespace

const ModuleCosts* PieceCosts::Find(size_t module, const ModuleChoice& choice, std::string_view recompute,
                                    int64_t samples, int64_t first_rank) {
  const Key key = {module,     choice.tp,        choice.cp,
                   choice.ep,  choice.expert_tp, samples,
                   first_rank, choice.dispatch,  choice.overlap_dispatch,
                   recompute};
  const auto [at, is_new] = found_.try_emplace(key);
  if (!is_new) return at->second.get();
  ++plans_;
  Diagnostics problems;
  std::optional<Plan> plan =
      MakePlan(MiniRecipe(tuned_, module, choice, recompute, samples), MiniCluster(tuned_), problems);
  if (plan && !problems.has_errors()) at->second = CostsOf(*plan, module, first_rank, rates_);
  return at->second.get();
}

const ModuleCosts* PieceCosts::Of(size_t module, const ModuleChoice& choice, int64_t samples, int64_t first_rank) {
  // Where no group leaves the node, ranks lie in it alike.
  if (first_rank + std::lcm(choice.tp * choice.cp, choice.expert_tp * choice.ep) <= tuned_.cluster.gpus_per_node)
    first_rank = 0;
  const std::vector<std::string>& words = choice.recompute;
  const auto named = [&](std::string_view word) { return std::find(words.begin(), words.end(), word) != words.end(); };
  const std::string_view others = named(kElementwise) ? kElementwise : kKeeps;
  if (words.size() == 1 && words.front() == kRepeats) return Find(module, choice, kRepeats, samples, first_rank);
  const ModuleCosts* kept = Find(module, choice, others, samples, first_rank);
  if (words.size() == 1 && (named(kKeeps) || named(kElementwise))) return kept;
  const ModuleCosts* again = Find(module, choice, kRepeats, samples, first_rank);
  if (!kept || !again) return nullptr;
  const Key key = {module,     choice.tp,        choice.cp,
                   choice.ep,  choice.expert_tp, samples,
                   first_rank, choice.dispatch,  choice.overlap_dispatch,
                   others};
  const auto [at, is_new] = mixed_.try_emplace({key, words});
  if (!is_new) return at->second.get();
  at->second = std::make_unique<ModuleCosts>(*kept);
  const ModelStatement& statement = StatementOfModel(tuned_.recipe.modules[module].model);
  for (auto& [letter, piece] : at->second->layers) {
    if (named(statement.FindLayer(letter)->word)) piece = again->layers.at(letter);
  }
  return at->second.get();
}

}  // namespace planwright
