#include "planner/run/slurm/job_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "nlohmann/json.hpp"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/status_macros.h"
#include "planner/plan/earlier_parts.h"
#include "planner/plan/plan_json.h"
#include "planner/run/slurm/job_script.h"
#include "planner/run/slurm/submitted_job.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

std::string PlanFile(const JobFiles& job, size_t number) {
  const std::string name = job.measure ? "part-" : "fallback-";
  return job.options.run_dir + "/job/" +
         (number == 0 && !job.measure ? "plan.json" : name + std::to_string(number) + ".json");
}

Json MeasureJson(const MeasureJob& measure) {
  Json parts = Json::array();
  for (const MeasureJob::Part& part : measure.parts)
    parts.push_back({{"what", part.what}, {"rounds", part.rounds}, {"fullest", part.fullest}});
  return {{"output", measure.output}, {"parts", std::move(parts)}};
}

MeasureJob ReadMeasure(const Json& json) {
  MeasureJob measure = {.output = json.at("output").get<std::string>()};
  for (const Json& part : json.at("parts")) {
    measure.parts.push_back({.what = part.at("what").get<std::string>(),
                             .rounds = part.at("rounds").get<bool>(),
                             .fullest = part.at("fullest").get<double>()});
  }
  return measure;
}

}  // namespace

const Plan& LargestPlan(const std::vector<Plan>& plans) {
  return *std::max_element(plans.begin(), plans.end(),
                           [](const Plan& a, const Plan& b) { return NodesOfPlan(a) < NodesOfPlan(b); });
}

std::string LaunchJson(const JobFiles& job) {
  Json json = {{"program", job.program},       {"folder", job.folder},      {"executor", job.options.executor},
               {"device", job.options.device}, {"plans", job.plans.size()}, {"environment", job.environment}};
  if (!job.options.passed_on.empty()) json["passed_on"] = job.options.passed_on;
  if (job.options.steps) json["steps"] = *job.options.steps;
  if (job.options.trial) json["try"] = true;
  if (!job.options.accepted_data.empty()) json["accepted_data"] = job.options.accepted_data;
  if (job.options.profile) json["profile"] = {job.options.profile->first, job.options.profile->last};
  if (!job.options.probe_dir.empty()) json["probe"] = job.options.probe_dir;
  if (!job.mounts.empty()) json["mounts"] = job.mounts;
  if (job.measure) json["measure"] = MeasureJson(*job.measure);
  return JsonText(json, 1) + "\n";
}

absl::Status WriteJobFiles(const JobFiles& job, const std::string& script) {
  const std::string& run_dir = job.options.run_dir;
  ABSL_RETURN_IF_ERROR(MakeDirectories(run_dir + "/job"));
  std::error_code error;
  std::filesystem::remove(JobOutcomePath(run_dir), error);  // of a job before
  for (size_t i = 0; i < job.plans.size(); ++i) {
    ABSL_RETURN_IF_ERROR(WriteFileAtomically(PlanFile(job, i), WritePlan(job.plans[i])));
  }
  ABSL_RETURN_IF_ERROR(WriteFileAtomically(run_dir + "/job/launch.json", LaunchJson(job), 0600));
  return WriteFileAtomically(JobScriptPath(run_dir), script);
}

absl::StatusOr<JobFiles> ReadJobFiles(const std::string& run_dir) {
  const std::string path = run_dir + "/job/launch.json";
  ABSL_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, kJobJson.bytes));
  const Json json = ParseOrderedJson(text, kJobJson).value_or(Json());
  JobFiles job;
  size_t plans = 0;
  try {
    job.program = json.at("program").get<std::string>();
    job.folder = json.at("folder").get<std::string>();
    job.options.executor = json.at("executor").get<std::string>();
    job.options.device = json.at("device").get<std::string>();
    job.environment = json.at("environment").get<Variables>();
    plans = json.at("plans").get<size_t>();
    if (json.contains("passed_on")) job.options.passed_on = json["passed_on"].get<Variables>();
    if (json.contains("try")) job.options.trial = json["try"].get<bool>();
    if (json.contains("accepted_data")) job.options.accepted_data = json["accepted_data"].get<std::string>();
    if (json.contains("steps")) job.options.steps = json["steps"].get<int64_t>();
    if (json.contains("profile"))
      job.options.profile = {json["profile"].at(0).get<int64_t>(), json["profile"].at(1).get<int64_t>()};
    if (json.contains("probe")) job.options.probe_dir = json["probe"].get<std::string>();
    if (json.contains("mounts")) job.mounts = json["mounts"].get<std::vector<std::string>>();
    if (json.contains("measure")) job.measure = ReadMeasure(json["measure"]);
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(path + " is damaged (" + error.what() +
                                      "); submit the run again with `plan launch --slurm`");
  }
  job.options.run_dir = run_dir;
  if (job.measure && job.measure->parts.size() != plans)
    return absl::InvalidArgumentError(path + " is damaged; submit the measurement again with `plan measure --slurm`");
  for (size_t i = 0; i < plans; ++i) {
    ABSL_ASSIGN_OR_RETURN(const std::string file, ReadWholeFile(PlanFile(job, i), kPlanJson.bytes));
    absl::StatusOr<Plan> plan = ReadPlan(file);
    if (!plan.ok()) return absl::InvalidArgumentError(PlanFile(job, i) + ": " + std::string(plan.status().message()));
    DropEarlierParts(*plan);  // the job may have been submitted before
    job.plans.push_back(*std::move(plan));
  }
  if (job.plans.empty()) return absl::InvalidArgumentError(path + " names no plan");
  return job;
}

}  // namespace planwright
