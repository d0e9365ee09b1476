// The documents of a source, in memory: what packing and reading ask for, without files. Counts what is asked.
#pragma once

#include <absl/strings/str_cat.h>

#include <atomic>
#include <string>
#include <vector>

#include "planner/base/digest/sha256.h"
#include "planner/data/samples/documents.h"

namespace planwright {

struct MemoryDocument {
  Documents::Text text;            // with kImageMark for each picture
  std::vector<PictureRef> sizes;   // without marks: they are found in the text
  std::vector<std::string> files;  // of the pictures
};

class MemoryDocuments : public Documents {
 public:
  // shards: the documents of each.
  MemoryDocuments(std::string name, const std::vector<std::vector<MemoryDocument>>& shards, int64_t left_out = 0)
      : name_(std::move(name)), left_out_(left_out) {
    for (const std::vector<MemoryDocument>& shard : shards) {
      shard_begins_.push_back(size());
      for (MemoryDocument document : shard) {
        size_t picture = 0;
        for (size_t i = 0; i < document.text.tokens.size(); ++i)
          if (document.text.tokens[i] == kImageMark) document.sizes[picture++].mark = static_cast<int64_t>(i);
        documents_.push_back(std::move(document));
      }
    }
    shard_begins_.push_back(size());
  }

  int64_t size() const override { return static_cast<int64_t>(documents_.size()); }
  const std::vector<int64_t>& shard_begins() const override { return shard_begins_; }
  int64_t tokens(int64_t document) const override {
    ++asked_;
    return static_cast<int64_t>(documents_.at(document).text.tokens.size());
  }
  void Pictures(int64_t document, std::vector<PictureRef>& into) const override {
    ++asked_;
    into = documents_.at(document).sizes;
  }
  absl::StatusOr<Text> ReadText(int64_t document) const override {
    ++asked_;
    return documents_.at(document).text;
  }
  absl::StatusOr<std::string> ReadPicture(int64_t document, int64_t index) const override {
    ++asked_;
    return documents_.at(document).files.at(index);
  }
  std::string Where(int64_t document) const override { return absl::StrCat(name_, ": document ", document); }
  std::string digest() const override { return Sha256Hex(absl::StrCat(name_, documents_.size())); }
  int64_t left_out() const override { return left_out_; }

  int64_t asked() const { return asked_; }  // calls about a document, so far

 private:
  const std::string name_;
  const int64_t left_out_;
  std::vector<MemoryDocument> documents_;
  std::vector<int64_t> shard_begins_;
  mutable std::atomic<int64_t> asked_ = 0;
};

}  // namespace planwright
