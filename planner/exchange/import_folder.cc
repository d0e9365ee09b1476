#include "planner/exchange/import_folder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/text/bug.h"
#include "planner/compile/bridges/route_bridges.h"
#include "planner/compile/topology/place_modules.h"
#include "planner/exchange/config_file.h"
#include "planner/exchange/config_keys.h"
#include "planner/exchange/convert.h"
#include "planner/exchange/expected_tensors.h"
#include "planner/exchange/read_model.h"
#include "planner/exchange/recipe_text.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/recipe/recipe_tree.h"
#include "planner/recipe/tree_edits.h"
#include "planner/recipe/yaml/yaml_text.h"
#include "planner/state/weights/fit_part.h"
#include "planner/state/weights/name_groups.h"
#include "planner/state/weights/read_values.h"

namespace planwright {

namespace {

// A problem for each tensor that a run would load and whose numbers are of a type that none has, such as FP8.
void CheckTypes(const WeightFiles& files, const DialectSet& dialects, const TensorShapes& expected,
                Findings& findings) {
  std::vector<TensorLine> lines;
  for (const auto& [name, tensor] : files.all()) {
    if (!ReadType(tensor.type) && (expected.contains(name) || dialects.FindExtra(name) == nullptr))
      lines.push_back({"tensor ", name, TypeIsNotRead(tensor.type)});
  }
  for (std::string& line : GroupedLines(lines)) findings.Problem(std::move(line), "", "");
}

// How far a number may be from that of the dialect: what the type rounds, and what configs leave away.
double Tolerance(const std::string& type) {
  if (type == "BF16") return 1.0 / (1 << 9);
  return type == "F16" ? 1.0 / (1 << 12) : 1e-6;
}

std::string ProblemOf(WeightFiles& files, const std::string& name, const WeightTensor& tensor,
                      const std::vector<double>& expected) {
  const std::optional<TensorType> type = files.TypeOf(name);
  if (!type) return absl::StrCat(" has type ", tensor.type, ", which is not read");
  const auto count = static_cast<int64_t>(expected.size());
  if (ElementsOf(tensor.shape) != count) return " has not one number for each of three colours";
  const DType dtype = type->dtype;
  std::vector<std::byte> stored(expected.size() * static_cast<size_t>(DTypeBytes(dtype)));
  const absl::Status read = files.Read(name, {{0, 0, count}}, stored, ElementReader::Numbers::kAny);
  if (!read.ok()) return absl::StrCat(": ", std::string(read.message()));
  std::vector<double> numbers(expected.size());
  ConvertNumbers(dtype, stored, DType::kFp64, std::as_writable_bytes(std::span(numbers)));
  for (size_t i = 0; i < expected.size(); ++i) {
    // Not a number is far from each.
    if (std::fabs(numbers[i] - expected[i]) <= Tolerance(tensor.type)) continue;
    return absl::StrCat(": element ", i, " is ", ShortestText(numbers[i]),
                        ", which cannot be expressed: images are normalized by that of CLIP, ",
                        ShortestText(expected[i]));
  }
  return "";
}

// By what a folder's encoder normalizes pixels, where its weights say it: RADIO's input_conditioner. transformers and
// RADIO's code compute with these tensors, and not with config.json. A problem for each whose numbers are not those of
// CLIP, rounded to the tensor's type, or that is no list of three. Reads these few numbers.
void CheckStoredNorm(WeightFiles& files, const DialectSet& dialects, Findings& findings) {
  for (const auto& [name, tensor] : files.all()) {
    const DialectExtra* extra = dialects.FindExtra(name);
    if (extra == nullptr || !extra->is.starts_with("[")) continue;
    const auto expected = nlohmann::ordered_json::parse(extra->is).get<std::vector<double>>();
    const std::string problem = ProblemOf(files, name, tensor, expected);
    if (!problem.empty()) findings.Problem(absl::StrCat("tensor ", name, problem), "", "");
  }
}

// Gives a language model whose head is its embedding a head of its own.
void Untie(SaidModel& model, Findings& findings) {
  constexpr char kTied[] = "tied";
  const Said* tied = model.language ? model.language->Find(kTied) : nullptr;
  if (tied == nullptr || tied->number() == 0)
    return findings.Problem("--untie", "", "the model has a head of its own already");
  model.untied = true;
  model.language->Set(kTied, Said{false, absl::StrCat("--untie, instead of ", tied->from, " = true")});
}

// A problem for each tensor that is no copy of the one that the model has in its place. Reads both.
void CheckCopies(const WeightFiles& files, const DialectSet& dialects, const TensorShapes& expected,
                 Findings& findings) {
  for (const auto& [name, tensor] : files.all()) {
    const DialectExtra* extra = expected.contains(name) ? nullptr : dialects.FindExtra(name);
    if (extra == nullptr || extra->copy_of.empty()) continue;
    std::string problem = WrongCopy(files, *extra, name);
    if (!problem.empty()) findings.Problem("tensor " + std::move(problem), "", "");
  }
}

// Numbers of a recipe that config.json does not say, so that it can be checked: an encoder alone has no projector and
// no language model. They fit all others.
void AddMissingNumbers(SaidPart& part, int64_t size) {
  for (const StatedKey& key : part.statement->keys) {
    const StatedConstant* constant = ConstantOfKey(*part.statement, key);
    if (constant == nullptr || key.form != StatedKey::Form::kConstant || constant->or_zero || !key.required ||
        part.Find(key.name) != nullptr)
      continue;
    if (!part.Has(constant->of)) continue;
    Said said;
    if (constant->real) {
      said.value = 1e-5;
    } else {
      said.value = std::min(size, static_cast<int64_t>(key.range.high));
    }
    part.Set(key.name, std::move(said));
  }
}

SaidModel Completed(SaidModel model) {
  if (model.encoder) AddMissingNumbers(*model.encoder, 1);
  if (model.language) return model;
  // Any language model, of one layer.
  for (const Dialect& dialect : model.dialects->all()) {
    const ModelStatement& statement = *StatementOf(dialect.kind);
    if (model.language || !statement.carries_loss || dialect.composite()) continue;
    SaidPart& some = model.language.emplace();
    some.statement = &statement;
    some.dialect = &dialect;
    some.letters =
        statement.repeated.empty() ? std::string(1, statement.layer_kinds.front().letter) : statement.repeated;
    some.layers = static_cast<int64_t>(some.letters.size());
    some.SetLayers("");
    AddMissingNumbers(some, 64);
  }
  return model;
}

// The rest of a recipe, on one rank. What it says decides nothing of the model but the image token's place.
void AddTheRest(const SaidModel& model, const std::optional<Said>& image_token, YamlNode& recipe) {
  const Said token = image_token.value_or(Said{int64_t{1}, ""});
  std::vector<std::string> rest = {"name=imported",
                                   "cluster={nodes: 1, gpus_per_node: 1, gpu: none}",
                                   "batch={global_samples: 1, sequence_length: 32}",
                                   "budget={train_samples: 1, learning_rate: {peak: 1.0e-3}}",
                                   "precision={params: fp32}",
                                   "data={kind: mock, max_images: 0, classes: 2, text_tokens: 4}"};
  const auto add = [&](const std::string& name, const std::string& of) {
    rest.push_back(absl::StrCat("modules.", name, "={model: ", of, ", placement: {first_rank: 0, ranks: 1}}"));
  };
  if (model.encoder) {
    add("encoder", NameInRecipe(model, *model.encoder));
    rest.push_back(absl::StrCat("data={image_token: ", token.text(), ", image_grids: [[1, 1]], max_images: 1}"));
    rest.push_back(absl::StrCat("bridges=[{from: encoder, to: language, token: ", token.text(), "}]"));
  }
  add("language", NameInRecipe(model, *model.language));
  Require(LayOverrides(rest, recipe).ok(), "the rest of a recipe is overrides");
  if (!model.encoder || token.from.empty()) return;
  YamlNode number = *NodeAt(recipe, "bridges[0].token");
  number.comments = std::make_shared<const YamlComments>(YamlComments{.beside = "# " + token.from});
  PutValue("bridges[0].token", std::move(number), recipe);
}

// Whether the model of a config.json is one that a recipe may have: the checks of `plan validate`, in terms of the
// config's keys. Reads the text that import writes as a recipe on one rank. A problem for each that its reader finds in
// the ranges of keys, its statements in how sizes fit together, and its bridge in the image token.
void CheckAsRecipe(const SaidModel& model, Findings& findings) {
  SaidModel models = Completed(model);
  models.image_token.reset();
  YamlNode tree = ModelsTree(models, kConfigFile, "");
  AddTheRest(models, model.image_token, tree);
  Diagnostics problems;
  // A text, as every value of a recipe has a place of its own.
  const std::optional<Recipe> read = ReadRecipeText(YamlText(tree), kConfigFile, problems);
  if (read) {
    const auto undamaged = [&](const char* section) { return !read->damaged.contains(section); };
    if (undamaged("models") && undamaged("modules")) {
      PlaceModules(*read, problems);
      CheckBridges(*read, problems);
    }
  }
  const auto number_at = [&](const Location& where) -> const YamlNode* {
    const std::optional<TreePlace> place = read ? PlaceAt(*read->tree, where) : std::nullopt;
    const YamlNode* number = place ? NodeAt(tree, place->path) : nullptr;
    return number != nullptr && !SourceOf(*number).empty() ? number : nullptr;
  };
  for (const Diagnostic& problem : problems.sorted()) {
    if (problem.severity != Severity::kError) continue;
    std::string message = absl::StrCat("is of no recipe: ", problem.message);
    for (const Note& note : problem.notes) {
      if (const YamlNode* other = number_at(note.where))
        absl::StrAppend(&message, " (", SourceOf(*other), " = ", FlowText(*other), ")");
    }
    const YamlNode* number = number_at(problem.where);
    findings.Problem(number != nullptr ? SourceOf(*number) : kConfigFile, number != nullptr ? FlowText(*number) : "",
                     std::move(message));
  }
}

}  // namespace

absl::StatusOr<ReadFolder> ReadHuggingFaceFolder(const std::string& folder, const std::set<std::string>& ignored,
                                                 const DialectSet& dialects, bool untie) {
  const absl::StatusOr<nlohmann::ordered_json> config = ReadConfigFile(folder);
  if (!config.ok()) return config.status();
  absl::StatusOr<std::unique_ptr<WeightFiles>> weights = WeightFiles::Open(folder);
  if (!weights.ok()) return weights.status();
  ReadFolder read;
  read.said = ReadModel(*config, ignored, read.findings, dialects);
  read.weights = *std::move(weights);
  for (const std::string& warning : read.weights->warnings()) read.findings.notes.push_back(warning);
  if (untie && read.findings.problems.empty()) Untie(read.said, read.findings);
  // Numbers that are problems would make others of every tensor.
  if (!read.findings.problems.empty()) return read;
  if (std::string why = SizesTooLarge(read.said); !why.empty()) {
    read.findings.Problem(kConfigFile, "", absl::StrCat("its sizes are beyond what a recipe may have: ", why));
    return read;
  }
  TensorShapes shapes;
  for (const auto& [name, tensor] : read.weights->all()) shapes[name] = tensor.shape;
  CompareTensors(read.said, shapes, read.findings);
  const TensorShapes expected =
      ExpectedTensors(read.said, [&](const std::string& name) { return read.weights->ShapeOf(name); });
  CheckTypes(*read.weights, dialects, expected, read.findings);
  if (read.said.encoder) CheckStoredNorm(*read.weights, dialects, read.findings);
  if (read.findings.problems.empty()) CheckCopies(*read.weights, dialects, expected, read.findings);
  return read;
}

absl::StatusOr<ImportedModel> ImportFolder(const std::string& folder, const std::set<std::string>& ignored,
                                           const std::string& named, const DialectSet& dialects, bool untie) {
  absl::StatusOr<ReadFolder> read = ReadHuggingFaceFolder(folder, ignored, dialects, untie);
  if (!read.ok()) return read.status();
  ImportedModel imported;
  imported.findings = std::move(read->findings);
  if (imported.findings.problems.empty()) CheckAsRecipe(read->said, imported.findings);
  if (imported.findings.problems.empty()) {
    const std::string kind = read->said.type.empty() ? "RADIO" : read->said.type;
    imported.text = YamlText(ModelsTree(read->said, folder, kind, named));
  }
  return imported;
}

}  // namespace planwright
