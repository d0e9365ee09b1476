#include "executor/data/routing_record.h"

#include <ATen/ops/empty.h>
#include <absl/strings/str_cat.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "executor/data/file_error.h"
#include "planner/base/files/file_io.h"
#include "planner/wire/records/routing_format.h"

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

constexpr int kEndOfFile = -1;  // beside errno's numbers

// Moves `count` ids at `offset` of a file, in ids, by pwrite or pread: 0, an errno, or `none` if a call moved nothing.
template <typename Call, typename Id>
int MoveIds(Call call, int file, Id* ids, int64_t count, int64_t offset, int none) {
  constexpr auto kWidth = static_cast<int64_t>(sizeof(RoutingId));
  while (count > 0) {
    const ssize_t bytes = call(file, ids, static_cast<size_t>(count * kWidth), offset * kWidth);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return errno;
    const int64_t moved = bytes / kWidth;
    if (moved == 0) return none;
    ids += moved, count -= moved, offset += moved;
  }
  return 0;
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
  const auto found = files_.find(name);
  if (found != files_.end()) return found->second;
  const absl::StatusOr<int> file = OpenPlainFile(name, mode_ == Mode::kWrite ? O_WRONLY | O_CREAT : O_RDONLY);
  if (!file.ok()) throw FileError(file.status());
  files_[name] = *file;
  return *file;
}

std::vector<RoutingRecord::Run> RoutingRecord::RunsOf(const CallContext& call, int64_t samples, int64_t top_k) const {
  const int64_t sequence = call.plan->budget.sequence_length;
  const std::vector<int64_t> positions = PositionsOf(call, sequence);
  const auto count = static_cast<int64_t>(positions.size());
  std::vector<Run> runs;
  for (int64_t sample = 0; sample < samples; ++sample) {
    const int64_t number = slots_->NumberOf(call.lane_samples().first + sample);
    for (int64_t begin = 0, end = 0; begin < count; begin = end) {
      for (end = begin + 1; end < count && positions[end] == positions[end - 1] + 1;) ++end;
      runs.push_back(
          {(number * sequence + positions[begin]) * top_k, (sample * count + begin) * top_k, (end - begin) * top_k});
    }
  }
  return runs;
}

void RoutingRecord::Write(const CallContext& call, const at::Tensor& ids) {
  const std::lock_guard lock(mutex_);
  const int64_t top_k = ids.size(1), samples = call.lane_samples().end - call.lane_samples().first;
  if (samples == 0) return;
  Copy copy = {PathOf(call), FileOf(call), RunsOf(call, samples, top_k)};
  // Token t of the call is position * samples + sample; the file has all positions of a sample together.
  const at::Tensor by_sample =
      ids.to(at::kShort).view({ids.size(0) / samples, samples, top_k}).transpose(0, 1).contiguous();
  copy.ids = by_sample.to(at::kCPU, at::kShort, /*non_blocking=*/true);
  if (!ids.is_cpu()) {
    copy.copied.emplace(ids.device().type());
    copy.copied->record(c10::impl::VirtualGuardImpl(ids.device().type()).getStream(ids.device()));
  }
  copies_.push_back(std::move(copy));
  WriteCopies(/*wait=*/false);
}

void RoutingRecord::Finish() {
  const std::lock_guard lock(mutex_);
  WriteCopies(/*wait=*/true);
  for (const auto& [path, file] : files_) {
    if (unsynced_.contains(file) && fsync(file) != 0)
      throw FileError(absl::ResourceExhaustedError(absl::StrCat("cannot write ", path, ": ", std::strerror(errno))));
  }
  unsynced_.clear();
}

void RoutingRecord::WriteCopies(bool wait) {
  for (; !copies_.empty(); copies_.pop_front()) {
    const Copy& copy = copies_.front();
    if (copy.copied && !copy.copied->query()) {
      if (!wait) return;
      copy.copied->synchronize();
    }
    unsynced_.insert(copy.file);
    for (const Run& run : copy.runs) {
      const int problem =
          MoveIds(pwrite, copy.file, copy.ids.const_data_ptr<RoutingId>() + run.first, run.ids, run.offset, ENOSPC);
      if (problem != 0)
        throw FileError(
            absl::ResourceExhaustedError(absl::StrCat("cannot write ", copy.path, ": ", std::strerror(problem))));
    }
  }
}

at::Tensor RoutingRecord::Read(const CallContext& call, int64_t samples, int64_t top_k) {
  const std::lock_guard lock(mutex_);
  const int file = FileOf(call);
  const auto positions = static_cast<int64_t>(PositionsOf(call, call.plan->budget.sequence_length).size());
  const at::Tensor narrow = at::empty({samples, positions, top_k}, at::kShort);
  for (const Run& run : RunsOf(call, samples, top_k)) {
    const int problem =
        MoveIds(pread, file, narrow.mutable_data_ptr<RoutingId>() + run.first, run.ids, run.offset, kEndOfFile);
    if (problem == 0) continue;
    const std::string why =
        problem == kEndOfFile ? absl::StrCat("no choices for step ", call.step + 1) : std::strerror(problem);
    throw FileError(absl::InvalidArgumentError(absl::StrCat("cannot read ", PathOf(call), ": ", why)));
  }
  const at::Tensor ids = narrow.transpose(0, 1).reshape({positions * samples, top_k}).to(at::kLong);
  const bool known =
      ids.numel() == 0 || (ids.min().item<int64_t>() >= 0 && ids.max().item<int64_t>() < call.module->experts());
  if (known) return ids;
  throw FileError(absl::InvalidArgumentError(
      absl::StrCat(PathOf(call), " names experts that ", call.module->name, " does not have")));
}

}  // namespace planwright::executor
