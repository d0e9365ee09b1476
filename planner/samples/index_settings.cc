#include "planner/samples/index_settings.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include "planner/plan/sha256.h"
#include "planner/run_files/file_io.h"
#include "planner/samples/index_writer.h"

namespace planwright {
namespace {

// A name of a source may be any text: what no file should be called is written as its bytes.
std::string FileNameOf(const std::string& source) {
  std::string name;
  for (char c : source) {
    const bool plain = absl::ascii_isalnum(c) || c == '_' || c == '-' || (c == '.' && !name.empty());
    name += plain ? std::string(1, c) : absl::StrFormat("%%%02x", static_cast<unsigned char>(c));
  }
  return name;
}

}  // namespace

std::string IndexFolder(const DataPlan& data) { return ResolvePath(data.base, data.index); }

std::string IndexPath(const DataPlan& data, const SourcePlan& source) {
  return absl::StrCat(IndexFolder(data), "/", FileNameOf(source.name), ".index");
}

std::string IndexPartsFolder(const DataPlan& data, const SourcePlan& source) {
  return absl::StrCat(IndexFolder(data), "/", FileNameOf(source.name), ".parts");
}

std::string LeftOutPath(const DataPlan& data, const SourcePlan& source) {
  return absl::StrCat(IndexFolder(data), "/", FileNameOf(source.name), ".left_out.txt");
}

ReadingSettings ReadingOf(const DataPlan& data, const SourcePlan& source) {
  ReadingSettings settings;
  settings.ids = data.tokenizer == "ids";
  for (const std::string& extension : source.ignore) settings.ignore.insert(absl::AsciiStrToLower(extension));
  settings.decode_images = data.damaged == "skip";
  if (!settings.ids) return settings;
  settings.vocabulary = data.vocabulary;
  settings.image_token = data.image_token;
  for (const EncoderData& encoder : data.encoders) {
    if (encoder.token != data.image_token) settings.other_image_tokens.insert(encoder.token);
  }
  return settings;
}

DigestBytes SourceDigest(const DataPlan& data, const SourcePlan& source) {
  return BytesOfDigest(
      Sha256Hex(absl::StrCat(HexOfDigest(ReadingOf(data, source).Digest()), "\n", absl::StrJoin(source.shards, "\n"),
                             "\n\n", data.tokenizer_digest, "\n", data.template_digest)));
}

}  // namespace planwright
