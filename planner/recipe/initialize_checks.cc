// The checks of `initialize`: that every part of every module has one source of weights.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "planner/base/text/near_name.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/remote_names.h"
#include "planner/recipe/model_facts.h"
#include "planner/recipe/recipe_checks.h"

namespace planwright {
namespace {

constexpr char kDrawn[] = "drawn";

// The parts of a module that have a source each (planner/state/weights/parts.h).
std::vector<std::string> PartsOf(const ModuleRecipe& module) {
  if (CarriesLoss(module.model)) return {*module.name};
  return {Cat(*module.name, ".backbone"), Cat(*module.name, ".projection")};
}

// The part of a module's adapters, which are drawn without a source.
std::string AdapterOf(const ModuleRecipe& module) { return Cat(*module.name, ".adapter"); }

// The parts that a source is for; none if it is for nothing that there is.
std::vector<std::string> Covered(const Recipe& recipe, const std::string& name) {
  for (const ModuleRecipe& module : recipe.modules) {
    if (module.adapter && name == AdapterOf(module)) return {name};
    const std::vector<std::string> parts = PartsOf(module);
    if (name == *module.name) return parts;
    if (std::find(parts.begin(), parts.end(), name) != parts.end()) return {name};
  }
  return {};
}

void CheckParts(const Recipe& recipe, const InitializeRecipe& initialize, Diagnostics& problems) {
  std::vector<std::string> known;
  for (const ModuleRecipe& module : recipe.modules) {
    known.push_back(*module.name);
    const std::vector<std::string> parts = PartsOf(module);
    if (parts.size() > 1) known.insert(known.end(), parts.begin(), parts.end());
    if (module.adapter) known.push_back(AdapterOf(module));
  }
  std::map<std::string, Location> sources;
  for (const WeightSourceRecipe& source : initialize.sources) {
    if (!AllKnown(source.part)) return;
    const std::vector<std::string> parts = Covered(recipe, *source.part);
    if (parts.empty()) {
      problems.Error(DiagnosticKind::kUnknownReference, source.part.where,
                     Cat("there is no module or part ", Quoted(*source.part)),
                     NearNameHelp(*source.part, known, Cat("there are ", absl::StrJoin(known, ", "))));
    }
    for (const std::string& part : parts) {
      const auto [first, added] = sources.try_emplace(part, source.part.where);
      if (added) continue;
      problems
          .Error(DiagnosticKind::kConflictingKeys, source.part.where, Cat(part, " has two sources of weights"),
                 "remove one of the two")
          .notes.push_back({first->second, "the other one is here"});
    }
  }
  for (const ModuleRecipe& module : recipe.modules) {
    std::vector<std::string> missing;
    for (const std::string& part : PartsOf(module)) {
      if (!sources.contains(part)) missing.push_back(part);
    }
    if (missing.empty()) continue;
    const std::string name = missing.size() > 1 ? *module.name : missing[0];
    problems
        .Error(DiagnosticKind::kMissingKey, initialize.where, Cat(name, " has no source in `initialize.sources`"),
               Cat("add {for: ", name, ", from: PATH}, or {for: ", name, ", from: drawn}"))
        .notes.push_back({module.name.where, Cat("module ", *module.name, " is here")});
  }
}

// What no file system has is no source on any machine.
void CheckMounted(const Located<std::string>& from, Diagnostics& problems) {
  if (!AllKnown(from)) return;
  const std::string why = NotMounted(*from);
  if (why.empty()) return;
  problems.Error(DiagnosticKind::kBadName, from.where, Cat("`from` is ", Quoted(*from), "; ", why),
                 HowToFetch("from", *from));
}

// Moments go with the weights that they are of, and `from`, whose moments are taken, is what adapters stand on. They
// begin with none, and would be stepped as if they had been there for all the steps of that checkpoint. Returns whether
// it is so.
bool HasMomentsWithoutAdapters(const Recipe& recipe, const InitializeRecipe& initialize, Diagnostics& problems) {
  if (!AllKnown(initialize.optimizer) || !*initialize.optimizer) return false;
  for (const ModuleRecipe& module : recipe.modules) {
    if (!module.adapter || !AllKnown(module.adapter->rank)) continue;
    Diagnostic& problem = problems.Error(
        DiagnosticKind::kConflictingKeys, initialize.optimizer.where,
        Cat("`initialize.optimizer` takes moments from one checkpoint, and has none for the adapters of module ",
            *module.name),
        "remove optimizer; adapters go on with their moments where their own run goes on, in its run directory");
    problem.notes.push_back({module.adapter->rank.where, "the adapters are here"});
    problem.edits = {{"initialize.optimizer", ""}};
    return true;
  }
  return false;
}

// Keys that only one checkpoint can fill.
void CheckState(const Recipe& recipe, const InitializeRecipe& initialize, Diagnostics& problems) {
  const bool told = HasMomentsWithoutAdapters(recipe, initialize, problems);
  if (!AllKnown(initialize.from, initialize.optimizer, initialize.schedule)) return;
  const bool file = initialize.from && initialize.from->value.ends_with(".safetensors");
  const bool sources = !initialize.sources.empty();
  if (!file && !sources) return;
  const Location& where = sources ? initialize.sources[0].where : initialize.from->where;
  const auto conflict = [&](const Location& of, const char* key, const char* what) {
    const std::string why = sources ? Cat("`sources` are several, and ", what, " belong to one checkpoint")
                                    : Cat("`from` names a safetensors file, which has no ", what);
    problems
        .Error(DiagnosticKind::kConflictingKeys, of, Cat("`initialize.", key, "` needs a checkpoint, but ", why),
               Cat("name a checkpoint or a run directory in `from`, or remove ", key))
        .notes.push_back({where, sources ? "sources are here" : "from is here"});
  };
  if (*initialize.optimizer && !told) conflict(initialize.optimizer.where, "optimizer", "moments");
  if (*initialize.schedule == "checkpoint") conflict(initialize.schedule.where, "schedule", "counters");
}

}  // namespace

void CheckInitializeSettings(const Recipe& recipe, const InitializeRecipe& initialize, Diagnostics& problems) {
  if (initialize.from) CheckMounted(*initialize.from, problems);
  for (const WeightSourceRecipe& source : initialize.sources) CheckMounted(source.from, problems);
  const bool sources = !initialize.sources.empty() || recipe.damaged.contains("initialize.sources");
  if (recipe.damaged.contains("initialize") || !AllKnown(initialize.from)) return;
  if (initialize.from && sources) {
    // Sources that are no list, which is told, are none here; then the other key is the place.
    const bool listed = !initialize.sources.empty();
    // A stage extends the recipe of the stage before, and replaces what that began with.
    const bool inherited = listed && initialize.sources[0].where.file && initialize.from->where.file &&
                           *initialize.sources[0].where.file != *initialize.from->where.file;
    Diagnostic& problem = problems.Error(
        DiagnosticKind::kConflictingKeys, listed ? initialize.sources[0].where : initialize.from->where,
        "`initialize.sources` conflicts with `initialize.from`, which is one source of all weights",
        inherited
            ? "remove one of the two; `initialize.sources: []` beside `from` drops those of the recipe that is extended"
            : "remove one of the two");
    if (listed) problem.notes = {{initialize.from->where, "from is here"}};
    return;
  }
  if (!initialize.from && !sources) {
    problems.Error(DiagnosticKind::kMissingKey, initialize.where, "`initialize` names no weights",
                   "add `from`: one source of all weights, or `sources`: one of each module");
    return;
  }
  if (initialize.from && **initialize.from == kDrawn) {
    problems.Error(DiagnosticKind::kConflictingKeys, initialize.from->where,
                   "`initialize.from` is drawn: weights are drawn without `initialize`",
                   "remove `initialize`, or write ./drawn if it is a file");
  }
  // Models that were not read are reported; what their parts are is not known.
  const auto is_known = [](const ModuleRecipe& module) { return AllKnown(module.model.kind); };
  if (sources && !recipe.damaged.contains("modules") && !recipe.damaged.contains("initialize.sources") &&
      std::all_of(recipe.modules.begin(), recipe.modules.end(), is_known))
    CheckParts(recipe, initialize, problems);
  CheckState(recipe, initialize, problems);
}

}  // namespace planwright
