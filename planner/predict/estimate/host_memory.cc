#include "planner/predict/estimate/host_memory.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/plan/optimizer_states.h"
#include "planner/plan/shard_map.h"
#include "planner/predict/estimate/memory.h"
#include "planner/predict/rates/device.h"

namespace planwright {
namespace {

// A rank itself: LibTorch with its kernels, on GPUs CUDA and NCCL, samples on their way to the device, and what copies
// are rounded up by. A rank on CPUs has the model in host memory too.
constexpr int64_t kGpuRankBytes = 4'000'000'000, kCpuRankBytes = 1'000'000'000;
// Copies that go through less would be of a few elements at a time.
constexpr int64_t kLeastCopies = int64_t{1} << 20;

// What a rank at coordinate 0 of all axes writes: it writes what others have, too. `fixed`: what of it is not copied in
// pieces.
struct WrittenBytes {
  int64_t all = 0, fixed = 0;
};
void AddCheckpointBytes(const Plan& plan, const Module& module, int stage, WrittenBytes& bytes) {
  for (const Bucket& bucket : module.buckets) {
    if (bucket.stage != stage) continue;
    const auto states = static_cast<int64_t>(HeldStates(plan.optimizer, bucket.dtype, bucket.master).size());
    bytes.all += bucket.elements / std::max(bucket.shards, 1) * states * DTypeBytes(bucket.master);
    if (bucket.dtype == bucket.master) bytes.all += bucket.elements * DTypeBytes(bucket.dtype);
  }
  for (const Storage& storage : module.storages) {
    if (storage.bucket >= 0 || storage.stage != stage || storage.parameters.empty()) continue;
    if (module.adapted()) continue;  // a checkpoint has adapters alone
    const bool buffer = module.parameters.at(static_cast<size_t>(storage.parameters.front())).buffer;
    const int64_t of_storage = ElementsOf(storage.shape) * DTypeBytes(buffer ? plan.master() : plan.dtype());
    bytes.all += of_storage;
    bytes.fixed += buffer ? of_storage : 0;
  }
}

WrittenBytes WrittenBytesOf(const Plan& plan, const Role& role) {
  WrittenBytes bytes;
  if (plan.checkpoint.every_steps == 0 || role.ranks.empty()) return bytes;
  const int rank = role.ranks.front().first;
  for (const std::string& name : role.modules) {
    const Module* module = plan.FindModule(name);
    if (module != nullptr && module->grid.contains(rank))
      AddCheckpointBytes(plan, *module, CoordinateOf(module->grid, rank, Axis::kPp), bytes);
  }
  return bytes;
}

// Sums over ranks are made in double: whatever a damaged plan claims, they do not overflow, and sums of real nodes are
// whole numbers of bytes all the same.
double GivenBytes(const Plan& plan) { return std::min(plan.cluster.host_memory, 1e9) * 1e9; }

// Calls visit(node, ranks by role) for nodes whose ranks are not all of the same roles as those of one before.
template <typename Visit>
void ForEachKindOfNode(const Plan& plan, const Visit& visit) {
  std::map<int, std::vector<int64_t>> nodes;  // ranks by role
  for (size_t role = 0; role < plan.roles.size(); ++role) {
    for (int rank : Expand(plan.roles[role].ranks)) {
      std::vector<int64_t>& ranks = nodes[rank / std::max(plan.cluster.gpus_per_node, 1)];
      ranks.resize(plan.roles.size());
      ++ranks[role];
    }
  }
  std::vector<std::vector<int64_t>> seen;
  for (const auto& [node, ranks] : nodes) {
    if (std::find(seen.begin(), seen.end(), ranks) != seen.end()) continue;
    seen.push_back(ranks);
    visit(node, ranks);
  }
}

// The largest share s so that ranks that take min(s, what they write) take at most `room`; 0: all of them fit whole.
int64_t ShareOfNode(const std::vector<HostMemory>& host, const std::vector<int64_t>& ranks, int64_t room) {
  std::vector<std::pair<int64_t, int64_t>> wanted;  // bytes, ranks
  int64_t left = 0;                                 // ranks that want more than what is given out so far
  for (size_t role = 0; role < host.size(); ++role) {
    if (ranks[role] == 0 || host[role].checkpoint == 0) continue;
    wanted.emplace_back(host[role].checkpoint, ranks[role]);
    left += ranks[role];
  }
  std::sort(wanted.begin(), wanted.end());
  for (const auto& [bytes, number] : wanted) {
    if (bytes > room / left) return std::max<int64_t>(room / left, 1);
    room -= bytes * number;
    left -= number;
  }
  return 0;
}

}  // namespace

int64_t CheckpointBytes(const Plan& plan, const Role& role) { return WrittenBytesOf(plan, role).all; }

std::vector<HostMemory> EstimateHostMemory(const Plan& plan) {
  std::vector<HostMemory> all;
  const bool on_gpus = plan.cluster.gpu != "none";
  const std::vector<RoleEstimate> memory = on_gpus ? std::vector<RoleEstimate>() : EstimateMemory(plan);
  for (size_t i = 0; i < plan.roles.size(); ++i) {
    HostMemory& host = all.emplace_back();
    host.role = &plan.roles[i];
    host.besides = on_gpus ? kGpuRankBytes : kCpuRankBytes + memory[i].planned.total();
    const WrittenBytes bytes = WrittenBytesOf(plan, *host.role);
    host.checkpoint = bytes.all;
    if (bytes.all > 0) host.least = std::min(bytes.all, bytes.fixed + kLeastCopies);
  }
  return all;
}

int64_t ShareOfCopies(const Plan& plan) {
  if (plan.cluster.host_memory == 0 || plan.checkpoint.every_steps == 0) return 0;
  const std::vector<HostMemory> host = EstimateHostMemory(plan);
  int64_t share = 0, least = 0;
  for (const HostMemory& one : host) least = std::max(least, one.least);
  ForEachKindOfNode(plan, [&](int, const std::vector<int64_t>& ranks) {
    double room = GivenBytes(plan);
    for (size_t role = 0; role < host.size(); ++role)
      room -= static_cast<double>(ranks[role]) * static_cast<double>(host[role].besides);
    const int64_t of_node = ShareOfNode(host, ranks, static_cast<int64_t>(std::max(room, 0.0)));
    if (of_node > 0) share = share == 0 ? of_node : std::min(share, of_node);
  });
  return share == 0 ? 0 : std::max(share, least);  // a share that is too small is found as a shortage
}

std::optional<HostShortage> FindHostShortage(const Plan& plan) {
  const int64_t copy_bytes = plan.checkpoint.copy_bytes;
  if (plan.cluster.host_memory == 0 && copy_bytes == 0) return std::nullopt;
  const std::vector<HostMemory> host = EstimateHostMemory(plan);
  for (const HostMemory& one : host) {
    if (one.copies(copy_bytes) >= one.least) continue;
    return HostShortage{absl::StrCat("copies of a checkpoint go through ", copy_bytes, " bytes of host memory, but a ",
                                     "rank of role ", one.role->name, " needs ", one.least),
                        ""};
  }
  if (plan.cluster.host_memory == 0) return std::nullopt;
  std::optional<HostShortage> shortage;
  double most = GivenBytes(plan);
  ForEachKindOfNode(plan, [&](int node, const std::vector<int64_t>& ranks) {
    double besides = 0, copies = 0, number = 0, least = 0;
    for (size_t role = 0; role < host.size(); ++role) {
      const auto of_role = static_cast<double>(ranks[role]);
      number += of_role;
      besides += of_role * static_cast<double>(host[role].besides);
      copies += of_role * static_cast<double>(host[role].copies(copy_bytes));
      least += of_role * static_cast<double>(host[role].least);
    }
    if (besides + copies <= most) return;
    most = besides + copies;
    shortage = {absl::StrFormat("the %.0f ranks of node %d need %.3f GB of host memory and at least %.3f GB for copies "
                                "of a checkpoint, and cluster.host_memory gives %.3f GB",
                                number, node, besides / 1e9, least / 1e9, GivenBytes(plan) / 1e9),
                // Rounded up, so that what it says is enough.
                absl::StrFormat("give at least %.2f GB, or place fewer ranks on a node",
                                std::ceil((besides + least) / 1e7) / 100)};
  });
  return shortage;
}

}  // namespace planwright
