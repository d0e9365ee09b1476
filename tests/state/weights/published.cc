#include "tests/state/weights/published.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "planner/plan/shard_map.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;

template <typename T>
void Append(std::string& bytes, T number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// Of a number that an fp16 holds exactly.
uint16_t Fp16Of(double value) {
  if (std::isinf(value)) return value > 0 ? 0x7c00 : 0xfc00;
  if (value == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);  // in [0.5, 1)
  const auto bits = static_cast<uint16_t>(std::lround(std::ldexp(fraction, 11)) & 0x3ff);
  return static_cast<uint16_t>((value < 0 ? 0x8000 : 0) | (exponent + 14) << 10 | bits);
}

}  // namespace

double PublishedValue(const std::string& name, int64_t index) {
  uint64_t x = 1469598103934665603ULL + 0x9e3779b97f4a7c15ULL * static_cast<uint64_t>(index + 1);
  for (char c : name) x = (x ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ULL;
  return static_cast<double>((x >> 40) % 192 + 1) / 64;
}

std::string BytesOf(const std::string& type, int64_t count, const std::function<double(int64_t)>& value) {
  std::string bytes;
  for (int64_t i = 0; i < count; ++i) {
    const double number = value(i);
    if (type == "F64") Append(bytes, number);
    if (type == "F32") Append(bytes, static_cast<float>(number));
    if (type == "BF16") Append(bytes, static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(number)) >> 16));
    if (type == "F16") Append(bytes, Fp16Of(number));
  }
  return bytes;
}

RawTensor Numbers(const std::string& type, const std::vector<int64_t>& shape,
                  const std::function<double(int64_t)>& value) {
  return {type, shape, BytesOf(type, ElementsOf(shape), value)};
}

RawTensors TensorsOf(const Plan& plan, const std::string& type) {
  RawTensors tensors;
  for (const Module& module : plan.modules) {
    for (const Parameter& parameter : module.parameters) {
      for (int64_t i = 0; i < std::max<int64_t>(parameter.experts, 1); ++i) {
        const std::string name = ExpertName(parameter.file_name, parameter.experts > 0 ? i : -1);
        tensors[name] = Numbers(type, parameter.shape, [&](int64_t at) { return PublishedValue(name, at); });
      }
    }
  }
  return tensors;
}

std::string FileOf(const RawTensors& tensors) {
  nlohmann::ordered_json header = {{"__metadata__", {{"format", "pt"}}}};
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", tensor.type},
                    {"shape", tensor.shape},
                    {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
    data += tensor.bytes;
  }
  const std::string text = header.dump();
  std::string file;
  Append(file, static_cast<uint64_t>(text.size()));
  return file + text + data;
}

std::string ShardName(int shard, int shards) {
  char name[64];
  std::snprintf(name, sizeof name, "model-%05d-of-%05d.safetensors", shard, shards);
  return name;
}

void WriteFolder(const std::string& folder, const RawTensors& tensors, int shards) {
  fs::create_directories(folder);
  if (shards == 1) return WriteText(folder + "/model.safetensors", FileOf(tensors));
  std::vector<RawTensors> parts(static_cast<size_t>(shards));
  nlohmann::ordered_json map = nlohmann::ordered_json::object();
  int64_t bytes = 0;
  size_t at = 0;
  for (const auto& [name, tensor] : tensors) {
    const size_t shard = at++ % parts.size();
    parts[shard][name] = tensor;
    map[name] = ShardName(static_cast<int>(shard) + 1, shards);
    bytes += static_cast<int64_t>(tensor.bytes.size());
  }
  for (int i = 0; i < shards; ++i)
    WriteText(folder + "/" + ShardName(i + 1, shards), FileOf(parts[static_cast<size_t>(i)]));
  const nlohmann::ordered_json index = {{"metadata", {{"total_size", bytes}}}, {"weight_map", map}};
  WriteText(folder + "/model.safetensors.index.json", index.dump(2));
}

void WriteText(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

TestFolder::TestFolder() {
  std::string pattern = (fs::temp_directory_path() / "planwright_weights_XXXXXX").string();
  path_ = mkdtemp(pattern.data()) != nullptr ? pattern : "";
}
TestFolder::~TestFolder() { fs::remove_all(path_); }

}  // namespace planwright::testing
