#include "planner/exchange/run_model.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "planner/exchange/folder_names.h"
#include "planner/plan/shard_map.h"
#include "planner/plan/statement/model_statement.h"

namespace planwright {
namespace {

// What a module says of the keys of its recipe.
SaidPart PartOf(const Module& module) {
  SaidPart part;
  part.statement = StatementOf(module.kind);
  for (const LayerSummary& layer : module.layers) part.letters += layer.kind;
  part.layers = static_cast<int64_t>(module.layers.size());
  for (const StatedKey& key : part.statement->keys) {
    Said said{int64_t{0}, absl::StrCat("module ", module.name, " ", key.name)};
    if (key.form == StatedKey::Form::kLayers) {
      part.SetLayers(said.from);
      continue;
    }
    const StatedConstant* constant = ConstantOfKey(*part.statement, key);
    if (constant == nullptr || !part.Has(constant->of)) continue;
    // Also one that modules lack where it says nothing new.
    const bool lacks = !module.constants.contains(constant->name);
    const double number = lacks            ? part.statement->NumberWithout(constant->name, module.constants)
                          : constant->real ? module.real(constant->name)
                                           : static_cast<double>(module.size(constant->name));
    if (key.form == StatedKey::Form::kChoice) {
      for (const auto& [word, of_word] : key.words) {
        if (number == static_cast<double>(of_word)) said.value = word;
      }
    } else if (constant->real) {
      said.value = number;
    } else if (constant->flag) {
      said.value = number > 0;
    } else {
      said.value = static_cast<int64_t>(number);
    }
    part.numbers.emplace_back(key.name, std::move(said));
  }
  return part;
}

std::string NamesOf(const Plan& plan) {
  std::string names;
  for (const Module& module : plan.modules) absl::StrAppend(&names, names.empty() ? "" : ", ", module.name);
  return names;
}

}  // namespace

RunModel ModelOfRun(const Plan& plan, const std::string& name, Findings& findings, const DialectSet& dialects) {
  RunModel run;
  int encoders = 0;
  for (const Module& module : plan.modules) {
    if (!name.empty() && module.name != name) continue;
    if (module.has_images) {
      run.encoder = &module;
      ++encoders;
    }
    if (module.carries_loss) run.language = &module;
  }
  if (!name.empty() && run.encoder == nullptr && run.language == nullptr)
    findings.Problem("--module", name, "is no module of the run: " + NamesOf(plan));
  if (encoders > 1) {
    findings.Problem(
        "modules", absl::StrCat(encoders, " encoders"),
        "are too many, as a Hugging Face model has one: export modules one by one with --module: " + NamesOf(plan));
  }
  if (run.language != nullptr) run.said.language = PartOf(*run.language);
  if (run.encoder != nullptr) run.said.encoder = PartOf(*run.encoder);
  for (const Bridge& bridge : plan.bridges) {
    if (run.encoder != nullptr && bridge.from == run.encoder->name)
      run.said.image_token = Said{bridge.token, "bridge " + bridge.name + " token"};
  }
  run.said.dialects = &dialects;
  return run;
}

std::vector<LeavingTensor> LeavingTensors(const RunModel& run, const Dialect& dialect,
                                          const std::map<std::string, DType>& keys, const ShapeInFolder& has,
                                          Findings& findings) {
  std::vector<LeavingTensor> leaving;
  int64_t left = 0;
  for (const Module* module : {run.encoder, run.language}) {
    if (module == nullptr) continue;
    FolderTensors folder = TensorsInFolder(*run.said.dialects, dialect, *module, has);
    left += folder.left;
    for (const TextProblem& misfit : folder.problems) findings.Problem(TextOf(misfit), "", "");
    // What adapters stand on is in no checkpoint.
    const auto stays = [&](int index) {
      const Parameter& parameter = module->parameters[static_cast<size_t>(index)];
      return module->adapted() && (!parameter.trained || parameter.buffer);
    };
    for (FolderTensor& tensor : folder.tensors) {
      if (stays(tensor.pieces.empty() ? tensor.parameter : tensor.pieces.front().parameter)) continue;
      LeavingTensor& leaves = leaving.emplace_back(LeavingTensor{tensor.name, tensor.shape, false, false, {}});
      const auto add = [&](int index, int64_t expert, std::optional<ElementMap> map) {
        const Parameter& parameter = module->parameters[static_cast<size_t>(index)];
        const std::string weight = ExpertName(parameter.name, expert);
        const std::string key = keys.contains(weight + ".master") ? weight + ".master" : weight;
        leaves.parts.push_back({key, keys.at(key), std::move(map)});
        leaves.buffer = parameter.buffer;
        leaves.trained = leaves.trained || parameter.trained;
      };
      if (tensor.pieces.empty()) add(tensor.parameter, tensor.expert, std::nullopt);
      for (DiskPiece& piece : tensor.pieces) add(piece.parameter, piece.expert, std::move(piece.map));
    }
  }
  if (left > 0) {
    findings.notes.push_back(absl::StrCat("left behind: ", left, " tensors of the projector of module ",
                                          run.encoder->name, ", as a folder of an encoder has none"));
  }
  return leaving;
}

}  // namespace planwright
