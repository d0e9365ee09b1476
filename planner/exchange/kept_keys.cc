#include "planner/exchange/kept_keys.h"

#include "planner/base/files/file_io.h"
#include "planner/exchange/config_file.h"

namespace planwright {

KeptKeys KeptKeysOf(const Plan& plan, const std::string& language) {
  KeptKeys kept;
  if (!plan.initialize) return kept;
  kept.folder = ResolvePath(plan.initialize->base, plan.initialize->from);
  for (const WeightSourcePlan& source : plan.initialize->sources) {
    if (source.part == language) kept.folder = ResolvePath(source.base, source.from);
  }
  const absl::StatusOr<nlohmann::ordered_json> config = ReadConfigFile(kept.folder);
  if (!config.ok()) return kept;  // a run, a file of weights, or "drawn"
  const nlohmann::ordered_json of_language = LanguageOfConfig(*config);
  const auto keep = [&](const char* key, bool or_null) {
    const auto found = of_language.find(key);
    if (found != of_language.end() && (found->is_number_unsigned() || (or_null && found->is_null())))
      kept.values[key] = *found;
  };
  keep("max_position_embeddings", false);
  keep("bos_token_id", true);
  return kept;
}

}  // namespace planwright
