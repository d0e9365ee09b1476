#include "planner/search/results/tunable_keys.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/base/text/near_name.h"

namespace planwright {

std::vector<std::string> TunableKeys(const Recipe& recipe) {
  std::vector<std::string> keys;
  for (const ModuleRecipe& module : recipe.modules) {
    for (const char* key :
         {"placement.first_rank", "placement.ranks", "parallel.tp", "parallel.cp", "parallel.pp", "parallel.ep",
          "parallel.expert_tp", "parallel.stage_layers", "parallel.dispatch", "parallel.overlap_dispatch", "recompute"})
      keys.push_back(absl::StrCat("modules.", *module.name, ".", key));
  }
  for (const char* key :
       {"batch.micro_samples", "gradients.buckets", "gradients.overlap_reduce", "gradients.overlap_gather"})
    keys.emplace_back(key);
  return keys;
}

absl::Status CheckFixedKeys(const Recipe& recipe, const std::vector<std::string>& fixed) {
  const std::vector<std::string> keys = TunableKeys(recipe);
  std::vector<std::string> words = {"modules", "batch", "gradients"};
  for (const ModuleRecipe& module : recipe.modules) {
    for (const char* section : {"", ".placement", ".parallel"})
      words.push_back(absl::StrCat("modules.", *module.name, section));
  }
  words.insert(words.end(), keys.begin(), keys.end());
  std::string problems;
  for (const std::string& key : fixed) {
    if (std::find(words.begin(), words.end(), key) != words.end()) continue;
    // A recipe may give dp, but it is no choice of its own.
    const bool dp = absl::StartsWith(key, "modules.") && absl::EndsWith(key, ".parallel.dp");
    absl::StrAppend(&problems, problems.empty() ? "" : "\n", "option `--fix`: ",
                    dp ? absl::StrCat("`", key, "` follows from placement.ranks, tp, cp and pp: fix these")
                       : absl::StrCat("a search does not change `", key, "`; ",
                                      NearNameHelp(key, words, "`plan tune --help` lists what it changes")));
  }
  return problems.empty() ? absl::OkStatus() : absl::InvalidArgumentError(problems);
}

}  // namespace planwright
