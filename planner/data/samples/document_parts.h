// What the members of a prepared document say (docs/training/data_formats.md#documents): marks of images in a text,
// ids, masks, and lists of images elsewhere. Errors are InvalidArgument: a sentence for a message that names the
// document.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace planwright {

// The largest text that is read, in bytes.
inline constexpr int64_t kMostTextBytes = int64_t{1} << 30;

// What stands in the text of the tokenizer `bytes` where an image is to be; one token.
inline constexpr std::string_view kImageMarkText = "<image>";

// The document and the extension of a member, in small letters: its name is cut at the first dot after the last slash.
std::pair<std::string, std::string> SplitMemberName(std::string_view name);

// Whether a member is what macOS notes of a file or a folder: it belongs to no document.
bool IsNoteOfMacos(std::string_view name);

// An image in the extension of a member: "jpg" has number -1, "3.jpg" number 3. False: it is none.
bool ReadImageExtension(std::string_view extension, int64_t& number);

// Whether members with this extension, in small letters, are read: with the tokenizer `ids`, else with `bytes`.
bool IsReadExtension(std::string_view extension, bool ids);

// Replaces `marks` with the positions of images among the tokens of a text of bytes: each kImageMarkText is one token,
// each other byte one. A text without any mark has its `images` before it.
absl::Status FindTextMarks(std::string_view text, int64_t images, std::vector<uint32_t>& marks);

// Checks the ids of a .tok, u32 each, and replaces `marks` with the positions of `image_token`.
absl::Status CheckIds(std::string_view tok, int64_t vocabulary, int64_t image_token,
                      const std::set<int64_t>& other_image_tokens, std::vector<uint32_t>& marks);
absl::Status CheckMask(std::string_view mask);

// An entry of .images: a member of a tar, or a file if `member` is empty.
struct ImageReference {
  std::string path, member;
};
absl::StatusOr<std::vector<ImageReference>> ReadImageReferences(std::string_view json);

}  // namespace planwright
