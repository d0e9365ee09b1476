#include "planner/exchange/expected_tensors.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/limits.h"
#include "planner/compile/model/expand_statement.h"
#include "planner/exchange/folder_names.h"
#include "planner/exchange/other_beginnings.h"
#include "planner/plan/shard_map.h"
#include "planner/state/weights/name_groups.h"
#include "planner/wire/records/safetensors.h"

namespace planwright {
namespace {

// The constants of a module that a config.json makes. What it does not say, and what other modules settle, follows from
// others, decides no shape that is compared, or is 1.
Attributes ConstantsOf(const SaidModel& model, const SaidPart& part) {
  constexpr std::string_view kOutput = "output.";
  Attributes constants = part.Constants();
  for (const StatedConstant& constant : part.statement->constants) {
    if (constants.contains(constant.name) || constant.otherwise || !part.Has(constant.of)) continue;
    const std::string_view name = constant.name;
    const Said* output =
        model.language && name.starts_with(kOutput) ? model.language->Find(name.substr(kOutput.size())) : nullptr;
    const double number = output != nullptr ? output->number() : constant.or_zero ? 0 : 1;
    if (constant.real) {
      constants[constant.name] = number;
    } else {
      constants[constant.name] = static_cast<int64_t>(number);
    }
  }
  return constants;
}

Module ModuleOf(const SaidModel& model, const SaidPart& part) {
  Module module;
  module.name = "m";
  module.kind = part.statement->kind;
  module.has_images = part.statement->has_images;
  module.carries_loss = part.statement->carries_loss;
  module.constants = ConstantsOf(model, part);
  for (const char letter : part.letters)
    module.layers.push_back({.kind = letter, .frame = absl::StrCat("m.layers.", module.layers.size())});
  return module;
}

// The parameters of a part, on one rank.
Module Expanded(const SaidModel& model, const SaidPart& part) {
  Module module = ModuleOf(model, part);
  ExpandStatement(*part.statement, ModelNumbers({.micro_samples = 1, .sequence_length = 1}, module, *part.statement),
                  false, module);
  return module;
}

// Calls `visit(tensor, parameter)` for each tensor that the model has in its folder, with the first of its parameters.
template <typename Visit>
TextProblems EachTensor(const SaidModel& model, const ShapeInFolder& has, const Visit& visit) {
  TextProblems problems;
  for (const std::optional<SaidPart>* part : {&model.language, &model.encoder}) {
    if (!*part) continue;
    const Module module = Expanded(model, **part);
    const FolderTensors folder = TensorsInFolder(*model.dialects, *model.dialect, module, has);
    problems.insert(problems.end(), folder.problems.begin(), folder.problems.end());
    for (const FolderTensor& tensor : folder.tensors)
      visit(tensor, module.parameters[static_cast<size_t>(tensor.parameter)]);
  }
  return problems;
}

// What the tensors of a known kind that nobody trains are called in a note.
struct Extras {
  std::string first;
  int64_t tensors = 0;
};

// What is wrong with the shape of an extra, as far as the numbers of the part say it; empty: nothing. Where its numbers
// are given as a list, they are read (CheckStoredNorm).
std::string MisfitOfExtra(const SaidPart& part, const DialectExtra& extra, const std::vector<int64_t>& shape) {
  if (!extra.sizes || extra.is.starts_with("[")) return "";
  const std::vector<DialectSize>& sizes = *extra.sizes;
  bool fits = shape.size() == sizes.size();
  std::vector<std::string> wanted;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const double size =
        sizes[i].formula ? sizes[i].formula->Evaluate([&](const std::string& name) { return part.NumberOf(name); }) : 1;
    if (std::isnan(size) || size < 1) return "";
    const int64_t number = std::min(size, 1e15) < size ? int64_t{1} << 50 : static_cast<int64_t>(size);
    fits = fits && (sizes[i].any.empty() ? shape[i] == number : shape[i] >= 1 && shape[i] % number == 0);
    wanted.push_back(sizes[i].any.empty() ? absl::StrCat(number)
                     : sizes[i].formula   ? absl::StrCat(sizes[i].any, " x ", number)
                                          : sizes[i].any);
  }
  if (fits) return "";
  const bool list = wanted.size() == 1 && wanted[0] == "any";
  return absl::StrCat(" is ", ShapeText(shape), ", by config.json ",
                      list ? "a list" : absl::StrCat("[", absl::StrJoin(wanted, ", "), "]"));
}

// The part whose dialect has the extra.
const SaidPart* PartOfExtra(const SaidModel& model, const DialectExtra& extra) {
  for (const std::optional<SaidPart>* part : {&model.encoder, &model.language}) {
    if (!*part) continue;
    const auto& extras = model.dialects->RootOf(*(*part)->dialect).extras;
    if (&extra >= extras.data() && &extra < extras.data() + extras.size()) return &**part;
  }
  return nullptr;
}

// The name with our beginning instead of theirs, without the words that both end with: "text_model.head" of
// "x.text_model.head", if "x.vision_model." is "vision_model.". Empty: it does not begin so.
std::string WithOurBeginning(const OtherBeginning& other, const std::string& name) {
  std::string theirs = other.theirs, ours = other.ours;
  const auto last_word = [](const std::string& words) {
    const size_t dot = words.size() < 2 ? std::string::npos : words.rfind('.', words.size() - 2);
    return dot == std::string::npos ? 0 : dot + 1;
  };
  while (!theirs.empty() && !ours.empty() && theirs.substr(last_word(theirs)) == ours.substr(last_word(ours))) {
    theirs.resize(last_word(theirs));
    ours.resize(last_word(ours));
  }
  return name.starts_with(theirs) ? ours + name.substr(theirs.size()) : "";
}

}  // namespace

std::string ShapeText(const std::vector<int64_t>& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

std::string SizesTooLarge(const SaidModel& model) {
  double elements = 0, layers = 0, tensors = 0;
  for (const std::optional<SaidPart>* one : {&model.language, &model.encoder}) {
    if (!*one) continue;
    const SaidPart& part = **one;
    const Module module = ModuleOf(model, part);
    const ModelNumbers numbers({.micro_samples = 1, .sequence_length = 1}, module, *part.statement);
    const auto add = [&](const StatedPiece& piece, double times) {
      for (const StatedWeight& weight : piece.weights) {
        if (!numbers.Hold(weight.when)) continue;
        const bool stacked = weight.form == StatedWeight::Form::kExperts;
        const double experts = stacked ? static_cast<double>(module.experts()) : 1;
        double product = times * experts;
        for (const Expression& size : weight.shape) product *= numbers.Of(size);
        elements += product;
        if (stacked) tensors += times * experts;
      }
    };
    layers += static_cast<double>(part.layers);
    add(part.statement->embed, 1);
    add(part.statement->head, 1);
    for (const auto& [letter, piece] : part.statement->layers) {
      if (const auto count = std::count(part.letters.begin(), part.letters.end(), letter); count > 0)
        add(piece, static_cast<double>(count));
    }
  }
  if (layers > static_cast<double>(kMostLayers)) return absl::StrCat("more than ", kMostLayers, " layers");
  if (tensors > static_cast<double>(kMaxSafetensorsTensors))
    return absl::StrCat("more than ", kMaxSafetensorsTensors, " tensors of experts");
  if (elements > static_cast<double>(kMostElements) / 2) return "more than 2^49 parameters";
  return "";
}

TensorShapes ExpectedTensors(const SaidModel& model, const ShapeInFolder& has) {
  TensorShapes tensors;
  EachTensor(model, has, [&](const FolderTensor& tensor, const Parameter& parameter) {
    if (model.dialects->FindOptional(tensor.name) == nullptr) tensors[tensor.name] = tensor.shape;
  });
  return tensors;
}

std::set<std::string> ExpectedBuffers(const SaidModel& model, const ShapeInFolder& has) {
  std::set<std::string> buffers;
  EachTensor(model, has, [&](const FolderTensor& tensor, const Parameter& parameter) {
    if (parameter.buffer) buffers.insert(tensor.name);
  });
  return buffers;
}

void CompareTensors(const SaidModel& model, const TensorShapes& found, Findings& findings) {
  TensorShapes expected, optional;  // that files have, and need not have
  const auto has = [&](const std::string& name) {
    const auto tensor = found.find(name);
    return tensor == found.end() ? nullptr : &tensor->second;
  };
  std::vector<TensorLine> lines;
  const TextProblems misfits = EachTensor(model, has, [&](const FolderTensor& tensor, const Parameter& parameter) {
    auto& shapes = model.dialects->FindOptional(tensor.name) != nullptr ? optional : expected;
    // A tied model's folder has one tensor for two parameters of an untied one.
    if (!shapes.try_emplace(tensor.name, tensor.shape).second && !model.untied)
      lines.push_back({"tensor ", parameter.file_name,
                       absl::StrCat(" is missing, and config.json says that ", tensor.name, " is not in its place")});
  });
  for (const TextProblem& misfit : misfits) findings.Problem(TextOf(misfit), "", "");
  const DialectSet& dialects = *model.dialects;
  const auto compare = [&](const std::string& name, const std::vector<int64_t>& in_file, const auto& shape) {
    if (in_file != shape) {
      lines.push_back(
          {"tensor ", name, absl::StrCat(" is ", ShapeText(in_file), ", by config.json ", ShapeText(shape))});
    }
  };
  TensorShapes missing, unknown, extra_shapes;
  for (const auto& [name, shape] : expected) {
    if (!found.contains(name)) missing[name] = shape;
  }
  for (const auto& [name, shape] : found) {
    if (expected.contains(name) || dialects.FindOptional(name)) continue;
    (dialects.FindExtra(name) ? extra_shapes : unknown)[name] = shape;
  }
  for (const OtherBeginning& other : TakeOtherBeginnings(missing, unknown, extra_shapes)) {
    const std::string of =
        absl::StrCat("those of ", model.type.empty() ? dialects.RootOf(*model.dialect).name() : model.type);
    const std::string what = other.theirs.empty() ? absl::StrCat("lack ", other.ours, " in front, which ", of, " have")
                             : other.ours.empty()
                                 ? absl::StrCat("begin with ", other.theirs, ", and ", of, " have nothing in its place")
                                 : absl::StrCat("begin with ", other.theirs, ", and ", of, " with ", other.ours);
    std::erase_if(unknown, [&](const auto& one) {
      const std::string name = WithOurBeginning(other, one.first);
      return !name.empty() && dialects.FindExtra(name) != nullptr;
    });
    lines.push_back({"", other.names.front(),
                     absl::StrCat(" and ", other.names.size() - 1, " more tensors ", what, ": rename them")});
  }
  for (const auto& [name, shape] : expected) {
    if (missing.contains(name)) {
      lines.push_back({"tensor ", name, " " + ShapeText(shape) + " is missing"});
    } else if (const auto in_file = found.find(name); in_file != found.end()) {
      compare(name, in_file->second, shape);
    }
  }
  std::map<std::string_view, Extras> extras;  // by what they are
  for (const auto& [name, shape] : found) {
    if (expected.contains(name)) continue;
    if (const DialectHint* hint = dialects.FindOptional(name)) {
      const auto ours = optional.find(name);
      if (ours == optional.end()) {
        lines.push_back(
            {"tensor ", name, absl::StrCat(" is of ", hint->called, ", but config.json says that there is none")});
      } else {
        compare(name, shape, ours->second);
      }
    } else if (const DialectExtra* extra = dialects.FindExtra(name)) {
      if (!extra_shapes.contains(name)) continue;  // it is needed, and has another beginning
      if (const SaidPart* part = PartOfExtra(model, *extra)) {
        if (std::string misfit = MisfitOfExtra(*part, *extra, shape); !misfit.empty())
          lines.push_back({"tensor ", name, std::move(misfit)});
      }
      Extras& of = extras.try_emplace(extra->what, Extras{name, 0}).first->second;
      ++of.tensors;
    } else if (unknown.contains(name)) {
      lines.push_back({"tensor ", name, " " + ShapeText(shape) + " is of no part that can be expressed"});
    }
  }
  for (std::string& line : GroupedLines(lines)) findings.Problem(std::move(line), "", "");
  for (const auto& [name, shape] : optional) {
    const DialectHint* hint = dialects.FindOptional(name);
    if (hint->names.front() == name && !found.contains(name))
      findings.notes.push_back(absl::StrCat("the folder does not store ", name, ": ", hint->text));
  }
  for (const auto& [what, of] : extras) {
    findings.notes.push_back(
        absl::StrCat("not trained, and passed through by `plan export --like`: ", std::string(what), ", ", of.tensors,
                     of.tensors == 1 ? " tensor" : " tensors", ", such as ", of.first));
  }
}

}  // namespace planwright
