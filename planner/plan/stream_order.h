// What each instruction of a program on several streams waits for. A program is sequential by definition; a stream says
// where an instruction runs. Its order against other streams follows from what both touch, and is derived here and
// nowhere else: by `verify`, by `estimate` and by the executor alike.
//
// - Resources form a tree by their names: "%language.gradients" contains "%language.gradients.3", "$reals" contains
//   "$reals.loss". Two accesses conflict if one resource contains the other and not both read. (An add reads and
//   writes.)
// - An instruction starts when all earlier ones that conflict with it are done, and when those before it on its stream
//   are.
// - Memory is given out in program order, as if there were one stream: an instruction that makes a value starts when
//   everything is done that touched a value freed before it. So freeing delays nobody, and memory does not depend on
//   streams.
// - A communication starts when all earlier communications, on any stream, have started (docs/progress.md, A2).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// An instruction as the order sees it. Resources are numbers of a ResourceTree.
struct Access {
  int resource = 0;
  bool writes = false;
};

// Names of resources as numbers. A name's parents are its parts before each '.' or '/'; of state, the sigil alone is
// the root.
class ResourceTree {
 public:
  // The number of a name, with its parents', made on first sight.
  int Number(std::string_view name);
  int parent(int resource) const { return parents_[static_cast<size_t>(resource)]; }  // -1: a root
  int size() const { return static_cast<int>(parents_.size()); }
  const std::string& name(int resource) const { return *names_[static_cast<size_t>(resource)]; }

 private:
  std::unordered_map<std::string, int> numbers_;
  std::vector<int> parents_;
  std::vector<const std::string*> names_;
};

// State that an instruction touches beside its values: what ops.def says of its kind, with attributes in place of
// braces, and operands that are state. A shard counts as its whole bucket, so that the order is one for a role.
// `modules`: of the role.
struct StateAccess {
  std::string resource;
  bool writes = false;
};
std::vector<StateAccess> StateAccessesOf(const Instruction& instruction, const std::vector<std::string>& modules);

// A parameter slot as a resource: "%language.parameters.3/language.layers.0.norm", or of a tensor in no bucket
// "%language.buffers/...".
std::string ParameterResource(const Module& module, const Storage& storage);
std::string GradientResource(const Module& module, const Storage& storage);

// Derives the order of one rank's sequence: setup, steps and teardown, one after the other. Each instruction is handed
// over once, in program order.
class StreamOrder {
 public:
  // Keeps the reference; resources may be added to the tree as long as their numbers are new.
  StreamOrder(const ResourceTree& resources, int streams);

  struct Step {
    int stream = 0;
    std::vector<Access> accesses;  // state and values; an output is a write
    std::vector<int> frees;        // values, dropped when it is done
    bool makes_value = false;      // takes memory
  };
  // By stream: the last instruction of it that must be done before this one starts; -1: none that those before it on
  // its own stream have not waited for. Instructions count from 0 over all streams. The reference is good until the
  // next call.
  const std::vector<int64_t>& Next(const Step& step);

 private:
  using Clock = std::vector<int64_t>;  // by stream: an instruction; -1: none
  // The last instructions that read and wrote a resource itself, and something inside it.
  struct Touch {
    Clock reads, writes, reads_inside, writes_inside;
  };
  Touch& TouchOf(int resource);
  void Raise(const Clock& by, Clock& clock) const;
  void AddConflicts(const Access& access);
  void Note(const Access& access, int stream);

  const ResourceTree& resources_;
  const int streams_;
  int64_t number_ = -1;         // of the instruction that was handed over last
  std::vector<Touch> touches_;  // by resource
  std::vector<Clock> known_;    // by stream: what is done when the next instruction on it starts
  Clock freed_;                 // last touched a value that is freed by now
  Clock waits_;
};

}  // namespace planwright
