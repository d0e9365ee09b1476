#include "planner/compile.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/bridges/route_bridges.h"
#include "planner/budget/budget_samples.h"
#include "planner/data/plan_data.h"
#include "planner/estimate/memory.h"
#include "planner/groups/derive_groups.h"
#include "planner/model/assign_buckets.h"
#include "planner/model/checkpoint_rules.h"
#include "planner/model/expand_model.h"
#include "planner/model/lint_stages.h"
#include "planner/plan/plan_json.h"
#include "planner/schedule/check_length.h"
#include "planner/schedule/lint_pipeline.h"
#include "planner/schedule/lower_programs.h"
#include "planner/schedule/pipeline_graph.h"
#include "planner/schedule/symbol_sizes.h"
#include "planner/topology/place_modules.h"
#include "planner/topology/rank_map.h"
#include "planner/verify/verify.h"

namespace planwright {
namespace {

int AddOrigin(const Location& where, std::string what, Plan& plan) {
  plan.origins.push_back({where.file ? *where.file : "", where.line, where.column, std::move(what)});
  return static_cast<int>(plan.origins.size()) - 1;
}

std::vector<Module> ExpandModules(const Recipe& recipe, const std::vector<Grid>& grids, Plan& plan,
                                  Diagnostics& diagnostics) {
  ProjectorTarget target;
  for (const ModuleRecipe& module : recipe.modules) {
    if (const auto* language = std::get_if<HybridLmModel>(&module.model.model)) target = TargetOf(*language);
  }
  target.several_encoders = recipe.modules.size() > 2;
  std::vector<Module> modules;
  for (size_t i = 0; i < grids.size(); ++i) {
    Module module = ExpandModule(recipe.modules[i], grids[i], target, recipe.batch.sequence_length, plan.data);
    AssignBuckets(recipe.gradients.buckets, plan.dtype(), plan.master(), module);
    LintStages(recipe.modules[i], module, diagnostics);
    module.origin = AddOrigin(recipe.modules[i].name.where, absl::StrCat("module ", module.name), plan);
    modules.push_back(std::move(module));
  }
  return modules;
}

// The sums of a step (docs/plan.md): what is counted, what is added up in double, and how often each expert was chosen.
std::vector<Accumulator> AccumulatorsOf(const std::vector<Module>& modules) {
  std::vector<Accumulator> sums = {{"$integers", DType::kInt64, 2, {"loss_tokens", "routing"}},
                                   {"$reals", DType::kFp64, 2, {"loss", "aux"}}};
  for (const Module& module : modules) {
    sums[1].parts.push_back("norm." + module.name);
    ++sums[1].elements;
    if (module.experts() > 0)
      sums.push_back({"$expert_counts", DType::kInt64, module.expert_layers() * module.experts(), {}});
  }
  return sums;
}

void SetOrigins(const Recipe& recipe, Plan& plan) {
  for (size_t i = 0; i < plan.bridges.size(); ++i) {
    plan.bridges[i].origin = AddOrigin(recipe.bridges[i].where,
                                       absl::StrCat("bridge ", plan.bridges[i].from, " to ", plan.bridges[i].to), plan);
  }
  AddOrigin(recipe.budget.where, "budget", plan);
  for (Group& group : plan.groups) {
    if (const Module* module = plan.FindModule(group.module)) group.origin = module->origin;
    if (const Bridge* bridge = plan.FindBridge(group.name)) group.origin = bridge->origin;
  }
}

std::vector<StageSchedule> ScheduleModules(const Plan& plan, const Recipe& recipe, Diagnostics& diagnostics) {
  std::vector<PipelineModule> modules;
  for (const Module& module : plan.modules) modules.push_back({module.name, module.grid.pp});
  const auto index = [&](const std::string& name) {
    return static_cast<int>(plan.FindModule(name) - plan.modules.data());
  };
  std::vector<PipelineEdge> edges;
  for (const Bridge& bridge : plan.bridges)
    edges.push_back({index(bridge.from), index(bridge.to), bridge.kind == "colocated"});
  const Location where = recipe.bridges.empty() ? Location{} : recipe.bridges.front().where;
  const auto graph = BuildPipelineGraph(modules, edges, where, diagnostics);
  if (!graph) return {};
  LintMicrobatches(*graph, plan.budget.microbatches, recipe.batch.global_samples.where, diagnostics);
  return ScheduleStages(*graph, static_cast<int>(plan.budget.microbatches));
}

Location PlaceOf(const Plan& plan, int origin) {
  if (origin < 0 || plan.origins[origin].file.empty()) return {};
  const Origin& place = plan.origins[origin];
  return {std::make_shared<const std::string>(place.file), place.line, place.column, 1};
}

// A plan that fits as long as tokens spread over the experts as declared, and no longer, is worth a word.
void LintMemory(const Plan& plan, const std::vector<RoleEstimate>& estimates, Diagnostics& diagnostics) {
  std::set<const Module*> warned;
  for (size_t i = 0; i < estimates.size(); ++i) {
    const RoleEstimate& estimate = estimates[i];
    const bool only_planned = estimate.planned.total() <= estimate.limit && estimate.worst.total() > estimate.limit;
    if (!only_planned || !warned.insert(estimate.module).second) continue;
    diagnostics.Warning(
        DiagnosticKind::kExpertRowsMayNotFit,
        PlaceOf(plan, estimate.module ? estimate.module->origin : plan.roles[i].origin),
        absl::StrCat("a rank of role ", plan.roles[i].name, " needs ", GigabytesText(estimate.planned.total()),
                     " with expert rows at moe.imbalance times the mean, and would need ",
                     GigabytesText(estimate.worst.total()), " if all tokens chose its experts; a ", plan.cluster.gpu,
                     " has ", GigabytesText(estimate.limit)),
        "a step beyond moe.imbalance stops and names layer and rows; a larger ep or tp leaves more room");
  }
}

// A broken rule is our fault more than the author's, but it points at the line that asked for it.
void ProvePlan(const Plan& plan, Diagnostics& diagnostics) {
  std::vector<RoleEstimate> memory;
  for (const Violation& violation : VerifyPlan(plan, &memory)) {
    const Location where = PlaceOf(plan, violation.origin);
    if (!violation.help.empty()) {
      diagnostics.Error(DiagnosticKind::kDeviceTooSmall, where, violation.message, violation.help);
      continue;
    }
    diagnostics.Error(DiagnosticKind::kBrokenRule, where, absl::StrCat(violation.rule, ": ", violation.message),
                      "the compiled plan broke its own rule: please report it with the recipe");
  }
  LintMemory(plan, memory, diagnostics);
}

// The problems of what can be looked at without the sections that are damaged.
void CheckTheRest(const Recipe& recipe, Diagnostics& diagnostics) {
  const auto whole = [&](std::initializer_list<const char*> sections) {
    return std::none_of(sections.begin(), sections.end(),
                        [&](const char* section) { return recipe.damaged.contains(section); });
  };
  if (whole({"models", "modules", "cluster"})) PlaceModules(recipe, diagnostics);
  if (whole({"models", "modules", "bridges"})) CheckBridges(recipe, diagnostics);
  if (whole({"budget"})) CheckRates(recipe, diagnostics);
  if (whole({"models", "modules", "bridges", "batch", "data"})) PlanData(recipe, diagnostics);
}

}  // namespace

std::optional<Plan> CompileRecipe(const Recipe& recipe, Diagnostics& diagnostics) {
  // Everything a recipe can get wrong is looked at before giving up, so that one run shows all of it.
  if (!recipe.damaged.empty()) {
    CheckTheRest(recipe, diagnostics);
    return std::nullopt;
  }
  const auto grids = PlaceModules(recipe, diagnostics);
  auto data = PlanData(recipe, diagnostics);
  if (!grids) {
    CheckBridges(recipe, diagnostics);
    CheckRates(recipe, diagnostics);
    return std::nullopt;
  }
  auto bridges = RouteBridges(recipe, *grids, diagnostics);
  const auto budget = BudgetSamples(recipe, *grids, diagnostics);
  if (!data || !bridges || !budget || diagnostics.has_errors()) return std::nullopt;

  Plan plan;
  plan.name = recipe.name;
  plan.recipe_digest = recipe.digest;
  plan.precision = recipe.precision;
  plan.seed = recipe.data.seed;
  plan.world_size = WorldSizeOf(*grids);
  plan.log_every_steps = recipe.log.every_steps;
  plan.cluster = ClusterOf(recipe.cluster);
  plan.optimizer = recipe.optimizer;
  plan.data = *std::move(data);
  plan.budget = *budget;
  if (recipe.initialize) {
    plan.initialize = {.from = *recipe.initialize->from, .base = FolderOf(recipe.initialize->from.where), .ignore = {}};
    for (const auto& name : recipe.initialize->ignore) plan.initialize->ignore.push_back(*name);
  }
  plan.modules = ExpandModules(recipe, *grids, plan, diagnostics);
  plan.checkpoint = CheckpointOf(plan, recipe.checkpoint.every_steps ? **recipe.checkpoint.every_steps : 0);
  plan.accumulators = AccumulatorsOf(plan.modules);
  plan.bridges = *std::move(bridges);
  if (!plan.bridges.empty()) plan.data.image_token = plan.bridges.front().token;  // what stands for images in the text
  plan.groups = DeriveGroups(recipe.modules, *grids, plan.bridges);
  SetOrigins(recipe, plan);
  plan.schedule = ScheduleModules(plan, recipe, diagnostics);
  Programs programs = LowerPrograms(recipe, plan);
  plan.symbols = std::move(programs.symbols);
  plan.blocks = std::move(programs.blocks);
  plan.roles = std::move(programs.roles);
  plan.schedule = std::move(programs.schedule);
  if (!CheckLength(recipe, plan, diagnostics)) return std::nullopt;
  MarkUsedGroups(plan);
  SizeSymbols(plan);
  plan.digest = PlanDigest(plan);
  ProvePlan(plan, diagnostics);
  if (diagnostics.has_errors()) return std::nullopt;
  return plan;
}

}  // namespace planwright
