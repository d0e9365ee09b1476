// The traces of programs: their communication instructions in program order, with calls replaced by the bodies of
// blocks (docs/progress.md#definitions, D2). What partners must agree on is turned into a text, and equal texts into
// equal numbers, so that comparing two events is comparing two integers.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// One communication instruction of a block or a list. It is kept once, however often the block is called.
struct Communication {
  // One part of an exchange.
  struct Part {
    const ExchangePart* part = nullptr;
    int communicator = 0;  // equal numbers: the same bridge, or the same group of stages, on the same stream
    int signature = 0;     // equal numbers: the same direction, shift, dtype and dims (over a bridge: of one row)
  };
  const Instruction* instruction = nullptr;
  const Group* group = nullptr;  // of a collective
  int group_index = -1;          // in Plan::groups
  int signature = 0;             // of a collective; equal numbers: the same kind, dtypes, dims, attributes and stream
  int64_t root = 0;              // of a broadcast: index in its subgroup
  std::vector<Part> parts;
  std::string problem;  // not empty: it can meet nobody; what is wrong with it
};

// The events of one list of a role, in program order. An event is an index for CommunicationTraces::at.
using Trace = std::vector<int>;

// The most events that all traces of a plan may have together. Nested calls multiply: without a bound, a small file
// could need more memory than any machine has.
inline constexpr size_t kMostEvents = size_t{1} << 24;

class CommunicationTraces {
 public:
  explicit CommunicationTraces(const Plan& plan);

  // The trace of a list. A call of a block that does not exist, or that calls itself, adds no event; V4 refuses it.
  Trace TraceOf(const std::vector<Instruction>& list);
  bool too_long() const { return event_count_ > kMostEvents; }  // then some trace is not complete
  const Communication& at(int event) const { return communications_[event]; }

  // Where event `index` of a list is ("step 12 > language.s0.forward 3 > language.moe.forward 5"), and its recipe line.
  struct EventPath {
    std::string path;
    int origin = -1;
  };
  EventPath PathOf(const std::string& name, const std::vector<Instruction>& list, size_t index, int origin) const;
  // For messages: "all_reduce fp32[4,256] reduce=sum over language.tp", "send forward bf16[*,2688] over bridge.a.b".
  std::string TextOf(const Communication& communication) const;
  std::string TextOf(const Communication::Part& part) const;

 private:
  // A block's own events, expanded once and copied into each caller's trace.
  struct BlockTrace {
    const Block* block = nullptr;
    Trace events;
    bool done = false, open = false;  // open: it is being expanded; a call of it now is a circle
  };
  using Types = std::unordered_map<std::string_view, const ValueType*>;

  void CollectEvents(const std::vector<Instruction>& body, const Types& given, Trace& events);
  const BlockTrace* TraceOfBlock(std::string_view name);
  int AddCommunication(const Instruction& instruction, const Types& types);
  int Intern(std::string text);
  bool FindEvent(const std::vector<Instruction>& body, size_t& index, EventPath& found) const;

  std::unordered_map<std::string_view, BlockTrace> blocks_;
  std::unordered_map<std::string_view, int> groups_;
  const Plan& plan_;
  size_t event_count_ = 0;
  std::deque<Communication> communications_;
  std::unordered_map<std::string, int> numbers_;
  std::vector<const std::string*> texts_;
};

}  // namespace planwright
