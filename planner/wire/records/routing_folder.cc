#include "planner/wire/records/routing_folder.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"
#include "planner/plan/plan_json.h"
#include "planner/wire/records/routing_format.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr size_t kMostShown = 120;  // characters of a value

bool HasExperts(const Plan& plan) {
  return std::any_of(plan.modules.begin(), plan.modules.end(),
                     [](const Module& module) { return module.expert_layers() > 0; });
}

absl::Status NoExperts(const char* option) {
  return absl::InvalidArgumentError(
      absl::StrCat("no module of this plan has experts, so there are no choices of experts: leave out ", option));
}

// What decides whether choices fit, by its name in the recipe. A file has the choices of a layer by the number of the
// sample in the run, position and rank among the top k. What a sample is follows from `data`. At which step it comes
// follows from global_samples.
OrderedJson SummaryOf(const Plan& plan) {
  OrderedJson summary;
  summary["batch.sequence_length"] = plan.budget.sequence_length;
  summary["batch.global_samples"] = plan.budget.global_samples;
  for (const Module& module : plan.modules) {
    if (module.expert_layers() == 0) continue;
    summary[module.name + ".moe.experts"] = module.experts();
    summary[module.name + ".moe.top_k"] = module.top_k();
    OrderedJson& layers = summary[module.name + ".moe.layers"] = OrderedJson::array();
    for (size_t i = 0; i < module.layers.size(); ++i) {
      if (module.layers[i].expert_row >= 0) layers.push_back(i);
    }
  }
  Plan data_alone;
  data_alone.data = plan.data;
  data_alone.data.base.clear();  // the digest does not cover it either
  const OrderedJson tree = PlanToJson(data_alone);
  for (const auto& [key, value] : tree["data"].items()) summary["data." + key] = value;
  return summary;
}

std::string Shown(const OrderedJson& summary, const std::string& key) {
  if (!summary.contains(key)) return "none";
  const std::string text = JsonText(summary[key]);
  return text.size() <= kMostShown ? text : text.substr(0, kMostShown) + "...";
}

std::vector<std::string> Differences(const OrderedJson& expected, const OrderedJson& found) {
  std::vector<std::string> differences;
  const auto add = [&](const std::string& key) {
    differences.push_back(
        absl::StrCat("  ", key, ": expected ", Shown(expected, key), ", found ", Shown(found, key), "\n"));
  };
  for (const auto& [key, value] : expected.items()) {
    if (!found.contains(key) || found[key] != value) add(key);
  }
  for (const auto& [key, value] : found.items()) {
    if (key != "steps" && !expected.contains(key)) add(key);
  }
  return differences;
}

// The only key of routing.json while a run records, with the identity of the run.
constexpr char kRecording[] = "recording";

absl::StatusOr<OrderedJson> ReadSummary(const std::string& folder) {
  const std::string path = RoutingSummaryPath(folder);
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kRoutingJson.bytes);
  if (!text.ok()) return text.status();
  OrderedJson summary = ParseOrderedJson(*text, kRoutingJson).value_or(OrderedJson());
  if (text->empty() || summary.contains(kRecording)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the run that records choices in ", folder,
                     " is not done, or has failed: wait for its end, or record them again into another folder"));
  }
  if (!summary.is_object() || !summary.contains("steps") || !summary["steps"].is_number_integer()) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is damaged: expected an object with `steps`. ",
                                                      "Record the choices again into another folder"));
  }
  return summary;
}

// Every file has the size that follows from the summary. A rank would notice a missing file only at its first step.
absl::Status CheckSizes(const Plan& plan, int64_t steps, const std::string& folder) {
  for (const Module& module : plan.modules) {
    const uintmax_t size = sizeof(RoutingId) * static_cast<uintmax_t>(steps) * plan.budget.global_samples *
                           plan.budget.sequence_length * module.top_k();
    for (const LayerSummary& layer : module.layers) {
      if (layer.expert_row < 0) continue;
      const std::string path = RoutingPath(folder, layer.frame);
      std::error_code error;
      const uintmax_t found = fs::file_size(path, error);
      if (!error && found == size) continue;
      return absl::FailedPreconditionError(absl::StrCat(path,
                                                        error ? absl::StrCat(" cannot be read: ", error.message())
                                                              : absl::StrCat(" has ", found, " bytes, expected ", size),
                                                        ". Record the choices again into another folder"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRecordRouting(const Plan& plan, const std::string& folder) {
  if (!HasExperts(plan)) return NoExperts("--record-routing");
  constexpr int64_t kMostExperts = int64_t{std::numeric_limits<RoutingId>::max()} + 1;
  for (const Module& module : plan.modules) {
    if (module.experts() <= kMostExperts) continue;
    return absl::InvalidArgumentError(absl::StrCat("--record-routing records the choices among at most ", kMostExperts,
                                                   " experts, and ", module.name, " has ", module.experts()));
  }
  std::error_code error;
  if (!fs::exists(folder, error) && !error) return absl::OkStatus();
  for (fs::directory_iterator file(folder, error), end; !error && file != end; file.increment(error)) {
    if (file->path().extension() != ".i16" && file->path() != RoutingSummaryPath(folder)) continue;
    return absl::AlreadyExistsError(absl::StrCat(folder, " already holds recorded choices (",
                                                 file->path().filename().string(),
                                                 "): choose another folder for --record-routing, or remove this one"));
  }
  if (!error) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--record-routing needs a folder; ", folder, " cannot be used as one: ", error.message()));
}

absl::Status CheckReplayRouting(const Plan& plan, int64_t steps, const std::string& folder, const char* option) {
  if (!HasExperts(plan)) return NoExperts(option);
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return absl::NotFoundError(
        absl::StrCat("there is no folder ", folder, ": give ", option, " one that --record-routing has written"));
  }
  if (!fs::exists(RoutingSummaryPath(folder), error)) {
    return absl::NotFoundError(absl::StrCat("the folder ", folder,
                                            " holds no record of choices (there is no routing.json in it): give ",
                                            option, " one that --record-routing has written"));
  }
  const absl::StatusOr<OrderedJson> found = ReadSummary(folder);
  if (!found.ok()) return found.status();
  std::vector<std::string> differences = Differences(SummaryOf(plan), *found);
  const auto recorded = (*found)["steps"].get<int64_t>();
  if (steps > recorded)
    differences.push_back(absl::StrCat("  steps: expected at least ", steps, ", found ", recorded, "\n"));
  if (differences.empty()) return CheckSizes(plan, recorded, folder);
  return absl::InvalidArgumentError(
      absl::StrCat("the choices in ", folder, " do not fit this plan:\n", absl::StrJoin(differences, ""),
                   "use them with the recipe that recorded them, in any layout",
                   steps > recorded ? absl::StrCat(" and with --steps ", recorded, " at most") : "",
                   "; or record the choices of this recipe into another folder"));
}

absl::Status ClaimRoutingFolder(const std::string& folder, const std::string& run_id, bool goes_on) {
  const std::string path = RoutingSummaryPath(folder);
  std::error_code error;
  if (goes_on && !fs::exists(path, error)) {
    return absl::FailedPreconditionError(absl::StrCat("the choices that this run has recorded in ", folder,
                                                      " are gone (there is no routing.json in it)",
                                                      ": bring them back, or go on without --record-routing"));
  }
  if (absl::Status status = MakeDirectories(folder); !status.ok()) return status;
  const std::string claim = JsonText(OrderedJson{{kRecording, run_id}}) + "\n";
  const absl::Status claimed = ClaimFile(path);
  if (claimed.ok()) {
    const absl::Status written = WriteFileAtomically(path, claim);
    if (!written.ok()) fs::remove(path, error);  // so that it is in nobody's way
    return written;
  }
  if (!absl::IsAlreadyExists(claimed)) return claimed;
  const absl::StatusOr<std::string> found = ReadWholeFile(path, kRoutingJson.bytes);
  if (!found.ok()) return found.status();
  if (*found == claim) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("another run records into ", folder, ": choose another folder for --record-routing"));
}

absl::Status FinishRoutingFolder(const Plan& plan, int64_t steps, const std::string& folder) {
  OrderedJson summary = {{"steps", steps}};
  summary.update(SummaryOf(plan));
  return WriteFileAtomically(RoutingSummaryPath(folder), JsonText(summary, 1) + "\n");
}

}  // namespace planwright
