#include <algorithm>
#include <cstdio>
#include <set>

#include "planner/base/paper/table.h"
#include "planner/plan/link/host_waits.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/ranks_text.h"
#include "planner/plan/value_type.h"
#include "planner/views/show/show.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

// Blocks call blocks: a stage calls its layers.
void AddBlocksOf(const Plan& plan, const std::vector<Instruction>& body, std::set<std::string>& names) {
  for (const Instruction& instruction : body) {
    if (instruction.block.empty() || !names.insert(instruction.block).second) continue;
    if (const Block* block = plan.FindBlock(instruction.block)) AddBlocksOf(plan, block->body, names);
  }
}

// The blocks that the role calls, and those that they call.
std::set<std::string> BlocksOf(const Plan& plan, const Role& role) {
  std::set<std::string> names;
  for (const RoleList& part : kRoleLists) AddBlocksOf(plan, role.*part.list, names);
  return names;
}

std::string Joined(const std::vector<std::string>& words, const char* prefix = "") {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + (prefix + word);
  return text;
}

std::string AttributeText(const Attribute& attribute) {
  if (const auto* text = std::get_if<std::string>(&attribute)) return *text;
  if (const auto* list = std::get_if<std::vector<int64_t>>(&attribute)) {
    std::string text;
    for (int64_t number : *list) text += (text.empty() ? "" : ",") + std::to_string(number);
    return "[" + text + "]";
  }
  if (const auto* integer = std::get_if<int64_t>(&attribute)) return std::to_string(*integer);
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", std::get<double>(attribute));
  return text;
}

// The first column of a line. Short, so that assignments begin near the left.
const char* ClassWord(OpKind kind) {
  switch (OpClassOf(kind)) {
    case OpClass::kControl: return "call";
    case OpClass::kData: return "data";
    case OpClass::kCompute: return "compute";
    case OpClass::kCommunication: return "comm";
    case OpClass::kState: return "state";
    case OpClass::kStorage: return "files";
  }
  return "";
}

std::string PartText(const ExchangePart& part) {
  const std::string text =
      std::string(part.send ? "send " : "receive ") + part.value + (part.backward ? " (gradient)" : "");
  if (!part.bridge.empty()) return text + " over " + part.bridge + " rows " + part.sizes;
  return text + (part.send ? " to" : " from") + (part.shift > 0 ? " the next stage" : " the stage before") +
         (part.sizes.empty() ? "" : " sizes " + part.sizes);
}

// What an instruction does, right of the "=": operation, inputs, "@" parameters, "+@" gradients that it adds to,
// attributes. "rms_norm x @norm eps=1e-05"
std::string RightSide(const Instruction& instruction) {
  std::string text;
  if (instruction.kind == OpKind::kCall) {
    text = instruction.block;
    if (!instruction.frame.empty()) text += " of " + instruction.frame;
    if (instruction.microbatch >= 0) text += " m" + std::to_string(instruction.microbatch);
  } else {
    text = OpName(instruction.kind);
  }
  auto add = [&](const std::string& more) {
    if (!more.empty()) text += " " + more;
  };
  add(Joined(instruction.inputs));
  add(Joined(instruction.parameters, "@"));
  add(Joined(instruction.gradients, "+@"));
  for (const auto& [key, value] : instruction.attributes) add(key + "=" + AttributeText(value));
  if (!instruction.group.empty()) text += "  over " + instruction.group;
  if (!instruction.stream.empty()) text += "  stream " + instruction.stream;
  for (size_t i = 0; i < instruction.parts.size(); ++i) text += (i > 0 ? "; " : " ") + PartText(instruction.parts[i]);
  return text;
}

// One line of a list: "compute  y = rms_norm x  fp32[8,rows]".
struct ProgramLine {
  std::string word, left, right, types;
};

constexpr size_t kIndent = 15;  // of what does not fit in its line

// Columns are as wide as the longest cell, up to a bound: one long name should not push everything else away. Types
// have their own column if the line has room for them, otherwise they are on the next line.
void AppendLines(const std::vector<ProgramLine>& lines, size_t width, std::string& text) {
  size_t left = 0, right = 0;
  for (const ProgramLine& line : lines) {
    left = std::max(left, std::min<size_t>(Width(line.left), 32));
    right = std::max(right, std::min<size_t>(Width(line.right), 60));
  }
  for (const ProgramLine& line : lines) {
    const std::string head =
        "  " + PadRight(line.word, 8) + " " + PadRight(line.left, left) + (line.left.empty() ? "   " : " = ");
    std::string row = head + PadRight(line.right, right) + "  " + line.types;
    row.erase(row.find_last_not_of(' ') + 1);
    if (Width(row) > width) {
      row = Wrapped(head + line.right, width, kIndent);
      if (!line.types.empty()) row += "\n" + Wrapped(std::string(kIndent, ' ') + line.types, width, kIndent);
    }
    text += row + "\n";
  }
}

ProgramLine InstructionLine(const Instruction& instruction) {
  ProgramLine line{ClassWord(instruction.kind), "", RightSide(instruction), ""};
  for (const Output& output : instruction.outputs) {
    line.left += (line.left.empty() ? "" : " ") + output.name;
    line.types += (line.types.empty() ? "" : ", ") + TypeText(output.type);
  }
  return line;
}

void AppendBody(const std::vector<Instruction>& body, size_t width, std::string& text) {
  std::vector<ProgramLine> lines;
  for (const Instruction& instruction : body) lines.push_back(InstructionLine(instruction));
  AppendLines(lines, width, text);
}

// The recipe's line that the role or block comes from.
std::string OriginText(const Plan& plan, int origin) {
  if (origin < 0 || origin >= static_cast<int>(plan.origins.size())) return "";
  return "   " + plan.origins[origin].file + ":" + std::to_string(plan.origins[origin].line);
}

// A block with its signature: inputs, values that it takes from its frame, instructions, outputs, values that it saves.
std::string BlockText(const Plan& plan, const Block& block, size_t width) {
  std::string text = "block " + block.name + "(m)" + OriginText(plan, block.origin) + "\n";
  std::vector<ProgramLine> formals;
  for (const Output& input : block.inputs) formals.push_back({"in", input.name, "", TypeText(input.type)});
  for (const Output& taken : block.takes) formals.push_back({"takes", taken.name, "", TypeText(taken.type)});
  for (const ProgramLine& line : formals) {
    text += Wrapped("  " + PadRight(line.word, 8) + " " + PadRight(line.left, 32) + " " + line.types, width, kIndent) +
            "\n";
  }
  AppendBody(block.body, width, text);
  if (!block.outputs.empty()) text += Wrapped("  out      " + Joined(block.outputs), width, kIndent) + "\n";
  if (!block.saved.empty()) text += Wrapped("  saved    " + Joined(block.saved), width, kIndent) + "\n";
  for (const Probe& probe : block.probes) text += "  probe    " + probe.value + " as " + probe.name + "\n";
  return text;
}

}  // namespace

std::string ShowProgram(const Plan& plan, const std::string& role_name, size_t width) {
  std::string text;
  std::set<std::string> blocks;  // of the shown roles: each is printed once, behind all roles
  LinkedBlocks linked(plan);     // host waits are counted on the linked program, where calls are opened
  for (const Role& role : plan.roles) {
    if (!role_name.empty() && role.name != role_name) continue;
    blocks.merge(BlocksOf(plan, role));
    text += "role " + role.name + "   ranks " + RanksText(Expand(role.ranks)) + OriginText(plan, role.origin) + "\n";
    text += " host waits " + WithCommas(CountHostWaits(LinkedProgram(linked, role))) + " a step\n";
    for (const RoleList& part : kRoleLists) {
      if ((role.*part.list).empty()) continue;
      text += " " + std::string(part.name) + "\n";
      AppendBody(role.*part.list, width, text);
    }
    text += "\n";
  }
  if (!plan.symbols.empty()) {
    Table symbols({"run-time size", "at most", "what"});
    for (const Symbol& symbol : plan.symbols) symbols.Add({symbol.name, WithCommas(symbol.maximum), symbol.what});
    text += symbols.Text("", width) + "\n";
  }
  for (const Block& block : plan.blocks) {
    if (blocks.contains(block.name)) text += BlockText(plan, block, width) + "\n";
  }
  return text;
}

Json ShowProgramJson(const Plan& plan, const std::string& role_name) {
  // Instructions are printed as the plan file has them, so that the two can be compared.
  const Json tree = PlanToJson(plan);
  LinkedBlocks linked(plan);
  Json roles = Json::array();
  for (size_t i = 0; i < plan.roles.size(); ++i) {
    const Role& role = plan.roles[i];
    if (!role_name.empty() && role.name != role_name) continue;
    Json blocks = Json::object();
    const std::set<std::string> used = BlocksOf(plan, role);
    for (size_t b = 0; b < plan.blocks.size(); ++b) {
      if (used.contains(plan.blocks[b].name)) blocks[plan.blocks[b].name] = tree["blocks"][b];
    }
    const Json& written = tree["roles"][i];
    Json& shown = roles.emplace_back(Json{{"name", role.name},
                                          {"modules", role.modules},
                                          {"ranks", Expand(role.ranks)},
                                          {"host_waits", CountHostWaits(LinkedProgram(linked, role))},
                                          {"blocks", std::move(blocks)}});
    for (const RoleList& part : kRoleLists) {
      if (written.contains(part.name)) shown[part.name] = written[part.name];
    }
  }
  return {{"roles", std::move(roles)}, {"symbols", tree["symbols"]}};
}

}  // namespace planwright
