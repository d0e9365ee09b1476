// Programs seen as what they communicate: communication instructions in program order, blocks expanded, each with the
// numbers of what its partners must agree on.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// One communication instruction of a block or a list, wherever and how often it is called.
struct Communication {
  // A half-transfer of an exchange.
  struct Part {
    const ExchangePart* part = nullptr;
    int communicator = 0;  // equal numbers: the same bridge, or the same group of stages
    int signature = 0;     // equal numbers: the same direction, dtype and dims (over a bridge: of one row)
  };
  const Instruction* instruction = nullptr;
  const Group* group = nullptr;  // of a collective
  int group_index = -1;          // in Plan::groups
  int signature = 0;             // of a collective; equal numbers: the same kind, dtypes, dims and attributes
  int64_t root = 0;              // of a broadcast: index in its subgroup
  std::vector<Part> parts;
  std::string problem;  // not empty: it can meet nobody, in words
};

// What a role runs, one after the other. Events are indices of CommunicationTraces::at.
using Trace = std::vector<int>;

// Events that the traces of a plan may hold in all. Calls of calls multiply: a small file could ask for more than any
// machine holds.
inline constexpr size_t kMostEvents = size_t{1} << 24;

class CommunicationTraces {
 public:
  explicit CommunicationTraces(const Plan& plan);

  // Throws nothing: a call of a block that does not exist, or that calls itself, counts for nothing here (V4 refuses
  // it).
  Trace Of(const std::vector<Instruction>& list);
  bool too_long() const { return held_ > kMostEvents; }  // some trace was cut short
  const Communication& at(int event) const { return communications_[event]; }

  // Where the `index`-th event of a list stands ("step 12 > language.s0.forward 3 > language.moe.forward 5"), and its
  // recipe line.
  struct Place {
    std::string path;
    int origin = -1;
  };
  Place PlaceOf(const std::string& name, const std::vector<Instruction>& list, size_t index, int origin) const;
  // "all_reduce over language.tp: fp32[4,256] reduce=sum"; of a part "send of bf16[*,2688] over bridge.a.b forward"
  std::string TextOf(const Communication& communication) const;
  std::string TextOf(const Communication::Part& part) const;

 private:
  struct BlockTrace {
    const Block* block = nullptr;
    Trace events;
    bool done = false, open = false;
  };
  using Types = std::unordered_map<std::string_view, const ValueType*>;

  void Collect(const std::vector<Instruction>& body, const Types& given, Trace& events);
  const BlockTrace* Expand(std::string_view name);
  int Add(const Instruction& instruction, const Types& types);
  int Number(std::string text);
  bool FindPlace(const std::vector<Instruction>& body, size_t& index, Place& place) const;

  std::unordered_map<std::string_view, BlockTrace> blocks_;
  std::unordered_map<std::string_view, int> groups_;
  const Plan& plan_;
  size_t held_ = 0;  // events, in traces and in blocks
  std::deque<Communication> communications_;
  std::unordered_map<std::string, int> numbers_;
  std::vector<const std::string*> texts_;
};

}  // namespace planwright
