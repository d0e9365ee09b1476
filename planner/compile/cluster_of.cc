#include "planner/compile/cluster_of.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "planner/base/text/text.h"
#include "planner/compile/batches/plan_data.h"
#include "planner/plan/precision.h"
#include "planner/predict/rates/rates.h"

namespace planwright {
namespace {

// A few values each: beside the longest program they still fit into a plan (kMostPlanValues).
constexpr size_t kMostPoints = 2000;

double Or0(const std::optional<Located<double>>& figure) { return figure ? **figure : 0; }

DeviceProfile ProfileOf(const Located<std::string>& name, const Located<std::string>& gpu, ProfileFiles& files,
                        Diagnostics& diagnostics) {
  const std::string path = std::filesystem::path(FolderOf(name.where)) / *name;
  const auto refuse = [&](const std::string& what, const char* help) -> Diagnostic& {
    return diagnostics.Error(DiagnosticKind::kProfileUnusable, name.where, what, help);
  };
  const absl::StatusOr<DeviceProfile>& profile = files.Read(path);
  if (absl::IsUnavailable(profile.status())) {
    // As the recipe names it, not where it lies on this machine.
    refuse(Cat("the profile cannot be read: ", absl::StrReplaceAll(profile.status().message(), {{path, *name}})),
           "name a file that `plan measure` wrote, or remove `profile`");
    return {};
  }
  if (!profile.ok()) {
    refuse(Cat("the profile ", *name, " is damaged or of another version: ", profile.status().message()),
           "measure again: `plan measure` writes the file as a whole");
    return {};
  }
  if (profile->gpu != *gpu) {
    refuse(Cat("the profile ", *name, " was measured on ", profile->gpu == "none" ? "CPU ranks" : profile->gpu, " (",
               profile->device, "), and cluster.gpu is ", *gpu),
           "name a profile of this device, or remove `profile`")
        .notes.push_back({gpu.where, Cat("gpu is ", *gpu, " here")});
  }
  return *profile;
}

// Of a device without a data sheet here: the figures that a prediction needs. What CPU ranks lack comes from a profile,
// and without any figure of speed their steps have no seconds.
void CheckFigures(const ClusterRecipe& recipe, Diagnostics& diagnostics) {
  const DeviceRecipe& device = recipe.device;
  if (!AllKnown(recipe.gpu, recipe.profile, recipe.nodes, recipe.gpus_per_node)) return;
  const bool other = *recipe.gpu == "other";
  const bool cpus_with_speeds =
      *recipe.gpu == "none" && !recipe.profile && (device.peak || device.bandwidth || device.link || device.network);
  if (!other && !cpus_with_speeds) return;
  std::vector<std::string> missing;
  const auto need = [&](const std::optional<Located<double>>& figure, const char* name) {
    if (!figure) missing.push_back(name);
  };
  if (other) need(device.memory, "memory");
  need(device.peak, "peak"), need(device.bandwidth, "bandwidth");
  if (*recipe.gpus_per_node > 1) need(device.link, "link");
  if (*recipe.nodes > 1) need(device.network, "network");
  if (missing.empty()) return;
  std::string names = missing[0];
  for (size_t i = 1; i < missing.size(); ++i) names += (i + 1 < missing.size() ? ", " : " and ") + missing[i];
  diagnostics.Error(DiagnosticKind::kMissingKey, recipe.gpu.where,
                    Cat("`gpu: ", *recipe.gpu, "` says nothing about the device, and `cluster.device` lacks ", names),
                    Cat("add ", names, " to cluster.device, from the device's data sheet"));
}

}  // namespace

const absl::StatusOr<DeviceProfile>& ProfileFiles::Read(const std::string& path) {
  if (const auto found = read_.find(path); found != read_.end()) return found->second;
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kProfileJson.bytes);
  return read_.emplace(path, text.ok() ? ReadProfile(*text) : text.status()).first->second;
}

Cluster ClusterOf(const ClusterRecipe& recipe, ProfileFiles& files, Diagnostics& diagnostics) {
  const DeviceRecipe& device = recipe.device;
  Cluster cluster = {.nodes = static_cast<int>(*recipe.nodes),
                     .gpus_per_node = static_cast<int>(*recipe.gpus_per_node),
                     .gpu = *recipe.gpu,
                     .host_memory = Or0(recipe.host_memory),
                     .device = {.memory = Or0(device.memory),
                                .peak = Or0(device.peak),
                                .bandwidth = Or0(device.bandwidth),
                                .link = Or0(device.link),
                                .network = Or0(device.network)}};
  CheckFigures(recipe, diagnostics);
  if (recipe.profile && AllKnown(recipe.profile, recipe.gpu))
    cluster.profile = ProfileOf(*recipe.profile, recipe.gpu, files, diagnostics);
  return cluster;
}

Cluster ClusterOf(const ClusterRecipe& recipe, Diagnostics& diagnostics) {
  ProfileFiles files;
  return ClusterOf(recipe, files, diagnostics);
}

void CheckProfilePrecision(const Recipe& recipe, const Cluster& cluster, Diagnostics& diagnostics) {
  if (!cluster.profile.measured() || !recipe.cluster.profile || !AllKnown(recipe.precision)) return;
  const auto in_precision = [&](const MeasuredCompute& point) { return point.dtype == DTypeOf(*recipe.precision); };
  if (std::any_of(cluster.profile.compute.begin(), cluster.profile.compute.end(), in_precision)) return;
  diagnostics.Error(
      DiagnosticKind::kProfileUnusable, recipe.cluster.profile->where,
      Cat("the profile ", **recipe.cluster.profile, " has no time of an instruction in ", *recipe.precision),
      "measure this recipe into it with `plan measure`, or remove `profile`");
}

void KeepWhatIsAsked(const ClusterRecipe& recipe, Plan& plan, Diagnostics& diagnostics) {
  DeviceProfile& profile = plan.cluster.profile;
  if (!profile.measured()) return;
  KeepAskedPoints(plan, profile);
  if (profile.compute.empty()) {
    diagnostics.Error(
        DiagnosticKind::kProfileUnusable, recipe.profile->where,
        Cat("the profile ", **recipe.profile, " has no time of an instruction of this plan in ", plan.precision),
        "measure this recipe into it with `plan measure`, or remove `profile`");
    return;
  }
  for (MeasuredCompute& point : profile.compute) point.sizes.clear();
  const size_t points = profile.compute.size() + profile.communication.size();
  if (points <= kMostPoints) return;
  diagnostics.Error(DiagnosticKind::kProfileUnusable, recipe.profile->where,
                    Cat("the profile ", **recipe.profile, " has ", points,
                        " points of instructions that this plan has, and a plan has room for ", kMostPoints),
                    "measure fewer recipes into one file: the one that is planned, and those like it");
}

}  // namespace planwright
