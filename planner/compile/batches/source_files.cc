#include "planner/compile/batches/source_files.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/files/file_io.h"
#include "planner/base/process/prepare_command.h"
#include "planner/base/text/utf8.h"
#include "planner/compile/batches/plan_data.h"
#include "planner/data/samples/prepared.h"
#include "planner/data/samples/shard_list.h"
#include "planner/plan/remote_names.h"
#include "planner/recipe/model_facts.h"

namespace planwright {
namespace {

using enum DiagnosticKind;

// Shards of which a prepared.json was found, and the line that names them.
struct Found {
  std::shared_ptr<const Prepared> file;
  Location where;
};

class SourceFiles {
 public:
  SourceFiles(const DataRecipe& data, LookedFor& files, Diagnostics& diagnostics)
      : bytes_(TextIsBytes(data)), pinned_(data.tokenizer_digest || data.template_digest), files_(files),
        diagnostics_(diagnostics) {}

  // Those of the training, or of an evaluation set. All of a list are relative to the folder of the file with the list.
  void Check(const std::vector<SourceRecipe>& sources) {
    if (sources.empty()) return;
    base_ = FolderOf(sources.front().where);
    for (const SourceRecipe& source : sources) {
      int64_t names = 0;
      for (const Located<std::string>& shard : source.shards) {
        if (AllKnown(shard)) CheckShards(shard, names);
      }
    }
    // After the shards, which may need a prepared.json in the same folder.
    for (const SourceRecipe& source : sources) {
      if (source.path && AllKnown(source.path)) CheckTokens(*source.path);
    }
  }

  const std::vector<Found>& found() const { return found_; }
  bool unreadable() const { return unreadable_; }      // some prepared.json is
  bool not_here() const { return !missing_.empty(); }  // some folder is not on this machine

  // `left`: the keys that the recipe leaves to files of these folders, "`pad_token`"; empty: none. Without them no plan
  // can be made, whatever the machine is for.
  void TellMissing(const std::vector<std::string>& left) {
    for (const Missing& one : missing_) {
      const std::string what = absl::StrCat("the folder ", one.folder, " is not on this machine");
      if (left.empty()) {
        diagnostics_.Warning(kDataNotHere, one.named.where, absl::StrCat(what, ", so ", *one.named, " is not checked"),
                             "check the recipe where the data is, or silence this lint");
      } else {
        diagnostics_.Error(
            kDataFile, one.named.where,
            absl::StrCat(what, ", and the recipe leaves ", absl::StrJoin(left, ", "), " to its prepared.json"),
            absl::StrCat("correct the name: paths are relative to ", one.base.empty() ? "the working folder" : one.base,
                         "; if the data is on another machine, check the recipe there, or add the ids to it"));
      }
    }
  }

 private:
  // A folder that is not here.
  struct Missing {
    std::string folder, base;
    Located<std::string> named;
  };

  // `names`: of this source so far, as braces make them.
  void CheckShards(const Located<std::string>& pattern, int64_t& names) {
    if (IsNotMounted("shards", pattern)) return;
    const bool few = names <= kMostShards;
    names += CountShardNames(*pattern).value_or(0);
    if (names > kMostShards) {
      if (few) Wrong(pattern.where, absl::StrCat("the shards of a source name more than ", kMostShards, " files"));
      return;
    }
    const LookedFor::Shards& found = files_.OfPattern(base_, *pattern);
    if ((!found.wrong.empty() || !found.missing_folder.empty()) && IsMadeFirst(pattern)) return;
    for (const std::string& file : found.beside) FindPreparedOf(file, pattern.where);
    Tell(found.wrong, found.missing_folder, pattern);
  }

  // Data of which `prepare` makes shards, whose prepared.json will say their ids, and shards that are compressed, by
  // their names.
  bool IsMadeFirst(const Located<std::string>& pattern) {
    const std::string name = absl::AsciiStrToLower(*pattern);
    const auto ends = [&](std::initializer_list<std::string_view> endings) {
      return std::any_of(endings.begin(), endings.end(),
                         [&](std::string_view ending) { return name.ends_with(ending); });
    };
    if (ends({".json", ".jsonl", ".ndjson", ".parquet", ".json.gz", ".jsonl.gz", ".ndjson.gz"})) {
      diagnostics_.Error(kDataFile, pattern.where, absl::StrCat("`shards` are tar files, found ", Quoted(*pattern)),
                         absl::StrCat(PrepareCommand(), " --tokenizer FOLDER -o shards ", *pattern,
                                      " makes shards of it before the run; then write shards: [\"shards/*.tar\"]",
                                      bytes_ ? ", and tokenizer: ids in data" : ""));
      unreadable_ = true;
      return true;
    }
    if (!ends({".tar.gz", ".tgz"})) return false;
    diagnostics_.Error(kDataFile, pattern.where, absl::StrCat("`shards` are not compressed, found ", Quoted(*pattern)),
                       "unpack them: gunzip makes FILE.tar of FILE.tar.gz");
    return true;
  }

  void CheckTokens(const Located<std::string>& path) {
    if (IsNotMounted("path", path)) return;
    const LookedFor::Tokens& found = files_.OfTokens(base_, *path);
    if (found.wrong.empty() && found.missing_folder.empty())
      FindPreparedOf(ResolvePath(base_, *path + ".bin"), path.where);
    Tell(found.wrong, found.missing_folder, path);
  }

  void Tell(const std::string& wrong, const std::string& missing_folder, const Located<std::string>& named) {
    if (!missing_folder.empty()) {
      missing_.push_back({missing_folder, base_, named});
    } else if (!wrong.empty()) {
      Wrong(named.where, wrong);
    }
  }

  // Then the help that a path is relative to a folder would mislead.
  bool IsNotMounted(const char* key, const Located<std::string>& path) {
    const std::string why = NotMounted(*path);
    if (!why.empty())
      diagnostics_.Error(kDataFile, path.where, absl::StrCat(key, " ", *path, ": ", why), HowToFetch(key, *path));
    return !why.empty();
  }

  void Wrong(const Location& where, std::string message) {
    diagnostics_.Error(kDataFile, where, std::move(message),
                       absl::StrCat("paths are relative to ", base_.empty() ? "the working folder" : base_));
  }

  // Once for each folder.
  void FindPreparedOf(const std::string& file, const Location& where) {
    if (!folders_.insert(std::filesystem::path(file).parent_path().string()).second) return;
    const LookedFor::PreparedFile& prepared = files_.PreparedBeside(file);
    if (!prepared.ok()) {
      unreadable_ = true;
      diagnostics_.Error(kPreparedShards, where, std::string(prepared.status().message()),
                         "prepare the shards again, or remove the file and give the ids in the recipe");
    } else if (*prepared && bytes_) {
      diagnostics_.Error(kPreparedShards, where,
                         absl::StrCat("the shards beside ", (*prepared)->path, " are ids, but the tokenizer is bytes"),
                         "use tokenizer: ids");
    } else if (!*prepared && pinned_ && !bytes_ && !file.ends_with(".bin")) {
      diagnostics_.Error(
          kPreparedShards, where,
          absl::StrCat("there is no prepared.json beside ", file, ", which must name the digests that the recipe pins"),
          "prepare the shards, or remove tokenizer_digest and template_digest");
    } else if (*prepared) {
      found_.push_back({*prepared, where});
    }
  }

  std::string base_;
  const bool bytes_, pinned_;
  LookedFor& files_;
  Diagnostics& diagnostics_;
  std::set<std::string> folders_;
  std::vector<Found> found_;
  std::vector<Missing> missing_;
  bool unreadable_ = false;
};

std::string TextOf(const std::string& digest) { return digest.empty() ? "none" : digest; }
std::string TextOf(int64_t id) { return id < 0 ? "none" : absl::StrCat(id); }

bool Says(const std::string& digest) { return !digest.empty(); }
bool Says(int64_t id) { return id >= 0; }

// The first file that says something of a field, or the first of all. Shards of plain text have no template, and shards
// without images need no image token: they contradict nobody.
template <typename T>
const Found& FirstThatSays(const std::vector<Found>& found, T Prepared::*field) {
  for (const Found& one : found) {
    if (Says(one.file.get()->*field)) return one;
  }
  return found.front();
}

// All files that say something of a field say the same.
template <typename T>
void CompareWithFirst(const std::vector<Found>& found, const char* what, T Prepared::*field, Diagnostics& diagnostics) {
  const Found& first = FirstThatSays(found, field);
  for (const Found& other : found) {
    const T &expected = first.file.get()->*field, &value = other.file.get()->*field;
    if (!Says(value) || value == expected) continue;
    diagnostics
        .Error(kPreparedShards, other.where,
               absl::StrCat(other.file->path, " has ", what, " ", TextOf(value), ", but ", first.file->path, " has ",
                            TextOf(expected)),
               "prepare all sources with one tokenizer and one template")
        .notes.push_back({first.where, "the other shards are named here"});
  }
}

void CompareWithEachOther(const std::vector<Found>& found, Diagnostics& diagnostics) {
  CompareWithFirst(found, "the tokenizer", &Prepared::tokenizer_digest, diagnostics);
  CompareWithFirst(found, "the template", &Prepared::template_digest, diagnostics);
  CompareWithFirst(found, "the image token", &Prepared::image, diagnostics);
  CompareWithFirst(found, "the pad token", &Prepared::pad, diagnostics);
  CompareWithFirst(found, "the end token", &Prepared::end, diagnostics);
}

// A recipe may have a digest in capital letters.
bool SameValue(const std::string& pin, const std::string& digest) { return absl::AsciiStrToLower(pin) == digest; }
bool SameValue(int64_t pin, int64_t id) { return pin == id; }

// A digest keeps ids of another tokenizer out of a run, so it is not to be removed lightly.
std::string HelpOfPin(const std::string& key) {
  const bool tokenizer = key == "tokenizer_digest";
  if (!tokenizer && key != "template_digest") return absl::StrCat("remove ", key, ", or name other shards");
  const char* what = tokenizer ? "tokenizer" : "template";
  return absl::StrCat("prepare the shards again with the ", what, " of the model, or name other shards; only if the ",
                      "ids are known to be those of this ", what, ", write the digest of the shards");
}

// What the recipe pins is what the shards say.
template <typename T>
void ComparePin(const std::vector<Found>& all, const char* key, const std::optional<Located<T>>& pin,
                T Prepared::*field, Diagnostics& diagnostics) {
  const Found& found = FirstThatSays(all, field);
  const T& value = found.file.get()->*field;
  if (!pin || !AllKnown(pin) || !Says(value) || SameValue(**pin, value)) return;
  diagnostics
      .Error(kPreparedShards, pin->where,
             absl::StrCat("`data.", key, "` is ", TextOf(**pin), ", but ", found.file->path, " has ", TextOf(value)),
             HelpOfPin(key))
      .notes.push_back({found.where, "the shards are named here"});
}

void CompareWithRecipe(const std::vector<Found>& all, const Recipe& recipe, Diagnostics& diagnostics) {
  const DataRecipe& data = recipe.data;
  ComparePin(all, "tokenizer_digest", data.tokenizer_digest, &Prepared::tokenizer_digest, diagnostics);
  ComparePin(all, "template_digest", data.template_digest, &Prepared::template_digest, diagnostics);
  ComparePin(all, "image_token", data.image_token, &Prepared::image, diagnostics);
  ComparePin(all, "pad_token", data.pad_token, &Prepared::pad, diagnostics);
  ComparePin(all, "end_token", data.end_token, &Prepared::end, diagnostics);
  const ModuleRecipe* language = LanguageOf(recipe);
  if (language == nullptr) return;
  const Found& found = *std::max_element(
      all.begin(), all.end(), [](const Found& a, const Found& b) { return a.file->vocabulary < b.file->vocabulary; });
  const Prepared& prepared = *found.file;
  const Located<int64_t> vocabulary = SizeOf(language->model.numbers, "vocabulary");
  if (!AllKnown(vocabulary) || prepared.vocabulary <= *vocabulary) return;
  diagnostics
      .Error(kPreparedShards, found.where,
             absl::StrCat(prepared.path, " has ids of a vocabulary of ", prepared.vocabulary, ", but the model has ",
                          *vocabulary),
             absl::StrCat("give the model a vocabulary of ", prepared.vocabulary, " or more"))
      .notes.push_back({vocabulary.where, "the vocabulary is given here"});
}

void TakeId(const std::vector<Found>& all, int64_t Prepared::*field, std::optional<Located<int64_t>>& into) {
  const Found& found = FirstThatSays(all, field);
  if (!into && Says(found.file.get()->*field)) into = Located<int64_t>(found.file.get()->*field, found.where);
}

// The token ids that neither the recipe nor its shards have said.
std::vector<std::string> IdsLeft(const Recipe& recipe) {
  const DataRecipe& data = recipe.data;
  const bool images = std::any_of(recipe.modules.begin(), recipe.modules.end(), [](const ModuleRecipe& module) {
    return AllKnown(module.model.kind) && !CarriesLoss(module.model);
  });
  std::vector<std::string> left;
  if (!data.image_token && images) left.emplace_back("`image_token`");
  if (!data.pad_token) left.emplace_back("`pad_token`");
  if (!data.end_token) left.emplace_back("`end_token`");
  return left;
}

// Ids without a prepared.json beside them say no digest, so that one of the recipe is compared with nothing. (Shards
// must have one.)
void LintDigests(const DataRecipe& data, Diagnostics& diagnostics) {
  for (const SourceRecipe& source : data.sources) {
    if (!AllKnown(source.kind) || RowOf(*source.kind).shards) return;
  }
  const std::pair<const char*, const std::optional<Located<std::string>>*> digests[] = {
      {"tokenizer_digest", &data.tokenizer_digest}, {"template_digest", &data.template_digest}};
  for (const auto& [key, digest] : digests) {
    if (!*digest || !AllKnown(*digest)) continue;
    diagnostics
        .Warning(kKeyWithoutEffect, (*digest)->where,
                 absl::StrCat("`data.", key, "` has no effect: no prepared.json beside the ids says one"),
                 absl::StrCat("remove ", key, ", or prepare the ids"))
        .edits = {{absl::StrCat("data.", key), ""}};
  }
}

}  // namespace

int64_t CountPatterns(const Recipe& recipe) {
  int64_t patterns = 0;
  const auto add = [&](const std::vector<SourceRecipe>& sources) {
    for (const SourceRecipe& source : sources) patterns += static_cast<int64_t>(source.shards.size());
  };
  add(recipe.data.sources);
  if (recipe.evaluation) {
    for (const EvaluationSetRecipe& set : recipe.evaluation->sets) add(set.sources);
  }
  return patterns;
}

Recipe WithPreparedIds(const Recipe& recipe, LookedFor& looked_for, Diagnostics& diagnostics) {
  Recipe whole = recipe;
  if (recipe.damaged.contains("data.sources")) return whole;  // it is told what is wrong with them
  if (!RowOf(*recipe.data.kind).mixed || recipe.data.sources.empty() || !AllKnown(recipe.data.tokenizer)) return whole;
  SourceFiles files(recipe.data, looked_for, diagnostics);
  files.Check(recipe.data.sources);
  if (recipe.evaluation) {
    for (const EvaluationSetRecipe& set : recipe.evaluation->sets) files.Check(set.sources);
  }
  if (files.unreadable()) whole.damaged.insert(kPreparedDamaged);
  if (!files.found().empty()) {
    CompareWithEachOther(files.found(), diagnostics);
    CompareWithRecipe(files.found(), recipe, diagnostics);
    TakeId(files.found(), &Prepared::image, whole.data.image_token);
    TakeId(files.found(), &Prepared::pad, whole.data.pad_token);
    TakeId(files.found(), &Prepared::end, whole.data.end_token);
  } else if (!files.unreadable() && !files.not_here()) {
    LintDigests(recipe.data, diagnostics);
  }
  const std::vector<std::string> left = TextIsBytes(recipe.data) ? std::vector<std::string>() : IdsLeft(whole);
  files.TellMissing(left);
  if (files.not_here() && !left.empty()) whole.damaged.insert(kPreparedDamaged);
  return whole;
}

Recipe WithPreparedIds(const Recipe& recipe, Diagnostics& diagnostics) {
  LookedFor looked_for(CountPatterns(recipe));
  return WithPreparedIds(recipe, looked_for, diagnostics);
}

}  // namespace planwright
