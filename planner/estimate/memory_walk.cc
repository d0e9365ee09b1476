#include "planner/estimate/memory_walk.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace planwright {
namespace {

constexpr int kMostDepth = 8;  // calls within calls; a plan that goes deeper is refused elsewhere

class Walk {
 public:
  Walk(const ProgramIndex& index, Sizes sizes) : index_(index), size_(static_cast<size_t>(sizes)) {}

  // `values`: of the list's slots; -1: none. Inputs and takes are set by the caller.
  void Run(const BlockCode& code, std::vector<int>& values, int frame, int microbatch, int depth) {
    for (const StepCode& step : code.body) {
      if (step.op_class == OpClass::kControl) {
        Call(step, values, frame, microbatch, depth);
      } else {
        for (const ValueCode& output : step.outputs) {
          Set(values[output.slot], Make(output.bytes[size_], step.op_class == OpClass::kCommunication));
        }
      }
      if (activations_ + communication_ > peak_.total()) Note(code, step, frame);
      for (int slot : step.frees) Set(values[slot], -1);
    }
  }

  StepPeak peak() const {
    StepPeak peak = peak_;
    if (frame_ >= 0) peak.frame = index_.frame(frame_);
    return peak;
  }

 private:
  struct Value {
    int64_t bytes = 0;
    int references = 0;
    bool communication = false;
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
      value.communication = false;
      communication_ -= value.bytes;
      activations_ += value.bytes;
    }
  }

  int Make(int64_t bytes, bool communication) {
    (communication ? communication_ : activations_) += bytes;
    if (spare_.empty()) {
      values_.push_back({bytes, 0, communication});
      return static_cast<int>(values_.size()) - 1;
    }
    const int value = spare_.back();
    spare_.pop_back();
    values_[value] = {bytes, 0, communication};
    return value;
  }

  // The name `at` now stands for `value`; what it stood for dies with its last name.
  void Set(int& at, int value) {
    if (value >= 0) ++values_[value].references;
    if (at >= 0 && --values_[at].references == 0) {
      (values_[at].communication ? communication_ : activations_) -= values_[at].bytes;
      spare_.push_back(at);
    }
    at = value;
  }
  void Share(int& at, int value) { Set(at, value); }

  void Note(const BlockCode& code, const StepCode& step, int frame) {
    peak_.activations = activations_;
    peak_.communication = communication_;
    peak_.block = code.block;
    peak_.instruction = step.instruction;
    frame_ = frame;
  }

  const ProgramIndex& index_;
  const size_t size_;
  std::vector<Value> values_;
  std::vector<int> spare_;
  std::unordered_map<int64_t, std::vector<std::pair<int, int>>> frames_;  // frame and microbatch -> name, value
  int64_t activations_ = 0, communication_ = 0;
  StepPeak peak_;
  int frame_ = -1;
};

void Largest(const ProgramIndex& index, const BlockCode& code, std::set<int>& seen, int64_t& largest) {
  for (const StepCode& step : code.body) {
    largest = std::max(largest, step.largest);
    if (step.block >= 0 && seen.insert(step.block).second) Largest(index, index.block(step.block), seen, largest);
  }
}

}  // namespace

StepPeak WalkStep(const ProgramIndex& index, const BlockCode& step, Sizes sizes) {
  Walk walk(index, sizes);
  std::vector<int> values(step.slots, -1);
  walk.Run(step, values, -1, 0, 0);
  return walk.peak();
}

int64_t LargestOperand(const ProgramIndex& index, const BlockCode& step) {
  int64_t largest = 0;
  std::set<int> seen;
  Largest(index, step, seen, largest);
  return largest;
}

}  // namespace planwright
