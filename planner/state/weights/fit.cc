#include "planner/state/weights/fit.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/state/checkpoint/pieces.h"
#include "planner/state/weights/fit_part.h"
#include "planner/state/weights/part_naming.h"

namespace planwright {
namespace {

// What is in a source beside the tensors that parts have taken.
class LeftOver {
 public:
  LeftOver(const Plan& plan, const std::vector<PartSource>& parts, std::set<std::string>& used_ignores)
      : ignore_(plan.initialize->ignore), used_ignores_(used_ignores) {
    for (const PartSource& part : parts) {
      for (std::string& name : NamesInFiles(part.part)) file_names_[std::move(name)] = part.path;
      for (const WantedTensor& wanted : WantedOf(part.part)) {
        names_.insert(wanted.name);
      }
      modules_[part.path].insert(part.part.module);
    }
  }

  void Sort(SourceTensors& tensors, SourceFit& source) {
    const std::set<std::string>& used = tensors.used;
    std::vector<TensorLine>& lines = tensors.lines;
    if (source.opened->files() != nullptr) {
      for (const auto& [name, tensor] : source.opened->files()->all()) {
        if (!used.contains(name)) SortFile(name, tensor.shape, used, source, lines);
      }
      return;
    }
    std::set<std::string> seen;
    for (const auto& [key, tensor] : source.opened->checkpoint()->tensors()) {
      // States of a weight that this plan freezes are nothing that is left over.
      const std::string name = names_.contains(key) ? key : SplitKey(key).name;
      if (names_.contains(name)) {
        if (!used.contains(name) && seen.insert(name).second) source.elsewhere.push_back(name);
      } else if (seen.insert(name).second) {
        SortOther(name, tensor.shape, "the plan has no such parameter", source, lines);
      }
    }
  }

 private:
  void SortFile(const std::string& name, const std::vector<int64_t>& shape, const std::set<std::string>& used,
                SourceFit& source, std::vector<TensorLine>& lines) {
    const auto other = file_names_.find(name);
    const KnownExtra* extra = FindKnownExtra(name);
    // A copy is one beside its original, of models that have no such tensor of their own.
    const bool copies = extra != nullptr && !extra->copy_of.empty();
    const auto taken = [&used](const std::string& original) { return used.contains(original); };
    if (copies && (other != file_names_.end() || extra->Original(taken) == nullptr)) extra = nullptr;
    if (other != file_names_.end() && other->second != source.named) {
      source.elsewhere.push_back(name);
    } else if (extra != nullptr) {
      auto group = std::find_if(source.passed.begin(), source.passed.end(),
                                [&](const PassedThrough& passed) { return passed.extra == extra; });
      if (group == source.passed.end()) group = source.passed.insert(source.passed.end(), {extra, {}});
      group->names.push_back(name);
      const std::vector<int64_t> expected = ShapeOf(*extra, source);
      if (!expected.empty() && shape != expected) {
        lines.push_back({"shape: ", name,
                         absl::StrCat(" is [", absl::StrJoin(shape, ", "), "], the model's is [",
                                      absl::StrJoin(expected, ", "), "]")});
      }
    } else {
      SortOther(name, shape,
                other != file_names_.end() ? "the source has names of a whole model and of one alone"
                                           : "the plan has no such tensor",
                source, lines);
    }
  }

  // Empty: it is not known.
  std::vector<int64_t> ShapeOf(const KnownExtra& extra, const SourceFit& source) const {
    if (extra.is.empty() || !extra.sizes) return {};
    std::set<std::vector<int64_t>> shapes;
    const auto modules = modules_.find(source.named);
    if (modules == modules_.end()) return {};
    for (const Module* module : modules->second) {
      std::vector<int64_t> shape;
      for (const DialectSize& size : *extra.sizes) {
        const double number = !size.any.empty() || (!size.formula->names().empty() && module->kind != extra.kind)
                                  ? std::nan("")
                                  : size.formula->Evaluate([&](const std::string& name) {
                                      return static_cast<double>(module->size(name));
                                    });
        if (number >= 1) shape.push_back(static_cast<int64_t>(number));
      }
      if (shape.size() == extra.sizes->size()) shapes.insert(std::move(shape));
    }
    return shapes.size() == 1 ? *shapes.begin() : std::vector<int64_t>();
  }

  void SortOther(const std::string& name, const std::vector<int64_t>& shape, const char* why, SourceFit& source,
                 std::vector<TensorLine>& lines) {
    const auto ignored = std::find_if(ignore_.begin(), ignore_.end(),
                                      [&](const std::string& pattern) { return IsIgnored({pattern}, name); });
    if (ignored != ignore_.end()) {
      used_ignores_.insert(*ignored);
      source.ignored.push_back(name);
      return;
    }
    source.left_over.push_back(name);
    lines.push_back({"left over: ", name,
                     absl::StrCat(" [", absl::StrJoin(shape, ", "), "]: ", why,
                                  " (what may stay unused is listed in initialize.ignore)")});
  }

  const std::vector<std::string>& ignore_;
  std::set<std::string>& used_ignores_;
  std::set<std::string> names_;                             // Parameter::name of all parts
  std::map<std::string, std::string> file_names_;           // in any form, and the path of the part's source
  std::map<std::string, std::set<const Module*>> modules_;  // by the path of the source of their parts
};

// Of parts that take the same tensors of a source, such as two encoders of one file: it may be meant, or a copy of a
// line.
std::vector<std::string> SharedTensors(const std::vector<PartSource>& parts, const WeightsFit& fit) {
  std::map<std::pair<int, std::string>, std::string> part_of;  // by source and key
  std::set<std::pair<std::string, std::string>> told;
  std::vector<std::string> lines;
  for (const PartSource& part : parts) {
    for (const WantedTensor& wanted : WantedOf(part.part)) {
      const auto taken = fit.taken.find(wanted.name);
      if (taken == fit.taken.end()) continue;
      const TakenTensor& tensor = taken->second;
      const std::string& key =
          tensor.stored ? fit.sources[static_cast<size_t>(tensor.source)].stored->TensorOf(tensor.key) : tensor.key;
      const auto [first, added] = part_of.try_emplace({tensor.source, key}, part.part.name);
      // Parameters of one part may be parts of one tensor.
      if (added || first->second == part.part.name || !told.emplace(first->second, part.part.name).second) continue;
      lines.push_back(absl::StrCat(first->second, " and ", part.part.name, " begin with the same tensors of ",
                                   part.from, ", such as ", key));
    }
  }
  return lines;
}

}  // namespace

ElementReader& WeightsFit::ReaderOf(const TakenTensor& tensor) const {
  const SourceFit& source = sources[static_cast<size_t>(tensor.source)];
  return tensor.stored ? static_cast<ElementReader&>(*source.stored) : source.opened->reader();
}

absl::Status WeightsFit::status() const {
  if (fits()) return absl::OkStatus();
  const std::string message = problems.size() == 1 ? problems[0] : ListOf("the weights do not fit the plan:", problems);
  return damaged ? absl::DataLossError(message) : absl::InvalidArgumentError(message);
}

bool IsIgnored(const std::vector<std::string>& ignore, const std::string& name) {
  return std::any_of(ignore.begin(), ignore.end(), [&](const std::string& one) {
    return absl::EndsWith(one, "*") ? absl::StartsWith(name, one.substr(0, one.size() - 1)) : one == name;
  });
}

WeightsFit FitWeights(const Plan& plan, const std::map<std::string, std::string>& chosen, const KindForms& forms) {
  WeightsFit fit;
  const absl::StatusOr<std::vector<PartSource>> parts = SourcesOfParts(plan, forms);
  if (!parts.ok()) {
    fit.problems.emplace_back(parts.status().message());
    return fit;
  }
  std::map<std::string, int> by_path;  // index in fit.sources
  for (const PartSource& part : *parts) {
    if (part.path.empty() || by_path.contains(part.path)) continue;
    by_path[part.path] = static_cast<int>(fit.sources.size());
    SourceFit& source = fit.sources.emplace_back();
    source.named = part.path;
    const auto choice = chosen.find(part.path);
    source.path = choice == chosen.end() ? part.path : choice->second;
    const bool moments = plan.initialize->optimizer, counters = plan.initialize->schedule == "checkpoint";
    if ((moments || counters) && !IsOfARun(source.path)) {
      fit.problems.push_back(absl::StrCat(source.path, " is no checkpoint and no run directory, and initialize.",
                                          moments ? "optimizer" : "schedule",
                                          " needs one: published weights have neither moments nor counters"));
      continue;
    }
    absl::StatusOr<std::unique_ptr<WeightSource>> opened = WeightSource::Open(source.path);
    if (!opened.ok()) {
      fit.damaged = fit.damaged || absl::IsDataLoss(opened.status());
      fit.problems.emplace_back(opened.status().message());
      continue;
    }
    source.opened = *std::move(opened);
    source.path = source.opened->path();
    for (const std::string& line : source.opened->passed_over()) fit.warnings.push_back(line);
    if (const WeightFiles* files = source.opened->files())
      fit.warnings.insert(fit.warnings.end(), files->warnings().begin(), files->warnings().end());
  }
  std::vector<SourceTensors> tensors(fit.sources.size());
  for (const PartSource& part : *parts) {
    PartFit& of = fit.parts.emplace_back();
    of.part = part.part.name;
    of.from = part.from;
    of.source = part.path.empty() ? -1 : by_path.at(part.path);
    if (of.source < 0 || fit.sources[of.source].opened == nullptr) {
      for (const WantedTensor& wanted : WantedOf(part.part)) {
        ++of.tensors;
        of.elements += ElementsOf(wanted.parameter->shape);
      }
      continue;
    }
    FitPart(plan, part.part, fit.sources[of.source], of, fit.taken, tensors[of.source], fit.problems);
    fit.warnings.insert(fit.warnings.end(), of.drawn_rows.begin(), of.drawn_rows.end());
    fit.warnings.insert(fit.warnings.end(), of.notes.begin(), of.notes.end());
  }
  for (std::string& line : SharedTensors(*parts, fit)) fit.warnings.push_back(std::move(line));
  std::set<std::string> used_ignores;
  bool all_sorted = true;  // what is in no part is known of every source
  for (size_t i = 0; i < fit.sources.size(); ++i) {
    SourceFit& source = fit.sources[i];
    const bool found = std::any_of(fit.parts.begin(), fit.parts.end(), [&](const PartFit& part) {
      return part.source == static_cast<int>(i) && part.found + part.unfit > 0;
    });
    // Of a source that is not the model at all, everything is left over: that is said in one line.
    const bool sorted = source.opened != nullptr && found;
    if (sorted) LeftOver(plan, *parts, used_ignores).Sort(tensors[i], source);
    all_sorted = all_sorted && sorted;
    for (const std::string& line : GroupedLines(tensors[i].lines))
      fit.problems.push_back(absl::StrCat(source.path, ": ", line));
  }
  for (size_t i = 0; plan.initialize && i < plan.initialize->ignore.size() && all_sorted; ++i) {
    const std::string& ignore = plan.initialize->ignore[i];
    if (!used_ignores.contains(ignore))
      fit.warnings.push_back(
          absl::StrCat("initialize.ignore has ", ignore, ", and no source has such a tensor unused"));
  }
  return fit;
}

}  // namespace planwright
