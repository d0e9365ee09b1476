#include "planner/estimate/memory_walk.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <unordered_map>

namespace planwright {
namespace {

constexpr int kMostDepth = 8;  // calls within calls; a plan that goes deeper is refused elsewhere

class Walk {
 public:
  explicit Walk(const ProgramIndex& index) : index_(index) {}

  // `values`: of the list's slots; -1: none. Inputs and takes are set by the caller.
  void Run(const BlockCode& code, std::vector<int>& values, int frame, int microbatch, int depth) {
    for (const StepCode& step : code.body) {
      if (step.op_class == OpClass::kControl) {
        Call(step, values, frame, microbatch, depth);
      } else {
        for (const ValueCode& output : step.outputs) {
          Set(values[output.slot], Make(output.bytes, step.op_class == OpClass::kCommunication));
        }
      }
      for (size_t at = 0; at < sums_.size(); ++at) {
        if (sums_[at].total() > peaks_[at].sum.total()) peaks_[at] = {sums_[at], &code, &step, frame};
      }
      for (int slot : step.frees) Set(values[slot], -1);
    }
  }

  StepPeak peak(Sizes sizes) const {
    const Peak& peak = peaks_[static_cast<size_t>(sizes)];
    return {.activations = peak.sum.activations,
            .communication = peak.sum.communication,
            .frame = peak.frame < 0 ? "" : index_.frame(peak.frame),
            .block = peak.code ? peak.code->block : nullptr,
            .instruction = peak.step ? peak.step->instruction : nullptr};
  }

 private:
  using Bytes = decltype(ValueCode::bytes);  // at Sizes
  struct Value {
    Bytes bytes{};
    int references = 0;
    bool communication = false;
  };
  struct Sum {
    int64_t activations = 0, communication = 0;
    int64_t total() const { return activations + communication; }
    int64_t& of(bool of_communication) { return of_communication ? communication : activations; }
  };
  struct Peak {
    Sum sum;
    const BlockCode* code = nullptr;
    const StepCode* step = nullptr;
    int frame = -1;
  };

  void Call(const StepCode& step, std::vector<int>& values, int frame, int microbatch, int depth) {
    if (step.block < 0 || depth >= kMostDepth) return;
    const BlockCode& code = index_.block(step.block);
    const int inner_frame = step.frame >= 0 ? step.frame : frame;
    const int inner_microbatch = step.instruction->microbatch >= 0 ? step.instruction->microbatch : microbatch;
    std::vector<int> inner(code.slots, -1);
    for (size_t i = 0; i < code.inputs.size() && i < step.inputs.size(); ++i) {
      if (step.inputs[i] >= 0) Share(inner[code.inputs[i]], values[step.inputs[i]]);
    }
    const int64_t key = (static_cast<int64_t>(inner_frame) << 32) | static_cast<uint32_t>(inner_microbatch);
    if (!code.takes.empty()) Take(key, code, inner);
    Run(code, inner, inner_frame, inner_microbatch, depth + 1);
    for (size_t i = 0; i < code.outputs.size() && i < step.outputs.size(); ++i) {
      if (code.outputs[i] >= 0) Share(values[step.outputs[i].slot], inner[code.outputs[i]]);
    }
    if (!code.saved.empty()) Save(key, code, inner);
    for (int& value : inner) Set(value, -1);
  }

  void Take(int64_t key, const BlockCode& code, std::vector<int>& inner) {
    const auto kept = frames_.find(key);
    if (kept == frames_.end()) return;
    std::erase_if(kept->second, [&](std::pair<int, int>& held) {
      const auto take = std::find_if(code.takes.begin(), code.takes.end(), [&](const KeptCode& wanted) { return wanted.name == held.first; });
      if (take == code.takes.end()) return false;
      Share(inner[take->slot], held.second);
      Set(held.second, -1);
      return true;
    });
    if (kept->second.empty()) frames_.erase(kept);
  }

  void Save(int64_t key, const BlockCode& code, const std::vector<int>& inner) {
    auto& kept = frames_[key];
    for (const KeptCode& saved : code.saved) {
      if (saved.slot < 0 || inner[saved.slot] < 0) continue;
      kept.emplace_back(saved.name, -1);
      Share(kept.back().second, inner[saved.slot]);
      Value& value = values_[inner[saved.slot]];
      if (!value.communication) continue;
      Count(value, -1);
      value.communication = false;
      Count(value, 1);
    }
  }

  int Make(const Bytes& bytes, bool communication) {
    const Value made = {bytes, 0, communication};
    Count(made, 1);
    if (spare_.empty()) {
      values_.push_back(made);
      return static_cast<int>(values_.size()) - 1;
    }
    const int value = spare_.back();
    spare_.pop_back();
    values_[value] = made;
    return value;
  }

  void Count(const Value& value, int64_t times) {
    for (size_t at = 0; at < sums_.size(); ++at) sums_[at].of(value.communication) += times * value.bytes[at];
  }

  // The name `at` now stands for `value`; what it stood for dies with its last name.
  void Set(int& at, int value) {
    if (value >= 0) ++values_[value].references;
    if (at >= 0 && --values_[at].references == 0) {
      Count(values_[at], -1);
      spare_.push_back(at);
    }
    at = value;
  }
  void Share(int& at, int value) { Set(at, value); }

  const ProgramIndex& index_;
  std::vector<Value> values_;
  std::vector<int> spare_;
  std::unordered_map<int64_t, std::vector<std::pair<int, int>>> frames_;  // frame and microbatch -> name, value
  std::array<Sum, std::tuple_size_v<Bytes>> sums_;  // at Sizes, as the peaks
  std::array<Peak, std::tuple_size_v<Bytes>> peaks_;
};

void Largest(const ProgramIndex& index, const BlockCode& code, std::set<int>& seen, int64_t& largest) {
  for (const StepCode& step : code.body) {
    largest = std::max(largest, step.largest);
    if (step.block >= 0 && seen.insert(step.block).second) Largest(index, index.block(step.block), seen, largest);
  }
}

}  // namespace

StepPeaks WalkStep(const ProgramIndex& index, const BlockCode& step) {
  Walk walk(index);
  std::vector<int> values(step.slots, -1);
  walk.Run(step, values, -1, 0, 0);
  return {walk.peak(Sizes::kPlanned), walk.peak(Sizes::kWorst)};
}

int64_t LargestOperand(const ProgramIndex& index, const BlockCode& step) {
  int64_t largest = 0;
  std::set<int> seen;
  Largest(index, step, seen, largest);
  return largest;
}

}  // namespace planwright
