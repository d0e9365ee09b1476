#include "planner/schedule/lower_programs.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/diagnostics/bug.h"
#include "planner/schedule/lower_encoder.h"
#include "planner/schedule/lower_language.h"
#include "planner/schedule/program_builder.h"
#include "planner/schedule/program_values.h"

namespace planwright {
namespace {

using std::string;

const ModuleRecipe& RecipeOf(const Recipe& recipe, const string& module) {
  for (const ModuleRecipe& candidate : recipe.modules) {
    if (*candidate.name == module) return candidate;
  }
  Bug("no recipe of module " + module);
}

BlockContext ContextOf(const Module& module, DType dtype) {
  return {module.name,
          dtype,
          module.grid.tp,
          module.grid.ep,
          module.grid.cp,
          module.grid.expert_tp,
          module.trains_backbone,
          module.trains_projection};
}

LanguageSizes SizesOf(const Plan& plan, const Module& module, const std::vector<const Bridge*>& bridges) {
  LanguageSizes sizes = {.sequence = plan.budget.sequence_length,
                         .samples = plan.budget.micro_samples,
                         .image_token = plan.data.image_token,
                         .packed_documents = plan.data.packed_documents};
  for (const Bridge* bridge : bridges) {
    const Module& encoder = *plan.FindModule(bridge->from);
    sizes.merged.push_back({BridgeValue(plan, *bridge, "rows"), BridgeValue(plan, *bridge, "drows"),
                            absl::StrCat(module.name, ".", BridgeValue(plan, *bridge, "image_rows")),
                            bridge->token >= 0 ? bridge->token : plan.data.image_token, encoder.trained()});
  }
  return sizes;
}

LoweredModule LowerModule(const Recipe& recipe, const Plan& plan, const Module& module, DType dtype,
                          const Overlap& overlap, std::vector<Symbol>& symbols) {
  LoweredModule lowered = {.module = &module};
  for (const Bridge& bridge : plan.bridges) {
    if (bridge.from == module.name || bridge.to == module.name) lowered.bridges.push_back(&bridge);
  }
  const auto& model = RecipeOf(recipe, module.name).model.model;
  const BlockContext context = ContextOf(module, dtype);
  std::vector<Symbol> own;
  if (const auto* language = std::get_if<HybridLmModel>(&model)) {
    const LanguageSizes sizes = SizesOf(plan, module, lowered.bridges);
    lowered.blocks = LowerLanguage(*language, module, context, sizes);
    own = LanguageSymbols(module, context, sizes);
  } else {
    const auto& encoder = std::get<RadioVitModel>(model);
    lowered.blocks = LowerEncoder(encoder, module, context);
    const LaneSamples largest = SamplesOfLane(plan.budget.block_samples, module.grid.dp, 0);
    own = EncoderSymbols(encoder, module, (largest.end - largest.first) * plan.budget.sequence_length);
  }
  std::move(own.begin(), own.end(), std::back_inserter(symbols));
  for (int stage = 0; stage < module.grid.pp; ++stage) {
    lowered.stages.push_back(LowerStage(module, context, lowered.blocks, stage, overlap.reduce));
  }
  return lowered;
}

// Blocks in calling order: embedding, layers, head, stages.
void AddBlocks(const LoweredModule& lowered, std::vector<Block>& blocks) {
  const auto add = [&](const std::optional<Block>& block) {
    if (block) blocks.push_back(*block);
  };
  const auto add_layer = [&](const LayerBlocks& layer) {
    blocks.push_back(layer.forward);
    add(layer.recompute);
    add(layer.backward);
  };
  add_layer(lowered.blocks.embedding);
  for (const auto& [kind, layer] : lowered.blocks.layers) add_layer(layer);
  add_layer(lowered.blocks.head);
  for (const StageBlocks& stage : lowered.stages) {
    blocks.push_back(stage.forward);
    add(stage.backward);
    add(stage.last_backward);
  }
}

// Ranks of a stage: those at place `leader` of tp x cp, or all others. A range per place, whatever the data
// parallelism.
std::vector<RankRange> RanksOfStage(const Grid& grid, int stage, int leader, bool leaders) {
  const int places = grid.tp * grid.cp, first = grid.first_rank + stage * places * grid.dp;
  std::vector<RankRange> ranges;
  for (int place = 0; place < places; ++place) {
    if ((place == leader) == leaders) ranges.push_back({first + place, grid.dp, grid.dp == 1 ? 1 : places});
  }
  return ranges;
}

void AddDisjointRoles(const LoweredModule& lowered, const StageSchedule& schedule, ProgramBuilder& builder,
                      Programs& programs) {
  const Module& module = *lowered.module;
  const Grid& grid = module.grid;
  const int places = grid.tp * grid.cp;
  const bool bridged = !lowered.bridges.empty() && schedule.stage == (lowered.language() ? 0 : lowered.last_stage());
  const auto add = [&](const char* suffix, BridgePart part, std::vector<RankRange> ranks) {
    Role role;
    role.name = absl::StrCat(module.name, ".s", schedule.stage, suffix);
    role.modules = {module.name};
    role.ranks = std::move(ranks);
    role.setup = builder.Setup({&lowered});
    role.step = builder.DisjointStep(lowered, schedule, part);
    role.origin = module.origin;
    programs.roles.push_back(std::move(role));
  };
  if (!bridged || places == 1) {
    return add("", bridged ? BridgePart::kLeader : BridgePart::kNone,
               {{grid.first_rank + schedule.stage * places * grid.dp, places * grid.dp, 1}});
  }
  const int leader = lowered.language() ? 0 : places - 1;
  add("", BridgePart::kLeader, RanksOfStage(grid, schedule.stage, leader, true));
  add(".sibling", BridgePart::kSibling, RanksOfStage(grid, schedule.stage, leader, false));
}

void AddColocatedRole(const Plan& plan, const std::vector<LoweredModule>& modules, ProgramBuilder& builder,
                      Programs& programs) {
  std::vector<const LoweredModule*> all;
  Role role;
  for (const LoweredModule& lowered : modules) {
    all.push_back(&lowered);
    role.modules.push_back(lowered.module->name);
  }
  role.name = absl::StrJoin(role.modules, "+") + ".s0";
  role.ranks = {{0, plan.world_size, 1}};
  role.setup = builder.Setup(all);
  role.step = builder.ColocatedStep();
  role.origin = plan.FindModule(plan.bridges.front().to)->origin;
  programs.roles.push_back(std::move(role));
}

// A stage that learns nothing has no backward actions.
void DropIdleBackwards(const LoweredModule& lowered, StageSchedule& schedule) {
  if (lowered.learns(schedule.stage)) return;
  std::erase_if(schedule.order, [](const string& action) { return action[0] == 'B'; });
}

}  // namespace

Programs LowerPrograms(const Recipe& recipe, const Plan& plan) {
  Programs programs;
  programs.schedule = plan.schedule;
  const DType dtype = plan.dtype();
  const Overlap overlap = {*recipe.gradients.overlap_reduce, *recipe.gradients.overlap_gather};
  std::vector<LoweredModule> modules;
  for (const Module& module : plan.modules)
    modules.push_back(LowerModule(recipe, plan, module, dtype, overlap, programs.symbols));
  for (const LoweredModule& lowered : modules) AddBlocks(lowered, programs.blocks);
  ProgramBuilder builder(plan, modules, overlap, dtype);
  for (StageSchedule& schedule : programs.schedule) {
    for (const LoweredModule& lowered : modules) {
      if (lowered.module->name == schedule.module) DropIdleBackwards(lowered, schedule);
    }
  }
  if (!plan.bridges.empty() && plan.bridges.front().kind == "colocated") {
    AddColocatedRole(plan, modules, builder, programs);
    return programs;
  }
  for (const LoweredModule& lowered : modules) {
    for (const StageSchedule& schedule : programs.schedule) {
      if (schedule.module == lowered.module->name) AddDisjointRoles(lowered, schedule, builder, programs);
    }
  }
  return programs;
}

void MarkUsedGroups(Plan& plan) {
  std::map<string, std::set<string>> streams;  // by group
  const auto scan = [&](const std::vector<Instruction>& body) {
    for (const Instruction& instruction : body) {
      streams[instruction.group].insert(instruction.stream);
      for (const ExchangePart& part : instruction.parts)
        streams[part.bridge.empty() ? part.group : part.bridge].insert(instruction.stream);
    }
  };
  for (const Block& block : plan.blocks) scan(block.body);
  for (const Role& role : plan.roles) {
    scan(role.setup);
    scan(role.step);
    scan(role.teardown);
  }
  for (Group& group : plan.groups) {
    const auto found = streams.find(group.name);
    if (found != streams.end()) group.streams.assign(found->second.begin(), found->second.end());
  }
}

}  // namespace planwright
