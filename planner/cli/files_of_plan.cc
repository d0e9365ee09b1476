#include "planner/cli/files_of_plan.h"

#include <filesystem>
#include <map>
#include <memory>

#include "planner/base/files/file_io.h"
#include "planner/data/samples/sample_source.h"
#include "planner/state/weights/base_digest.h"
#include "planner/state/weights/fit.h"
#include "planner/state/weights/parts.h"

namespace planwright {
namespace {

bool IsHere(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

void CompareWeights(const Plan& plan, std::vector<FileOfPlan>& files) {
  const absl::StatusOr<std::vector<PartSource>> sources = SourcesOfParts(plan);
  std::map<std::string, std::string> absent;  // by path: as the recipe names it
  if (sources.ok()) {
    for (const PartSource& source : *sources) {
      if (!source.path.empty() && !IsHere(source.path)) absent.emplace(source.path, source.from);
    }
  }
  for (const auto& [path, named] : absent) files.push_back({.path = path, .named = named, .here = false});
  if (!absent.empty()) return;
  const WeightsFit fit = FitWeights(plan);
  absl::Status fits = fit.status();
  if (fits.ok()) fits = CheckBaseOfAdapters(plan, fit);
  if (!fits.ok()) files.push_back({.problem = fits});
}

void CompareBatch(const DataPlan& data, const Budget& budget, std::vector<FileOfPlan>& files) {
  if (!RowOf(data.kind).batch_file) return;
  FileOfPlan file = {.key = FileOfPlan::Key::kSamples, .path = ResolvePath(data.base, data.path)};
  file.here = IsHere(file.path);
  Plan alone;  // what a source of samples looks at
  alone.data = data, alone.budget = budget;
  if (file.here) file.problem = OpenSampleSource(alone).status();
  if (!file.here || !file.problem.ok()) files.push_back(std::move(file));
}

}  // namespace

std::vector<FileOfPlan> CompareFiles(const Plan& plan, bool weights) {
  std::vector<FileOfPlan> files;
  if (weights && plan.initialize) CompareWeights(plan, files);
  CompareBatch(plan.data, plan.budget, files);
  for (const EvaluationSet& set : plan.evaluation.sets) CompareBatch(set.data, plan.budget, files);
  return files;
}

}  // namespace planwright
