#include "planner/run/trial/trial_folder.h"

#include <filesystem>
#include <system_error>

#include "planner/base/files/file_io.h"
#include "planner/plan/slurm_options.h"
#include "planner/run/launch/run_directory.h"
#include "planner/run/trial/step_communications.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

constexpr char kTime[] = "10";  // minutes, as sbatch takes them
constexpr int64_t kTimeSeconds = 600;

absl::Status RemoveEarlier(const std::string& folder) {
  std::error_code error;
  if (!fs::exists(folder, error) || fs::is_empty(folder, error)) return absl::OkStatus();
  if (!fs::exists(TrialFilesPath(folder), error))
    return absl::AlreadyExistsError(folder + " holds something else than a trial; choose another --run-dir");
  if (const RunLock lock = LookAtLock(folder); lock.held)
    return absl::AlreadyExistsError("a trial runs in " + folder + " (" + lock.holder + ")");
  if (fs::exists(folder + "/job/launch.json", error) && !fs::exists(folder + "/plan.json", error)) {
    return absl::AlreadyExistsError("a trial in " + folder +
                                    " waits for its Slurm job (`squeue --me`); if that is gone, remove the folder");
  }
  fs::remove_all(folder, error);
  if (error) return absl::UnavailableError("cannot remove " + folder + ": " + error.message());
  return absl::OkStatus();
}

}  // namespace

std::string TrialFolder(const std::string& run_dir) {
  fs::path path = fs::path(run_dir).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return path.string() + ".try";
}

Plan PlanOfTrial(Plan plan) {
  plan.launch.restarts = 0;
  plan.launch.fallbacks.clear();
  const int64_t time = SlurmSeconds(plan.launch.time).value_or(0);
  if (time == 0 || time > kTimeSeconds) plan.launch.time = kTime;
  return plan;
}

absl::Status PrepareTrial(const Plan& plan, const std::string& folder, const TrialFiles& files, bool here) {
  if (absl::Status removed = RemoveEarlier(folder); !removed.ok()) return removed;
  if (absl::Status made = MakeDirectories(folder + "/trial"); !made.ok()) return made;
  Plan placed = plan;
  if (here) placed.cluster.gpus_per_node = placed.world_size;
  const absl::Status rounds = WriteFileAtomically(TrialRoundsPath(folder), RoundsJson(RoundsOfTrial(placed)));
  return rounds.ok() ? WriteFileAtomically(TrialFilesPath(folder), TrialFilesJson(files)) : rounds;
}

}  // namespace planwright
