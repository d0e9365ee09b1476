#include "planner/state/checkpoint/shard_reader.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "absl/base/call_once.h"
#include "absl/strings/str_cat.h"
#include "planner/state/checkpoint/element_cover.h"
#include "planner/state/checkpoint/own_plan.h"
#include "planner/state/checkpoint/shard_files.h"
#include "planner/wire/records/safetensors.h"

namespace planwright {
namespace {

// A shard whose header was checked. It stays open from the first byte of a tensor that is needed: a checkpoint may have
// more shards than a process may have open files, and a rank needs few of them.
struct Shard {
  std::string path;
  int64_t bytes = 0;
  absl::once_flag once;
  absl::Status opened;  // after `once`
  PlainFile file;
};

// What one shard has of a tensor.
struct Part {
  int rank = 0;
  std::vector<ElementStride> elements;
  std::string sha256;
  Shard* shard = nullptr;
  StoredTensor stored;  // in the shard
  absl::once_flag once;
  absl::Status proved;  // after `once`
};

// The last bytes that were read of a part. Elements are wanted in their order, often in many short runs: so most of
// them are there already.
struct Window {
  int64_t first = 0;  // in the part
  std::vector<std::byte> bytes;
};

absl::Status ReadPart(const Part& part, Window& window, int64_t first, std::span<std::byte> to) {
  constexpr int64_t kWindow = int64_t{1} << 16;
  const PlainFile& file = part.shard->file;
  const auto count = static_cast<int64_t>(to.size());
  if (count >= kWindow) return file.Read(part.stored.offset + first, to);
  if (first < window.first || first + count > window.first + static_cast<int64_t>(window.bytes.size())) {
    window.first = first;
    window.bytes.resize(std::min(kWindow, part.stored.bytes - first));
    if (absl::Status read = file.Read(part.stored.offset + first, window.bytes); !read.ok()) return read;
  }
  std::memcpy(to.data(), window.bytes.data() + (first - window.first), to.size());
  return absl::OkStatus();
}

absl::Status InFile(const absl::Status& status, const std::string& folder, const std::string& file) {
  return absl::Status(status.code(), absl::StrCat(folder, "/", file, ": ", status.message()));
}

}  // namespace

struct CheckpointReader::State {
  std::string folder;
  Manifest manifest;
  TensorTypes tensors;
  std::map<std::string, std::vector<std::unique_ptr<Part>>> parts;  // by key; in the order of ranks
  std::vector<std::unique_ptr<Shard>> shards;
  std::atomic<int64_t> bytes_read = 0;

  absl::Status AddShard(const ManifestShard& shard);
  absl::Status Open(Shard& shard);
  absl::Status Prove(const std::string& key, Part& part);
};

absl::Status CheckpointReader::State::AddShard(const ManifestShard& shard) {
  absl::StatusOr<ShardIndex> index = ReadIndexFile(folder, manifest, shard);
  if (!index.ok()) return InFile(index.status(), folder, IndexFile(shard.rank));
  const absl::StatusOr<SafetensorsFile> file = OpenShardFile(folder, *index);
  if (!file.ok()) return InFile(file.status(), folder, ShardFile(shard.rank));
  shards.push_back(std::make_unique<Shard>());
  shards.back()->path = file->path();
  shards.back()->bytes = shard.bytes;
  for (auto& [key, tensor] : index->tensors) {
    const auto [first, added] = tensors.try_emplace(key, TensorType{tensor.dtype, tensor.shape});
    std::vector<std::unique_ptr<Part>>& all = parts[key];
    if (!added) {
      const absl::Status same =
          CheckSameTensor(key, tensor, first->second.dtype, first->second.shape, all.front()->rank);
      if (!same.ok()) return InFile(same, folder, IndexFile(shard.rank));
    }
    all.push_back(std::make_unique<Part>());
    Part& part = *all.back();
    part.rank = shard.rank;
    part.elements = std::move(tensor.elements);
    part.sha256 = std::move(tensor.sha256);
    part.shard = shards.back().get();
    part.stored = file->tensors().at(key);
  }
  return absl::OkStatus();
}

absl::Status CheckpointReader::State::Open(Shard& shard) {
  absl::call_once(shard.once, [&] {
    absl::StatusOr<PlainFile> file = PlainFile::Open(shard.path);
    if (!file.ok()) {
      shard.opened = absl::UnavailableError(file.status().message());
    } else if (file->bytes() != shard.bytes) {
      shard.opened = absl::DataLossError("its size changes");
    } else {
      shard.file = *std::move(file);
    }
  });
  return shard.opened;
}

absl::Status CheckpointReader::State::Prove(const std::string& key, Part& part) {
  absl::call_once(part.once, [&] {
    const absl::Status opened = Open(*part.shard);
    const auto count = [&](int64_t bytes) { bytes_read += bytes; };
    const absl::Status proved =
        opened.ok() ? ProveTensor(part.shard->file, part.stored, key, part.sha256, count) : opened;
    if (!proved.ok()) part.proved = InFile(proved, folder, ShardFile(part.rank));
  });
  return part.proved;
}

CheckpointReader::CheckpointReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
CheckpointReader::~CheckpointReader() = default;

absl::StatusOr<std::unique_ptr<CheckpointReader>> CheckpointReader::Open(const std::string& folder) {
  auto state = std::make_unique<State>();
  state->folder = folder;
  absl::StatusOr<Manifest> manifest = ReadManifestFile(folder);
  if (!manifest.ok()) return InFile(manifest.status(), folder, kManifestFile);
  state->manifest = *std::move(manifest);
  if (const auto plan = ReadAndCheckOwnPlan(folder, state->manifest); !plan.ok()) return plan.status();
  for (const ManifestShard& shard : state->manifest.shards) {
    if (absl::Status status = state->AddShard(shard); !status.ok()) return status;
  }
  return std::unique_ptr<CheckpointReader>(new CheckpointReader(std::move(state)));
}

const Manifest& CheckpointReader::manifest() const { return state_->manifest; }
const std::string& CheckpointReader::folder() const { return state_->folder; }
const TensorTypes& CheckpointReader::tensors() const { return state_->tensors; }

std::optional<TensorType> CheckpointReader::TypeOf(const std::string& key) const {
  const auto found = state_->tensors.find(key);
  return found == state_->tensors.end() ? std::nullopt : std::optional(found->second);
}
std::string CheckpointReader::PlaceOf(const std::string& key) const {
  return absl::StrCat(state_->folder, ": tensor ", key);
}
int64_t CheckpointReader::bytes_read() const { return state_->bytes_read; }

absl::Status CheckpointReader::Read(const std::string& key, const std::vector<ElementRun>& runs,
                                    std::span<std::byte> to, Numbers numbers) {
  const auto found = state_->tensors.find(key);
  if (found == state_->tensors.end())
    return absl::InvalidArgumentError(absl::StrCat(state_->folder, " has no tensor ", key));
  const int64_t whole = ElementsOf(found->second.shape), width = DTypeBytes(found->second.dtype);
  if (absl::Status inside = CheckRuns(key, runs, whole, static_cast<int64_t>(to.size()) / width); !inside.ok())
    return inside;

  const std::vector<std::unique_ptr<Part>>& parts = state_->parts.at(key);
  std::vector<const std::vector<ElementStride>*> shards;
  for (const auto& part : parts) shards.push_back(&part->elements);
  ElementCover cover(shards);
  std::vector<Window> windows(parts.size());
  for (const ElementRun& run : runs) {
    absl::Status read;
    const auto problem = cover.Walk(run.whole, run.count, [&](const CoveredRun& covered) {
      Part& part = *parts[covered.shard];
      if (!read.ok()) return;
      if (read = state_->Prove(key, part); !read.ok()) return;
      const std::span<std::byte> target =
          to.subspan((run.local + covered.run.whole - run.whole) * width, covered.run.count * width);
      read = ReadPart(part, windows[covered.shard], covered.run.local * width, target);
      if (read.ok() && numbers == Numbers::kFinite) {
        if (const auto at = FirstNotFinite(found->second.dtype, target))
          read = absl::DataLossError(absl::StrCat("tensor ", key, NotFinite(covered.run.whole + *at)));
      }
      if (!read.ok()) read = InFile(absl::DataLossError(read.message()), state_->folder, ShardFile(part.rank));
    });
    if (!read.ok()) return read;
    if (problem) {
      return absl::DataLossError(absl::StrCat(
          state_->folder, ": ",
          problem->shard
              ? TwoShardsHave(key, problem->whole, parts[*problem->shard]->rank, parts[*problem->other]->rank)
              : NoShardHas(key, problem->whole)));
    }
  }
  return absl::OkStatus();
}

}  // namespace planwright
