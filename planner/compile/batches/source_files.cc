#include "planner/compile/batches/source_files.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "planner/base/files/file_io.h"
#include "planner/compile/batches/plan_data.h"
#include "planner/data/samples/prepared.h"
#include "planner/data/samples/shard_list.h"
#include "planner/data/samples/tar_file.h"
#include "planner/data/samples/token_idx.h"
#include "planner/recipe/model_facts.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;
using enum DiagnosticKind;

constexpr size_t kMostLookedFor = 4096;  // files of a pattern; each costs a message to a file server
constexpr size_t kMostOpened = 16;

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error) && !error;
}

std::string FolderOfFile(const std::string& path) { return fs::path(path).parent_path().string(); }

std::optional<std::string> FirstBytes(const std::string& path, int64_t count) {
  absl::StatusOr<PlainFile> file = PlainFile::Open(path);
  if (!file.ok() || file->bytes() < count) return std::nullopt;
  std::string bytes(count, '\0');
  if (!file->Read(0, std::as_writable_bytes(std::span(bytes))).ok()) return std::nullopt;
  return bytes;
}

// By the checksum of the first header, or that it is the empty block of an archive without members.
bool BeginsAsTar(const std::string& path) {
  const std::optional<std::string> header = FirstBytes(path, kTarBlock);
  return header && (TarChecksumFits(*header) || header->find_first_not_of('\0') == std::string::npos);
}

// Shards of which a prepared.json was found, and the line that names them.
struct Found {
  Prepared prepared;
  Location where;
};

class SourceFiles {
 public:
  SourceFiles(const DataRecipe& data, Diagnostics& diagnostics)
      : bytes_(TextIsBytes(data)), pinned_(data.tokenizer_digest || data.template_digest), diagnostics_(diagnostics) {}

  // Those of the training, or of an evaluation set. All of a list are relative to the folder of the file with the list.
  void Check(const std::vector<SourceRecipe>& sources) {
    if (sources.empty()) return;
    base_ = FolderOf(sources.front().where);
    for (const SourceRecipe& source : sources) {
      for (const Located<std::string>& shard : source.shards) {
        if (AllKnown(shard)) CheckShards(shard);
      }
    }
    // After the shards, which may need a prepared.json in the same folder.
    for (const SourceRecipe& source : sources) {
      if (source.path && AllKnown(source.path)) CheckTokens(*source.path);
    }
  }

  const std::vector<Found>& found() const { return found_; }
  bool unreadable() const { return unreadable_; }  // some prepared.json is
  bool not_here() const { return not_here_; }      // some folder is not on this machine

 private:
  void CheckShards(const Located<std::string>& pattern) {
    if (IsNotMounted("shards", pattern)) return;
    const absl::StatusOr<std::vector<std::string>> files = ExpandShards(base_, *pattern);
    if (!files.ok()) {
      // Without a match: is the folder in which the pattern begins there at all?
      const std::string fixed = ResolvePath(base_, pattern->substr(0, pattern->find_first_of("*?[{")));
      if (absl::IsNotFound(files.status()) && !Exists(FolderOfFile(fixed)))
        return NotHere(FolderOfFile(fixed), pattern);
      return Wrong(pattern.where, std::string(files.status().message()));
    }
    size_t missing = 0, opened = 0;
    std::string first_missing;
    for (size_t i = 0; i < std::min(files->size(), kMostLookedFor); ++i) {
      const std::string path = ResolvePath(base_, (*files)[i]);
      if (!Exists(path)) {
        if (!Exists(FolderOfFile(path))) return NotHere(FolderOfFile(path), pattern);
        if (missing++ == 0) first_missing = (*files)[i];
        continue;
      }
      FindPreparedOf(path, pattern.where);
      if (opened == kMostOpened) continue;
      ++opened;
      if (BeginsAsTar(path)) continue;
      return Wrong(pattern.where, absl::StrCat((*files)[i], " is no tar file: its first header is damaged"));
    }
    if (missing == 0) return;
    Wrong(pattern.where, absl::StrCat("there is no file ", first_missing,
                                      missing > 1 ? absl::StrCat(", and ", missing - 1, " more are missing") : ""));
  }

  void CheckTokens(const Located<std::string>& path) {
    if (IsNotMounted("path", path)) return;
    const std::string whole = ResolvePath(base_, *path);
    if (!Exists(FolderOfFile(whole))) return NotHere(FolderOfFile(whole), path);
    for (const char* extension : {".bin", ".idx"}) {
      if (!Exists(whole + extension)) return Wrong(path.where, absl::StrCat("there is no file ", *path, extension));
    }
    const std::optional<std::string> magic = FirstBytes(whole + ".idx", static_cast<int64_t>(kIdxMagic.size()));
    if (magic != kIdxMagic) {
      return Wrong(path.where, absl::StrCat(*path, ".idx is no index of Megatron-LM: it must begin with MMIDIDX"));
    }
    FindPreparedOf(whole + ".bin", path.where);
  }

  // Then the help that a path is relative to a folder would mislead.
  bool IsNotMounted(const char* key, const Located<std::string>& path) {
    const std::string why = NotMounted(*path);
    if (!why.empty()) diagnostics_.Error(kDataFile, path.where, absl::StrCat(key, " ", *path, ": ", why));
    return !why.empty();
  }

  void Wrong(const Location& where, std::string message) {
    diagnostics_.Error(kDataFile, where, std::move(message),
                       absl::StrCat("paths are relative to ", base_.empty() ? "the working folder" : base_));
  }

  void NotHere(const std::string& folder, const Located<std::string>& named) {
    not_here_ = true;
    diagnostics_.Warning(kDataNotHere, named.where,
                         absl::StrCat("the folder ", folder, " is not on this machine, so ", *named, " is not checked"),
                         "check the recipe where the data is, or silence this lint");
  }

  // Once for each folder.
  void FindPreparedOf(const std::string& file, const Location& where) {
    if (!folders_.insert(FolderOfFile(file)).second) return;
    absl::StatusOr<std::optional<Prepared>> prepared = FindPrepared(file);
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
      found_.push_back({**std::move(prepared), where});
    }
  }

  std::string base_;
  const bool bytes_, pinned_;
  Diagnostics& diagnostics_;
  std::set<std::string> folders_;
  std::vector<Found> found_;
  bool unreadable_ = false, not_here_ = false;
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
    if (Says(one.prepared.*field)) return one;
  }
  return found.front();
}

// All files that say something of a field say the same.
template <typename T>
void CompareWithFirst(const std::vector<Found>& found, const char* what, T Prepared::*field, Diagnostics& diagnostics) {
  const Found& first = FirstThatSays(found, field);
  for (const Found& other : found) {
    const T &expected = first.prepared.*field, &value = other.prepared.*field;
    if (!Says(value) || value == expected) continue;
    diagnostics
        .Error(kPreparedShards, other.where,
               absl::StrCat(other.prepared.path, " has ", what, " ", TextOf(value), ", but ", first.prepared.path,
                            " has ", TextOf(expected)),
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

// What the recipe pins is what the shards say.
template <typename T>
void ComparePin(const std::vector<Found>& all, const char* key, const std::optional<Located<T>>& pin,
                T Prepared::*field, Diagnostics& diagnostics) {
  const Found& found = FirstThatSays(all, field);
  const T& value = found.prepared.*field;
  if (!pin || !AllKnown(pin) || !Says(value) || SameValue(**pin, value)) return;
  diagnostics
      .Error(kPreparedShards, pin->where,
             absl::StrCat("`data.", key, "` is ", TextOf(**pin), ", but ", found.prepared.path, " has ", TextOf(value)),
             absl::StrCat("remove ", key, ", or name other shards"))
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
  const Found& found = *std::max_element(all.begin(), all.end(), [](const Found& a, const Found& b) {
    return a.prepared.vocabulary < b.prepared.vocabulary;
  });
  const Prepared& prepared = found.prepared;
  const Located<int64_t> vocabulary = SizeOf(NumbersOf(language->model), "vocabulary");
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
  if (!into && Says(found.prepared.*field)) into = Located<int64_t>(found.prepared.*field, found.where);
}

// Ids without a prepared.json beside them say no digest, so that one of the recipe is compared with nothing. (Shards
// must have one.)
void LintDigests(const DataRecipe& data, Diagnostics& diagnostics) {
  for (const SourceRecipe& source : data.sources) {
    if (!AllKnown(source.kind) || *source.kind != "tokens") return;
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

Recipe WithPreparedIds(const Recipe& recipe, Diagnostics& diagnostics) {
  Recipe whole = recipe;
  if (*recipe.data.kind != "sources" || recipe.data.sources.empty() || !AllKnown(recipe.data.tokenizer)) return whole;
  SourceFiles files(recipe.data, diagnostics);
  files.Check(recipe.data.sources);
  if (recipe.evaluation) {
    for (const EvaluationSetRecipe& set : recipe.evaluation->sets) files.Check(set.sources);
  }
  if (files.unreadable()) whole.damaged.insert(kPreparedDamaged);
  if (files.found().empty()) {
    if (!files.unreadable() && !files.not_here()) LintDigests(recipe.data, diagnostics);
    return whole;
  }
  CompareWithEachOther(files.found(), diagnostics);
  CompareWithRecipe(files.found(), recipe, diagnostics);
  TakeId(files.found(), &Prepared::image, whole.data.image_token);
  TakeId(files.found(), &Prepared::pad, whole.data.pad_token);
  TakeId(files.found(), &Prepared::end, whole.data.end_token);
  return whole;
}

}  // namespace planwright
