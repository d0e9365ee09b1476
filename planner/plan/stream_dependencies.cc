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
  return numbers_.emplace(string(name), Add(parent)).first->second;
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

string ParametersResource(const Module& module, int bucket) {
  return bucket < 0 ? absl::StrCat("%", module.name, ".buffers")
                    : absl::StrCat("%", module.name, ".parameters.", bucket);
}

string GradientsResource(const Module& module, int bucket) {
  return absl::StrCat("%", module.name, ".gradients.", bucket);
}

StreamDependencies::StreamDependencies(const ResourceTree& resources, int streams)
    : resources_(resources), streams_(static_cast<size_t>(streams)), known_(streams_, Clock(streams_, -1)),
      freed_(streams_, -1), waits_(streams_, -1) {}

// Adds to waits_ what an access conflicts with: accesses to the resource, to anything inside it, and to anything that
// contains it. Two reads do not conflict.
void StreamDependencies::AddConflicts(const Access& access, int stream) {
  AddConflict(access.resource, kWrote, stream);
  AddConflict(access.resource, kWroteInside, stream);
  if (access.writes) {
    AddConflict(access.resource, kRead, stream);
    AddConflict(access.resource, kReadInside, stream);
  }
  for (int above = resources_.parent(access.resource); above >= 0; above = resources_.parent(above)) {
    AddConflict(above, kWrote, stream);
    if (access.writes) AddConflict(above, kRead, stream);
  }
}

void StreamDependencies::Record(const Access& access, int stream) {
  Set(access.resource, access.writes ? kWrote : kRead, stream);
  for (int above = resources_.parent(access.resource); above >= 0; above = resources_.parent(above))
    Set(above, access.writes ? kWroteInside : kReadInside, stream);
}

const std::vector<int64_t>& StreamDependencies::Next(const InstructionAccesses& instruction) {
  ++number_;
  if (const auto all = static_cast<size_t>(resources_.size()); alone_.size() < all) {
    alone_.resize(all, {kNoStream, kNoStream, kNoStream, kNoStream});
    last_.resize(all * kLasts * streams_, -1);
  }
  std::fill(waits_.begin(), waits_.end(), -1);
  for (const Access& access : instruction.accesses) AddConflicts(access, instruction.stream);
  if (instruction.makes_value) Raise(freed_.data(), waits_);
  for (const Access& access : instruction.accesses) Record(access, instruction.stream);
  // A freed value's memory may be given out again when every instruction that touched the value is done.
  for (int value : instruction.frees) {
    Raise(LastOf(value, kRead), freed_);
    Raise(LastOf(value, kWrote), freed_);
  }
  // Drop what needs no wait: an earlier instruction of this stream has waited for it, or it is on this stream itself.
  const auto own = static_cast<size_t>(instruction.stream);
  Clock& known = known_[own];
  for (size_t stream = 0; stream < streams_; ++stream) {
    if (waits_[stream] <= known[stream] || stream == own) waits_[stream] = -1;
  }
  Raise(waits_.data(), known);
  return waits_;
}

}  // namespace planwright
