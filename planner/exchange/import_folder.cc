#include "planner/exchange/import_folder.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/exchange/check_recipe.h"
#include "planner/exchange/config_file.h"
#include "planner/exchange/expected_tensors.h"
#include "planner/exchange/recipe_text.h"
#include "planner/exchange/stored_norm.h"
#include "planner/state/weights/fit_part.h"
#include "planner/state/weights/known_extras.h"
#include "planner/state/weights/name_groups.h"

namespace planwright {

namespace {

// A problem for each tensor that a run would load and whose numbers are of a type that none has, such as FP8.
void CheckTypes(const WeightFiles& files, Findings& findings) {
  std::vector<TensorLine> lines;
  for (const auto& [name, tensor] : files.all()) {
    if (!ReadType(tensor.type) && FindKnownExtra(name) == nullptr)
      lines.push_back({"tensor ", name, TypeIsNotRead(tensor.type)});
  }
  for (std::string& line : GroupedLines(lines)) findings.Problem(std::move(line), "", "");
}

}  // namespace

absl::StatusOr<ReadFolder> ReadHuggingFaceFolder(const std::string& folder, const std::set<std::string>& ignored) {
  const absl::StatusOr<nlohmann::ordered_json> config = ReadConfigFile(folder);
  if (!config.ok()) return config.status();
  absl::StatusOr<std::unique_ptr<WeightFiles>> weights = WeightFiles::Open(folder);
  if (!weights.ok()) return weights.status();
  ReadFolder read;
  read.kind = KindOfConfig(*config);
  if (const auto type = config->find("model_type"); type != config->end() && type->is_string())
    read.model_type = type->get<std::string>();
  read.sizes = ReadModel(*config, ignored, read.findings);
  read.weights = *std::move(weights);
  for (const std::string& warning : read.weights->warnings()) read.findings.notes.push_back(warning);
  // Numbers that are problems would make others of every tensor.
  if (!read.findings.problems.empty()) return read;
  if (std::string why = SizesTooLarge(read.sizes); !why.empty()) {
    read.findings.Problem(kConfigFile, "", absl::StrCat("its sizes are beyond what a recipe may have: ", why));
    return read;
  }
  TensorShapes shapes;
  for (const auto& [name, tensor] : read.weights->all()) shapes[name] = tensor.shape;
  CompareTensors(read.sizes, shapes, read.findings);
  CheckTypes(*read.weights, read.findings);
  if (read.sizes.encoder) CheckStoredNorm(*read.weights, read.findings);
  return read;
}

absl::StatusOr<ImportedModel> ImportFolder(const std::string& folder, const std::set<std::string>& ignored,
                                           const std::string& named) {
  absl::StatusOr<ReadFolder> read = ReadHuggingFaceFolder(folder, ignored);
  if (!read.ok()) return read.status();
  ImportedModel imported;
  imported.findings = std::move(read->findings);
  if (imported.findings.problems.empty()) CheckAsRecipe(read->sizes, imported.findings);
  if (imported.findings.problems.empty()) {
    const std::string kind = read->model_type.empty() ? "RADIO" : read->model_type;
    imported.text = WriteRecipeText(read->sizes, folder, kind, named).text + ImageTokenText(read->sizes);
  }
  return imported;
}

}  // namespace planwright
