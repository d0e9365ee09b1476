#include "planner/search/quick_step.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "planner/compile/model/stage_split.h"
#include "planner/plan/optimizer_states.h"
#include "planner/plan/precision.h"
#include "planner/predict/estimate/memory.h"
#include "planner/recipe/model_facts.h"

namespace planwright {
namespace {

// Where the members of a communication are (predict/estimate/communication_uses.h).
CommunicationUse UseOver(const std::vector<int>& ranks, int gpus, OpKind kind, double bytes) {
  CommunicationUse use{
      .kind = kind, .bytes = bytes, .members = static_cast<int>(ranks.size()), .per_node = 0, .nodes = 0};
  int node = -1, here = 0;
  for (int rank : ranks) {
    if (rank / gpus != node) node = rank / gpus, here = 0, ++use.nodes;
    use.per_node = std::max(use.per_node, ++here);
  }
  return use;
}

}  // namespace

QuickSteps::QuickSteps(const TunedRecipe& tuned, const Rates& rates)
    : tuned_(tuned), rates_(rates), pieces_(tuned, rates), limit_(DeviceOf(tuned.cluster).memory - tuned.margin),
      node_(std::max(1, tuned.cluster.gpus_per_node)), measured_(tuned.cluster.profile.measured()),
      feeds_(tuned.recipe.modules.size(), false) {
  for (size_t m = 0; m < tuned.recipe.modules.size(); ++m) {
    const ModuleRecipe& module = tuned.recipe.modules[m];
    std::string& letters = letters_.emplace_back(*module.model.pattern);
    std::erase_if(letters, [](char letter) { return letter == '|' || letter == '/'; });
    if (CarriesLoss(module.model)) language_ = m;
    for (const BridgeRecipe& bridge : tuned.recipe.bridges) {
      if (*bridge.from == *module.name) feeds_[m] = true;
    }
  }
}

double QuickSteps::ExchangeSeconds(int64_t bytes, bool leaves_node) const {
  if (measured_) return 0;
  return rates_
      .Communication({.kind = OpKind::kExchange,
                      .bytes = static_cast<double>(bytes),
                      .members = 2,
                      .per_node = leaves_node ? 1 : 2,
                      .nodes = leaves_node ? 2 : 1})
      .seconds;
}

// Buckets are counted as one for each class, without padding: more of them take longer. What the begin of a step clears
// of them is little, as products write most gradients first (planner/plan/link/first_additions.h), and is not counted.
void QuickSteps::AddStates(const Grid& grid, int rank, const std::map<GradientClass, int64_t>& trained,
                           StageCost& stage) const {
  const DType dtype = DTypeOf(*tuned_.recipe.precision), master = MasterOf(dtype);
  const auto wide = static_cast<double>(DTypeBytes(master)), narrow = static_cast<double>(DTypeBytes(dtype));
  const auto states = static_cast<int64_t>(HeldStates(tuned_.recipe.optimizer, dtype, master).size());
  const auto compute = [&](OpKind kind, double bytes) {
    return rates_.Compute({.kind = kind, .bytes = bytes, .dtype = dtype}).seconds;
  };
  for (const auto& [kind, elements] : trained) {
    const bool expert = kind.view == View::kExpert;
    const int shards = expert ? grid.expert_dp : grid.dp * grid.cp;
    const int64_t shard = elements / shards;
    stage.states += elements * (DTypeBytes(dtype) + DTypeBytes(master)) + shard * states * DTypeBytes(master);
    if (shards > 1) stage.states += shard * DTypeBytes(master);
    if (measured_) continue;
    const auto all = static_cast<double>(elements), own = all / shards;
    // GPUs scale what the next two read, on the way.
    if (tuned_.cluster.gpu == "none") stage.scale += compute(OpKind::kScaleGradients, 2 * wide * own);
    stage.scale += compute(OpKind::kSquareNorm, wide * own);
    stage.step += compute(OpKind::kAdamW, (7 * wide + narrow) * own);
    if (shards > 1) {
      const std::vector<int> ranks = GroupOf(
          grid, kind.view, expert ? std::vector<Axis>{Axis::kExpertDp} : std::vector<Axis>{Axis::kCp, Axis::kDp}, rank);
      stage.reduce += rates_.Communication(UseOver(ranks, node_, OpKind::kReduceScatter, wide * all)).seconds;
      stage.gather += rates_.Communication(UseOver(ranks, node_, OpKind::kAllGather, narrow * all)).seconds;
    }
    if (kind.tp == TpGradient::kPartial && grid.tp > 1) {
      const std::vector<int> ranks = GroupOf(grid, View::kDense, {Axis::kTp}, rank);
      stage.reduce += rates_.Communication(UseOver(ranks, node_, OpKind::kAllReduce, wide * own)).seconds;
    }
  }
}

const std::vector<int>& QuickSteps::SplitOf(size_t m, const ModuleChoice& choice) {
  const auto [at, is_new] = splits_.try_emplace({m, choice.pp, choice.stage_layers});
  if (!is_new) return at->second;
  ModuleRecipe module = tuned_.recipe.modules[m];
  module.pp.value = choice.pp;
  module.stage_layers.reset();
  if (!choice.stage_layers.empty()) module.stage_layers = Located(choice.stage_layers);
  Diagnostics problems;
  const std::optional<LayerPattern> pattern = PatternOfLayers(module.model, problems);
  const auto stage_of = pattern ? StagesOfLayers(module, *pattern, problems) : std::nullopt;
  if (stage_of && stage_of->size() == letters_[m].size()) at->second = *stage_of;
  return at->second;
}

Grid QuickSteps::GridOf(const ModuleChoice& choice) const {
  const auto size = [](int64_t of) { return static_cast<int>(of); };
  return {.first_rank = size(choice.first_rank),
          .tp = size(choice.tp),
          .cp = size(choice.cp),
          .dp = size(choice.ranks / (choice.tp * choice.cp * choice.pp)),
          .pp = size(choice.pp),
          .expert_tp = size(choice.expert_tp),
          .ep = size(choice.ep),
          .expert_dp = size(choice.ranks / (choice.expert_tp * choice.ep * choice.pp))};
}

ModuleStages QuickSteps::StagesOf(size_t m, const ModuleChoice& choice, int64_t samples) {
  ModuleStages made;
  const std::vector<int>& stage_of = SplitOf(m, choice);
  const std::string& letters = letters_[m];
  if (stage_of.empty()) return made;
  const Grid grid = GridOf(choice);
  const int ranks_of_stage = grid.tp * grid.cp * grid.dp;
  double scale = 0, step = 0;
  for (int s = 0; s < grid.pp; ++s) {
    const int first = grid.first_rank + s * ranks_of_stage;
    const ModuleCosts* costs = pieces_.Of(m, choice, samples, first % node_);
    if (!costs) return made;
    std::vector<const PieceCost*> pieces;
    if (s == 0) pieces.push_back(&costs->embed);
    for (size_t layer = 0; layer < letters.size(); ++layer) {
      if (stage_of[layer] == s) pieces.push_back(&costs->layers.at(letters[layer]));
    }
    if (s + 1 == grid.pp) pieces.push_back(&costs->head);
    StageCost& stage = made.stages.emplace_back();
    stage.shared = 3 * costs->embed.out;
    std::map<GradientClass, int64_t> trained;
    for (const PieceCost* piece : pieces) {
      stage.forward = stage.forward.Then(piece->forward);
      stage.out = piece->out;
      for (const auto& [kind, elements] : piece->trained) trained[kind] += elements;
      stage.states += piece->untrained;
    }
    stage.kept = std::max<int64_t>(0, stage.forward.delta - stage.out);
    for (size_t i = pieces.size(); i-- > 0 && pieces[i]->backward;)
      stage.backward = stage.backward ? stage.backward->Then(*pieces[i]->backward) : *pieces[i]->backward;
    AddStates(grid, first, trained, stage);
    if (limit_ > 0) stage.states += costs->communicators * kCommunicatorBytes;
    // Rows of an encoder are counted as memory is planned for them, and there are fewer on average.
    if (s + 1 < grid.pp) {
      stage.send = ExchangeSeconds(m == language_ ? stage.out : 0, first / node_ != (first + ranks_of_stage) / node_);
    }
    const double once = stage.forward.main_main + (stage.backward ? stage.backward->main_main : 0);
    made.microbatch = std::max(made.microbatch, once);
    scale = std::max(scale, stage.scale), step = std::max(step, stage.step);
    int64_t peak = stage.forward.peak;
    if (stage.backward) peak = std::max(peak, stage.kept + stage.backward->peak);
    peak = std::max<int64_t>(0, peak - stage.shared);
    made.memory = std::max(made.memory, stage.states + peak + (limit_ > 0 ? kContextBytes : 0));
  }
  made.rest = scale + step;
  made.known = true;
  return made;
}

namespace {

// One role of a step: it goes through its forwards and backwards, and its clocks with it.
struct StageRunner {
  const StageCost* cost = nullptr;
  size_t module = 0;
  int stage = 0, warmup = 0;
  int64_t forwards = 0, backwards = 0;  // done
  RankClocks clocks;
  double last_backward = 0;               // when the last one began
  std::vector<double> forward, backward;  // when each microbatch was done
};

struct Tail {
  double reduced = 0, scale = 0, step = 0;

  // What the end of a step takes on a rank whose main stream comes to it at `main`.
  void Add(const StageCost& cost, double main, double last_backward, const StepChoice& choice, double beside) {
    double end = main + (choice.overlap_reduce ? 0 : cost.reduce);
    if (choice.overlap_reduce && cost.backward && beside < 1)
      end = std::max(end, last_backward + (cost.backward->work + cost.reduce) / (1 + beside));
    reduced = std::max(reduced, end);
    scale = std::max(scale, cost.scale);
    double stepped = std::max(cost.step, cost.gather);
    if (beside < 1) stepped = std::max(stepped, (cost.step + cost.gather) / (1 + beside));
    step = std::max(step, choice.overlap_gather ? stepped : cost.step + cost.gather);
  }
  // All ranks sum over the world before they scale, and before they step.
  double End() const { return reduced + scale + step; }
};

}  // namespace

QuickStep QuickSteps::Time(const std::vector<const ModuleStages*>& modules, bool together, int64_t microbatches,
                           const StepChoice& choice) const {
  QuickStep quick;
  if (std::any_of(modules.begin(), modules.end(), [](const ModuleStages* module) { return !module->known; }))
    return quick;
  const int64_t context = limit_ > 0 ? kContextBytes : 0,
                world = limit_ > 0 && (modules.size() > 1 && !together) ? kCommunicatorBytes : 0;
  const double beside = rates_.MostBeside();
  Tail tail;
  if (together) {
    StageCost all;
    Pass forward, backward;
    bool learns = false;
    int64_t kept = 0, peak = 0;
    const auto each = [&](bool language_first, const auto& visit) {
      for (bool language : {language_first, !language_first}) {
        for (size_t i = 0; i < modules.size(); ++i) {
          if ((i == language_) == language) visit(modules[i]->stages.front());
        }
      }
    };
    // Encoders, the language model, and back: each module's values are kept until its backward.
    each(false, [&](const StageCost& cost) {
      all.shared += cost.shared;
      all.states += cost.states, all.reduce += cost.reduce;
      all.scale += cost.scale, all.step += cost.step, all.gather += cost.gather;
      forward = forward.Then(cost.forward);
      peak = std::max(peak, kept + cost.forward.peak);
      kept += cost.kept;
    });
    each(true, [&](const StageCost& cost) {
      if (!cost.backward) return;
      learns = true;
      backward = backward.Then(*cost.backward);
      peak = std::max(peak, kept + cost.backward->peak);
      kept -= cost.kept;
    });
    RankClocks clocks;
    double last_backward = 0;
    for (int64_t i = 0; i < microbatches; ++i) {
      clocks = forward.After(clocks);
      last_backward = clocks.main;
      clocks = backward.After(clocks);
    }
    if (learns) all.backward = backward;
    tail.Add(all, clocks.main, last_backward, choice, beside);
    return {tail.End(), all.states + std::max<int64_t>(0, peak - all.shared) + context + world};
  }
  int first_language = 0, total = 0;
  for (size_t i = 0; i < modules.size(); ++i) {
    if (i != language_ && feeds_[i])
      first_language = std::max(first_language, static_cast<int>(modules[i]->stages.size()));
  }
  for (size_t i = 0; i < modules.size(); ++i)
    total = std::max(total, (i == language_ ? first_language : 0) + static_cast<int>(modules[i]->stages.size()));
  std::vector<StageRunner> runners;
  std::vector<size_t> first(modules.size());
  for (size_t i = 0; i < modules.size(); ++i) {
    first[i] = runners.size();
    for (size_t s = 0; s < modules[i]->stages.size(); ++s) {
      StageRunner& runner = runners.emplace_back();
      runner.cost = &modules[i]->stages[s], runner.module = i, runner.stage = static_cast<int>(s);
      const int stage = (i == language_ ? first_language : 0) + static_cast<int>(s);
      runner.warmup = static_cast<int>(std::min<int64_t>(total - stage - 1, microbatches));
      int64_t peak = runner.cost->forward.peak;
      const int64_t flying = runner.cost->backward ? std::min<int64_t>(runner.warmup + 1, microbatches) : 1;
      if (runner.cost->backward) peak = std::max(peak, runner.cost->kept + runner.cost->backward->peak);
      peak = std::max<int64_t>(0, peak + (flying - 1) * runner.cost->kept - runner.cost->shared);
      quick.memory = std::max(quick.memory, runner.cost->states + peak + context + world);
    }
  }
  const double bridged = ExchangeSeconds(0, false);
  const auto done = [&](const std::vector<double>& times, int64_t index) {
    return index < static_cast<int64_t>(times.size()) ? times[static_cast<size_t>(index)] : -1;
  };
  // When the value that an action needs has come; below 0: not yet. `waits`: whether it needs one at all.
  const auto forward_ready = [&](const StageRunner& runner, bool& waits) -> double {
    const size_t at = first[runner.module] + static_cast<size_t>(runner.stage);
    if (runner.stage > 0) {
      waits = true;
      const double ready = done(runners[at - 1].forward, runner.forwards);
      return ready < 0 ? -1 : ready;
    }
    if (runner.module != language_) return 0;
    double latest = 0;
    for (size_t i = 0; i < modules.size(); ++i) {
      if (i == language_ || !feeds_[i]) continue;
      waits = true;
      const double ready = done(runners[first[i] + modules[i]->stages.size() - 1].forward, runner.forwards);
      if (ready < 0) return -1;
      latest = std::max(latest, ready);
    }
    return latest;
  };
  const auto backward_ready = [&](const StageRunner& runner, bool& waits) -> double {
    const size_t at = first[runner.module] + static_cast<size_t>(runner.stage);
    if (static_cast<size_t>(runner.stage) + 1 < modules[runner.module]->stages.size()) {
      waits = true;
      return done(runners[at + 1].backward, runner.backwards);
    }
    if (runner.module == language_ || !feeds_[runner.module]) return 0;
    waits = true;
    return done(runners[first[language_]].backward, runner.backwards);
  };
  // What each action receives takes its stage this long, once it is there.
  const auto receive = [&](const StageRunner& runner, bool forward) {
    const size_t at = first[runner.module] + static_cast<size_t>(runner.stage);
    if (forward) return runner.stage > 0 ? runners[at - 1].cost->send : bridged;
    return static_cast<size_t>(runner.stage) + 1 < modules[runner.module]->stages.size() ? runner.cost->send : bridged;
  };
  bool moved = true;
  while (moved) {
    moved = false;
    for (StageRunner& runner : runners) {
      for (;;) {
        const bool has_backward = runner.cost->backward.has_value();
        const bool forward = runner.forwards < microbatches && (!has_backward || runner.forwards < runner.warmup ||
                                                                runner.forwards - runner.warmup <= runner.backwards);
        if (!forward && (!has_backward || runner.backwards == microbatches)) break;
        bool waits = false;
        const double ready = forward ? forward_ready(runner, waits) : backward_ready(runner, waits);
        if (ready < 0) break;
        if (waits) {
          runner.clocks.main = std::max(runner.clocks.main, ready) + receive(runner, forward);
          if (tuned_.cluster.gpu == "none") runner.clocks.host = std::max(runner.clocks.host, runner.clocks.main);
        }
        if (!forward && runner.backwards + 1 == microbatches) runner.last_backward = runner.clocks.main;
        runner.clocks = (forward ? runner.cost->forward : *runner.cost->backward).After(runner.clocks);
        (forward ? runner.forward : runner.backward).push_back(runner.clocks.main);
        ++(forward ? runner.forwards : runner.backwards);
        moved = true;
      }
    }
  }
  for (const StageRunner& runner : runners)
    tail.Add(*runner.cost, runner.clocks.main, runner.last_backward, choice, beside);
  quick.seconds = tail.End();
  return quick;
}

QuickStep QuickSteps::TimeAlone(const ModuleStages& language, bool together, int64_t microbatches,
                                const std::vector<ModuleStages>& others) const {
  ModuleStages nothing;
  nothing.known = true;
  nothing.stages.resize(1);
  std::vector<const ModuleStages*> modules(feeds_.size(), &nothing);
  for (size_t m = 0; m < others.size(); ++m) modules[m] = &others[m];
  modules[language_] = &language;
  return Time(modules, together, microbatches, {});
}

ModuleStages QuickSteps::AtLeast(const std::vector<const ModuleStages*>& options) {
  constexpr double kMostStages = 64;
  double fill = options.empty() ? 0 : std::numeric_limits<double>::infinity(), slowest = fill;
  for (const ModuleStages* option : options) {
    double all = 0, most = 0;
    for (const StageCost& stage : option->stages) {
      all += stage.forward.main_main;
      most = std::max(most, stage.forward.main_main);
    }
    fill = std::min(fill, all), slowest = std::min(slowest, most);
  }
  // So many that each takes no longer than the slowest stage of any option.
  const double stages = slowest > 0 ? std::ceil(fill / slowest) : 1;
  ModuleStages least;
  least.known = true;
  if (stages > kMostStages) fill = 0;
  least.stages.resize(stages > kMostStages ? 1 : static_cast<size_t>(stages));
  for (StageCost& stage : least.stages) stage.forward.main_main = fill / static_cast<double>(least.stages.size());
  return least;
}

QuickStep QuickSteps::TimeCandidate(const Candidate& candidate, int64_t microbatches) {
  const auto lanes = [](const ModuleChoice& choice) { return choice.ranks / (choice.tp * choice.cp * choice.pp); };
  const int64_t block = candidate.step.micro_samples * lanes(candidate.modules[language_]);
  std::vector<ModuleStages> stages;
  for (size_t m = 0; m < candidate.modules.size(); ++m) {
    const int64_t its = lanes(candidate.modules[m]);
    stages.push_back(StagesOf(m, candidate.modules[m], (block + its - 1) / its));
  }
  std::vector<const ModuleStages*> modules;
  for (const ModuleStages& module : stages) modules.push_back(&module);
  return Time(modules, Together(candidate), microbatches, candidate.step);
}

}  // namespace planwright
