#include "executor/checkpoint/checkpoint_writer.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>
#include <vector>

#include "executor/checkpoint/resume_point.h"
#include "executor/communication/agreement.h"
#include "executor/communication/failure.h"
#include "executor/log/log.h"
#include "planner/base/digest/sha256.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/json/json_text.h"
#include "planner/plan/plan_json.h"
#include "planner/state/checkpoint/checkpoint_log.h"
#include "planner/state/checkpoint/remove_checkpoint.h"
#include "planner/state/checkpoint/run_lives.h"

namespace planwright::executor {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// What went wrong while a checkpoint was written, as the exit of the rank.
struct WriteFailure {
  int status = kExitStorage;
  std::string what;
};

void ThrowUnlessOk(const absl::Status& status) {
  if (!status.ok())
    throw WriteFailure{absl::IsAborted(status) ? kExitReplaced : kExitStorage, std::string(status.message())};
}

// The folder above is made when the life begins. If it is gone, its disk may be, too: nothing is written in its place.
void MakeFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0755) != 0 && errno != EEXIST)
    throw WriteFailure{kExitStorage, absl::StrCat("cannot make the folder ", path, ": ", std::strerror(errno))};
}

std::string ReportKey(int64_t step, int life, int rank) {
  return absl::StrCat("checkpoint/", life, "/", step, "/", rank);
}

// Is there when rank 0 has published.
std::string PublishedKey(int64_t step, int life) { return absl::StrCat("checkpoint/", life, "/", step, "/published"); }

// What a rank tells rank 0 when it has written.
std::string ReportText(const RankReport& report) {
  nlohmann::json json = {{"copied", report.copied}, {"through", report.through}};
  if (const std::optional<ManifestShard>& shard = report.shard) {
    json["shard"] = {
        {"bytes", shard->bytes}, {"index_bytes", shard->index_bytes}, {"index_sha256", shard->index_sha256}};
  }
  return json.dump();
}

RankReport ReportFrom(int rank, const std::string& text) {
  const nlohmann::json json = ParseJson(text, kStoreValueJson).value();
  RankReport report{.copied = json.at("copied"), .through = json.at("through"), .shard = {}};
  if (const auto shard = json.find("shard"); shard != json.end())
    report.shard = {rank, shard->at("bytes"), shard->at("index_bytes"), shard->at("index_sha256")};
  return report;
}

}  // namespace

CheckpointWriter::CheckpointWriter(const Plan& plan, const Environment& environment, std::string run_dir,
                                   std::string run_id, int life, int64_t verified, Hooks hooks)
    : plan_(plan), environment_(environment), run_dir_(std::move(run_dir)), run_id_(std::move(run_id)), life_(life),
      verified_(verified), hooks_(std::move(hooks)), copies_(plan, environment.rank), thread_([this] { Run(); }) {}

CheckpointWriter::~CheckpointWriter() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CheckpointWriter::WaitForWriter() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !busy_; });
}

void CheckpointWriter::Save(ModuleState& module) { copies_.Begin(module); }

void CheckpointWriter::SaveCounters(const StepState& step, const ManifestNotes& notes) {
  const Clock::time_point begin = Clock::now();
  WaitForWriter();
  waited_ = SecondsSince(begin);
  counters_ = {.step = step.step + 1,
               .applied_steps = step.applied_steps.item<int64_t>(),
               .skipped_steps = step.skipped_steps.item<int64_t>(),
               .consumed_samples = (step.step + 1) * plan_.budget.global_samples};
  notes_ = notes;
}

void CheckpointWriter::Publish() {
  {
    const std::lock_guard lock(mutex_);
    waiting_ = busy_ = true;
  }
  changed_.notify_all();
}

void CheckpointWriter::Finish() { WaitForWriter(); }

void CheckpointWriter::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return waiting_ || ends_; });
    if (!waiting_) return;
    waiting_ = false;
    const CheckpointCounters counters = counters_;
    const ManifestNotes notes = notes_;
    const double waited = waited_;
    lock.unlock();
    const auto failed = [&](int status, const std::string& what) {
      hooks_.leave(status, absl::StrCat("rank ", environment_.rank, " on ", environment_.host,
                                        ": the checkpoint of step ", counters.step, ": ", what));
    };
    try {
      Write(counters, notes, waited);
    } catch (const WriteFailure& failure) {
      // A newer life may have removed what this one was writing.
      const absl::Status ours = failure.status == kExitStorage ? CheckNoNewerLife(run_dir_, life_) : absl::OkStatus();
      absl::IsAborted(ours) ? failed(kExitReplaced, std::string(ours.message())) : failed(failure.status, failure.what);
    } catch (const std::exception& error) {  // of the store, which means that a rank is gone; of a device; or ours
      failed(ExitStatusOf(FailureKindOf(error)), MessageOf(error));
    }
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

c10d::Store& CheckpointWriter::store() {
  // Opened when it is first needed: rank 0, which may serve the store, has opened it then.
  if (store_ == nullptr) {
    absl::StatusOr<c10::intrusive_ptr<c10d::Store>> opened = ConnectToStore(environment_);
    if (!opened.ok()) throw WriteFailure{kExitPeerLost, std::string(opened.status().message())};
    store_ = *std::move(opened);
  }
  return *store_;
}

void CheckpointWriter::Write(const CheckpointCounters& counters, const ManifestNotes& notes, double waited) {
  const Clock::time_point begin = Clock::now();
  const std::string folder = run_dir_ + "/checkpoints/" + CheckpointFolder(counters.step, life_);
  LogInfo(absl::StrFormat("checkpoint of step %d begins", counters.step));
  RankReport own;
  const auto note_copied = [&] {
    if (own.copied == 0 && copies_.done()) own.copied = SecondsSince(begin);
  };
  copies_.Copy();
  note_copied();
  own.through = copies_.limited() ? copies_.bytes() : 0;
  BetweenFailPoints(hooks_.fail_point, {.list = "write", .step = counters.step}, [&] {
    MakeFolder(folder);
    if (copies_.sources().empty()) return;
    const auto before_range = [&](const std::byte* range) {
      copies_.BeforeRange(range);
      note_copied();
    };
    absl::StatusOr<ManifestShard> written = WriteShard(folder, environment_.rank, {run_id_, life_, counters},
                                                       copies_.sources(), {.before_range = before_range});
    ThrowUnlessOk(written.status());
    own.shard = *std::move(written);
    LogInfo(absl::StrFormat("checkpoint of step %d: a shard of %.3f GB, copied in %.3f s, written in %.3f s",
                            counters.step, static_cast<double>(own.shard->bytes) / 1e9, own.copied,
                            SecondsSince(begin)));
  });
  BetweenFailPoints(hooks_.fail_point, {.list = "publish", .step = counters.step}, [&] {
    if (environment_.rank == 0) {
      const Manifest manifest = {.name = plan_.name,
                                 .plan_digest = plan_.digest,
                                 .recipe_digest = plan_.recipe_digest,
                                 .precision = plan_.precision,
                                 .world_size = plan_.world_size,
                                 .run_id = run_id_,
                                 .life = life_,
                                 .counters = counters,
                                 .data = sources_,
                                 .base = base_,
                                 .notes = notes};
      return PublishAll(folder, manifest, own, waited, begin);
    }
    store().set(ReportKey(counters.step, life_, environment_.rank), ReportText(own));
  });
  if (environment_.rank == 0) return Retain();
  // So all wait for the slowest disk where a checkpoint is saved, and none where its communications have deadlines.
  AwaitOther(PublishedKey(counters.step, life_));
}

std::string CheckpointWriter::AwaitOther(const std::string& key) {
  if (hooks_.waits_for_others) hooks_.waits_for_others(true);
  std::string value = AwaitFiles(key, store());
  if (hooks_.waits_for_others) hooks_.waits_for_others(false);
  return value;
}

void CheckpointWriter::PublishAll(const std::string& folder, Manifest manifest, const RankReport& own, double waited,
                                  Clock::time_point begin) {
  const CheckpointCounters& counters = manifest.counters;
  double copied = 0;
  int64_t bytes = 0, through = 0;
  for (int rank = 0; rank < plan_.world_size; ++rank) {
    RankReport report = own;
    if (rank > 0) {
      const std::string key = ReportKey(counters.step, life_, rank);
      report = ReportFrom(rank, AwaitOther(key));
      store().deleteKey(key);
    }
    copied = std::max(copied, report.copied), through = std::max(through, report.through);
    if (!report.shard) continue;
    bytes += report.shard->bytes;
    manifest.shards.push_back(*std::move(report.shard));
  }
  const std::string plan = WritePlan(plan_);
  ThrowUnlessOk(WriteDurably(folder, kCheckpointPlanFile, plan));
  manifest.plan_bytes = static_cast<int64_t>(plan.size());
  manifest.plan_sha256 = Sha256Hex(plan);
  // All have reported, so all have seen that the checkpoint before this one was published.
  if (published_ > 0) store().deleteKey(PublishedKey(published_, life_));
  // A life that was cut off and replaced must not publish behind the back of the new one.
  ThrowUnlessOk(CheckNoNewerLife(run_dir_, life_));
  ThrowUnlessOk(PublishManifest(folder, manifest));
  if (plan_.world_size > 1) store().set(PublishedKey(published_ = counters.step, life_), "");
  const double written = SecondsSince(begin);
  ThrowUnlessOk(LogCheckpoint(
      run_dir_, life_,
      {.step = counters.step,
       .bytes = bytes,
       .copied = copied,
       .written = written,
       .waited = waited,
       .published = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(),
       .run_id = run_id_}));
  const auto gigabytes = [](int64_t count) { return absl::StrFormat("%.3f GB", static_cast<double>(count) / 1e9); };
  const std::string line =
      absl::StrFormat("checkpoint of step %d: %s, copied in %.3f s%s, written in %.3f s%s", counters.step,
                      gigabytes(bytes), copied, through == 0 ? "" : " through " + gigabytes(through), written,
                      waited < 0.001 ? "" : absl::StrFormat("; training waited %.3f s for the one before", waited));
  LogInfo("published: " + line);
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// The new checkpoint is whole, and the old ones take no more than space: a run does not end for that.
void CheckpointWriter::WarnOnce(const std::string& folder, const std::string& line) {
  if (left_.insert(folder).second) LogWarning(line);
}

void CheckpointWriter::Remove(const std::string& folder) {
  // A newer life may go on from one that this life would remove.
  ThrowUnlessOk(CheckNoNewerLife(run_dir_, life_));
  const absl::StatusOr<std::vector<std::string>> left = RemoveCheckpoint(folder);
  if (!left.ok()) return WarnOnce(folder, absl::StrCat(folder, " stays: ", left.status().message()));
  if (left->empty()) return LogInfo("removed " + folder);
  WarnOnce(folder, absl::StrCat("of ", folder, " what no run has written stays: ", absl::StrJoin(*left, ", ")));
}

void CheckpointWriter::Retain() {
  const std::string all = run_dir_ + "/checkpoints";
  // What lives left that were killed while they wrote. They write no more.
  if (!std::exchange(tidied_, true)) {
    const absl::StatusOr<std::vector<std::string>> folders = LeftByEndedLives(run_dir_, life_);
    if (!folders.ok())
      return WarnOnce(all, absl::StrCat("what earlier lives left in ", all, " stays: ", folders.status().message()));
    for (const std::string& folder : *folders) Remove(folder);
  }
  if (plan_.checkpoint.keep_last == 0) return;
  const absl::StatusOr<CheckpointList> list = ListCheckpoints(run_dir_, life_ + 1);
  if (!list.ok()) return WarnOnce(all, absl::StrCat("old checkpoints stay: ", list.status().message()));
  for (const FoundCheckpoint& checkpoint :
       CheckpointsToRemove(list->found, plan_.checkpoint.keep_last, plan_.checkpoint.keep_every_steps,
                           plan_.checkpoint.keep_best, verified_))
    Remove(checkpoint.folder);
}

}  // namespace planwright::executor
