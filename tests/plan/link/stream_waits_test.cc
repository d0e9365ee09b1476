// What entries of compiled programs wait for, against the definition in stream_dependencies.h with plain names: of all
// earlier entries, on each other stream the last one that conflicts, or that touched memory which is given out again.
#include "planner/plan/link/stream_waits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "planner/compile/compile.h"
#include "planner/plan/stream_dependencies.h"
#include "planner/recipe/recipe_reader.h"
#include "tests/support/folders.h"
#include "tests/support/random_recipe.h"

namespace planwright {
namespace {

using std::string;

// Whether `inner` is `outer` or inside it.
bool Contains(const string& outer, const string& inner) {
  if (outer == inner || outer == "%" || outer == "$") return absl::StartsWith(inner, outer);
  return absl::StartsWith(inner, outer + ".") || absl::StartsWith(inner, outer + "/");
}

class PlainWaits {
 public:
  explicit PlainWaits(const LinkedProgram& program) : program_(program) {}

  // Of the next entry: the entries, counted from the first of the step, in the order of their streams.
  std::vector<uint32_t> Next(size_t index) {
    const LinkedEntry& entry = program_.entries()[index];
    const LinkedInstruction& instruction = *entry.instruction;
    const std::vector<StateAccess> accesses = AccessesOf(index);
    std::map<int, int64_t> waits;
    const auto wait = [&](const std::map<int, int64_t>& last) {
      for (const auto& [stream, number] : last) {
        int64_t& latest = waits.try_emplace(stream, -1).first->second;
        latest = std::max(latest, number);
      }
    };
    for (const StateAccess& access : accesses) {
      for (const auto& [name, last] : last_) {
        if (!Contains(name, access.resource) && !Contains(access.resource, name)) continue;
        wait(last.writes);
        if (access.writes) wait(last.reads);
      }
    }
    const bool makes_value = std::any_of(accesses.begin(), accesses.end(), [](const StateAccess& access) {
      return access.writes && absl::StartsWith(access.resource, "value");
    });
    if (makes_value || instruction.op_class != OpClass::kCommunication || !instruction.parts.empty()) wait(freed_);
    for (const StateAccess& access : accesses)
      (access.writes ? last_[access.resource].writes : last_[access.resource].reads)[instruction.stream] = number_;
    for (int value : program_.after(index)) {
      if (value < 0) continue;
      const Last& last = last_[absl::StrCat("value", value)];
      for (const auto* clock : {&last.reads, &last.writes}) {
        for (const auto& [stream, number] : *clock)
          freed_[stream] = std::max(freed_.try_emplace(stream, -1).first->second, number);
      }
    }
    ++number_;
    std::vector<uint32_t> found;
    for (const auto& [stream, number] : waits) {
      int64_t& known = known_.try_emplace({instruction.stream, stream}, -1).first->second;
      if (stream == instruction.stream || number <= known) continue;
      found.push_back(static_cast<uint32_t>(number));
      known = number;
    }
    return found;
  }

 private:
  struct Last {
    std::map<int, int64_t> reads, writes;  // by stream
  };

  std::vector<StateAccess> AccessesOf(size_t index) const {
    const LinkedEntry& entry = program_.entries()[index];
    const LinkedInstruction& instruction = *entry.instruction;
    const LinkedCall& call = program_.calls()[entry.call];
    std::vector<StateAccess> accesses = StateAccessesOf(*instruction.source, program_.role().modules);
    const auto add = [&](int operand, bool writes) {
      if (operand >= 0) accesses.push_back({absl::StrCat("value", program_.ValueOf(entry, operand)), writes});
    };
    for (int input : instruction.inputs)
      add(input, input >= 0 && program_.ValueOf(entry, input) == program_.Overwritten(index));
    for (const LinkedExchangePart& part : instruction.parts) add(part.value, false), add(part.sizes, false);
    for (int output : instruction.outputs) add(output, true);
    if (!call.block->block || call.frame < 0) return accesses;
    const Module* module = program_.blocks().plan().FindModule(call.block->block->module);
    if (!module) return accesses;
    for (const Storage& storage : module->storages) {
      if (storage.frame != program_.blocks().frame(call.frame)) continue;
      const string name = absl::StrCat("/", absl::StrReplaceAll(storage.frame, {{".", "_"}}), "_", storage.slot);
      const auto named = [&](const std::vector<string>& slots) {
        return std::find(slots.begin(), slots.end(), storage.slot) != slots.end();
      };
      const string of = absl::StrCat("%", module->name, ".");
      if (named(instruction.source->parameters)) {
        accesses.push_back(
            {storage.bucket < 0 ? of + "buffers" + name : absl::StrCat(of, "parameters.", storage.bucket, name),
             false});
      }
      if (named(instruction.source->gradients))
        accesses.push_back({absl::StrCat(of, "gradients.", storage.bucket, name), true});
    }
    return accesses;
  }

  const LinkedProgram& program_;
  int64_t number_ = 0;
  std::map<string, Last> last_;
  std::map<int, int64_t> freed_;
  std::map<std::pair<int, int>, int64_t> known_;  // by stream that waits and stream that it waits for
};

TEST(StreamWaits, AreThoseOfTheDefinition) {
  int programs = 0;
  int64_t waits = 0;
  for (unsigned seed = 0; seed < 24; ++seed) {
    testing::RandomRecipe random(seed);
    Diagnostics problems;
    const auto recipe = ReadRecipe(InSource(random.File()), random.Overrides(), problems);
    const std::optional<Plan> plan = recipe ? CompileRecipe(*recipe, problems) : std::nullopt;
    if (!plan) continue;
    LinkedBlocks blocks(*plan);
    for (const Role& role : plan->roles) {
      const LinkedProgram program(blocks, role);
      const StreamWaits found(program);
      if (found.streams() == 1 || program.entries().size() > 1200) continue;
      ++programs;
      PlainWaits plain(program);
      for (size_t i = program.step().first; i < program.step().end; ++i) {
        const std::vector<uint32_t> wanted = plain.Next(i);
        const std::span<const uint32_t> got = found.of(i - program.step().first);
        ASSERT_EQ(std::vector<uint32_t>(got.begin(), got.end()), wanted)
            << "seed " << seed << ", " << role.name << ", entry " << i;
        waits += static_cast<int64_t>(wanted.size());
      }
    }
  }
  EXPECT_GT(programs, 10);
  EXPECT_GT(waits, 300);
}

}  // namespace
}  // namespace planwright
