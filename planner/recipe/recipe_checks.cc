#include "planner/recipe/recipe_checks.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_join.h"
#include "planner/base/text/limits.h"
#include "planner/base/text/near_name.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/launch_environment.h"
#include "planner/plan/sbatch_options.h"
#include "planner/plan/slurm_options.h"
#include "planner/plan/statement/adapted_statement.h"
#include "planner/recipe/model_facts.h"

namespace planwright {
namespace {

// The first module that turns images into rows; null: none. One of which that is not known is none.
const ModuleRecipe* EncoderOf(const Recipe& recipe) {
  const auto found = std::find_if(recipe.modules.begin(), recipe.modules.end(), [](const ModuleRecipe& module) {
    return AllKnown(module.model.kind) && !CarriesLoss(module.model);
  });
  return found == recipe.modules.end() ? nullptr : &*found;
}

// Whether both are written in the same file.
bool InOneFile(const Location& a, const Location& b) { return a.file && b.file && *a.file == *b.file; }

// Files of data with a tokenizer can say which id marks images, so that it is not known yet whether one is missing.
void CheckImageToken(const Recipe& recipe, const RecipeFields& fields, Diagnostics& problems) {
  const DataRecipe& data = recipe.data;
  if (!AllKnown(data.kind, data.tokenizer, data.image_token)) return;
  const bool bytes = TextIsBytes(data);
  const ModuleRecipe* encoder = EncoderOf(recipe);
  if (!RowOf(*data.kind).tokenized && encoder != nullptr && !fields.Has("image_token")) {
    // The file of the encoder's model, which this recipe extends, may have one, as those of `plan import` do.
    const bool began = data.kind.where.known() && !InOneFile(data.kind.where, encoder->model.kind.where);
    problems.Error(DiagnosticKind::kMissingKey, data.where, "`data.image_token` is missing",
                   Cat("add `image_token`: the token id whose places take image rows",
                       began ? "; `data` of another `kind` keeps no key of an extended file, also not this one" : ""));
  }
  if (bytes && data.image_token && data.image_token->value != kBytesImageToken) {
    problems.Error(
        DiagnosticKind::kConflictingKeys, data.image_token->where,
        Cat("`data.image_token` is ", data.image_token->value, ", but tokenizer bytes always uses ", kBytesImageToken),
        "remove `image_token`");
  }
}

void CheckPatches(const DataRecipe& data, Diagnostics& problems) {
  if (!AllKnown(data.min_patches, data.max_patches) || data.min_patches.value <= data.max_patches.value) return;
  const Location& where = data.min_patches.where.known() ? data.min_patches.where : data.max_patches.where;
  problems.Error(DiagnosticKind::kConflictingKeys, where,
                 Cat("`min_patches` ", data.min_patches.value, " is above `max_patches` ", data.max_patches.value),
                 "lower min_patches, or raise max_patches");
}

void LintFrozenCrop(const ModuleRecipe& module, Diagnostics& problems) {
  if (!AllKnown(module.train_backbone, module.model.kind) || module.train_backbone.value != "frozen") return;
  const LocatedNumbers& numbers = module.model.numbers;
  const auto crop = numbers.find("crop");
  if (crop == numbers.end() || !AllKnown(crop->second) || *crop->second != Attribute(int64_t{1})) return;
  const Location& where = crop->second.where.known() ? crop->second.where : module.train_backbone.where;
  problems
      .Warning(DiagnosticKind::kFrozenCrop, where,
               Cat("`positions: crop` has no effect: encoder ", module.name.value,
                   " is frozen, and a frozen encoder resizes its position table"),
               "use positions: interpolate, or train the backbone of the encoder")
      .notes.push_back({module.train_backbone.where, "the encoder is frozen here"});
}

void CheckProjection(const ModuleRecipe& module, Diagnostics& problems) {
  if (!AllKnown(module.model.kind) || !CarriesLoss(module.model) || !module.train_projection.where.known()) return;
  problems.Error(DiagnosticKind::kConflictingKeys, module.train_projection.where,
                 Cat("`train.projection` has no effect on module ", module.name.value, ": a model of kind ",
                     *module.model.kind, " has no projector"),
                 "remove it; train.backbone trains or freezes a language model");
}

void CheckStageKeys(const ModuleRecipe& module, Diagnostics& problems) {
  const bool first = module.first_stage_layers.has_value();
  if (!AllKnown(module.stage_layers, module.first_stage_layers, module.last_stage_layers)) return;
  if (!module.stage_layers || (!first && !module.last_stage_layers)) return;
  problems
      .Error(DiagnosticKind::kConflictingKeys, (first ? module.first_stage_layers : module.last_stage_layers)->where,
             Cat("`", first ? "first" : "last",
                 "_stage_layers` conflicts with `stage_layers`, which already gives the layers of every stage"),
             "remove one of the two")
      .notes.push_back({module.stage_layers->where, "stage_layers is here"});
}

bool IsWordOfEncoders(const std::string& word) {
  const std::vector<const ModelStatement*> kinds = LanguageKindsFirst();
  return std::any_of(kinds.begin(), kinds.end(), [&](const ModelStatement* kind) {
    return !kind->carries_loss && kind->FindLayer(word) != nullptr;
  });
}

// The reason why a word of `recompute` has no effect on a module; empty if it has one.
std::string WhyNothingToRecompute(const ModuleRecipe& module, const std::string& word) {
  if (!AllKnown(module.model.kind, module.train_backbone, module.model.pattern)) return "";
  const ModelStatement& statement = StatementOfModel(module.model);
  const StatedLayer* layer = statement.FindLayer(word);
  const bool of_layers = word != "full" && word != kElementwise;
  if (of_layers && layer == nullptr) {
    if (!statement.carries_loss) {
      std::vector<std::string> words;
      for (const StatedLayer& its : statement.layer_kinds) words.push_back(its.word);
      return Cat("it is an encoder, and its layer kind is ", absl::StrJoin(words, " or "));
    }
    return IsWordOfEncoders(word) ? "it is not an encoder"
                                  : Cat("models of kind ", statement.kind, " have no such layers");
  }
  if (!statement.carries_loss && module.train_backbone.value == "frozen" && !module.adapter)
    return "its backbone is frozen and has no backward";
  if (!statement.carries_loss) return "";
  if (!of_layers || module.model.pattern->find(layer->letter) != std::string::npos) return "";
  return Cat("its pattern has no ", std::string(1, layer->letter));
}

bool HasFull(const ModuleRecipe& module) {
  return std::any_of(module.recompute.begin(), module.recompute.end(),
                     [](const Located<std::string>& word) { return AllKnown(word) && word.value == "full"; });
}

void CheckRecompute(const ModuleRecipe& module, Diagnostics& problems) {
  for (const Located<std::string>& word : module.recompute) {
    if (!AllKnown(word)) continue;
    if (word.value == "none") {
      if (module.recompute.size() == 1) continue;
      problems.Error(DiagnosticKind::kConflictingKeys, word.where,
                     Cat("`recompute` of module ", module.name.value, " lists none together with other words"),
                     "remove none, or all other words");
    } else if (word.value == kElementwise && HasFull(module)) {
      problems.Error(
          DiagnosticKind::kConflictingKeys, word.where,
          Cat("`recompute` of module ", module.name.value, " lists elementwise beside full, which runs it too"),
          "remove elementwise, or full");
    } else if (const std::string why = WhyNothingToRecompute(module, word.value); !why.empty()) {
      problems.Error(DiagnosticKind::kNothingToRecompute, word.where,
                     Cat("module ", module.name.value, " cannot recompute ", word.value, ": ", why),
                     Cat("remove ", word.value));
    } else if (word.value != "full" && HasFull(module)) {
      problems.Error(DiagnosticKind::kConflictingKeys, word.where,
                     Cat("`recompute` of module ", module.name.value, " lists ", word.value,
                         " beside full, which runs all layers again"),
                     Cat("remove ", word.value, ", or full"));
    }
  }
}

// With one expert for a token, published models differ in what its weight is, so that none of them is the default.
void CheckWeightOfOneExpert(const ModuleRecipe& module, Diagnostics& problems) {
  if (!AllKnown(module.model.kind)) return;
  const LocatedNumbers& numbers = module.model.numbers;
  const auto top_k = numbers.find("moe.top_k");
  if (top_k == numbers.end() || !AllKnown(top_k->second) || *top_k->second != Attribute(int64_t{1})) return;
  if (numbers.contains("moe.normalized")) return;
  const std::string path = Cat("models.", *module.model.name, ".moe.normalized");
  problems
      .Error(DiagnosticKind::kMissingKey, top_k->second.where, Cat("`", path, "` is missing, and `top_k` is 1"),
             "add normalized: false (a token's weight is its score times `scale`: Megatron-LM, and runs of earlier "
             "versions), or normalized: true (it is `scale`, and the score is divided by itself: norm_topk_prob of "
             "transformers)")
      .edits = {{path, "false"}};
}

// A number that has an effect beside some words of a choice alone.
void CheckEffects(const ModelRecipe& model, Diagnostics& problems) {
  if (!AllKnown(model.kind)) return;
  for (const StatedKey& key : StatementOfModel(model).keys) {
    const auto number = model.numbers.find(key.name);
    if (key.with.empty() || number == model.numbers.end() || !number->second.where.known()) continue;
    const StatedKey& choice = ChoiceOf(model, key.with);
    const auto chosen = model.numbers.find(choice.sets);
    if (chosen == model.numbers.end() || !AllKnown(chosen->second)) continue;
    const auto is_chosen = [&](const std::string& word) {
      return *chosen->second == Attribute(NumberOfWord(choice, word));
    };
    if (std::any_of(key.with_words.begin(), key.with_words.end(), is_chosen)) continue;
    const auto word =
        std::find_if(choice.words.begin(), choice.words.end(), [&](const auto& one) { return is_chosen(one.first); });
    const std::string model_path = Cat("models.", *model.name, ".");
    Diagnostic& problem =
        problems.Error(DiagnosticKind::kConflictingKeys, number->second.where,
                       Cat("`", model_path, key.name, "` has no effect: `", key.with, "` is ",
                           word == choice.words.end() ? std::string("another word") : word->first),
                       Cat("remove it, or use ", key.with, ": ", absl::StrJoin(key.with_words, " or ")));
    if (chosen->second.where.known()) problem.notes.push_back({chosen->second.where, Cat(key.with, " is here")});
  }
}

void CheckSomethingTrains(const Recipe& recipe, Diagnostics& problems) {
  const Located<std::string>* frozen = nullptr;
  for (const ModuleRecipe& module : recipe.modules) {
    if (!AllKnown(module.model.kind, module.train_backbone, module.train_projection) || module.adapter) return;
    const bool has_projector = !CarriesLoss(module.model);
    if (module.train_backbone.value == "trained" || (has_projector && module.train_projection.value == "trained"))
      return;
    frozen = &module.train_backbone;
  }
  if (frozen == nullptr) return;  // no modules: reported as a missing key
  problems.Error(DiagnosticKind::kNothingTrains, frozen->where,
                 "every part of every module is frozen: no parameter would be trained",
                 "train at least one part, such as an encoder's projector: "
                 "train: {backbone: frozen, projection: trained}, or give a module an adapter");
}

// An adapter stands on what does not learn.
void CheckAdaptedIsFrozen(const ModuleRecipe& module, const Location& where, Diagnostics& problems) {
  if (!AllKnown(module.train_backbone) || module.train_backbone.value == "frozen") return;
  Diagnostic& problem =
      problems.Error(DiagnosticKind::kConflictingKeys, where,
                     Cat("module ", module.name.value, " has an adapter, and its backbone is trained"),
                     "add train: {backbone: frozen}, or remove the adapter, since all of the backbone is trained then");
  problem.edits = {{Cat("modules.", *module.name, ".train.backbone"), "frozen"}};
  problem.restates = !module.train_backbone.where.known();
  if (module.train_backbone.where.known()) problem.notes.push_back({module.train_backbone.where, "it is trained here"});
}

// The letters of a model's layers, each once.
std::string LettersOf(const ModelRecipe& model) {
  std::string letters;
  for (const StatedLayer& layer : StatementOfModel(model).layer_kinds) {
    if (model.pattern->find(layer.letter) != std::string::npos) letters.push_back(layer.letter);
  }
  return letters;
}

// The last words of each product, as few as name nothing that can have no adapter.
std::vector<std::string> TargetsOf(const ModelStatement& statement, std::string_view letters) {
  std::vector<std::string> targets;
  for (const AdapterProduct& product : AdapterProducts(statement, letters)) {
    std::string target = product.name.substr(product.name.rfind('.') + 1);
    while (!AdapterTargetProblem(statement, letters, target).empty() && target.size() < product.name.size()) {
      const size_t dot = product.name.size() - target.size() - 1;
      target = product.name.substr(dot == 0 ? 0 : product.name.rfind('.', dot - 1) + 1);
    }
    if (std::find(targets.begin(), targets.end(), target) == targets.end()) targets.push_back(std::move(target));
  }
  return targets;
}

// What to write in the place of a target on which no adapter can stand.
std::string HelpOfTarget(const std::string& target, const std::vector<std::string>& names) {
  std::vector<std::string> longer;  // with more words in front
  for (const std::string& name : names) {
    if (name != target && IsTarget(target, name)) longer.push_back(Cat("`", name, "`"));
  }
  if (!longer.empty()) return Cat("did you mean ", absl::StrJoin(longer, " or "), "?");
  const std::string near = NearName(target, names).value_or("");
  return !near.empty() && near != target ? Cat("did you mean `", near, "`?")
                                         : Cat("products of its layers are ", absl::StrJoin(names, ", "));
}

void CheckAdapter(const ModuleRecipe& module, Diagnostics& problems) {
  if (!module.adapter) return;
  const AdapterRecipe& adapter = *module.adapter;
  const Location& where = adapter.rank.where;
  if (AllKnown(adapter.rank)) CheckAdaptedIsFrozen(module, where, problems);
  if (!AllKnown(module.model.kind, module.model.pattern)) return;
  const ModelStatement& statement = StatementOfModel(module.model);
  const std::string letters = LettersOf(module.model);
  const std::vector<std::string> names = TargetsOf(statement, letters);
  std::map<std::string_view, Location> first;
  for (const Located<std::string>& target : adapter.targets) {
    if (!AllKnown(target)) continue;
    const auto [other, added] = first.try_emplace(*target, target.where);
    if (!added) {
      problems
          .Error(DiagnosticKind::kConflictingKeys, target.where, Cat("`targets` has ", Quoted(*target), " twice"),
                 "remove one of the two")
          .notes.push_back({other->second, "the other one is here"});
      continue;
    }
    const std::string problem = AdapterTargetProblem(statement, letters, *target);
    if (problem.empty()) continue;
    problems.Error(DiagnosticKind::kUnknownReference, target.where,
                   Cat("target ", Quoted(*target), " of module ", module.name.value, ": ", problem),
                   HelpOfTarget(*target, names));
  }
}

void CheckModuleCount(const Recipe& recipe, Diagnostics& problems) {
  if (recipe.modules.size() <= kMostModules) return;
  problems.Error(DiagnosticKind::kTooLarge, recipe.modules[kMostModules].name.where,
                 Cat("the recipe has ", recipe.modules.size(), " modules, but the limit is ", kMostModules),
                 "use fewer modules");
}

}  // namespace

void CheckDataSettings(const Recipe& recipe, const RecipeFields& fields, Diagnostics& problems) {
  const DataRecipe& data = recipe.data;
  if (!data.where.known() || !fields.given() || !AllKnown(data.kind)) return;
  CheckImageToken(recipe, fields, problems);
  if (RowOf(*data.kind).resized) CheckPatches(data, problems);
}

void CheckCheckpointSettings(const CheckpointRecipe& checkpoint, Diagnostics& problems) {
  const auto conflict = [&](const Located<int64_t>& key, const std::string& what, const char* help) {
    problems.Error(DiagnosticKind::kConflictingKeys, key.where, what, help);
  };
  const auto& [every, last, keep, best] = checkpoint;  // best: CheckEvaluationSettings
  if (!AllKnown(every, last, keep)) return;
  if (!every && (last || keep)) {
    conflict(last ? *last : *keep, "`checkpoint` says what stays, but not when one is written",
             "add every_steps: steps between checkpoints");
  } else if (keep && !last) {
    conflict(*keep, "`keep_every_steps` without `keep_last` has no effect: all checkpoints stay",
             "add keep_last: how many of the newest stay besides, or remove keep_every_steps");
  } else if (keep && **keep % **every != 0) {
    conflict(*keep, Cat("`keep_every_steps` ", **keep, " is no multiple of `every_steps` ", **every),
             "use a multiple: only steps that every_steps divides have a checkpoint");
  }
}

namespace {

void CheckSbatchOptions(const Recipe& recipe, Diagnostics& problems) {
  const bool on_gpus = AllKnown(recipe.cluster.gpu) && *recipe.cluster.gpu != "none";
  std::map<std::string_view, Location> first;
  for (const Located<std::string>& option : recipe.launch.slurm.options) {
    if (!AllKnown(option)) continue;
    const SbatchProblem problem = SbatchOptionProblem(*option, on_gpus);
    if (!problem.what.empty()) {
      problems.Error(problem.taken ? DiagnosticKind::kConflictingKeys : DiagnosticKind::kBadName, option.where,
                     Cat("`launch.slurm.options`: ", problem.what), problem.help);
      continue;
    }
    const auto [other, added] = first.try_emplace(SbatchOptionName(*option), option.where);
    if (added) continue;
    problems
        .Error(DiagnosticKind::kConflictingKeys, option.where,
               Cat("`launch.slurm.options` has ", other->first, " twice"), "remove one of the two")
        .notes.push_back({other->second, "the other one is here"});
  }
}

void CheckEnvironment(const LaunchRecipe& launch, Diagnostics& problems) {
  const auto tell = [&](const char* key, const EnvironmentProblem& problem, const Location& where) {
    problems.Error(problem.taken ? DiagnosticKind::kConflictingKeys : DiagnosticKind::kBadName, where,
                   Cat("`launch.", key, "`: ", problem.what), problem.help);
  };
  std::map<std::string_view, Location> first;
  for (const Located<std::string>& entry : launch.env) {
    if (!AllKnown(entry)) continue;
    if (const EnvironmentProblem problem = EnvironmentEntryProblem(*entry); !problem.what.empty()) {
      tell("env", problem, entry.where);
      continue;
    }
    const auto [other, added] = first.try_emplace(VariableOf(*entry), entry.where);
    if (added) continue;
    problems
        .Error(DiagnosticKind::kConflictingKeys, entry.where, Cat("`launch.env` has ", other->first, " twice"),
               "remove one of the two")
        .notes.push_back({other->second, "the other one is here"});
  }
  for (const Located<std::string>& line : launch.setup) {
    if (!AllKnown(line)) continue;
    if (const EnvironmentProblem problem = SetupLineProblem(*line); !problem.what.empty())
      tell("setup", problem, line.where);
  }
}

void CheckGres(const Recipe& recipe, Diagnostics& problems) {
  const std::optional<Located<std::string>>& gres = recipe.launch.slurm.gres;
  if (!gres || !AllKnown(*gres, recipe.cluster.gpu, recipe.cluster.gpus_per_node)) return;
  const int64_t gpus = *recipe.cluster.gpu == "none" ? 0 : *recipe.cluster.gpus_per_node;
  if (!SlurmOptionProblem("gres", **gres).empty()) return;  // which is told
  const GresProblem problem = GresProblemOf(**gres, gpus);
  if (problem.what.empty()) return;
  Diagnostic& told = problems.Error(DiagnosticKind::kConflictingKeys, gres->where, problem.what, problem.help);
  if (!problem.value.empty()) told.edits = {{"launch.slurm.gres", problem.value}};
}

}  // namespace

void CheckLaunchSettings(const Recipe& recipe, Diagnostics& problems) {
  const LaunchRecipe& launch = recipe.launch;
  const auto check = [&](std::string_view option, const Located<std::string>& value) {
    const std::string problem = SlurmOptionProblem(option, *value);
    if (problem.empty()) return;
    problems.Error(option == "time" ? DiagnosticKind::kWrongType : DiagnosticKind::kBadName, value.where,
                   Cat("`launch.slurm.", option, "` is `", *value, "`; ", problem),
                   option == "time"     ? "write it in quotes: time: \"4:00:00\""
                   : option == "mounts" ? "write it as /lustre/data:/data:ro"
                   : option == "gres"   ? "write it as gpu:h100:8"
                   : option == "container"
                       ? "write it as /lustre/images/train.sqsh or registry.example.com#team/train:2.1"
                       : "use the name as Slurm shows it");
  };
  const SlurmRecipe& slurm = launch.slurm;
  for (const auto& [option, value] :
       {std::pair("partition", &slurm.partition), std::pair("account", &slurm.account), std::pair("qos", &slurm.qos),
        std::pair("constraint", &slurm.constraint), std::pair("reservation", &slurm.reservation),
        std::pair("time", &slurm.time), std::pair("gres", &slurm.gres), std::pair("container", &slurm.container)}) {
    if (*value && AllKnown(*value)) check(option, **value);
  }
  for (const Located<std::string>& mount : slurm.mounts) {
    if (AllKnown(mount)) check("mounts", mount);
  }
  if (!slurm.mounts.empty() && !slurm.container) {
    problems.Error(DiagnosticKind::kConflictingKeys, slurm.mounts[0].where,
                   "`launch.slurm.mounts` has no effect without `launch.slurm.container`",
                   "add container: the image that sees them, or remove mounts");
  }
  CheckSbatchOptions(recipe, problems);
  CheckGres(recipe, problems);
  CheckEnvironment(launch, problems);
  if (!launch.fallbacks.empty() && AllKnown(launch.restarts) && *launch.restarts == 0) {
    problems.Error(DiagnosticKind::kConflictingKeys, launch.fallbacks[0].where,
                   "`launch.fallbacks` has no effect without `launch.restarts`: only a run that is started again takes "
                   "another layout",
                   "add restarts: how often that may be, or remove fallbacks");
  }
}

void CheckModuleSettings(const Recipe& recipe, Diagnostics& problems) {
  CheckModuleCount(recipe, problems);
  CheckSomethingTrains(recipe, problems);
  std::set<std::string_view> models;
  for (const ModuleRecipe& module : recipe.modules) {
    CheckAdapter(module, problems);
    if (!models.insert(*module.model.name).second) continue;
    CheckWeightOfOneExpert(module, problems);
    CheckEffects(module.model, problems);
    CheckProjection(module, problems);
    CheckStageKeys(module, problems);
    CheckRecompute(module, problems);
    LintFrozenCrop(module, problems);
  }
}

}  // namespace planwright
