#include "executor/program/program_places.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "executor/program/instruction_text.h"

namespace planwright::executor {

ExitError FailureAt(const LinkedEntry& entry, const std::string& list, const Rank& rank, const LinkedProgram& program,
                    const BoundProgram& bound, int status, const std::string& what) {
  const Instruction& source = *entry.instruction->source;
  std::string path = list;
  program.AppendPath(entry.call, path);
  const std::string origin = OriginText(rank.plan, source.origin >= 0 ? source.origin : bound.call(entry).origin);
  return ExitError(
      status,
      absl::StrCat("rank ", rank.rank, " on ", rank.host, ": ", path, " ", entry.instruction->index, ": ",
                   bound.instruction(entry).text, ": ", what, origin.empty() ? "" : "\n  recipe: ", origin),
      true);
}

FailPoint FailPointOf(const LinkedEntry& entry, const LinkedProgram& program, int64_t step) {
  const auto index = static_cast<size_t>(&entry - program.entries().data());
  FailPoint point{.step = step, .kind = entry.instruction->source->kind};
  const std::pair<const char*, LinkedProgram::Range> lists[] = {
      {"setup", program.setup()},       {"resume", program.resume()}, {"step", program.step()},
      {"evaluate", program.evaluate()}, {"score", program.score()},   {"save", program.save()},
      {"teardown", program.teardown()}};
  for (const auto& [name, range] : lists) {
    if (index < range.first || index >= range.end) continue;
    point.list = name;
    point.number = static_cast<int64_t>(index - range.first);
  }
  program.AppendPath(entry.call, point.path);
  absl::StrAppend(&point.path, " ", entry.instruction->index);
  return point;
}

}  // namespace planwright::executor
