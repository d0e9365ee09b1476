#include "planner/compile/batches/lint_trained.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "planner/base/text/limits.h"
#include "planner/compile/batches/plan_data.h"
#include "planner/data/samples/brace_pattern.h"
#include "planner/plan/remote_names.h"
#include "planner/recipe/recipe_tree.h"

namespace planwright {
namespace {

using std::string;

constexpr int64_t kMostNamesCompared = 1 << 16;
constexpr int64_t kMostMatches = 1 << 20;  // of a name with a pattern

// A name with * ? [, of which what is before them is a folder without detours.
struct Glob {
  string folder, rest;

  bool Matches(const string& name) const {
    return name.starts_with(folder) &&
           fnmatch(rest.c_str(), name.c_str() + folder.size(), FNM_PATHNAME | FNM_PERIOD) == 0;
  }
  bool operator==(const Glob&) const = default;
};

// What sources name, absolute: each with the line that names it.
struct Files {
  std::map<string, const Location*> names;  // in an order, as one of them is told
  std::vector<std::pair<Glob, const Location*>> globs;
};

string Plain(const string& path) {
  return std::filesystem::absolute(std::filesystem::path(path)).lexically_normal().string();
}

// The names that the braces of a pattern make, as long as `left` lasts, and the files that were found for it.
void AddShards(const Located<string>& pattern, const string& base, LookedFor& looked_for, int64_t& left, Files& into) {
  if (!AllKnown(pattern) || !NotMounted(*pattern).empty()) return;
  const absl::StatusOr<BracePattern> parsed = BracePattern::Parse(*pattern);
  if (!parsed.ok() || parsed->count() > kMostShards) return;
  // Of many names only the folder that they share is looked at for detours.
  const size_t slash = pattern->substr(0, pattern->find_first_of("*?[{")).rfind('/');
  const size_t begin = slash == string::npos ? 0 : slash + 1;
  string folder = Plain(ResolvePath(pattern->substr(0, begin).append("."), pattern.where));
  if (!folder.ends_with('/')) folder += '/';
  bool has_glob = false;
  parsed->EachName([&](const string& name) {
    if (left-- <= 0) return false;
    const string rest = name.substr(begin);
    if (rest.find_first_of("*?[") == string::npos) {
      into.names.emplace(folder + rest, &pattern.where);
    } else {
      has_glob = true;
      into.globs.push_back({{folder, rest}, &pattern.where});
    }
    return true;
  });
  if (!has_glob) return;
  for (const string& file : looked_for.OfPattern(base, *pattern).files) into.names.emplace(Plain(file), &pattern.where);
}

Files FilesOf(std::span<const SourceRecipe> sources, const std::optional<Located<string>>& path, LookedFor& looked_for,
              int64_t& left) {
  Files files;
  const auto add = [&](const Located<string>& file) {
    if (AllKnown(file)) files.names.emplace(Plain(ResolvePath(*file, file.where)), &file.where);
  };
  for (const SourceRecipe& source : sources) {
    const string base = FolderOf(sources.front().where);
    for (const Located<string>& shard : source.shards) AddShards(shard, base, looked_for, left, files);
    if (source.path) add(*source.path);
  }
  if (path) add(*path);
  return files;
}

// One file or pattern that both have.
struct Common {
  string name;
  const Location *of_set, *of_training;
};

// One for each line of the set. `matches`: how often a name may still be matched with a pattern.
std::vector<Common> CommonOf(const Files& set, const Files& training, int64_t& matches) {
  std::vector<Common> common;
  const auto take = [&](const string& name, const Location* of_set, const Location* of_training) {
    const bool told =
        std::any_of(common.begin(), common.end(), [&](const Common& one) { return one.of_set == of_set; });
    if (!told) common.push_back({name, of_set, of_training});
  };
  for (const auto& [name, where] : set.names) {
    if (const auto found = training.names.find(name); found != training.names.end()) {
      take(name, where, found->second);
      continue;
    }
    for (const auto& [glob, of_training] : training.globs) {
      if (matches-- <= 0) break;
      if (glob.Matches(name)) take(name, where, of_training);
    }
  }
  for (const auto& [glob, where] : set.globs) {
    for (const auto& [other, of_training] : training.globs) {
      if (matches-- <= 0) break;
      if (glob == other) take(glob.folder + glob.rest, where, of_training);
    }
    for (const auto& [name, of_training] : training.names) {
      if (matches-- <= 0) break;
      if (glob.Matches(name)) take(name, where, of_training);
    }
  }
  return common;
}

Diagnostic& Warn(const Located<string>& set, const Location& where, const string& what, const Location& trained,
                 const string& help, Diagnostics& diagnostics) {
  Diagnostic& problem =
      diagnostics.Warning(DiagnosticKind::kEvaluatesTrainingData, where,
                          absl::StrCat("evaluation set ", *set, " has ", what,
                                       ": its loss says nothing of samples that the model has not seen"),
                          help);
  problem.notes.push_back({trained, "the training has them here"});
  return problem;
}

}  // namespace

void LintTrained(const Recipe& recipe, LookedFor& looked_for, Diagnostics& diagnostics) {
  const DataRecipe& data = recipe.data;
  if (!recipe.evaluation || !AllKnown(data.kind)) return;
  int64_t left = kMostNamesCompared, left_of_sets = kMostNamesCompared, matches = kMostMatches;
  const Files training = FilesOf(data.sources, data.path, looked_for, left);
  const std::vector<EvaluationSetRecipe>& sets = recipe.evaluation->sets;
  for (const EvaluationSetRecipe& set : std::span(sets).first(std::min(sets.size(), kMostEvaluationSets))) {
    if (!AllKnown(set.name)) continue;
    if (RowOf(*data.kind).drawn && set.seed && AllKnown(set.seed) && **set.seed == *data.seed) {
      const string other = absl::StrCat(*data.seed < kLargestNumber ? *data.seed + 1 : 0);
      Warn(set.name, set.seed->where, "the seed of the training",
           data.seed.where.known() ? data.seed.where : data.where,
           absl::StrCat("use another seed for the set, such as ", other), diagnostics)
          .edits = {{"", other}};
    }
    const Files files = FilesOf(set.sources, set.path, looked_for, left_of_sets);
    for (const Common& common : CommonOf(files, training, matches)) {
      Warn(set.name, *common.of_set, absl::StrCat("files that the run is trained on, such as ", common.name),
           *common.of_training, "use others for the set, or leave them out of the training", diagnostics);
    }
  }
}

}  // namespace planwright
