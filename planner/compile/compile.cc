#include "planner/compile/compile.h"

#include <algorithm>
#include <utility>

#include "planner/compile/batches/lint_trained.h"
#include "planner/compile/batches/plan_data.h"
#include "planner/compile/batches/plan_evaluation.h"
#include "planner/compile/batches/source_files.h"
#include "planner/compile/bridges/route_bridges.h"
#include "planner/compile/budget/budget_samples.h"
#include "planner/compile/cluster_of.h"
#include "planner/compile/groups/derive_groups.h"
#include "planner/compile/lint_plan.h"
#include "planner/compile/model/assign_buckets.h"
#include "planner/compile/model/checkpoint_rules.h"
#include "planner/compile/model/expand_model.h"
#include "planner/compile/model/expand_modules.h"
#include "planner/compile/model/rate_parts.h"
#include "planner/compile/prove_plan.h"
#include "planner/compile/schedule/derive/derive_module.h"
#include "planner/compile/schedule/derive/slot_gradients.h"
#include "planner/compile/schedule/order/schedule_modules.h"
#include "planner/compile/schedule/programs/lower_programs.h"
#include "planner/compile/schedule/programs/program_length.h"
#include "planner/compile/topology/derive_grids.h"
#include "planner/compile/topology/place_modules.h"
#include "planner/data/samples/count_samples.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/precision.h"
#include "planner/plan/statement/adapted_statement.h"
#include "planner/predict/estimate/dispatch_time.h"
#include "planner/predict/estimate/host_memory.h"
#include "planner/recipe/model_facts.h"
#include "planner/recipe/origins.h"

namespace planwright {
namespace {

DivergencePlan DivergenceOf(const Recipe& recipe) {
  if (!recipe.divergence) return {};
  return {*recipe.divergence->window, *recipe.divergence->factor};
}

OptimizerPlan OptimizerOf(const Recipe& recipe) {
  OptimizerPlan optimizer = recipe.optimizer;
  optimizer.parts = RatePartsOf(recipe);
  return optimizer;
}

std::optional<InitializePlan> InitializeOf(const Recipe& recipe) {
  if (!recipe.initialize) return std::nullopt;
  InitializePlan plan;
  if (recipe.initialize->from) {
    plan.from = **recipe.initialize->from;
    plan.base = FolderOf(recipe.initialize->from->where);
  }
  for (const WeightSourceRecipe& source : recipe.initialize->sources)
    plan.sources.push_back({*source.part, *source.from, FolderOf(source.from.where)});
  plan.optimizer = *recipe.initialize->optimizer;
  plan.schedule = *recipe.initialize->schedule;
  for (const auto& name : recipe.initialize->ignore) plan.ignore.push_back(*name);
  return plan;
}

LaunchPlan LaunchOf(const LaunchRecipe& recipe) {
  const auto text = [](const std::optional<Located<std::string>>& field) { return field ? **field : std::string(); };
  LaunchPlan plan = {.interface = text(recipe.interface),
                     .restarts = *recipe.restarts,
                     .deadline_floor = *recipe.deadline.floor,
                     .deadline_first_step = *recipe.deadline.first_step,
                     .deadline_factor = *recipe.deadline.factor,
                     .partition = text(recipe.slurm.partition),
                     .account = text(recipe.slurm.account),
                     .qos = text(recipe.slurm.qos),
                     .constraint = text(recipe.slurm.constraint),
                     .reservation = text(recipe.slurm.reservation),
                     .time = text(recipe.slurm.time),
                     .gres = text(recipe.slurm.gres),
                     .cpus_per_task = recipe.slurm.cpus_per_task ? **recipe.slurm.cpus_per_task : 0,
                     .container = text(recipe.slurm.container)};
  for (const auto& name : recipe.fallbacks) plan.fallbacks.push_back(*name);
  if (!recipe.fallbacks.empty()) plan.base = FolderOf(recipe.fallbacks[0].where);
  for (const auto& entry : recipe.env) plan.env.push_back(*entry);
  for (const auto& line : recipe.setup) plan.setup.push_back(*line);
  for (const auto& mount : recipe.slurm.mounts) plan.mounts.push_back(*mount);
  for (const auto& option : recipe.slurm.options) plan.options.push_back(*option);
  return plan;
}

std::vector<ModuleBlocks> BlocksOf(const Recipe& recipe, const BlockInputs& inputs) {
  std::vector<ModuleBlocks> blocks;
  for (size_t i = 0; i < inputs.modules.size(); ++i) {
    const ModuleRecipe& module = recipe.modules[i];
    blocks.push_back(
        DeriveModule(inputs, inputs.modules[i], *StatementOf(inputs.modules[i]), *module.overlap_dispatch));
  }
  return blocks;
}

// What the checks of a recipe find out, which the plan is made from.
struct Checked {
  Cluster cluster;
  std::vector<Grid> grids;               // in the order of the modules
  std::vector<std::vector<int>> stages;  // of their layers
  DataPlan data;
  EvaluationPlan evaluation;
  std::vector<Bridge> bridges;
  Budget budget;
};

// Lanes of the language module, where its own sizes give them.
std::optional<int64_t> LanguageLanes(const Recipe& recipe, const Placement& placement) {
  const ModuleRecipe* language = LanguageOf(recipe);
  if (language == nullptr) return std::nullopt;
  const std::optional<Grid>& grid = placement.grids[static_cast<size_t>(language - recipe.modules.data())];
  return grid ? std::optional<int64_t>(grid->dp) : std::nullopt;
}

// What indexes have counted: images, packed documents, and how many samples `samples: all` of an evaluation set means.
// With the latter a set of text has the digest of its index, too.
void TakeCounts(int64_t sequence, DataPlan& data, EvaluationPlan& evaluation) {
  if (!data.encoders.empty() || data.packed_documents)
    data.counted = CountedAtHand(data, sequence).value_or(CountedSamples());
  for (EvaluationSet& set : evaluation.sets) {
    if (set.data.encoders.empty() && set.samples > 0) continue;
    const std::optional<CountedSamples> counted = CountedAtHand(set.data, sequence);
    if (!counted) continue;
    set.data.counted = *counted;
    // These tell how long steps take.
    set.data.counted.first_patches.clear();
    set.data.counted.documents.clear(), set.data.counted.first_squares.clear();
    if (set.samples > 0) continue;
    if (const std::optional<std::vector<int64_t>> epoch = EpochAtHand(set.data, sequence))
      set.samples = SamplesOnce(set.data, *epoch);
  }
}

// Whether it is known on which products a module has adapters, if it has any.
bool KnownAdapter(const ModuleRecipe& module) {
  if (!module.adapter) return true;
  const std::string layers = LayersOf(module.model);
  const auto stands = [&](const Located<std::string>& target) {
    return AllKnown(target) && AdapterTargetProblem(StatementOfModel(module.model), layers, *target).empty();
  };
  return AllKnown(module.adapter->rank, module.adapter->alpha) &&
         std::all_of(module.adapter->targets.begin(), module.adapter->targets.end(), stands);
}

// Of each module, whether it is known which parameters it has, and which of them are trained.
std::vector<bool> KnownModels(const Recipe& recipe, const Placement& placement) {
  std::vector<bool> known;
  for (size_t i = 0; i < recipe.modules.size(); ++i) {
    const ModuleRecipe& module = recipe.modules[i];
    // A model that failed its checks has no stages.
    known.push_back(!placement.stages[i].empty() && AllKnown(module.train_backbone, module.train_projection) &&
                    KnownAdapter(module) &&
                    std::all_of(module.model.numbers.begin(), module.model.numbers.end(),
                                [](const auto& number) { return AllKnown(number.second); }));
  }
  return known;
}

// All checks run before any of them gives up, so that one run shows every problem. Each leaves out what it cannot know
// because of another problem (AllKnown).
std::optional<Checked> Check(const Recipe& recipe, Cluster cluster, Diagnostics& diagnostics) {
  Placement placement = PlaceModules(recipe, diagnostics);
  auto grids = GridsOf(placement);
  CheckRateParts(recipe, KnownModels(recipe, placement), diagnostics);
  CheckProfilePrecision(recipe, cluster, diagnostics);
  auto data = PlanData(recipe, diagnostics);
  EvaluationPlan evaluation = PlanEvaluation(recipe, diagnostics);
  if (!grids) {
    // Without grids, bridges and budget are checked as far as they do not need them.
    CheckBridges(recipe, diagnostics);
    CheckBudget(recipe, LanguageLanes(recipe, placement), diagnostics);
    return std::nullopt;
  }
  auto bridges = RouteBridges(recipe, *grids, diagnostics);
  const auto budget = BudgetSamples(recipe, *grids, diagnostics);
  if (!data || !bridges || !budget || !recipe.damaged.empty() || diagnostics.has_errors()) return std::nullopt;
  TakeCounts(budget->sequence_length, *data, evaluation);
  CountRounds(*budget, evaluation);
  return Checked{std::move(cluster),
                 *std::move(grids),
                 std::move(placement.stages),
                 *std::move(data),
                 std::move(evaluation),
                 *std::move(bridges),
                 *budget};
}

}  // namespace

void CheckRecipe(const Recipe& written, KnownFiles& files, Diagnostics& diagnostics) {
  const Recipe recipe = WithPreparedIds(written, files.sources, diagnostics);
  LintTrained(recipe, files.sources, diagnostics);
  Cluster cluster = ClusterOf(recipe.cluster, files.profiles, diagnostics);
  Check(recipe, std::move(cluster), diagnostics);
}

std::optional<Plan> MakePlan(const Recipe& recipe, Cluster of_recipe, Diagnostics& diagnostics) {
  std::optional<Checked> checked = Check(recipe, std::move(of_recipe), diagnostics);
  if (!checked) return std::nullopt;
  auto& [cluster, grids, stages, data, evaluation, bridges, budget] = *checked;

  // The recipe is valid. What follows makes the parts of the plan, each from finished ones.
  const DType dtype = DTypeOf(*recipe.precision);
  const int world_size = WorldSizeOf(grids);
  std::vector<Module> modules = ExpandModules(recipe, grids, stages, data, diagnostics);
  OptimizerPlan optimizer = OptimizerOf(recipe);
  AssignRateParts(optimizer.parts, modules);
  const Rates dispatch_rates = DispatchRates(cluster);
  for (size_t i = 0; i < modules.size(); ++i) {
    const DispatchSizes sizes = DispatchSizesOf(modules[i], budget, cluster, dtype);
    modules[i].dispatch = DispatchOf(modules[i], *recipe.modules[i].dispatch, sizes, dispatch_rates);
  }
  const BlockInputs parts = {modules, bridges, budget, data, dtype, !evaluation.empty()};
  std::vector<ModuleBlocks> blocks = BlocksOf(recipe, parts);
  for (size_t i = 0; i < modules.size(); ++i) {
    AssignBuckets(recipe.gradients.buckets, dtype, MasterOf(dtype), GradientsOverTp(modules[i], blocks[i]), modules[i]);
  }
  CheckpointPlan checkpoint = CheckpointOf(modules, optimizer, dtype, recipe.checkpoint);
  const auto schedule = ScheduleModules(recipe, modules, bridges, budget.microbatches, diagnostics);
  if (!schedule) return std::nullopt;
  auto programs = LowerPrograms(recipe,
                                {parts, *schedule, evaluation, world_size,
                                 /*loads_weights=*/recipe.initialize.has_value(),
                                 /*checkpoints=*/checkpoint.every_steps > 0},
                                std::move(blocks), diagnostics);
  if (!programs) return std::nullopt;
  std::vector<Group> groups = DeriveGroups(modules, bridges, programs->blocks, programs->roles);

  Plan plan = {.name = recipe.name,
               .recipe_digest = recipe.digest,
               .precision = recipe.precision,
               .deterministic = recipe.deterministic,
               .seed = recipe.data.seed,
               .world_size = world_size,
               .log_every_steps = recipe.log.every_steps,
               .cluster = std::move(cluster),
               .launch = LaunchOf(recipe.launch),
               .modules = std::move(modules),
               .groups = std::move(groups),
               .bridges = std::move(bridges),
               .budget = budget,
               .optimizer = std::move(optimizer),
               .data = std::move(data),
               .evaluation = std::move(evaluation),
               .divergence = DivergenceOf(recipe),
               .initialize = InitializeOf(recipe),
               .checkpoint = std::move(checkpoint),
               .accumulators = std::move(programs->accumulators),
               .symbols = std::move(programs->symbols),
               .schedule = std::move(programs->schedule),
               .blocks = std::move(programs->blocks),
               .roles = std::move(programs->roles),
               .origins = OriginsOf(recipe)};
  KeepWhatIsAsked(recipe.cluster, plan, diagnostics);
  plan.checkpoint.copy_bytes = ShareOfCopies(plan);
  if (const std::optional<HostShortage> shortage = FindHostShortage(plan)) {
    diagnostics.Error(DiagnosticKind::kHostTooSmall, recipe.cluster.host_memory->where, shortage->problem,
                      shortage->help);
    return std::nullopt;
  }
  return plan;
}

std::optional<Plan> CompileRecipe(const Recipe& recipe, Diagnostics& diagnostics, StepTime* time) {
  KnownFiles files(recipe);
  return CompileRecipe(recipe, files, diagnostics, time);
}

std::optional<Plan> CompileRecipe(const Recipe& written, KnownFiles& files, Diagnostics& diagnostics, StepTime* time,
                                  double* part) {
  const Recipe recipe = WithPreparedIds(written, files.sources, diagnostics);
  LintTrained(recipe, files.sources, diagnostics);
  Cluster cluster = ClusterOf(recipe.cluster, files.profiles, diagnostics);
  std::optional<Plan> made = MakePlan(recipe, std::move(cluster), diagnostics);
  if (!made) return std::nullopt;
  Plan& plan = *made;
  if (part != nullptr) *part = PartOfLongest(plan);
  // The digest is over the finished plan, and what is proved is what is written.
  plan.digest = PlanDigest(plan);
  ProvePlan(plan, diagnostics);
  if (diagnostics.has_errors()) return std::nullopt;
  const Rates rates = RatesOf(plan);
  if (time == nullptr && !rates.known()) return made;
  StepTime predicted = TimeStep(plan, rates);
  if (predicted.seconds) {
    plan.launch.predicted_step = predicted.length;
    LintTime(plan, predicted, diagnostics);
    LintTraining(recipe, plan, diagnostics);
    if (diagnostics.has_errors()) return std::nullopt;  // a lint may be an error
  }
  if (time != nullptr) *time = std::move(predicted);
  return made;
}

}  // namespace planwright
