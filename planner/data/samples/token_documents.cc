#include "planner/data/samples/token_documents.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "planner/data/samples/open_files.h"

namespace planwright {
namespace {

class TokenDocuments : public Documents {
 public:
  TokenDocuments(TokenIdx idx, TokenRule rule, std::string digest)
      : idx_(std::move(idx)), rule_(std::move(rule)), digest_(std::move(digest)), shard_begins_({0, size()}) {}

  int64_t size() const override { return idx_.documents() - without_tokens(); }
  const std::vector<int64_t>& shard_begins() const override { return shard_begins_; }
  int64_t tokens(int64_t document) const override { return idx_.TokensOf(NumberInFile(document)); }
  void Pictures(int64_t, std::vector<PictureRef>& into) const override { into.clear(); }
  std::string digest() const override { return digest_; }
  int64_t left_out() const override { return 0; }  // a wrong id is an error of the index
  int64_t without_tokens() const override { return static_cast<int64_t>(idx_.empty().size()); }
  std::string Where(int64_t document) const override {
    return absl::StrCat(idx_.path(), ".bin: document ", NumberInFile(document));
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
  // With the documents without tokens counted, as the file has them.
  int64_t NumberInFile(int64_t document) const {
    const std::vector<int64_t>& empty = idx_.empty();
    if (empty.empty()) return document;
    // empty[k] - k documents with tokens come before the k-th one without.
    int64_t low = 0, high = static_cast<int64_t>(empty.size());
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (empty[middle] - middle <= document) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return document + low;
  }

  absl::StatusOr<Text> ReadSequences(int64_t document) const {
    Text text;
    for (int64_t i = idx_.FirstSequence(document); i < idx_.FirstSequence(document + 1); ++i) {
      const absl::StatusOr<std::string> bytes = ReadBytesAt(idx_.bin(), idx_.Offset(i), idx_.Bytes(i));
      if (!bytes.ok()) return bytes.status();
      idx_.AppendTokens(*bytes, text.tokens);
    }
    // The file may have been changed since the index was made, and have its size.
    const std::string wrong = WrongId(rule_, text.tokens, 0);
    if (!wrong.empty()) return absl::InvalidArgumentError(wrong);
    return text;
  }

  const TokenIdx idx_;
  const TokenRule rule_;
  const std::string digest_;
  const std::vector<int64_t> shard_begins_;
};

}  // namespace

std::unique_ptr<Documents> MakeTokenDocuments(TokenIdx idx, TokenRule rule, std::string digest) {
  return std::make_unique<TokenDocuments>(std::move(idx), std::move(rule), std::move(digest));
}

}  // namespace planwright
