// Megatron's PATH.idx: which sequences of PATH.bin the documents of a source of tokens are
// (docs/training/data_formats.md#megatron).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/files/file_io.h"
#include "planner/data/samples/mapped_file.h"

namespace planwright {

// What PATH.idx begins with.
inline constexpr std::string_view kIdxMagic("MMIDIDX\0\0", 9);

// Several threads may ask at once. `document` is in [0, documents()], `sequence` in [0, sequences()).
class TokenIdx {
 public:
  // `path`: PATH. All of PATH.idx is checked, and compared with the size of PATH.bin. InvalidArgument names the file
  // and what is wrong with it.
  static absl::StatusOr<TokenIdx> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const PlainFile& bin() const { return bin_; }
  const std::string& digest() const { return digest_; }  // SHA-256 of PATH.idx, 64 hex digits

  int64_t documents() const { return documents_; }              // with those without tokens
  const std::vector<int64_t>& empty() const { return empty_; }  // documents without tokens, ascending
  int64_t sequences() const { return sequences_; }
  int64_t FirstSequence(int64_t document) const;  // of documents(): sequences()
  int64_t DocumentOf(int64_t sequence) const;
  int64_t TokensOf(int64_t document) const;

  // Where a sequence is in PATH.bin, in bytes.
  int64_t Offset(int64_t sequence) const;
  int64_t Bytes(int64_t sequence) const { return Length(sequence) * token_bytes_; }
  int64_t Length(int64_t sequence) const;  // in tokens

  // Appends the tokens of bytes of PATH.bin, a whole number of them.
  void AppendTokens(std::string_view bytes, std::vector<int64_t>& into) const;

 private:
  template <typename... What>
  absl::Status Wrong(const What&... what) const;
  absl::Status CheckHeader();
  absl::Status CheckSequences() const;
  absl::Status CheckDocuments();

  std::string path_, digest_;
  MappedFile idx_;
  PlainFile bin_;
  int type_ = 0, token_bytes_ = 0;
  int64_t sequences_ = 0, documents_ = 0;
  std::vector<int64_t> empty_;
};

}  // namespace planwright
