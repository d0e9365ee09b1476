#include "planner/verify/shared/microbatch_calls.h"

#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "planner/verify/shared/plan_index.h"

namespace planwright {
namespace {

// Block and frame of each call that a role's list makes for one microbatch.
using OuterCalls = std::vector<std::pair<std::string_view, std::string_view>>;

// Appends a call and, depth first, all calls inside it.
void Flatten(const PlanIndex& index, const Block& block, std::string_view frame, std::vector<FrameCall>& calls) {
  const size_t own = calls.size();
  calls.push_back({&block, frame, 0});
  for (const Instruction& inner : block.body) {
    const Block* called = inner.kind == OpKind::kCall ? index.block(inner.block) : nullptr;
    if (called) Flatten(index, *called, inner.frame.empty() ? frame : std::string_view(inner.frame), calls);
  }
  calls[own].end = static_cast<int>(calls.size());
}

// Appends what the microbatches of a list of all roles do.
void AddCalls(const PlanIndex& index, const SampleList& list, std::vector<MicrobatchCalls>& found) {
  std::set<std::pair<std::vector<int>, OuterCalls>> seen;
  for (const Role& role : index.plan().roles) {
    // The role's stage in each module. Two stages may call blocks of equal names and still hold different layers, so
    // they are never looked at as one.
    std::vector<int> stages;
    for (const Module& module : index.plan().modules) stages.push_back(Runs(role, module) ? StageOf(role, module) : -1);
    std::map<int, OuterCalls> outer_calls;
    for (const Instruction& call : list.Of(role)) {
      if (call.kind == OpKind::kCall) outer_calls[call.microbatch].emplace_back(call.block, call.frame);
    }
    for (auto& [microbatch, outer] : outer_calls) {
      if (!seen.emplace(stages, outer).second) continue;
      MicrobatchCalls& calls = found.emplace_back(MicrobatchCalls{&role, list.evaluates, {}});
      for (const auto& [name, frame] : outer) {
        if (const Block* block = index.block(name)) Flatten(index, *block, frame, calls.calls);
      }
    }
  }
}

}  // namespace

std::vector<SampleList> SampleListsOf(const Plan& plan) {
  std::vector<SampleList> lists = {{"step", &Role::step, plan.budget.microbatches, false}};
  if (!plan.evaluation.empty()) lists.push_back({"evaluate", &Role::evaluate, 1, true});
  return lists;
}

std::vector<MicrobatchCalls> CallsOfMicrobatches(const PlanIndex& index) {
  std::vector<MicrobatchCalls> found;
  for (const SampleList& list : SampleListsOf(index.plan())) AddCalls(index, list, found);
  return found;
}

std::vector<FramePair> PairsOf(const std::vector<MicrobatchCalls>& microbatches) {
  std::vector<FramePair> pairs;
  std::set<std::tuple<std::string_view, const Block*, const Block*, bool>> seen;
  for (const MicrobatchCalls& microbatch : microbatches) {
    std::map<std::string_view, FramePair> frames;
    for (const FrameCall& call : microbatch.calls) {
      FramePair& pair = frames[call.frame];
      if (!pair.forward) {
        pair = {call.frame, call.block, nullptr, {}, microbatch.evaluates};
      } else {
        // What was the last call until now was not the backward.
        if (pair.backward) pair.again.push_back(pair.backward);
        pair.backward = call.block;
      }
    }
    for (const auto& [frame, pair] : frames) {
      if (seen.emplace(frame, pair.forward, pair.backward, pair.evaluates).second) pairs.push_back(pair);
    }
  }
  return pairs;
}

}  // namespace planwright
