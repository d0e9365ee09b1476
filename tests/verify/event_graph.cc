#include "tests/verify/event_graph.h"

namespace planwright::testing {

EventGraph::EventGraph(const Plan& plan, const std::vector<Instruction>& list) : plan_(plan) { Add(list, "", {}, -1); }

int EventGraph::NewNode(const std::string& stream, int inside) {
  const int node = static_cast<int>(nodes_.size());
  Node& made = nodes_.emplace_back();
  if (inside >= 0) made.after.push_back(inside);
  if (auto last = last_.find(stream); last != last_.end()) made.after.push_back(last->second);
  last_[stream] = node;
  return node;
}

// `inside`: the start of the call that holds the body back.
void EventGraph::Add(const std::vector<Instruction>& body, const std::string& stream, std::vector<size_t> calls, int inside) {
  for (size_t i = 0; i < body.size(); ++i) {
    const Instruction& op = body[i];
    const std::string& on = op.stream.empty() ? stream : op.stream;
    int node = NewNode(on, inside);
    for (const std::string& event : op.waits) {
      auto signaller = signalled_.find(event);
      nodes_[static_cast<size_t>(node)].waits.push_back(signaller == signalled_.end() ? -1 : signaller->second);
    }
    calls.push_back(i);
    at_[calls] = node;
    const Block* block = op.kind == OpKind::kCall ? plan_.FindBlock(op.block) : nullptr;
    if (block) {
      const int first = node + 1;
      Add(block->body, on, calls, node);
      if (!op.waits.empty() || !op.signals.empty()) {
        node = NewNode(on, inside);  // its end, for which its stream waits
        for (int inner = first; inner < node; ++inner) nodes_[static_cast<size_t>(node)].after.push_back(inner);
      }
    }
    calls.pop_back();
    for (const std::string& event : op.signals) signalled_.emplace(event, node);
  }
}

bool EventGraph::Needs(const std::vector<size_t>& calls, size_t place, size_t k) const {
  std::vector<size_t> key = calls;
  key.push_back(place);
  const Node& node = nodes_[static_cast<size_t>(at_.at(key))];
  const int wanted = node.waits[k];
  if (wanted < 0) return true;
  std::vector<int> open = node.after;
  for (size_t i = 0; i < node.waits.size(); ++i) {
    if (i != k) open.push_back(node.waits[i]);
  }
  std::vector<char> seen(nodes_.size());
  while (!open.empty()) {
    const int next = open.back();
    open.pop_back();
    if (next < 0 || seen[static_cast<size_t>(next)]) continue;
    if (next == wanted) return false;
    seen[static_cast<size_t>(next)] = true;
    const Node& before = nodes_[static_cast<size_t>(next)];
    open.insert(open.end(), before.after.begin(), before.after.end());
    open.insert(open.end(), before.waits.begin(), before.waits.end());
  }
  return true;
}

}  // namespace planwright::testing
