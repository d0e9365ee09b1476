#include "planner/data/samples/image_meter.h"

#include <absl/strings/str_cat.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>

#include "planner/base/files/file_io.h"
#include "planner/data/pictures/decode_picture.h"
#include "planner/data/pictures/orientation.h"
#include "planner/data/pictures/picture_end.h"
#include "planner/data/samples/document_check.h"
#include "planner/data/samples/outside_images.h"

namespace planwright {
namespace {

constexpr size_t kOpenTars = 16;  // that documents of one shard refer to

absl::Status OfImage(const std::string& what, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(what, ": ", status.message()));
}

}  // namespace

absl::StatusOr<NamedFile> StatFile(const std::string& base, const std::string& path, IndexedFileKind kind) {
  struct stat about {};
  const std::string at = ResolvePath(base, path);
  if (stat(at.c_str(), &about) != 0) {
    const int error = errno;
    const std::string message = absl::StrCat("cannot read ", at, ": ", std::strerror(error));
    return error == ENOENT ? absl::NotFoundError(message) : absl::UnavailableError(message);
  }
  return NamedFile{path, about.st_size, int64_t{about.st_mtim.tv_sec} * 1'000'000'000 + about.st_mtim.tv_nsec, kind};
}

ImageMeter::ImageMeter(std::string base, std::string shard, bool decode, bool turned, bool keep_damaged,
                       TarMembersCache& tars)
    : base_(std::move(base)), shard_(std::move(shard)), decode_(decode), turned_(turned), keep_damaged_(keep_damaged),
      tars_(tars), open_(kOpenTars) {}

absl::StatusOr<MeasuredImage> ImageMeter::Measure(const std::string& what, ReadBytes read, int64_t offset,
                                                  int64_t bytes) const {
  if (bytes > int64_t{std::numeric_limits<uint32_t>::max()})
    return absl::InvalidArgumentError(absl::StrCat(what, ": it has ", bytes, " bytes"));
  const absl::StatusOr<PictureSize> size = ReadPictureSize(read);
  if (!size.ok()) return OfImage(what, size.status());
  // From the front to the back, as a shard is read.
  const absl::StatusOr<std::string> first = read(0, std::min(bytes, kPictureBegin));
  if (!first.ok()) return OfImage(what, first.status());
  const absl::StatusOr<int> orientation = ReadOrientation(size->format, read, bytes, false);
  if (!orientation.ok()) return OfImage(what, orientation.status());
  const int64_t end = std::min(bytes, kPictureEnd);
  const absl::StatusOr<std::string> last = read(bytes - end, end);
  if (!last.ok()) return OfImage(what, last.status());
  MeasuredImage measured{};
  if (decode_ || MayBeCut(size->format, *first, *last, bytes)) {
    const absl::StatusOr<std::string> whole = read(0, bytes);
    if (!whole.ok()) return OfImage(what, whole.status());
    absl::Status status = CheckPicture(*whole);
    if (status.ok() && turned_) status = CompareOrientation(size->format, *whole, *orientation);
    if (!status.ok() && !keep_damaged_) return OfImage(what, status);
    if (!status.ok()) measured.damage = std::string(OfImage(what, status).message());
  }
  measured.check = {CheckOfEnds(*first, *last),
                    static_cast<uint32_t>(*orientation) | (measured.damage.empty() ? 0 : ImageCheck::kDamagedImage)};
  ImageRecord& image = measured.record;
  image.offset_low = static_cast<uint32_t>(offset);
  image.offset_high = static_cast<uint32_t>(static_cast<uint64_t>(offset) >> 32);
  image.bytes = static_cast<uint32_t>(bytes);
  image.height = static_cast<uint32_t>(size->height);
  image.width = static_cast<uint32_t>(size->width);
  return measured;
}

absl::StatusOr<MeasuredImage> ImageMeter::Refer(const ImageReference& reference, size_t number,
                                                std::vector<NamedFile>& files) {
  const std::string path = FromBase(reference), at = PathOf(reference);
  const bool in_tar = !reference.member.empty();
  const std::string what =
      absl::StrCat("its image ", number, ", ", Shown(at), in_tar ? ", member " : "", reference.member);
  TarMember member;
  if (in_tar) {
    const absl::StatusOr<std::shared_ptr<const TarMembers>> members = tars_.Get(at);
    if (!members.ok()) return OfImage(what, members.status());
    const absl::StatusOr<TarMember> found = (*members)->Find(reference.member);
    // The file is there, and what is in it is damaged.
    if (!found.ok()) return absl::InvalidArgumentError(OfImage(what, found.status()).message());
    member = *found;
  }
  const absl::StatusOr<std::shared_ptr<const PlainFile>> file = open_.Get(at);
  if (!file.ok()) return OfImage(what, file.status());
  if (!in_tar) member.bytes = (*file)->bytes();
  const auto read = [&](int64_t offset, int64_t count) -> absl::StatusOr<std::string> {
    offset = std::min(offset, member.bytes);
    return ReadBytesAt(**file, member.offset + offset, std::min(count, member.bytes - offset));
  };
  absl::StatusOr<MeasuredImage> image = Measure(what, read, member.offset, member.bytes);
  if (!image.ok()) return image.status();
  const auto known = numbers_.find(path);
  if (in_tar && known != numbers_.end()) {
    image->record.file = known->second;
    return image;
  }
  const absl::StatusOr<NamedFile> about =
      StatFile(base_, path, in_tar ? IndexedFileKind::kTar : IndexedFileKind::kPlain);
  if (!about.ok()) return about.status();
  image->record.file = static_cast<uint32_t>(files.size());
  files.push_back(*about);
  if (in_tar) numbers_[path] = image->record.file;
  return image;
}

std::string ImageMeter::FromBase(const ImageReference& reference) const {
  // Paths in .images are relative to the folder of the shard.
  return ResolvePath(std::filesystem::path(shard_).parent_path().string(), reference.path);
}

std::string ImageMeter::PathOf(const ImageReference& reference) const {
  return ResolvePath(base_, FromBase(reference));
}

std::string ImageMeter::Shown(const std::string& path) {
  const size_t name = path.rfind('/') + 1;  // 0: it is in no folder
  if (const std::string folder = path.substr(0, name); folder != folder_)
    folder_ = folder, plain_folder_ = folder.empty() ? "" : PlainPath(folder);
  return plain_folder_ + path.substr(name);
}

void ImageMeter::Forget(size_t files) {
  std::erase_if(numbers_, [&](const auto& named) { return named.second >= files; });
}

}  // namespace planwright
