#include "executor/program/instruction_text.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

namespace planwright::executor {

std::string InstructionText(const Instruction& instruction) {
  std::string text(OpName(instruction.kind));
  if (!instruction.block.empty()) absl::StrAppend(&text, " ", instruction.block);
  const auto module = instruction.attributes.find("module");
  if (module != instruction.attributes.end()) absl::StrAppend(&text, " ", std::get<std::string>(module->second));
  if (!instruction.inputs.empty()) absl::StrAppend(&text, " ", absl::StrJoin(instruction.inputs, " "));
  for (const ExchangePart& part : instruction.parts) {
    absl::StrAppend(&text, part.send ? " send " : " receive ", part.value);
  }
  if (!instruction.outputs.empty()) {
    absl::StrAppend(&text, " -> ", absl::StrJoin(instruction.outputs, " ", [](std::string* out, const Output& output) {
      out->append(output.name);
    }));
  }
  if (!instruction.group.empty()) absl::StrAppend(&text, " over ", instruction.group);
  return text;
}

std::string OriginText(const Plan& plan, int origin) {
  if (origin < 0 || origin >= static_cast<int>(plan.origins.size())) return "";
  const Origin& line = plan.origins[origin];
  return absl::StrCat(line.file, ":", line.line, line.what.empty() ? "" : absl::StrCat(" (", line.what, ")"));
}

}  // namespace planwright::executor
