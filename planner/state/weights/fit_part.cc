#include "planner/state/weights/fit_part.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/statement/adapted_statement.h"
#include "planner/state/checkpoint/own_plan.h"
#include "planner/state/checkpoint/pieces.h"
#include "planner/state/weights/adapter_folder.h"
#include "planner/state/weights/adapter_naming.h"
#include "planner/state/weights/part_naming.h"

namespace planwright {
namespace {

std::string ShapeText(const std::vector<int64_t>& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

// What a message says of a shape that is not the model's.
std::string ShapeHint(const WantedTensor& wanted, const std::vector<int64_t>& found) {
  const std::vector<int64_t>& shape = wanted.parameter->shape;
  const bool same_rows =
      found.size() == shape.size() && std::equal(found.begin() + 1, found.end(), shape.begin() + 1, shape.end());
  if (wanted.vocabulary && same_rows)
    return absl::StrCat(": the model's vocabulary is smaller than the source's; set it to ", found[0], " or more");
  if (found.size() == shape.size() && std::equal(found.rbegin(), found.rend(), shape.begin()))
    return ": it looks transposed";
  const auto counted = [](const std::vector<int64_t>& of) { return ElementsOf(of); };
  if (counted(found) == counted(shape)) return ": as many elements in another shape; it may be flattened or reshaped";
  return "";
}

// Whether a source has the first rows of a tensor of the vocabulary, so that the others can be drawn.
bool LacksRows(const WantedTensor& wanted, const std::vector<int64_t>& found) {
  const std::vector<int64_t>& shape = wanted.parameter->shape;
  return wanted.vocabulary && found.size() == shape.size() && !found.empty() && found[0] < shape[0] && found[0] > 0 &&
         std::equal(found.begin() + 1, found.end(), shape.begin() + 1);
}

class PartFitting {
 public:
  PartFitting(const Plan& plan, const WeightPart& part, SourceFit& source, PartFit& fit,
              std::map<std::string, TakenTensor>& taken, SourceTensors& tensors)
      : plan_(plan), part_(part), of_source_(source), source_(*source.opened), fit_(fit), taken_(taken),
        tensors_(tensors), wanted_(WantedOf(part)) {}

  void Run(std::vector<std::string>& problems) {
    for (const WantedTensor& wanted : wanted_) {
      ++fit_.tensors;
      fit_.elements += ElementsOf(wanted.parameter->shape);
    }
    if (StandsUnderAdapters()) {
      fit_.missing = fit_.tensors;
      problems.push_back(absl::StrCat(source_.path(), " has the adapters of ", part_.module->name,
                                      " alone: name what they stand on, and for ", part_.module->name,
                                      ".adapter this checkpoint, in initialize.sources"));
      return;
    }
    if (source_.checkpoint() != nullptr) {
      if (part_.adapter) CompareAdapter(problems);
      return FitCheckpoint();
    }
    const WeightFiles& files = *source_.files();
    const AdapterNaming of_adapter =
        part_.adapter ? NamingOfAdapter(plan_, part_, wanted_, files) : AdapterNaming{NamingOf(part_, wanted_, files)};
    const PartNaming& naming = of_adapter.naming;
    if (naming.found == 0) {
      fit_.missing = fit_.tensors;
      problems.push_back(NothingFound(of_adapter.other));
      return;
    }
    if (!of_adapter.unknown.empty())
      fit_.notes.push_back(absl::StrCat(source_.path(), ": names begin with ", of_adapter.unknown,
                                        ", which is no beginning that PEFT is known to write for ", part_.module->name,
                                        ": they are taken for its adapters"));
    if (part_.adapter) ReadAdapterConfig(files, problems);
    fit_.form = naming.lacked;
    fit_.stored_form = naming.text;
    problems.insert(problems.end(), naming.problems.begin(), naming.problems.end());
    std::vector<std::vector<const WantedTensor*>> held(naming.tensors.size());
    for (size_t i = 0; i < wanted_.size(); ++i) {
      if (const int tensor = naming.places[i].tensor; tensor >= 0)
        held[static_cast<size_t>(tensor)].push_back(&wanted_[i]);
    }
    for (size_t i = 0; i < wanted_.size(); ++i) {
      const PartNaming::Place& place = naming.places[i];
      if (place.tensor < 0) {
        FitFile(files, wanted_[i], place.name);
      } else if (held[static_cast<size_t>(place.tensor)].front() == &wanted_[i]) {
        FitStored(naming.tensors[static_cast<size_t>(place.tensor)], held[static_cast<size_t>(place.tensor)]);
      }
    }
  }

 private:
  // Tensors have a rank, and no alpha: the plan of the checkpoint says both.
  void CompareAdapter(std::vector<std::string>& problems) const {
    const Module& module = *part_.module;
    const absl::StatusOr<OwnPlan> own =
        ReadAndCheckOwnPlan(source_.checkpoint()->folder(), source_.checkpoint()->manifest());
    if (!own.ok() || !own->plan) {
      problems.push_back(absl::StrCat(source_.path(), ": the alpha of its adapters is not known, as its plan is not ",
                                      "read: ", own.ok() ? own->unread : std::string(own.status().message()),
                                      "; export them with the release that wrote it, and name that folder"));
      return;
    }
    const Module* trained = own->plan->FindModule(module.name);
    if (trained == nullptr || !trained->adapted()) return;  // tensors are missing
    const auto compare = [&](const char* what, auto before, auto now) {
      if (before == now) return;
      problems.push_back(absl::StrCat(source_.path(), ": the adapters of ", module.name, " were trained with ", what,
                                      " ", before, ", and the module's ", what, " is ", now, ": set modules.",
                                      module.name, ".adapter.", what, " to ", before));
    };
    compare("rank", trained->size(kAdapterRank), module.size(kAdapterRank));
    compare("alpha", trained->real(kAdapterAlpha), module.real(kAdapterAlpha));
  }

  // Tensors say nothing of alpha.
  void ReadAdapterConfig(const WeightFiles& files, std::vector<std::string>& problems) {
    const Module& module = *part_.module;
    const double alpha = module.real(kAdapterAlpha);
    if (!files.adapter_config()) {
      fit_.notes.push_back(absl::StrCat(source_.path(), " has no ", kAdapterConfigFile, " beside it: alpha is ", alpha,
                                        " as in the recipe"));
      return;
    }
    for (const std::string& problem : AdapterConfigProblems(*files.adapter_config(), module.size(kAdapterRank), alpha))
      problems.push_back(absl::StrCat(source_.path(), ": ", problem));
    std::vector<std::string> names;
    for (const auto& [name, tensor] : files.all()) names.push_back(name);
    if (const auto lacking = TargetsWithoutTensors(*files.adapter_config(), names); !lacking.empty())
      fit_.notes.push_back(absl::StrCat(source_.path(), ": target_modules of ", kAdapterConfigFile, " names ",
                                        FirstOf(lacking, 3), ", of which there is no tensor"));
  }

  // Whether the source is a checkpoint of adapters that stand on this part.
  bool StandsUnderAdapters() const {
    const auto* checkpoint = source_.checkpoint();
    if (checkpoint == nullptr || !checkpoint->manifest().base.contains(part_.module->name)) return false;
    return std::none_of(wanted_.begin(), wanted_.end(), [&](const WantedTensor& wanted) {
      return checkpoint->tensors().contains(wanted.name) || checkpoint->tensors().contains(wanted.name + ".master");
    });
  }

  // `other`: the beginning of names of adapters of another module; empty: there are none.
  std::string NothingFound(const std::string& other) const {
    const WeightFiles& files = *source_.files();
    const std::string hint = part_.adapter ? HintOfAdapterNames(files) : "";
    std::vector<std::string> some;
    for (const auto& [name, tensor] : files.all()) {
      if (FindKnownExtra(name) == nullptr) some.push_back(name);
    }
    return absl::StrCat(source_.path(), " has none of the ", wanted_.size(), " tensors of ", part_.name, ", such as ",
                        wanted_[0].file_name, "; it has ", some.empty() ? "no others" : FirstOf(some, 3),
                        files.model_type().empty()
                            ? ""
                            : absl::StrCat(" (config.json: model_type ", Printable(files.model_type()), ")"),
                        other.empty() ? "" : absl::StrCat(", and ", other, " is of another module"),
                        hint.empty() ? absl::StrCat(": name another source for ", part_.name, ", or `drawn`") : hint);
  }

  void FitFile(const WeightFiles& files, const WantedTensor& wanted, const std::string& key) {
    const auto found = FindInFiles(files, key);
    if (found == files.all().end()) {
      return Missing(key, *wanted.parameter, HintIfMissing(wanted.file_name));
    }
    tensors_.used.insert(found->first);
    const WeightTensor& tensor = found->second;
    const std::optional<DType> dtype = ReadType(tensor.type);
    if (!dtype) {
      ++fit_.unfit;
      tensors_.lines.push_back({"type: ", key, TypeIsNotRead(tensor.type)});
      return;
    }
    Take(wanted, found->first, *dtype, tensor.shape, tensor.bytes, true);
  }

  // A tensor that holds these parameters in another form than one by one.
  void FitStored(const DiskTensor& tensor, const std::vector<const WantedTensor*>& held) {
    WeightFiles& files = *of_source_.opened->files();
    const auto found = FindInFiles(files, tensor.name);
    if (found == files.all().end()) {
      fit_.missing += static_cast<int64_t>(held.size());
      tensors_.lines.push_back({"missing: ", tensor.name, absl::StrCat(" ", ShapeText(tensor.shape), Holds(held))});
      return;
    }
    tensors_.used.insert(found->first);
    const WeightTensor& stored = found->second;
    const std::optional<DType> dtype = ReadType(stored.type);
    if (!dtype || stored.shape != tensor.shape) {
      fit_.unfit += static_cast<int64_t>(held.size());
      if (!dtype) {
        tensors_.lines.push_back({"type: ", tensor.name, TypeIsNotRead(stored.type)});
      } else {
        tensors_.lines.push_back(
            {"shape: ", tensor.name,
             absl::StrCat(" is ", ShapeText(stored.shape), ", the model's is ", ShapeText(tensor.shape), Holds(held))});
      }
      return;
    }
    const int64_t width = stored.bytes / ElementsOf(tensor.shape);
    if (of_source_.stored == nullptr) of_source_.stored = std::make_unique<StoredReader>(files);
    for (const WantedTensor* wanted : held) {
      const auto piece = std::find_if(tensor.pieces.begin(), tensor.pieces.end(), [&](const DiskPiece& one) {
        return one.parameter == wanted->index && one.expert == wanted->expert;
      });
      const int64_t elements = ElementsOf(wanted->parameter->shape);
      ++fit_.found;
      fit_.bytes += elements * width;
      of_source_.stored->Add(wanted->name, found->first, wanted->parameter->shape, piece->map);
      taken_[wanted->name] = {fit_.source, wanted->name, true, *dtype, width, elements};
    }
  }

  // ", which holds a, b and 3 more"
  static std::string Holds(const std::vector<const WantedTensor*>& held) {
    std::vector<std::string> names;
    for (const WantedTensor* wanted : held) names.push_back(wanted->file_name);
    return absl::StrCat(", which holds ", FirstOf(names, 3));
  }

  void FitCheckpoint() {
    const TensorTypes& tensors = source_.checkpoint()->tensors();
    const bool moments = plan_.initialize && plan_.initialize->optimizer;
    const auto kept = KeptParameters(plan_);
    for (const WantedTensor& wanted : wanted_) {
      // The master where the checkpoint keeps one, as it is what the run has trained.
      const std::string master = wanted.name + ".master", key = tensors.contains(master) ? master : wanted.name;
      const auto found = tensors.find(key);
      if (found == tensors.end()) {
        Missing(key, *wanted.parameter, "");
        continue;
      }
      tensors_.used.insert(wanted.name);
      const TensorType& type = found->second;
      Take(wanted, key, type.dtype, type.shape, ElementsOf(type.shape) * DTypeBytes(type.dtype), !moments);
      if (!moments) continue;
      for (const std::string& state : kept.at(wanted.name).states) {
        const std::string of_state = absl::StrCat(wanted.name, ".", state);
        if (state == "master") continue;
        const auto moment = tensors.find(of_state);
        if (moment == tensors.end()) {
          Missing(of_state, *wanted.parameter, " (initialize.optimizer)");
        } else if (moment->second.shape != wanted.parameter->shape) {
          Unfit(of_state, wanted, moment->second.shape);
        }
      }
    }
  }

  void Missing(const std::string& key, const Parameter& parameter, const std::string& why) {
    ++fit_.missing;
    tensors_.lines.push_back({"missing: ", key, absl::StrCat(" ", ShapeText(parameter.shape), why)});
  }

  void Unfit(const std::string& key, const WantedTensor& wanted, const std::vector<int64_t>& found) {
    ++fit_.unfit;
    tensors_.lines.push_back({"shape: ", key,
                              absl::StrCat(" is ", ShapeText(found), ", the model's is ",
                                           ShapeText(wanted.parameter->shape), ShapeHint(wanted, found))});
  }

  void Take(const WantedTensor& wanted, const std::string& key, DType dtype, const std::vector<int64_t>& shape,
            int64_t bytes, bool may_lack_rows) {
    const bool lacks_rows = may_lack_rows && LacksRows(wanted, shape);
    if (shape != wanted.parameter->shape && !lacks_rows) return Unfit(key, wanted, shape);
    ++fit_.found;
    fit_.bytes += bytes;
    const int64_t elements = ElementsOf(shape);
    taken_[wanted.name] = {fit_.source, key, false, dtype, elements > 0 ? bytes / elements : 0, elements};
    if (!lacks_rows) return;
    fit_.drawn_rows.push_back(absl::StrCat(key, " has ", shape[0], " rows, and the model's vocabulary is ",
                                           wanted.parameter->shape[0], ": rows ", shape[0], " to ",
                                           wanted.parameter->shape[0] - 1, " are drawn"));
  }

  const Plan& plan_;
  const WeightPart& part_;
  SourceFit& of_source_;
  const WeightSource& source_;
  PartFit& fit_;
  std::map<std::string, TakenTensor>& taken_;
  SourceTensors& tensors_;
  const std::vector<WantedTensor> wanted_;
};

}  // namespace

std::vector<WantedTensor> WantedOf(const WeightPart& part) {
  std::vector<WantedTensor> wanted;
  const int64_t vocabulary = part.module->size("vocabulary");
  for (int index : part.parameters) {
    const Parameter& parameter = part.module->parameters[static_cast<size_t>(index)];
    const bool rows = vocabulary > 0 && parameter.shape.size() == 2 && parameter.shape[0] == vocabulary &&
                      (absl::EndsWith(parameter.file_name, "embeddings.weight") ||
                       absl::EndsWith(parameter.file_name, "embed_tokens.weight") ||
                       absl::EndsWith(parameter.file_name, "lm_head.weight"));
    // A parameter of experts is published as one tensor for each expert.
    for (int64_t i = 0; i < std::max<int64_t>(parameter.experts, 1); ++i) {
      const int64_t expert = parameter.experts > 0 ? i : -1;
      wanted.push_back({ExpertName(parameter.name, expert), ExpertName(parameter.file_name, expert), &parameter, index,
                        expert, rows});
    }
  }
  return wanted;
}

std::string TypeIsNotRead(const std::string& type) {
  return absl::StrCat(" is ", type, ", and weights are read from BF16, F16, F32 and F64: ",
                      "use the unquantized files of the model, or dequantize it");
}

void FitPart(const Plan& plan, const WeightPart& part, SourceFit& source, PartFit& fit,
             std::map<std::string, TakenTensor>& taken, SourceTensors& tensors, std::vector<std::string>& problems) {
  PartFitting(plan, part, source, fit, taken, tensors).Run(problems);
}

}  // namespace planwright
