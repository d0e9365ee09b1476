#include "planner/recipe/lint_values.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/remote_names.h"
#include "planner/plan/statement/adapted_statement.h"
#include "planner/recipe/model_facts.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/recipe_tree.h"
#include "planner/recipe/scalar.h"
#include "planner/recipe/tree_edits.h"

namespace planwright {
namespace {

// What published trainings use, with room to both sides. `scale`: a value outside is probably meant as its leading
// digits times this: 3 as 3.0e-4.
struct UsualRange {
  std::string_view path;
  double low, high;
  const char* scale;
};
constexpr UsualRange kUsual[] = {
    {"budget.learning_rate.peak", 1e-8, 0.1, "e-4"},
    {"budget.weight_decay.start", 0, 1, "e-2"},
    {"budget.weight_decay.end", 0, 1, "e-2"},
    {"optimizer.eps", 1e-20, 1e-3, "e-8"},
    {"optimizer.clip_grad_norm", 1e-3, 1e6, "e0"},
    {"models.<name>.init_std", 1e-5, 0.5, "e-2"},
    {"models.<name>.norm_eps", 1e-15, 1e-2, "e-5"},
    {"models.<name>.projector.norm_eps", 1e-15, 1e-2, "e-5"},
    {"models.<name>.moe.aux_loss", 0, 1, "e-2"},
    {"models.<name>.moe.bias_rate", 0, 0.5, "e-3"},
    {"optimizer.parts[].learning_rate", 1e-8, 0.1, "e-4"},
    {"optimizer.parts[].weight_decay", 0, 1, "e-2"},
};

// "3.0e-4" of 3
std::string Scaled(double value, const char* scale) {
  if (!(value > 0)) return "";
  double digits = value / std::pow(10.0, std::floor(std::log10(value)));
  return Cat(absl::StrFormat(std::round(digits * 10) == std::round(digits) * 10 ? "%.1f" : "%.3g", digits), scale);
}

class ValueLints {
 public:
  ValueLints(const Recipe& recipe, const YamlNode& tree, Diagnostics& problems)
      : recipe_(recipe), tree_(tree), problems_(problems) {}

  void LintNumbers(const YamlNode& map, const std::string& table_path, const std::string& path) {
    const std::string kind = KindOf(map, table_path);
    for (const YamlEntry& entry : map.entries) {
      const KeySpec* spec = FindKey(table_path, entry.key, kind);
      if (spec == nullptr) continue;
      const std::string shown = InsidePath(path, entry.key);
      if (spec->type == KeyType::kMap) LintNumbers(entry.value, InnerPath(*spec), shown);
      if (spec->type == KeyType::kNamedMaps) {
        for (const YamlEntry& named : entry.value.entries)
          LintNumbers(named.value, InnerPath(*spec), Cat(shown, ".", named.key));
      }
      if (spec->type == KeyType::kListOfMaps) {
        for (size_t i = 0; i < entry.value.items.size(); ++i)
          LintNumbers(entry.value.items[i], InnerPath(*spec), Cat(shown, "[", i, "]"));
      }
      if (spec->type == KeyType::kNumber) LintNumber(*spec, entry.value, shown);
    }
  }

  void LintBetas() {
    const YamlNode* betas = NodeAt(tree_, "optimizer.betas");
    const double first = recipe_.optimizer.beta1, second = recipe_.optimizer.beta2;
    if (betas == nullptr || betas->items.size() != 2) return;
    const std::string a = FlowText(betas->items[0]), b = FlowText(betas->items[1]);
    if (first > second) {
      Warn(betas->where, Cat("`optimizer.betas` are [", a, ", ", b, "]: the first is above the second"),
           Cat("did you mean `betas: [", b, ", ", a, "]`?"), {{"optimizer.betas", Cat("[", b, ", ", a, "]")}});
    } else if (second < 0.5) {
      Warn(betas->where, Cat("`optimizer.betas` are [", a, ", ", b, "]: trainings use 0.95 to 0.999 for the second"),
           "did you mean `betas: [0.9, 0.95]`?", {{"optimizer.betas", "[0.9, 0.95]"}});
    }
  }

  // Who counts a warmup in steps writes a number that is a few steps here.
  void LintWarmup() {
    const auto& warmup = recipe_.budget.learning_rate.warmup_samples;
    const Located<int64_t>&global = recipe_.batch.global_samples, &train = recipe_.budget.train_samples;
    if (!warmup || !AllKnown(warmup, global, train) || *global < 2 || !warmup->where.known()) return;
    const int64_t steps = *train / *global, meant = **warmup * std::min<int64_t>(*global, 1 << 20);
    if (**warmup == 0 || **warmup >= 10 * *global || steps < 500 || meant > *train / 2) return;
    Warn(warmup->where,
         absl::StrFormat("`warmup_samples` is %d, which is %.3g %s of global_samples %d, of %d steps in all: it looks "
                         "like a number of steps",
                         **warmup, static_cast<double>(**warmup) / static_cast<double>(*global),
                         **warmup == *global ? "step" : "steps", *global, steps),
         Cat("the warmup is counted in samples: write warmup_samples: ", meant, " for ", **warmup, " steps"),
         {{"budget.learning_rate.warmup_samples", Cat(meant)}});
  }

  // `nvidia/Nano-30B` is a name of the Hugging Face hub more often than a folder.
  void LintHubNames() {
    if (!recipe_.initialize) return;
    if (recipe_.initialize->from) LintHubName("initialize.from", *recipe_.initialize->from);
    const std::vector<WeightSourceRecipe>& sources = recipe_.initialize->sources;
    for (size_t i = 0; i < sources.size(); ++i) LintHubName(Cat("initialize.sources[", i, "].from"), sources[i].from);
  }

  void LintImageKeys() {
    if (recipe_.damaged.contains("modules") || recipe_.modules.empty() || !AllKnown(recipe_.data.kind)) return;
    for (const ModuleRecipe& module : recipe_.modules) {
      if (!AllKnown(module.model.kind)) return;
      if (!CarriesLoss(module.model)) return LintSquares();
    }
    const bool drawn = RowOf(*recipe_.data.kind).drawn;
    Unused(drawn ? std::vector<std::string>{"image_grids", "min_images", "max_images"}
                 : std::vector<std::string>{"min_patches", "max_patches", "resize", "grid", "orientation"},
           "no module is an encoder", "name an encoder in `modules`");
  }

  void LintSquares() {
    if (!AllKnown(recipe_.data.grid) || *recipe_.data.grid != "square") return;
    Unused({"min_patches", "max_patches"}, "with grid: square all images have as many patches",
           "count them in another way, with another grid");
  }

  void LintSourceKeys() {
    if (recipe_.data.sources.empty()) return;
    for (const SourceRecipe& source : recipe_.data.sources) {
      if (!AllKnown(source.kind) || RowOf(*source.kind).damageable) return;
    }
    Unused({"damaged", "most_damaged"}, "all sources are of kind tokens, which has no documents to be damaged",
           "add a source of kind webdataset");
  }

  // The index refuses a file that is named twice. Which files patterns have in common is not compared: the disk need
  // not be here.
  void LintShards() {
    for (size_t i = 0; i < recipe_.data.sources.size(); ++i) {
      const std::vector<Located<std::string>>& shards = recipe_.data.sources[i].shards;
      std::map<std::string_view, Location> seen;
      for (size_t j = 0; j < shards.size(); ++j) {
        if (!AllKnown(shards[j]) || seen.try_emplace(*shards[j], shards[j].where).second) continue;
        Warn(
            shards[j].where,
            Cat("`data.sources[", i, "].shards` has ", Quoted(*shards[j]), " twice, and the index takes no file twice"),
            "remove one of the two", {{Cat("data.sources[", i, "].shards[", j, "]"), ""}});
      }
    }
  }

  // Fused kernels of Mamba read this weight themselves, and go past what is beside it: PEFT refuses such a folder.
  void LintAdapters() {
    for (const ModuleRecipe& module : recipe_.modules) {
      if (!module.adapter || !AllKnown(module.model.kind, module.model.pattern)) continue;
      const ModelStatement& statement = StatementOfModel(module.model);
      for (const AdapterProduct& product : AdapterProducts(statement, *module.model.pattern)) {
        const bool refused = product.name == "mixer.out_proj" && statement.FindLayer(product.layer)->word == "mamba";
        for (const Located<std::string>& target : module.adapter->targets) {
          if (!refused || !AllKnown(target) || !IsOwn(target.where) || !IsTarget(*target, product.name)) continue;
          Warn(target.where, Cat("PEFT opens no adapter on ", Quoted(*target), " of Mamba"),
               "such a run leaves merged, by `plan export --like SOURCE`; for a folder of PEFT leave this target out",
               {});
        }
      }
    }
  }

  void LintModels() {
    const YamlNode* models = NodeAt(tree_, "models");
    if (models == nullptr || recipe_.damaged.contains("modules") || LanguageOf(recipe_) == nullptr) return;
    std::vector<std::string> used;
    for (const ModuleRecipe& module : recipe_.modules) {
      if (!AllKnown(module.model_reference, module.model.kind)) return;
      used.push_back(*module.model.name);
    }
    for (const YamlEntry& model : models->entries) {
      if (!IsOwn(model.key_where) || std::find(used.begin(), used.end(), model.key) != used.end()) continue;
      const std::string path = Cat("models.", model.key);
      Warn(model.key_where, Cat("no module uses model ", model.key),
           Cat("remove `", path, "`, or name it in a module: model: ", model.key), {{path, ""}},
           DiagnosticKind::kUnusedModel);
    }
  }

 private:
  void Warn(const Location& where, std::string message, std::string help, std::vector<Edit> edits,
            DiagnosticKind kind = DiagnosticKind::kImplausibleValue) {
    problems_.Warning(kind, where, std::move(message), std::move(help)).edits = std::move(edits);
  }

  void LintHubName(const std::string& path, const Located<std::string>& from) {
    if (!AllKnown(from) || !IsOwn(from.where) || !LooksLikeHubName(*from)) return;
    std::error_code error;
    if (std::filesystem::exists(ResolvePath(*from, from.where), error)) return;
    Warn(
        from.where,
        Cat("`", path, "` is a folder or a file, and ", Quoted(*from), " looks like a name of the Hugging Face hub"),
        Cat("a run downloads nothing; ", HowToFetch("from", *from), "; or write from: ./", *from, " if it is a folder"),
        {{path, Cat("./", *from)}});
  }

  // What a recipe takes over from a file that it extends need not fit it in all.
  bool IsOwn(const Location& where) const {
    return where.file && (*where.file == kCommandLine || (tree_.where.file && *where.file == *tree_.where.file));
  }

  void LintNumber(const KeySpec& spec, const YamlNode& value, const std::string& path) {
    double number = 0;
    if (!value.is_scalar() || !ReadNumber(value, &number, nullptr) || !spec.range.Holds(number)) return;
    for (const UsualRange& usual : kUsual) {
      if (usual.path != spec.path || number == 0 || (number >= usual.low && number <= usual.high)) continue;
      const std::string meant = Scaled(number, usual.scale);
      Warn(value.where,
           Cat("`", path, "` is ", value.text, ", far ", number < usual.low ? "below" : "above",
               " what trainings use: they stay ", number < usual.low ? "above " : "below ",
               number < usual.low ? usual.low : usual.high),
           meant.empty() ? "" : Cat("did you mean `", WordOf(spec), ": ", meant, "`?"),
           meant.empty() ? std::vector<Edit>() : std::vector<Edit>{{path, meant}});
    }
  }

  // Keys of `data` that change nothing, told together.
  void Unused(const std::vector<std::string>& keys, const char* why, const char* otherwise) {
    const YamlNode* data = NodeAt(tree_, "data");
    std::vector<std::string> given;
    std::vector<Edit> edits;
    Location first;
    for (const std::string& key : keys) {
      const YamlEntry* entry = data != nullptr && data->is_map() ? data->Find(key) : nullptr;
      // That there are no images may be said in any recipe.
      if (entry == nullptr || !IsOwn(entry->key_where) || (entry->key == "max_images" && entry->value.text == "0"))
        continue;
      if (given.empty()) first = entry->key_where;
      given.push_back(Cat("`data.", key, "`"));
      edits.push_back({Cat("data.", key), ""});
    }
    if (given.empty()) return;
    Warn(first, Cat(absl::StrJoin(given, ", "), given.size() > 1 ? " have" : " has", " no effect: ", why),
         Cat("remove ", given.size() > 1 ? "them" : "it", ", or ", otherwise), std::move(edits),
         DiagnosticKind::kKeyWithoutEffect);
  }

  const Recipe& recipe_;
  const YamlNode& tree_;
  Diagnostics& problems_;
};

}  // namespace

void LintValues(const Recipe& recipe, const YamlNode& tree, Diagnostics& problems) {
  ValueLints lints(recipe, tree, problems);
  lints.LintNumbers(tree, "", "");
  lints.LintBetas();
  lints.LintWarmup();
  lints.LintHubNames();
  lints.LintImageKeys();
  lints.LintSourceKeys();
  lints.LintShards();
  lints.LintAdapters();
  lints.LintModels();
}

}  // namespace planwright
