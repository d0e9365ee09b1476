#include "planner/data/samples/index_writer.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "planner/base/digest/sha256.h"
#include "planner/base/files/file_io.h"

namespace planwright {
namespace {

uint64_t Padded(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

// The bytes [begin, end) of a file, a part at a time.
absl::Status EachPart(const PlainFile& file, uint64_t begin, uint64_t end,
                      const std::function<void(std::string_view)>& take) {
  std::string part;
  for (uint64_t at = begin; at < end; at += part.size()) {
    part.resize(std::min<uint64_t>(kChecksumPart, end - at));
    const absl::Status read = file.Read(static_cast<int64_t>(at), std::as_writable_bytes(std::span(part)));
    if (!read.ok()) return read;
    take(part);
  }
  return absl::OkStatus();
}

}  // namespace

DigestBytes BytesOfDigest(const std::string& hex) {
  const std::string bytes = absl::HexStringToBytes(hex);
  DigestBytes digest{};
  std::copy(bytes.begin(), bytes.end(), digest.begin());
  return digest;
}

std::string HexOfDigest(const DigestBytes& digest) {
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

void IndexCounts::Add(const ShardSlice& slice) {
  ++shards;
  documents += slice.documents.size();
  images += slice.images.size();
  left_out += slice.left_out.size();
  name_bytes += slice.names.size();
}

absl::StatusOr<IndexWriter> IndexWriter::Begin(const std::string& path, const IndexCounts& counts) {
  IndexWriter writer(path);
  writer.beside_ = NameBeside(path);
  writer.file_.fd = open(writer.beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (writer.file_.fd < 0) return WriteFailed(absl::StrCat("cannot write ", path), errno);
  writer.counts_ = counts;
  writer.documents_at_ = sizeof(IndexHeader) + Padded(counts.shards * sizeof(ShardRecord));
  writer.images_at_ = writer.documents_at_ + Padded(counts.documents * sizeof(DocumentRecord));
  writer.left_out_at_ = writer.images_at_ + Padded(counts.images * sizeof(ImageRecord));
  writer.names_at_ = writer.left_out_at_ + Padded(counts.left_out * sizeof(LeftOutRecord));
  writer.checks_at_ = writer.names_at_ + Padded(counts.name_bytes);
  writer.image_checks_at_ = writer.checks_at_ + Padded(counts.documents * sizeof(DocumentCheck));
  writer.end_ = writer.image_checks_at_ + Padded(counts.images * sizeof(ImageCheck));
  return writer;
}

IndexWriter::~IndexWriter() {
  if (file_.fd < 0) return;
  close(file_.fd);
  unlink(beside_.c_str());
}

absl::Status IndexWriter::Write(uint64_t offset, const void* data, size_t bytes) const {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t count = pwrite(file_.fd, at, bytes, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return WriteFailed(absl::StrCat("cannot write ", path_), count < 0 ? errno : EIO);
    at += count;
    offset += static_cast<uint64_t>(count);
    bytes -= static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

void IndexWriter::AddFile(const IndexedFile& file) {
  const bool shard = file.kind == IndexedFileKind::kShard;
  std::string& texts = shard ? shard_texts_ : other_texts_;
  (shard ? shard_files_ : other_files_)
      .push_back({texts.size(), static_cast<uint64_t>(file.bytes), file.changed,
                  static_cast<uint32_t>(file.path.size()), static_cast<uint32_t>(file.kind)});
  texts += file.path;
}

uint32_t IndexWriter::NumberOf(const IndexedFile& file) {
  const auto next = static_cast<uint32_t>(counts_.shards + other_files_.size());
  if (file.kind == IndexedFileKind::kTar) {
    const auto found = tars_.find(file.path);
    if (found != tars_.end()) return found->second;
    tars_.emplace(file.path, next);
  }
  AddFile(file);
  return next;
}

absl::Status IndexWriter::Add(const ShardSlice& slice) {
  padded_before_.push_back(padded_);
  for (size_t i = 0; i < slice.documents.size(); ++i) {
    const size_t begin = slice.documents[i].image;
    const size_t end = i + 1 < slice.documents.size() ? slice.documents[i + 1].image : slice.image_checks.size();
    const auto checks = slice.image_checks.subspan(begin, end - begin);
    padded_ += std::any_of(checks.begin(), checks.end(), [](const ImageCheck& check) { return check.damaged(); });
  }
  shards_.push_back({added_.documents, added_.images, added_.left_out, added_.name_bytes, slice.tokens, slice.content});
  AddFile(slice.file(slice.own_file));
  std::vector<ImageRecord> images(slice.images.begin(), slice.images.end());
  // Neighbours are mostly in one file, and a name is not looked up for each of them.
  uint32_t before = slice.own_file, number = static_cast<uint32_t>(added_.shards);
  bool is_plain = false;
  for (ImageRecord& image : images) {
    if (image.file != before || is_plain) {
      before = image.file;
      const IndexedFile file = slice.file(image.file);
      is_plain = file.kind == IndexedFileKind::kPlain;
      number = image.file == slice.own_file ? static_cast<uint32_t>(added_.shards) : NumberOf(file);
    }
    image.file = number;
  }
  for (const LeftOutDocument& one : slice.left_out) {
    left_out_.push_back(
        {left_out_texts_.size(), static_cast<uint32_t>(one.name.size()), static_cast<uint32_t>(one.why.size())});
    left_out_texts_ += one.name;
    left_out_texts_ += one.why;
  }
  for (const absl::Status& status :
       {Write(documents_at_ + added_.documents * sizeof(DocumentRecord), slice.documents.data(),
              slice.documents.size_bytes()),
        Write(images_at_ + added_.images * sizeof(ImageRecord), images.data(), images.size() * sizeof(ImageRecord)),
        Write(names_at_ + added_.name_bytes, slice.names.data(), slice.names.size()),
        Write(checks_at_ + added_.documents * sizeof(DocumentCheck), slice.checks.data(), slice.checks.size_bytes()),
        Write(image_checks_at_ + added_.images * sizeof(ImageCheck), slice.image_checks.data(),
              slice.image_checks.size_bytes())}) {
    if (!status.ok()) return status;
  }
  tokens_ += slice.tokens;
  added_.Add(slice);
  return absl::OkStatus();
}

absl::Status IndexWriter::Finish(const DigestBytes& reading, const DigestBytes& source, bool keeps) {
  for (FileRecord& file : other_files_) file.text += shard_texts_.size();
  for (LeftOutRecord& one : left_out_) one.text += shard_texts_.size() + other_texts_.size();
  const std::string texts = shard_texts_ + other_texts_ + left_out_texts_;
  std::vector<FileRecord> files = shard_files_;
  files.insert(files.end(), other_files_.begin(), other_files_.end());
  const uint64_t texts_at = end_ + files.size() * sizeof(FileRecord);
  IndexHeader header{};
  header.magic = kIndexMagic;
  header.version = kIndexVersion;
  header.header_bytes = sizeof(IndexHeader);
  header.file_bytes = texts_at + Padded(texts.size());
  header.reading = reading;
  header.source = source;
  header.shards = counts_.shards;
  header.documents = counts_.documents;
  header.images = counts_.images;
  header.left_out = counts_.left_out;
  header.name_bytes = counts_.name_bytes;
  header.files = files.size();
  header.text_bytes = texts.size();
  header.tokens = tokens_;
  for (const absl::Status& status :
       {Write(sizeof header, shards_.data(), shards_.size() * sizeof(ShardRecord)),
        Write(left_out_at_, left_out_.data(), left_out_.size() * sizeof(LeftOutRecord)),
        Write(end_, files.data(), files.size() * sizeof(FileRecord)), Write(texts_at, texts.data(), texts.size())}) {
    if (!status.ok()) return status;
  }
  // What was not written between sections are zeros.
  if (ftruncate(file_.fd, static_cast<off_t>(header.file_bytes)) != 0)
    return WriteFailed(absl::StrCat("cannot write ", path_), errno);
  const absl::StatusOr<DigestBytes> digest = Digest();
  if (!digest.ok()) return digest.status();
  header.digest = *digest;
  const absl::StatusOr<uint64_t> checksum = Checksum(header);
  if (!checksum.ok()) return checksum.status();
  header.checksum = *checksum;
  if (absl::Status status = Write(0, &header, sizeof header); !status.ok()) return status;
  if ((keeps && fsync(file_.fd) != 0) || rename(beside_.c_str(), path_.c_str()) != 0)
    return WriteFailed(absl::StrCat("cannot write ", path_), errno);
  close(file_.fd);
  file_.fd = -1;
  return absl::OkStatus();
}

absl::StatusOr<DigestBytes> IndexWriter::Digest() const {
  const absl::StatusOr<PlainFile> file = PlainFile::Open(beside_);
  if (!file.ok()) return file.status();
  Sha256 digest;
  // Documents that are padding in their place are counted where they stand, so that it is the digest of data without
  // damage.
  IndexCounts counts = counts_;
  counts.left_out -= padded_;
  digest.Add(&counts, sizeof counts);
  for (size_t i = 0; i < shards_.size(); ++i) {
    ShardRecord shard = shards_[i];
    shard.left_out -= padded_before_[i];
    digest.Add(&shard, sizeof shard);
  }
  const auto take = [&](std::string_view part) { digest.Add(part.data(), part.size()); };
  for (const auto& [begin, end] : {std::pair(sizeof(IndexHeader) + shards_.size() * sizeof(ShardRecord), left_out_at_),
                                   std::pair(names_at_, checks_at_)}) {
    if (absl::Status status = EachPart(*file, begin, end, take); !status.ok()) return status;
  }
  for (const std::vector<FileRecord>* files : {&shard_files_, &other_files_}) {
    for (const FileRecord& one : *files) digest.Add(&one.bytes, sizeof one.bytes);
  }
  return BytesOfDigest(digest.Hex());
}

absl::StatusOr<uint64_t> IndexWriter::Checksum(const IndexHeader& header) const {
  const absl::StatusOr<PlainFile> file = PlainFile::Open(beside_);
  if (!file.ok()) return file.status();
  uint64_t sum = IndexChecksum(0, &header, sizeof header);
  const absl::Status status = EachPart(*file, sizeof header, header.file_bytes, [&](std::string_view part) {
    sum = IndexChecksum(sum, part.data(), part.size());
  });
  if (!status.ok()) return status;
  return sum;
}

}  // namespace planwright
