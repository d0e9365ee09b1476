#include "planner/compile/batches/plan_sources.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "planner/base/text/utf8.h"
#include "planner/compile/batches/plan_data.h"
#include "planner/compile/batches/source_files.h"
#include "planner/compile/batches/source_weights.h"
#include "planner/data/samples/document_parts.h"
#include "planner/plan/source_rules.h"
#include "planner/recipe/model_facts.h"

namespace planwright {
namespace {

using enum DiagnosticKind;

// `source_2` for the third source of a list, unless it has a name of its own.
std::string SourceName(const SourceRecipe& source, size_t position) {
  return source.name ? **source.name : absl::StrCat("source_", position);
}

void CheckNames(const std::vector<SourceRecipe>& sources, Diagnostics& diagnostics) {
  std::map<std::string, Location> seen;
  for (size_t i = 0; i < sources.size(); ++i) {
    const std::string name = SourceName(sources[i], i);
    const Location& where = sources[i].name ? sources[i].name->where : sources[i].where;
    if (!AllKnown(sources[i].name)) continue;
    if (!IsSourceName(name)) {
      diagnostics.Error(kBadName, where, absl::StrCat(Quoted(name), " is not a valid name of a source"),
                        "use at most 64 letters, digits, `_`, `-` and `.`, and do not start with `.`");
    }
    const auto [first, added] = seen.try_emplace(name, where);
    if (added) continue;
    diagnostics
        .Error(kConflictingKeys, where, absl::StrCat("two sources have the name ", name), "rename one of the two")
        .notes.push_back({first->second, "the other one is here"});
  }
}

void CheckKinds(const DataRecipe& data, Diagnostics& diagnostics) {
  for (const SourceRecipe& source : data.sources) {
    if (!AllKnown(source.kind, data.tokenizer) || !RowOf(*source.kind).ids_alone || *data.tokenizer == "ids") continue;
    diagnostics
        .Error(kConflictingKeys, source.kind.where,
               absl::StrCat("the text of a source of kind ", std::string(SourceKindName(*source.kind)),
                            " is ids, but `data.tokenizer` is bytes"),
               "use tokenizer: ids")
        .notes.push_back({data.tokenizer.where.known() ? data.tokenizer.where : data.where, "the tokenizer is this"});
  }
}

void CheckIgnored(const DataRecipe& data, Diagnostics& diagnostics) {
  const bool ids = *data.tokenizer == "ids";
  for (const SourceRecipe& source : data.sources) {
    for (const Located<std::string>& written : source.ignore) {
      if (!AllKnown(written, data.tokenizer)) continue;
      if (written->starts_with('.') || written->find_first_of("*?[]/") != std::string::npos) {
        diagnostics.Error(kWrongType, written.where,
                          absl::StrCat("`ignore` lists extensions of members, found ", Quoted(*written)),
                          "write what follows the first dot of their names, without this dot: ignore: [json]");
      } else if (IsReadExtension(absl::AsciiStrToLower(*written), ids)) {
        diagnostics.Error(
            kConflictingKeys, written.where,
            absl::StrCat("`ignore` has ", *written, ", which documents are made of with tokenizer ", *data.tokenizer),
            "remove it from ignore, or name other shards");
      }
    }
  }
}

// Keys that would be read and then change nothing.
void CheckUnused(const DataRecipe& data, Diagnostics& diagnostics) {
  if (!AllKnown(data.tokenizer, data.packing, data.damaged)) return;
  const auto unused = [&](const Location& where, const std::string& what, const std::string& help) {
    diagnostics.Error(kConflictingKeys, where, what, help);
  };
  if (*data.tokenizer == "bytes") {
    const std::pair<const char*, const std::optional<Located<int64_t>>*> ids[] = {{"pad_token", &data.pad_token},
                                                                                  {"end_token", &data.end_token}};
    for (const auto& [key, value] : ids) {
      if (!*value) continue;
      unused((*value)->where, absl::StrCat("`data.", key, "` has no effect: tokenizer bytes has its own"),
             absl::StrCat("remove ", key, ", or use tokenizer: ids"));
    }
    const std::pair<const char*, const std::optional<Located<std::string>>*> digests[] = {
        {"tokenizer_digest", &data.tokenizer_digest}, {"template_digest", &data.template_digest}};
    for (const auto& [key, value] : digests) {
      if (!*value) continue;
      unused((*value)->where, absl::StrCat("`data.", key, "` has no effect with tokenizer bytes"),
             absl::StrCat("remove ", key, ", or use tokenizer: ids"));
    }
  }
  if (*data.packing == "none" && data.window.where.known()) {
    unused(data.window.where, "`data.window` has no effect with `packing: none`: no documents share a sample",
           "remove window, or use packing: first_fit");
  }
  if (*data.damaged == "error" && data.most_damaged.where.known()) {
    unused(data.most_damaged.where,
           "`data.most_damaged` has no effect with `damaged: error`: the first one is an error",
           "remove most_damaged, or use damaged: skip");
  }
}

std::string DigestOf(const std::optional<Located<std::string>>& written, const char* key, Diagnostics& diagnostics) {
  if (!written || !AllKnown(written)) return "";
  const std::string digest = absl::AsciiStrToLower(**written);
  if (!IsDigest(digest)) {
    diagnostics.Error(kWrongType, written->where,
                      absl::StrCat("`data.", key, "` must be 64 hex digits, found ", Quoted(**written)),
                      "write the SHA-256 that `sha256sum` shows");
  }
  return digest;
}

// A token id of the recipe, or of the shards (source_files.h).
struct TokenId {
  const char* key;
  int64_t id;
  Location where;
};

void CheckIds(const Recipe& recipe, const DataPlan& plan, Diagnostics& diagnostics) {
  const DataRecipe& data = recipe.data;
  std::vector<TokenId> ids;
  const auto add = [&](const char* key, const std::optional<Located<int64_t>>& id, bool needed) {
    if (!AllKnown(id)) return;
    if (id) return ids.push_back({key, **id, id->where});
    if (!needed || recipe.damaged.contains(kPreparedDamaged)) return;  // a prepared.json that may say it cannot be read
    diagnostics.Error(kMissingKey, data.where,
                      absl::StrCat("`data.", key, "` is missing: no prepared.json beside the shards says it"),
                      absl::StrCat("add `", key, "`: the id that the tokenizer has for it"));
  };
  add("image_token", data.image_token, !plan.encoders.empty());
  add("pad_token", data.pad_token, true);
  add("end_token", data.end_token, true);
  const ModuleRecipe* language = LanguageOf(recipe);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (language != nullptr && AllKnown(SizeOf(language->model.numbers, "vocabulary")) &&
        ids[i].id >= plan.vocabulary) {
      diagnostics
          .Error(kTokenOutsideVocabulary, ids[i].where,
                 absl::StrCat("`data.", ids[i].key, "` ", ids[i].id, " is outside the vocabulary of ", plan.vocabulary),
                 absl::StrCat("use an id from 0 to ", plan.vocabulary - 1))
          .notes.push_back({SizeOf(language->model.numbers, "vocabulary").where, "the vocabulary is given here"});
    }
    for (size_t k = 0; k < i; ++k) {
      // Padding is known by its place, so one id may pad and end, as with many tokenizers.
      if (ids[i].id != ids[k].id || std::string_view(ids[k].key) == "pad_token") continue;
      diagnostics
          .Error(kRepeatedTokenId, ids[i].where,
                 absl::StrCat("`data.", ids[i].key, "` and `data.", ids[k].key, "` are both ", ids[i].id),
                 "give each its own id")
          .notes.push_back({ids[k].where, absl::StrCat(ids[k].key, " is given here")});
    }
  }
  for (const BridgeRecipe& bridge : recipe.bridges) {
    if (!bridge.token || !AllKnown(bridge.token)) continue;
    for (const TokenId& other : ids) {
      if (std::string(other.key) == "image_token" || other.id != **bridge.token) continue;
      diagnostics
          .Error(kRepeatedTokenId, bridge.token->where,
                 absl::StrCat("the bridge's token and `data.", other.key, "` are both ", other.id),
                 "give each its own id")
          .notes.push_back({other.where, absl::StrCat(other.key, " is given here")});
    }
  }
  // The marks in the ids of the shards are those of the first encoder: the reader writes the others behind them.
  if (recipe.bridges.size() > 1 && recipe.bridges[0].token && AllKnown(recipe.bridges[0].token) && data.image_token &&
      **recipe.bridges[0].token != **data.image_token) {
    diagnostics
        .Error(kBridgeTokenNotInData, recipe.bridges[0].token->where,
               absl::StrCat("the ids of the sources mark images as ", **data.image_token,
                            ", so the first bridge must have that token, found ", **recipe.bridges[0].token),
               absl::StrCat("use token: ", **data.image_token))
        .notes.push_back({data.image_token->where, "the image token is given here"});
  }
}

}  // namespace

void PlanSources(const Recipe& recipe, DataPlan& plan, Diagnostics& diagnostics) {
  const DataRecipe& data = recipe.data;
  if (data.sources.empty()) {
    diagnostics.Error(kMissingKey, data.where, "`data.sources` is empty",
                      "add at least one: {kind: webdataset, shards: FILES}");
    return;
  }
  CheckNames(data.sources, diagnostics);
  CheckKinds(data, diagnostics);
  CheckIgnored(data, diagnostics);
  CheckUnused(data, diagnostics);
  plan.base = FolderOf(data.sources.front().where);
  const auto has_weight = [](const SourceRecipe& source) { return AllKnown(source.weight); };
  std::vector<int64_t> weights;
  if (std::all_of(data.sources.begin(), data.sources.end(), has_weight))
    weights = ScaledWeights(data.sources, diagnostics);
  for (size_t i = 0; i < data.sources.size(); ++i) {
    const SourceRecipe& source = data.sources[i];
    SourcePlan& planned = plan.sources.emplace_back();
    planned.name = SourceName(source, i);
    planned.kind = *source.kind;
    for (const auto& shard : source.shards) planned.shards.push_back(*shard);
    for (const auto& extension : source.ignore) planned.ignore.push_back(*extension);
    if (source.path) planned.path = **source.path;
    if (!weights.empty()) planned.weight = weights[i];
  }
  plan.tokenizer_digest = DigestOf(data.tokenizer_digest, "tokenizer_digest", diagnostics);
  plan.template_digest = DigestOf(data.template_digest, "template_digest", diagnostics);
  plan.shuffle = data.shuffle->text;
  plan.packing = *data.packing;
  plan.window = *data.window;
  plan.long_documents = *data.long_documents;
  plan.damaged = *data.damaged;
  plan.most_damaged = *data.damaged == "skip" ? *data.most_damaged : 0;
  // The plan has one folder that its paths are relative to: that of the sources.
  plan.index = *data.index;
  if (data.index.where.known() && FolderOf(data.index.where) != plan.base)
    plan.index = (std::filesystem::path(FolderOf(data.index.where)) / *data.index).lexically_normal().string();
  if (TextIsIds(plan)) CheckIds(recipe, plan, diagnostics);
}

}  // namespace planwright
