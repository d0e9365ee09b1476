#include "planner/state/weights/base_digest.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/digest/sha256.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/shard_map.h"
#include "planner/plan/statement/adapted_statement.h"
#include "planner/state/checkpoint/format.h"
#include "planner/state/checkpoint/own_plan.h"
#include "planner/state/weights/parts.h"

namespace planwright {
namespace {

constexpr int64_t kSampled = 2048;  // elements, at each of three places

// The elements of a tensor that count: all of a small one.
std::vector<ElementRun> Sampled(int64_t elements) {
  if (elements <= 3 * kSampled) return {{0, 0, elements}};
  return {
      {0, 0, kSampled}, {kSampled, (elements - kSampled) / 2, kSampled}, {2 * kSampled, elements - kSampled, kSampled}};
}

void AddText(Sha256& digest, const std::string& text) { digest.Add(text.data(), text.size()); }

absl::Status AddTensor(const WeightsFit& fit, const TakenTensor& taken, const std::string& name, Sha256& digest) {
  const WeightSource& source = *fit.sources.at(static_cast<size_t>(taken.source)).opened;
  if (source.checkpoint() != nullptr) {
    AddText(digest, absl::StrCat(name, " of ", Sha256Hex(WriteManifest(source.checkpoint()->manifest())), "\n"));
    return absl::OkStatus();
  }
  ElementReader& reader = fit.ReaderOf(taken);
  const std::optional<TensorType> type = reader.TypeOf(taken.key);
  if (!type) return absl::InvalidArgumentError(absl::StrCat(reader.PlaceOf(taken.key), " cannot be read"));
  AddText(digest,
          absl::StrCat(name, " ", std::string(DTypeName(type->dtype)), " [", absl::StrJoin(type->shape, ","), "]\n"));
  const std::vector<ElementRun> runs = Sampled(ElementsOf(type->shape));
  std::vector<std::byte> bytes(static_cast<size_t>((runs.back().local + runs.back().count) * DTypeBytes(type->dtype)));
  absl::Status read = reader.Read(taken.key, runs, bytes, ElementReader::Numbers::kAny);
  if (!read.ok()) return read;
  digest.Add(bytes.data(), bytes.size());
  return absl::OkStatus();
}

std::string DrawText(const Plan& plan, const Parameter& parameter, const std::string& name) {
  return absl::StrCat(name, " [", absl::StrJoin(parameter.shape, ","), "] ",
                      std::string(InitKindName(parameter.init.kind)), " ", parameter.init.a, " ", parameter.init.b,
                      " seed ", plan.seed, "\n");
}

// "its run began with ../base: name it", as the run's plan has it.
std::string HowToStand(const CheckpointReader& checkpoint, const std::string& module) {
  const absl::StatusOr<OwnPlan> own = ReadOwnPlan(checkpoint.folder(), checkpoint.manifest());
  if (!own.ok() || !own->plan) return "name those with which its run began";
  const absl::StatusOr<std::vector<PartSource>> sources = SourcesOfParts(*own->plan);
  for (size_t i = 0; sources.ok() && i < sources->size(); ++i) {
    const PartSource& source = (*sources)[i];
    if (source.part.module->name != module || CheckpointsHave(source.part) || source.part.projection) continue;
    if (source.path.empty()) return absl::StrCat("its run drew them, with seed ", own->plan->seed);
    return absl::StrCat("name those with which its run began, ", Printable(source.path));
  }
  return "name those with which its run began";
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> BaseDigests(const Plan& plan, const WeightsFit& fit) {
  std::map<std::string, std::string> digests;
  for (const WeightPart& part : PartsOf(plan)) {
    const Module& module = *part.module;
    if (!module.adapted() || CheckpointsHave(part)) continue;
    Sha256 digest;
    for (const int index : part.parameters) {
      const Parameter& parameter = module.parameters[static_cast<size_t>(index)];
      for (int64_t copy = 0; copy < std::max<int64_t>(parameter.experts, 1); ++copy) {
        const std::string name = ExpertName(parameter.name, parameter.experts > 0 ? copy : -1);
        const auto taken = fit.taken.find(name);
        if (taken == fit.taken.end()) {
          AddText(digest, DrawText(plan, parameter, name));
        } else if (absl::Status added = AddTensor(fit, taken->second, name, digest); !added.ok()) {
          return added;
        }
      }
    }
    digests[part.projection ? part.name : module.name] = digest.Hex();
  }
  return digests;
}

std::set<std::string> OnOtherBase(const Plan& plan, const std::map<std::string, std::string>& kept,
                                  const std::map<std::string, std::string>& found) {
  std::set<std::string> modules;
  for (const Module& module : plan.modules) {
    for (const std::string& name : {module.name, module.name + ".projection"}) {
      const auto before = kept.find(name), now = found.find(name);
      if (before != kept.end() && now != found.end() && before->second != now->second) modules.insert(module.name);
    }
  }
  return modules;
}

absl::Status CheckBaseOfAdapters(const Plan& plan, const WeightsFit& fit) {
  std::map<std::string, std::string> digests;
  std::vector<std::string> problems;
  for (const PartFit& part : fit.parts) {
    const CheckpointReader* checkpoint =
        part.source < 0 ? nullptr : fit.sources[static_cast<size_t>(part.source)].opened->checkpoint();
    const auto adapted = std::find_if(plan.modules.begin(), plan.modules.end(), [&](const Module& one) {
      return part.part == NameOfPart(one, ModulePart::kAdapter);
    });
    if (checkpoint == nullptr || adapted == plan.modules.end()) continue;
    const std::string& module = adapted->name;
    const auto kept = checkpoint->manifest().base.find(module);
    if (kept == checkpoint->manifest().base.end()) continue;
    if (digests.empty()) {
      absl::StatusOr<std::map<std::string, std::string>> read = BaseDigests(plan, fit);
      if (!read.ok()) return read.status();
      digests = *std::move(read);
    }
    if (digests.at(module) == kept->second) continue;
    problems.push_back(absl::StrCat("the adapters of ", module, " in ", checkpoint->folder(),
                                    " stand on other weights than those that the plan names for ", module, ": ",
                                    HowToStand(*checkpoint, module),
                                    "; to put them on other weights all the same, export them with `plan export`, and "
                                    "name that folder for ",
                                    part.part));
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

std::string OtherBase(const Plan& plan, const std::map<std::string, std::string>& kept,
                      const std::map<std::string, std::string>& found, const std::string& checkpoint) {
  const std::set<std::string> others = OnOtherBase(plan, kept, found);
  if (others.empty()) return "";
  return absl::StrCat("the adapters of ", absl::StrJoin(others, ", "), " in ", checkpoint,
                      " stand on other weights than those that the plan names: `initialize` must name the weights with "
                      "which the run began");
}

}  // namespace planwright
