#include "planner/plan/stream_order.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "planner/plan/op_table.h"

namespace planwright {
namespace {

using std::string;

// "%m.gradient_shards.3" -> "%m.gradients.3": the shard is a part of the bucket, another one on each rank.
string WholeBucket(string resource) {
  return absl::StrReplaceAll(resource, {{".gradient_shards.", ".gradients."}, {".parameter_shards.", ".parameters."}});
}

string Filled(string pattern, const Instruction& instruction) {
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

int ResourceTree::Number(std::string_view name) {
  if (const auto known = numbers_.find(string(name)); known != numbers_.end()) return known->second;
  const size_t cut = name.find_last_of("./");
  const bool state = IsStateName(name);
  int parent = -1;
  if (cut != std::string_view::npos) {
    parent = Number(name.substr(0, cut));
  } else if (state && name.size() > 1) {
    parent = Number(name.substr(0, 1));
  }
  const auto [made, fresh] = numbers_.emplace(string(name), size());
  names_.push_back(&made->first);
  parents_.push_back(parent);
  return made->second;
}

std::vector<StateAccess> StateAccessesOf(const Instruction& instruction, const std::vector<string>& modules) {
  std::vector<StateAccess> accesses;
  for (const StateEffect& effect : InfoOf(instruction.kind).effects) {
    if (!absl::StrContains(effect.resource, "{modules}")) {
      accesses.push_back({WholeBucket(Filled(effect.resource, instruction)), effect.writes});
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
  const string slot = absl::StrCat("/", absl::StrReplaceAll(storage.frame, {{".", "_"}}), "_", storage.slot);
  if (storage.bucket < 0) return absl::StrCat("%", module.name, ".buffers", slot);
  return absl::StrCat("%", module.name, ".parameters.", storage.bucket, slot);
}

string GradientResource(const Module& module, const Storage& storage) {
  return absl::StrReplaceAll(ParameterResource(module, storage), {{".parameters.", ".gradients."}});
}

StreamOrder::StreamOrder(const ResourceTree& resources, int streams)
    : resources_(resources), streams_(streams),
      known_(static_cast<size_t>(streams), Clock(static_cast<size_t>(streams), -1)),
      freed_(static_cast<size_t>(streams), -1) {}

StreamOrder::Touch& StreamOrder::TouchOf(int resource) {
  if (resource >= static_cast<int>(touches_.size())) touches_.resize(static_cast<size_t>(resources_.size()));
  Touch& touch = touches_[static_cast<size_t>(resource)];
  if (touch.reads.empty()) {
    const Clock none(static_cast<size_t>(streams_), -1);
    touch = {none, none, none, none};
  }
  return touch;
}

void StreamOrder::Raise(const Clock& by, Clock& clock) const {
  for (size_t stream = 0; stream < clock.size(); ++stream) clock[stream] = std::max(clock[stream], by[stream]);
}

void StreamOrder::AddConflicts(const Access& access) {
  const Touch& own = TouchOf(access.resource);
  Raise(own.writes, waits_);
  Raise(own.writes_inside, waits_);
  if (access.writes) {
    Raise(own.reads, waits_);
    Raise(own.reads_inside, waits_);
  }
  for (int above = resources_.parent(access.resource); above >= 0; above = resources_.parent(above)) {
    const Touch& touch = TouchOf(above);
    Raise(touch.writes, waits_);
    if (access.writes) Raise(touch.reads, waits_);
  }
}

void StreamOrder::Note(const Access& access, int stream) {
  const size_t at = static_cast<size_t>(stream);
  Touch& own = TouchOf(access.resource);
  (access.writes ? own.writes : own.reads)[at] = number_;
  for (int above = resources_.parent(access.resource); above >= 0; above = resources_.parent(above)) {
    Touch& touch = TouchOf(above);
    (access.writes ? touch.writes_inside : touch.reads_inside)[at] = number_;
  }
}

const std::vector<int64_t>& StreamOrder::Next(const Step& step) {
  ++number_;
  waits_.assign(static_cast<size_t>(streams_), -1);
  for (const Access& access : step.accesses) AddConflicts(access);
  if (step.makes_value) Raise(freed_, waits_);
  for (const Access& access : step.accesses) Note(access, step.stream);
  // What was touched before it is freed counts as freed, by whomever.
  for (int value : step.frees) {
    const Touch& touch = TouchOf(value);
    Raise(touch.reads, freed_);
    Raise(touch.writes, freed_);
  }
  Clock& known = known_[static_cast<size_t>(step.stream)];
  for (size_t stream = 0; stream < waits_.size(); ++stream) {
    if (waits_[stream] <= known[stream] || static_cast<int>(stream) == step.stream) waits_[stream] = -1;
  }
  Raise(waits_, known);
  return waits_;
}

}  // namespace planwright
