#include "planner/samples/token_documents.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "planner/plan/sha256.h"
#include "planner/run_files/file_io.h"
#include "planner/samples/mapped_file.h"
#include "planner/samples/open_files.h"

namespace planwright {
namespace {

constexpr std::string_view kIdxMagic("MMIDIDX\x00\x00", 9);
constexpr size_t kIdxHeader = 34;
constexpr int64_t kMostDocumentTokens = int64_t{1} << 30;

// Bytes of a token by the code of its type; 0: no integer.
constexpr int kTokenBytes[] = {0, 1, 1, 2, 4, 8, 0, 0, 2};
constexpr const char* kTokenTypes[] = {"none",  "uint8",   "int8",    "int16", "int32",
                                       "int64", "float64", "float32", "uint16"};

template <typename Number>
Number NumberAt(std::string_view bytes, size_t offset) {
  Number number{};
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

template <typename Number>
void AppendTokens(std::string_view bytes, std::vector<int64_t>& into) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(Number)) {
    // A uint64_t is none of the types, so every value fits.
    into.push_back(static_cast<int64_t>(NumberAt<Number>(bytes, at)));
  }
}

class TokenDocuments : public Documents {
 public:
  TokenDocuments(std::string path, int64_t vocabulary, std::set<int64_t> image_tokens)
      : path_(std::move(path)), vocabulary_(vocabulary), image_tokens_(std::move(image_tokens)) {}

  absl::Status Open() {
    absl::StatusOr<MappedFile> idx = MappedFile::Open(path_ + ".idx");
    if (!idx.ok()) return idx.status();
    absl::StatusOr<PlainFile> bin = PlainFile::Open(path_ + ".bin");
    if (!bin.ok()) return bin.status();
    idx_ = *std::move(idx);
    bin_ = *std::move(bin);
    if (absl::Status status = CheckHeader(); !status.ok()) return status;
    if (absl::Status status = CheckSequences(); !status.ok()) return status;
    if (absl::Status status = CheckDocuments(); !status.ok()) return status;
    Sha256 digest;
    digest.Add(idx_.bytes().data(), idx_.bytes().size());
    const int64_t bytes = bin_.bytes();
    digest.Add(&bytes, sizeof bytes);
    digest_ = digest.Hex();
    shard_begins_ = {0, size()};
    return absl::OkStatus();
  }

  int64_t size() const override { return all_documents_ - static_cast<int64_t>(empty_.size()); }
  const std::vector<int64_t>& shard_begins() const override { return shard_begins_; }
  int64_t tokens(int64_t document) const override { return TokensOf(NumberInFile(document)); }
  void Pictures(int64_t, std::vector<PictureRef>& into) const override { into.clear(); }
  std::string digest() const override { return digest_; }
  int64_t left_out() const override { return static_cast<int64_t>(empty_.size()); }
  std::string Where(int64_t document) const override {
    return absl::StrCat(path_, ".bin: document ", NumberInFile(document));
  }

  absl::StatusOr<Text> ReadText(int64_t document) const override {
    const absl::StatusOr<Text> text = ReadSequences(NumberInFile(document));
    if (!text.ok())
      return absl::Status(text.status().code(), absl::StrCat(Where(document), ": ", text.status().message()));
    return text;
  }

  absl::StatusOr<std::string> ReadPicture(int64_t document, int64_t) const override {
    return absl::NotFoundError(Where(document) + ": a document of tokens has no images");
  }

 private:
  template <typename... What>
  absl::Status Wrong(const What&... what) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ".idx: ", what...));
  }

  // The numbers of the file, which CheckHeader has found to be in it.
  int64_t Length(int64_t sequence) const { return NumberAt<int32_t>(idx_.bytes(), kIdxHeader + 4 * sequence); }
  int64_t Pointer(int64_t sequence) const {
    return NumberAt<int64_t>(idx_.bytes(), kIdxHeader + 4 * sequences_ + 8 * sequence);
  }
  int64_t FirstSequence(int64_t document) const {
    return NumberAt<int64_t>(idx_.bytes(), kIdxHeader + 12 * sequences_ + 8 * document);
  }

  absl::Status CheckHeader() {
    const std::string_view idx = idx_.bytes();
    if (idx.size() < kIdxHeader || idx.substr(0, kIdxMagic.size()) != kIdxMagic)
      return Wrong("it does not begin as Megatron's indexed data sets do (MMIDIDX)");
    const auto version = NumberAt<uint64_t>(idx, 9);
    if (version != 1) return Wrong("it is of version ", version, "; version 1 is read");
    const uint8_t type = NumberAt<uint8_t>(idx, 17);
    if (type >= std::size(kTokenBytes) || kTokenBytes[type] == 0) {
      return Wrong("its tokens have type ", int{type},
                   type < std::size(kTokenTypes) ? absl::StrCat(" (", kTokenTypes[type], ")") : "",
                   "; whole numbers are read: uint8, int8, int16, uint16, int32 and int64");
    }
    type_ = type;
    token_bytes_ = kTokenBytes[type];
    const auto sequences = NumberAt<uint64_t>(idx, 18), entries = NumberAt<uint64_t>(idx, 26);
    const uint64_t left = idx.size() - kIdxHeader;
    if (sequences > left / 12 || entries > (left - 12 * sequences) / 8) {
      return Wrong("it is cut short: it has ", idx.size(), " bytes, too few for its ", sequences, " sequences and ",
                   entries, " entries of documents");
    }
    if (entries == 0) return Wrong("it has no entries of documents, not even the first");
    sequences_ = static_cast<int64_t>(sequences);
    all_documents_ = static_cast<int64_t>(entries) - 1;
    const std::string_view rest = idx.substr(kIdxHeader + 12 * sequences + 8 * entries);
    if (rest.empty()) return absl::OkStatus();
    if (rest.size() != sequences)
      return Wrong("it has ", rest.size(), " bytes behind its entries of documents, where it should end");
    if (rest.find_first_not_of('\0') != std::string_view::npos)
      return Wrong("it has modes of sequences, as multimodal data sets do; text alone is read");
    return absl::OkStatus();
  }

  absl::Status CheckSequences() const {
    for (int64_t i = 0; i < sequences_; ++i) {
      const int64_t length = Length(i), pointer = Pointer(i);
      if (length < 0) return Wrong("sequence ", i, " has ", length, " tokens");
      if (pointer < 0 || length > bin_.bytes() / token_bytes_ || pointer > bin_.bytes() - length * token_bytes_) {
        return Wrong("sequence ", i, ", ", length, " tokens of ", token_bytes_, " bytes from byte ", pointer,
                     " on, does not lie in ", path_, ".bin, which has ", bin_.bytes(), " bytes");
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckDocuments() {
    if (FirstSequence(0) != 0) return Wrong("its first document begins at sequence ", FirstSequence(0), ", not at 0");
    for (int64_t i = 0; i < all_documents_; ++i) {
      const int64_t begin = FirstSequence(i), end = FirstSequence(i + 1);
      if (end < begin || end > sequences_) {
        return Wrong("document ", i, " has the sequences ", begin, " to ", end, " of ", sequences_,
                     ": entries of documents must ascend");
      }
      const int64_t tokens = TokensOf(i);
      if (tokens == 0) empty_.push_back(i);
      if (tokens > kMostDocumentTokens)
        return Wrong("document ", i, " has ", tokens, " tokens; at most ", kMostDocumentTokens, " are read");
    }
    if (FirstSequence(all_documents_) != sequences_) {
      return Wrong("its documents end at sequence ", FirstSequence(all_documents_), ", and it has ", sequences_,
                   " sequences");
    }
    if (size() == 0) return Wrong("it has no document with tokens");
    return absl::OkStatus();
  }

  // With the documents without tokens counted, as the file has them.
  int64_t NumberInFile(int64_t document) const {
    if (empty_.empty()) return document;
    // empty_[k] - k documents with tokens come before the k-th one without.
    int64_t low = 0, high = static_cast<int64_t>(empty_.size());
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (empty_[middle] - middle <= document) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return document + low;
  }

  int64_t TokensOf(int64_t document) const {
    int64_t tokens = 0;
    for (int64_t i = FirstSequence(document); i < FirstSequence(document + 1); ++i) tokens += Length(i);
    return tokens;
  }

  absl::StatusOr<Text> ReadSequences(int64_t document) const {
    Text text;
    for (int64_t i = FirstSequence(document); i < FirstSequence(document + 1); ++i) {
      const absl::StatusOr<std::string> bytes = ReadBytesAt(bin_, Pointer(i), Length(i) * token_bytes_);
      if (!bytes.ok()) return bytes.status();
      switch (type_) {
        case 1: AppendTokens<uint8_t>(*bytes, text.tokens); break;
        case 2: AppendTokens<int8_t>(*bytes, text.tokens); break;
        case 3: AppendTokens<int16_t>(*bytes, text.tokens); break;
        case 4: AppendTokens<int32_t>(*bytes, text.tokens); break;
        case 5: AppendTokens<int64_t>(*bytes, text.tokens); break;
        default: AppendTokens<uint16_t>(*bytes, text.tokens); break;
      }
    }
    for (size_t i = 0; i < text.tokens.size(); ++i) {
      const int64_t id = text.tokens[i];
      if (id < 0 || id >= vocabulary_)
        return absl::InvalidArgumentError(absl::StrCat("token ", i, " is ", id, ", and the vocabulary ", vocabulary_));
      if (image_tokens_.contains(id))
        return absl::InvalidArgumentError(absl::StrCat("token ", i, " is ", id, ", the image token; it has no images"));
    }
    return text;
  }

  const std::string path_;
  const int64_t vocabulary_;
  const std::set<int64_t> image_tokens_;
  MappedFile idx_;
  PlainFile bin_;
  int type_ = 0, token_bytes_ = 0;
  int64_t sequences_ = 0, all_documents_ = 0;
  std::vector<int64_t> empty_;  // documents without tokens, ascending
  std::vector<int64_t> shard_begins_;
  std::string digest_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Documents>> OpenTokenDocuments(const std::string& path, int64_t vocabulary,
                                                              std::set<int64_t> image_tokens) {
  auto documents = std::make_unique<TokenDocuments>(path, vocabulary, std::move(image_tokens));
  if (absl::Status status = documents->Open(); !status.ok()) return status;
  return documents;
}

}  // namespace planwright
