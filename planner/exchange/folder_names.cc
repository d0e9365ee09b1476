#include "planner/exchange/folder_names.h"

#include <algorithm>
#include <map>
#include <utility>

#include "planner/plan/shard_map.h"
#include "planner/plan/statement/model_statement.h"
#include "planner/state/dialect/dialect_forms.h"
#include "planner/state/weights/parts.h"

namespace planwright {
namespace {

class InOneForm {
 public:
  InOneForm(const StoredForm& form, const Module& module, bool projection)
      : form_(form), module_(module), projection_(projection), own_(module.name + ".") {}

  FolderTensors Run() {
    DiskTensors disk;
    if (!form_.tensors.empty()) disk = DiskTensorsOf(form_, module_, *StatementOf(module_));
    std::map<std::pair<int, int64_t>, DiskTensor*> tensor_of;
    for (DiskTensor& tensor : disk.tensors) {
      for (const DiskPiece& piece : tensor.pieces) tensor_of[{piece.parameter, piece.expert}] = &tensor;
    }
    FolderTensors folder;
    folder.problems = std::move(disk.problems);
    for (size_t i = 0; i < module_.parameters.size(); ++i) {
      const Parameter& parameter = module_.parameters[i];
      if (!projection_ && IsProjection(module_, parameter)) {
        ++folder.left;
        continue;
      }
      const int index = static_cast<int>(i);
      for (int64_t expert = parameter.experts > 0 ? 0 : -1; expert < parameter.experts; ++expert) {
        const auto in = tensor_of.find({index, expert});
        if (in == tensor_of.end()) {
          const std::string name = form_.NameOf(WithoutOwn(parameter.file_name), "");
          folder.tensors.push_back({ExpertName(name, expert), parameter.shape, index, expert, {}});
        } else if (!in->second->pieces.empty()) {
          DiskTensor& tensor = *in->second;
          folder.tensors.push_back({WithoutOwn(tensor.name), tensor.shape, index, -1, std::move(tensor.pieces)});
          tensor.pieces.clear();
        }
        if (expert == -1) break;
      }
    }
    return folder;
  }

 private:
  // With several encoders, names begin with that of the module; one leaves by itself.
  std::string WithoutOwn(const std::string& name) const {
    return name.starts_with(own_) ? name.substr(own_.size()) : name;
  }

  const StoredForm& form_;
  const Module& module_;
  const bool projection_;
  const std::string own_;
};

}  // namespace

std::string TextOf(const TextProblem& problem) {
  std::string text = ProblemsText({problem});
  text.pop_back();  // the end of the line
  return text;
}

FolderTensors TensorsInFolder(const DialectSet& dialects, const Dialect& dialect, const Module& module,
                              const ShapeInFolder& has) {
  const std::vector<StoredForm> forms = FormsIn(dialects, dialect, module.kind);
  const bool projection = dialects.RootOf(dialect).projection;
  FolderTensors best = InOneForm(forms.front(), module, projection).Run();
  if (!has || forms.size() == 1) return best;
  // How many parameters have the names of a form, and how many of them its shapes.
  using Count = std::pair<size_t, size_t>;
  const auto parameters = [&](const FolderTensors& folder) {
    Count count;
    for (const FolderTensor& tensor : folder.tensors) {
      const std::vector<int64_t>* shape = has(tensor.name);
      if (shape == nullptr) continue;
      const size_t held = std::max<size_t>(1, tensor.pieces.size());
      count.first += held;
      if (*shape == tensor.shape) count.second += held;
    }
    return count;
  };
  Count most = parameters(best);
  for (size_t i = 1; i < forms.size(); ++i) {
    FolderTensors other = InOneForm(forms[i], module, projection).Run();
    const Count count = parameters(other);
    if (count > most) best = std::move(other), most = count;
  }
  return best;
}

}  // namespace planwright
