// The records of an index file (docs/training/data.md#index). All numbers are little endian. The sections follow the
// header in this order, each padded with zeros to a multiple of 8 bytes:
//
//   ShardRecord[shards] DocumentRecord[documents] ImageRecord[images] LeftOutRecord[left_out] char names[name_bytes]
//   DocumentCheck[documents] ImageCheck[images] FileRecord[files] char texts[text_bytes]
//
// An index of one shard is also what is kept of a finished shard until the whole index is made.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace planwright {

static_assert(std::endian::native == std::endian::little, "index files are mapped as they are");

inline constexpr std::array<char, 8> kIndexMagic = {'P', 'W', 'I', 'N', 'D', 'E', 'X', '\n'};
// Of the file. Another one is made anew under the same name, and a digest is not of it: what version 1 had, without
// checks, has the digest that it had.
inline constexpr uint32_t kIndexVersion = 2;

using DigestBytes = std::array<uint8_t, 32>;  // SHA-256

struct IndexHeader {
  std::array<char, 8> magic;
  uint32_t version, header_bytes;
  uint64_t file_bytes;
  uint64_t checksum;    // IndexChecksum of the file, with this field 0
  DigestBytes digest;   // of all that numbering depends on: no paths, no times
  DigestBytes reading;  // of the settings that documents were read with
  DigestBytes source;   // of `reading`, and of what the recipe says of the source
  uint64_t shards, documents, images, left_out, name_bytes, files, text_bytes;
  uint64_t tokens;  // of all documents
};

// What a shard has is what begins here, up to where the next shard begins. Its file is that of the same number.
struct ShardRecord {
  uint64_t document, image, left_out, name;
  uint64_t tokens;
  DigestBytes content;  // of the texts and masks of its documents
};

struct DocumentRecord {
  uint64_t text_offset, mask_offset;  // in the shard; mask_offset 0: no mask
  uint32_t text_bytes, tokens;
  uint32_t image, name;  // where its images and its name begin, counted from where those of the shard begin
};

struct ImageRecord {
  uint32_t offset_low, offset_high;  // in its file
  uint32_t bytes, file, mark, height, width;

  uint64_t offset() const { return uint64_t{offset_high} << 32 | offset_low; }
};

// By which a document that is read is known to be the one that was indexed: a shard may be made anew, and have the size
// and the time that it had (document_check.h).
struct DocumentCheck {
  uint32_t parts;  // CheckOfParts
  // Where the list is (.images): in blocks of kTarBlock bytes from the begin of the shard, in bytes; 0: there is none.
  uint32_t list_block, list_bytes;
};

struct ImageCheck {
  uint32_t ends;   // checksum of its first and last bytes
  uint32_t state;  // its orientation, 1 to 8, as ReadOrientation numbers them; and kDamagedImage, if it is damaged

  int orientation() const { return static_cast<int>(state & 15); }
  bool damaged() const { return (state & kDamagedImage) != 0; }

  // All of it was read, and its header says a size, but not all of its pixels are there (`damaged: skip`).
  static constexpr uint32_t kDamagedImage = 16;
};

// A document that was left out, in the shard to which it belongs. Its name and the reason follow each other in texts.
struct LeftOutRecord {
  uint64_t text;
  uint32_t name_bytes, why_bytes;
};

enum class IndexedFileKind : uint32_t { kShard = 0, kTar = 1, kPlain = 2 };

// Shards first, in their order, then the files that images are in, in the order of their first use. A plain file is one
// image; it is listed as often as it is used.
struct FileRecord {
  uint64_t text;    // where its path begins in texts: absolute, or relative to the recipe's folder
  uint64_t bytes;   // of the file
  int64_t changed;  // when the file was last changed, in nanoseconds since 1970
  uint32_t path_bytes, kind;
};

static_assert(sizeof(IndexHeader) == 192 && sizeof(ShardRecord) == 72 && sizeof(DocumentRecord) == 32 &&
              sizeof(ImageRecord) == 28 && sizeof(LeftOutRecord) == 16 && sizeof(FileRecord) == 32 &&
              sizeof(DocumentCheck) == 12 && sizeof(ImageCheck) == 8);

// A sum that finds damage, at the speed of memory. `bytes`: a multiple of 8. It goes on from `sum`, which begins as 0
// with the header, and then takes the rest of the file in parts of kChecksumPart bytes.
inline constexpr size_t kChecksumPart = size_t{1} << 20;
uint64_t IndexChecksum(uint64_t sum, const void* data, size_t bytes);

}  // namespace planwright
