// What each instruction of a program on several streams waits for. A program is sequential by definition; a stream only
// says where an instruction runs. How an instruction is ordered with those on other streams follows from what both
// touch. It is derived here and nowhere else. The executor walks its programs by this class, and
// tests/verify/v3_progress/stream_order_test.cc compares the class with the definition below by brute force.
//
// - Resources form a tree by their names: "%language.gradients" contains "%language.gradients.3", and "$reals" contains
//   "$reals.loss". Two accesses conflict if one resource contains the other and at least one of them writes. (An
//   instruction that adds reads and writes.)
// - An instruction starts when all earlier instructions that conflict with it are done, and all earlier ones on its own
//   stream.
// - Memory is given out in program order, as if there were one stream: an instruction that makes a value starts when
//   everything is done that touched a value freed before it. So freeing never waits, and the memory that a program
//   needs does not depend on streams.
// - A communication starts when all earlier communications, on every stream, have started (docs/progress.md, A2). The
//   class does not derive this rule; its users keep it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// Names of resources, numbered from 0. A name's parents are its parts before each '.' or '/'. A name of state has its
// sigil as the root: "%language.gradients.3", "%language.gradients", "%language", "%".
class ResourceTree {
 public:
  int Intern(std::string_view name);  // the number of a name; a new name and its new parents get numbers
  // Adds a resource without a name, inside another one; -1: a root.
  int Add(int parent) {
    parents_.push_back(parent);
    return size() - 1;
  }
  int parent(int resource) const { return parents_[static_cast<size_t>(resource)]; }  // -1: a root
  int size() const { return static_cast<int>(parents_.size()); }

 private:
  std::unordered_map<std::string, int> numbers_;
  std::vector<int> parents_;
};

// An access to a resource of a ResourceTree.
struct Access {
  int resource = 0;
  bool writes = false;
};

// An access to state, by name.
struct StateAccess {
  std::string resource;
  bool writes = false;
};

// The state that an instruction touches: the effects that ops.def lists for its kind, with attributes in place of
// braces, and operands that are state. A shard counts as its whole bucket, so that the order is the same for all ranks
// of a role. `modules`: those of the role.
std::vector<StateAccess> StateAccessesOf(const Instruction& instruction, const std::vector<std::string>& modules);

// The resource in which the storages of a bucket lie, each as a resource of its own: "%language.parameters.3". Of those
// in no bucket (-1): "%language.buffers".
std::string ParametersResource(const Module& module, int bucket);
// The same of the gradients of a bucket: "%language.gradients.3".
std::string GradientsResource(const Module& module, int bucket);

// One instruction, as far as its order matters.
struct InstructionAccesses {
  int stream = 0;
  std::vector<Access> accesses;  // to state and values; making a value writes it
  std::vector<int> frees;        // resources of values that are dropped when it is done
  bool makes_value = false;      // it takes memory
};

// Derives the order of one rank's instructions: those of setup, then of steps, then of teardown. Each instruction is
// handed over once, in program order.
class StreamDependencies {
 public:
  // Keeps `resources`: it must live as long. Resources may be added to the tree later.
  StreamDependencies(const ResourceTree& resources, int streams);

  // What the next instruction waits for. By stream: the last instruction there that must be done before this one
  // starts; -1: none, or earlier instructions on its own stream have waited for it already. Instructions are numbered
  // from 0 over all streams. The reference is valid until the next call.
  const std::vector<int64_t>& Next(const InstructionAccesses& instruction);

 private:
  using Clock = std::vector<int64_t>;  // by stream: the number of an instruction; -1: none
  // The clocks of a resource: the last instructions that read it, that wrote it, and the same of anything inside it.
  enum Last { kRead, kWrote, kReadInside, kWroteInside, kLasts };
  // The stream that is alone in each of them, kNoStream or kSeveral: most resources are only ever touched on one
  // stream, which does not wait for itself.
  static constexpr int kNoStream = -1, kSeveral = -2;
  using Streams = std::array<int, kLasts>;
  int64_t* LastOf(int resource, Last which) {
    return last_.data() + (static_cast<size_t>(resource) * kLasts + which) * streams_;
  }
  void Raise(const int64_t* by, Clock& clock) const {
    for (size_t stream = 0; stream < streams_; ++stream) clock[stream] = std::max(clock[stream], by[stream]);
  }
  // Adds a clock to waits_, unless nothing but `stream` is in it.
  void AddConflict(int resource, Last which, int stream) {
    const int alone = alone_[static_cast<size_t>(resource)][which];
    if (alone != kNoStream && alone != stream) Raise(LastOf(resource, which), waits_);
  }
  void AddConflicts(const Access& access, int stream);
  void Set(int resource, Last which, int stream) {
    int& alone = alone_[static_cast<size_t>(resource)][which];
    if (alone != stream) alone = alone == kNoStream ? stream : kSeveral;
    LastOf(resource, which)[stream] = number_;
  }
  void Record(const Access& access, int stream);

  const ResourceTree& resources_;
  const size_t streams_;
  int64_t number_ = -1;         // of the instruction that was handed over last
  Clock last_;                  // by resource, Last and stream
  std::vector<Streams> alone_;  // by resource
  std::vector<Clock> known_;    // by stream: what is done when its next instruction starts
  Clock freed_;                 // the last instructions that touched values which are freed by now
  Clock waits_;                 // the result of Next
};

}  // namespace planwright
