#include "planner/state/weights/part_naming.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planner/plan/statement/model_statement.h"

namespace planwright {
namespace {

// The name under which others publish the tensor, or of one that has such a name, the name here; none: there is one
// name.
std::optional<std::string> Otherwise(const std::string& file_name) {
  for (const OtherName& other : OtherNames()) {
    const size_t at = file_name.find(other.ours);
    if (at != std::string::npos)
      return file_name.substr(0, at) + std::string(other.published) + file_name.substr(at + other.ours.size());
    if (absl::StartsWith(file_name, other.published))
      return std::string(other.ours) + file_name.substr(other.published.size());
  }
  return std::nullopt;
}

std::string Without(const std::string& begin, const std::string& name) {
  return absl::StartsWith(name, begin) ? name.substr(begin.size()) : name;
}

PartNaming AsStated(const std::vector<WantedTensor>& wanted, const std::string& lacked) {
  PartNaming naming;
  naming.lacked = lacked;
  for (const WantedTensor& one : wanted) naming.places.push_back({Without(lacked, one.file_name), -1});
  return naming;
}

PartNaming InForm(const WeightPart& part, const std::vector<WantedTensor>& wanted, const StoredForm& form,
                  const std::string& lacked) {
  const ModelStatement& statement = *StatementOf(part.module->kind);
  PartNaming naming;
  naming.lacked = lacked;
  naming.text = form.text;
  DiskTensors stored = DiskTensorsOf(form, *part.module, statement);
  for (const TextProblem& problem : stored.problems) {
    for (const auto& line : absl::StrSplit(ProblemsText({problem}), '\n', absl::SkipEmpty()))
      naming.problems.emplace_back(line);
  }
  // Another part may have tensors of its own.
  std::map<std::pair<int, int64_t>, int> tensor_of;
  const std::set<int> own(part.parameters.begin(), part.parameters.end());
  for (DiskTensor& tensor : stored.tensors) {
    const auto in_part = [&](const DiskPiece& piece) { return own.contains(piece.parameter); };
    if (std::none_of(tensor.pieces.begin(), tensor.pieces.end(), in_part)) continue;
    if (!std::all_of(tensor.pieces.begin(), tensor.pieces.end(), in_part))
      naming.problems.push_back(absl::StrCat("tensor ", tensor.name, " holds parameters of two parts"));
    tensor.name = Without(lacked, tensor.name);
    for (const DiskPiece& piece : tensor.pieces)
      tensor_of[{piece.parameter, piece.expert}] = static_cast<int>(naming.tensors.size());
    naming.tensors.push_back(std::move(tensor));
  }
  const std::string encoder = EncoderOf(*part.module, statement);
  for (const WantedTensor& one : wanted) {
    const auto tensor = tensor_of.find({one.index, one.expert});
    if (tensor != tensor_of.end()) {
      naming.places.push_back({naming.tensors[static_cast<size_t>(tensor->second)].name, tensor->second});
    } else {
      const std::string name = form.NameOf(one.parameter->file_name, encoder);
      naming.places.push_back({Without(lacked, ExpertName(name, one.expert)), -1});
    }
  }
  return naming;
}

bool IsOfOne(const WeightPart& part, const std::string& model_type) {
  return std::any_of(part.dialects.begin(), part.dialects.end(), [&](const auto& one) { return one.IsOf(model_type); });
}

// Whether two parameters are one tensor: the embedding is the head.
bool Ties(const PartNaming& naming) {
  std::set<std::string> names;
  return std::any_of(naming.places.begin(), naming.places.end(), [&](const PartNaming::Place& place) {
    return place.tensor < 0 && !names.insert(place.name).second;
  });
}

// Whether the embedding of these files may be the head. In all types that are known it is only if config.json says so;
// of files alone nobody knows.
bool MayBeTied(const WeightPart& part, const WeightFiles& files) {
  return files.tied().value_or(!IsOfOne(part, files.model_type()));
}

// All namings, those without a dialect first. `model_type`: of the folder; dialects that have it are asked alone. Null:
// all are.
std::vector<PartNaming> NamingsOf(const WeightPart& part, const std::vector<WantedTensor>& wanted,
                                  const std::string* model_type) {
  std::vector<std::string> beginnings = {""};
  beginnings.insert(beginnings.end(), part.lacked.begin(), part.lacked.end());
  std::vector<PartNaming> namings;
  for (const std::string& lacked : beginnings) namings.push_back(AsStated(wanted, lacked));
  const bool known = model_type != nullptr && IsOfOne(part, *model_type);
  for (const DialectForms& dialect : part.dialects) {
    if (known && !dialect.IsOf(*model_type)) continue;
    for (const StoredForm& form : dialect.forms) {
      for (const std::string& lacked : beginnings) {
        // Names alone say all of the beginning, too.
        if (lacked.empty() || !form.tensors.empty()) namings.push_back(InForm(part, wanted, form, lacked));
      }
    }
  }
  return namings;
}

}  // namespace

PartNaming NamingOf(const WeightPart& part, const std::vector<WantedTensor>& wanted, const WeightFiles& files) {
  std::vector<PartNaming> namings = NamingsOf(part, wanted, &files.model_type());
  if (!MayBeTied(part, files)) std::erase_if(namings, Ties);
  for (PartNaming& naming : namings) {
    for (size_t i = 0; i < wanted.size(); ++i) {
      const PartNaming::Place& place = naming.places[i];
      const auto tensor = FindInFiles(files, place.name);
      if (tensor == files.all().end()) continue;
      ++naming.found;
      const std::vector<int64_t>& shape =
          place.tensor < 0 ? wanted[i].parameter->shape : naming.tensors[static_cast<size_t>(place.tensor)].shape;
      naming.fitting += tensor->second.shape == shape ? 1 : 0;
    }
  }
  const auto fewer = [](const PartNaming& a, const PartNaming& b) {
    return std::pair(a.found, a.fitting) < std::pair(b.found, b.fitting);
  };
  PartNaming best = *std::max_element(namings.begin(), namings.end(), fewer);
  // Where something is missing, lines that do not fit the model may be why.
  const bool all = best.found == static_cast<int64_t>(best.places.size());
  for (const PartNaming& naming : namings) {
    for (const std::string& problem : naming.problems) {
      const bool told = std::find(best.problems.begin(), best.problems.end(), problem) != best.problems.end();
      if (!all && !told) best.problems.push_back(problem);
    }
  }
  return best;
}

std::vector<std::string> NamesInFiles(const WeightPart& part) {
  std::vector<std::string> names;
  for (const PartNaming& naming : NamingsOf(part, WantedOf(part), nullptr)) {
    for (const PartNaming::Place& place : naming.places) {
      names.push_back(place.name);
      if (const auto other = Otherwise(place.name)) names.push_back(*other);
    }
  }
  return names;
}

std::map<std::string, WeightTensor>::const_iterator FindInFiles(const WeightFiles& files, const std::string& name) {
  const auto found = files.all().find(name);
  if (found != files.all().end()) return found;
  const std::optional<std::string> other = Otherwise(name);
  return other ? files.all().find(*other) : found;
}

}  // namespace planwright
