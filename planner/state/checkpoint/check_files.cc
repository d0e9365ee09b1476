#include "planner/state/checkpoint/check_files.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/state/checkpoint/element_cover.h"
#include "planner/state/checkpoint/folder_names.h"
#include "planner/state/checkpoint/own_plan.h"
#include "planner/state/checkpoint/pieces.h"
#include "planner/state/checkpoint/run_lives.h"
#include "planner/state/checkpoint/shard_files.h"

namespace planwright {
namespace {

// Calls `work` for 0 to count - 1, by up to `threads` threads.
void ForEach(size_t count, int threads, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next = 0;
  const auto loop = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> others;
  try {
    for (int i = 1; i < threads && static_cast<size_t>(i) < count; ++i) others.emplace_back(loop);
  } catch (const std::system_error&) {
    // No more threads can be had: those that there are do the work.
  }
  loop();
  for (std::thread& other : others) other.join();
}

// Bytes that were read, of all threads.
class Progress {
 public:
  Progress(int64_t all, const std::function<void(int64_t, int64_t)>& report) : all_(all), report_(report) {}
  void Add(int64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    done_ += bytes;
    if (report_) report_(done_, all_);
  }

 private:
  std::mutex mutex_;
  int64_t done_ = 0;
  const int64_t all_;
  const std::function<void(int64_t, int64_t)>& report_;
};

// One shard and its index. `index` stays empty if it is damaged.
struct CheckedShard {
  std::optional<ShardIndex> index;
  std::vector<CheckpointProblem> problems;
};

// The element of the whole tensor that is element `local` of a part.
int64_t WholeElement(const std::vector<ElementStride>& elements, int64_t local) {
  for (const ElementStride& stride : elements) {
    const int64_t count = stride.count * stride.times;
    if (local < count) return stride.first + local / stride.count * stride.stride + local % stride.count;
    local -= count;
  }
  return local;
}

CheckedShard CheckShard(const std::string& folder, const Manifest& manifest, const ManifestShard& shard,
                        Progress& progress) {
  CheckedShard checked;
  const auto found = [&checked](const std::string& file, const auto& what) {
    checked.problems.push_back({file, std::string(what)});
  };
  absl::StatusOr<ShardIndex> index = ReadIndexFile(folder, manifest, shard);
  progress.Add(shard.index_bytes);
  if (!index.ok()) {
    found(IndexFile(shard.rank), index.status().message());
    // Without its index, all that is known of a shard is its size.
    const absl::Status size = CheckFileSize(folder + "/" + ShardFile(shard.rank), shard.bytes);
    if (!size.ok()) found(ShardFile(shard.rank), size.message());
    progress.Add(shard.bytes);
    return checked;
  }
  checked.index = *std::move(index);
  const absl::StatusOr<SafetensorsFile> file = OpenShardFile(folder, *checked.index);
  if (!file.ok()) {
    found(ShardFile(shard.rank), file.status().message());
    progress.Add(shard.bytes);
    return checked;
  }
  progress.Add(static_cast<int64_t>(file->header().size()));
  std::vector<std::pair<int64_t, std::string>> order;  // where a tensor begins, and its key
  for (const auto& [key, stored] : file->tensors()) order.emplace_back(stored.offset, key);
  std::sort(order.begin(), order.end());
  for (const auto& [first, key] : order) {
    const ShardTensor& tensor = checked.index->tensors.at(key);
    std::optional<int64_t> not_finite;
    const absl::Status proved = ProveTensor(
        file->file(), file->tensors().at(key), key, tensor.sha256, [&](int64_t bytes) { progress.Add(bytes); },
        SplitKey(key).moment() ? nullptr : &not_finite);
    if (!proved.ok()) {
      found(ShardFile(shard.rank), proved.message());
    } else if (not_finite) {
      found(ShardFile(shard.rank), absl::StrCat("tensor ", key, NotFinite(WholeElement(tensor.elements, *not_finite))));
    }
  }
  return checked;
}

// Whether all shards together have each element of each tensor once.
std::vector<CheckpointProblem> CheckElements(const std::vector<CheckedShard>& shards, int threads) {
  std::map<std::string, std::vector<std::pair<int, const ShardTensor*>>> tensors;  // by key: ranks and their parts
  for (const CheckedShard& shard : shards) {
    for (const auto& [key, tensor] : shard.index->tensors) tensors[key].emplace_back(shard.index->rank, &tensor);
  }
  std::vector<const decltype(tensors)::value_type*> list;
  for (const auto& one : tensors) list.push_back(&one);
  std::vector<std::vector<CheckpointProblem>> problems(list.size());
  ForEach(list.size(), threads, [&](size_t i) {
    const auto& [key, parts] = *list[i];
    const auto& [first_rank, first] = parts.front();
    std::vector<const std::vector<ElementStride>*> elements;
    for (const auto& [rank, part] : parts) {
      elements.push_back(&part->elements);
      const absl::Status same = CheckSameTensor(key, *part, first->dtype, first->shape, first_rank);
      if (!same.ok()) problems[i].push_back({IndexFile(rank), std::string(same.message())});
    }
    if (!problems[i].empty()) return;
    const auto wrong = ElementCover(elements).Walk(0, ElementsOf(first->shape), [](const CoveredRun&) {});
    if (!wrong) return;
    if (!wrong->shard) {
      problems[i].push_back({kManifestFile, NoShardHas(key, wrong->whole)});
    } else {
      const int rank = parts[*wrong->shard].first, other = parts[*wrong->other].first;
      problems[i].push_back({IndexFile(std::max(rank, other)), TwoShardsHave(key, wrong->whole, rank, other)});
    }
  });
  std::vector<CheckpointProblem> all;
  for (auto& some : problems) all.insert(all.end(), some.begin(), some.end());
  return all;
}

TensorTypes TypesOf(const std::vector<CheckedShard>& shards) {
  TensorTypes types;
  for (const CheckedShard& shard : shards) {
    for (const auto& [key, tensor] : shard.index->tensors)
      types.try_emplace(key, TensorType{tensor.dtype, tensor.shape});
  }
  return types;
}

// The shards of which the folder has a file. A manifest may name any number of others, which cost no look and are told
// in one line.
std::vector<ManifestShard> ShardsThatAreThere(const Manifest& manifest, const std::vector<std::string>& names,
                                              std::vector<CheckpointProblem>& problems) {
  const std::set<std::string_view> known(names.begin(), names.end());
  std::vector<ManifestShard> there, gone;
  for (const ManifestShard& shard : manifest.shards) {
    const bool has = known.contains(ShardFile(shard.rank)) || known.contains(IndexFile(shard.rank));
    (has ? there : gone).push_back(shard);
  }
  if (!gone.empty()) {
    problems.push_back(
        {kManifestFile, absl::StrCat("the folder has neither shard nor index of ", gone.size(), " of ",
                                     manifest.shards.size(), " ranks; the first is rank ", gone.front().rank)});
  }
  return there;
}

// Files that look like a part of the checkpoint and are none: two checkpoints may have been copied into one folder, and
// tools that open all shards of a folder would read them. Other files are somebody's notes or the file system's own.
std::vector<CheckpointProblem> FindStrays(const std::vector<std::string>& names, const Manifest& manifest) {
  std::set<std::string> known;
  for (const ManifestShard& shard : manifest.shards) {
    known.insert(ShardFile(shard.rank));
    known.insert(IndexFile(shard.rank));
  }
  std::vector<CheckpointProblem> problems;
  for (const std::string& name : names) {
    const bool shard =
        absl::StartsWith(name, "rank-") && (absl::EndsWith(name, ".safetensors") || absl::EndsWith(name, ".json"));
    if (shard && !known.contains(name)) problems.push_back({name, "the manifest does not have this file"});
  }
  std::sort(problems.begin(), problems.end(), [](const auto& a, const auto& b) { return a.file < b.file; });
  return problems;
}

}  // namespace

std::vector<CheckpointProblem> CheckCheckpointFiles(const std::string& folder, int threads,
                                                    const std::function<bool(const Plan&)>& proven,
                                                    const std::function<void(int64_t, int64_t)>& progress) {
  const absl::StatusOr<Manifest> manifest = ReadManifestFile(folder);
  if (!manifest.ok()) return {{kManifestFile, std::string(manifest.status().message())}};
  const absl::StatusOr<std::vector<std::string>> names = NamesIn(folder);
  if (!names.ok()) return {{".", std::string(names.status().message())}};
  std::vector<CheckpointProblem> problems;
  const std::vector<ManifestShard> there = ShardsThatAreThere(*manifest, *names, problems);
  int64_t all = manifest->plan_bytes;
  for (const ManifestShard& shard : there) all += shard.bytes + shard.index_bytes;
  Progress read(all, progress);

  if (std::string why = MisplacedAs(folder, *manifest); !why.empty())
    problems.push_back({kManifestFile, std::move(why)});
  const absl::StatusOr<OwnPlan> own = ReadOwnPlan(folder, *manifest);
  if (!own.ok()) problems.push_back({kCheckpointPlanFile, std::string(own.status().message())});
  if (own.ok() && own->plan) {
    if (absl::Status status = CheckOwnPlan(*manifest, *own->plan); !status.ok())
      problems.push_back({kManifestFile, std::string(status.message())});
  }
  read.Add(manifest->plan_bytes);

  std::vector<CheckedShard> shards(there.size());
  ForEach(shards.size(), threads, [&](size_t i) { shards[i] = CheckShard(folder, *manifest, there[i], read); });
  bool complete = there.size() == manifest->shards.size();
  for (const CheckedShard& shard : shards) {
    problems.insert(problems.end(), shard.problems.begin(), shard.problems.end());
    complete = complete && shard.index.has_value();
  }
  // Each tensor of a damaged index would be missing: that says no more than that the index is damaged.
  if (complete) {
    for (CheckpointProblem& problem : CheckElements(shards, threads)) problems.push_back(std::move(problem));
    if (own.ok() && own->plan && proven(*own->plan)) {
      for (std::string& what : TensorsThatDiffer(*own->plan, TypesOf(shards)))
        problems.push_back({kManifestFile, std::move(what)});
    }
  }
  for (CheckpointProblem& problem : FindStrays(*names, *manifest)) problems.push_back(std::move(problem));
  return problems;
}

}  // namespace planwright
