#include "planner/cli/needs_of_job.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/files/file_io.h"
#include "planner/cli/open_fleet.h"
#include "planner/data/samples/index_settings.h"
#include "planner/data/samples/shard_list.h"
#include "planner/plan/data_files.h"
#include "planner/run/launch/rank_environment.h"
#include "planner/run/launch/recipe_environment.h"
#include "planner/run/slurm/program_libraries.h"
#include "planner/state/weights/parts.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

bool IsOnThisMachine(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

std::string FolderOf(const std::string& path) { return fs::path(path).parent_path().string(); }

// Why nothing can be written into a folder, or into the one that it would be made in; empty: it can.
std::string WhyNotWritten(fs::path folder) {
  std::error_code error;
  while (!fs::exists(fs::symlink_status(folder, error)) && folder.has_relative_path()) folder = folder.parent_path();
  if (!fs::is_directory(folder, error)) return folder.string() + " is no folder";
  if (access(folder.c_str(), W_OK | X_OK) == 0) return "";
  return absl::StrCat(folder.string(), ": ", std::strerror(errno));
}

class Needs {
 public:
  void Add(const std::string& what, const std::string& path, bool writes = false) {
    if (path.empty() || !paths_.insert(path).second) return;
    files_.push_back({.what = what, .path = path, .writes = writes, .here = IsOnThisMachine(path)});
  }

  // What the launcher makes before it submits. `writes`: it, or the job, also writes to one that is there.
  void AddMade(const std::string& what, const std::string& path, bool writes = true) {
    if (!paths_.insert(path).second) return;
    const bool made = !IsOnThisMachine(path);
    const std::string problem = writes || made ? WhyNotWritten(path) : "";
    if (!problem.empty()) problems_.push_back(absl::StrCat(what, " ", path, " cannot be written: ", problem));
    files_.push_back({.what = what, .path = path, .writes = writes, .made = made, .here = problem.empty()});
  }

  // A file or a folder with files, and where links of it lead that leave its folder.
  void AddWithLinks(const std::string& what, const std::string& path) {
    Add(what, path);
    std::error_code error;
    if (!fs::is_directory(path, error)) return AddLink(what, path, FolderOf(path));
    for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
      AddLink(what, entry->path().string(), path);
  }

  // The folder of a file that a pattern may name. Returns whether the file is on this machine.
  bool AddFolderOf(const std::string& what, const std::string& file) {
    const bool here = IsOnThisMachine(file);
    if (here) AddLink(what, file, FolderOf(file));
    Add(what, FolderOf(file));
    return here;
  }

  std::vector<NeededFile> files() && { return std::move(files_); }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  void AddLink(const std::string& what, const std::string& path, const std::string& folder) {
    std::error_code error, none;
    if (!fs::is_symlink(fs::symlink_status(path, none))) return;
    const fs::path real = fs::canonical(path, error), real_folder = fs::canonical(folder, none);
    if (!error && real.parent_path() != real_folder)
      Add(absl::StrCat(what, ", by a link"), real.parent_path().string());
  }

  std::set<std::string> paths_;
  std::vector<NeededFile> files_;
  std::vector<std::string> problems_;
};

void AddData(const DataPlan& data, const std::string& what, Needs& needs) {
  constexpr int64_t kMostLooked = 1000;  // files whose links are followed
  if (RowOf(data.kind).batch_file) needs.AddFolderOf(what, AbsolutePath(ResolvePath(data.base, data.path)));
  bool here = true;
  for (const SourcePlan& source : data.sources) {
    if (!source.path.empty()) {
      for (const char* ending : {".bin", ".idx"})
        here &= needs.AddFolderOf(what, AbsolutePath(ResolvePath(data.base, source.path + ending)));
    }
    ShardLimit left = {.names = kMostLooked, .entries = kMostLooked};
    for (const std::string& pattern : source.shards) {
      const absl::StatusOr<FirstShards> first = FirstShardsOf(data.base, pattern, left);
      const std::vector<std::string> files =
          first.ok() && !first->files.empty() ? first->files : std::vector<std::string>{pattern};
      for (const std::string& file : files) here &= needs.AddFolderOf(what, AbsolutePath(ResolvePath(data.base, file)));
    }
  }
  if (!RowOf(data.kind).indexed) return;
  const std::string index = "the index of " + what, folder = AbsolutePath(IndexFolder(data));
  // Where the data is here, the launch makes what is missing of it, before the job is submitted.
  here ? needs.AddMade(index, folder, /*writes=*/false) : needs.Add(index, folder);
}

void AddPlan(const Plan& plan, Needs& needs) {
  AddData(plan.data, "data", needs);
  for (const EvaluationSet& set : plan.evaluation.sets) AddData(set.data, "data of set " + set.name, needs);
  const absl::StatusOr<std::vector<PartSource>> sources = SourcesOfParts(plan);
  if (!sources.ok()) return;
  for (const PartSource& source : *sources) needs.AddWithLinks("weights", AbsolutePath(source.path));
}

// Of its ranks, but for what Slurm and the nodes give them.
std::vector<std::string> EnvironmentOf(const JobFiles& job) {
  Variables variables = job.environment;
  for (const Plan& plan : job.plans) {
    const absl::StatusOr<Variables> of_recipe = VariablesOfRecipe(plan.launch, job.options.passed_on);
    if (!of_recipe.ok()) continue;  // then the job is refused
    for (const auto& [name, value] : *of_recipe) variables.insert_or_assign(name, value);
  }
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) environment.push_back(absl::StrCat(name, "=", value));
  return environment;
}

std::pair<int, int> FreePorts() {
  std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
  std::pair<int, int> ports;
  return file >> ports.first >> ports.second ? ports : std::pair<int, int>();
}

}  // namespace

JobNeeds NeedsOf(const JobFiles& job) {
  Needs needs;
  JobNeeds found;
  needs.Add("plan, the agents' program", job.program);
  needs.Add("the executor", job.options.executor);
  const absl::StatusOr<std::vector<LoadedLibrary>> libraries = LibrariesOf(job.options.executor, EnvironmentOf(job));
  if (libraries.ok()) {  // else the executor is another program, which says itself what is wrong with it
    std::set<std::string> folders = {FolderOf(job.options.executor)};
    for (const LoadedLibrary& library : *libraries) {
      if (library.path.empty()) {
        found.not_found.push_back(library.name);
      } else if (IsOfSystem(library.path)) {
        found.of_system.push_back(library.name);
      } else if (folders.insert(FolderOf(library.path)).second) {
        needs.Add("libraries of the executor", FolderOf(library.path));
      }
    }
  }
  needs.AddMade("the run directory", job.options.run_dir);
  if (!job.options.probe_dir.empty()) needs.AddMade("the probe", job.options.probe_dir);
  if (job.measure) needs.AddMade("the folder of the profile", FolderOf(job.measure->output));
  for (const Plan& plan : job.plans) AddPlan(plan, needs);
  found.problems = needs.problems();
  found.files = std::move(needs).files();
  found.ports = FreePorts();
  return found;
}

absl::Status CheckLibraries(const JobFiles& job, const JobNeeds& needs) {
  // Lines before a rank may load modules; then CheckExecutor has tried it. An image has libraries of its own.
  if (needs.not_found.empty() || !job.plans[0].launch.setup.empty() || !job.plans[0].launch.container.empty())
    return absl::OkStatus();
  const absl::StatusOr<std::vector<LoadedLibrary>> here = LibrariesOf(job.options.executor, OwnEnvironment());
  if (!here.ok()) return absl::OkStatus();
  std::vector<std::string> lost;
  for (const LoadedLibrary& library : *here) {
    const bool missing =
        std::find(needs.not_found.begin(), needs.not_found.end(), library.name) != needs.not_found.end();
    if (missing && !library.path.empty()) lost.push_back(library.name);
  }
  if (lost.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the executor ", job.options.executor, " needs ", absl::StrJoin(lost, ", "),
      ", which is found here by LD_LIBRARY_PATH of this shell alone, and a job does not take that over; write "
      "launch.env: [LD_LIBRARY_PATH]"));
}

}  // namespace planwright
