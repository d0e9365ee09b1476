#include "planner/search/pass_reader.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "planner/plan/link/host_waits.h"
#include "planner/plan/link/program_accesses.h"

namespace planwright {
namespace {

// The greatest of two sums: with the host's clock at the begin, and with that of the main stream.
struct After {
  double host = kNever, main = kNever;
  void Raise(const After& by) { host = std::max(host, by.host), main = std::max(main, by.main); }
  After operator+(double seconds) const { return {host + seconds, main + seconds}; }
};

// Communications of another stream that pass while the main stream computes: between the end of main instruction
// `after` and the begin of main instruction `before`.
struct Beside {
  int after = -1, before = -1;
  double seconds = 0;
  size_t stream = 0, order = 0;
};

// The clocks of one pass, instruction by instruction.
class PassClocks {
 public:
  PassClocks(size_t streams, HostModel host) : host_model_(host), streams_(streams), stream_after_(streams, -1) {
    host_.host = 0, streams_[0].main = 0;
  }

  // `waits`: entries of this program that must be done, by stream; those before `first` are of earlier passes.
  void Add(size_t entry, const LinkedInstruction& instruction, const InstructionTime& time, bool host_waits,
           const std::vector<int64_t>* waits) {
    if (ends_.empty()) first_ = entry;
    const auto stream = static_cast<size_t>(instruction.stream);
    const bool communicates = instruction.op_class == OpClass::kCommunication;
    const bool runs = host_model_ == HostModel::kRunsMainStream;
    if (runs) host_ = host_ + time.launch;
    After arrived = streams_[stream];
    arrived.Raise(host_);
    int after = stream == 0 ? static_cast<int>(lengths_.size()) - 1 : stream_after_[stream];
    for (size_t s = 0; waits && s < waits->size(); ++s) {
      if ((*waits)[s] < static_cast<int64_t>(first_)) continue;
      const size_t at = static_cast<size_t>((*waits)[s]) - first_;
      arrived.Raise(ends_[at].end);
      if (s == 0) after = std::max(after, ends_[at].main);
      if (s != 0 && stream == 0) Join(s, ends_[at].order);
    }
    if (communicates) {
      arrived.Raise(last_communication_);
      last_communication_ = arrived;
    }
    if (!runs) host_ = host_ + time.launch;
    const After end = arrived + time.seconds;
    streams_[stream] = end;
    int main = -1;
    if (stream == 0) {
      main = static_cast<int>(lengths_.size());
      lengths_.push_back(time.seconds);
      computes_.push_back(!communicates);
    } else {
      stream_after_[stream] = after;
      if (communicates) beside_.push_back({after, -1, time.seconds, stream, order_});
    }
    ends_.push_back({end, main, order_++});
    if (host_waits || (runs && stream == 0)) host_.Raise(end);
  }

  Pass Finish(double beside) const {
    Pass pass{.host_host = host_.host,
              .host_main = host_.main,
              .main_host = streams_[0].host,
              .main_main = std::max(streams_[0].main, LeastLength(beside))};
    for (size_t i = 0; i < lengths_.size(); ++i) pass.work += computes_[i] ? lengths_[i] : 0;
    return pass;
  }

 private:
  struct Ended {
    After end;
    int main = -1;  // index among the main stream's; -1: of another stream
    size_t order = 0;
  };

  // The next main instruction comes behind everything of another stream up to an instruction.
  void Join(size_t stream, size_t order) {
    for (Beside& one : beside_) {
      if (one.before < 0 && one.stream == stream && one.order <= order) one.before = static_cast<int>(lengths_.size());
    }
  }

  // The main stream takes its instructions one after the other. While a communication passes beside those that compute,
  // one of the two goes on at `beside` of its speed: so both together take at least their sum / (1 + beside).
  double LeastLength(double beside) const {
    double length = 0;
    for (double one : lengths_) length += one;
    if (beside >= 1) return length;
    std::vector<Beside> windows;
    for (const Beside& one : beside_) {
      if (one.after < 0 || one.before <= one.after) continue;  // when it passes is not known
      if (!windows.empty() && one.after < windows.back().before) {
        windows.back().after = std::min(windows.back().after, one.after);
        windows.back().before = std::max(windows.back().before, one.before);
        windows.back().seconds += one.seconds;
      } else {
        windows.push_back(one);
      }
    }
    for (size_t w = 1; w < windows.size(); ++w) {
      if (windows[w].after < windows[w - 1].before) return length;  // they cross: nothing more is known
    }
    for (const Beside& window : windows) {
      double all = 0, work = 0;
      for (int i = window.after + 1; i < window.before; ++i) {
        const auto at = static_cast<size_t>(i);
        all += lengths_[at], work += computes_[at] ? lengths_[at] : 0;
      }
      length += std::max(0.0, (work + window.seconds) / (1 + beside) - all);
    }
    return length;
  }

  const HostModel host_model_;
  After host_, last_communication_;
  std::vector<After> streams_;
  std::vector<int> stream_after_;  // by stream: the last main instruction before its last one began
  std::vector<Ended> ends_;
  size_t first_ = 0, order_ = 0;
  std::vector<double> lengths_;  // of the main stream's instructions
  std::vector<char> computes_;
  std::vector<Beside> beside_;
};

// The call of embedding, layer or head that an entry is in; -1: none.
int PieceCallOf(const LinkedProgram& program, const LinkedEntry& entry) {
  const std::vector<LinkedCall>& calls = program.calls();
  int call = static_cast<int>(entry.call), inner = -1, piece = -1;
  for (; call >= 0; call = calls[static_cast<size_t>(call)].parent) piece = inner, inner = call;
  // `inner` is now the role's list and `piece` the call of a stage.
  const int stage = piece;
  piece = -1;
  for (call = static_cast<int>(entry.call); call >= 0 && call != stage; call = calls[static_cast<size_t>(call)].parent)
    piece = call;
  return stage < 0 || call < 0 ? -1 : piece;
}

// Bytes of the values of the device, as FindStepPeak counts them.
class LiveBytes {
 public:
  LiveBytes(const LinkedProgram& program, const InstructionCosts& costs)
      : program_(program), costs_(costs), values_(static_cast<size_t>(program.values())) {}

  int64_t now() const { return now_; }
  // Makes the outputs of an entry; returns bytes at its fullest moment.
  int64_t Make(size_t index) {
    const LinkedEntry& entry = program_.entries()[index];
    const LinkedInstruction& instruction = *entry.instruction;
    const std::span<const BytesBySizeCase> bytes = costs_.outputs(instruction);
    if (const int overwritten = program_.Overwritten(index); overwritten >= 0) Set(overwritten, 0);
    for (size_t k = 0; k < instruction.outputs.size(); ++k) {
      if (instruction.outputs[k] >= 0)
        Set(program_.ValueOf(entry, instruction.outputs[k]), bytes[k][static_cast<size_t>(SizeCase::kPlanned)]);
    }
    return now_ + costs_.workspace(instruction)[static_cast<size_t>(SizeCase::kPlanned)];
  }
  void End(size_t index) {
    now_ -= std::exchange(late_, 0);
    for (int event : program_.after(index)) {
      if (event >= 0 && program_.HoldsForNext(index)) late_ += std::exchange(values_[static_cast<size_t>(event)], 0);
      if (event >= 0) Set(event, 0);
    }
  }

 private:
  void Set(int value, int64_t bytes) {
    int64_t& known = values_[static_cast<size_t>(value)];
    now_ += bytes - known;
    known = bytes;
  }

  const LinkedProgram& program_;
  const InstructionCosts& costs_;
  std::vector<int64_t> values_;
  int64_t now_ = 0;
  int64_t late_ = 0;  // of what has died, but is held until the next entry is done
};

// Bytes of what the block of a call hands on.
int64_t OutBytes(const LinkedProgram& program, const InstructionCosts& costs, const LinkedCall& call) {
  const LinkedBlock& block = *call.block;
  int64_t bytes = 0;
  for (int out : block.outputs) {
    for (const LinkedInstruction& instruction : block.body) {
      for (size_t k = 0; k < instruction.outputs.size(); ++k) {
        if (instruction.outputs[k] == out && instruction.op_class != OpClass::kControl)
          bytes += costs.outputs(instruction)[k][static_cast<size_t>(SizeCase::kPlanned)];
      }
    }
  }
  return bytes;
}

// Seconds of the FLOPs alone: how much longer twice of them take, where no byte is moved.
double ProductsOf(std::optional<ComputeUse> use, const Rates& rates) {
  if (!use || !(use->flops > 0)) return 0;
  use->bytes = 0;
  const double once = rates.Compute(*use).seconds;
  use->flops *= 2;
  return rates.Compute(*use).seconds - once;
}

}  // namespace

std::vector<ReadPass> ReadPasses(const LinkedProgram& program, const InstructionCosts& costs, InstructionTimes& times,
                                 const Rates& rates, HostModel host) {
  std::vector<ReadPass> passes;
  ProgramAccesses accesses(program);
  std::optional<StreamDependencies> order;
  const auto streams = static_cast<size_t>(accesses.streams());
  if (streams > 1) order.emplace(accesses.resources(), static_cast<int>(streams));
  LiveBytes live(program, costs);
  std::optional<PassClocks> clocks;
  std::string frame;
  bool backward = false;
  int64_t before = 0;
  const auto finish = [&] {
    if (!clocks) return;
    const Pass made = clocks->Finish(rates.MostBeside());
    Pass& pass = passes.back().pass;
    pass.host_host = made.host_host, pass.host_main = made.host_main;
    pass.main_host = made.main_host, pass.main_main = made.main_main, pass.work = made.work;
    pass.delta = live.now() - before;
    clocks.reset();
  };
  const size_t first = program.step().first;
  for (size_t i = first; i < program.step().end; ++i) {
    const LinkedEntry& entry = program.entries()[i];
    const std::vector<int64_t>* waits = order ? &order->Next(accesses.of(i)) : nullptr;
    const int piece = PieceCallOf(program, entry);
    if (piece < 0) {
      finish();
    } else {
      const LinkedCall& call = program.calls()[static_cast<size_t>(piece)];
      const bool forward = absl::EndsWith(call.block->block->name, ".forward");
      if (!clocks || frame != program.blocks().frame(call.frame) || backward == forward) {
        finish();
        frame = program.blocks().frame(call.frame), backward = !forward;
        passes.push_back({.frame = frame, .backward = backward});
        if (forward) passes.back().out = OutBytes(program, costs, call);
        before = live.now();
        clocks.emplace(streams, host);
      }
      const bool host_waits = HostWaitsFor(*program.calls()[entry.call].block, *entry.instruction);
      passes.back().products += ProductsOf(times.ComputeOf(entry), rates);
      clocks->Add(i - first, *entry.instruction, times.of(entry), host_waits, waits);
    }
    const int64_t fullest = live.Make(i);
    if (clocks) passes.back().pass.peak = std::max(passes.back().pass.peak, fullest - before);
    live.End(i);
  }
  finish();
  return passes;
}

}  // namespace planwright
