#include "planner/cli/trial_files.h"

#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "planner/base/files/file_io.h"
#include "planner/cli/open_fleet.h"
#include "planner/data/samples/shard_list.h"
#include "planner/state/weights/parts.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFiles = 1000;

void AddData(const DataPlan& data, std::set<std::string>& paths) {
  const auto add = [&](const std::string& path) { paths.insert(AbsolutePath(ResolvePath(data.base, path))); };
  if (RowOf(data.kind).batch_file) add(data.path);
  for (const SourcePlan& source : data.sources) {
    const absl::StatusOr<std::vector<std::string>> shards = ExpandAllShards(data.base, source.shards);
    for (const std::string& shard : shards.ok() ? *shards : std::vector<std::string>()) add(shard);
    if (!source.path.empty()) add(source.path + ".bin"), add(source.path + ".idx");
  }
}

// A folder of weights: what lies in it.
void AddWeights(const std::string& path, std::set<std::string>& paths) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    paths.insert(path);
    return;
  }
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code unknown;
    if (entry->is_regular_file(unknown)) paths.insert(entry->path().string());
  }
}

}  // namespace

TrialFiles FilesOfTrial(const Plan& plan) {
  std::set<std::string> paths;
  AddData(plan.data, paths);
  for (const EvaluationSet& set : plan.evaluation.sets) AddData(set.data, paths);
  if (const auto sources = SourcesOfParts(plan); plan.initialize && sources.ok()) {
    for (const PartSource& source : *sources) {
      if (!source.path.empty()) AddWeights(AbsolutePath(source.path), paths);
    }
  }
  TrialFiles files;
  const std::vector<std::string> all(paths.begin(), paths.end());
  const size_t most = std::min(all.size(), kMostFiles);
  for (size_t i = 0; i < most; ++i) files.paths.push_back(all[i * all.size() / most]);
  files.left_out = static_cast<int64_t>(all.size() - most);
  return files;
}

}  // namespace planwright
