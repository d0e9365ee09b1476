#include "executor/data/routing_record.h"

#include <ATen/ops/empty.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "planner/run_files/routing_format.h"

namespace planwright::executor {
namespace {

// The positions of the sequence that this rank has, in its order: its zigzag part over cp, and of that its consecutive
// part over tp.
std::vector<int64_t> PositionsOf(const CallContext& call, int64_t sequence) {
  std::vector<int64_t> part;
  if (call.cp == 1) {
    for (int64_t i = 0; i < sequence; ++i) part.push_back(i);
  } else {
    const int64_t chunk = sequence / (2 * call.cp);
    for (int64_t first : {call.cp_rank * chunk, (2 * call.cp - 1 - call.cp_rank) * chunk}) {
      for (int64_t i = 0; i < chunk; ++i) part.push_back(first + i);
    }
  }
  const auto length = static_cast<int64_t>(part.size()) / call.tp;
  const auto begin = part.begin() + call.tp_rank * length;
  return {begin, begin + length};
}

}  // namespace

RoutingRecord::~RoutingRecord() {
  for (const auto& [name, file] : files_) close(file);
}

int RoutingRecord::FileOf(const CallContext& call) {
  const std::string name = RoutingPath(folder_, call.module->name + ".layers." + std::to_string(call.layer));
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(name);
  if (found != files_.end()) return found->second;
  const int file =
      open(name.c_str(), mode_ == Mode::kWrite ? O_WRONLY | O_CREAT | O_CLOEXEC : O_RDONLY | O_CLOEXEC, 0666);
  TORCH_CHECK(file >= 0, "cannot open ", name, ": ", std::strerror(errno));
  files_[name] = file;
  return file;
}

template <typename Work>
void RoutingRecord::ForRuns(const CallContext& call, int64_t samples, int64_t top_k, Work work) {
  const int file = FileOf(call);
  const int64_t sequence = call.plan->budget.sequence_length;
  const std::vector<int64_t> positions = PositionsOf(call, sequence);
  // Token t of the call is position * samples + sample; the file has all positions of a sample together.
  for (int64_t sample = 0; sample < samples; ++sample) {
    for (size_t i = 0; i < positions.size(); ++i) {
      const int64_t token = (call.lane_samples().first + sample) * sequence + positions[i];
      work(file, token * top_k * static_cast<int64_t>(sizeof(RoutingId)), static_cast<int64_t>(i) * samples + sample);
    }
  }
}

void RoutingRecord::Write(const CallContext& call, const at::Tensor& ids) {
  const at::Tensor narrow = ids.to(at::kShort).cpu().contiguous();
  const int64_t top_k = ids.size(1), samples = call.lane_samples().end - call.lane_samples().first;
  const auto bytes = static_cast<ssize_t>(top_k * static_cast<int64_t>(sizeof(RoutingId)));
  ForRuns(call, samples, top_k, [&](int file, int64_t offset, int64_t row) {
    TORCH_CHECK(pwrite(file, narrow.const_data_ptr<RoutingId>() + row * top_k, bytes, offset) == bytes,
                "cannot write the choices of ", call.module->name, ".layers.", call.layer, ": ", std::strerror(errno));
  });
}

at::Tensor RoutingRecord::Read(const CallContext& call, int64_t samples, int64_t top_k) {
  const int64_t positions = static_cast<int64_t>(PositionsOf(call, call.plan->budget.sequence_length).size());
  const at::Tensor narrow = at::empty({positions * samples, top_k}, at::kShort);
  const auto bytes = static_cast<ssize_t>(top_k * static_cast<int64_t>(sizeof(RoutingId)));
  ForRuns(call, samples, top_k, [&](int file, int64_t offset, int64_t row) {
    TORCH_CHECK(pread(file, narrow.mutable_data_ptr<RoutingId>() + row * top_k, bytes, offset) == bytes, folder_,
                " has no choices for step ", call.step + 1, " of ", call.module->name, ".layers.", call.layer);
  });
  const at::Tensor ids = narrow.to(at::kLong);
  TORCH_CHECK(
      ids.numel() == 0 || (ids.min().item<int64_t>() >= 0 && ids.max().item<int64_t>() < call.module->experts()),
      folder_, " names experts that ", call.module->name, ".layers.", call.layer, " does not have");
  return ids;
}

}  // namespace planwright::executor
