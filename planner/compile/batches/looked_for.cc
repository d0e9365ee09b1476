#include "planner/compile/batches/looked_for.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "planner/base/files/file_io.h"
#include "planner/base/text/stand_in.h"
#include "planner/data/samples/tar_file.h"
#include "planner/data/samples/token_idx.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

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

// StandInFor of a file; empty as well of one that cannot be read.
std::string OtherThan(const std::string& path) {
  const absl::StatusOr<PlainFile> file = PlainFile::Open(path);
  const int64_t bytes = file.ok() ? std::min<int64_t>(file->bytes(), kStandInBytes) : 0;
  return StandInFor(FirstBytes(path, bytes).value_or(""));
}

// By the checksum of the first header, or that it is the empty block of an archive without members.
bool BeginsAsTar(const std::string& path) {
  const std::optional<std::string> header = FirstBytes(path, kTarBlock);
  return header && (TarChecksumFits(*header) || header->find_first_not_of('\0') == std::string::npos);
}

}  // namespace

bool LookedFor::HasFolder(const std::string& folder) {
  const auto [found, is_new] = folders_.try_emplace(folder);
  if (is_new) found->second = Exists(folder);
  return found->second;
}

int64_t LookedFor::ShareOf(int64_t left, int64_t most) const {
  const int64_t patterns = std::max<int64_t>(1, patterns_ - static_cast<int64_t>(shards_.size()));
  return std::min(most, (left + patterns - 1) / patterns);
}

const LookedFor::Shards& LookedFor::OfPattern(const std::string& base, const std::string& pattern) {
  const auto found = shards_.find({base, pattern});
  if (found != shards_.end()) return found->second;
  Shards shards = LookFor(base, pattern);
  return shards_.emplace(std::pair(base, pattern), std::move(shards)).first->second;
}

LookedFor::Shards LookedFor::LookFor(const std::string& base, const std::string& pattern) {
  Shards shards;
  const ShardLimit share = {.names = ShareOf(kMostLookedForInAll - used_.names, kMostLookedFor),
                            .entries = kMostEntriesRead - used_.entries};
  ShardLimit left = share;
  const absl::StatusOr<FirstShards> first = FirstShardsOf(base, pattern, left);
  used_.names += share.names - left.names, used_.entries += share.entries - left.entries;
  if (!first.ok()) {
    // Without a match: is the folder in which the pattern begins there at all?
    const std::string folder = FolderOfFile(ResolvePath(base, pattern.substr(0, pattern.find_first_of("*?[{"))));
    const bool not_here = absl::IsNotFound(first.status()) && !HasFolder(folder);
    (not_here ? shards.missing_folder : shards.wrong) = not_here ? folder : std::string(first.status().message());
    return shards;
  }
  for (const std::string& file : first->files) shards.files.push_back(ResolvePath(base, file));
  const int64_t most_opened = ShareOf(kMostOpenedInAll - opened_, kMostOpened);
  int64_t missing = 0, opened = 0;
  std::string first_missing;
  std::set<std::string> beside;
  for (const std::string& file : first->files) {
    const std::string path = ResolvePath(base, file), folder = FolderOfFile(path);
    if (!Exists(path)) {
      if (!HasFolder(folder)) {
        shards.missing_folder = folder;
        return shards;
      }
      if (missing++ == 0) first_missing = file;
      continue;
    }
    if (beside.insert(folder).second) shards.beside.push_back(path);
    if (opened >= most_opened) continue;
    ++opened, ++opened_;
    if (BeginsAsTar(path)) continue;
    std::error_code error;
    const std::string other = fs::is_empty(path, error) ? "no tar file: it is empty" : OtherThan(path);
    shards.wrong = absl::StrCat(file, " is ", other.empty() ? "no tar file: its first header is damaged" : other);
    return shards;
  }
  if (missing == 0) return shards;
  shards.wrong = absl::StrCat("there is no file ", first_missing,
                              missing > 1 ? absl::StrCat(", and ", missing - 1, " more are missing") : "");
  return shards;
}

const LookedFor::Tokens& LookedFor::OfTokens(const std::string& base, const std::string& path) {
  const auto [found, is_new] = tokens_.try_emplace({base, path});
  Tokens& tokens = found->second;
  if (!is_new) return tokens;
  const std::string whole = ResolvePath(base, path);
  if (!HasFolder(FolderOfFile(whole))) {
    tokens.missing_folder = FolderOfFile(whole);
    return tokens;
  }
  for (const char* extension : {".bin", ".idx"}) {
    if (Exists(whole + extension)) continue;
    tokens.wrong = absl::StrCat("there is no file ", path, extension);
    return tokens;
  }
  if (FirstBytes(whole + ".idx", static_cast<int64_t>(kIdxMagic.size())) != kIdxMagic) {
    const std::string other = OtherThan(whole + ".idx");
    tokens.wrong =
        absl::StrCat(path, ".idx is ", other.empty() ? "no index of Megatron-LM: it must begin with MMIDIDX" : other);
  } else if (const std::string other = OtherThan(whole + ".bin"); !other.empty()) {
    tokens.wrong = absl::StrCat(path, ".bin is ", other);
  }
  return tokens;
}

const LookedFor::PreparedFile& LookedFor::PreparedBeside(const std::string& file) {
  const std::string folder = FolderOfFile(file);
  if (const auto found = prepared_.find(folder); found != prepared_.end()) return found->second;
  absl::StatusOr<std::optional<Prepared>> prepared = FindPrepared(file);
  std::shared_ptr<const Prepared> kept;
  if (prepared.ok() && *prepared) kept = std::make_shared<const Prepared>(**std::move(prepared));
  return prepared_.emplace(folder, prepared.ok() ? PreparedFile(std::move(kept)) : PreparedFile(prepared.status()))
      .first->second;
}

}  // namespace planwright
