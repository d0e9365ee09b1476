#include "tests/data/samples/plain_samples.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "planner/base/random/philox.h"
#include "planner/data/pictures/patch_grid.h"

namespace planwright {
namespace {

PatchGrid PlainGrid(const DataPlan& data, const EncoderData& encoder, const PictureRef& size) {
  if (data.grid == "square") return {encoder.max_image / encoder.patch, encoder.max_image / encoder.patch};
  const std::map<std::string, GridRule> rules = {{"ceil", GridRule::kCeil},
                                                 {"round_half_even", GridRule::kRoundHalfEven},
                                                 {"smart_resize", GridRule::kSmartResize}};
  return DynamicResolution(size.height, size.width, encoder.patch, data.min_patches, data.max_patches,
                           encoder.pixel_shuffle, rules.at(data.grid));
}

}  // namespace

PlainSamples::PlainSamples(const Plan& plan, const std::vector<PlainShards>& sources) : plan_(plan) {
  for (size_t i = 0; i < sources.size(); ++i) {
    Source& source = sources_.emplace_back();
    source.name = plan.data.sources[i].name;
    for (const std::vector<MemoryDocument>& shard : sources[i]) {
      source.shard_sizes.push_back(static_cast<int64_t>(shard.size()));
      for (const MemoryDocument& document : shard) source.documents.push_back(document);
    }
    PackAll(source);
    if (source.packs.empty()) refused_ = true;
  }
}

std::vector<int64_t> PlainSamples::Permutation(const std::string& name, int64_t size) const {
  const Philox draws(plan_.data.seed, name);
  int64_t a = 1;
  while (a * a < size) ++a;
  int64_t b = 1;
  while (a * b < size) ++b;
  std::vector<int64_t> result;
  for (int64_t i = 0; i < size; ++i) {
    int64_t x = i;
    do {
      int64_t l = x / b, r = x % b;
      for (int64_t round = 0; round < 8; ++round) {
        const double u = draws.Uniform((round << 32) + (round % 2 == 0 ? r : l));
        if (round % 2 == 0) l = (l + static_cast<int64_t>(std::floor(u * a))) % a;
        if (round % 2 == 1) r = (r + static_cast<int64_t>(std::floor(u * b))) % b;
      }
      x = l * b + r;
    } while (x >= size);
    result.push_back(x);
  }
  return result;
}

// Nothing if an image does not fit an encoder.
std::optional<std::vector<PlainSamples::Token>> PlainSamples::Expand(const MemoryDocument& document) const {
  std::vector<Token> tokens;
  int64_t picture = -1;
  for (size_t i = 0; i < document.text.tokens.size(); ++i) {
    if (document.text.tokens[i] != kImageMark) {
      tokens.push_back(
          {document.text.tokens[i], document.text.learnt.empty() || document.text.learnt[i] == 1, false, -1});
      continue;
    }
    ++picture;
    for (const EncoderData& encoder : plan_.data.encoders) {
      const PatchGrid grid = PlainGrid(plan_.data, encoder, document.sizes[picture]);
      for (int64_t k = 0; k < grid.rows * grid.cols / (encoder.pixel_shuffle * encoder.pixel_shuffle); ++k)
        tokens.push_back({encoder.token, false, true, picture});
    }
  }
  return tokens;
}

// What is packed of a document: nothing, all of it, or its pieces.
std::vector<PlainSamples::Piece> PlainSamples::Pieces(const Source& source, int64_t document) {
  const DataPlan& data = plan_.data;
  const int64_t most = plan_.budget.sequence_length;
  const auto tokens = Expand(source.documents[document]);
  if (!tokens) {
    if (data.damaged == "error") refused_ = true;
    return {};
  }
  if (tokens->empty()) return {};
  if (static_cast<int64_t>(tokens->size()) <= most) return {{document, *tokens}};
  if (data.long_documents == "error") refused_ = true;
  if (data.long_documents != "cut") return {};
  // Units that are not cut: a token of text, or all tokens of an image.
  std::vector<std::vector<Token>> units;
  for (const Token& token : *tokens) {
    if (token.picture >= 0 && !units.empty() && units.back().back().picture == token.picture) {
      units.back().push_back(token);
    } else {
      units.push_back({token});
    }
  }
  std::vector<Piece> pieces = {{document, {}}};
  for (const std::vector<Token>& unit : units) {
    if (static_cast<int64_t>(unit.size()) > most) {
      if (data.damaged == "error") refused_ = true;
      return {};
    }
    if (static_cast<int64_t>(pieces.back().tokens.size() + unit.size()) > most) pieces.push_back({document, {}});
    for (const Token& token : unit) pieces.back().tokens.push_back(token);
  }
  return pieces;
}

void PlainSamples::PackWindow(Source& source, int64_t shard, const std::vector<int64_t>& documents) {
  const size_t first = source.packs.size();
  for (int64_t document : documents) {
    const std::vector<Piece> pieces = Pieces(source, document);
    source.kept += !pieces.empty();
    for (const Piece& piece : pieces) {
      size_t pack = plan_.data.packing == "none" ? source.packs.size() : first;
      for (; pack < source.packs.size(); ++pack) {
        size_t used = 0;
        for (const Piece& other : source.packs[pack]) used += other.tokens.size();
        if (static_cast<int64_t>(used + piece.tokens.size()) <= plan_.budget.sequence_length) break;
      }
      if (pack == source.packs.size()) {
        source.packs.emplace_back();
        source.shard_of_pack.push_back(shard);
      }
      source.packs[pack].push_back(piece);
    }
  }
}

void PlainSamples::PackAll(Source& source) {
  const std::string& shuffle = plan_.data.shuffle;
  const auto in_windows = [&](int64_t shard, const std::vector<int64_t>& order) {
    for (size_t begin = 0; begin < order.size(); begin += plan_.data.window) {
      const size_t end = std::min(order.size(), begin + plan_.data.window);
      PackWindow(source, shard, std::vector<int64_t>(order.begin() + begin, order.begin() + end));
    }
  };
  const int64_t documents = static_cast<int64_t>(source.documents.size());
  if (shuffle == "all") return in_windows(0, Permutation("sources.documents." + source.name, documents));
  if (shuffle == "none") {
    std::vector<int64_t> order(documents);
    std::iota(order.begin(), order.end(), 0);
    return in_windows(0, order);
  }
  const int64_t run = std::stoll(shuffle);
  int64_t first = 0;
  for (size_t shard = 0; shard < source.shard_sizes.size(); ++shard) {
    std::vector<int64_t> order;
    for (int64_t begin = 0; begin < source.shard_sizes[shard]; begin += run) {
      const std::string name =
          "sources.documents." + std::to_string(shard) + "." + std::to_string(begin / run) + "." + source.name;
      for (int64_t x : Permutation(name, std::min(run, source.shard_sizes[shard] - begin)))
        order.push_back(first + begin + x);
    }
    first += source.shard_sizes[shard];
    in_windows(static_cast<int64_t>(shard), order);
  }
}

// The packs of an epoch, in order.
std::vector<int64_t> PlainSamples::Epoch(const Source& source, int64_t epoch) const {
  const std::string& shuffle = plan_.data.shuffle;
  const int64_t packs = static_cast<int64_t>(source.packs.size());
  const std::string number = std::to_string(epoch) + ".";
  if (shuffle == "all") return Permutation("sources.samples." + number + source.name, packs);
  std::vector<int64_t> order;
  if (shuffle == "none") {
    for (int64_t pack = 0; pack < packs; ++pack) order.push_back(pack);
    return order;
  }
  for (int64_t shard :
       Permutation("sources.shards." + number + source.name, static_cast<int64_t>(source.shard_sizes.size()))) {
    for (int64_t pack = 0; pack < packs; ++pack)
      if (source.shard_of_pack[pack] == shard) order.push_back(pack);
  }
  const int64_t run = std::max<int64_t>(1, std::min<int64_t>(std::stoll(shuffle), source.kept) * packs / source.kept);
  std::vector<int64_t> shuffled;
  for (int64_t begin = 0; begin < packs; begin += run) {
    const std::string name = "sources.samples." + number + std::to_string(begin / run) + "." + source.name;
    for (int64_t x : Permutation(name, std::min(run, packs - begin))) shuffled.push_back(order[begin + x]);
  }
  return shuffled;
}

const PlainSamples::Pack& PlainSamples::PackOf(int64_t number, size_t& source) const {
  // Tijdeman's rule, from sample 1 on, in integers: T = sum of weights, sigma_i = (w_i n - T x_i) / T.
  const int64_t k = static_cast<int64_t>(sources_.size());
  int64_t total = 0;
  for (const SourcePlan& each : plan_.data.sources) total += each.weight;
  std::vector<int64_t> had(k, 0);
  for (int64_t n = number / total * total; n <= number; ++n) {
    if (n % total == 0) {
      for (int64_t i = 0; i < k; ++i) had[i] = n / total * plan_.data.sources[i].weight;
    }
    int64_t best = k == 1 ? 0 : -1, best_top = 0, best_bottom = 1;
    for (int64_t i = 0; k > 1 && i < k; ++i) {
      const int64_t weight = plan_.data.sources[i].weight, sigma = weight * (n + 1) - total * had[i];
      if (sigma * (2 * k - 2) < total) continue;
      const int64_t top = total * (2 * k - 3) - sigma * (2 * k - 2);  // of (1 - 1 / (2 k - 2) - sigma) / p_i
      if (best >= 0 && top * best_bottom >= best_top * weight) continue;
      best = i;
      best_top = top;
      best_bottom = weight;
    }
    source = static_cast<size_t>(best);
    ++had[best];
  }
  const Source& from = sources_[source];
  const int64_t own = had[source] - 1, packs = static_cast<int64_t>(from.packs.size());
  return from.packs[Epoch(from, own / packs)[own % packs]];
}

Sample PlainSamples::At(int64_t number) const {
  const DataPlan& data = plan_.data;
  const int64_t length = plan_.budget.sequence_length;
  size_t source = 0;
  const Pack& pack = PackOf(number, source);
  std::vector<Token> tokens;
  std::vector<int64_t> owner;  // which document of the sample; padding is one too
  Sample sample;
  for (size_t i = 0; i < pack.size(); ++i) {
    for (const Token& token : pack[i].tokens) {
      tokens.push_back(token);
      owner.push_back(static_cast<int64_t>(i));
    }
  }
  const int64_t used = static_cast<int64_t>(tokens.size());
  while (static_cast<int64_t>(tokens.size()) < length) {
    tokens.push_back({data.pad_token, false, false, -1});
    owner.push_back(-1);
  }
  for (int64_t i = 0; i < length; ++i) {
    sample.tokens.push_back(tokens[i].id);
    const bool ends = i + 1 == length || owner[i + 1] != owner[i];
    const bool has_next = i + 1 < length && !(data.packed_documents && ends);
    sample.labels.push_back(has_next ? tokens[i + 1].id : data.pad_token);
    sample.loss_mask.push_back(has_next && i + 1 < used && !tokens[i + 1].image && tokens[i + 1].learnt ? 1 : 0);
    if (data.packed_documents && ends) sample.document_ends.push_back(i + 1);
  }
  for (const EncoderData& encoder : data.encoders) {
    std::vector<Image>& images = sample.images.emplace_back();
    for (const Picture& picture : PicturesOf(number)) {
      const PatchGrid grid =
          PlainGrid(data, encoder, sources_[source].documents[picture.document].sizes[picture.index]);
      images.push_back({grid.rows, grid.cols, {}});
    }
  }
  return sample;
}

std::vector<PlainSamples::Picture> PlainSamples::PicturesOf(int64_t number) const {
  size_t source = 0;
  std::vector<Picture> pictures;
  for (const Piece& piece : PackOf(number, source)) {
    std::set<int64_t> seen;
    for (const Token& token : piece.tokens) {
      if (token.image && seen.insert(token.picture).second)
        pictures.push_back({source, static_cast<size_t>(piece.document), static_cast<size_t>(token.picture)});
    }
  }
  return pictures;
}

}  // namespace planwright
