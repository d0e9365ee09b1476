#include "planner/state/forms/disk_tensors.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "planner/base/text/near_name.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/shard_map.h"
#include "planner/state/forms/name_pattern.h"
#include "planner/state/forms/shaped_tensor.h"

namespace planwright {
namespace {

// A piece of the statement, and where the module has it.
struct PlacedPiece {
  const StatedPiece* piece = nullptr;
  std::string frame;
};

// The names by which lines may call a weight of a piece.
std::vector<std::string> NamesOf(const StatedWeight& weight, const StatedPiece& piece) {
  return {weight.name, piece.prefix + weight.name, weight.file_prefix + piece.prefix + weight.name};
}

bool IsCalled(const StatedWeight& weight, const StatedPiece& piece, const std::string& name) {
  const std::vector<std::string> names = NamesOf(weight, piece);
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Constants and what follows from them, as on one rank: files do not depend on the layout.
ModelNumbers NumbersOf(const Module& module, const ModelStatement& statement) {
  Module sizes;
  sizes.kind = module.kind;
  sizes.constants = module.constants;
  sizes.layers = module.layers;
  return ModelNumbers({.micro_samples = 1, .sequence_length = 1}, sizes, statement);
}

class Binding {
 public:
  Binding(const StoredForm& form, const Module& module, const ModelStatement& statement)
      : form_(form), module_(module), statement_(statement), encoder_(EncoderOf(module, statement)),
        numbers_(NumbersOf(module, statement)) {
    for (const Storage& storage : module.storages) {
      std::vector<int>& of = parameters_[storage.frame];
      of.insert(of.end(), storage.parameters.begin(), storage.parameters.end());
    }
    placed_.push_back({&statement.embed, module.name + ".embed"});
    for (const LayerSummary& layer : module.layers) {
      if (const auto piece = statement.layers.find(layer.kind); piece != statement.layers.end())
        placed_.push_back({&piece->second, layer.frame});
    }
    placed_.push_back({&statement.head, module.name + ".head"});
  }

  DiskTensors Run() {
    for (const StatedTensor& tensor : form_.tensors) {
      bool known = CheckFormulas(tensor);
      for (const std::string& name : tensor.parameters) known = known && CheckKnown(tensor, name);
      if (!known || !CheckTogether(tensor)) continue;
      // What is wrong in one layer is wrong in all.
      const size_t before = problems_.size();
      for (const PlacedPiece& placed : placed_) {
        if (problems_.size() == before) Bind(tensor, placed);
      }
    }
    CheckNames();
    std::stable_sort(tensors_.begin(), tensors_.end(), [](const DiskTensor& a, const DiskTensor& b) {
      return a.pieces.front().parameter < b.pieces.front().parameter;
    });
    return {std::move(tensors_), std::move(problems_)};
  }

 private:
  void Problem(const StatedTensor& tensor, std::string_view word, std::string message) {
    problems_.push_back(TensorProblem(tensor, word, std::move(message)));
  }

  // Whether formulas are of constants and of what follows from them.
  bool CheckFormulas(const StatedTensor& tensor) {
    std::vector<std::string> known = {"layers"};
    for (const StatedConstant& constant : statement_.constants) known.push_back(constant.name);
    for (const StatedNumber& let : statement_.lets) known.push_back(let.name);
    std::vector<Expression> formulas = tensor.shape;
    if (tensor.each) formulas.push_back(*tensor.each);
    for (const Expression& formula : formulas) {
      for (const std::string& name : formula.names()) {
        if (std::find(known.begin(), known.end(), name) != known.end()) continue;
        const std::string near = NearNameHelp(name, known);
        Problem(tensor, name,
                Cat(Quoted(name), " is no constant of ", statement_.kind, near.empty() ? "" : "; ", near));
        return false;
      }
    }
    return true;
  }

  // Whether some piece of the statement has a weight of this name.
  bool CheckKnown(const StatedTensor& tensor, const std::string& name) {
    std::vector<std::string> names;
    const auto called = [&](const StatedPiece& piece) {
      return std::any_of(piece.weights.begin(), piece.weights.end(), [&](const StatedWeight& weight) {
        names.push_back(weight.name);
        return IsCalled(weight, piece, name);
      });
    };
    if (called(statement_.embed) || called(statement_.head)) return true;
    for (const auto& [letter, piece] : statement_.layers) {
      if (called(piece)) return true;
    }
    const std::string near = NearNameHelp(name, names);
    Problem(tensor, name, Cat("no piece has a weight ", Quoted(name), near.empty() ? "" : "; ", near));
    return false;
  }

  // Whether some piece has them all.
  bool CheckTogether(const StatedTensor& tensor) {
    const auto has_all = [&](const StatedPiece& piece) {
      return std::all_of(tensor.parameters.begin(), tensor.parameters.end(), [&](const std::string& name) {
        return std::any_of(piece.weights.begin(), piece.weights.end(),
                           [&](const StatedWeight& weight) { return IsCalled(weight, piece, name); });
      });
    };
    if (has_all(statement_.embed) || has_all(statement_.head)) return true;
    for (const auto& [letter, piece] : statement_.layers) {
      if (has_all(piece)) return true;
    }
    Problem(tensor, tensor.name, "no piece has all of these parameters, and a tensor holds those of one piece");
    return false;
  }

  // The module's parameter that the name means in this place; -1: it has none.
  int Find(const PlacedPiece& placed, const std::string& name, NameNumbers& numbers) const {
    const auto found = parameters_.find(placed.frame);
    if (found == parameters_.end()) return -1;
    for (const StatedWeight& weight : placed.piece->weights) {
      if (!IsCalled(weight, *placed.piece, name)) continue;
      const std::string pattern = weight.file_prefix + placed.piece->prefix + weight.name;
      for (const int index : found->second) {
        NameNumbers some;
        const std::string& file_name = module_.parameters[static_cast<size_t>(index)].file_name;
        if (AfterPattern(pattern, file_name, encoder_, some) != "") continue;
        numbers.merge(some);
        return index;
      }
    }
    return -1;
  }

  void Bind(const StatedTensor& tensor, const PlacedPiece& placed) {
    std::vector<int> parameters;
    NameNumbers numbers;
    std::string missing;
    for (const std::string& name : tensor.parameters) {
      const int index = Find(placed, name, numbers);
      if (index >= 0) {
        parameters.push_back(index);
      } else {
        missing = name;
      }
    }
    if (parameters.empty()) return;
    const Parameter& first = module_.parameters[static_cast<size_t>(parameters[0])];
    if (!missing.empty()) {
      Problem(tensor, missing, Cat("the piece of ", Quoted(first.file_name), " has no weight ", Quoted(missing)));
      return;
    }
    std::optional<DiskTensor> bound = ShapedTensor(tensor, module_, parameters, numbers_, problems_);
    const std::optional<std::string> name = NameFrom(tensor.name, encoder_, numbers);
    if (!name && bound) {
      Problem(tensor, tensor.name,
              Cat("the name has a number that ", Quoted(first.file_name), " has not: it is named by ",
                  Quoted(placed.piece->prefix)));
    }
    if (!name || !bound) return;
    for (const int index : parameters) {
      const auto [other, added] = line_of_.try_emplace(index, tensor.line);
      if (added) continue;
      Problem(tensor,
              tensor.parameters[static_cast<size_t>(std::find(parameters.begin(), parameters.end(), index) -
                                                    parameters.begin())],
              Cat(Quoted(module_.parameters[static_cast<size_t>(index)].file_name), " is in another tensor already"));
      problems_.back().from = {PlaceOf(other->second)};
      return;
    }
    bound->name = form_.NameOf(*name, encoder_);
    bound->named = bound->name != *name;
    Add(tensor, std::move(*bound), first.experts);
  }

  // Without stack, each expert has a tensor of its own.
  void Add(const StatedTensor& tensor, DiskTensor bound, int64_t experts) {
    if (experts == 0 || tensor.stack) return AddNamed(tensor, std::move(bound));
    for (int64_t expert = 0; expert < experts; ++expert) {
      DiskTensor one{ExpertName(bound.name, expert), bound.named, bound.shape, {}};
      for (const DiskPiece& piece : bound.pieces) {
        if (piece.expert == expert) one.pieces.push_back(piece);
      }
      AddNamed(tensor, std::move(one));
    }
  }

  void AddNamed(const StatedTensor& tensor, DiskTensor bound) {
    const auto [other, added] = line_of_name_.try_emplace(bound.name, tensor.line);
    if (!added) {
      Problem(tensor, tensor.name, Cat("two tensors are called ", Quoted(bound.name)));
      if (other->second != tensor.line) problems_.back().from = {PlaceOf(other->second)};
      return;
    }
    tensors_.push_back(std::move(bound));
  }

  // No tensor may have the name of a parameter that is a tensor of its own.
  void CheckNames() {
    for (size_t i = 0; i < module_.parameters.size(); ++i) {
      if (line_of_.contains(static_cast<int>(i))) continue;
      const Parameter& parameter = module_.parameters[i];
      for (int64_t expert = parameter.experts > 0 ? 0 : -1; expert < parameter.experts; ++expert) {
        const std::string name = ExpertName(form_.NameOf(parameter.file_name, encoder_), expert);
        const auto line = line_of_name_.find(name);
        if (line != line_of_name_.end()) {
          problems_.push_back({PlaceOf(line->second),
                               Printable(Cat("the tensor has the name of ", Quoted(parameter.file_name),
                                             ", which is a tensor of its own")),
                               {}});
          return;
        }
        if (expert == -1) break;
      }
    }
  }

  const StoredForm& form_;
  const Module& module_;
  const ModelStatement& statement_;
  const std::string encoder_;
  const ModelNumbers numbers_;
  std::map<std::string, std::vector<int>> parameters_;  // by frame
  std::vector<PlacedPiece> placed_;
  std::map<int, StatedLine> line_of_;  // the line that has a parameter
  std::map<std::string, StatedLine> line_of_name_;
  std::vector<DiskTensor> tensors_;
  TextProblems problems_;
};

}  // namespace

std::string EncoderOf(const Module& module, const ModelStatement& statement) {
  const std::string own = module.name + ".";
  std::vector<const StatedPiece*> pieces = {&statement.embed, &statement.head};
  for (const auto& [letter, piece] : statement.layers) pieces.push_back(&piece);
  for (const Parameter& parameter : module.parameters) {
    for (const StatedPiece* piece : pieces) {
      for (const StatedWeight& weight : piece->weights) {
        NameNumbers numbers;
        const std::string pattern = weight.file_prefix + piece->prefix + weight.name;
        if (pattern.find("{encoder}") == std::string::npos) continue;
        if (AfterPattern(pattern, parameter.file_name, own, numbers) == "") return own;
      }
    }
  }
  return "";
}

DiskTensors DiskTensorsOf(const StoredForm& form, const Module& module, const ModelStatement& statement) {
  return Binding(form, module, statement).Run();
}

}  // namespace planwright
