#include "planner/plan/stream_dependencies.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "planner/plan/op_table.h"

namespace planwright {
namespace {

using std::string;

// "%m.gradient_shards.3" -> "%m.gradients.3". A shard is a part of the bucket, and a different part on each rank: as a
// resource of its own it would make the order differ between ranks of a role.
string WholeBucket(string resource) {
  return absl::StrReplaceAll(resource, {{".gradient_shards.", ".gradients."}, {".parameter_shards.", ".parameters."}});
}

// "%{module}.gradients.{bucket}" with the instruction's attributes in place of the braces.
string WithAttributes(string pattern, const Instruction& instruction) {
  for (const auto& [name, value] : instruction.attributes) {
    const string brace = absl::StrCat("{", name, "}");
    if (!absl::StrContains(pattern, brace)) continue;
    const string* text = std::get_if<string>(&value);
    const int64_t* number = std::get_if<int64_t>(&value);
    pattern = absl::StrReplaceAll(pattern, {{brace, text ? *text : number ? absl::StrCat(*number) : ""}});
  }
  return pattern;
}

}  // namespace

int ResourceTree::Intern(std::string_view name) {
  if (const auto known = numbers_.find(string(name)); known != numbers_.end()) return known->second;
  const size_t cut = name.find_last_of("./");
  const bool state = IsStateName(name);
  int parent = -1;
  if (cut != std::string_view::npos) {
    parent = Intern(name.substr(0, cut));
  } else if (state && name.size() > 1) {
    parent = Intern(name.substr(0, 1));
  }
  const auto [added, is_new] = numbers_.emplace(string(name), size());
  names_.push_back(&added->first);
  parents_.push_back(parent);
  return added->second;
}

std::vector<StateAccess> StateAccessesOf(const Instruction& instruction, const std::vector<string>& modules) {
  std::vector<StateAccess> accesses;
  for (const StateEffect& effect : InfoOf(instruction.kind).effects) {
    if (!absl::StrContains(effect.resource, "{modules}")) {
      accesses.push_back({WholeBucket(WithAttributes(effect.resource, instruction)), effect.writes});
      continue;
    }
    for (const string& module : modules)
      accesses.push_back({absl::StrReplaceAll(effect.resource, {{"{modules}", module}}), effect.writes});
  }
  for (const string& input : instruction.inputs) {
    if (IsStateName(input)) accesses.push_back({WholeBucket(input), false});
  }
  for (const Output& output : instruction.outputs) {
    if (IsStateName(output.name)) accesses.push_back({WholeBucket(output.name), true});
  }
  return accesses;
}

string ParameterResource(const Module& module, const Storage& storage) {
  // The frame's dots become underscores: a dot would make "language" and "language.layers" resources in the tree.
  const string slot = absl::StrCat("/", absl::StrReplaceAll(storage.frame, {{".", "_"}}), "_", storage.slot);
  if (storage.bucket < 0) return absl::StrCat("%", module.name, ".buffers", slot);
  return absl::StrCat("%", module.name, ".parameters.", storage.bucket, slot);
}

string GradientResource(const Module& module, const Storage& storage) {
  return absl::StrReplaceAll(ParameterResource(module, storage), {{".parameters.", ".gradients."}});
}

StreamDependencies::StreamDependencies(const ResourceTree& resources, int streams)
    : resources_(resources), streams_(streams),
      known_(static_cast<size_t>(streams), Clock(static_cast<size_t>(streams), -1)),
      freed_(static_cast<size_t>(streams), -1) {}

// Makes the clocks of a resource when it is first accessed: most resources of a large plan never are.
StreamDependencies::LastAccesses& StreamDependencies::LastAccessesOf(int resource) {
  if (resource >= static_cast<int>(last_.size())) last_.resize(static_cast<size_t>(resources_.size()));
  LastAccesses& last = last_[static_cast<size_t>(resource)];
  if (last.reads.empty()) {
    const Clock none(static_cast<size_t>(streams_), -1);
    last = {none, none, none, none};
  }
  return last;
}

void StreamDependencies::Raise(const Clock& by, Clock& clock) const {
  for (size_t stream = 0; stream < clock.size(); ++stream) clock[stream] = std::max(clock[stream], by[stream]);
}

// Adds to waits_ what an access conflicts with: accesses to the resource, to anything inside it, and to anything that
// contains it. Two reads do not conflict.
void StreamDependencies::AddConflicts(const Access& access) {
  const LastAccesses& own = LastAccessesOf(access.resource);
  Raise(own.writes, waits_);
  Raise(own.writes_inside, waits_);
  if (access.writes) {
    Raise(own.reads, waits_);
    Raise(own.reads_inside, waits_);
  }
  for (int above = resources_.parent(access.resource); above >= 0; above = resources_.parent(above)) {
    const LastAccesses& last = LastAccessesOf(above);
    Raise(last.writes, waits_);
    if (access.writes) Raise(last.reads, waits_);
  }
}

void StreamDependencies::Record(const Access& access, int stream) {
  const size_t at = static_cast<size_t>(stream);
  LastAccesses& own = LastAccessesOf(access.resource);
  (access.writes ? own.writes : own.reads)[at] = number_;
  for (int above = resources_.parent(access.resource); above >= 0; above = resources_.parent(above)) {
    LastAccesses& last = LastAccessesOf(above);
    (access.writes ? last.writes_inside : last.reads_inside)[at] = number_;
  }
}

const std::vector<int64_t>& StreamDependencies::Next(const InstructionAccesses& instruction) {
  ++number_;
  waits_.assign(static_cast<size_t>(streams_), -1);
  for (const Access& access : instruction.accesses) AddConflicts(access);
  if (instruction.makes_value) Raise(freed_, waits_);
  for (const Access& access : instruction.accesses) Record(access, instruction.stream);
  // A freed value's memory may be given out again when every instruction that touched the value is done.
  for (int value : instruction.frees) {
    const LastAccesses& last = LastAccessesOf(value);
    Raise(last.reads, freed_);
    Raise(last.writes, freed_);
  }
  // Drop what needs no wait: an earlier instruction of this stream has waited for it, or it is on this stream itself.
  Clock& known = known_[static_cast<size_t>(instruction.stream)];
  for (size_t stream = 0; stream < waits_.size(); ++stream) {
    if (waits_[stream] <= known[stream] || static_cast<int>(stream) == instruction.stream) waits_[stream] = -1;
  }
  Raise(waits_, known);
  return waits_;
}

}  // namespace planwright
