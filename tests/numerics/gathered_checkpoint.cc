#include "tests/numerics/gathered_checkpoint.h"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace planwright::testing {
namespace {

using nlohmann::json;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file || text.str().empty()) throw std::runtime_error("cannot read " + path);
  return text.str();
}

// A whole tensor, and which of its elements have come.
struct Filled {
  GatheredTensor tensor;
  std::vector<bool> there;
  size_t width = 0;  // bytes of an element
};

size_t WidthOf(const std::string& dtype) {
  static const std::map<std::string, size_t> kWidths = {{"bf16", 2}, {"fp32", 4}, {"fp64", 8}, {"int64", 8}};
  return kWidths.at(dtype);
}

// The tensors of a shard: 8 bytes with the length of a JSON header, the header, the bytes.
void AddShard(const std::string& folder, int rank, std::map<std::string, Filled>& all) {
  char name[32];
  std::snprintf(name, sizeof name, "/rank-%05d", rank);
  const json index = json::parse(ReadFile(folder + name + ".json"));
  const std::string shard = ReadFile(folder + name + ".safetensors");
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, shard.data(), sizeof header_bytes);
  const json header = json::parse(shard.substr(8, header_bytes));
  const char* data = shard.data() + 8 + header_bytes;
  for (const auto& [key, entry] : index.at("tensors").items()) {
    auto [at, fresh] = all.try_emplace(key);
    Filled& filled = at->second;
    const GatheredTensor said = {entry.at("dtype"), entry.at("shape"), ""};
    if (fresh) {
      size_t elements = 1;
      for (int64_t size : said.shape) elements *= static_cast<size_t>(size);
      filled.tensor = said;
      filled.width = WidthOf(said.dtype);
      filled.tensor.bytes.resize(elements * filled.width);
      filled.there.resize(elements);
    }
    if (filled.tensor.dtype != said.dtype || filled.tensor.shape != said.shape)
      throw std::runtime_error("shards differ about " + key);
    size_t from = header.at(key).at("data_offsets").at(0);
    const size_t end = header.at(key).at("data_offsets").at(1);
    for (const json& stride : entry.at("elements")) {
      const int64_t first = stride.at(0), count = stride.at(1), step = stride.at(2), times = stride.at(3);
      for (int64_t run = 0; run < times; ++run) {
        for (int64_t i = first + run * step; i < first + run * step + count; ++i, from += filled.width) {
          const auto element = static_cast<size_t>(i);
          if (from + filled.width > end) throw std::runtime_error(key + " has too few bytes in a shard");
          if (filled.there.at(element)) throw std::runtime_error("two shards have an element of " + key);
          filled.there[element] = true;
          std::memcpy(&filled.tensor.bytes[element * filled.width], data + from, filled.width);
        }
      }
    }
    if (from != end) throw std::runtime_error(key + " has too many bytes in a shard");
  }
}

}  // namespace

GatheredCheckpoint GatherCheckpoint(const std::string& folder) {
  GatheredCheckpoint gathered;
  try {
    const json manifest = json::parse(ReadFile(folder + "/manifest.json"));
    for (const char* counter : {"step", "applied_steps", "skipped_steps", "consumed_samples"})
      gathered.counters[counter] = manifest.at(counter);
    std::map<std::string, Filled> all;
    for (const json& shard : manifest.at("shards")) AddShard(folder, shard.at("rank"), all), ++gathered.ranks;
    for (auto& [key, filled] : all) {
      for (const bool there : filled.there) {
        if (!there) throw std::runtime_error("no shard has some element of " + key);
      }
      gathered.tensors[key] = std::move(filled.tensor);
    }
  } catch (const std::exception& error) {
    gathered.problem = folder + ": " + error.what();
  }
  return gathered;
}

}  // namespace planwright::testing
