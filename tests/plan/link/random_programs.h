// Random programs that compute nothing useful and are well formed: blocks call blocks, save values for their backward,
// and reuse names.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright::testing {

class RandomProgram {
 public:
  explicit RandomProgram(unsigned seed) : random_(seed) {}

  // A plan of one role. Its blocks come in pairs: a forward, and the backward that takes what it saves. Some blocks
  // call a block of an earlier pair.
  Plan Make() {
    Plan plan;
    const int pairs = Pick(1, 4);
    for (int i = 0; i < pairs; ++i) AddPair(plan, i);
    Role role{.name = "r", .ranks = {{0, 1, 1}}};
    const int microbatches = Pick(1, 4);
    std::vector<std::string> live;
    std::vector<std::pair<int, int>> open;  // pair, microbatch: forwards whose backward has not come yet
    const auto backward = [&](size_t at) {
      const auto [pair, m] = open[at];
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
      role.step.push_back(CallOf(plan.blocks[2 * pair + 1], Frame(pair), m, live));
    };
    for (int m = 0; m < microbatches; ++m) {
      for (int pair = 0; pair < pairs; ++pair) {
        if (live.empty() || Pick(0, 2) == 0) role.step.push_back(Op(live));
        role.step.push_back(CallOf(plan.blocks[2 * pair], Frame(pair), m, live));
        open.emplace_back(pair, m);
        if (Pick(0, 2) == 0) backward(static_cast<size_t>(Pick(0, static_cast<int>(open.size()) - 1)));
      }
    }
    while (!open.empty()) backward(static_cast<size_t>(Pick(0, static_cast<int>(open.size()) - 1)));
    live.clear();
    role.setup = {Op(live)};
    plan.roles = {std::move(role)};
    return plan;
  }

 private:
  int Pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  static std::string Frame(int pair) { return "m.layers." + std::to_string(pair); }
  const std::string& Any(const std::vector<std::string>& live) {
    return live[static_cast<size_t>(Pick(0, static_cast<int>(live.size()) - 1))];
  }
  Output Fresh() {
    return {"v" + std::to_string(Pick(0, 30)),
            {DType::kFp32, {int64_t{Pick(1, 100)}}, {}, std::nullopt, Pick(0, 9) == 0}};
  }

  // A name that no live value has. Names of freed values are used again.
  Output Unused(const std::vector<std::string>& live) {
    Output output = Fresh();
    while (std::find(live.begin(), live.end(), output.name) != live.end()) output.name += "x";
    return output;
  }

  // Frees some values, but never the last: later instructions need something to read.
  void Free(Instruction& instruction, std::vector<std::string>& live) {
    while (live.size() > 1 && Pick(0, 2) == 0) {
      const std::string name = Any(live);
      instruction.frees.push_back(name);
      std::erase(live, name);
    }
  }

  Instruction Op(std::vector<std::string>& live) {
    // A communication, a kind that may overwrite what it reads, and one that may not.
    constexpr OpKind kKinds[] = {OpKind::kAllReduce, OpKind::kCrossEntropyGrad, OpKind::kAdd, OpKind::kAdd};
    Instruction op{.kind = kKinds[Pick(0, 3)]};
    for (int i = live.empty() ? 0 : Pick(0, 3); i > 0; --i) op.inputs.push_back(Any(live));
    for (int i = Pick(0, 2) + live.empty(); i > 0; --i) {
      op.outputs.push_back(Unused(live));
      live.push_back(op.outputs.back().name);
    }
    Free(op, live);
    return op;
  }

  Instruction CallOf(const Block& block, const std::string& frame, int microbatch, std::vector<std::string>& live) {
    Instruction call{.kind = OpKind::kCall, .block = block.name, .frame = frame, .microbatch = microbatch};
    for (size_t i = 0; i < block.inputs.size(); ++i) call.inputs.push_back(Any(live));
    for (size_t i = 0; i < block.outputs.size(); ++i) {
      call.outputs.push_back(Unused(live));
      live.push_back(call.outputs.back().name);
    }
    Free(call, live);
    return call;
  }

  void Fill(Block& block, std::vector<std::string>& live, const Block* inner, const std::string& inner_frame) {
    const int calls_at = inner ? Pick(0, 3) : -1;
    for (int i = Pick(1, 6); i >= 0; --i) {
      block.body.push_back(Op(live));
      if (live.empty()) block.body.push_back(Op(live));
      if (i == calls_at) block.body.push_back(CallOf(*inner, inner_frame, -1, live));
    }
    if (live.empty()) block.body.push_back(Op(live));
    for (int i = Pick(0, 2); i > 0; --i) block.outputs.push_back(Any(live));
  }

  // A block may call an earlier block only if that saves and takes nothing: a saved value must be taken by the backward
  // of its own pair.
  void AddPair(Plan& plan, int pair) {
    Block forward{.name = "f" + std::to_string(pair)}, backward{.name = "b" + std::to_string(pair)};
    std::vector<std::string> live;
    for (int i = Pick(0, 2); i > 0; --i) {
      forward.inputs.push_back(Unused(live));
      live.push_back(forward.inputs.back().name);
    }
    const auto plain = [&]() -> const Block* {
      for (const Block& block : plan.blocks) {
        if (block.saved.empty() && block.takes.empty() && Pick(0, 1) == 0) return &block;
      }
      return nullptr;
    };
    if (live.empty()) forward.body.push_back(Op(live));
    Fill(forward, live, plain(), Pick(0, 1) ? "" : "other");
    for (const std::string& name : live) {
      if (Pick(0, 1)) forward.saved.push_back(name);
    }
    live.clear();
    for (const std::string& name : forward.saved) {
      backward.takes.push_back({name, {DType::kFp32, {int64_t{1}}, {}, std::nullopt, false}});
      live.push_back(name);
    }
    if (live.empty()) backward.body.push_back(Op(live));
    Fill(backward, live, plain(), "");
    plan.blocks.push_back(std::move(forward));
    plan.blocks.push_back(std::move(backward));
  }

  std::mt19937 random_;
};

}  // namespace planwright::testing
