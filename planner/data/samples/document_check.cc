#include "planner/data/samples/document_check.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <array>

#include "planner/base/digest/crc32.h"
#include "planner/data/pictures/picture_end.h"
#include "planner/data/samples/open_files.h"
#include "planner/data/samples/outside_images.h"
#include "planner/data/samples/tar_file.h"

namespace planwright {
namespace {

// A member of a shard, from its header on. offset 0: the document has none.
struct PartOfShard {
  uint64_t offset = 0, bytes = 0;

  bool there() const { return offset >= kTarBlock; }
  uint64_t begin() const { return offset - kTarBlock; }
  uint64_t end() const { return offset + bytes; }
};

absl::StatusOr<std::string> ReadSpan(const PlainFile& shard, uint64_t begin, uint64_t end) {
  return ReadBytesAt(shard, static_cast<int64_t>(begin), static_cast<int64_t>(end - begin));
}

// Headers and contents. Members are mostly neighbours: then one read has them all.
absl::Status ReadParts(const PlainFile& shard, const std::array<PartOfShard, 3>& parts,
                       std::array<std::string, 3>& into) {
  constexpr uint64_t kMostBetween = 1 << 14;
  uint64_t begin = UINT64_MAX, end = 0, bytes = 0;
  for (const PartOfShard& part : parts) {
    if (!part.there()) continue;
    begin = std::min(begin, part.begin());
    end = std::max(end, part.end());
    bytes += part.end() - part.begin();
  }
  std::string all;
  const bool together = bytes > 0 && end - begin <= bytes + kMostBetween;
  if (together) {
    absl::StatusOr<std::string> read = ReadSpan(shard, begin, end);
    if (!read.ok()) return read.status();
    all = *std::move(read);
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].there()) continue;
    if (together) {
      into[i] = all.substr(parts[i].begin() - begin, parts[i].end() - parts[i].begin());
      continue;
    }
    absl::StatusOr<std::string> read = ReadSpan(shard, parts[i].begin(), parts[i].end());
    if (!read.ok()) return read.status();
    into[i] = *std::move(read);
  }
  return absl::OkStatus();
}

// Of a member with its header, which is taken away; nothing of one that is not there.
uint32_t CheckOfRead(std::string& member) {
  if (member.empty()) return 0;
  const int64_t in_header = TarHeaderSize(std::string_view(member).substr(0, kTarBlock));
  member.erase(0, kTarBlock);
  return CheckOfMember(member, in_header);
}

absl::Status Another(const std::string& what) {
  return absl::FailedPreconditionError(
      absl::StrCat(what,
                   " is not what was there when the index was made, though its file has the size that it had: run "
                   "`plan data index --anew` with the recipe, which reads all shards again"));
}

}  // namespace

uint32_t CheckOfMember(std::string_view contents, int64_t in_header) {
  return Crc32(Crc32(0, contents), {reinterpret_cast<const char*>(&in_header), sizeof in_header});
}

uint32_t CheckOfParts(uint32_t text, uint32_t mask, uint32_t list) {
  const uint32_t sums[3] = {text, mask, list};
  return Crc32(0, {reinterpret_cast<const char*>(sums), sizeof sums});
}

uint32_t CheckOfEnds(std::string_view begin, std::string_view end) { return Crc32(Crc32(0, begin), end); }

absl::StatusOr<DocumentBytes> ReadDocument(const PlainFile& shard, const DocumentRecord& document,
                                           const DocumentCheck& check) {
  std::array<std::string, 3> bytes;
  const absl::Status read = ReadParts(shard,
                                      {{{document.text_offset, document.text_bytes},
                                        {document.mask_offset, document.mask_offset == 0 ? 0 : document.tokens},
                                        {uint64_t{check.list_block} * kTarBlock, check.list_bytes}}},
                                      bytes);
  if (!read.ok()) return read;
  const uint32_t text = CheckOfRead(bytes[0]), mask = CheckOfRead(bytes[1]), list = CheckOfRead(bytes[2]);
  if (CheckOfParts(text, mask, list) != check.parts) return Another("its text");
  return DocumentBytes{std::move(bytes[0]), std::move(bytes[1])};
}

absl::StatusOr<std::string> ReadImage(const PlainFile& file, const ImageRecord& image, const ImageCheck& check) {
  absl::StatusOr<std::string> bytes = ReadBytesAt(file, static_cast<int64_t>(image.offset()), image.bytes);
  if (!bytes.ok()) return bytes;
  const std::string_view all = *bytes;
  const size_t end = std::min<size_t>(all.size(), kPictureEnd);
  if (CheckOfEnds(all.substr(0, kPictureBegin), all.substr(all.size() - end)) != check.ends)
    return Another(absl::StrCat("its image in ", PlainPath(file.path())));
  return bytes;
}

absl::Status CompareImage(const PlainFile& file, const ImageRecord& image, const ImageCheck& check) {
  const int64_t offset = static_cast<int64_t>(image.offset()), bytes = image.bytes;
  const int64_t end = std::min(bytes, kPictureEnd);
  const absl::StatusOr<std::string> first = ReadBytesAt(file, offset, std::min(bytes, kPictureBegin));
  if (!first.ok()) return first.status();
  const absl::StatusOr<std::string> last = ReadBytesAt(file, offset + bytes - end, end);
  if (!last.ok()) return last.status();
  return CheckOfEnds(*first, *last) == check.ends ? absl::OkStatus()
                                                  : Another(absl::StrCat("its image in ", PlainPath(file.path())));
}

}  // namespace planwright
