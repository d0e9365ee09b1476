#include "planner/verify/v5_samples_and_gradients/meanings.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/base/text/limits.h"
#include "planner/plan/op_table.h"

namespace planwright {
namespace {

using std::string;
using std::string_view;

Meaning Find(const std::map<string_view, Meaning>& values, string_view name) {
  auto it = values.find(name);
  return it == values.end() ? kNoMeaning : it->second;
}

}  // namespace

Meanings::Meanings(const PlanIndex& index, std::vector<Violation>& violations)
    : index_(index), violations_(violations) {
  texts_.push_back("something else");
  for (const Bridge& bridge : index.plan().bridges) {
    // Both modules count the rows of a bridge: the language model in its tokens, where rows arrive, and the encoder in
    // its images, where their gradients arrive.
    const Meaning counts = RowCounts(bridge.name), made = MadeBy(bridge.from);
    counts_at_[bridge.to].push_back(counts);
    rows_of_.emplace(counts, made);
    rows_of_.emplace(RowCounts(bridge.from), GradientOf(made));
    merged_.emplace(std::pair<string_view, int64_t>(bridge.to, bridge.token), made);
  }
}

const std::vector<Meaning>& Meanings::RowCountsAt(const string& module) {
  auto [it, fresh] = counts_at_.try_emplace(module);
  // No bridge ends there. read_tokens still makes one row count for each sample (read_problem.cc).
  if (fresh) it->second.push_back(RowCounts(module));
  return it->second;
}

Meaning Meanings::RowsOf(Meaning counts) const {
  auto it = rows_of_.find(counts);
  return it == rows_of_.end() ? kNoMeaning : it->second;
}

Meaning Meanings::Of(const string& text) {
  auto [it, fresh] = numbers_.emplace(text, static_cast<Meaning>(texts_.size()));
  if (fresh) texts_.push_back(text);
  return it->second;
}

Meaning Meanings::GradientOf(Meaning of) {
  const string gradient = "the gradient of ";
  // A damaged plan may take gradients of gradients without end. Beyond the second they need no names of their own.
  return TextOf(of).starts_with(gradient + gradient) ? of : Of(gradient + TextOf(of));
}

const CallMeanings& Meanings::Run(const Block& block, string_view frame, const std::vector<Meaning>& inputs,
                                  MicrobatchMeanings& microbatch) {
  const int version = microbatch.version;
  RunKey key(&block, frame, inputs, version);
  auto it = runs_.find(key);
  if (it == runs_.end()) {
    CallMeanings made = Walk(block, frame, inputs, microbatch);
    it = runs_.emplace(std::move(key), std::move(made)).first;
  }
  const CallMeanings& made = it->second;
  // Walk may have run calls inside this one, which saved and changed the version. What follows does so for the whole
  // call at once, whether the block was walked now or before.
  microbatch.version = version;
  if (made.saved.empty()) return made;  // the same values are saved as before, so the version is the same
  for (const auto& [name, meaning] : made.saved) microbatch.saved[name] = meaning;
  microbatch.version =
      versions_.emplace(std::pair(version, &made), static_cast<int>(versions_.size()) + 1).first->second;
  return made;
}

CallMeanings Meanings::Walk(const Block& block, string_view frame, const std::vector<Meaning>& inputs,
                            MicrobatchMeanings& microbatch) {
  CallMeanings made;
  if (depth_ == kDeepestCalls) return made;  // a circle of calls, where V4 does not hold
  ++depth_;
  ValueMeanings values;
  for (size_t i = 0; i < std::min(inputs.size(), block.inputs.size()); ++i) values[block.inputs[i].name] = inputs[i];
  for (const Output& take : block.takes) {
    if (auto it = microbatch.saved.find({frame, take.name}); it != microbatch.saved.end())
      values[take.name] = it->second;
  }
  for (const Instruction& op : block.body) {
    if (const Block* called = op.kind == OpKind::kCall ? index_.block(op.block) : nullptr) {
      std::vector<Meaning> given;
      for (const string& input : op.inputs) given.push_back(Find(values, input));
      const CallMeanings& inner = Run(*called, op.frame.empty() ? frame : string_view(op.frame), given, microbatch);
      made.saved.insert(inner.saved.begin(), inner.saved.end());
      for (size_t i = 0; i < std::min(op.outputs.size(), inner.outputs.size()); ++i)
        values[op.outputs[i].name] = inner.outputs[i];
      continue;
    }
    CheckOperands(block, op, values);
    if (const Meaning rows = OfOneEncoder(op, values)) {
      for (const Output& output : op.outputs) values[output.name] = rows;
    }
    // What an instruction makes has no other meaning here, unless it only cuts or moves what it is given.
    if (InfoOf(op.kind).keeps_meaning && !op.inputs.empty() && !op.outputs.empty())
      values[op.outputs[0].name] = Find(values, op.inputs[0]);
  }
  for (const string& output : block.outputs) made.outputs.push_back(Find(values, output));
  for (const string& name : block.saved) {
    if (const Meaning meaning = Find(values, name)) made.saved[{frame, name}] = meaning;
  }
  --depth_;
  return made;
}

// What is computed of the rows of one encoder alone is of that encoder. What computes it is the statement's (V11).
Meaning Meanings::OfOneEncoder(const Instruction& op, const ValueMeanings& values) const {
  if (OpClassOf(op.kind) != OpClass::kCompute || op.inputs.empty()) return kNoMeaning;
  const Meaning first = Find(values, op.inputs.front());
  const bool alone = std::all_of(op.inputs.begin(), op.inputs.end(),
                                 [&](const string& input) { return Find(values, input) == first; });
  const bool rows = std::any_of(merged_.begin(), merged_.end(), [&](const auto& made) { return made.second == first; });
  return alone && rows ? first : kNoMeaning;
}

void Meanings::CheckOperands(const Block& block, const Instruction& op, const ValueMeanings& values) {
  for (size_t index = 0; index < op.inputs.size(); ++index) {
    const Meaning wanted = Required(block, op, index), given = Find(values, op.inputs[index]);
    if (wanted == kNoMeaning || wanted == given) continue;
    const string message = absl::StrCat("block ", block.name, " passes ", op.inputs[index], " to ",
                                        string(OpName(op.kind)), " as ", TextOf(wanted), ", but it is ", TextOf(given));
    if (!said_.insert(message).second) continue;
    violations_.push_back({"V5", message, index_.OriginOf(op.origin, block.origin, index_.module(block.module))});
  }
}

Meaning Meanings::Required(const Block& block, const Instruction& op, size_t index) {
  if (op.kind == OpKind::kMergeImages && index == 1) {
    // Which encoder's rows these must be follows from the token that they replace, so ops.def cannot say it.
    const int64_t* number = op.FindInteger("image_token");
    auto made = number ? merged_.find({block.module, *number}) : merged_.end();
    return made == merged_.end() ? Of("what no encoder makes") : made->second;
  }
  const std::vector<OpInfo::Meaning>& meanings = InfoOf(op.kind).meanings;
  // A kind with meanings for cp has no others there.
  const bool over_cp = op.over_cp() && std::any_of(meanings.begin(), meanings.end(),
                                                   [](const OpInfo::Meaning& meaning) { return meaning.over_cp; });
  for (const OpInfo::Meaning& meaning : meanings) {
    if (meaning.input == index && meaning.over_cp == over_cp) return Of(meaning.what);
  }
  return kNoMeaning;
}

}  // namespace planwright
