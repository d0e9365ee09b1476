#include "planner/verify/meanings.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace planwright {
namespace {

using std::string;
using std::string_view;

constexpr int kDeepest = 8;  // a circle of calls ends here; V4 names it

struct Rule {
  OpKind kind;
  size_t place;
  bool over_cp;
  const char* meaning;
};

constexpr Rule kRules[] = {
#define MEANING(kind, place, meaning) {OpKind::k##kind, place, false, meaning},
#define MEANING_CP(kind, place, meaning) {OpKind::k##kind, place, true, meaning},
#include "planner/verify/op_meanings.def"
#undef MEANING
#undef MEANING_CP
};

bool OverCp(const Instruction& op) {
  auto cp = op.attributes.find("cp");
  const auto* parts = cp == op.attributes.end() ? nullptr : std::get_if<int64_t>(&cp->second);
  return parts && *parts > 1;
}

bool HasCpRule(OpKind kind) {
  for (const Rule& rule : kRules) {
    if (rule.kind == kind && rule.over_cp) return true;
  }
  return false;
}

// A part of a value, or all of it, is what the value was.
bool KeepsMeaning(OpKind kind) { return kind == OpKind::kLocalSlice || kind == OpKind::kAllGather; }

Meaning Find(const std::map<string_view, Meaning>& values, string_view name) {
  auto it = values.find(name);
  return it == values.end() ? kNoMeaning : it->second;
}

}  // namespace

Meanings::Meanings(const PlanIndex& index, std::vector<Violation>& violations) : index_(index), violations_(violations) {
  texts_.push_back("something else");
}

Meaning Meanings::Of(const string& text) {
  auto [it, fresh] = numbers_.emplace(text, static_cast<Meaning>(texts_.size()));
  if (fresh) texts_.push_back(text);
  return it->second;
}

const CallMeanings& Meanings::Run(const Block& block, string_view frame, const std::vector<Meaning>& inputs,
                                  const std::vector<const CallMeanings*>& earlier) {
  const Key key(&block, frame, inputs, earlier);
  if (auto it = known_.find(key); it != known_.end()) return it->second;
  CallMeanings made = Walk(block, frame, inputs, earlier);
  return known_.emplace(key, std::move(made)).first->second;
}

CallMeanings Meanings::Walk(const Block& block, string_view frame, const std::vector<Meaning>& inputs,
                            const std::vector<const CallMeanings*>& earlier) {
  CallMeanings made;
  if (++depth_ > kDeepest) {
    --depth_;
    return made;
  }
  std::map<string_view, Meaning> values;
  for (size_t i = 0; i < std::min(inputs.size(), block.inputs.size()); ++i) values[block.inputs[i].name] = inputs[i];
  for (const Output& take : block.takes) {
    for (const CallMeanings* call : earlier) {
      if (auto it = call->saved.find({frame, take.name}); it != call->saved.end()) values[take.name] = it->second;
    }
  }
  std::vector<const CallMeanings*> before = earlier;
  for (const Instruction& op : block.body) {
    const Block* called = op.kind == OpKind::kCall ? index_.block(op.block) : nullptr;
    if (called) {
      std::vector<Meaning> given;
      for (const string& input : op.inputs) given.push_back(Find(values, input));
      const CallMeanings& inner = Run(*called, op.frame.empty() ? frame : string_view(op.frame), given, before);
      before.push_back(&inner);
      made.saved.insert(inner.saved.begin(), inner.saved.end());
      for (size_t i = 0; i < std::min(op.outputs.size(), inner.outputs.size()); ++i) values[op.outputs[i].name] = inner.outputs[i];
      continue;
    }
    Check(block, op, values);
    if (KeepsMeaning(op.kind) && !op.inputs.empty() && !op.outputs.empty()) values[op.outputs[0].name] = Find(values, op.inputs[0]);
  }
  for (const string& output : block.outputs) made.outputs.push_back(Find(values, output));
  for (const string& name : block.saved) {
    if (const Meaning meaning = Find(values, name)) made.saved[{frame, name}] = meaning;
  }
  --depth_;
  return made;
}

void Meanings::Check(const Block& block, const Instruction& op, const std::map<string_view, Meaning>& values) {
  for (size_t place = 0; place < op.inputs.size(); ++place) {
    const Meaning wanted = Required(block, op, place), given = Find(values, op.inputs[place]);
    if (wanted == kNoMeaning || wanted == given) continue;
    const string message = absl::StrCat("block ", block.name, " hands ", op.inputs[place], ", which is ", TextOf(given), ", to ",
                                        string(OpName(op.kind)), " as ", TextOf(wanted));
    if (!said_.insert(message).second) continue;
    violations_.push_back({"V5", message, index_.OriginOf(op.origin, block.origin, index_.module(block.module))});
  }
}

Meaning Meanings::Required(const Block& block, const Instruction& op, size_t place) {
  if (op.kind == OpKind::kMergeImages && place == 1) {  // rows of the encoder whose token they replace
    auto token = op.attributes.find("image_token");
    for (const Bridge& bridge : index_.plan().bridges) {
      if (bridge.to == block.module && token != op.attributes.end() && token->second == Attribute(bridge.token)) return MadeBy(bridge.from);
    }
    return Of("what no encoder makes");
  }
  const bool over_cp = OverCp(op) && HasCpRule(op.kind);
  for (const Rule& rule : kRules) {
    if (rule.kind == op.kind && rule.place == place && rule.over_cp == over_cp) return Of(rule.meaning);
  }
  return kNoMeaning;
}

}  // namespace planwright
