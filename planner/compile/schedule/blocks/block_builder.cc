#include "planner/compile/schedule/blocks/block_builder.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "planner/base/text/bug.h"
#include "planner/plan/op_table.h"

namespace planwright {
namespace {

// Values that an instruction reads or makes; without state values.
std::vector<std::string> ValuesTouched(const Instruction& instruction) {
  std::vector<std::string> touched = ValuesRead(instruction);
  for (const Output& output : instruction.outputs) {
    if (!IsStateName(output.name)) touched.push_back(output.name);
  }
  return touched;
}

// Where the values of a list are freed whose instructions are on several streams, so that no instruction waits for
// another stream only because memory has been freed (stream_dependencies.h).
class FreeIndices {
 public:
  explicit FreeIndices(const std::vector<Instruction>& body) : body_(body) {
    std::map<std::string, size_t> made;  // by value, the index of the instruction that makes it
    std::map<std::string, int> waited;   // by other stream, its last index that the main stream has waited for
    std::map<std::string, int> follows;  // by other stream, the last index of the main stream that it has waited for
    for (size_t i = 0; i < body.size(); ++i) {
      const Instruction& instruction = body[i];
      const int index = static_cast<int>(i);
      for (const std::string& name : ValuesRead(instruction)) {
        const auto maker = made.find(name);
        if (maker == made.end() || body[maker->second].stream == instruction.stream) continue;
        const bool from_main = body[maker->second].stream.empty();
        if (!from_main && !instruction.stream.empty()) continue;
        int& last = (from_main ? follows : waited)
                        .try_emplace(from_main ? instruction.stream : body[maker->second].stream, -1)
                        .first->second;
        if (static_cast<int>(maker->second) <= last) continue;
        last = static_cast<int>(maker->second);
        if (!from_main) waits_.push_back({index, last});
      }
      bool makes_value = false;
      for (const Output& output : instruction.outputs) {
        if (IsStateName(output.name)) continue;
        made[output.name] = i;
        makes_value = true;
      }
      for (const std::string& name : ValuesTouched(instruction)) touched_[name][instruction.stream] = index;
      if (!instruction.stream.empty() && makes_value)
        others_.push_back({index, follows.try_emplace(instruction.stream, -1).first->second});
    }
  }

  // Where to free a value whose last use is at `last_use`.
  size_t Of(const std::string& value, size_t last_use) const {
    if (others_.empty()) return last_use;
    int index = static_cast<int>(last_use), main = -1;
    const int end = static_cast<int>(body_.size()) - 1;
    // The main stream must have waited for all that other streams do with the value.
    for (const auto& [stream, last] : touched_.at(value)) {
      if (stream.empty()) {
        main = last;
        continue;
      }
      const auto wait =
          std::find_if(waits_.begin(), waits_.end(), [&, &stream = stream, last = last](const Wait& each) {
            return each.made_at >= last && StreamAt(each.made_at) == stream;
          });
      index = std::max(index, wait == waits_.end() ? end : wait->at);
    }
    // An instruction on another stream must not come behind it that need not wait for what the main stream does with
    // the value.
    for (const Other& other : others_) {
      if (other.at <= index || other.follows >= main) continue;
      index = other.at;
      while (index < end && !StreamAt(index).empty()) ++index;
    }
    return static_cast<size_t>(index);
  }

 private:
  // At `at` the main stream reads what `made_at` makes on another stream, and nothing later of that stream before.
  struct Wait {
    int at = 0, made_at = 0;
  };
  // An instruction on another stream that makes a value. It reads what the main stream makes at `follows`; -1: nothing.
  struct Other {
    int at = 0, follows = -1;
  };
  const std::string& StreamAt(int index) const { return body_[static_cast<size_t>(index)].stream; }

  const std::vector<Instruction>& body_;
  std::vector<Wait> waits_;
  std::vector<Other> others_;
  std::map<std::string, std::map<std::string, int>> touched_;  // by value and stream: the last use there
};

}  // namespace

BlockBuilder::BlockBuilder(std::string module, std::string name, int origin) {
  block_.name = std::move(name);
  block_.module = std::move(module);
  block_.origin = origin;
}

void BlockBuilder::Input(const std::string& name, ValueType type) {
  block_.inputs.push_back({name, type});
  Define(block_.inputs.back());
}

void BlockBuilder::InputGradient(const std::string& name, ValueType type) {
  Output input = {name, std::move(type)};
  DefineGradient(input);
  block_.inputs.push_back(std::move(input));
}

void BlockBuilder::TakeSaved(const Block& from) {
  for (const std::string& name : from.saved) {
    block_.takes.push_back({name, TypeIn(from, name)});
    Define(block_.takes.back());
  }
}

const ValueType& BlockBuilder::TypeOf(const std::string& value) const {
  auto it = types_.find(value);
  Require(it != types_.end(), absl::StrCat("block ", block_.name, " uses undefined value ", value));
  return it->second;
}

void BlockBuilder::Define(const Output& output) {
  // Each name has one value in a block, as in SSA form.
  Require(types_.emplace(output.name, output.type).second,
          absl::StrCat("block ", block_.name, " defines ", output.name, " twice"));
}

void BlockBuilder::DefineGradient(Output& output) {
  output.type.gradient.reset();
  gradients_.insert(output.name);
  Define(output);
}

Instruction& BlockBuilder::Emit(OpKind kind, Operands operands, std::vector<Output> outputs) {
  bool makes_gradients = !InfoOf(kind).transposes.empty();
  for (const std::string& input : operands.inputs) {
    TypeOf(input);
    makes_gradients |= gradients_.contains(input);
  }
  for (Output& output : outputs) makes_gradients ? DefineGradient(output) : Define(output);
  return block_.body.emplace_back(Instruction{.kind = kind,
                                              .inputs = std::move(operands.inputs),
                                              .parameters = std::move(operands.parameters),
                                              .gradients = std::move(operands.gradients),
                                              .outputs = std::move(outputs),
                                              .frees = {},
                                              .attributes = std::move(operands.attributes)});
}

Instruction& BlockBuilder::Call(const Block& block, const std::string& frame, const std::vector<std::string>& inputs,
                                const std::vector<std::string>& outputs) {
  Require(inputs.size() == block.inputs.size() && outputs.size() == block.outputs.size(),
          "call of " + block.name + " with other operands");
  std::vector<Output> typed;
  for (size_t i = 0; i < outputs.size(); ++i) typed.push_back({outputs[i], TypeIn(block, block.outputs[i])});
  Instruction& call = Emit(OpKind::kCall, {.inputs = inputs}, std::move(typed));
  call.block = block.name;
  call.frame = frame;
  return call;
}

Block BlockBuilder::Finish(std::vector<std::string> outputs, const std::vector<std::string>& saved) {
  // A communication over one rank returns its input, so two entries of `saved` can be the same name.
  const std::set<std::string> kept(saved.begin(), saved.end());
  const auto save = [&](const Output& value) {
    if (kept.contains(value.name)) block_.saved.push_back(value.name);
  };
  for (const Output& input : block_.inputs) save(input);
  for (const Instruction& instruction : block_.body) {
    for (const Output& output : instruction.outputs) save(output);
  }
  Require(block_.saved.size() == kept.size(), "block " + block_.name + " saves what it does not define");
  block_.outputs = std::move(outputs);
  FillFrees(block_);
  return std::move(block_);
}

const ValueType& TypeIn(const Block& block, const std::string& value) {
  for (const auto* list : {&block.inputs, &block.takes}) {
    for (const Output& given : *list) {
      if (given.name == value) return given.type;
    }
  }
  for (const Instruction& instruction : block.body) {
    for (const Output& output : instruction.outputs) {
      if (output.name == value) return output.type;
    }
  }
  Bug(absl::StrCat("block ", block.name, " has no value ", value));
}

std::vector<std::string> ValuesRead(const Instruction& instruction) {
  std::vector<std::string> names;
  for (const std::string& input : instruction.inputs) {
    if (!IsStateName(input)) names.push_back(input);
  }
  for (const ExchangePart& part : instruction.parts) {
    if (!part.sizes.empty()) names.push_back(part.sizes);
    if (part.send) names.push_back(part.value);
  }
  return names;
}

void FillFrees(std::vector<Instruction>& body, const std::vector<std::string>& arguments,
               const std::vector<std::string>& kept) {
  std::set<std::string> done(arguments.begin(), arguments.end());
  done.insert(kept.begin(), kept.end());
  const FreeIndices indices(body);
  // Backwards, so that the first time a value is met is its last use.
  for (size_t index = body.size(); index-- > 0;) {
    for (const std::string& name : ValuesTouched(body[index])) {
      if (done.insert(name).second) body[indices.Of(name, index)].frees.push_back(name);
    }
  }
  for (Instruction& instruction : body) std::sort(instruction.frees.begin(), instruction.frees.end());
}

void FillFrees(Block& block) {
  std::vector<std::string> arguments, kept = block.outputs;
  for (const Output& input : block.inputs) arguments.push_back(input.name);
  kept.insert(kept.end(), block.saved.begin(), block.saved.end());
  // Inputs belong to the caller, and saved values to the frame until the backward has taken them.
  for (Instruction& instruction : block.body) instruction.frees.clear();
  FillFrees(block.body, arguments, kept);
}

}  // namespace planwright
