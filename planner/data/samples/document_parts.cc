#include "planner/data/samples/document_parts.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "planner/base/json/json_text.h"

namespace planwright {
namespace {

absl::Status PartError(const std::string& what) { return absl::InvalidArgumentError(what); }

bool IsPictureExtension(std::string_view extension) {
  return extension == "jpg" || extension == "jpeg" || extension == "png" || extension == "webp";
}

}  // namespace

std::pair<std::string, std::string> SplitMemberName(std::string_view name) {
  const size_t slash = name.rfind('/');
  const size_t dot = name.find('.', slash == std::string_view::npos ? 0 : slash + 1);
  if (dot == std::string_view::npos) return {std::string(name), ""};
  std::string extension(name.substr(dot + 1));
  absl::AsciiStrToLower(&extension);
  return {std::string(name.substr(0, dot)), extension};
}

bool IsNoteOfMacos(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('/') + 1);  // without a slash all of it
  return last.starts_with("._") || last == ".DS_Store";
}

bool ReadImageExtension(std::string_view extension, int64_t& number) {
  number = -1;
  if (IsPictureExtension(extension)) return true;
  const size_t dot = extension.find('.');
  if (dot == std::string_view::npos || !IsPictureExtension(extension.substr(dot + 1))) return false;
  const std::string digits(extension.substr(0, dot));
  return digits.size() <= 9 && digits.find_first_not_of("0123456789") == std::string::npos &&
         absl::SimpleAtoi(digits, &number);
}

bool IsReadExtension(std::string_view extension, bool ids) {
  int64_t number = 0;
  return ReadImageExtension(extension, number) || extension == "images" || extension == (ids ? "tok" : "txt") ||
         (ids && extension == "mask");
}

absl::Status FindTextMarks(std::string_view text, int64_t images, std::vector<uint32_t>& marks) {
  marks.clear();
  for (size_t at = text.find(kImageMarkText); at != std::string_view::npos;
       at = text.find(kImageMarkText, at + kImageMarkText.size())) {
    // Each mark before this one is one token and not its bytes.
    marks.push_back(static_cast<uint32_t>(at - marks.size() * (kImageMarkText.size() - 1)));
  }
  if (marks.empty()) {
    for (int64_t i = 0; i < images; ++i) marks.push_back(static_cast<uint32_t>(i));
  } else if (static_cast<int64_t>(marks.size()) != images) {
    return PartError(absl::StrCat("its text has ", marks.size(), " marks <image>, and it has ", images, " images"));
  }
  return absl::OkStatus();
}

absl::Status CheckIds(std::string_view tok, int64_t vocabulary, int64_t image_token,
                      const std::set<int64_t>& other_image_tokens, std::vector<uint32_t>& marks) {
  marks.clear();
  if (tok.empty()) return PartError("its .tok is empty");
  if (tok.size() % 4 != 0) return PartError(absl::StrCat("its .tok has ", tok.size(), " bytes, no multiple of 4"));
  for (size_t i = 0; i < tok.size() / 4; ++i) {
    uint32_t id = 0;
    std::memcpy(&id, tok.data() + 4 * i, 4);
    if (id >= vocabulary)
      return PartError(absl::StrCat("token ", i, " of its .tok is ", id, ", and the vocabulary ", vocabulary));
    if (id == image_token) {
      marks.push_back(static_cast<uint32_t>(i));
    } else if (!other_image_tokens.empty() && other_image_tokens.contains(id)) {
      return PartError(absl::StrCat("token ", i, " of its .tok is ", id, ", the image token of a further encoder; ",
                                    "images are marked by that of the first, ", image_token));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckMask(std::string_view mask) {
  const auto wrong = std::find_if(mask.begin(), mask.end(), [](char byte) { return byte != 0 && byte != 1; });
  if (wrong == mask.end()) return absl::OkStatus();
  return PartError(absl::StrCat("byte ", wrong - mask.begin(), " of its .mask is ",
                                static_cast<int>(static_cast<unsigned char>(*wrong)), "; it must be 0 or 1"));
}

absl::StatusOr<std::vector<ImageReference>> ReadImageReferences(std::string_view json) {
  const absl::StatusOr<nlohmann::json> list = ParseJson(json, kImagesJson);
  if (!list.ok()) return PartError(absl::StrCat("its .images: ", list.status().message()));
  if (!list->is_array()) return PartError("its .images is no list");
  std::vector<ImageReference> references;
  for (size_t i = 0; i < list->size(); ++i) {
    const nlohmann::json& entry = (*list)[i];
    const auto text = [&](const char* name) {
      const auto found = entry.find(name);
      return found != entry.end() && found->is_string() ? found->get<std::string>() : "";
    };
    ImageReference reference;
    const bool in_tar = entry.is_object() && entry.size() == 2 && entry.contains("shard") && entry.contains("member");
    const bool file = entry.is_object() && entry.size() == 1 && entry.contains("file");
    if (in_tar) reference = {text("shard"), text("member")};
    if (file) reference = {text("file"), ""};
    if (reference.path.empty() || (in_tar && reference.member.empty())) {
      return PartError(absl::StrCat("entry ", i, " of its .images is neither {\"shard\": PATH, \"member\": NAME} nor ",
                                    "{\"file\": PATH}"));
    }
    references.push_back(std::move(reference));
  }
  return references;
}

}  // namespace planwright
