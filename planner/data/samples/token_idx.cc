#include "planner/data/samples/token_idx.h"

#include <absl/strings/str_cat.h>

#include <cstring>
#include <utility>

#include "planner/base/digest/sha256.h"

namespace planwright {
namespace {

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
void Append(std::string_view bytes, std::vector<int64_t>& into) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(Number)) {
    // A uint64_t is none of the types, so every value fits.
    into.push_back(static_cast<int64_t>(NumberAt<Number>(bytes, at)));
  }
}

}  // namespace

absl::StatusOr<TokenIdx> TokenIdx::Open(const std::string& path) {
  absl::StatusOr<MappedFile> idx = MappedFile::Open(path + ".idx");
  if (!idx.ok()) return idx.status();
  absl::StatusOr<PlainFile> bin = PlainFile::Open(path + ".bin");
  if (!bin.ok()) return bin.status();
  TokenIdx opened;
  opened.path_ = path;
  opened.idx_ = *std::move(idx);
  opened.bin_ = *std::move(bin);
  if (absl::Status status = opened.CheckHeader(); !status.ok()) return status;
  if (absl::Status status = opened.CheckSequences(); !status.ok()) return status;
  if (absl::Status status = opened.CheckDocuments(); !status.ok()) return status;
  opened.digest_ = Sha256Hex(opened.idx_.bytes());
  return opened;
}

template <typename... What>
absl::Status TokenIdx::Wrong(const What&... what) const {
  return absl::InvalidArgumentError(absl::StrCat(path_, ".idx: ", what...));
}

// CheckHeader has found these numbers to be in the file.
int64_t TokenIdx::Length(int64_t sequence) const { return NumberAt<int32_t>(idx_.bytes(), kIdxHeader + 4 * sequence); }
int64_t TokenIdx::Offset(int64_t sequence) const {
  return NumberAt<int64_t>(idx_.bytes(), kIdxHeader + 4 * sequences_ + 8 * sequence);
}
int64_t TokenIdx::FirstSequence(int64_t document) const {
  return NumberAt<int64_t>(idx_.bytes(), kIdxHeader + 12 * sequences_ + 8 * document);
}

int64_t TokenIdx::DocumentOf(int64_t sequence) const {
  int64_t low = 0, high = documents_;  // the last document that begins at this sequence or before is in [low, high)
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (FirstSequence(middle) <= sequence ? low : high) = middle;
  }
  return low;
}

int64_t TokenIdx::TokensOf(int64_t document) const {
  int64_t tokens = 0;
  for (int64_t i = FirstSequence(document); i < FirstSequence(document + 1); ++i) tokens += Length(i);
  return tokens;
}

void TokenIdx::AppendTokens(std::string_view bytes, std::vector<int64_t>& into) const {
  switch (type_) {
    case 1: return Append<uint8_t>(bytes, into);
    case 2: return Append<int8_t>(bytes, into);
    case 3: return Append<int16_t>(bytes, into);
    case 4: return Append<int32_t>(bytes, into);
    case 5: return Append<int64_t>(bytes, into);
    default: return Append<uint16_t>(bytes, into);
  }
}

absl::Status TokenIdx::CheckHeader() {
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
  documents_ = static_cast<int64_t>(entries) - 1;
  const std::string_view rest = idx.substr(kIdxHeader + 12 * sequences + 8 * entries);
  if (rest.empty()) return absl::OkStatus();
  if (rest.size() != sequences)
    return Wrong("it has ", rest.size(), " bytes behind its entries of documents, where it should end");
  if (rest.find_first_not_of('\0') != std::string_view::npos)
    return Wrong("it has modes of sequences, as multimodal data sets do; text alone is read");
  return absl::OkStatus();
}

absl::Status TokenIdx::CheckSequences() const {
  for (int64_t i = 0; i < sequences_; ++i) {
    const int64_t length = Length(i), pointer = Offset(i);
    if (length < 0) return Wrong("sequence ", i, " has ", length, " tokens");
    if (pointer < 0 || length > bin_.bytes() / token_bytes_ || pointer > bin_.bytes() - length * token_bytes_) {
      return Wrong("sequence ", i, ", ", length, " tokens of ", token_bytes_, " bytes from byte ", pointer,
                   " on, does not lie in ", path_, ".bin, which has ", bin_.bytes(), " bytes");
    }
  }
  return absl::OkStatus();
}

absl::Status TokenIdx::CheckDocuments() {
  if (FirstSequence(0) != 0) return Wrong("its first document begins at sequence ", FirstSequence(0), ", not at 0");
  for (int64_t i = 0; i < documents_; ++i) {
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
  if (FirstSequence(documents_) != sequences_) {
    return Wrong("its documents end at sequence ", FirstSequence(documents_), ", and it has ", sequences_,
                 " sequences");
  }
  if (documents_ == static_cast<int64_t>(empty_.size())) return Wrong("it has no document with tokens");
  return absl::OkStatus();
}

}  // namespace planwright
