#include "executor/data/routing_record.h"

#include <ATen/ops/empty.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "executor/data/file_error.h"
#include "planner/run_files/file_io.h"
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

std::string RoutingRecord::PathOf(const CallContext& call) const {
  return RoutingPath(folder_, absl::StrCat(call.module->name, ".layers.", call.layer));
}

int RoutingRecord::FileOf(const CallContext& call) {
  const std::string name = PathOf(call);
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(name);
  if (found != files_.end()) return found->second;
  const absl::StatusOr<int> file = OpenPlainFile(name, mode_ == Mode::kWrite ? O_WRONLY | O_CREAT : O_RDONLY);
  if (!file.ok()) throw FileError(file.status());
  files_[name] = *file;
  return *file;
}

template <typename Work>
void RoutingRecord::ForRuns(const CallContext& call, int64_t samples, int64_t top_k, Work work) {
  const int file = FileOf(call);
  const int64_t sequence = call.plan->budget.sequence_length;
  const std::vector<int64_t> positions = PositionsOf(call, sequence);
  // Token t of the call is position * samples + sample; the file has all positions of a sample together.
  for (int64_t sample = 0; sample < samples; ++sample) {
    const int64_t number = slots_->NumberOf(call.lane_samples().first + sample);
    for (size_t i = 0; i < positions.size(); ++i) {
      const int64_t token = number * sequence + positions[i];
      work(file, token * top_k * static_cast<int64_t>(sizeof(RoutingId)), static_cast<int64_t>(i) * samples + sample);
    }
  }
}

void RoutingRecord::Write(const CallContext& call, const at::Tensor& ids) {
  const at::Tensor narrow = ids.to(at::kShort).cpu().contiguous();
  const int64_t top_k = ids.size(1), samples = call.lane_samples().end - call.lane_samples().first;
  const auto bytes = static_cast<ssize_t>(top_k * static_cast<int64_t>(sizeof(RoutingId)));
  ForRuns(call, samples, top_k, [&](int file, int64_t offset, int64_t row) {
    const ssize_t written = pwrite(file, narrow.const_data_ptr<RoutingId>() + row * top_k, bytes, offset);
    if (written == bytes) return;
    const int problem = written < 0 ? errno : ENOSPC;  // a part of a few bytes: there was no room for all of them
    throw FileError(
        absl::ResourceExhaustedError(absl::StrCat("cannot write ", PathOf(call), ": ", std::strerror(problem))));
  });
}

at::Tensor RoutingRecord::Read(const CallContext& call, int64_t samples, int64_t top_k) {
  const int64_t positions = static_cast<int64_t>(PositionsOf(call, call.plan->budget.sequence_length).size());
  const at::Tensor narrow = at::empty({positions * samples, top_k}, at::kShort);
  const auto bytes = static_cast<ssize_t>(top_k * static_cast<int64_t>(sizeof(RoutingId)));
  ForRuns(call, samples, top_k, [&](int file, int64_t offset, int64_t row) {
    const ssize_t read = pread(file, narrow.mutable_data_ptr<RoutingId>() + row * top_k, bytes, offset);
    if (read == bytes) return;
    const std::string why = read < 0 ? std::strerror(errno) : absl::StrCat("no choices for step ", call.step + 1);
    throw FileError(absl::InvalidArgumentError(absl::StrCat("cannot read ", PathOf(call), ": ", why)));
  });
  const at::Tensor ids = narrow.to(at::kLong);
  const bool known =
      ids.numel() == 0 || (ids.min().item<int64_t>() >= 0 && ids.max().item<int64_t>() < call.module->experts());
  if (known) return ids;
  throw FileError(absl::InvalidArgumentError(
      absl::StrCat(PathOf(call), " names experts that ", call.module->name, " does not have")));
}

}  // namespace planwright::executor
