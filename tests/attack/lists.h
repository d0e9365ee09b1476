// The lists of instructions of a plan, and finding an instruction's like in another list.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright::attack {

using Program = std::vector<Instruction>;

struct ProgramList {
  std::string name;   // "step", or "body"
  std::string where;  // "roles[0].step"
  Program* list;
};

inline std::vector<ProgramList> ListsOf(Plan& plan) {
  std::vector<ProgramList> lists;
  for (size_t i = 0; i < plan.roles.size(); ++i)
    for (const RoleList& each : kRoleLists)
      lists.push_back({each.name, "roles[" + std::to_string(i) + "]." + each.name, &(plan.roles[i].*each.list)});
  for (size_t i = 0; i < plan.blocks.size(); ++i)
    lists.push_back({"body", "blocks[" + std::to_string(i) + "].body", &plan.blocks[i].body});
  return lists;
}

inline bool Alike(const Instruction& a, const Instruction& b) {
  return a.kind == b.kind && a.inputs == b.inputs && a.parameters == b.parameters && a.gradients == b.gradients &&
         a.attributes == b.attributes && a.group == b.group && a.block == b.block && a.frame == b.frame &&
         a.microbatch == b.microbatch && a.stream == b.stream;
}

// Where `other` has the like of list[index]: the n-th one where it is the n-th. Behind the last: behind the last.
inline std::optional<size_t> LikeOf(const Program& list, size_t index, const Program& other) {
  if (index == list.size()) return other.size();
  size_t nth = 0;
  for (size_t i = 0; i < index; ++i) nth += Alike(list[i], list[index]);
  for (size_t i = 0; i < other.size(); ++i)
    if (Alike(other[i], list[index]) && nth-- == 0) return i;
  return std::nullopt;
}

inline std::string Words(const Instruction& x) {
  std::string words(OpName(x.kind));
  if (!x.block.empty()) words += " " + x.block + " " + x.frame + " mb " + std::to_string(x.microbatch);
  for (const std::string& input : x.inputs) words += " " + input;
  for (const auto& [name, value] : x.attributes) {
    if (const auto* number = std::get_if<int64_t>(&value)) words += " " + name + "=" + std::to_string(*number);
    if (const auto* text = std::get_if<std::string>(&value)) words += " " + name + "=" + *text;
  }
  if (!x.group.empty()) words += " over " + x.group;
  if (!x.stream.empty()) words += " on " + x.stream;
  return words;
}

}  // namespace planwright::attack
