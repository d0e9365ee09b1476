#include "planner/compile/schedule/programs/lower_programs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/bug.h"
#include "planner/compile/schedule/programs/module_symbols.h"
#include "planner/compile/schedule/programs/program_builder.h"
#include "planner/compile/schedule/programs/program_length.h"
#include "planner/compile/schedule/programs/program_values.h"
#include "planner/plan/statement/expert_counts.h"

namespace planwright {
namespace {

using std::string;

// Appends the run-time sizes of the module to `symbols`.
LoweredModule LowerModule(const ProgramInputs& inputs, const Module& module, ModuleBlocks blocks,
                          const Overlap& overlap, std::vector<Symbol>& symbols) {
  LoweredModule lowered = {.module = &module, .blocks = std::move(blocks)};
  for (const Bridge& bridge : inputs.bridges) {
    if (bridge.from == module.name || bridge.to == module.name) lowered.bridges.push_back(&bridge);
  }
  for (Symbol& symbol : SymbolsOf(inputs, module)) symbols.push_back(std::move(symbol));
  for (int stage = 0; stage < module.grid.pp; ++stage)
    lowered.stages.push_back(LowerStage(module, lowered.blocks, stage, overlap.reduce));
  return lowered;
}

// Blocks that are called before blocks that call them: embedding, layers, head, stages.
void AddBlocks(const LoweredModule& lowered, std::vector<Block>& blocks) {
  const auto add = [&](const std::optional<Block>& block) {
    if (block) blocks.push_back(*block);
  };
  const auto add_layer = [&](const LayerBlocks& layer) {
    blocks.push_back(layer.forward);
    add(layer.recompute);
    add(layer.backward);
    add(layer.evaluate);
  };
  add_layer(lowered.blocks.embedding);
  for (const auto& [kind, layer] : lowered.blocks.layers) add_layer(layer);
  for (const LayerBlocks& tap : lowered.blocks.taps) add_layer(tap);
  add_layer(lowered.blocks.head);
  for (const StageBlocks& stage : lowered.stages) {
    blocks.push_back(stage.forward);
    add(stage.backward);
    add(stage.last_backward);
    add(stage.evaluate);
  }
}

// What a step adds up: counts as integers, losses and square norms in fp64, and how often each expert was chosen.
// For each encoder whose rows cross a bridge there are their square sum and number of elements. With checkpoints there
// is how many ranks were asked to stop. Beside the sums of a step stand those of an evaluation.
std::vector<Accumulator> AccumulatorsOf(const ProgramInputs& inputs) {
  std::vector<Accumulator> sums = {{"$integers", DType::kInt64, 2, {"loss_tokens", "routing"}},
                                   {"$reals", DType::kFp64, 2, {"loss", "aux"}}};
  const auto add = [&](size_t sum, const string& part) {
    sums[sum].parts.push_back(part);
    ++sums[sum].elements;
  };
  for (const Bridge& bridge : inputs.bridges) {
    add(0, "elements." + bridge.from);
    add(1, "square_sum." + bridge.from);
  }
  if (inputs.checkpoints) add(0, "stop_requests");
  for (const Module& module : inputs.modules) {
    add(1, "norm." + module.name);
    if (module.experts() > 0 && CountsExperts(*StatementOf(module)))
      sums.push_back({"$expert_counts", DType::kInt64, module.expert_layers() * module.experts(), {}});
  }
  if (inputs.sums_by_source()) {
    const auto sources = static_cast<int64_t>(inputs.data.sources.size());
    sums.push_back({"$source_losses", DType::kFp64, sources, {}});
    sums.push_back({"$source_tokens", DType::kInt64, sources, {}});
  }
  if (const int64_t parts = inputs.evaluation.parts(); parts > 0) {
    sums.push_back({"$evaluated_losses", DType::kFp64, parts, {}});
    sums.push_back({"$evaluated_tokens", DType::kInt64, parts, {}});
  }
  return sums;
}

// A stage where nothing learns runs no backward.
std::vector<StageSchedule> WithoutIdleBackwards(std::vector<StageSchedule> schedules,
                                                const std::vector<LoweredModule>& modules) {
  for (StageSchedule& schedule : schedules) {
    for (const LoweredModule& lowered : modules) {
      if (lowered.module->name != schedule.module || lowered.learns(schedule.stage)) continue;
      std::erase_if(schedule.order, [](const string& action) { return action[0] == 'B'; });
    }
  }
  return schedules;
}

// The ranks of a stage whose index in tp x cp is `leader`, or all others. One range for each index, however many lanes
// there are.
std::vector<RankRange> RanksOfStage(const Grid& grid, int stage, int leader, bool leaders) {
  const int ranks_of_lane = grid.tp * grid.cp, first = grid.first_rank + stage * ranks_of_lane * grid.dp;
  std::vector<RankRange> ranges;
  for (int index = 0; index < ranks_of_lane; ++index) {
    if ((index == leader) == leaders) ranges.push_back({first + index, grid.dp, grid.dp == 1 ? 1 : ranks_of_lane});
  }
  return ranges;
}

// One role for a stage. Where the stage ends at a bridge, the leaders of its lanes run another program than their
// siblings: they also send and receive (docs/layouts/bridges.md#leaders).
void AddRolesOfStage(const LoweredModule& lowered, const StageSchedule& schedule, ProgramBuilder& builder,
                     std::vector<Role>& roles) {
  const Module& module = *lowered.module;
  const Grid& grid = module.grid;
  const int ranks_of_lane = grid.tp * grid.cp;
  const bool bridged = !lowered.bridges.empty() && schedule.stage == (lowered.language() ? 0 : lowered.last_stage());
  const auto add = [&](const char* suffix, bool leads, std::vector<RankRange> ranks) {
    Role role;
    role.name = absl::StrCat(module.name, ".s", schedule.stage, suffix);
    role.modules = {module.name};
    role.ranks = std::move(ranks);
    role.setup = builder.Setup({&lowered});
    role.resume = builder.Resume({&lowered});
    role.save = builder.Save({&lowered});
    role.step = builder.DisjointStep(lowered, schedule, leads);
    role.evaluate = builder.DisjointRound(lowered, schedule.stage, leads);
    role.score = builder.Score();
    role.origin = module.origin;
    roles.push_back(std::move(role));
  };
  if (!bridged || ranks_of_lane == 1) {
    return add("", bridged, {{grid.first_rank + schedule.stage * ranks_of_lane * grid.dp, ranks_of_lane * grid.dp, 1}});
  }
  // Index in tp x cp: the first one receives for the language model, the last one sends for an encoder.
  const int leader = lowered.language() ? 0 : ranks_of_lane - 1;
  add("", true, RanksOfStage(grid, schedule.stage, leader, true));
  add(".sibling", false, RanksOfStage(grid, schedule.stage, leader, false));
}

// Colocated modules have one role: all ranks run all modules.
Role ColocatedRole(const ProgramInputs& inputs, const std::vector<LoweredModule>& modules, ProgramBuilder& builder) {
  std::vector<const LoweredModule*> all;
  Role role;
  for (const LoweredModule& lowered : modules) {
    all.push_back(&lowered);
    role.modules.push_back(lowered.module->name);
  }
  role.name = absl::StrJoin(role.modules, "+") + ".s0";
  role.ranks = {{0, inputs.world_size, 1}};
  role.setup = builder.Setup(all);
  role.resume = builder.Resume(all);
  role.save = builder.Save(all);
  role.step = builder.ColocatedStep();
  role.evaluate = builder.ColocatedRound();
  role.score = builder.Score();
  role.origin = inputs.FindModule(inputs.bridges.front().to)->origin;
  return role;
}

}  // namespace

std::optional<Programs> LowerPrograms(const Recipe& recipe, const ProgramInputs& inputs,
                                      std::vector<ModuleBlocks> blocks, Diagnostics& diagnostics) {
  Require(blocks.size() == inputs.modules.size(), "each module has blocks");
  const Overlap overlap = {*recipe.gradients.overlap_reduce, *recipe.gradients.overlap_gather};
  std::vector<Symbol> symbols;
  // Programs name blocks of all modules, also those at the other end of a bridge: so all are lowered first.
  std::vector<LoweredModule> modules;
  for (size_t i = 0; i < blocks.size(); ++i)
    modules.push_back(LowerModule(inputs, inputs.modules[i], std::move(blocks[i]), overlap, symbols));

  Programs programs;
  programs.accumulators = AccumulatorsOf(inputs);
  programs.symbols = SizeSymbols(inputs, std::move(symbols));
  programs.schedule = WithoutIdleBackwards(inputs.schedule, modules);
  for (const LoweredModule& lowered : modules) AddBlocks(lowered, programs.blocks);
  ProgramBuilder builder(inputs, modules, programs.accumulators, overlap);
  // Modules are all colocated or all disjoint (CheckSharedRanks), so the first bridge tells.
  if (!inputs.bridges.empty() && inputs.bridges.front().kind == "colocated") {
    programs.roles.push_back(ColocatedRole(inputs, modules, builder));
  } else {
    for (const LoweredModule& lowered : modules) {
      for (const StageSchedule& schedule : programs.schedule) {
        if (schedule.module == lowered.module->name) AddRolesOfStage(lowered, schedule, builder, programs.roles);
      }
    }
  }
  if (!CheckLength(recipe, inputs.budget, programs.blocks, programs.roles, diagnostics)) return std::nullopt;
  return programs;
}

}  // namespace planwright
