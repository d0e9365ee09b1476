#include "planner/state/weights/fit_part.h"

#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/utf8.h"
#include "planner/state/checkpoint/pieces.h"

namespace planwright {
namespace {

std::string ShapeText(const std::vector<int64_t>& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

// A name of a part in the form of a model that is published alone; none if it does not begin as such names do.
std::optional<std::string> InForm(const WeightPart::Form& form, const std::string& file_name) {
  if (!absl::StartsWith(file_name, form.whole)) return std::nullopt;
  return form.alone + file_name.substr(form.whole.size());
}

// The name under which others publish the tensor; none: they have the same.
std::optional<std::string> Otherwise(const std::string& file_name) {
  for (const OtherName& other : OtherNames()) {
    const size_t at = file_name.find(other.ours);
    if (at != std::string::npos)
      return file_name.substr(0, at) + std::string(other.published) + file_name.substr(at + other.ours.size());
  }
  return std::nullopt;
}

// How the tensors of a part are called in files: the form that most of its names have there.
struct Naming {
  const WeightPart::Form* form = nullptr;  // null: as in a whole model
  int64_t found = 0;

  std::string NameOf(const std::string& file_name) const {
    return form == nullptr ? file_name : InForm(*form, file_name).value_or(file_name);
  }
};

Naming NamingOf(const WeightPart& part, const std::vector<WantedTensor>& wanted, const WeightFiles& files) {
  Naming best;
  std::vector<const WeightPart::Form*> forms = {nullptr};
  for (const WeightPart::Form& form : part.forms) forms.push_back(&form);
  for (const WeightPart::Form* form : forms) {
    Naming naming{form, 0};
    for (const WantedTensor& tensor : wanted)
      naming.found += files.all().contains(naming.NameOf(tensor.file_name)) ? 1 : 0;
    if (naming.found > best.found) best = naming;
  }
  return best;
}

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
  PartFitting(const Plan& plan, const WeightPart& part, const WeightSource& source, PartFit& fit,
              std::map<std::string, TakenTensor>& taken, SourceTensors& tensors)
      : plan_(plan), part_(part), source_(source), fit_(fit), taken_(taken), tensors_(tensors),
        wanted_(WantedOf(part)) {}

  void Run(std::vector<std::string>& problems) {
    for (const WantedTensor& wanted : wanted_) {
      ++fit_.tensors;
      fit_.elements += ElementsOf(wanted.parameter->shape);
    }
    if (source_.checkpoint() != nullptr) return FitCheckpoint();
    const WeightFiles& files = *source_.files();
    const Naming naming = NamingOf(part_, wanted_, files);
    if (naming.found == 0) {
      fit_.missing = fit_.tensors;
      problems.push_back(NothingFound());
      return;
    }
    if (naming.form != nullptr) fit_.form = naming.form->whole;
    for (const WantedTensor& wanted : wanted_) FitFile(files, wanted, naming.NameOf(wanted.file_name));
  }

 private:
  std::string NothingFound() const {
    const WeightFiles& files = *source_.files();
    std::vector<std::string> some;
    for (const auto& [name, tensor] : files.all()) {
      if (FindKnownExtra(name) == nullptr) some.push_back(name);
    }
    return absl::StrCat(source_.path(), " has none of the ", wanted_.size(), " tensors of ", part_.name, ", such as ",
                        wanted_[0].file_name, "; it has ", some.empty() ? "no others" : FirstOf(some, 3),
                        files.model_type().empty()
                            ? ""
                            : absl::StrCat(" (config.json: model_type ", Printable(files.model_type()), ")"),
                        ": name another source for ", part_.name, ", or `drawn`");
  }

  void FitFile(const WeightFiles& files, const WantedTensor& wanted, std::string key) {
    auto found = files.all().find(key);
    if (found == files.all().end()) {
      if (const auto other = Otherwise(key)) found = files.all().find(*other);
    }
    if (found == files.all().end()) {
      const bool final_norm = wanted.file_name.find("vision_model.final_norm.") != std::string::npos;
      return Missing(key, *wanted.parameter,
                     final_norm ? ": published encoders have no final norm; set the model's final_norm to none" : "");
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

  void Missing(const std::string& key, const Parameter& parameter, const char* why) {
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
    taken_[wanted.name] = {fit_.source, key, dtype, elements > 0 ? bytes / elements : 0, elements};
    if (!lacks_rows) return;
    fit_.drawn_rows.push_back(absl::StrCat(key, " has ", shape[0], " rows, and the model's vocabulary is ",
                                           wanted.parameter->shape[0], ": rows ", shape[0], " to ",
                                           wanted.parameter->shape[0] - 1, " are drawn"));
  }

  const Plan& plan_;
  const WeightPart& part_;
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
                       absl::EndsWith(parameter.file_name, "lm_head.weight"));
    // A parameter of experts is published as one tensor for each expert.
    for (int64_t i = 0; i < std::max<int64_t>(parameter.experts, 1); ++i) {
      const int64_t expert = parameter.experts > 0 ? i : -1;
      wanted.push_back({ExpertName(parameter.name, expert), ExpertName(parameter.file_name, expert), &parameter, rows});
    }
  }
  return wanted;
}

std::string TypeIsNotRead(const std::string& type) {
  return absl::StrCat(" is ", type, ", and weights are read from BF16, F16, F32 and F64: ",
                      "use the unquantized files of the model, or dequantize it");
}

std::vector<std::string> NamesInFiles(const WeightPart& part, const std::string& file_name) {
  std::vector<std::string> names = {file_name};
  for (const WeightPart::Form& form : part.forms) {
    if (const auto name = InForm(form, file_name)) names.push_back(*name);
  }
  for (size_t i = 0, count = names.size(); i < count; ++i) {
    if (const auto other = Otherwise(names[i])) names.push_back(*other);
  }
  return names;
}

void FitPart(const Plan& plan, const WeightPart& part, const WeightSource& source, PartFit& fit,
             std::map<std::string, TakenTensor>& taken, SourceTensors& tensors, std::vector<std::string>& problems) {
  PartFitting(plan, part, source, fit, taken, tensors).Run(problems);
}

}  // namespace planwright
