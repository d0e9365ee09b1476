// The samples of data of kind `sources`, once more: slow, with lists of everything, as docs/training/data.md#sources
// states them. Shares draws and the rule of image sizes with planner/data/samples, and nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/data/samples/sample_source.h"
#include "tests/data/samples/memory_documents.h"

namespace planwright {

using PlainShards = std::vector<std::vector<MemoryDocument>>;  // the documents of each shard of a source

class PlainSamples {
 public:
  PlainSamples(const Plan& plan, const std::vector<PlainShards>& sources);

  // A document that is longer than the sequence, with `long: error`, or has images that do not fit, with `damaged:
  // error`; or a source without a document.
  bool refused() const { return refused_; }
  // Documents that are in samples, and samples of an epoch.
  int64_t kept(size_t source) const { return sources_[source].kept; }
  int64_t samples(size_t source) const { return static_cast<int64_t>(sources_[source].packs.size()); }

  // Tokens, labels, mask and ends; of images the sizes.
  Sample At(int64_t number) const;
  struct Picture {
    size_t source = 0, document = 0, index = 0;
  };
  // The pictures of a sample, in order.
  std::vector<Picture> PicturesOf(int64_t number) const;

 private:
  struct Token {
    int64_t id = 0;
    bool learnt = false, image = false;
    int64_t picture = -1;  // of the document
  };
  struct Piece {
    int64_t document = 0;
    std::vector<Token> tokens;
  };
  using Pack = std::vector<Piece>;
  struct Source {
    std::string name;
    int64_t kept = 0;
    std::vector<MemoryDocument> documents;
    std::vector<int64_t> shard_sizes;
    std::vector<Pack> packs;
    std::vector<int64_t> shard_of_pack;
  };

  std::vector<int64_t> Permutation(const std::string& name, int64_t size) const;
  std::optional<std::vector<Token>> Expand(const MemoryDocument& document) const;
  std::vector<Piece> Pieces(const Source& source, int64_t document);
  void PackWindow(Source& source, int64_t shard, const std::vector<int64_t>& documents);
  void PackAll(Source& source);
  std::vector<int64_t> Epoch(const Source& source, int64_t epoch) const;
  const Pack& PackOf(int64_t number, size_t& source) const;

  const Plan plan_;
  bool refused_ = false;
  std::vector<Source> sources_;
};

}  // namespace planwright
