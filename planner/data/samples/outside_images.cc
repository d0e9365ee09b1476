#include "planner/data/samples/outside_images.h"

#include <absl/strings/str_cat.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "planner/base/files/file_io.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/utf8.h"
#include "planner/base/threads/threads.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNamed = 5;

// What cannot be looked at for another reason (rights, a server that does not answer) the reading tells.
bool IsMissing(const std::string& path) {
  struct stat about {};
  return stat(path.c_str(), &about) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

// The uppermost folder on the way to a file that is not there; empty: the file alone is missing.
std::string MissingFolder(const std::string& path) {
  std::string missing;
  for (fs::path folder = fs::path(path).parent_path(); !folder.empty() && IsMissing(folder.string());
       folder = folder.parent_path())
    missing = folder.string();
  return missing;
}

// Calls each(image, slice) for all images that are files of their own.
template <typename Each>
void ForEachOutside(const std::vector<ShardSlice>& slices, Each each) {
  for (const ShardSlice& slice : slices) {
    uint32_t before = slice.own_file;
    bool plain = false;
    for (const ImageRecord& image : slice.images) {
      if (image.file != before) {
        before = image.file;
        plain = image.file != slice.own_file && slice.file(image.file).kind == IndexedFileKind::kPlain;
      }
      if (plain) each(slice, image);
    }
  }
}

}  // namespace

std::string PlainPath(const std::string& path) {
  const std::string plain = fs::path(path).lexically_normal().string();
  if (plain == path) return path;
  std::error_code error, of_plain;
  const bool same = fs::weakly_canonical(path, error) == fs::weakly_canonical(plain, of_plain);
  return same && !error && !of_plain ? plain : path;
}

void OutsideImages::AddMissing(const std::string& named) {
  ++missing;
  const std::string path = first.size() < kMostNamed ? PlainPath(named) : named;
  if (first.size() < kMostNamed && (first.empty() || first.back() != path)) first.push_back(path);
}

void OutsideImages::Add(const OutsideImages& more) {
  named += more.named;
  looked += more.looked;
  missing += more.missing;
  for (const std::string& path : more.first) {
    if (first.size() < kMostNamed) first.push_back(path);
  }
}

OutsideImages LookForImages(const std::vector<ShardSlice>& slices, const std::string& base, int threads) {
  OutsideImages images;
  ForEachOutside(slices, [&](const ShardSlice&, const ImageRecord&) { ++images.named; });
  images.looked = std::min(images.named, kMostImagesLookedFor);
  std::vector<std::string> paths;
  int64_t at = 0;
  ForEachOutside(slices, [&](const ShardSlice& slice, const ImageRecord& image) {
    // The first image is one of them, and from each to the next are as many, within one.
    const auto chosen = static_cast<int64_t>(paths.size());
    if (chosen < images.looked && at == chosen * images.named / images.looked)
      paths.push_back(ResolvePath(base, std::string(slice.file(image.file).path)));
    ++at;
  });
  std::vector<char> missing(paths.size());
  ForEachItem(threads, static_cast<int64_t>(paths.size()), [&](int64_t i) { missing[i] = IsMissing(paths[i]); });
  for (size_t i = 0; i < paths.size(); ++i) {
    if (missing[i] != 0) images.AddMissing(paths[i]);
  }
  return images;
}

std::vector<std::string> MissingImages::Lines() const {
  std::vector<std::string> lines = {Printable(what)};
  for (const std::string& path : paths) lines.push_back("  " + Printable(path));
  lines.push_back(help);
  return lines;
}

std::optional<MissingImages> MissingOf(std::string_view source, const OutsideImages& images) {
  if (images.missing == 0) return std::nullopt;
  const std::string of = images.looked == images.named
                             ? absl::StrCat(Counted(images.named, "image"), " that its shards name by path")
                             : absl::StrCat(WithCommas(images.looked), " images that were looked for, among ",
                                            WithCommas(images.named), " that its shards name by path,");
  const std::string folder = MissingFolder(images.first.front());
  MissingImages missing;
  missing.what = absl::StrCat("source ", std::string(source), ": ", WithCommas(images.missing), " of ", of,
                              images.missing == 1 ? " is" : " are", " not there",
                              folder.empty() ? "" : ": there is no folder " + folder);
  missing.paths = images.first;
  const int64_t more = images.missing - static_cast<int64_t>(images.first.size());
  if (more > 0) missing.paths.push_back(absl::StrCat("and ", WithCommas(more), " more"));
  missing.help =
      "bring them back to these paths, or prepare the shards again with `--images FOLDER` of where they are now; what "
      "is not there is not damaged, and `data.damaged: skip` does not leave it out";
  return missing;
}

}  // namespace planwright
