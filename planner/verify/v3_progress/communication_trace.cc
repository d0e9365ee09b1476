#include "planner/verify/v3_progress/communication_trace.h"

#include "planner/base/text/text.h"
#include "planner/plan/op_table.h"

namespace planwright {
namespace {

using std::string;

// `own_rows`: each member has its own number of rows, so the first dim is not compared.
void AppendType(string& text, const ValueType& type, bool own_rows) {
  Append(text, " ", DTypeName(type.dtype), "[");
  for (size_t i = 0; i < type.dims.size(); ++i) {
    if (i > 0) text += ",";
    const Dim& dim = type.dims[i];
    if (i == 0 && own_rows) {
      text += "*";
    } else if (const auto* size = std::get_if<int64_t>(&dim)) {
      Append(text, *size);
    } else {
      text += std::get<string>(dim);
    }
  }
  text += "]";
}

void AppendAttribute(string& text, const string& key, const Attribute& value) {
  Append(text, " ", key, "=");
  if (const auto* number = std::get_if<int64_t>(&value)) Append(text, *number);
  if (const auto* real = std::get_if<double>(&value)) Append(text, *real);
  if (const auto* word = std::get_if<string>(&value)) text += *word;
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
    for (int64_t number : *list) Append(text, number, ",");
  }
}

}  // namespace

CommunicationTraces::CommunicationTraces(const Plan& plan) : plan_(plan) {
  for (const Block& block : plan.blocks) blocks_[block.name].block = &block;
  for (size_t i = 0; i < plan.groups.size(); ++i) groups_.emplace(plan.groups[i].name, static_cast<int>(i));
}

Trace CommunicationTraces::TraceOf(const std::vector<Instruction>& list) {
  Trace events;
  CollectEvents(list, {}, events);
  return events;
}

const CommunicationTraces::BlockTrace* CommunicationTraces::TraceOfBlock(std::string_view name) {
  const auto found = blocks_.find(name);
  if (found == blocks_.end() || found->second.open) return nullptr;
  // A block's own events do not depend on its caller, so they are found once.
  BlockTrace& trace = found->second;
  if (trace.done) return &trace;
  trace.open = true;
  Types given;
  for (const auto* values : {&trace.block->inputs, &trace.block->takes}) {
    for (const Output& value : *values) given[value.name] = &value.type;
  }
  CollectEvents(trace.block->body, given, trace.events);
  trace.open = false, trace.done = true;
  return &trace;
}

void CommunicationTraces::CollectEvents(const std::vector<Instruction>& body, const Types& given, Trace& events) {
  Types types;
  bool typed = false;
  for (const Instruction& instruction : body) {
    if (instruction.kind == OpKind::kCall) {
      const BlockTrace* block = TraceOfBlock(instruction.block);
      if (!block) continue;
      event_count_ += block->events.size();
      if (too_long()) return;  // before memory runs out; the proof refuses the plan
      events.insert(events.end(), block->events.begin(), block->events.end());
    } else if (OpClassOf(instruction.kind) == OpClass::kCommunication) {
      if (instruction.kind == OpKind::kExchange && !typed) {  // only an exchange sends values that others make
        typed = true;
        types = given;
        for (const Instruction& maker : body) {
          for (const Output& output : maker.outputs) types[output.name] = &output.type;
        }
      }
      events.push_back(AddCommunication(instruction, types));
    }
  }
}

int CommunicationTraces::Intern(string text) {
  const auto [it, fresh] = numbers_.emplace(std::move(text), static_cast<int>(texts_.size()));
  if (fresh) texts_.push_back(&it->first);
  return it->second;
}

int CommunicationTraces::AddCommunication(const Instruction& instruction, const Types& types) {
  Communication& made = communications_.emplace_back();
  made.instruction = &instruction;
  const int event = static_cast<int>(communications_.size()) - 1;
  if (instruction.kind == OpKind::kExchange) {
    for (const ExchangePart& part : instruction.parts) {
      const bool bridged = !part.bridge.empty();
      // Both ends must build the same text, so the shift is that of the sender.
      string text = Cat(part.backward ? "backward" : "forward");
      if (!bridged) Append(text, " by ", part.send ? part.shift : -part.shift);
      const auto type = types.find(part.value);
      if (type != types.end()) AppendType(text, *type->second, bridged);
      made.parts.push_back(
          {&part, Intern(Cat(bridged ? part.bridge : part.group, "\n", instruction.stream)), Intern(std::move(text))});
    }
    return event;
  }
  const auto group = groups_.find(instruction.group);
  if (group == groups_.end()) {
    made.problem = "names a group that does not exist";
  } else {
    made.group_index = group->second;
    made.group = &plan_.groups[group->second];
  }
  if (instruction.kind == OpKind::kBroadcast) {
    const int64_t* index = instruction.FindInteger("root");
    made.root = index ? *index : -1;  // -1 is no member of any subgroup
  }
  // Members must agree on everything in this text: also on reduce, dim and root, which are attributes.
  string text(OpName(instruction.kind));
  for (const Output& output : instruction.outputs) AppendType(text, output.type, InfoOf(instruction.kind).own_rows);
  for (const auto& [key, value] : instruction.attributes) AppendAttribute(text, key, value);
  if (!instruction.stream.empty()) Append(text, " on stream ", instruction.stream);
  made.signature = Intern(std::move(text));
  return event;
}

// Finds event `index` of a body. Events before the body's own are skipped by the lengths of the called blocks' traces.
bool CommunicationTraces::FindEvent(const std::vector<Instruction>& body, size_t& index, EventPath& found) const {
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i].kind == OpKind::kCall) {
      const auto block = blocks_.find(body[i].block);
      if (block == blocks_.end() || block->second.open) continue;
      if (index >= block->second.events.size()) {  // the event is after this call
        index -= block->second.events.size();
        continue;
      }
      Append(found.path, " ", i, " > ", body[i].block);
      if (block->second.block->origin >= 0) found.origin = block->second.block->origin;
      return FindEvent(block->second.block->body, index, found);
    }
    if (OpClassOf(body[i].kind) != OpClass::kCommunication || index-- > 0) continue;
    Append(found.path, " ", i);
    if (body[i].origin >= 0) found.origin = body[i].origin;
    return true;
  }
  return false;
}

CommunicationTraces::EventPath CommunicationTraces::PathOf(const string& name, const std::vector<Instruction>& list,
                                                           size_t index, int origin) const {
  EventPath found = {name, origin};
  FindEvent(list, index, found);
  return found;
}

string CommunicationTraces::TextOf(const Communication& communication) const {
  const Instruction& instruction = *communication.instruction;
  if (instruction.kind != OpKind::kExchange) return Cat(*texts_[communication.signature], " over ", instruction.group);
  string text = "exchange";
  for (const Communication::Part& part : communication.parts)
    Append(text, &part == &communication.parts.front() ? " (" : ", ", TextOf(part));
  return text + (communication.parts.empty() ? "" : ")");
}

string CommunicationTraces::TextOf(const Communication::Part& part) const {
  const string& over = part.part->bridge.empty() ? part.part->group : part.part->bridge;
  return Cat(part.part->send ? "send " : "receive ", *texts_[part.signature], " over ", over);
}

}  // namespace planwright
