// Which waits of a program say something: a wait whose event is known to be over, by streams and other waits, can be dropped without harm.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright::testing {

// One list of a role with the bodies of its calls in their places. Knows nothing of the proof's way to order a program.
class EventGraph {
 public:
  EventGraph(const Plan& plan, const std::vector<Instruction>& list);

  // Whether the order of the program hangs on wait `k` of the instruction that stands at `place` of the list, or inside the calls at `calls`.
  bool Needs(const std::vector<size_t>& calls, size_t place, size_t k) const;

 private:
  struct Node {
    std::vector<int> after;  // done before this one starts, but for waits
    std::vector<int> waits;  // the signaller of each; -1: nobody before it
  };

  void Add(const std::vector<Instruction>& body, const std::string& stream, std::vector<size_t> calls, int inside);
  int NewNode(const std::string& stream, int inside);

  const Plan& plan_;
  std::vector<Node> nodes_;
  std::map<std::vector<size_t>, int> at_;  // calls and place
  std::map<std::string, int> last_, signalled_;
};

}  // namespace planwright::testing
