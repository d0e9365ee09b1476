// Sets of candidates that are still to be looked at, the least bound first. They are many, so each is a few numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

#include "planner/search/candidate.h"
#include "planner/search/simplicity.h"

namespace planwright {

inline constexpr double kInfinite = std::numeric_limits<double>::infinity();

// A layout of a module: its index among those of its placing, and that of its way.
struct LayoutIndex {
  uint32_t layout = 0, way = 0;
};

struct OpenNode {
  // What is known of its candidates: the layout of the language model without its stages' layers, of which those with
  // bounds below its own are no part; with them; the layouts of all modules; or the step, too.
  enum class Level : uint32_t { kSplits, kLanguage, kModules, kOne };

  double seconds = 0;  // bounds of all its candidates
  int64_t memory = 0;
  double candidates = 1;
  uint32_t order = 0;                         // in which they were found
  uint32_t placing = 0, micro = 0, step = 0;  // indices in the space
  Level level = Level::kLanguage;
  LayoutIndex language;
  uint32_t layouts = 0;  // of all modules: where they begin in what keeps them
};

// What nodes stand for.
class NodeSource {
 public:
  virtual ~NodeSource() = default;
  // The candidate of a node of one; of others, the one of its candidates that is taken to be the fastest, but for the
  // layers of stages where they are open.
  virtual Candidate CandidateOf(const OpenNode& node) = 0;
  // No candidate of a node is simpler.
  virtual Simplicity SimplicityOf(const OpenNode& node) = 0;
  // The parts of a node with more than one candidate. Those that break a rule, do not fit or have bounds above
  // `most_seconds` are counted and left out.
  virtual std::vector<OpenNode> PartsOf(const OpenNode& node, double most_seconds) = 0;
  // The least bound of parts that were left out as there were too many; infinite: none was.
  virtual double LeftOut() const = 0;
};

class OpenNodes {
 public:
  bool empty() const { return heap_.empty(); }
  size_t size() const { return heap_.size(); }
  double least() const { return heap_.empty() ? kInfinite : heap_.front().seconds; }

  void Add(OpenNode node) {
    node.order = ++order_;
    heap_.push_back(node);
    std::push_heap(heap_.begin(), heap_.end(), Later);
  }
  // Nodes that were taken out.
  void Reopen(const std::vector<OpenNode>& nodes) {
    heap_.insert(heap_.end(), nodes.begin(), nodes.end());
    std::make_heap(heap_.begin(), heap_.end(), Later);
  }
  OpenNode Next() {
    std::pop_heap(heap_.begin(), heap_.end(), Later);
    const OpenNode next = heap_.back();
    heap_.pop_back();
    return next;
  }
  // Takes out those with bounds up to `seconds`, the least bound first.
  std::vector<OpenNode> TakeUpTo(double seconds) {
    std::vector<OpenNode> taken;
    while (!heap_.empty() && least() <= seconds) taken.push_back(Next());
    return taken;
  }
  // Drops those above `seconds`, and returns how many candidates these are.
  double DropAbove(double seconds) {
    double dropped = 0;
    std::erase_if(heap_, [&](const OpenNode& node) {
      if (!(node.seconds > seconds)) return false;
      dropped += node.candidates;
      return true;
    });
    std::make_heap(heap_.begin(), heap_.end(), Later);
    return dropped;
  }
  // The bound that about half of them are above.
  double Middle() {
    std::vector<double> seconds;
    for (const OpenNode& node : heap_) seconds.push_back(node.seconds);
    std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2), seconds.end());
    return seconds[seconds.size() / 2];
  }
  double candidates() const {
    double sum = 0;
    for (const OpenNode& node : heap_) sum += node.candidates;
    return sum;
  }

 private:
  static bool Later(const OpenNode& a, const OpenNode& b) {
    return std::tie(a.seconds, a.memory, a.order) > std::tie(b.seconds, b.memory, b.order);
  }

  std::vector<OpenNode> heap_;
  uint32_t order_ = 0;
};

}  // namespace planwright
