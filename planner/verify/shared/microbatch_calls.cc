#include "planner/verify/shared/microbatch_calls.h"

#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "planner/verify/shared/plan_index.h"

namespace planwright {
namespace {

using Key = std::vector<std::pair<std::string_view, std::string_view>>;  // block, frame of the calls of a program

void Flatten(const PlanIndex& index, const Block& block, std::string_view frame, std::vector<FrameCall>& calls) {
  const size_t place = calls.size();
  calls.push_back({&block, frame, 0});
  for (const Instruction& inner : block.body) {
    const Block* called = inner.kind == OpKind::kCall ? index.block(inner.block) : nullptr;
    if (called) Flatten(index, *called, inner.frame.empty() ? frame : std::string_view(inner.frame), calls);
  }
  calls[place].end = static_cast<int>(calls.size());
}

}  // namespace

std::vector<MicrobatchCalls> CallsOfMicrobatches(const PlanIndex& index) {
  std::vector<MicrobatchCalls> found;
  std::map<std::pair<std::vector<int>, Key>, size_t> seen;
  for (const Role& role : index.plan().roles) {
    std::vector<int> stages;  // of the role in each module: roles of two stages are never looked at as one
    for (const Module& module : index.plan().modules) stages.push_back(Runs(role, module) ? StageOf(role, module) : -1);
    std::map<int, Key> keys;
    for (const Instruction& call : role.step) {
      if (call.kind == OpKind::kCall) keys[call.microbatch].emplace_back(call.block, call.frame);
    }
    for (auto& [microbatch, key] : keys) {
      auto [it, inserted] = seen.emplace(std::pair(stages, key), found.size());
      if (inserted) {
        MicrobatchCalls& calls = found.emplace_back(MicrobatchCalls{&role, {}, {}});
        for (const auto& [name, frame] : key) {
          if (const Block* block = index.block(name)) Flatten(index, *block, frame, calls.calls);
        }
      }
      if (found[it->second].role == &role) found[it->second].microbatches.push_back(microbatch);
    }
  }
  return found;
}

std::vector<FramePair> PairsOf(const std::vector<MicrobatchCalls>& microbatches) {
  std::vector<FramePair> pairs;
  std::set<std::tuple<std::string_view, const Block*, const Block*>> seen;
  for (const MicrobatchCalls& microbatch : microbatches) {
    std::map<std::string_view, FramePair> frames;
    for (const FrameCall& call : microbatch.calls) {
      FramePair& pair = frames[call.frame];
      if (!pair.forward) {
        pair = {microbatch.role, call.frame, call.block, nullptr, {}};
      } else {
        // between the first and the last: the forward, run again
        if (pair.backward) pair.again.push_back(pair.backward);
        pair.backward = call.block;
      }
    }
    for (const auto& [frame, pair] : frames) {
      if (seen.emplace(frame, pair.forward, pair.backward).second) pairs.push_back(pair);
    }
  }
  return pairs;
}

}  // namespace planwright
