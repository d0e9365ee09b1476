// The images of the documents of one shard: where each is, and how large, from its header; with `decode` whether all of
// it is whole. Beside the text, or elsewhere (KEY.images).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "planner/data/pictures/picture_size.h"
#include "planner/data/samples/document_parts.h"
#include "planner/data/samples/index_file.h"
#include "planner/data/samples/open_files.h"
#include "planner/data/samples/tar_members.h"

namespace planwright {

// A file that an index will name.
struct NamedFile {
  std::string path;  // absolute, or relative to the recipe's folder
  int64_t bytes = 0, changed = 0;
  IndexedFileKind kind = IndexedFileKind::kShard;
};

// A file's size and when it was last changed. NotFound, Unavailable, with the path.
absl::StatusOr<NamedFile> StatFile(const std::string& base, const std::string& path, IndexedFileKind kind);

// What an index has of an image.
struct MeasuredImage {
  ImageRecord record;
  ImageCheck check;
  std::string damage;  // with ImageMeter's `keep_damaged`: what is wrong with it, if it cannot be decoded
};

// For one thread. What is wrong with an image is InvalidArgument, a sentence for a message that names the document;
// other errors are of the machine.
class ImageMeter {
 public:
  // Of the shard at `shard`, relative to `base` or absolute. `turned`: what is decoded is also asked how it is to be
  // turned, in all of the file; an index has what its begin and its end say. `keep_damaged`: an image whose header says
  // its size, and that cannot be decoded, is measured all the same.
  ImageMeter(std::string base, std::string shard, bool decode, bool turned, bool keep_damaged, TarMembersCache& tars);

  // The image of `bytes` bytes at `offset` in the shard, which `read` reads from its begin. Its mark is not yet known.
  // `what`: how messages call it.
  absl::StatusOr<MeasuredImage> Measure(const std::string& what, ReadBytes read, int64_t offset, int64_t bytes) const;

  // Image `number` of a document that says where it is. Its file is added to `files`, but for a tar that is there.
  // NotFound: there is no such file.
  absl::StatusOr<MeasuredImage> Refer(const ImageReference& reference, size_t number, std::vector<NamedFile>& files);

  // Where the file of an image is that a document names.
  std::string PathOf(const ImageReference& reference) const;

  // `files` has been cut to so many.
  void Forget(size_t files);

 private:
  std::string FromBase(const ImageReference& reference) const;
  // PlainPath, which is asked once for images of one folder that follow each other.
  std::string Shown(const std::string& path);

  const std::string base_, shard_;
  const bool decode_, turned_, keep_damaged_;
  TarMembersCache& tars_;
  OpenFiles open_;
  std::map<std::string, uint32_t> numbers_;  // of tars in `files`
  std::string folder_, plain_folder_;        // the last one that was shown
};

}  // namespace planwright
