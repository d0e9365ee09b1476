#include "planner/cli/load_plan.h"

#include <algorithm>
#include <iostream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "planner/base/json/json_text.h"
#include "planner/cli/files_of_plan.h"
#include "planner/cli/terminal.h"
#include "planner/compile/advise.h"
#include "planner/data/samples/count_samples.h"
#include "planner/data/samples/index_files.h"
#include "planner/plan/earlier_parts.h"
#include "planner/plan/origin_paths.h"
#include "planner/plan/plan_json.h"
#include "planner/recipe/diagnostics/render.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/verify/verify.h"

namespace planwright {
namespace {

constexpr size_t kMostViolations = 100;  // that are printed; a damaged plan can break a rule at every instruction

void LoadCompiled(const std::string& path, LoadedPlan& loaded) {
  auto fail = [&](DiagnosticKind kind, const std::string& message) { loaded.problems.Error(kind, {}, message); };
  if (!loaded.overrides.empty()) {
    return fail(DiagnosticKind::kPlanUnreadable,
                path + " is a compiled plan: overrides such as `" + loaded.overrides[0] + "` need its recipe");
  }
  absl::StatusOr<std::string> text = ReadWholeFile(path, kPlanJson.bytes);
  if (!text.ok()) return fail(DiagnosticKind::kFileUnreadable, std::string(text.status().message()));
  absl::StatusOr<Plan> plan = ReadPlan(*text);
  if (!plan.ok()) return fail(DiagnosticKind::kPlanUnreadable, path + ": " + std::string(plan.status().message()));
  DropEarlierParts(*plan);
  const std::vector<Violation> violations = VerifyPlan(*plan);
  for (const Violation& violation : violations) {
    fail(DiagnosticKind::kBrokenRule, path + ": " + violation.rule + ": " + violation.message);
    if (&violation == &violations[kMostViolations - 1]) break;
  }
  if (violations.size() > kMostViolations) {
    fail(DiagnosticKind::kBrokenRule,
         path + ": " + std::to_string(violations.size() - kMostViolations) + " more are not listed");
  }
  if (!loaded.problems.has_errors()) loaded.plan = *std::move(plan);
}

// Where a recipe names its weights, its batch and its sources; the last also of each evaluation set.
struct NamedFiles {
  Location weights, batch;
  std::vector<Location> sources;
  std::vector<std::vector<Location>> of_sets;
};

std::vector<Location> NamedBy(const std::vector<SourceRecipe>& sources) {
  std::vector<Location> named;
  for (const SourceRecipe& source : sources) named.push_back(source.where);
  return named;
}

NamedFiles NamedBy(const Recipe& recipe) {
  NamedFiles named;
  if (recipe.initialize && recipe.initialize->from) named.weights = recipe.initialize->from->where;
  if (recipe.initialize && !recipe.initialize->sources.empty())
    named.weights = recipe.initialize->sources[0].from.where;
  if (recipe.data.path) named.batch = recipe.data.path->where;
  named.sources = NamedBy(recipe.data.sources);
  if (recipe.evaluation) {
    for (const EvaluationSetRecipe& set : recipe.evaluation->sets) named.of_sets.push_back(NamedBy(set.sources));
  }
  return named;
}

// Images that shards name by path and that are not there, where an index knows them.
void LookForImages(const DataPlan& data, const std::vector<Location>& named, Diagnostics& problems) {
  if (!RowOf(data.kind).indexed) return;
  const std::map<std::string, MissingImages> missing = MissingImagesAtHand(data);
  for (size_t i = 0; i < data.sources.size(); ++i) {
    const auto found = missing.find(data.sources[i].name);
    if (found == missing.end()) continue;
    const MissingImages& images = found->second;
    problems.Error(DiagnosticKind::kFilesDoNotFit, i < named.size() ? named[i] : Location(),
                   absl::StrCat(images.what, "; the first: ", absl::StrJoin(images.paths, ", ")), images.help);
  }
}

void Compare(const NamedFiles& named, LoadedPlan& loaded, std::vector<std::string>& absent) {
  for (const FileOfPlan& file : CompareFiles(*loaded.plan, /*weights=*/true)) {
    if (!file.here) {
      absent.push_back(file.path);
      continue;
    }
    const bool weights = file.key == FileOfPlan::Key::kWeights;
    // A list has a line for each tensor.
    std::vector<std::string> lines = absl::StrSplit(std::string(file.problem.message()), '\n');
    constexpr size_t kMost = 4;
    const size_t all = lines.size();
    lines.resize(std::min(all, kMost));
    for (std::string& line : lines) absl::StripAsciiWhitespace(&line);
    std::string message = lines[0];
    if (all > 1) absl::StrAppend(&message, " ", absl::StrJoin(lines.begin() + 1, lines.end(), "; "));
    if (all > kMost) absl::StrAppend(&message, "; and ", all - kMost, " more");
    loaded.problems.Error(DiagnosticKind::kFilesDoNotFit, weights ? named.weights : named.batch, message,
                          weights ? "`plan weights` lists what fits and what does not" : "");
  }
  LookForImages(loaded.plan->data, named.sources, loaded.problems);
  const std::vector<EvaluationSet>& sets = loaded.plan->evaluation.sets;
  for (size_t i = 0; i < sets.size(); ++i)
    LookForImages(sets[i].data, i < named.of_sets.size() ? named.of_sets[i] : std::vector<Location>(), loaded.problems);
  if (loaded.problems.has_errors()) loaded.plan.reset();
}

// Compiles what was read, if something was.
void Compile(const std::optional<Recipe>& recipe, bool timed, std::vector<std::string>* absent, LoadedPlan& loaded) {
  if (recipe) loaded.plan = CompileWithAdvice(*recipe, loaded.problems, timed ? &loaded.time.emplace() : nullptr);
  if (absent && loaded.plan) Compare(NamedBy(*recipe), loaded, *absent);
  if (!loaded.plan) loaded.time.reset();
}

LoadedPlan Load(const std::string& path, const std::vector<std::string>& overrides, bool timed,
                std::vector<std::string>* absent = nullptr) {
  LoadedPlan loaded;
  loaded.overrides = overrides;
  if (path.ends_with(".json")) {
    LoadCompiled(path, loaded);
    if (timed && loaded.plan) loaded.time = TimeStep(*loaded.plan);
    if (absent && loaded.plan) Compare({}, loaded, *absent);
    return loaded;
  }
  Compile(ReadRecipe(path, overrides, loaded.problems), timed, absent, loaded);
  if (loaded.plan) MakeOriginsRelative(path, *loaded.plan);
  return loaded;
}

LoadedPlan Load(const YamlNode& recipe, const std::vector<std::string>& overrides,
                std::vector<std::string>* absent = nullptr) {
  LoadedPlan loaded;
  loaded.overrides = overrides;
  Compile(ReadRecipe(recipe, overrides, loaded.problems), /*timed=*/false, absent, loaded);
  return loaded;
}

// `loaded`, or FailedPrecondition: a set has `samples: all`, and nothing says how many these are.
absl::StatusOr<bool> CheckSetsAreCounted(const std::string& path, const Plan& plan, bool loaded) {
  for (const EvaluationSet& set : plan.evaluation.sets) {
    if (set.samples > 0) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": evaluation set ", set.name, " has `samples: all`, and the folder of its index, ", set.data.index,
        ", does not say how many these are: `plan data index` says why; or write a number"));
  }
  return loaded;
}

}  // namespace

LoadedPlan LoadPlan(const std::string& path, const std::vector<std::string>& overrides) {
  return Load(path, overrides, /*timed=*/false);
}

LoadedPlan LoadPlan(const YamlNode& recipe, const std::vector<std::string>& overrides) {
  return Load(recipe, overrides);
}

LoadedPlan LoadTimedPlan(const std::string& path, const std::vector<std::string>& overrides) {
  return Load(path, overrides, /*timed=*/true);
}

LoadedPlan LoadComparedPlan(const std::string& path, const std::vector<std::string>& overrides,
                            std::vector<std::string>& absent) {
  return Load(path, overrides, /*timed=*/false, &absent);
}

LoadedPlan LoadComparedPlan(const YamlNode& recipe, const std::vector<std::string>& overrides,
                            std::vector<std::string>& absent) {
  return Load(recipe, overrides, &absent);
}

bool HasUncountedSets(const Plan& plan) {
  const std::vector<EvaluationSet>& sets = plan.evaluation.sets;
  return std::any_of(sets.begin(), sets.end(), [](const EvaluationSet& set) { return set.samples == 0; });
}

absl::StatusOr<bool> LoadCounted(const std::string& path, const std::vector<std::string>& overrides, Plan& plan) {
  bool known = plan.data.counted.known();
  const auto changed = [&](const DataPlan& data, bool all = false) {
    // Text is counted for `samples: all`, and for how long steps with packed documents take.
    const bool trained = &data == &plan.data, timed = trained && data.packed_documents;
    if (data.encoders.empty() && !timed && !data.counted.known() && !all) return false;
    const std::optional<CountedSamples> now = CountedAtHand(data, plan.budget.sequence_length);
    if (!now) return false;
    return trained ? *now != data.counted : now->digest != data.counted.digest || now->images != data.counted.images;
  };
  bool anew = changed(plan.data);
  for (const EvaluationSet& set : plan.evaluation.sets) {
    const bool all = set.samples == 0;
    anew = anew || changed(set.data, all);
    known = known || all || set.data.counted.known();
  }
  if (!anew) return CheckSetsAreCounted(path, plan, false);
  if (path.ends_with(".json")) {
    if (!known) return false;  // samples count as full, which is never too little
    return absl::FailedPreconditionError(path +
                                         " was compiled when the index of its data had counted other samples: compile "
                                         "the recipe again");
  }
  LoadedPlan loaded = LoadPlan(path, overrides);
  if (!loaded.plan) {
    loaded.PrintProblems();
    return absl::InvalidArgumentError(path + " does not compile with what the index of its data has counted");
  }
  plan = *std::move(loaded.plan);
  return CheckSetsAreCounted(path, plan, true);
}

int LoadedPlan::exit_status() const {
  for (const Diagnostic& problem : problems.sorted()) {
    const bool unreadable =
        problem.kind == DiagnosticKind::kFileUnreadable || problem.kind == DiagnosticKind::kPlanUnreadable;
    if (unreadable && !problem.where.known()) return kExitUsage;
  }
  return kExitInvalid;
}

nlohmann::ordered_json ValidityJson(const LoadedPlan& loaded) {
  return {{"valid", loaded.plan.has_value()}, {"problems", RenderJson(loaded.problems.sorted())}};
}

void LoadedPlan::PrintProblems(bool as_json, const std::map<std::string, std::string>& sources) const {
  if (as_json && !plan) {
    std::cout << JsonText(ValidityJson(*this), 2) << "\n";
    return;
  }
  SourceTexts texts;
  AddOverrides(overrides, texts);
  for (const auto& [name, text] : sources) texts.Add(name, text);
  std::cerr << RenderText(problems.sorted(), texts, WantsColor(2));
}

absl::StatusOr<RecipeWords> SplitWords(const Arguments& arguments, const std::vector<std::string>& names) {
  RecipeWords result;
  const std::vector<std::string>& words = arguments.words;
  if (words.empty())
    return absl::InvalidArgumentError("no recipe is given: name a recipe (.yaml) or a compiled plan (.json)");
  result.path = words[0];
  for (size_t at = 1; at < words.size(); ++at) {
    if (words[at].find('=') != std::string::npos) {
      result.overrides.push_back(words[at]);
    } else if (result.names.size() < names.size()) {
      result.names.push_back(words[at]);
    } else {
      return absl::InvalidArgumentError("`" + words[at] + "` is not an override; an override has the form a.b=c");
    }
  }
  if (result.names.size() < names.size())
    return absl::InvalidArgumentError("no " + names[result.names.size()] + " is given");
  return result;
}

}  // namespace planwright
