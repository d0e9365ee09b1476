#include "planner/state/weights/parts.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "planner/base/files/file_io.h"
#include "planner/plan/statement/adapted_statement.h"
#include "planner/plan/statement/model_statement.h"
#include "planner/state/forms/disk_tensors.h"
#include "planner/state/weights/name_groups.h"

namespace planwright {
namespace {

// What names of this part lack in a folder of the model alone: beginnings that a dialect leaves away, the shortest
// first.
std::vector<std::string> LackedBy(const WeightPart& part) {
  std::set<std::pair<size_t, std::string>> lacked;
  const std::string encoder = EncoderOf(*part.module, *StatementOf(part.module->kind));
  for (const DialectForms& dialect : part.dialects) {
    for (const StoredForm& form : dialect.forms) {
      for (const StatedNames& names : form.names) {
        const std::string begin = absl::StrReplaceAll(names.ours, {{"{encoder}", encoder}});
        const bool of_part = std::any_of(part.parameters.begin(), part.parameters.end(), [&](int index) {
          return absl::StartsWith(part.module->parameters[static_cast<size_t>(index)].file_name, begin);
        });
        if (names.theirs.empty() && !begin.empty() && of_part) lacked.emplace(begin.size(), begin);
      }
    }
  }
  std::vector<std::string> beginnings;
  for (const auto& [size, begin] : lacked) beginnings.push_back(begin);
  return beginnings;
}

WeightPart WeightsOf(const Module& module, ModulePart of, const KindForms& forms) {
  WeightPart part;
  if (const auto of_kind = forms.find(module.kind); of_kind != forms.end()) part.dialects = of_kind->second;
  part.name = NameOfPart(module, of);
  part.adapter = of == ModulePart::kAdapter, part.projection = of == ModulePart::kProjection;
  part.module = &module;
  for (size_t i = 0; i < module.parameters.size(); ++i) {
    if (PartOf(module, module.parameters[i]) == of) part.parameters.push_back(static_cast<int>(i));
  }
  part.lacked = LackedBy(part);
  return part;
}

}  // namespace

std::vector<WeightPart> PartsOf(const Plan& plan, const KindForms& forms) {
  std::vector<WeightPart> parts;
  for (const Module& module : plan.modules) {
    for (const ModulePart of : {ModulePart::kBackbone, ModulePart::kProjection, ModulePart::kAdapter}) {
      WeightPart part = WeightsOf(module, of, forms);
      if (!part.parameters.empty()) parts.push_back(std::move(part));
    }
  }
  return parts;
}

bool Covers(std::string_view name, const WeightPart& part) {
  return name == part.name || (!part.adapter && name == part.module->name);
}

bool CheckpointsHave(const WeightPart& part) {
  const Module& module = *part.module;
  return !module.adapted() || part.adapter || (part.projection && module.trains_projection);
}

absl::StatusOr<std::vector<PartSource>> SourcesOfParts(const Plan& plan, const KindForms& forms) {
  std::vector<PartSource> result;
  std::vector<std::string> problems;
  const std::vector<WeightPart> parts = PartsOf(plan, forms);
  for (const WeightPart& part : parts) {
    PartSource& of = result.emplace_back(PartSource{part, kDrawn, ""});
    if (!plan.initialize) continue;
    if (!plan.initialize->from.empty() && !part.adapter) {
      of.from = plan.initialize->from;
      of.path = ResolvePath(plan.initialize->base, of.from);
      continue;
    }
    int sources = 0;
    for (const WeightSourcePlan& source : plan.initialize->sources) {
      if (!Covers(source.part, part)) continue;
      ++sources;
      of.from = source.from;
      of.path = source.from == kDrawn ? "" : ResolvePath(source.base, source.from);
    }
    if (part.adapter && sources == 0) continue;  // drawn
    if (sources != 1)
      problems.push_back(absl::StrCat(part.name, " has ", sources == 0 ? "no source" : "more than one source"));
  }
  for (size_t i = 0; plan.initialize && i < plan.initialize->sources.size(); ++i) {
    const std::string& name = plan.initialize->sources[i].part;
    if (std::none_of(parts.begin(), parts.end(), [&](const WeightPart& part) { return Covers(name, part); }))
      problems.push_back(absl::StrCat("there is no module or part ", name));
  }
  if (problems.empty()) return result;
  return absl::InvalidArgumentError(ListOf("initialize.sources does not fit the plan:", std::move(problems)));
}

std::optional<InitializePlan> NeededToGoOn(const Plan& plan) {
  const absl::StatusOr<std::vector<PartSource>> sources = SourcesOfParts(plan);
  if (!plan.initialize || !sources.ok()) return plan.initialize;  // whoever opens the sources says what is wrong
  InitializePlan needed;
  needed.ignore = plan.initialize->ignore;
  for (const PartSource& source : *sources)
    needed.sources.push_back({source.part.name, CheckpointsHave(source.part) ? kDrawn : source.path, ""});
  for (WeightSourcePlan& source : needed.sources) {
    if (source.from.empty()) source.from = kDrawn;
  }
  return needed;
}

}  // namespace planwright
